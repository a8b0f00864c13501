"""What the text of each chapter claims, by the names of the marks behind its sentences."""
