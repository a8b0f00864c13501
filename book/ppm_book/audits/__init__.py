"""Audits: what a mechanism lets an adversary learn, exactly or from draws."""

from ppm.audits.censored_counts import censored
from ppm.audits.closed_form import exact
from ppm.audits.from_draws import loss_lower_bound, membership_test, sampled

__all__ = ["exact", "censored", "sampled", "loss_lower_bound", "membership_test"]
