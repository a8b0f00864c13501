"""What builds the book: the command, its pages, exercises and the ledger."""
