"""Pages of the book that are templates."""

from pathlib import Path

from jinja2 import StrictUndefined, Template


def filled(root, name, **values):
    """Text of ``book/NAME.md`` with these values; a name that it lacks is an error."""
    text = Path(root, "book", f"{name}.md").read_text("utf-8")
    return Template(
        text, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    ).render(values)
