"""What only the book needs: its survey, figures and pages, and the command ``ppm``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["page", "plots", "survey"])
