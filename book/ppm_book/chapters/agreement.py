"""Whether the chains behind a page's fits agree, by both R-hats."""

from ppm.chains import R_HAT_LIMIT


def agrees(fit):
    """Whether the chains of a fit agree, by R-hat of what Δ is the maximum of and of log p.

    Without both, nothing on a page is sure of the fit: the library's bound is withheld by the
    first alone, while a high second one says that longer chains may find another Δ.

    Parameters
    ----------
    fit : ppm.Fit

    Returns
    -------
    bool
        False also where an R-hat cannot be told.
    """
    found = fit.diagnostics
    return bool(found.agree and found.r_hat_log_likelihood <= R_HAT_LIMIT)


def count(fits):
    """How many of some fits agree, in words: ``"13 of 14"``."""
    each = [agrees(fit) for fit in fits]
    return f"{sum(each)} of {len(each)}"
