"""What only the book needs: its survey, figures and pages, and the command ``ppm``."""

import sys
from importlib import import_module

import lazy_loader

from ppm._extras import lacking

# jsonschema would compile a grammar of web addresses for more than a second, for nothing
sys.modules.setdefault("rfc3987_syntax", None)
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["page", "plots", "survey"])


def main():
    """Run the command ``ppm``; where its packages are absent, return what to install."""
    return lacking("the command ppm") or import_module("ppm_book.studio").main()
