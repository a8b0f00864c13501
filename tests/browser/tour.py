"""A tour of a built book in a headless Chromium: what a reader would see go wrong, page by page."""

import contextlib
from collections import defaultdict
from urllib.parse import unquote, urldefrag

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Error, TimeoutError, sync_playwright

DESKTOP, PHONE = (1280, 900), (390, 844)
LAYOUTS = [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "dark"), (PHONE, "light")]
# each width and each scheme once, in half the time of all four; axe applies all its rules to a page
# in the first of them, which is this one or the other from page to page
CORNERS = [(DESKTOP, "light"), (PHONE, "dark")]
KINDS = (
    "console", "requests", "overflow", "links", "images", "folded", "sliders", "theme",
    "accessibility",
)
# the theme gives its scrolling boxes to the keyboard this long after the width changed
SETTLED = 350
# and follows the reader's scheme within this time, in ms
PATIENCE = 3000

SCHEME = "scheme => [scheme, undefined].includes(document.documentElement.dataset.theme)"

READY = "() => window.MathJax?.startup ? MathJax.startup.promise.then(() => true) : true"

OVERFLOW = """() => {
  const root = document.documentElement, width = root.clientWidth;
  if (root.scrollWidth <= width) return null;
  const wide = [...document.querySelectorAll('body *')]
    .filter(e => e.getBoundingClientRect().right > width + 1)
    .slice(0, 40).pop();
  const name = e => e.tagName.toLowerCase() + (e.className?.trim ? '.' + e.className : '');
  return `${root.scrollWidth} px wide: ${wide ? name(wide) + ': ' : ''}`
    + (wide?.textContent ?? '').trim().slice(0, 60);
}"""

CONTENTS = """() => ({
  ids: [...document.querySelectorAll('[id]')].map(e => e.id)
    .concat([...document.querySelectorAll('a[name]')].map(e => e.name)),
  links: [...document.querySelectorAll('a[href], area[href]')].map(e => e.href),
  files: [...document.querySelectorAll('source[srcset]')].map(
    e => new URL(e.getAttribute('srcset'), document.baseURI).href),
  images: [...document.images].filter(e => !(e.complete && e.naturalWidth > 0)).map(e => e.src),
  silent: [...document.images].filter(e => !e.hasAttribute('alt')).map(e => e.src),
})"""

FOLDED = """() => {
  const bad = [];
  let opened = 0;
  const seen = e => e.checkVisibility({visibilityProperty: true});
  const check = (box, button, inner) => {
    const before = inner.some(seen);
    button.click();
    const after = inner.some(seen);
    button.click();
    const again = inner.some(seen);
    if (before || !after || again) bad.push(box.textContent.trim().slice(0, 60));
    else opened += 1;
  };
  for (const box of document.querySelectorAll('.bd-article .admonition.dropdown')) {
    const button = box.querySelector('button.toggle-button');
    const inner = [...box.children].filter(e => !e.matches('.admonition-title, button'));
    if (button) check(box, button, inner);
    else bad.push('no button: ' + box.textContent.trim().slice(0, 60));
  }
  for (const box of document.querySelectorAll('.bd-article details:not([open])')) {
    const inner = [...box.children].filter(e => !e.matches('summary'));
    check(box, box.querySelector('summary'), inner);
  }
  return {bad, opened};
}"""

# the text of the outputs that belong to a slider: those that name it, or else its figure's
OUTPUTS = """slider => {
  const named = slider.id
    ? [...document.querySelectorAll(`output[for~="${CSS.escape(slider.id)}"]`)] : [];
  const near = slider.closest('figure, form, fieldset, label, div')?.querySelectorAll('output');
  return [slider.value, (named.length ? named : [...near ?? []]).map(e => e.textContent).join('|')];
}"""

# once on a page: what cannot be serious is not looked for, and these two only of given elements, as
# they ask where everything on the page lies
OF_LOOKS = {"color-contrast": "[data-look]", "link-in-text-block": "a[href][data-look]"}
RULES = """of => axe.configure({rules: axe._audit.rules.flatMap(({id, impact}) =>
  of[id] ? [{id, selector: of[id]}]
  : ['serious', 'critical'].includes(impact) ? [] : [{id, enabled: false}]
)})"""
AXE = """async options => (await axe.run(
  // formulas have the colour of the text around them, and thousands of elements
  {exclude: [['mjx-container']]},
  {resultTypes: ['violations'], preload: false, ...options},
)).violations.map(found => [
  found.impact, found.id, found.nodes.length,
  found.nodes[0].target.join(' ') + ': ' + (found.nodes[0].any[0]?.message ?? found.help),
])"""

# one element for every way that text looks: its colour and size, and what lies behind it; of a link
# also what sets it apart from the text that it stands in
LOOKS = """known => {
  const behind = new Map();
  const backgrounds = e => {
    if (!e) return '';
    if (!behind.has(e)) {
      const style = getComputedStyle(e);
      const own = style.backgroundColor + style.backgroundImage;
      const seen = own !== 'rgba(0, 0, 0, 0)none' || style.opacity !== '1';
      behind.set(e, backgrounds(e.parentElement) + (seen ? own + style.opacity : ''));
    }
    return behind.get(e);
  };
  const found = new Set();
  for (const e of document.querySelectorAll('body *:not(mjx-container *)')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    if (!e.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    const style = getComputedStyle(e);
    const block = e.matches('a[href] *') ? e.closest('a[href]') : e, around = block.parentElement;
    const apart = e.matches('a[href], a[href] *') ? [
      e.tagName, style.textDecorationLine, getComputedStyle(block).borderBottomStyle,
      around.tagName, getComputedStyle(around).color,
    ] : [];
    const look = [style.color, style.fontSize, style.fontWeight, backgrounds(e), apart].join(' ');
    if (known.includes(look) || found.has(look)) continue;
    found.add(look);
    e.dataset.look = 'new';
  }
  return [...found];
}"""
FORGET = "() => document.querySelectorAll('[data-look]').forEach(e => delete e.dataset.look)"


@contextlib.contextmanager
def opened(chromium):
    """A page of a browser that reaches no network."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        try:
            yield browser.new_context(offline=True, reduced_motion="reduce").new_page()
        finally:
            browser.close()


def pages_of(html):
    """The pages of a built book; templates of the theme are none."""
    pages = [
        path for path in html.rglob("*.html") if "_static" not in path.relative_to(html).parts
    ]
    # the first one only leads on to the introduction
    return sorted(path for path in pages if path != html / "index.html")


class Tour:
    """Faults by kind, each a line that begins with the page.

    Parameters
    ----------
    page : playwright.sync_api.Page
        An open page.
    html : pathlib.Path
        Folder of the book.
    thorough : bool, default False
        Whether axe looks at every page in all layouts, and at all text for its contrast. Otherwise
        it applies its rules to one page at desktop and to the next at phone width, and in each
        scheme measures the contrast of one text of every kind.
    shots : pathlib.Path, optional
        Folder for a picture of every page in every layout.
    """

    def __init__(self, page, html, *, thorough=False, shots=None):
        self.page, self.html = page, html.resolve()
        self.thorough, self.shots = thorough, shots
        self.faults = defaultdict(list)
        self.folded = self.sliders = self.links = 0
        self._here, self._listening = "", True
        self._ids, self._targets = {}, []
        self._looks = defaultdict(list)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self._fault("console", str(error).splitlines()[0]))
        page.on("request", self._asked)
        page.on("requestfailed", lambda request: self._fault("requests", f"failed: {request.url}"))

    def _fault(self, kind, text):
        if self._listening:
            self.faults[kind].append(f"{self._here}: {text}")

    def _said(self, message):
        if message.type in ("error", "warning"):
            self._fault("console", f"{message.type}: {message.text}")

    def _asked(self, request):
        inside = request.url.startswith((f"{self.html.as_uri()}/", "data:", "blob:", "about:"))
        if not inside:
            self._fault("requests", f"asks for {request.url}")

    def take(self):
        """Visit every page."""
        for path in pages_of(self.html):
            self.visit(path)
        self._follow()
        return self

    def visit(self, path):
        """Look at one page in all layouts."""
        self._here = path.relative_to(self.html).as_posix()
        # begin as wide as the last page ended: the theme takes its time over every change
        layouts = LAYOUTS if self._wide() else LAYOUTS[::-1]
        self._lay_out(*layouts[0])
        self.page.goto(path.as_uri())
        self.page.evaluate(READY)
        contents = self.page.evaluate(CONTENTS)
        self._ids[path.as_uri()] = set(contents["ids"])
        self._targets += [(self._here, link) for link in contents["links"] + contents["files"]]
        for kind in ("images", "silent"):
            told = "cannot be shown" if kind == "images" else "has no alternative text"
            for image in contents[kind]:
                self._fault("images", f"{image} {told}")
        self._fold()
        self._slide()
        looked = False
        for size, scheme in layouts:
            where = f"{size[0]} px, {scheme}"
            self._lay_out(size, scheme)
            wide = self.page.evaluate(OVERFLOW)
            if wide:
                self._fault("overflow", f"{where}: {wide}")
            try:
                # a busy machine hands on the change of scheme late
                if not self.page.evaluate(SCHEME, scheme):
                    self.page.wait_for_function(SCHEME, arg=scheme, timeout=PATIENCE)
            except TimeoutError:
                shown = self.page.evaluate("() => document.documentElement.dataset.theme")
                self._fault("theme", f"{where}: is {shown}")
            if self.shots:
                name = f"{self._here[:-5].replace('/', '-')}-{size[0]}-{scheme}.png"
                self.page.screenshot(path=self.shots / name, full_page=True, animations="disabled")
            if self.thorough or (size, scheme) in CORNERS:
                if not looked:
                    self.page.evaluate(AXE_SCRIPT)
                    self.page.evaluate(RULES, {} if self.thorough else OF_LOOKS)
                self._look_with_axe(where, scheme, first=not looked)
                looked = True

    def _wide(self):
        return self.page.viewport_size["width"] > PHONE[0]

    def _lay_out(self, size, scheme):
        changed = self._wide() != (size == DESKTOP)
        self.page.emulate_media(color_scheme=scheme)
        self.page.set_viewport_size({"width": size[0], "height": size[1]})
        self.page.wait_for_timeout(SETTLED if changed and self.thorough else 30)

    def _fold(self):
        found = self.page.evaluate(FOLDED)
        self.folded += found["opened"]
        for box in found["bad"]:
            self._fault("folded", f"does not open and close: {box}")

    def _slide(self):
        for slider in self.page.locator("input[type=range]").all():
            self.sliders += 1
            before = slider.evaluate(OUTPUTS)
            try:
                slider.focus(timeout=1000)
            except Error:
                self._fault("sliders", "takes no focus")
                continue
            for key in ("ArrowRight", "ArrowLeft"):
                self.page.keyboard.press(key)
                after = slider.evaluate(OUTPUTS)
                if after[0] != before[0]:
                    break
            if after[0] == before[0]:
                self._fault("sliders", f"does not move from {before[0]} with the keyboard")
            elif after[1] == before[1]:
                self._fault("sliders", f"at {before[0]}: its output does not change")

    def _look_with_axe(self, where, scheme, *, first):
        # axe asks the page for its style sheets, which a folder on disk refuses
        self._listening = False
        options, found = {} if self.thorough else self._options(scheme, first), []
        if options is not None:
            found = self.page.evaluate(AXE, options)
            self.page.evaluate(FORGET)
        self._listening = True
        for impact, rule, number, example in found:
            if impact in ("serious", "critical"):
                self._fault("accessibility", f"{where}: {rule} ({number}), {example}")

    def _options(self, scheme, first):
        """What axe is to look for, with a mark on text that looks like none on pages before."""
        new = self.page.evaluate(LOOKS, self._looks[scheme])
        self._looks[scheme] += new
        if first:
            return {}
        return {"runOnly": list(OF_LOOKS)} if new else None

    def _follow(self):
        """Whether links within the book lead to a page, and to a place on it."""
        inside = f"{self.html.as_uri()}/"
        for here, link in dict.fromkeys(self._targets):
            self._here = here
            if not link.startswith("file:"):
                continue
            self.links += 1
            address, fragment = urldefrag(link)
            file = self.html / unquote(address.removeprefix(inside).partition("?")[0])
            if not address.startswith(inside):
                self._fault("links", f"{link} leads out of the book")
            elif not file.is_file():
                self._fault("links", f"{link} leads nowhere")
            elif fragment and not self._has(address, fragment):
                self._fault("links", f"{link}: there is no such place")

    def _has(self, address, fragment):
        ids = self._ids.get(address)
        return ids is None or unquote(fragment) in ids or fragment in ids


def search(page, html, word):
    """Titles of the pages that the book's search finds, and the address of the first."""
    page.goto(f"{(html / 'search.html').as_uri()}?q={word}")
    hits = page.locator("#search-results ul.search li a")
    hits.first.wait_for(timeout=10_000)
    page.wait_for_function(
        "() => !/Searching/.test(document.querySelector('#search-results h2').textContent)"
    )
    return hits.all_inner_texts(), hits.first.evaluate("link => link.href")
