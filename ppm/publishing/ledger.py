"""The ledger: what the paper reports, what came out here, and a verdict computed from the two."""

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from ppm.publishing.claims import Claim
from ppm.publishing.rules import RULES, Value, is_setting, shown, with_error

VERDICTS = (
    "reproduced", "not reproduced", "same setting", "by construction", "not comparable",
    "not computed",
)
# of which these decide nothing
UNJUDGED = ("not comparable", "not computed")
# no run is as large as this
_BEYOND = 1e9


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


def judge(claims, computed, larger=None):
    """Give every claim its verdict.

    Parameters
    ----------
    claims : sequence of Claim
        What :func:`ppm.publishing.claims.load_ledger` returned.
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
    if row.verdict in UNJUDGED:
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
        if is_setting(claim, values):
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
        texts += [with_error(*pair) for pair in zip(value.value, value.error, strict=True)]
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
    return Value(value, error, math.nan if of is None else float(of), float(size), str(counted))
