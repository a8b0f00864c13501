"""Audits: what a mechanism lets an adversary learn, exactly or from draws."""

from ppm_book.audits.closed_form import exact
from ppm_book.audits.from_draws import loss_lower_bound, membership_test, sampled
from ppm_book.audits.tail import tail_bound

__all__ = ["exact", "sampled", "loss_lower_bound", "membership_test", "tail_bound"]
