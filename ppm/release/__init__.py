"""What a release needs beyond the paper: plans, noise, an account of ε, statements."""

from ppm.release.limits import limits_and_weight, place_limits

__all__ = ["limits_and_weight", "place_limits"]
