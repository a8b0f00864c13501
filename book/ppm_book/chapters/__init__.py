"""What the chapters of the book share: runs, pages, figures, and the survey."""
