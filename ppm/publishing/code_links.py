"""Links from code on the book's pages to the reference of the library."""

import re

# what chapters call the parts of the library
_ALIASES = {
    "page": "ppm.publishing",
    "result": "ppm.mechanism.MechanismResult",
    "synthesizer": "ppm.Synthesizer",
}
# a dotted name as Pygments marks it: one element a word
_WORD = r'<span class="n">\w+</span>'
_DOTTED = re.compile(rf'(?<!\.</span>){_WORD}(?:<span class="o">\.</span>{_WORD})+')
_INLINE = re.compile(
    r'<code class="docutils literal notranslate">(?P<inner>(?:<span class="pre">[^<]*</span>\s*)+)'
    r"</code>(?!</a>)"
)


def with_links(body, places, address):
    """The body of a page with links from the library's names in code to where they are described.

    Parameters
    ----------
    body : str
        HTML.
    places : dict of str to (str, str)
        Dotted name -> page and place on it.
    address : callable
        Takes a page and returns its address, as seen from this one.

    Returns
    -------
    str
    """

    def link(name, html):
        page, place = places[name]
        # a page is its own address with a mark for a place already
        there = address(page).partition("#")[0]
        return f'<a class="code-link" href="{there}#{place}">{html}</a>'

    def in_block(match):
        words = re.findall(r'<span class="n">(\w+)</span>', match[0])
        name = ".".join([_ALIASES.get(words[0], words[0]), *words[1:]])
        # a method or an attribute of what a name returns is not described by itself
        return link(name, match[0]) if name in places else match[0]

    def in_text(match):
        text = re.sub(r"<[^>]+>", "", match["inner"])
        name = described(text, places)
        return link(name, match[0]) if name else match[0]

    return _INLINE.sub(in_text, _DOTTED.sub(in_block, body))


def described(text, places):
    """Dotted name behind what stands in a text as code, such as ``record_bounds(log_lik)``.

    Parameters
    ----------
    text : str
        The code.
    places : dict
        Dotted names that are described.

    Returns
    -------
    str or None
        None for what is no name of the library, or for one of several.
    """
    match = re.fullmatch(r"(?P<name>[A-Za-z_][\w.]*)(?P<call>\(.*\))?", text.strip(), re.DOTALL)
    if not match:
        return None
    first, *rest = match["name"].split(".")
    name = ".".join([_ALIASES.get(first, first), *rest]) if rest else first
    for candidate in (name, f"ppm.{name}"):
        if candidate in places and (match["call"] or rest or first[0].isupper()):
            return candidate
    if not match["call"] or rest:
        return None
    # a function of one of the rooms, called without it
    found = [known for known in places if known.endswith(f".{first}") and known.count(".") == 2]
    return found[0] if len(found) == 1 and found[0].split(".")[1].islower() else None
