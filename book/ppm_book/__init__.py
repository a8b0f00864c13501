"""What only the book needs: its survey, figures and pages, and the command ``ppm``."""

import sys

import lazy_loader

# jsonschema would compile a grammar of web addresses for more than a second, for nothing
sys.modules.setdefault("rfc3987_syntax", None)
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["page", "plots", "survey"])
