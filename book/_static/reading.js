/* A wide table scrolls by itself: let the keyboard reach it where it does. The theme does the same
   for its own boxes. */
addEventListener("load", () => {
  const watch = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  document.querySelectorAll(".bd-article table").forEach((table) => watch.observe(table));
});
