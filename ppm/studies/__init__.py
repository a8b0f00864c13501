"""Studies that run the mechanism many times: contraction, settings, starting points."""
