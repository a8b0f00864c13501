"""The book: command line, notebooks, pages, ledger."""
