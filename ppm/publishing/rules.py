"""The ledger's rules: how a published number or statement is compared with computed values."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# a comparison counts when it holds, or fails, by more than this many standard errors
SURE = 2.0


class Value(NamedTuple):
    """A computed value: numbers, their standard errors (NaN if unknown), and trials of a share.

    `size` and `counted` say what the errors shrink with, such as 400 databases.
    """

    value: np.ndarray
    error: np.ndarray
    of: float = math.nan
    size: float = math.nan
    counted: str = ""


class _Outcome(NamedTuple):
    """What a rule found. `factor`: how many times the sample would decide an open comparison.

    `undefined`: the values do not fit the rule, so that there is nothing to judge.
    """

    holds: bool
    reason: str
    open: bool = False
    ours: tuple = ()
    factor: float = math.nan
    undefined: bool = False


class _Rule(NamedTuple):
    """A rule: its function, how many values it takes, and which keys it must or may have."""

    check: Callable
    counts: tuple
    required: tuple = ()
    optional: tuple = ()


class _Margins(NamedTuple):
    """By how much each of several comparisons holds, judged together."""

    holds: bool
    open: bool
    factor: float
    # the comparison that the verdict hangs on
    worst: int

    def in_words(self, sure, unsure, failed):
        """The words that fit: for what surely holds, for what is open, for what surely fails."""
        return sure if self.holds else unsure if self.open else failed


def _weigh(margin, error, *, strict=False):
    """Judge margins, above 0 where a comparison holds, by their standard errors.

    All must hold by `SURE` standard errors; one that fails by as many settles it; anything else is
    open. A margin of exactly 0 without an error fails if the comparison is strict.
    """
    margin, error = (np.ravel(x) for x in np.broadcast_arrays(margin, error))
    low, high = margin - SURE * error, margin + SURE * error
    sure = low > 0 if strict else low >= 0
    failed = high <= 0 if strict else high < 0
    if failed.any():
        return _Margins(False, False, math.nan, int(np.argmin(high)))
    if sure.all():
        return _Margins(True, False, math.nan, int(np.argmin(low)))
    undecided = np.flatnonzero(~sure)
    with np.errstate(divide="ignore"):
        factors = (SURE * error[undecided] / np.abs(margin[undecided])) ** 2
    # one comparison that is found to fail is enough; otherwise all have to be found to hold
    wrong = np.flatnonzero(margin[undecided] < 0)
    place = wrong[np.argmin(factors[wrong])] if wrong.size else np.argmax(factors)
    return _Margins(False, True, float(factors[place]), int(undecided[place]))


def _place(weighed, count, what="number"):
    return f" ({what} {weighed.worst + 1} of {count})" if count > 1 else ""


def _tolerance(claim, published):
    if "relative" in claim.options:
        return claim.options["relative"] * np.abs(published)
    return np.full(published.shape, float(claim.options["tolerance"]))


def _near(claim, values):
    """Each number lies within the tolerance of the published one."""
    ours, error = values[0].value, values[0].error
    published = np.atleast_1d(np.asarray(claim.published, dtype=np.float64))
    if ours.shape != published.shape:
        return _Outcome(False, f"{ours.size} numbers here, {published.size} in the paper")
    tolerance = _tolerance(claim, published)
    off = np.abs(ours - published)
    weighed = _weigh(tolerance - off, error)
    at = weighed.worst
    word = weighed.in_words("within", "not surely within", "more than")
    told = f"differs by {with_error(off[at], error[at])}{_place(weighed, off.size)}, "
    told += f"{word} the tolerance {shown(tolerance[at])}"
    return _Outcome(weighed.holds, told, weighed.open, factor=weighed.factor)


def is_setting(claim, values):
    """Whether the run was made with the paper's setting."""
    published = np.atleast_1d(np.asarray(claim.published, dtype=np.float64))
    return np.array_equal(values[0].value, published)


def _compared(claim, values, sign):
    first, first_error = values[0].value, values[0].error
    factor = float(claim.options.get("factor", 1.0))
    if len(values) > 1:
        second, second_error = values[1].value, values[1].error
    else:
        second, second_error = np.array([float(claim.options["than"])]), np.zeros(1)
    try:
        difference = sign * (first - factor * second)
    except ValueError:
        return _Outcome(False, f"{first.size} numbers against {second.size}", undefined=True)
    error = np.hypot(first_error, factor * second_error)
    return _sure(difference, error, "above" if sign > 0 else "below")


def _sure(difference, error, word):
    """Whether every difference is above 0 by more than its Monte Carlo error, in words."""
    difference, error = np.broadcast_arrays(difference, error)
    weighed = _weigh(difference, error, strict=True)
    size, spread = difference.flat[weighed.worst], error.flat[weighed.worst]
    place = _place(weighed, difference.size, "comparison")
    told = weighed.in_words(
        f"{word} by {with_error(size, spread)}",
        f"not surely {word}: the difference is {with_error(size, spread)}",
        f"not {word}: off by {with_error(-size, spread)}",
    )
    return _Outcome(weighed.holds, told + place, weighed.open, factor=weighed.factor)


def _greater(claim, values):
    """The first is above the second (times a factor), or above a number."""
    return _compared(claim, values, 1.0)


def _less(claim, values):
    """The first is below the second (times a factor), or below a number."""
    return _compared(claim, values, -1.0)


def _between(claim, values):
    """All numbers lie between two limits."""
    ours, error = values[0].value, values[0].error
    low, high = claim.options.get("low", -math.inf), claim.options.get("high", math.inf)
    weighed = _weigh(np.minimum(ours - low, high - ours), error)
    limits = " and ".join(
        text
        for limit, text in (
            (low, f"at least {shown(low)}"),
            (high, f"at most {shown(high)}"),
        )
        if math.isfinite(limit)
    )
    word = weighed.in_words("", "not surely ", "not ")
    at = weighed.worst
    told = f"{word}{limits}: {with_error(ours[at], error[at])}{_place(weighed, ours.size)}"
    return _Outcome(weighed.holds, told, weighed.open, factor=weighed.factor)


def _sequence(claim, values):
    ours = np.concatenate([value.value for value in values])
    error = np.concatenate([value.error for value in values])
    if "towards" in claim.options:
        ours = np.abs(ours - float(claim.options["towards"]))
    return ours, error


def _monotone(claim, values, sign):
    ours, error = _sequence(claim, values)
    verb = "rise" if sign > 0 else "fall"
    if ours.size < 2:
        return _Outcome(False, "a single value has no direction", undefined=True)
    steps = np.diff(ours)
    slack = np.hypot(error[1:], error[:-1])
    weighed = _weigh(sign * steps, slack, strict=True)
    change = with_error(steps[weighed.worst], slack[weighed.worst])
    step = f"step {weighed.worst + 1} of {steps.size}"
    whole = with_error(abs(ours[-1] - ours[0]), math.hypot(error[0], error[-1]))
    told = weighed.in_words(
        f"{verb}s by {whole} from first to last, and surely at every step",
        f"{step} does not surely {verb}: it is {change}",
        f"{step} does not {verb}: it is {change}",
    )
    return _Outcome(weighed.holds, told, weighed.open, factor=weighed.factor)


def _increasing(claim, values):
    """The sequence, or its distance from a limit, rises at every step."""
    return _monotone(claim, values, 1.0)


def _decreasing(claim, values):
    """The sequence, or its distance from a limit, falls at every step."""
    return _monotone(claim, values, -1.0)


def _reduction(claim, values):
    """The last lies below the first by the published share."""
    ours, error = _sequence(claim, values)
    share = 1.0 - ours[-1] / ours[0]
    spread = (1.0 - share) * math.hypot(error[-1] / ours[-1], error[0] / ours[0])
    one = Value(np.array([share]), np.array([spread]))
    outcome = _near(claim, [one])
    return outcome._replace(ours=(with_error(share, spread),))


def power_law(sizes, values, errors):
    """Exponent of a power law, with an interval of two standard errors on either side.

    The exponent is the slope of the least-squares line through the logarithms, every size counting
    alike. Its interval tells the Monte Carlo error alone: where the points follow no power law, it
    is the average slope, and says nothing about the bend.

    Parameters
    ----------
    sizes, values, errors : array_like, shape (points,)
        At least three points; sizes and values above 0, standard errors of the values.

    Returns
    -------
    tuple of float
        Exponent, and the ends of its interval.

    Raises
    ------
    ValueError
        If there are too few points or a size or a value is not above 0.
    """
    sizes, values, errors = (np.asarray(x, dtype=np.float64) for x in (sizes, values, errors))
    if sizes.size < 3 or not all((x > 0).all() for x in (sizes, values)):
        raise ValueError("a power law needs three points or more, and everything above 0")
    x = np.log(sizes) - np.log(sizes).mean()
    pull = x / (x @ x)
    slope = float(pull @ np.log(values))
    half = SURE * float(np.linalg.norm(pull * errors / values))
    return slope, slope - half, slope + half


def share_power_law(sizes, counts, trials):
    """Exponent of a power law that a probability follows, with an interval.

    The counts are binomial with probability min(1, exp(a) n^b); the interval is the profile
    likelihood's that goes with two standard errors, so that counts of 0 are no obstacle.

    Parameters
    ----------
    sizes, counts : array_like, shape (points,)
        Sizes n, and how often something happened.
    trials : float
        In so many cases each.

    Returns
    -------
    tuple of float
        Exponent, and the ends of its interval, which is cut at -10 and 10.

    Raises
    ------
    ValueError
        If there are fewer than two points, or it happened never or always.
    """
    from scipy.optimize import brentq, minimize_scalar

    sizes, counts = (np.asarray(x, dtype=np.float64) for x in (sizes, counts))
    below = counts < trials
    if sizes.size < 2 or not (sizes > 0).all() or not counts.sum() > 0 or not below.any():
        raise ValueError(
            "a rate of shares needs two sizes or more, and something that happened, not always"
        )
    x = np.log(sizes / np.exp(np.log(sizes).mean()))

    def profile(b):
        # the probability is 1 only where nothing speaks against it
        top = -np.max(b * x[below]) - 1e-9

        def misfit(a):
            log_p = np.minimum(a + b * x, -1e-9)
            return -float(counts @ log_p + (trials - counts) @ np.log(-np.expm1(log_p)))

        return minimize_scalar(misfit, bounds=(top - 40.0, top), method="bounded").fun

    best = minimize_scalar(profile, bounds=(-10.0, 10.0), method="bounded")
    limit = best.fun + 0.5 * SURE**2
    ends = []
    for end in (-10.0, 10.0):
        inside = profile(end) <= limit
        ends.append(end if inside else brentq(lambda b: profile(b) - limit, *sorted((best.x, end))))
    return float(best.x), float(ends[0]), float(ends[1])


def _rate(claim, values):
    """The exponent of a power law lies near the published one, or is at most as large."""
    sizes, found = values[0].value, values[1].value
    try:
        slope, low, high = power_law(sizes, found, values[1].error)
    except ValueError as error:
        return _Outcome(False, str(error), undefined=True)
    steps = np.diff(np.log(found)) / np.diff(np.log(sizes))
    return _judge_rate(claim, slope, low, high, f"step by step {shown(np.round(steps, 2))}")


def _share_rate(claim, values):
    """The same for a share, from counts."""
    sizes, share = values[0].value, values[1]
    try:
        slope, low, high = share_power_law(sizes, np.rint(share.value * share.of), share.of)
    except ValueError as error:
        return _Outcome(False, str(error), undefined=True)
    return _judge_rate(claim, slope, low, high, f"the shares are {shown(share.value)}")


def _judge_rate(claim, slope, low, high, details):
    wanted, tolerance = float(claim.published), claim.options["tolerance"]
    at_most = claim.options.get("at_most", False)
    above, below = wanted + tolerance - slope, slope - (wanted - tolerance)
    # towards a limit the interval's nearer half counts
    margins, halves = [above], [high - slope if above >= 0 else slope - low]
    if not at_most:
        margins.append(below)
        halves.append(slope - low if below >= 0 else high - slope)
    weighed = _weigh(margins, np.array(halves) / SURE)
    word = weighed.in_words("is", "is not surely", "is not")
    limits = f"at most {shown(wanted + tolerance)}"
    if not at_most:
        limits = f"between {shown(wanted - tolerance)} and {shown(wanted + tolerance)}"
    ours = (f"exponent {shown(slope)}", f"({shown(low)} to {shown(high)})")
    told = f"the exponent {word} {limits}; {details}"
    return _Outcome(weighed.holds, told, weighed.open, ours, weighed.factor)


def _faster(claim, values):
    """The exponent of the first power law lies below that of the second."""
    try:
        one, other = (power_law(values[0].value, v.value, v.error) for v in values[1:])
    except ValueError as error:
        return _Outcome(False, str(error))
    spread = math.hypot(one[2] - one[0], other[2] - other[0]) / SURE
    outcome = _sure(np.array([other[0] - one[0]]), np.array([spread]), "below")
    ours = tuple(
        f"{word} {shown(slope)} ({shown(low)} to {shown(high)})"
        for word, (slope, low, high) in (("exponent", one), ("against", other))
    )
    return outcome._replace(ours=ours)


RULES = {
    "near": _Rule(_near, (1,), ("published",), ("tolerance", "relative")),
    "setting": _Rule(is_setting, (1,), ("published",)),
    "greater": _Rule(_greater, (1, 2), (), ("than", "factor")),
    "less": _Rule(_less, (1, 2), (), ("than", "factor")),
    "between": _Rule(_between, (1,), (), ("low", "high")),
    "increasing": _Rule(_increasing, None, (), ("towards",)),
    "decreasing": _Rule(_decreasing, None, (), ("towards",)),
    "reduction": _Rule(_reduction, None, ("published", "tolerance")),
    "rate": _Rule(_rate, (2,), ("published", "tolerance"), ("at_most",)),
    "share_rate": _Rule(_share_rate, (2,), ("published", "tolerance"), ("at_most",)),
    "faster": _Rule(_faster, (3,)),
    # all the rows named are reproduced
    "rows": _Rule(None, (0,), ("rows",)),
    # a statement about something that is not run here
    "cited": _Rule(None, (0,)),
}


# ---- numbers as the page shows them -----------------------------------------------------------


def shown(value):
    """Numbers as the page shows them: four digits that count, and a dash for what is unknown."""
    numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
    return ", ".join(_number(float(number)) for number in numbers)


def _number(number, digits=None):
    if math.isnan(number):
        return "–"
    exact = digits is None and number == round(number, 3)
    digits = digits or (4 if abs(number) >= 1 else 3)
    if exact or number == 0:
        # published, or without an error
        text = f"{number:,.12g}"
    elif abs(number) < 1e-4:
        text = f"{number:.1e}"
    else:
        text = f"{number:,.{max(0, digits - 1 - math.floor(math.log10(abs(number))))}f}"
    return text.replace("-", "−")


def with_error(size, error):
    if math.isnan(error):
        return f"{shown(size)} ± unknown"
    # two digits of an error count
    return f"{shown(size)} ± {_number(float(error), 2)}" if error > 0 else shown(size)
