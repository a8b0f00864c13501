"""Models of a database that the mechanism can make private."""
