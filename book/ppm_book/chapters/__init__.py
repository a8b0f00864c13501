"""What the chapters of the book share: runs, pages, figures, and the survey."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, ["page", "plots", "survey"]
)
