"""Rules, which return :class:`ppm.Terms`: what each record adds."""

import os
import warnings
from dataclasses import replace

import numpy as np

from ppm.censoring import Censoring
from ppm.checks import check_number
from ppm.synthesizers.base import as_synthesizer
from ppm.terms import Terms, as_terms
from ppm.weights import capped_map, mapped_weights, record_weights, scalar_weights

__all__ = ["by_risk", "reweighted", "one_weight", "limited", "capped"]

# nats; with less, a tenth of the draws and more are far off even under a prior of moderate width
_HEIGHT = 10.0
#: Caps that are taken, in nats: as the widths of limits.
WIDTHS = {"at_least": 1e-6, "at_most": 1e9}


def by_risk(unweighted, *, scale=1.0, shift=0.0, truncate_at=None):
    """The paper's rule: the larger a record's bound in an unweighted fit, the smaller its weight.

    Savitsky, Williams and Hu (2022), section 3, steps 1c-e. The weights react to all records.

    Parameters
    ----------
    unweighted : ppm.Fit
        A fit in which all weights are 1.
    scale, shift, truncate_at
        The paper's c, g and M, as for :func:`ppm.record_weights`.

    Examples
    --------
    >>> import ppm
    >>> unweighted = ppm.fit(ppm.GammaPoisson([3, 5, 4, 6, 20]), draws=200, random_seed=1)
    >>> ppm.rules.by_risk(unweighted).weights.round(2)
    array([0.79, 0.94, 0.87, 1.  , 0.  ])
    """
    check_unweighted(unweighted)
    weights = record_weights(
        unweighted.record_bounds, scale=scale, shift=shift, truncate_at=truncate_at
    )
    return Terms(weights, source="all records")


def reweighted(weighted, *, k=0.95):
    r"""Weights :math:`\min(1, k\,\alpha_i\,\Delta / \Delta_i)`: every bound comes near the largest.

    Hu, Savitsky and Williams (2020, arXiv 2006.01230): records whose bound is below Δ gain weight,
    so that a release becomes more useful at about the same Δ. A third fit takes these weights.

    Parameters
    ----------
    weighted : ppm.Fit
        A fit without limits that has weights α, bounds :math:`\Delta_i`, and their largest, Δ. A
        record of weight 0, or with an infinite bound, gets weight 0 and is left out of Δ.
    k : float, default 0.95
        The share of Δ to aim at, above 0 and at most 1.

    Notes
    -----
    The weights react to all records twice: α does already, and so do Δ and the draws behind every
    :math:`\Delta_i`. As the posterior moves, Δ of the third fit has to be computed again, and may
    be larger than that of the second. No ε for all databases follows.

    Examples
    --------
    >>> import ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> first = ppm.fit(model, draws=200, random_seed=1)
    >>> second = ppm.fit(model, ppm.rules.by_risk(first), draws=200, random_seed=2)
    >>> second.weights.round(2), round(second.local_bound, 2)
    (array([0.79, 0.94, 0.87, 1.  , 0.  ]), 4.19)
    >>> terms = ppm.rules.reweighted(second)
    >>> third = ppm.fit(model, terms, draws=200, random_seed=3)
    >>> third.weights.round(2), round(third.local_bound, 2)
    (array([1.  , 1.  , 1.  , 0.95, 0.  ]), 4.41)
    """
    k = check_number("k", k, above=0, at_most=1)
    if weighted.terms.limits is not None:
        raise ValueError("weighted must be a fit without limits")
    weights, bounds = weighted.weights, weighted.record_bounds
    taken = (weights > 0) & np.isfinite(bounds)
    raised = taken.astype(np.float64)
    # where a bound is 0, so is every term, and the record may have all its weight
    felt = taken & (bounds > 0)
    largest = bounds[felt].max(initial=0.0)
    raised[felt] = np.minimum(1.0, weights[felt] * (largest / bounds[felt]) * k)
    return Terms(raised, source="all records")


def one_weight(unweighted, *, epsilon):
    """The exponential mechanism: the same weight for all records, for a target ε of one release.

    Savitsky, Williams and Hu (2022), section 3.1. The weight reacts to all records; arguments as
    for :func:`by_risk` and :func:`ppm.scalar_weights`.

    Examples
    --------
    >>> import ppm
    >>> unweighted = ppm.fit(ppm.GammaPoisson([3, 5, 4, 6, 20]), draws=200, random_seed=1)
    >>> ppm.rules.one_weight(unweighted, epsilon=4.0).weights.round(2)
    array([0.12, 0.12, 0.12, 0.12, 0.12])
    """
    check_unweighted(unweighted)
    weights = scalar_weights(unweighted.record_bounds, epsilon=epsilon)
    return Terms(weights, source="all records")


def limited(synthesizer, limits, terms=None):
    """Terms between two public limits: their width is the ε of one draw, for every database.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer
        The model with the confidential records.
    limits : ppm.Censoring
        The limits, around a public center or not.
    terms : ppm.Terms or array_like (records,), optional
        What is to be limited, or weights for it; by default all weights are 1. The width is an ε
        for every database only if these terms are each record's ``own``.

    Raises
    ------
    TypeError
        If the model takes no limits.

    Examples
    --------
    >>> import ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20], shape=2, rate=0.4)
    >>> terms = ppm.rules.limited(model, ppm.Censoring(-3, -1))
    >>> ppm.fit(model, terms, draws=200, random_seed=1).epsilon(releases=3)
    6.0
    """
    model = as_synthesizer(synthesizer)
    if not isinstance(limits, Censoring):
        raise ValueError(f"limits must be a ppm.Censoring; got {type(limits).__name__}")
    check_takes_limits(model)
    levels = None if limits.center is None else limits.levels(model)
    terms = as_terms(terms, model.records)
    if terms.limits is not None:
        raise ValueError("terms must have no limits yet")
    return replace(terms, limits=limits, levels=levels)


def check_takes_limits(model):
    """Refuse a model whose ``fit`` would not see limits."""
    if not model.takes_limits:
        raise TypeError(
            f"censor: the fit() of {type(model).__name__} takes no limits; accepted: "
            "ppm.GammaPoisson, ppm.FiniteMixture, a PyMC model, candidates of any model, or a "
            "synthesizer with takes_limits = True"
        )


def check_unweighted(fit):
    """Refuse a fit whose bounds are not those of the records themselves."""
    if fit.terms.limits is not None or (fit.terms.weights != 1).any():
        raise ValueError(
            "unweighted must be a fit in which all weights are 1, without limits"
        )


def check_terms(model, terms):
    """Refuse limited terms that were made of other records, or that the model would not see."""
    if terms.capped:
        right = capped(model, terms.width)
        same = np.array_equal(right.weights, terms.weights)
    else:
        check_takes_limits(model)
        right, same = limited(model, terms.limits), True
    if terms.capped or terms.limits.center is not None:
        same = same and np.array_equal(right.levels, terms.levels)
    if not same:
        raise ValueError(
            "terms must be those of this model's own records: make them by ppm.rules, "
            "with this very model"
        )


def warn_where_low(terms):
    """Warn where few records or narrow limits leave most draws far from the center, to the prior.

    From public numbers alone.
    """
    if getattr(terms.limits, "center", None) is None:
        return
    height = terms.records * float(terms.limits.term(0.0) - terms.limits.low)
    if height < _HEIGHT:
        warnings.warn(
            f"censor: at the center all terms together are {height:.2g} nats above the "
            "lower limits, so that the prior may keep most draws far from it; limits "
            "farther apart, more records or a narrower prior prevent that",
            # points at the caller's line outside the library
            skip_file_prefixes=(os.path.join(os.path.dirname(__file__), ""),),
        )


def capped(synthesizer, width):
    r"""Weights :math:`\min(1, W / \text{range}_i)`: limits (0, W) that never cut a term.

    The range of a record's log p is taken over a finite public set of parameters, and its level is
    its smallest value there, so that its term lies between 0 and W for every database.

    Parameters
    ----------
    synthesizer : ppm.CandidateSynthesizer
        A model with a finite public set, over which the ranges are exact.
    width : float
        W, from 1e-6 to 1e9 nats: the ε of one draw.

    Raises
    ------
    TypeError
        If the model has no finite public set, of which ``public_set`` and ``read`` speak.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> counts = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> model = ppm.CandidateSynthesizer(counts, {"mu": np.linspace(2.0, 8.0, 50)})
    >>> ppm.rules.capped(model, 1.0).weights.round(2)
    array([0.49, 0.63, 0.81, 0.39, 0.05])
    """
    model, width = as_synthesizer(synthesizer), check_number("width", width, **WIDTHS)
    if not model.public_set:
        raise TypeError(
            "cap needs a ppm.CandidateSynthesizer, with a finite public set of "
            f"parameters; got {type(model).__name__}"
        )
    model.check_own_terms()
    everywhere = model.read(None)
    weights = mapped_weights(everywhere.oscillations, capped_map(width))
    lowest = np.where(weights > 0, everywhere.lowest, 0.0)
    limits = Censoring(0.0, width, smooth=False)
    return Terms(weights, limits, lowest, own=True, source="own range")
