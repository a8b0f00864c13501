"""The ledger: what the paper reports, what came out here, and a verdict computed from the two."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ppm._imports import needed_for

VERDICTS = (
    "reproduced", "not reproduced", "same setting", "by construction", "not comparable",
    "not computed",
)
# where the values of a chapter come from: drawn by a study; a simulated table; survey files
DATA_KINDS = ("drawn", "simulated", "diary", "interview", "other")
# a comparison counts when it holds, or fails, by more than this many standard errors
SURE = 2.0
# no run is as large as this
_BEYOND = 1e9


class LedgerError(ValueError):
    """The ledger's file is not what it has to be; the message is one line."""


@dataclass(frozen=True)
class Claim:
    """One number or statement of the paper, and how it is checked.

    Attributes
    ----------
    id : str
        Its name, unique in the ledger.
    section, where : str
        Section of the paper, and the figure, table or text in it.
    says : str
        What it says, in our words.
    chapter : str
        The notebook that computes its values.
    rule : str
        One of `RULES`.
    values : tuple of str
        Names of the computed values that the rule compares.
    published : float, list of float or None
        The paper's number or numbers.
    options : dict
        What the rule needs besides, such as ``tolerance``.
    needs : dict of str to float or list
        Computed settings that must be the paper's for the comparison to make sense.
    not_comparable : dict of str to str
        Kind of data -> why the claim cannot be compared on it.
    reading : str
        How we read a word such as "slightly" that has no number.
    remark : str
        What the paper leaves unstated.
    by_construction : str
        Why the claim cannot fail here, whatever the paper's mechanism does; empty for a claim
        that can.
    """

    id: str
    section: str
    where: str
    says: str
    chapter: str
    rule: str
    values: tuple = ()
    published: object = None
    options: dict = field(default_factory=dict)
    needs: dict = field(default_factory=dict)
    not_comparable: dict = field(default_factory=dict)
    reading: str = ""
    remark: str = ""
    by_construction: str = ""


@dataclass(frozen=True)
class Row:
    """A claim with its verdict.

    Attributes
    ----------
    claim : Claim
        What was judged.
    verdict : str
        One of `VERDICTS`.
    reason : str
        The comparison in words, or why there is none.
    ours : tuple of str
        The computed values with their standard errors, as shown.
    open : bool
        For ``not reproduced``: whether only the Monte Carlo error stands in the way, so that
        a longer run could still decide either way.
    beside : tuple of str
        What the chapter computed by itself, as shown, where `ours` comes from a larger study.
    alone : str
        The verdict that the chapter's own values would have had, where it is another one.
    """

    claim: Claim
    verdict: str
    reason: str
    ours: tuple = ()
    open: bool = False
    beside: tuple = ()
    alone: str = ""

    @property
    def spoken(self):
        """The verdict as the page says it."""
        return f"{self.verdict} (open)" if self.open else self.verdict


class _Value(NamedTuple):
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


# ------------------------------------------------------------------------------------ the rules


class _Margins(NamedTuple):
    """By how much each of several comparisons holds, judged together."""

    holds: bool
    open: bool
    factor: float
    # the comparison that the verdict hangs on
    worst: int


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
    word = "within" if weighed.holds else "not surely within" if weighed.open else "more than"
    told = f"differs by {_with_error(off[at], error[at])}{_place(weighed, off.size)}, "
    told += f"{word} the tolerance {shown(tolerance[at])}"
    return _Outcome(weighed.holds, told, weighed.open, factor=weighed.factor)


def _setting(claim, values):
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
    if weighed.holds:
        told = f"{word} by {_with_error(size, spread)}{place}"
    elif weighed.open:
        told = f"not surely {word}: the difference is {_with_error(size, spread)}{place}"
    else:
        told = f"not {word}: off by {_with_error(-size, spread)}{place}"
    return _Outcome(weighed.holds, told, weighed.open, factor=weighed.factor)


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
    word = "" if weighed.holds else "not surely " if weighed.open else "not "
    at = weighed.worst
    told = f"{word}{limits}: {_with_error(ours[at], error[at])}{_place(weighed, ours.size)}"
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
    change = _with_error(steps[weighed.worst], slack[weighed.worst])
    step = f"step {weighed.worst + 1} of {steps.size}"
    if weighed.holds:
        whole = _with_error(abs(ours[-1] - ours[0]), math.hypot(error[0], error[-1]))
        told = f"{verb}s by {whole} from first to last, and surely at every step"
    elif weighed.open:
        told = f"{step} does not surely {verb}: it is {change}"
    else:
        told = f"{step} does not {verb}: it is {change}"
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
    one = _Value(np.array([share]), np.array([spread]))
    outcome = _near(claim, [one])
    return outcome._replace(ours=(_with_error(share, spread),))


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
        If there are fewer than two points or nothing happened at all.
    """
    from scipy.optimize import brentq, minimize_scalar

    sizes, counts = (np.asarray(x, dtype=np.float64) for x in (sizes, counts))
    if sizes.size < 2 or not (sizes > 0).all() or not counts.sum() > 0:
        raise ValueError("a rate of shares needs two sizes or more, and something that happened")
    x = np.log(sizes / np.exp(np.log(sizes).mean()))

    def profile(b):
        top = -np.max(b * x) - 1e-9

        def misfit(a):
            log_p = a + b * x
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
    word = "is" if weighed.holds else "is not surely" if weighed.open else "is not"
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
    "setting": _Rule(_setting, (1,), ("published",)),
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

# ------------------------------------------------------------------------------------- loading

_TEXTS = ("id", "section", "where", "says", "chapter", "rule")
_OPTIONS = ("tolerance", "relative", "than", "factor", "low", "high", "towards", "at_most", "rows")
_KEYS = (
    *_TEXTS, "values", "published", "needs", "not_comparable", "by_construction", "reading",
    "remark", *_OPTIONS,
)


def load_ledger(path, chapters=None):
    """Read the ledger's file and check every row of it.

    Parameters
    ----------
    path : path-like
        A YAML file with ``reasons`` (name -> sentence) and ``rows``.
    chapters : collection of str, optional
        Names of notebooks that rows may refer to.

    Returns
    -------
    tuple of Claim
        In the order of the file.

    Raises
    ------
    LedgerError
        One line that names the row and what is wrong with it.
    """
    with needed_for("the ledger"):
        import yaml

    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise LedgerError(f"{path.name} cannot be read: {str(error).splitlines()[0]}") from None
    if not isinstance(content, dict) or not isinstance(content.get("rows"), list):
        raise LedgerError(f"{path.name} must hold a list of rows under 'rows'")
    reasons = content.get("reasons") or {}
    claims = []
    for number, row in enumerate(content["rows"], start=1):
        name = row.get("id", number) if isinstance(row, dict) else number
        try:
            claim = _claim(row, reasons, chapters)
            if claim.id in {other.id for other in claims}:
                raise LedgerError("its id is used twice")
        except LedgerError as error:
            raise LedgerError(f"{path.name}, row {name}: {error}") from None
        claims.append(claim)
    known = {claim.id: claim for claim in claims}
    for claim in claims:
        for other in claim.options.get("rows", ()):
            why = ""
            if other not in known or other == claim.id:
                why = "is no other row"
            elif known[other].rule in ("rows", "cited"):
                why = "computes nothing itself"
            elif known[other].rule == "setting" or known[other].by_construction:
                why = "is no finding, so that nothing can follow from it"
            if why:
                raise LedgerError(f"{path.name}, row {claim.id}: rows: {other!r} {why}")
    return tuple(claims)


def _claim(row, reasons, chapters):
    if not isinstance(row, dict):
        raise LedgerError("expected keys and values")
    for key in row:
        if key not in _KEYS:
            raise LedgerError(f"unknown key {key!r} (accepted: {', '.join(_KEYS)})")
    for key in _TEXTS:
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise LedgerError(f"{key} must be a text")
    if row["rule"] not in RULES:
        raise LedgerError(f"unknown rule {row['rule']!r} (accepted: {', '.join(RULES)})")
    if chapters is not None and row["chapter"] not in chapters:
        raise LedgerError(f"unknown chapter {row['chapter']!r}")
    rule = RULES[row["rule"]]
    values = row.get("values", [])
    if not isinstance(values, list) or not all(isinstance(name, str) for name in values):
        raise LedgerError("values must be a list of names")
    if rule.counts is None and not values or rule.counts and len(values) not in rule.counts:
        wanted = "at least 1" if rule.counts is None else " or ".join(map(str, rule.counts))
        raise LedgerError(f"rule {row['rule']} takes {wanted} values; got {len(values)}")
    for key in rule.required:
        if key not in row:
            raise LedgerError(f"rule {row['rule']} needs {key}")
    options = {key: row[key] for key in _OPTIONS if key in row}
    for key, option in options.items():
        if key not in (*rule.required, *rule.optional):
            raise LedgerError(f"rule {row['rule']} has no option {key}")
        if key == "rows":
            fits = isinstance(option, list) and bool(option)
        elif key == "at_most":
            fits = isinstance(option, bool)
        else:
            fits = _is_number(option)
        if not fits:
            raise LedgerError(f"{key} = {option!r} is not accepted")
    if row["rule"] == "near" and ("tolerance" in row) == ("relative" in row):
        raise LedgerError("rule near needs one of tolerance and relative")
    if row["rule"] in ("greater", "less") and ("than" in row) == (len(values) == 2):
        raise LedgerError(f"rule {row['rule']} needs two values, or one and than")
    if row["rule"] == "between" and not {"low", "high"} & row.keys():
        raise LedgerError("rule between needs low or high")
    published = row.get("published")
    numbers = published if isinstance(published, list) else [published]
    if published is not None and not all(_is_number(number) for number in numbers):
        raise LedgerError(f"published = {published!r} is no number and no list of numbers")
    if row["rule"] in ("reduction", "rate", "share_rate") and isinstance(published, list):
        raise LedgerError(f"rule {row['rule']} takes one published number")
    needs = row.get("needs") or {}
    if not isinstance(needs, dict) or not all(
        all(map(_is_number, wanted if isinstance(wanted, list) else [wanted]))
        for wanted in needs.values()
    ):
        raise LedgerError("needs must map names of values to numbers or lists of numbers")
    unlike = row.get("not_comparable") or {}
    for kind, reason in unlike.items():
        if kind not in (*DATA_KINDS, "all"):
            raise LedgerError(
                f"not_comparable: unknown data {kind!r} (accepted: {', '.join(DATA_KINDS)}, all)"
            )
        if reason not in reasons:
            raise LedgerError(f"not_comparable: there is no reason {reason!r}")
    if row["rule"] == "cited" and "all" not in unlike:
        raise LedgerError("rule cited needs not_comparable: all")
    why = row.get("by_construction", "")
    if "by_construction" in row and not (isinstance(why, str) and why.strip()):
        raise LedgerError("by_construction must say why")
    if why and row["rule"] in ("setting", "rows", "cited"):
        raise LedgerError(f"rule {row['rule']} takes no by_construction")
    return Claim(
        **{key: row[key].strip() for key in _TEXTS},
        values=tuple(values),
        published=published,
        options=options,
        needs=dict(needs),
        not_comparable={kind: str(reasons[reason]) for kind, reason in unlike.items()},
        reading=str(row.get("reading", "")),
        remark=str(row.get("remark", "")),
        by_construction=why.strip(),
    )


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


# ------------------------------------------------------------------------------------- judging


def judge(claims, computed, larger=None):
    """Give every claim its verdict.

    Parameters
    ----------
    claims : sequence of Claim
        What :func:`load_ledger` returned.
    computed : dict of str to dict
        Chapter -> what :func:`ppm.publishing.save_values` wrote: ``data`` and ``values``. A
        chapter that was not run is left out.
    larger : dict of str to dict, optional
        The same from larger studies than the chapters'. Where they have the values of a row, the
        row is judged by them, and the chapter's own stand beside; settings are the chapter's.

    Returns
    -------
    tuple of Row
        One a claim, in the same order.

    Notes
    -----
    A claim is *reproduced* if its rule holds by more than two standard errors at every number that
    is compared, and *not reproduced* otherwise: it fails by as many at some number, or it is open.
    *Same setting* and *by construction* are no findings: the first says how the run was made, the
    second what cannot fail here; if it fails all the same, it is not reproduced. A claim is *not
    comparable* on data or under settings for which the comparison would say nothing, and *not
    computed* where a value or its Monte Carlo error is missing: an unknown error is not one of 0.
    """
    larger = larger or {}
    rows = {
        claim.id: _judge_by_both(claim, computed.get(claim.chapter), larger.get(claim.chapter))
        for claim in claims
    }
    for claim in claims:
        if claim.rule == "rows":
            rows[claim.id] = _from_rows(claim, rows)
    return tuple(rows[claim.id] for claim in claims)


def _judge_by_both(claim, chapter, larger):
    """Judge by the larger study if it has the values, with the chapter's beside."""
    alone = _judge(claim, chapter)
    if larger is None or claim.rule == "setting":
        return alone
    row = _judge(claim, larger)
    if row.verdict in ("not comparable", "not computed"):
        return alone
    # what the chapter has no value for it cannot say otherwise
    other = alone.spoken if alone.ours and row.spoken != alone.spoken else ""
    return replace(row, beside=alone.ours, alone=other)


def _judge(claim, chapter):
    if claim.rule == "rows":
        return Row(claim, "not computed", "")
    if claim.rule == "cited":
        return Row(claim, "not comparable", claim.not_comparable["all"])
    if chapter is None:
        return Row(claim, "not computed", f"chapter {claim.chapter} was not run")
    found = {name: _value(chapter["values"].get(name)) for name in (*claim.values, *claim.needs)}
    missing = [name for name, value in found.items() if value is None]
    values = [found[name] for name in claim.values]
    ours = () if None in values else _listed(values)
    why = claim.not_comparable.get("all") or claim.not_comparable.get(chapter["data"])
    if why:
        return Row(claim, "not comparable", why, ours)
    if missing:
        return Row(claim, "not computed", f"the chapter did not compute {missing[0]}", ours)
    for name, wanted in claim.needs.items():
        wanted = np.atleast_1d(np.asarray(wanted, dtype=np.float64))
        if not np.array_equal(found[name].value, wanted):
            why = f"run with {name} = {shown(found[name].value)}; the paper has {shown(wanted)}"
            return Row(claim, "not comparable", why, ours)
    if claim.rule == "setting":
        if _setting(claim, values):
            return Row(claim, "same setting", "the run has the paper's setting", ours)
        why = f"run with {claim.values[0]} = {shown(values[0].value)}; "
        why += f"the paper has {shown(claim.published)}"
        return Row(claim, "not comparable", why, ours)
    for name, value in zip(claim.values, values, strict=True):
        if np.isnan(value.error).any():
            why = f"the Monte Carlo error of {name} is unknown"
            doubt = chapter["values"][name].get("doubt")
            return Row(claim, "not computed", f"{why}: {doubt}" if doubt else why, ours)
    if claim.rule == "share_rate" and math.isnan(values[1].of):
        why = f"the chapter did not say of how many {claim.values[1]} is a share"
        return Row(claim, "not computed", why, ours)
    outcome = RULES[claim.rule].check(claim, values)
    if outcome.undefined:
        return Row(claim, "not computed", outcome.reason, ours)
    reasons = [outcome.reason]
    verdict, is_open = "reproduced" if outcome.holds else "not reproduced", outcome.open
    if claim.by_construction and not (outcome.holds or is_open):
        reasons.append("it holds by construction, so that this shows a defect of the book")
    elif claim.by_construction:
        # there is nothing to decide: what a larger run would tell, the construction says
        verdict, is_open = "by construction", False
        reasons = [claim.by_construction, *(reasons if outcome.open else ())]
    if is_open:
        reasons.append(_needed(outcome.factor, values))
    reasons += [chapter["values"][name].get("doubt") for name in claim.values]
    reason = "; ".join(dict.fromkeys(filter(None, reasons)))
    return Row(claim, verdict, reason, outcome.ours or ours, is_open)


def _needed(factor, values):
    """How large a run would decide, if the difference stayed what it is."""
    counted = {(v.size, v.counted) for v in values if v.counted and (v.error > 0).any()}
    if not factor < _BEYOND:
        return "no run that could be made would decide it"
    if len(counted) != 1:
        return f"about {_rounded_up(factor)} times the run would decide it"
    ((size, name),) = counted
    return f"about {_rounded_up(factor * size)} {name} would decide it (here {shown(size)})"


def _rounded_up(number):
    """A whole number with two digits that count, not below the one given."""
    digit = 10.0 ** max(0, math.floor(math.log10(number)) - 1)
    return f"{math.ceil(number / digit) * digit:,.0f}"


def _listed(values):
    """The numbers of all values with their errors, those of different values set apart."""
    texts = []
    for value in values:
        texts += ["against"] if texts else []
        texts += [_with_error(*pair) for pair in zip(value.value, value.error, strict=True)]
    return tuple(texts)


def _from_rows(claim, rows):
    parts = [rows[name] for name in claim.options["rows"]]
    counted = Counter(part.verdict for part in parts)
    # a conclusion fails with one of its parts, and is open if one of them is
    for verdict in ("not reproduced", "not computed", "not comparable", "reproduced"):
        if counted[verdict]:
            break
    told = f"{counted['reproduced']} of its {len(parts)} parts reproduced"
    failed = [part for part in parts if part.verdict == "not reproduced"]
    is_open = bool(failed) and all(part.open for part in failed)
    told += f", {len(failed)} open: see there" if is_open else ""
    return Row(claim, verdict, told, open=is_open)


def _value(entry):
    """Numbers of an entry of a values file; None if one is missing or not finite."""
    if entry is None:
        return None
    try:
        value = np.atleast_1d(np.asarray(entry["value"], dtype=np.float64))
        error = entry.get("error")
        error = np.nan if error is None else np.asarray(error, dtype=np.float64)
        error = np.broadcast_to(error, value.shape)
        of = entry.get("of")
        size, counted = entry.get("sample", (math.nan, ""))
    except (TypeError, ValueError):
        return None
    if value.size == 0 or not np.isfinite(value).all():
        return None
    return _Value(value, error, math.nan if of is None else float(of), float(size), str(counted))


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


def _with_error(size, error):
    if math.isnan(error):
        return f"{shown(size)} ± unknown"
    # two digits of an error count
    return f"{shown(size)} ± {_number(float(error), 2)}" if error > 0 else shown(size)
