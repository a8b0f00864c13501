"""What only the book needs: its survey, figures and pages, and the command ``ppm``."""

from ppm._validation import lazily

_ROOMS = ("page", "plots", "survey")

__all__ = [*_ROOMS]
__getattr__, __dir__ = lazily(globals(), {}, _ROOMS)
