"""Censoring: a record's term of the log-likelihood between two public limits, for a strict ε."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ppm.brief import Brief
from ppm.checks import as_numbers, check_draws, check_flag, check_number
from ppm.scan import blocks_of

__all__ = ["Censoring", "censoring_interval", "censoring_limits"]

# nats: terms between closer limits, or farther from 0, are mostly rounding
_NARROWEST, _FAR = 1e-6, 1e9


@dataclass(frozen=True, repr=False)
class Censoring(Brief):
    r"""Two public limits between which every record's term of the log-likelihood is kept.

    With weights :math:`\alpha_i` the term of record i is :math:`\ell_i(\theta) = h(\alpha_i \log
    p(x_i \mid \theta))`, and θ is drawn from prior · :math:`\exp \sum_i \ell_i(\theta)`. Hard
    censoring cuts, :math:`h(z) = \min(\max(z, \text{low}), \text{high})`. Smooth censoring,
    :math:`h(z) = c + \frac{W}{2} \tanh \frac{z - c}{W / 2}` with the middle c and the width W of
    the interval, has a slope wherever log p has one.

    Parameters
    ----------
    low, high : float
        Ends of the interval, increasing, in nats, at least 1e-6 apart and at most 1e9 from 0. They
        must be public: fixed, or placed by :func:`ppm.censoring.censoring_interval`, without
        looking at the confidential records.
    smooth : bool, default True
        Smooth censoring, or hard.
    center : dict, xarray.Dataset or xarray.DataTree, optional
        One **public** value θ₀ of all parameters, by name, such as one draw of a fit to a published
        table. Terms are then :math:`h(\alpha_i (\log p(x_i \mid \theta) - \log p(x_i \mid
        \theta_0)))`. For groups of candidates, a dict of such values by label is also taken.

    Notes
    -----
    The term of every possible record lies in an interval of width W for every θ, and a record that
    is left out has none. One exact draw of θ is therefore W-differentially private, in both
    directions, for every database, and 2W where a record is replaced; m draws for m releases cost
    mW. This needs a proper prior and a model that were fixed without looking at the records, and
    weights each of which is a constant or a function of its own record and of public values. Where
    weights react to other records, leaving one out changes the terms of the others too, the loss
    adds all of these changes up, and it can exceed W (chapter on censoring).

    The level :math:`\log p(x_i \mid \theta_0)` is a number that the record and public values
    determine, so that all this holds with a center too. Limits around 0 then hold how log p moves
    with θ, not its level. Far from θ₀ all terms may lie at the lower limit, n (h(0) - low) nats
    below their sum at θ₀: where that is small beside -log of the prior's mass around θ₀, most draws
    stay far away. The mechanism warns below 10 nats. With counts around 5, weights of 0.3, limits
    of ±0.5 and a Gamma(0.001, 0.001) prior, a typical table of 8 records (4 nats) has 96 % of its
    draws more than a factor of 2 off, and one of 40 (20 nats) less than 0.1 %. With ``groups`` of
    candidates n is the number of the group's own records, and the warning, which counts all
    records, does not see that.

    Weights such as the base weights of a public design may exceed 1, and ε stays W; *around* the
    term, :math:`\alpha_i h(\log p)`, they would cost W times the largest. Weights calibrated to
    totals, adjusted for nonresponse or scaled by the sample's own mean depend on other records
    unless all that goes into them is public.

    The price is usefulness, and nothing here shows it before the release: clipped terms carry
    little information, and with few records or a narrow interval the draws come close to the prior.
    A nearly flat prior, the default of :class:`ppm.GammaPoisson`, has most of its mass far from all
    data. An impossible record has the term ``low``, and one of weight 0 has none.

    Hu, Williams and Savitsky (2022, arXiv:2205.05003) have the limits -ε/2 and ε/2, and call this ε
    strict for reacting weights too. Here the interval may lie anywhere: only its width counts for
    ε, and its place decides how much is lost.

    Examples
    --------
    >>> import ppm
    >>> censor = ppm.Censoring(-3, -1, smooth=False)
    >>> censor.term([-0.5, -2.0, -80.0]).tolist()
    [-1.0, -2.0, -3.0]
    """

    low: float
    high: float
    smooth: bool = True
    center: dict | None = field(default=None, hash=False)

    _public = ("low", "high", "smooth", "center")

    def __post_init__(self):
        # high must fit above it
        low = check_number("low", self.low, at_least=-_FAR, at_most=_FAR - 1.0)
        high = check_number("high", self.high, above=low, at_most=_FAR)
        # a frozen dataclass takes no ordinary assignment
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        check_flag("smooth", self.smooth)
        if self.center is not None:
            object.__setattr__(self, "center", _checked_center(self.center))
        least = max(_NARROWEST, max(abs(low), abs(high)) / _FAR)
        if self.width < least:
            raise ValueError(
                f"high must be at least {least:g} above low; got {self.width:.3g}"
            )

    @property
    def width(self):
        """W = high - low in nats: the ε of one exact draw."""
        return self.high - self.low

    def term(self, weighted_log_p):
        """Terms h(z), in [low, high], of values z = α log p in nats; NaN counts as -inf."""
        return limited(weighted_log_p, self.low, self.high, self.smooth)

    def slope(self, weighted_log_p):
        """Slopes h'(z), in [0, 1], at values z = α log p; 0 at and beyond hard limits."""
        z = as_numbers("weighted_log_p", weighted_log_p)
        if not self.smooth:
            return np.where((z > self.low) & (z < self.high), 1.0, 0.0)
        half = self.width / 2.0
        with np.errstate(over="ignore"):
            return np.where(
                np.isnan(z), 0.0, 1.0 - np.tanh((z - self.low - half) / half) ** 2
            )

    def levels(self, synthesizer):
        """Log-likelihoods of its records (records,) at the center; 0 without, or if infinite."""
        if self.center is None:
            return np.zeros(synthesizer.records)
        try:
            log_lik = synthesizer.log_likelihood_at(_one_draw(self.center))
            found = log_lik.transpose("chain", "draw", ...).values[0, 0]
        except (
            AttributeError,
            IndexError,
            KeyError,
            NotImplementedError,
            TypeError,
            ValueError,
        ):
            raise ValueError(
                "center must hold one value of every parameter of a model that has "
                "log_likelihood_at, or such a dict for every group"
            ) from None
        return np.where(np.isfinite(found), found, 0.0)

    def share_clipped(self, weighted_log_p):
        """Share of values α log p, less their level if there is a center, outside the limits.

        As confidential as they are; a value at a limit is outside.
        """
        values = as_numbers("weighted_log_p", weighted_log_p)
        if values.size == 0:
            raise ValueError(
                f"weighted_log_p must hold numbers; got shape {values.shape}"
            )
        return 1.0 - float(np.mean((values > self.low) & (values < self.high)))


def limited(weighted_log_p, low, high, smooth, xp=np):
    """:meth:`Censoring.term`; with ``xp`` pytensor.tensor of tensors, between tensors."""
    # a record must not restrict the parameters' support where its density is NaN
    z = xp.where(xp.isnan(weighted_log_p), -np.inf, weighted_log_p)
    if not smooth:
        return xp.clip(z, low, high)
    half = (high - low) / 2.0
    middle = low + half
    # rounding must not carry a term over a limit; where z overflows the term is at a limit
    with np.errstate(over="ignore"):
        return xp.clip(middle + half * xp.tanh((z - middle) / half), low, high)


def _checked_center(center):
    """Values of the parameters by name, or by group and name, as lists."""
    if isinstance(center, dict) and isinstance(
        next(iter(center.values()), None), Mapping
    ):
        return {label: _checked_center(one) for label, one in center.items()}
    numbers = isinstance(center, Mapping) and not {"chain", "draw"} & {
        *getattr(center, "dims", ())
    }
    draws = _one_draw(center) if numbers else check_draws("center", center)
    if draws.sizes["draw"] > 1:
        raise ValueError(
            "center must hold one value of every parameter, not several draws"
        )
    return {name: one.values[0, 0].tolist() for name, one in draws.items()}


def _one_draw(center):
    """Numbers by name as a posterior, or such posteriors by group."""
    if isinstance(center, dict) and isinstance(next(iter(center.values()), None), dict):
        return {label: _one_draw(one) for label, one in center.items()}
    return check_draws("center", {name: [value] for name, value in center.items()})


def censoring_interval(width, reference, *, smooth=True):
    r"""Place an interval of a given width where a *public* reference loses least.

    With the change :math:`d_{is} = h(z_{is}) - z_{is}` that censoring makes to the reference's
    log-likelihood of record i at draw s, the loss is the average over records and draws of
    :math:`|d_{is} - \bar d_i|`, where :math:`\bar d_i` is the record's mean over the draws: a
    change that is the same for all θ loses nothing.

    Parameters
    ----------
    width : float
        Width W of the interval, from 1e-6 to 1e9 nats: ε of one release.
    reference : array_like, shape (draws, records), or xarray.DataArray
        Finite log-likelihoods in nats of *public* records at two or more draws of θ from their own
        fit: of last year's file, of a simulated stand-in, or of records drawn from the prior
        predictive distribution. **It must not come from the confidential table**: an interval
        that follows the confidential records costs more than W, and nothing shows how much. If the
        release is to have weights, multiply by the weights of the reference's records.
    smooth : bool, default True
        As for :class:`Censoring`.

    Notes
    -----
    Absolute rather than squared changes keep a few records far below any interval from deciding
    where it lies. The best of a grid of places is refined; if the loss has several minima, the grid
    may miss the lowest one.

    Examples
    --------
    >>> import ppm
    >>> last_year = ppm.GammaPoisson([4, 5, 5, 6, 7, 9])    # a public table
    >>> reference = last_year.log_likelihood(last_year.fit(draws=500, random_seed=1))
    >>> limits = ppm.censoring.censoring_interval(1.0, reference)
    >>> round(limits.width, 6), -5 < limits.low < limits.high < 0
    (1.0, True)
    """
    half = check_number("width", width, at_least=_NARROWEST, at_most=_FAR) / 2.0
    values = _public_reference(reference)

    def loss(middle):
        change = Censoring(middle - half, middle + half, smooth).term(values)
        change -= values
        change -= change.mean(axis=0)
        return float(np.abs(change, out=change).mean())

    # the median comes first, so that it wins ties
    levels = np.linspace(0.0, 1.0, 63)
    middles = np.r_[np.median(values), np.quantile(values, levels), values.max() - half]
    best = min(middles, key=loss)
    around = np.unique(np.r_[middles, values.min() - 2 * half, values.max() + 2 * half])
    place = int(np.searchsorted(around, best))
    left, right = around[place - 1], around[place + 1]
    for _ in range(5):
        best = min(best, *np.linspace(left, right, 9), key=loss)
        step = (right - left) / 4.0
        left, right = max(left, best - step), min(right, best + step)
    return Censoring(best - half, best + half, smooth)


def censoring_limits(
    width, reference, *, share_clipped=0.02, smooth=True, center=None, synthesizer=None
):
    r"""Limits of a given width, and one weight for all records to use inside them.

    Limits that clip many terms leave the tails out of the fit, a bias that more records do not
    remove. A weight α below 1 shrinks the terms before they are clipped. The cost is precision: the
    fit behaves about as if it had only a share α of the records. The weight is a public constant,
    so ε stays the width.

    Parameters
    ----------
    width, reference, smooth
        As for :func:`ppm.censoring.censoring_interval`, the reference unweighted. **It must not
        come from the confidential table.**
    share_clipped : float, default 0.02
        Share of the reference's weighted values that an interval may leave out, from 0 to 0.5. The
        interval has the width of hard limits, and half that of smooth ones, which bend a term well
        before it reaches them. A release clips a little more: its draws scatter more, and the
        limits that change least are not the shortest interval.
    center, synthesizer : optional
        A center for the limits, as in :class:`Censoring`, and the model that holds the reference's
        *public* records, which are needed for it.

    Returns
    -------
    limits : Censoring
        The limits that change the weighted reference least.
    weight : float
        The largest weight, at most 1, at which such an interval holds all other values.

    Examples
    --------
    >>> import ppm
    >>> last_year = ppm.GammaPoisson([4, 5, 5, 6, 7, 9])    # a public table
    >>> reference = last_year.log_likelihood(last_year.fit(draws=500, random_seed=1))
    >>> limits, weight = ppm.censoring.censoring_limits(0.5, reference, smooth=False)
    >>> round(weight, 2), round(limits.low, 2), round(limits.high, 2)
    (0.28, -0.97, -0.47)
    """
    width = check_number("width", width, above=0)
    share_clipped = check_number(
        "share_clipped", share_clipped, at_least=0, at_most=0.5
    )
    values = _public_reference(reference)
    if center is not None:
        if synthesizer is None:
            raise ValueError(
                "synthesizer must be given with center: the model of the reference"
            )
        center = Censoring(-1.0, 1.0, center=center)
        values, center = values - center.levels(synthesizer), center.center
    ordered = np.sort(values, axis=None)
    # rounding must not include one more value
    inside = math.ceil((1.0 - share_clipped) * ordered.size - 1e-9)
    shortest = float(
        (ordered[inside - 1 :] - ordered[: ordered.size - inside + 1]).min()
    )
    room = width / 2.0 if check_flag("smooth", smooth) else width
    weight = 1.0 if shortest <= room else room / shortest
    limits = censoring_interval(width, weight * values, smooth=smooth)
    return replace(limits, center=center), weight


def _public_reference(reference):
    """Log-likelihoods of a reference, checked, shape (draws, records)."""
    sizes, blocks = blocks_of(reference, "reference")
    values = np.empty(list(sizes.values()))
    for block in blocks:
        values[*block.draws, block.records] = block.values
    values = values.reshape(-1, values.shape[-1])
    if len(values) < 2:
        raise ValueError(
            "reference must have two draws or more: with one, no change depends on "
            "the parameters"
        )
    if not np.isfinite(values).all():
        raise ValueError(
            "reference must hold finite numbers: leave out records that are "
            "impossible at a draw"
        )
    if np.array_equal(values, np.rint(values)):
        raise ValueError(
            "reference must hold log-likelihoods, as model.log_likelihood(fit) gives "
            "them; got whole numbers, which may be records"
        )
    return values
