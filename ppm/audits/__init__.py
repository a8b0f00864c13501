"""Audits: what a mechanism lets an adversary learn, exactly or from draws."""

from ppm._validation import lazily

# name -> the module that defines it; the book's dependency tracking reads this table too
_EXPORTS = {
    "exact": "ppm.audits.closed_form",
    "censored": "ppm.audits.censored_counts",
    "censored_shards": "ppm.audits.censored_counts",
    "sampled": "ppm.audits.from_draws",
    "SampledAudit": "ppm.audits.from_draws",
    "loss_lower_bound": "ppm.audits.from_draws",
    "membership_test": "ppm.audits.from_draws",
    "LossEvidence": "ppm.audits.from_draws",
}

__all__ = [*_EXPORTS]
__getattr__, __dir__ = lazily(globals(), _EXPORTS)
