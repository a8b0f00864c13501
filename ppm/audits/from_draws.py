"""Sampled privacy audits of any synthesizer: evidence against a claimed ε, never a proof of one.

Everything in this module is computed from the confidential records and is confidential itself.
"""

import math
import textwrap
from dataclasses import dataclass
from functools import partial

import numpy as np

from ppm import pdp
from ppm._random import numbered, streams
from ppm._validation import (
    as_numbers,
    check_count,
    check_number,
    check_share,
    check_weights,
    shown,
)
from ppm.censoring import check_censor
from ppm.diagnostics import (
    R_HAT_LIMIT,
    ChainsDisagreeError,
    effective_draws,
    r_hat,
)
from ppm.lipschitz import blocks_of, record_bounds
from ppm.mechanism import bound_fit
from ppm.synthesizers.base import as_synthesizer
from ppm.synthesizers.chains import with_bar
from ppm.weights import record_weights

#: printed with every audit
CONFIDENTIAL_EVIDENCE = (
    "confidential: what leaving out a named record would change is computed from the records, "
    "outside any epsilon"
)


@dataclass(frozen=True)
class LossEvidence:
    """Lower bound on a privacy loss, from samples of what two databases release.

    It can refute a claimed ε at the stated confidence. It cannot confirm one: another event, or
    more samples, may show a larger loss.

    Attributes
    ----------
    lower : float
        Lower confidence limit on the log ratio of the probabilities of one event, 0 or more, in
        nats.
    confidence : float
        Probability, over samples, that such a limit is not above the loss.
    event : str
        The event, in words.
    with_record, without_record : int
        How often the event occurred in the samples that did not choose it, with and without the
        record.
    samples : tuple of int
        How many such samples there were, with and without the record.
    delta : float
        Probability that the claim leaves out, as δ in (ε, δ).

    Examples
    --------
    >>> import numpy as np, ppm
    >>> rng = np.random.default_rng(1)
    >>> print(ppm.audits.loss_lower_bound(rng.normal(2.0, size=1000), rng.normal(size=1000)))
    evidence, not proof: the loss is at least 2.46 nats at 95% confidence (score at least 2.809: 101
    of 500 samples with the record, 2 of 500 without it)
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

    One half of the samples chooses an event "score at least t" or "score below t", and which side
    sees it more often; the other half bounds its two probabilities by exact binomial limits.

    Parameters
    ----------
    with_record, without_record : array_like
        Scores of independent samples released from the database with the record and without it,
        of any shape, at least 20 each. The best score is the log ratio of the two densities.
    confidence : float, default 0.95
        Confidence of the bound, between 0 and 1.
    delta : float, default 0
        The δ of a claim (ε, δ): probability in which ε may be exceeded.

    Returns
    -------
    LossEvidence
        The bound, and the event behind it. With N samples in a half no loss above about log N can
        be shown.

    Raises
    ------
    ValueError
        If there are too few scores, or NaN among them, or an argument is out of range.

    Notes
    -----
    The definition of differential privacy in section 1.1 of Savitsky, Williams and Hu (2022), read
    backwards: :math:`\epsilon \ge \log((P(B) - \delta)/Q(B))` for every event B.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> rng = np.random.default_rng(1)
    >>> found = ppm.audits.loss_lower_bound(rng.normal(2.0, size=1000), rng.normal(0.0, size=1000))
    >>> found.refutes(1.0), found.refutes(8.0)
    (True, False)
    """
    confidence = check_share("confidence", confidence)
    delta = check_number("delta", delta, at_least=0, at_most=1)
    scores = []
    for name, values in (("with_record", with_record), ("without_record", without_record)):
        values = as_numbers(name, values).ravel()
        if values.size < 20 or np.isnan(values).any():
            raise ValueError(f"{name} must hold at least 20 scores and no NaN")
        scores.append(values)
    # alternating, so that a drift along the samples reaches both halves
    chosen, tested = [[side[start::2] for side in scores] for start in (0, 1)]
    levels = np.unique(np.concatenate(chosen))
    # a few hundred thresholds are plenty
    levels = levels[np.linspace(0, levels.size - 1, min(levels.size, 400)).astype(int)]
    best = None
    for swapped in (False, True):
        for above in (True, False):
            counts = [_occurrences(side, levels, above) for side in chosen]
            sizes = [side.size for side in chosen]
            if swapped:
                counts, sizes = counts[::-1], sizes[::-1]
            lower = _log_ratio_limit(*counts, *sizes, confidence, delta)
            place = int(np.argmax(lower))
            if best is None or lower[place] > best[0]:
                best = lower[place], swapped, above, levels[place]
    _, swapped, above, level = best
    counts = [int(_occurrences(side, np.array([level]), above)[0]) for side in tested]
    sizes = [side.size for side in tested]
    ordered = (*counts[::-1], *sizes[::-1]) if swapped else (*counts, *sizes)
    lower = _log_ratio_limit(*(np.array([value]) for value in ordered), confidence, delta)[0]
    return LossEvidence(
        lower=max(0.0, float(lower)),
        confidence=confidence,
        event=f"score {'at least' if above else 'below'} {level:.4g}",
        with_record=counts[0],
        without_record=counts[1],
        samples=tuple(sizes),
        delta=delta,
    )


def _occurrences(scores, levels, above):
    below = np.searchsorted(np.sort(scores), levels, side="left")
    return scores.size - below if above else below


def _log_ratio_limit(often, seldom, often_of, seldom_of, confidence, delta):
    """Lower limit on log((P - δ)/Q) from binomial counts; each of the two limits errs half."""
    from scipy.stats import beta

    error = (1.0 - confidence) / 2.0
    # Clopper and Pearson's one-sided limits; they are 0 and 1 at the ends
    low = np.where(often > 0, beta.ppf(error, np.maximum(often, 1), often_of - often + 1), 0.0)
    high = np.where(
        seldom < seldom_of, beta.ppf(1 - error, seldom + 1, np.maximum(seldom_of - seldom, 1)), 1.0
    )
    kept = np.maximum(low - delta, 0.0)
    return np.log(kept, out=np.full(np.shape(kept), -np.inf), where=kept > 0) - np.log(high)


@dataclass(frozen=True)
class SampledAudit:
    """Audit of some records of a database by refits without each of them.

    Attributes
    ----------
    evidence : dict of int to LossEvidence
        For every audited record, a lower bound on the loss, all of them true together at
        ``confidence``.
    estimates : dict of int to float
        For every audited record, the largest absolute loss over the draws of both sides as the
        bridge estimate of the normalising constants gives it, in nats: no bound, and unreliable
        where the two posteriors hardly overlap.
    moved : dict of int to float
        For every audited record, the largest change of another record's weight.
    local_bound, oscillation_bound : float
        Δ and the oscillation bound of the whole database over its draws, in nats.
    confidence : float
        Joint confidence of the evidence.
    draws : int
        Draws of θ on each side that the evidence uses, after thinning.
    censor : ppm.Censoring or None
        The limits of the terms, whose bounds the two bounds then are.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> audit = ppm.audits.sampled(model, [4], weighting=np.ones(5), draws=500, random_seed=1)
    >>> audit.refutes(), audit.refutes(0.1)
    (False, True)
    """

    evidence: dict
    estimates: dict
    moved: dict
    local_bound: float
    oscillation_bound: float
    confidence: float
    draws: int
    censor: object = None

    @property
    def claim(self):
        """The ε that is audited, in nats: the width of the limits, or 2Δ without any."""
        return pdp.epsilon(self.local_bound) if self.censor is None else self.censor.width

    @property
    def lower(self):
        """Largest lower bound on the loss, in nats."""
        return max(found.lower for found in self.evidence.values())

    def refutes(self, epsilon=None):
        """Whether the evidence contradicts a claim of ε, in nats; by default :attr:`claim`."""
        epsilon = self.claim if epsilon is None else epsilon
        return any(found.refutes(epsilon) for found in self.evidence.values())

    def __str__(self):
        """The largest lower bound in words, and that all of it stays inside."""
        where = "2Δ over these draws" if self.censor is None else "width of the limits"
        return (
            f"evidence, not proof: the loss of a record is at least {self.lower:.2f} nats at "
            f"{self.confidence:.0%} confidence; {where}: {self.claim:.2f}\n"
            f"{textwrap.fill(CONFIDENTIAL_EVIDENCE, 84)}"
        )

    def table(self):
        """One row for each audited record, in nats: a pandas.DataFrame."""
        import pandas as pd

        return pd.DataFrame(
            {
                "lower bound": {i: found.lower for i, found in self.evidence.items()},
                "estimate": self.estimates,
                "oscillation": self.oscillation_bound,
                "2Δ" if self.censor is None else "W": self.claim,
                "largest change of a weight": self.moved,
            }
        ).rename_axis("record")


def sampled(
    synthesizer, records, *, weighting=record_weights, censor=None, draws=1000, confidence=0.95,
    delta=0.0, random_seed=None, executor=None, progress=False,
):
    r"""Audit any synthesizer by refits without chosen records: evidence on the loss of θ.

    The neighbour is the same table, with the same public number of rows and the same predictors, in
    which the record's confidential outcome takes no part: it has weight 0 in *both* fits, and the
    weights of the others are computed from the others. What the model is told besides outcomes
    stays as it is, and is not protected.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer or pymc.Model
        The model, holding the confidential records. A PyMC model is taken as it is written, by
        :class:`ppm.PyMCSynthesizer` with its default settings.
    records : sequence of int
        Positions of the records to leave out, one at a time; each costs two fits.
    weighting : callable or array_like, shape (records,)
        Rule from the bounds of the records left, under the unweighted posterior, to their weights,
        such as :func:`ppm.record_weights` or a ``functools.partial`` of it; or weights that stay
        fixed.
    censor : ppm.Censoring, optional
        Public limits of every record's weighted term, in the fits that are audited. By default the
        claim is then their width, which holds where the weights stay fixed.
    draws : int, default 1000
        Kept draws a chain of each fit.
    confidence : float, default 0.95
        Joint confidence of all bounds.
    delta : float, default 0
        As for :func:`loss_lower_bound`.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness. The fits behind the weights use the same stream with and without a
        record; those that are audited, independent ones.
    executor : concurrent.futures.Executor, optional
        Where the records are left out, one task each; in this process by default. The numbers do
        not depend on it.
    progress : bool, default False
        Whether the synthesizer shows how far it is; not on an executor.

    Returns
    -------
    SampledAudit
        A lower bound for each record, with the bounds it is to be compared with.

    Raises
    ------
    TypeError
        If ``synthesizer`` is neither a synthesizer nor a PyMC model, or its ``fit`` takes no
        ``censor`` where one is given.
    ValueError
        If a record is named twice or does not exist, a chain holds too few draws that may pass for
        independent ones, or another argument is out of range.
    ChainsDisagreeError
        If the chains of a fit disagree on the score, stand still or diverge often.

    Notes
    -----
    The score of a draw is :math:`\sum_j (\alpha_j(x) - \alpha_j(y)) \log p(x_j \mid \theta)`, or
    the like difference of the censored terms: up to a constant it is the log ratio of the two
    pseudo posteriors, the best score there is. Draws of
    a Markov chain are thinned to their effective number and then counted as independent, which is
    an approximation. The bounds are on the loss given the weights that these fits produced.

    Examples
    --------
    >>> import ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> audit = ppm.audits.sampled(model, [4], draws=500, random_seed=1)
    >>> audit.table().round(2)
            lower bound  estimate  oscillation    2Δ  largest change of a weight
    record
    4              0.61      6.41         1.84  7.35                         1.0
    """
    synthesizer = as_synthesizer(synthesizer)
    try:
        records = [check_count("records", i, at_least=0) for i in records]
    except (TypeError, ValueError):
        # not the positions, perhaps the records themselves
        records = []
    if not records or len(set(records)) != len(records) or max(records) >= synthesizer.records:
        raise ValueError(
            f"records must name different positions from 0 to {synthesizer.records - 1}"
        )
    draws = check_count("draws", draws, at_least=40)
    confidence = check_share("confidence", confidence)
    fixed = None if callable(weighting) else check_weights(weighting, synthesizer.records)
    censor = check_censor(synthesizer, censor)
    seeds = streams(random_seed, 2 + len(records))

    rule = weighting if fixed is None else fixed
    weights = _weigh(synthesizer, rule, draws, seeds[0], None, progress)
    whole = _drawn(
        synthesizer, weights, censor, draws, seeds[1], "the fit of the whole database", progress
    )
    here = synthesizer.log_likelihood(whole.draws)
    leave_out = partial(
        _leave_out, synthesizer, rule, censor, draws, seeds[0], weights, progress and not executor
    )
    found = (executor.map if executor else map)(leave_out, records, seeds[2:])
    evidence, estimates, moved, kept = {}, {}, {}, []
    for record, (others, theirs) in zip(records, found, strict=True):
        ours, scores = _score(here, weights, others, censor), []
        for side, score in (("with", ours), ("without", theirs)):
            if whole.diagnostics is not None:  # else draws that are independent
                _check_chains(score, f"the fit {side} record {record}")
                score = _thinned(score)
                if score.size < 20:
                    raise ValueError(
                        f"draws must be more than {draws}: the fit {side} record {record} has only "
                        f"{score.size} that may pass for independent ones; accepted: at least 20"
                    )
            scores.append(score.ravel())
        evidence[record] = loss_lower_bound(
            *scores, confidence=1.0 - (1.0 - confidence) / len(records), delta=delta
        )
        estimates[record] = _bridged(*scores)
        moved[record] = float(np.abs(np.delete(weights - others, record)).max(initial=0.0))
        kept += [score.size for score in scores]
    return SampledAudit(
        evidence=evidence, estimates=estimates, moved=moved, local_bound=whole.local_bound,
        oscillation_bound=whole.oscillation_bound, confidence=confidence, draws=min(kept),
        censor=censor,
    )


def _leave_out(synthesizer, rule, censor, draws, seed_of_weights, weights, progress, record, seed):
    """Weights without the record, and the score of every draw of the fit with these weights."""
    others = _weigh(synthesizer, rule, draws, seed_of_weights, record, progress)
    fit = _drawn(
        synthesizer, others, censor, draws, seed, f"the fit without record {record}", progress
    )
    return others, _score(synthesizer.log_likelihood(fit.draws), weights, others, censor)


def _weigh(synthesizer, rule, draws, seed, left_out, progress):
    """Weights by a rule, or fixed ones; that of a record that is left out is 0."""
    there = np.ones(synthesizer.records)
    if left_out is not None:
        there[left_out] = 0.0
    if not callable(rule):
        return rule * there
    fit = synthesizer.fit(there, draws=draws, random_seed=numbered(seed), progress=progress)
    bounds = record_bounds(synthesizer.log_likelihood(fit))[there > 0]
    weights = np.zeros(synthesizer.records)
    weights[there > 0] = check_weights(rule(bounds), bounds.size)
    return weights


def _drawn(synthesizer, weights, censor, draws, seed, which, progress):
    """A fit that is audited."""
    limits = {} if censor is None else {"censor": censor}
    fit = synthesizer.fit(weights, draws=draws, random_seed=seed, progress=progress, **limits)
    found = bound_fit(synthesizer, fit, weights, allow_disagreement=True, **limits)
    # what is followed here is the score, whose R-hat is looked at later
    faults = () if found.diagnostics is None else found.diagnostics.faults_besides_r_hat
    if faults:
        raise ChainsDisagreeError(f"no evidence, because of {which}: {'; '.join(faults)}")
    return found


def _score(log_lik, weights, others, censor):
    """Log ratio of two pseudo posteriors but for a constant, at every draw: (chains, draws)."""
    sizes, blocks = blocks_of(log_lik)
    total = np.zeros([*sizes.values()][:-1])
    for *place, columns, values in blocks:
        ours, theirs = weights[columns], others[columns]
        used = np.flatnonzero(ours != theirs)
        values, ours, theirs = values[..., used], ours[used], theirs[used]
        if censor is None:
            total[tuple(place)] += values @ (ours - theirs)
        elif used.size:
            change = censor.terms(values, ours) - censor.terms(values, theirs)
            total[tuple(place)] += change.sum(axis=-1)
    return total.reshape(-1, sizes["draw"])


def _check_chains(scores, which):
    found = r_hat(scores)
    # the same for all draws, as the score of a record of which nothing was observed, is no
    # disagreement; written so that NaN fails the comparison too
    if np.ptp(scores) != 0 and not found <= R_HAT_LIMIT:
        raise ChainsDisagreeError(
            f"no evidence, because chains disagree: R-hat of the score is {found:.3f} in {which}, "
            f"above {R_HAT_LIMIT}; run more draws or a longer warm-up"
        )


def _thinned(scores):
    """Draws that may pass for independent ones."""
    effective = effective_draws(scores)
    step = 1 if not np.isfinite(effective) else max(1, math.ceil(scores.size / effective))
    return scores[:, ::step]


def _bridged(here, there):
    """Largest absolute loss over both sides' draws, its constant by Bennett's acceptance ratio."""
    from scipy.optimize import brentq
    from scipy.special import expit

    offset = np.log(here.size / there.size)

    def balance(constant):
        return expit(constant - here - offset).sum() - expit(there - constant + offset).sum()

    both = np.concatenate([here, there])
    if np.ptp(both) == 0:
        return 0.0
    ends = both.min() - 50.0, both.max() + 50.0
    constant = brentq(balance, *ends)
    return float(np.abs(both - constant).max())


def membership_test(
    run_with, run_without, statistic, *, runs=200, confidence=0.95, delta=0.0, random_seed=None,
    progress=False,
):
    """Black-box test on released data: can one tell from a release that a record took part?

    The whole mechanism runs again for every release, weights included, so that all its randomness
    is averaged over as a recipient's would be.

    Parameters
    ----------
    run_with, run_without : callable
        Run the mechanism on the database, and on its neighbour: the same table, with the same
        public number of rows, in which the record's value takes no part (weight 0, and weights of
        the others from the others alone). Each is a function of a SeedSequence that returns one
        released database; if it draws more than once, from streams spawned from that seed. With a
        row less in its place the number of rows alone tells the two apart, whatever the weights.
    statistic : callable
        Score of one released database, such as its mean or its largest value.
    runs : int, default 200
        Releases of each, 20 or more.
    confidence : float, default 0.95
        Confidence of the bound.
    delta : float, default 0
        As for :func:`loss_lower_bound`.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.
    progress : bool, default False
        Whether to show a bar; needs tqdm.

    Returns
    -------
    LossEvidence
        Evidence on the loss of a release, as far as this statistic sees it. With N runs of each,
        no loss above about log(N / 2) can be shown.

    Raises
    ------
    ValueError
        If an argument is out of range or the statistic is NaN.

    Examples
    --------
    The "release" here is one normal number, whose mean is 2 with the record and 0 without it.

    >>> import numpy as np, ppm
    >>> def release(mean):
    ...     return lambda seed: np.random.default_rng(seed).normal(mean)
    >>> found = ppm.audits.membership_test(release(2.0), release(0.0), float, random_seed=1)
    >>> found.refutes(1.0), found.refutes(8.0)
    (True, False)
    """
    runs = check_count("runs", runs, at_least=20)
    for name, value in (
        ("run_with", run_with), ("run_without", run_without), ("statistic", statistic)
    ):
        if not callable(value):
            raise ValueError(f"{name} must be a function; got {shown(value)}")
    seeds = streams(random_seed, 2 * runs)
    steps = list(zip(seeds[::2], seeds[1::2], strict=True))
    scores = np.array(
        [
            (float(statistic(run_with(one))), float(statistic(run_without(other))))
            for one, other in with_bar(
                steps, "Releases with and without the record", show=progress
            )
        ]
    )
    return loss_lower_bound(scores[:, 0], scores[:, 1], confidence=confidence, delta=delta)
