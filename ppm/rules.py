"""Rules: public values that say what each record adds to the pseudo posterior."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ppm.candidates import Candidates, is_grouped, is_named
from ppm.checks import (
    as_amounts,
    as_numbers,
    as_weights,
    check_count,
    check_number,
    check_weights,
)
from ppm.risk import identification_risks
from ppm.terms import Limits, Terms, weighted

__all__ = [
    "Rule",
    "Unweighted",
    "ByRisk",
    "OneWeight",
    "ByCount",
    "Reweighted",
    "Given",
    "Capped",
    "Limited",
    "record_weights",
]

# relative, of two computations of one bound
_ROUNDING = 1e-12
#: Widths of own weights that are taken, in nats, as those of limits.
WIDTHS = {"at_least": 1e-6, "at_most": 1e9}


class Rule(ABC):
    """How a model's terms are made: public, made without the table, frozen and hashable.

    A rule of your own is a frozen dataclass that inherits from this class. What it asks ``fit`` for
    is public in its fields; its terms, and every ε that follows, are local.

    Examples
    --------
    Weights that bring every bound above a percentile down to it:

    >>> import dataclasses, numpy as np, ppm
    >>> @dataclasses.dataclass(frozen=True)
    ... class ByPercentile(ppm.Rule):
    ...     percent: float = 90.0
    ...
    ...     def terms(self, model, fit):
    ...         bounds = fit(ppm.Unweighted()).record_bounds
    ...         highest = np.percentile(bounds, self.percent)
    ...         return ppm.Terms(np.minimum(1.0, highest / bounds))
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> ppm.fit(model, ByPercentile(50), draws=200, random_seed=1).weights.round(2)
    array([0.82, 1.  , 1.  , 1.  , 0.27])
    """

    @abstractmethod
    def terms(self, model, fit):
        """Terms of a model's records.

        ``fit(rule)`` is the model's fit under another rule, and ``fit(terms, draws=…, **sampler)``
        one under terms, by default with as many draws as the fit that was asked for. What is asked
        for twice is made once, and a rule that returns the terms of a fit it made gets that fit.
        The faults of their chains go along with the fit that was asked for; those of a
        ``fit(terms, trial=True)``, on which no number rests, do not.
        """


@dataclass(frozen=True)
class Unweighted(Rule):
    """All weights are 1: the ordinary posterior, the paper's *Unweighted*.

    Examples
    --------
    >>> import ppm
    >>> fit = ppm.fit(ppm.GammaPoisson([3, 5, 20]), ppm.Unweighted(), draws=200, random_seed=1)
    >>> fit.weights
    array([1., 1., 1.])
    """

    def terms(self, model, fit):
        return Terms(np.ones(model.records))


@dataclass(frozen=True)
class ByRisk(Rule):
    r"""The paper's rule: the larger a record's bound in an unweighted fit, the smaller its weight.

    Savitsky, Williams and Hu (2022), section 3, steps 1c-e: *Weighted* of the simulation and
    *DPweighted* of the application, with truncation *Weighted-M*. Weights are those of
    :func:`ppm.record_weights`; they react to all records.

    Parameters
    ----------
    scale : float, default 1
        The paper's c, above 0.
    shift : float, default 0
        The paper's g.
    truncate_at : float, optional
        The paper's M, above 0, in nats.

    Examples
    --------
    >>> import ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> ppm.fit(model, ppm.ByRisk(), draws=200, random_seed=1).weights.round(2)
    array([0.82, 0.96, 0.9 , 1.  , 0.  ])
    """

    scale: float = 1.0
    shift: float = 0.0
    truncate_at: float | None = None

    def __post_init__(self):
        _keep(
            self,
            scale=check_number("scale", self.scale, above=0),
            shift=check_number("shift", self.shift),
        )
        if self.truncate_at is not None:
            _keep(
                self, truncate_at=check_number("truncate_at", self.truncate_at, above=0)
            )

    def terms(self, model, fit):
        bounds = fit(Unweighted()).record_bounds
        return Terms(
            record_weights(
                bounds,
                scale=self.scale,
                shift=self.shift,
                truncate_at=self.truncate_at,
            )
        )


@dataclass(frozen=True)
class OneWeight(Rule):
    r"""The exponential mechanism: one weight for all records, searched for a Δ.

    The paper's *EMweighted*, Savitsky, Williams and Hu (2022), section 3.1 and section 5. The first
    fit has the paper's weight :math:`\min(1, \Delta^\ast / \Delta)`, with the target
    :math:`\Delta^\ast` and the Δ of the unweighted fit. As the posterior widens with a smaller
    weight, Δ misses the target, so that further fits follow where a straight line through weights
    and bounds meets it. The weight reacts to all records.

    Parameters
    ----------
    like : ppm.Rule, optional
        The rule whose Δ is the target. Chains are first tried with fewer draws, against what that
        rule's fit reaches over as many.
    epsilon : float, optional
        A public target for ε = 2Δ of one release, in place of ``like``; above 0, in nats.
    tolerance : float, default 0.05
        How far Δ may be from the target, as a share of it.
    fits : int, default 4
        Fits with all draws, at most; the nearest is taken.
    trials : int, default 3
        Fits with fewer draws before them, for a rule's target.

    Examples
    --------
    >>> import ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> rule = ppm.OneWeight(like=ppm.ByRisk(scale=0.7))
    >>> fit = ppm.fit(model, rule, draws=200, random_seed=1)
    >>> weighted = fit.behind[ppm.ByRisk(scale=0.7)]
    >>> round(fit.local_bound / weighted.local_bound, 1), fit.weights.round(2)
    (1.0, array([0.01, 0.01, 0.01, 0.01, 0.01]))
    """

    like: Rule | None = None
    epsilon: float | None = None
    tolerance: float = 0.05
    fits: int = 4
    trials: int = 3

    def __post_init__(self):
        if (self.like is None) == (self.epsilon is None):
            raise ValueError("give either like, a rule, or epsilon, a number above 0")
        if not isinstance(self.like, Rule | None):
            raise ValueError(f"like must be a ppm.Rule; got {type(self.like).__name__}")
        if self.epsilon is not None:
            _keep(self, epsilon=check_number("epsilon", self.epsilon, above=0))
        _keep(
            self,
            tolerance=check_number("tolerance", self.tolerance, above=0),
            fits=check_count("fits", self.fits),
            trials=check_count("trials", self.trials, at_least=0),
        )

    def terms(self, model, fit):
        start, settings = fit(Unweighted()), {}
        weights, bounds = [1.0], [start.local_bound]
        # only chains are dear enough
        target, trials = self._target(fit, self.trials if model.chains else 0)
        if not np.isfinite([target, *bounds]).all():
            raise ValueError(
                "OneWeight needs finite bounds: some record is impossible at a draw, and no "
                "one weight above 0 bounds it"
            )
        nearest = None
        for draws, aim in trials + [(start.draws, target)] * self.fits:
            weight = next_weight(target, weights, bounds)
            terms_of_all = Terms(np.full(model.records, weight))
            # the fit that is taken is judged by its own chains
            tried = fit(terms_of_all, draws=draws, trial=True, **settings)
            if not np.isfinite(tried.local_bound):
                raise ValueError(
                    "OneWeight needs finite bounds: some record is impossible at a draw of a "
                    "trial; a larger target, or a narrower prior, may prevent that"
                )
            if model.chains:
                # from where the last one ended, a fifth of the warm-up is enough
                settings = {
                    "start": tried.ends,
                    "warmup": max(1, model.warmup // _PART),
                }
            weights.append(weight)
            bounds.append(
                tried.local_bound * target / aim if aim else tried.local_bound
            )
            if draws < start.draws:
                continue
            off = abs(tried.local_bound - target)
            if nearest is None or off < nearest:
                nearest, terms = off, tried.terms
            if nearest <= self.tolerance * target:
                break
        return terms

    def _target(self, fit, trials):
        """The wanted Δ, and for each trial its number of draws and the Δ wanted of these."""
        if self.like is None:
            return self.epsilon / 2.0, []
        maxima = fit(self.like).draw_maxima
        draws = maxima.shape[1]
        part = max(2, draws // _PART)
        parts = range(0, draws - part + 1, part)
        aim = np.mean([maxima[:, first : first + part].max() for first in parts])
        # a target of 0 has the weight 0, which needs no trial
        many = trials if maxima.max() > 0 and part < draws else 0
        return float(maxima.max()), [(part, float(aim))] * many


# a trial has this part of the draws, and of the warm-up
_PART = 5


def next_weight(target, weights, bounds):
    """The weight at which Δ meets the target, if it is a straight line in the weight."""
    if np.ptp(weights) > 0:
        slope, level = np.polyfit(weights, bounds, 1, w=1 / np.array(bounds))
        if slope > 0 and target > level:
            return min(1.0, (target - level) / slope)
    if bounds[-1] == 0:
        return 1.0
    return min(1.0, weights[-1] * target / bounds[-1])


@dataclass(frozen=True)
class ByCount(Rule):
    r"""Weights :math:`c\,(1 - \mathrm{risk}_i) + g`, cut to [0, 1], by the share of isolated values.

    The paper's *Countweighted*, Savitsky, Williams and Hu (2022), section 5, after Hu, Savitsky and
    Williams (2022). The risk is not a bound but the share of comparable records outside a radius
    around record i's value, :func:`ppm.risk.identification_risks`; these weights therefore do not
    aim at a small Δ. We assume that the risks, which are shares already, are not min-max scaled.
    Values and groups come from a model that says them, its ``values`` and ``known``.

    Parameters
    ----------
    radius : float
        Radius r, above 0: a share of the value, or in its unit.
    relative : bool, default True
        Whether the radius is a share.
    scale, shift : float
        The paper's c and g, as for :class:`ppm.ByRisk`.

    Examples
    --------
    The last count has no other within 30 per cent of it.

    >>> import ppm
    >>> model = ppm.GammaPoisson([10, 11, 12, 30])
    >>> ppm.fit(model, ppm.ByCount(0.3), draws=200, random_seed=1).weights
    array([0.66666667, 0.66666667, 0.66666667, 0.        ])
    """

    radius: float
    relative: bool = True
    scale: float = 1.0
    shift: float = 0.0

    def __post_init__(self):
        if not isinstance(self.relative, bool):
            raise ValueError("relative must be True or False")
        _keep(
            self,
            radius=check_number("radius", self.radius, above=0),
            scale=check_number("scale", self.scale, above=0),
            shift=check_number("shift", self.shift),
        )

    def terms(self, model, fit):
        if model.values is None:
            raise TypeError(
                f"ByCount needs a model that says its records' values; {type(model).__name__} "
                "has none: give it `values`, in the unit of the radius"
            )
        risks = identification_risks(
            model.values, radius=self.radius, relative=self.relative, groups=model.known
        )
        return Terms(np.clip(self.scale * (1.0 - risks) + self.shift, 0.0, 1.0))


@dataclass(frozen=True)
class Reweighted(Rule):
    r"""Weights :math:`\min(1, k\,\alpha_i\,\Delta / \Delta_i)`: every bound comes near the largest.

    Hu, Savitsky and Williams (2020, arXiv 2006.01230): records whose bound is below Δ gain weight,
    so that a release becomes more useful at about the same Δ. A third fit takes these weights.
    A record of weight 0, or with an infinite bound, gets weight 0 and is left out of Δ. Not in
    Savitsky, Williams and Hu (2022).

    Parameters
    ----------
    after : ppm.Rule, default ppm.ByRisk()
        The rule whose fit has the weights α and the bounds :math:`\Delta_i`.
    k : float, default 0.95
        The share of Δ to aim at, above 0 and at most 1.

    Notes
    -----
    The weights react to all records twice: α does already, and so do Δ and the draws behind every
    :math:`\Delta_i`. As the posterior moves, Δ of the third fit may be larger than that of the
    second. No ε for all databases follows.

    Examples
    --------
    >>> import ppm
    >>> fit = ppm.fit(ppm.GammaPoisson([3, 5, 4, 6, 20]), ppm.Reweighted(), draws=200, random_seed=1)
    >>> fit.behind[ppm.ByRisk()].weights.round(2), fit.weights.round(2)
    (array([0.82, 0.96, 0.9 , 1.  , 0.  ]), array([1.  , 1.  , 1.  , 0.95, 0.  ]))
    """

    after: Rule = field(default_factory=ByRisk)
    k: float = 0.95

    def __post_init__(self):
        if not isinstance(self.after, Rule):
            raise ValueError(
                f"after must be a ppm.Rule; got {type(self.after).__name__}"
            )
        _keep(self, k=check_number("k", self.k, above=0, at_most=1))

    def terms(self, model, fit):
        second = fit(self.after)
        if second.terms.limits is not None:
            raise ValueError("after must be a rule without limits")
        weights, bounds = second.weights, second.record_bounds
        taken = (weights > 0) & np.isfinite(bounds)
        raised = taken.astype(np.float64)
        # where a bound is 0, so is every term, and the record may have all its weight
        felt = taken & (bounds > 0)
        largest = bounds[felt].max(initial=0.0)
        raised[felt] = np.minimum(
            1.0, weights[felt] * (largest / bounds[felt]) * self.k
        )
        return Terms(raised)


@dataclass(frozen=True)
class Given(Rule):
    """Public weights by record, such as the base weights of a survey's design.

    They are never strict by themselves: nothing limits a record's term. Not in Savitsky, Williams
    and Hu (2022).

    Parameters
    ----------
    weights : array_like (records,)
        Public weights α, 0 or more; kept as a tuple.

    Examples
    --------
    >>> import ppm
    >>> fit = ppm.fit(ppm.GammaPoisson([3, 5, 20]), ppm.Given([1, 0.5, 0.5]), random_seed=1)
    >>> fit.weights, fit.strict
    (array([1. , 0.5, 0.5]), False)
    """

    weights: tuple

    def __post_init__(self):
        _keep(self, weights=_tuple_of_weights("weights", self.weights))

    def terms(self, model, fit):
        return Terms(_as_many("weights", self.weights, model.records))


@dataclass(frozen=True)
class Capped(Rule):
    r"""Own weights :math:`\alpha_i = \min(1, W / \text{range}_i)`: every term moves by at most W.

    The range of a record's log p is taken over the finite public set of a
    :class:`ppm.Candidates`, so that its weight depends on the record's own value alone: the paper's
    idea of weights by risk, without the other records. That is ours, not the paper's. One exact
    draw is W-differentially private, for every database.

    Parameters
    ----------
    width : float
        W, from 1e-6 to 1e9 nats.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> model = ppm.Candidates(ppm.GammaPoisson([3, 5, 20]), {"mu": np.arange(2.0, 9.0)})
    >>> fit = ppm.fit(model, ppm.Capped(1.0), draws=200, random_seed=1)
    >>> fit.weights.round(2), fit.strict, fit.epsilon(releases=3)
    (array([0.49, 0.63, 0.05]), True, 3.0)
    """

    width: float

    def __post_init__(self):
        _keep(self, width=check_number("width", self.width, **WIDTHS))

    def terms(self, model, fit):
        _check_candidates(model, "own weights")
        lowest, highest = model.ends()
        with np.errstate(over="ignore", invalid="ignore"):
            ranges = highest - lowest
            # a record that some candidate makes impossible has weight 0
            impossible = ~np.isfinite(ranges)
            weights = self.width / np.maximum(ranges, self.width)
            weights = np.where(impossible, 0.0, weights)
            # the rounded quotient can carry the product a last digit above W
            over = weighted(ranges, weights) > self.width
        weights = np.where(over, np.nextafter(weights, 0.0), weights)
        levels = np.where(impossible, 0.0, lowest)
        return Terms(weights, Limits(0.0, self.width), levels)


@dataclass(frozen=True)
class Limited(Rule):
    r"""Terms between two public limits: their width is the ε of one draw, for every database.

    It needs a model on a finite public set, :class:`ppm.Candidates`. After Hu, Williams and
    Savitsky (2022, arXiv:2205.05003), whose limits are -ε/2 and ε/2; a center and a public weight
    are ours. Not in Savitsky, Williams and Hu (2022).

    Parameters
    ----------
    limits : ppm.Limits
        The limits of :math:`\alpha_i (\log p(x_i \mid \theta) - b_i)`.
    center : dict, optional
        One **public** value θ₀ of all parameters, by name; with groups of candidates also a dict of
        such values by label. Levels :math:`b_i` are then :math:`\log p(x_i \mid \theta_0)`, so that
        limits around 0 hold how log p moves, not its level; without a center they are 0.
    weight : float or array_like (records,), default 1
        **Public** weight α of all records, or of each: 0 or more.

    Notes
    -----
    The term of every possible record lies in an interval of width W for every θ, and a record that
    is left out has none. One exact draw of θ is therefore W-differentially private, in both
    directions, for every database, and 2W where a record is replaced; m draws for m releases cost
    mW. Weights may exceed 1, and ε stays W. Far from θ₀ all terms may lie at the lower limit, n W/2
    nats below their sum at θ₀: where that is small beside -log of the prior's mass around θ₀, most
    draws stay far away.

    The price is usefulness, and nothing here shows it before the release: clipped terms carry
    little information, and with few records or a narrow interval the draws come close to the prior.
    An impossible record has the term ``low``, and one of weight 0 has none.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> model = ppm.Candidates(ppm.GammaPoisson([3, 5, 20]), {"mu": np.arange(2.0, 9.0)})
    >>> rule = ppm.Limited(ppm.Limits(-0.5, 0.5), center={"mu": 5.0}, weight=0.3)
    >>> ppm.fit(model, rule, draws=200, random_seed=1).epsilon(releases=3)
    3.0
    """

    limits: Limits
    center: tuple | None = None
    weight: float | tuple = 1.0

    def __post_init__(self):
        # a subclass may cut elsewhere, and ε is the width
        if type(self.limits) is not Limits:
            raise ValueError(
                f"limits must be a ppm.Limits; got {type(self.limits).__name__}"
            )
        if self.center is not None:
            _keep(self, center=frozen(self.center))
        if as_numbers("weight", self.weight).ndim:
            _keep(self, weight=_tuple_of_weights("weight", self.weight))
        else:
            _keep(self, weight=check_number("weight", self.weight, at_least=0))

    def terms(self, model, fit):
        _check_candidates(model, "limits")
        weights = self.weight
        if isinstance(weights, tuple):
            weights = _as_many("weight", weights, model.records)
        weights = np.full(model.records, weights)
        levels = None if self.center is None else model.levels(self.center)
        return Terms(weights, self.limits, levels)


def record_weights(bounds, *, scale=1.0, shift=0.0, truncate_at=None):
    r"""Weights :math:`\alpha_i = c\,(1 - \tilde f_i) + g`, cut to [0, 1].

    The risk :math:`\tilde f_i` is the record's bound :math:`f_i`, min-max scaled over the records
    (Savitsky, Williams and Hu, 2022, section 3, steps 1d-e; section 4 for the truncation). The
    smallest and the largest bound enter every weight, so each weight depends on the whole database
    and not on its own record alone.

    Parameters
    ----------
    bounds : array_like, shape (records,)
        Bounds :math:`f_i` under the *unweighted* posterior, in nats, from
        :func:`ppm.record_bounds`. A record with an infinite bound gets weight 0 and is left out of
        the scaling; where all bounds are equal, :math:`\tilde f_i = 0` for all.
    scale, shift : float
        The paper's c, above 0, and g: a c below 1 compresses the weights; a g below 0 lowers all of
        them, and sets more of them to 0.
    truncate_at : float, optional
        The paper's M, above 0, in nats: a record with :math:`\alpha_i f_i > M` gets weight 0.

    Returns
    -------
    numpy.ndarray (records,)

    Examples
    --------
    >>> import ppm
    >>> ppm.record_weights([1.0, 2.0, 5.0], scale=0.6, shift=-0.1)
    array([0.5 , 0.35, 0.  ])
    >>> ppm.record_weights([1.0, 2.0, 5.0], truncate_at=1.2)
    array([1., 0., 0.])
    """
    scale = check_number("scale", scale, above=0)
    shift = check_number("shift", shift)
    bounds = as_amounts(
        "bounds", bounds, "a bound for each record, as ppm.record_bounds gives it"
    )
    if bounds.ndim != 1:
        raise ValueError(f"bounds must have shape (records,); got {bounds.shape}")
    finite = bounds[np.isfinite(bounds)]
    if not finite.size:
        return np.zeros(bounds.size)
    # the risk of an infinite bound is infinite, and its weight 0
    weights = linear_weights(
        bounds, finite.min(), finite.max(), scale=scale, shift=shift
    )
    return truncated(weights, bounds, truncate_at)


def linear_weights(bounds, lowest, highest, *, scale=1.0, shift=0.0):
    """Linear weights of bounds of any shape, with given finite extremes, broadcast."""
    span = np.subtract(highest, lowest)
    # bounds that differ by rounding alone are equal
    differ = span > _ROUNDING * np.abs(highest)
    # overflow is clipped to 0 or 1
    with np.errstate(over="ignore", invalid="ignore"):
        risk = np.subtract(bounds, lowest) / np.where(span > 0, span, 1.0)
        risk = np.where(differ | np.isinf(bounds), risk, 0.0)
        return np.clip(scale * (1.0 - risk) + shift, 0.0, 1.0)


def truncated(weights, bounds, truncate_at):
    """Weights with 0 where the weighted bound is above M, if there is an M."""
    if truncate_at is None:
        return weights
    truncate_at = check_number("truncate_at", truncate_at, above=0)
    return np.where(weighted(bounds, weights) > truncate_at, 0.0, weights)


def frozen(theta):
    """Values by name, or by label and name, as nested tuples, which compare and hash."""
    if is_named(theta) or is_grouped(theta):
        # of another rule
        theta = dict(theta)
    if not isinstance(theta, Mapping) or not theta:
        raise ValueError(
            "center must be a dict with one value of every parameter; got "
            f"{type(theta).__name__}"
        )
    by_label = [
        isinstance(value, Mapping) or is_named(value) for value in theta.values()
    ]
    if any(by_label) != all(by_label):
        raise ValueError(
            "center must be a dict with one value of every parameter, or such a dict for "
            "every group; got some of each"
        )
    return tuple(
        (name, frozen(value) if all(by_label) else _frozen_value(name, value))
        for name, value in theta.items()
    )


def _frozen_value(name, value):
    value = as_numbers(f"center: {name}", value)
    if not np.isfinite(value).all():
        raise ValueError(f"center: {name} must be finite")
    return _nested(value.tolist())


def _nested(value):
    return tuple(map(_nested, value)) if isinstance(value, list) else value


def _tuple_of_weights(name, weights):
    weights = as_weights(name, weights)
    if weights.ndim != 1:
        raise ValueError(f"{name} must have shape (records,); got {weights.shape}")
    return tuple(check_weights(weights, weights.size).tolist())


def _as_many(name, weights, records):
    if len(weights) != records:
        raise ValueError(
            f"{name} must have one weight for each of the {records} records; got {len(weights)}"
        )
    return np.array(weights)


def _check_candidates(model, what):
    """Refuse a model without a finite public set, which :func:`ppm.fit` would refuse anyway."""
    if not isinstance(model, Candidates):
        raise TypeError(
            f"{type(model).__name__} takes no {what}: put it on a finite public set of "
            "parameters, ppm.Candidates(model, candidates)"
        )


def _keep(rule, **values):
    """Write checked values; 0.0 for -0.0, so that equal rules are written alike."""
    for name, value in values.items():
        value = value + 0.0 if isinstance(value, float) else value
        object.__setattr__(rule, name, value)
