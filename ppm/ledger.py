"""The ledger: what the paper reports, what came out here, and a verdict computed from the two."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

VERDICTS = ("reproduced", "not reproduced", "not comparable", "not computed")
# where the values of a chapter come from: drawn by a study; a simulated table; survey files
DATA_KINDS = ("drawn", "simulated", "diary", "interview", "other")
# a comparison counts when it holds by more than this many standard errors
SURE = 2.0
_NORMAL_95 = 1.959963984540054


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
    """

    claim: Claim
    verdict: str
    reason: str
    ours: tuple = ()
    open: bool = False


class _Value(NamedTuple):
    """A computed value: numbers, their standard errors (NaN if unknown), and trials of a share."""

    value: np.ndarray
    error: np.ndarray
    of: float = math.nan


class _Outcome(NamedTuple):
    holds: bool
    reason: str
    open: bool = False
    ours: tuple = ()


class _Rule(NamedTuple):
    """A rule: its function, how many values it takes, and which keys it must or may have."""

    check: Callable
    counts: tuple
    required: tuple = ()
    optional: tuple = ()


# ------------------------------------------------------------------------------------ the rules


def _tolerance(claim, published):
    if "relative" in claim.options:
        return claim.options["relative"] * np.abs(published)
    return np.full(published.shape, float(claim.options["tolerance"]))


def _near(claim, values):
    """Each number lies within the tolerance of the published one."""
    ours, error, _ = values[0]
    published = np.atleast_1d(np.asarray(claim.published, dtype=np.float64))
    if ours.shape != published.shape:
        return _Outcome(False, f"{ours.size} numbers here, {published.size} in the paper")
    tolerance = _tolerance(claim, published)
    error = np.nan_to_num(error)
    off = np.abs(ours - published)
    worst = int(np.argmax(off - tolerance))
    told = f"differs by {shown(off[worst])}, tolerance {shown(tolerance[worst])}"
    if (SURE * error > tolerance).any() and (off <= tolerance + SURE * error).all():
        return _Outcome(False, "the Monte Carlo error is too large for the tolerance", open=True)
    return _Outcome(bool((off <= tolerance + SURE * error).all()), told)


def _setting(claim, values):
    """The run was made with the paper's setting; None, for not comparable, if not."""
    ours = values[0].value
    published = np.atleast_1d(np.asarray(claim.published, dtype=np.float64))
    if ours.shape == published.shape and (ours == published).all():
        return _Outcome(True, "the run has the paper's setting")
    return None


def _compared(claim, values, sign):
    first, first_error, _ = values[0]
    factor = float(claim.options.get("factor", 1.0))
    if len(values) > 1:
        second, second_error, _ = values[1]
    else:
        second, second_error = np.array([float(claim.options["than"])]), np.zeros(1)
    try:
        difference = sign * (first - factor * second)
    except ValueError:
        return _Outcome(False, f"{first.size} numbers against {second.size}")
    error = np.hypot(np.nan_to_num(first_error), factor * np.nan_to_num(second_error))
    word = "above" if sign > 0 else "below"
    return _sure(difference, error, word)


def _sure(difference, error, word):
    """Whether every difference is above 0 by more than its Monte Carlo error, in words."""
    difference, error = np.broadcast_arrays(difference, error)
    worst = int(np.argmin(difference - SURE * error))
    size, spread = difference.flat[worst], error.flat[worst]
    place = f" (comparison {worst + 1} of {difference.size})" if difference.size > 1 else ""
    if size > SURE * spread:
        return _Outcome(True, f"{word} by {_with_error(size, spread)}{place}")
    if size < 0 and -size > SURE * spread:
        return _Outcome(False, f"not {word}: off by {_with_error(-size, spread)}{place}")
    told = f"not surely {word}: the difference is {_with_error(size, spread)}{place}"
    return _Outcome(False, told, open=spread > 0)


def _greater(claim, values):
    """The first is above the second (times a factor), or above a number."""
    return _compared(claim, values, 1.0)


def _less(claim, values):
    """The first is below the second (times a factor), or below a number."""
    return _compared(claim, values, -1.0)


def _between(claim, values):
    """All numbers lie between two limits."""
    ours, error, _ = values[0]
    low, high = claim.options.get("low", -math.inf), claim.options.get("high", math.inf)
    error = SURE * np.nan_to_num(error)
    holds = bool(((ours - error >= low) & (ours + error <= high)).all())
    limits = " and ".join(
        text
        for limit, text in (
            (low, f"at least {shown(low)}"),
            (high, f"at most {shown(high)}"),
        )
        if math.isfinite(limit)
    )
    outside = bool(((ours + error < low) | (ours - error > high)).any())
    told = limits if holds else f"not {limits}" if outside else f"not surely {limits}"
    return _Outcome(holds, told, open=not holds and not outside)


def _sequence(claim, values):
    ours = np.concatenate([value.value for value in values])
    error = np.nan_to_num(np.concatenate([value.error for value in values]))
    if "towards" in claim.options:
        ours = np.abs(ours - float(claim.options["towards"]))
    return ours, error


def _monotone(claim, values, sign):
    ours, error = _sequence(claim, values)
    verb = "rise" if sign > 0 else "fall"
    if ours.size < 2:
        return _Outcome(False, "a single value has no direction")
    steps = sign * np.diff(ours)
    slack = SURE * np.hypot(error[1:], error[:-1])
    wrong = np.flatnonzero(steps < -slack)
    if wrong.size:
        return _Outcome(False, f"step {wrong[0] + 1} of {steps.size} goes the other way")
    whole = ours[-1] - ours[0]
    spread = math.hypot(error[0], error[-1])
    change = _with_error(whole, spread)
    if sign * whole <= SURE * spread:
        back = sign * whole < -SURE * spread
        told = f"from first to last it changes by {change}"
        if not back:
            told += f": it does not surely {verb}"
        return _Outcome(False, told, open=not back and spread > 0)
    told = f"{verb}s by {change.lstrip('−')} from first to last, and no step surely goes back"
    return _Outcome(True, told)


def _increasing(claim, values):
    """The sequence, or its distance from a limit, rises, and no step falls."""
    return _monotone(claim, values, 1.0)


def _decreasing(claim, values):
    """The sequence, or its distance from a limit, falls, and no step rises."""
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
    """Exponent of a power law, with its 95 % interval, by weighted regression of logarithms.

    Parameters
    ----------
    sizes, values, errors : array_like, shape (points,)
        At least three points; values above 0 with standard errors.

    Returns
    -------
    tuple of float
        Exponent, and the ends of its interval. Where the points scatter about the line by more
        than their errors, the interval is widened accordingly.

    Raises
    ------
    ValueError
        If there are too few points or a value is not above 0.
    """
    sizes, values, errors = (np.asarray(x, dtype=np.float64) for x in (sizes, values, errors))
    if sizes.size < 3 or not all((x > 0).all() for x in (sizes, values, errors)):
        raise ValueError("a power law needs three points or more, and everything above 0")
    x, y, weight = np.log(sizes), np.log(values), values / errors
    line, covariance = np.polyfit(x, y, 1, w=weight, cov="unscaled")
    scatter = np.sum((weight * (y - np.polyval(line, x))) ** 2) / (sizes.size - 2)
    half = _NORMAL_95 * math.sqrt(covariance[0, 0] * max(1.0, scatter))
    return float(line[0]), float(line[0] - half), float(line[0] + half)


def share_power_law(sizes, counts, trials):
    """Exponent of a power law that a probability follows, with its 95 % interval.

    The counts are binomial with probability min(1, exp(a) n^b); the interval is the profile
    likelihood's, so that counts of 0 are no obstacle.

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
    limit = best.fun + 0.5 * _NORMAL_95**2
    ends = []
    for end in (-10.0, 10.0):
        inside = profile(end) <= limit
        ends.append(end if inside else brentq(lambda b: profile(b) - limit, *sorted((best.x, end))))
    return float(best.x), float(ends[0]), float(ends[1])


def _rate(claim, values):
    """The interval of a power law's exponent contains the published one."""
    try:
        slope, low, high = power_law(values[0].value, values[1].value, values[1].error)
    except ValueError as error:
        return _Outcome(False, str(error))
    return _judge_rate(claim, slope, low, high)


def _share_rate(claim, values):
    """The same for a share, from counts."""
    try:
        counts = np.rint(values[1].value * values[1].of)
        slope, low, high = share_power_law(values[0].value, counts, values[1].of)
    except ValueError as error:
        return _Outcome(False, str(error))
    return _judge_rate(claim, slope, low, high)


def _judge_rate(claim, slope, low, high):
    wanted, at_most = float(claim.published), claim.options.get("at_most", False)
    ours = (f"exponent {shown(slope)}", f"({shown(low)} to {shown(high)})")
    if at_most:
        holds = high < 0 and low <= wanted
        is_open = high >= 0 and low <= wanted
        told = f"the interval {'reaches' if low <= wanted else 'stays above'} {shown(wanted)}"
        told += "" if high < 0 else ", but does not exclude 0"
    else:
        inside = low <= wanted <= high
        holds = inside and high - low <= 2 * claim.options["tolerance"]
        told = f"the interval {'contains' if inside else 'leaves out'} {shown(wanted)}"
        is_open = inside and not holds
        if is_open:
            told += ", but is too wide to say so"
    return _Outcome(holds, told, is_open, ours)


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
    # all the rows named are reproduced
    "rows": _Rule(None, (0,), ("rows",)),
    # a statement about something that is not run here
    "cited": _Rule(None, (0,)),
}

# ------------------------------------------------------------------------------------- loading

_TEXTS = ("id", "section", "where", "says", "chapter", "rule")
_OPTIONS = ("tolerance", "relative", "than", "factor", "low", "high", "towards", "at_most", "rows")
_KEYS = (*_TEXTS, "values", "published", "needs", "not_comparable", "reading", "remark", *_OPTIONS)


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
    known = {claim.id for claim in claims}
    for claim in claims:
        for other in claim.options.get("rows", ()):
            if other not in known or other == claim.id:
                raise LedgerError(f"{path.name}, row {claim.id}: rows: {other!r} is no other row")
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
    return Claim(
        **{key: row[key].strip() for key in _TEXTS},
        values=tuple(values),
        published=published,
        options=options,
        needs=dict(needs),
        not_comparable={kind: str(reasons[reason]) for kind, reason in unlike.items()},
        reading=str(row.get("reading", "")),
        remark=str(row.get("remark", "")),
    )


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


# ------------------------------------------------------------------------------------- judging


def judge(claims, computed):
    """Give every claim its verdict.

    Parameters
    ----------
    claims : sequence of Claim
        What :func:`load_ledger` returned.
    computed : dict of str to dict
        Chapter -> what :func:`ppm.save_values` wrote: ``data`` and ``values``. A chapter that was
        not run is left out.

    Returns
    -------
    tuple of Row
        One a claim, in the same order.

    Notes
    -----
    A claim is *reproduced* if its rule holds by more than two standard errors of what is compared,
    and *not reproduced* otherwise, also where the Monte Carlo error leaves it open; the reason
    says which. It is *not comparable* on data or under settings for which the comparison would
    say nothing, and *not computed* where a value is missing.
    """
    rows = {claim.id: _judge(claim, computed.get(claim.chapter)) for claim in claims}
    for claim in claims:
        if claim.rule == "rows":
            rows[claim.id] = _from_rows(claim, rows)
    return tuple(rows[claim.id] for claim in claims)


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
    outcome = RULES[claim.rule].check(claim, values)
    if outcome is None:
        why = f"run with {claim.values[0]} = {shown(values[0].value)}; "
        why += f"the paper has {shown(claim.published)}"
        return Row(claim, "not comparable", why, ours)
    verdict = "reproduced" if outcome.holds else "not reproduced"
    doubts = [chapter["values"][name].get("doubt") for name in claim.values]
    reason = "; ".join(dict.fromkeys([outcome.reason, *filter(None, doubts)]))
    return Row(claim, verdict, reason, outcome.ours or ours, outcome.open)


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
    return Row(claim, verdict, told, open=bool(failed) and all(part.open for part in failed))


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
    except (TypeError, ValueError):
        return None
    if value.size == 0 or not np.isfinite(value).all():
        return None
    return _Value(value, error, math.nan if of is None else float(of))


def shown(value):
    """Numbers as the page shows them: four digits that count, and a dash for what is unknown."""
    numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
    return ", ".join(_number(float(number)) for number in numbers)


def _number(number):
    if math.isnan(number):
        return "–"
    digits = 4 if abs(number) >= 1 else 3
    if number == round(number, 3):
        # published, or exact
        text = f"{number:,.12g}"
    elif abs(number) < 1e-4:
        text = f"{number:.1e}"
    else:
        text = f"{number:,.{max(0, digits - 1 - math.floor(math.log10(abs(number))))}f}"
    return text.replace("-", "−")


def _with_error(size, error):
    return f"{shown(size)} ± {shown(error)}" if error > 0 else shown(size)
