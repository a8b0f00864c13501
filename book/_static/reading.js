/* A wide table or formula scrolls by itself: let the keyboard reach it where it does, and nowhere
   else. The theme does the same for its own boxes. */
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  const watch = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  const wide = ".bd-article :is(table, mjx-container[display=true])";
  document.querySelectorAll(wide).forEach((box) => watch.observe(box));
});

/* On a phone the columns of such a table stand one below the other: each cell brings its heading. */
addEventListener("DOMContentLoaded", async () => {
  // a formula in a heading is TeX until it has been set
  await window.MathJax?.startup?.promise;
  document.querySelectorAll(".bd-article table:not(.dataframe)").forEach((table) => {
    const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    table.querySelectorAll("tbody td").forEach((cell) => {
      const head = heads[cell.cellIndex];
      if (head && cell.textContent.trim()) cell.dataset.head = head;
    });
  });
});

/* A tap on the title of a folded solution opens it: a link in the title would lead away from it. */
addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".solution > .admonition-title a").forEach((link) => {
    link.replaceWith(...link.childNodes);
  });
});

/* What screen readers need and the theme leaves out: a list holds nothing but its items, a button
   that unfolds a part of the contents has a name, and one with words on it is called by them. */
addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".citation-list").forEach((list) => list.removeAttribute("role"));
  const worded = ".search-button-field, .theme-switch-button, details.hide > summary";
  document.querySelectorAll(worded).forEach((button) => button.removeAttribute("aria-label"));
  document.querySelectorAll(".bd-sidebar-primary details > summary").forEach((button) => {
    // a page that stands alone has no links to others
    const part = button.closest("li").querySelector("a");
    button.setAttribute("aria-label", part ? `Pages of ${part.textContent.trim()}` : "Pages");
  });
});

/* The theme listens to the first button of each menu, which its own header hides; the ones that are
   seen stand in the page's bar. */
addEventListener("DOMContentLoaded", () => {
  for (const kind of [".primary-toggle", ".secondary-toggle"]) {
    const [listening, ...seen] = document.querySelectorAll(kind);
    seen.forEach((button) => button.addEventListener("click", () => listening.click()));
  }
});
