"""The book: what a chapter shows and saves, and how chapters, pages and the ledger are made.

A chapter says ``from ppm_book import page``, and then ``page.check``, ``page.table``,
``page.save``.
"""

from ppm._validation import lazily

# name -> the module that defines it; the book's dependency tracking reads this table too
_EXPORTS = {
    "check": "ppm.publishing.parameters",
    "contraction_values": "ppm.publishing.ledger_values",
    "application_values": "ppm.publishing.ledger_values",
    "equal_bound_values": "ppm.publishing.ledger_values",
}

__all__ = [*_EXPORTS]
__getattr__, __dir__ = lazily(globals(), _EXPORTS)
