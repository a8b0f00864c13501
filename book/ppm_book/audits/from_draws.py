"""Sampled privacy audits of any model: evidence against a claimed ε, never a proof of one.

All results are computed from the confidential records and are confidential themselves.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

import ppm
from ppm import pdp
from ppm.chains import R_HAT_LIMIT, ChainsDisagreeError, effective_draws, r_hat
from ppm.checks import (
    as_numbers,
    check_count,
    check_number,
    check_rows,
    check_share,
)
from ppm.seeds import copied, streams


@dataclass(frozen=True)
class LossEvidence:
    """Lower bound on a privacy loss, from samples of the releases of two databases.

    It can refute a claimed ε at the stated confidence but never confirm one: another event or more
    samples may show a larger loss.

    Attributes
    ----------
    lower, confidence : float
        Lower limit, 0 or more, on the log ratio of the probabilities of one event, in nats, and the
        probability, over samples, that it is not above the loss.
    event : str
        The event, in words.
    with_record, without_record, samples : int, int, tuple of int
        How often it occurred with and without the record, in how many samples of each: those that
        were not used to choose it.
    delta : float
        The δ of the claim (ε, δ).
    """

    lower: float
    confidence: float
    event: str
    with_record: int
    without_record: int
    samples: tuple
    delta: float = 0.0

    def refutes(self, epsilon):
        """Whether the evidence contradicts a claim of this ε, in nats."""
        return bool(self.lower > check_number("epsilon", epsilon, at_least=0))

    def __str__(self):
        """The bound in words, called evidence."""
        return (
            f"evidence, not proof: the loss is at least {self.lower:.2f} nats at "
            f"{self.confidence:.0%} confidence ({self.event}: {self.with_record} of "
            f"{self.samples[0]} samples with the record, {self.without_record} of "
            f"{self.samples[1]} without it)"
        )


def loss_lower_bound(with_record, without_record, *, confidence=0.95, delta=0.0):
    r"""Lower bound on the privacy loss between two databases, from one score of each sample.

    One half of the samples chooses an event "score at least t" or "score below t" and the side on
    which it is more frequent; the other half bounds its two probabilities by exact binomial limits.
    With N samples in a half, no loss above about log N can be shown.

    Parameters
    ----------
    with_record, without_record : array_like
        Scores of independent samples released from the database with the record and without it,
        of any shape, at least 20 each. The best score is the log ratio of the two densities.
    confidence : float, default 0.95
        Confidence of the bound.
    delta : float, default 0
        The δ of a claim (ε, δ): the bound is on :math:`\log((P(B) - \delta)/Q(B))` for an event B.

    Returns
    -------
    LossEvidence

    Examples
    --------
    >>> import numpy as np
    >>> from ppm_book import audits
    >>> rng = np.random.default_rng(1)
    >>> print(audits.loss_lower_bound(rng.normal(2.0, size=1000), rng.normal(size=1000)))
    evidence, not proof: the loss is at least 2.46 nats at 95% confidence (score at least 2.809: 101
    of 500 samples with the record, 2 of 500 without it)
    """
    confidence = check_share("confidence", confidence)
    delta = check_number("delta", delta, at_least=0, at_most=1)
    scores = []
    for name, values in (
        ("with_record", with_record),
        ("without_record", without_record),
    ):
        values = as_numbers(name, values).ravel()
        if values.size < 20 or np.isnan(values).any():
            raise ValueError(f"{name} must hold at least 20 scores and no NaN")
        scores.append(values)
    # alternating, so that a drift along the samples affects both halves
    chosen, tested = [[side[start::2] for side in scores] for start in (0, 1)]
    levels = np.unique(np.concatenate(chosen))
    # a few hundred thresholds are plenty
    levels = levels[np.linspace(0, levels.size - 1, min(levels.size, 400)).astype(int)]
    candidates = []
    for reverse in (False, True):  # more frequent without the record
        for above in (True, False):  # "at least" or "below"
            limits = _log_ratio_limit(chosen, levels, above, reverse, confidence, delta)
            candidates.append((limits.max(), levels[limits.argmax()], above, reverse))
    _, level, above, reverse = max(candidates, key=lambda candidate: candidate[0])
    lower = float(_log_ratio_limit(tested, level, above, reverse, confidence, delta))
    with_record, without_record = (
        int(_occurrences(side, level, above)) for side in tested
    )
    return LossEvidence(
        lower=max(0.0, lower),
        confidence=confidence,
        delta=delta,
        event=f"score {'at least' if above else 'below'} {level:.4g}",
        with_record=with_record,
        without_record=without_record,
        samples=tuple(side.size for side in tested),
    )


def _occurrences(scores, levels, above):
    below = np.searchsorted(np.sort(scores), levels, side="left")
    return scores.size - below if above else below


def _log_ratio_limit(sides, levels, above, reverse, confidence, delta):
    """Lower limit on log((P - δ)/Q) of events; the two binomial limits share the error equally."""
    often, seldom = sides[::-1] if reverse else sides
    error = (1.0 - confidence) / 2.0
    low, _ = pdp.binomial_limits(_occurrences(often, levels, above), often.size, error)
    _, high = pdp.binomial_limits(
        _occurrences(seldom, levels, above), seldom.size, error
    )
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)


@dataclass(frozen=True)
class SampledAudit:
    """Audit of some records of a database by refits without each of them.

    Attributes
    ----------
    evidence : dict of int to LossEvidence
        Lower bound on the loss of each audited record; all hold together at ``confidence``.
    estimates : dict of int to float
        Largest absolute loss of each record over the draws of both sides, in nats, with normalising
        constants by bridge sampling: no bound, and unreliable where the posteriors hardly overlap.
    largest_weight_change : dict of int to float
        For each audited record, the largest change of another record's weight.
    local_bound, oscillation_bound, width : float
        Of the whole database's terms, in nats: over its draws, and ∞ or that of the limits.
    confidence, draws : float, int
        Joint confidence of the evidence, and how many draws it uses on each side, thinned.
    """

    evidence: dict
    estimates: dict
    largest_weight_change: dict
    local_bound: float
    oscillation_bound: float
    width: float
    confidence: float
    draws: int

    @property
    def limited(self):
        """Whether the terms lie between limits."""
        return bool(np.isfinite(self.width))

    @property
    def claim(self):
        """The ε that is audited, in nats: the width of the limits, or 2Δ without any."""
        return self.width if self.limited else pdp.epsilon(self.local_bound)

    @property
    def lower(self):
        """Largest lower bound on the loss, in nats."""
        return max(found.lower for found in self.evidence.values())

    def refutes(self, epsilon=None):
        """Whether the evidence contradicts a claim of ε, in nats; by default :attr:`claim`."""
        epsilon = self.claim if epsilon is None else epsilon
        return any(found.refutes(epsilon) for found in self.evidence.values())

    def __str__(self):
        """The largest lower bound in words, marked as confidential."""
        where = "width of the limits" if self.limited else "2Δ over these draws"
        return (
            f"evidence, not proof: the loss of a record is at least {self.lower:.2f} nats at "
            f"{self.confidence:.0%} confidence; {where}: {self.claim:.2f}\n"
            "confidential: what a named record changes is computed from the records, outside any ε"
        )

    def table(self):
        """One row per audited record, in nats: a pandas.DataFrame."""
        import pandas as pd

        return pd.DataFrame(
            {
                "lower bound": {i: found.lower for i, found in self.evidence.items()},
                "estimate": self.estimates,
                "oscillation": self.oscillation_bound,
                "W" if self.limited else "2Δ": self.claim,
                "largest change of a weight": self.largest_weight_change,
            }
        ).rename_axis("record")


def sampled(
    model,
    records,
    rule=ppm.ByRisk(),  # noqa: B008, a frozen value
    *,
    draws=1000,
    confidence=0.95,
    delta=0.0,
    random_seed=None,
):
    r"""Audit any model by refits without chosen records: evidence on the loss of θ.

    The neighbour keeps the record's row and predictors, but not its confidential value: the record
    has weight 0 in *both* fits of the neighbour, and the others' terms are made without it.

    Parameters
    ----------
    model : ppm.Model
        The model with the confidential records.
    records : sequence of int
        Positions of the records to leave out, one at a time; each costs two fits.
    rule : ppm.Rule or ppm.Terms, default ppm.ByRisk()
        The rule, which is asked again without each record. Terms stay as they are, and so do those
        of ``ppm.Given``, ``ppm.Limited`` and ``ppm.Capped``, in which no record sees another one.
    draws : int, default 1000
        Kept draws per chain of each fit.
    confidence, delta : float
        As for :func:`loss_lower_bound`; the confidence is that of all bounds together.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness. The fits that give the weights use one stream with and without a
        record; the audited ones use independent streams.

    Returns
    -------
    SampledAudit
        Lower bounds, given the weights of these fits.

    Raises
    ------
    ChainsDisagreeError
        If the chains of a fit disagree on the score, stand still or diverge often.

    Notes
    -----
    The score of a draw is :math:`\sum_j (\alpha_j(x) - \alpha_j(y)) \log p(x_j \mid \theta)`, or
    the same difference of limited terms: up to a constant the log ratio of the two pseudo
    posteriors, which is the best score. Draws of a Markov chain are thinned to their effective
    number and then treated as independent, which is an approximation.

    Examples
    --------
    >>> import ppm
    >>> from ppm_book import audits
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> audit = audits.sampled(model, [4], ppm.ByRisk(), draws=500, random_seed=1)
    >>> audit.table().round(2)
            lower bound  estimate  oscillation    2Δ  largest change of a weight
    record
    4              0.61      6.41         1.84  7.35                         1.0
    >>> audit.refutes()
    False
    """
    if not isinstance(model, ppm.Model):
        raise TypeError(f"model must be a ppm.Model; got {type(model).__name__}")
    if not isinstance(rule, ppm.Rule | ppm.Terms):
        raise TypeError(
            f"rule must be a ppm.Rule or ppm.Terms; got {type(rule).__name__}"
        )
    records = check_rows("records", records, model.records)
    draws = check_count("draws", draws, at_least=40)
    confidence = check_share("confidence", confidence)
    if type(rule) in (ppm.Given, ppm.Limited, ppm.Capped):
        rule = rule.terms(model, None)
    seeds = streams(random_seed, 2 + len(records))
    # so that the bounds of all records hold together
    confidence_of_each = 1.0 - (1.0 - confidence) / len(records)

    terms = _terms_without(None, model, rule, draws, seeds[0])
    which = "the fit of the whole database"
    whole = _audited_fit(model, terms, draws, seeds[1], which)
    log_p = model.log_p(whole.theta)
    evidence, estimates, largest_change, sizes = {}, {}, {}, []
    for record, seed in zip(records, seeds[2:], strict=True):
        others = _terms_without(record, model, rule, draws, seeds[0])
        which = f"the fit without record {record}"
        without = _audited_fit(model, others, draws, seed, which)
        scores = []
        for side, values in (("with", log_p), ("without", model.log_p(without.theta))):
            score = _score(values, terms, others)
            # without diagnostics draws are independent
            if whole.diagnostics is not None:
                which = f"the fit {side} record {record}"
                score = _thinned(score.reshape(-1, draws), which, draws)
            scores.append(score.ravel())
        evidence[record] = loss_lower_bound(
            *scores, confidence=confidence_of_each, delta=delta
        )
        estimates[record] = _bridged(*scores)
        changes = np.abs(np.delete(terms.weights - others.weights, record))
        largest_change[record] = float(changes.max(initial=0.0))
        sizes += [score.size for score in scores]
    return SampledAudit(
        evidence=evidence,
        estimates=estimates,
        largest_weight_change=largest_change,
        local_bound=whole.local_bound,
        oscillation_bound=whole.oscillation_bound,
        width=terms.width,
        confidence=confidence,
        draws=min(sizes),
    )


class _Without(ppm.Model):
    """A model of all records but one, which has weight 0 in its fits."""

    def __init__(self, model, record):
        self.model, self.records = model, model.records - 1
        self.chains, self.warmup = model.chains, model.warmup
        self.sample_stats = model.sample_stats
        self.present = np.arange(model.records) != record
        if model.values is not None:
            self.values = np.asarray(model.values)[self.present]
        if model.known is not None:
            self.known = np.asarray(model.known)[self.present]

    def all_weights(self, terms):
        weights = np.zeros(self.present.size)
        weights[self.present] = terms.weights
        return weights

    def draw(self, terms, draws, rng, **sampler):
        return self.model.draw(
            ppm.Terms(self.all_weights(terms)), draws, rng, **sampler
        )

    def log_p(self, theta):
        return self.model.log_p(theta)[:, self.present]

    def predict(self, theta, rng):
        raise NotImplementedError("an audit releases nothing")


def _terms_without(record, model, rule, draws, seed):
    """Terms of all records by a rule that does not see one, whose weight is 0; None: it sees all."""
    if isinstance(rule, ppm.Terms):
        present = np.arange(model.records) != record
        return replace(rule, weights=rule.weights * present)
    others = model if record is None else _Without(model, record)

    def fit(what, *, draws=draws, trial=False, **sampler):
        if isinstance(what, ppm.Rule):
            what = what.terms(others, fit)
        return ppm.fit(
            others,
            what,
            draws=draws,
            random_seed=copied(seed),
            allow_disagreement=True,
            **sampler,
        )

    terms = rule.terms(others, fit)
    return terms if record is None else ppm.Terms(others.all_weights(terms))


def _audited_fit(model, terms, draws, seed, which):
    """A fit, unless its chains are at fault, where ``which`` names it."""
    fit = ppm.fit(model, terms, draws=draws, random_seed=seed, allow_disagreement=True)
    # the audit uses the score, whose R-hat is checked later
    if fit.diagnostics is not None and (faults := fit.diagnostics.faults_besides_r_hat):
        raise ChainsDisagreeError(
            f"no evidence, because of {which}: {'; '.join(faults)}"
        )
    return fit


def _score(log_p, ours, theirs):
    """Log ratio of two pseudo posteriors but for a constant, at every draw."""
    moved = ours.weights != theirs.weights
    if not moved.any():
        return np.zeros(len(log_p))
    values = log_p[:, moved]
    with np.errstate(over="ignore", invalid="ignore"):
        changes = ours.of(moved)(values) - theirs.of(moved)(values)
        return changes.sum(axis=1)


def _thinned(scores, which, draws):
    """Scores of chains that agree, thinned to their effective number."""
    disagreement = r_hat(scores)
    # a constant score, as of a record without observations, is no disagreement; written so that
    # NaN fails the comparison too
    if np.ptp(scores) != 0 and not disagreement <= R_HAT_LIMIT:
        raise ChainsDisagreeError(
            "no evidence, because chains disagree: R-hat of the score is "
            f"{disagreement:.3f} in {which}, above {R_HAT_LIMIT}; run more "
            "draws or a longer warm-up"
        )
    effective = effective_draws(scores)
    step = (
        1 if not np.isfinite(effective) else max(1, math.ceil(scores.size / effective))
    )
    scores = scores[:, ::step]
    if scores.size < 20:
        raise ValueError(
            f"draws must be more than {draws}: of those of {which} only {scores.size} "
            "are left after thinning to independent ones; accepted: at least 20"
        )
    return scores


def _bridged(with_record, without_record):
    """Largest absolute loss over the draws of both sides, normalised by Bennett's method."""
    from scipy.optimize import brentq
    from scipy.special import expit

    offset = np.log(with_record.size / without_record.size)

    def balance(constant):
        surplus = expit(constant - with_record - offset).sum()
        return surplus - expit(without_record - constant + offset).sum()

    both = np.concatenate([with_record, without_record])
    if np.ptp(both) == 0:
        return 0.0
    return float(
        np.abs(both - brentq(balance, both.min() - 50.0, both.max() + 50.0)).max()
    )


def membership_test(
    run_with,
    run_without,
    statistic,
    *,
    runs=200,
    confidence=0.95,
    delta=0.0,
    random_seed=None,
):
    """Black-box test of releases: can a recipient tell whether a record was in the database?

    The whole mechanism, weights included, runs again for every release, so that the test averages
    over all the randomness that a recipient cannot see.

    Parameters
    ----------
    run_with, run_without : callable
        Run the mechanism on the database, and on its neighbour: the same number of rows (which
        would otherwise distinguish the two), with weight 0 for the record and the others' weights
        computed without it. Each is a function of a SeedSequence that returns one released
        database; if it draws more than once, it uses streams spawned from that seed.
    statistic : callable
        Score of one released database, such as its mean or its largest value.
    runs : int, default 200
        Releases of each, 20 or more. No loss above about log(runs / 2) can be shown.
    confidence, delta : float
        As for :func:`loss_lower_bound`.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.

    Returns
    -------
    LossEvidence
        Evidence on the loss of a release, as far as this statistic shows it.

    Examples
    --------
    The "release" here is one normal number, whose mean is 2 with the record and 0 without it.

    >>> import numpy as np
    >>> from ppm_book import audits
    >>> def release(mean):
    ...     return lambda seed: np.random.default_rng(seed).normal(mean)
    >>> found = audits.membership_test(release(2.0), release(0.0), float, random_seed=1)
    >>> found.refutes(1.0), found.refutes(8.0)
    (True, False)
    """
    runs = check_count("runs", runs, at_least=20)
    functions = {
        "run_with": run_with,
        "run_without": run_without,
        "statistic": statistic,
    }
    for name, value in functions.items():
        if not callable(value):
            raise ValueError(f"{name} must be a function; got {type(value).__name__}")
    seeds = streams(random_seed, 2 * runs)
    with_record = [float(statistic(run_with(seed))) for seed in seeds[::2]]
    without_record = [float(statistic(run_without(seed))) for seed in seeds[1::2]]
    return loss_lower_bound(
        with_record, without_record, confidence=confidence, delta=delta
    )
