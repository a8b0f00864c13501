"""What only the book needs: what its chapters share, and the command ``ppm``."""

from importlib.util import find_spec


def main():
    """Run the command ``ppm``; where its packages are absent, return what to install."""
    if not find_spec("papermill"):
        return (
            "the command ppm needs papermill: pip install '.[book]' in the folder of ppm's "
            "source"
        )
    from ppm_book.tools import studio

    return studio.main()
