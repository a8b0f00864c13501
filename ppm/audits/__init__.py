"""Audits: what a mechanism lets an adversary learn, exactly or from draws."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "closed_form": ["exact"],
        "censored_counts": ["censored"],
        "from_draws": ["sampled", "loss_lower_bound", "membership_test"],
    },
)
