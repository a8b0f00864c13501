"""What an ε means for an attacker, and the statement beside a release."""

import textwrap
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal

import numpy as np

from ppm.checks import as_amounts, as_numbers, check_number
from ppm.diagnostics import ChainsDisagreeError

__all__ = ["belief_limits", "detection_limit", "release_statement", "Guarantee"]

_NEIGHBOUR = (
    "the same table, with the same public number of rows and the same public columns, in "
    "which the confidential value of one record is not used"
)
_CHOICES = "choices made by looking at the records"
_ALWAYS = (
    "the number of records, and values that are released unchanged",
    "what imputation or top-coding carried from one record to others: a value means the edited one",
    "other releases from these records, and other records of the same person: each adds its own ε",
    "whether a run ended at all, and its messages, warnings and time",
    "whoever holds the records or watches them being processed: the model of trust is central, and "
    "ε is about those who see the release alone",
)
_EXACT = "one release of exact draws, which a Markov chain does not give"
_PACKAGE = "errors in the package that drew the noise"
_SEED = "anyone who knows or guesses the seed"


@dataclass(frozen=True)
class Guarantee:
    """What one release promises, to whom, and what ε does not cover.

    An ``epsilon`` of the ``kind`` 'strict' follows from public constants alone, holds for every
    database and may be published. A 'local' one was computed from the records, describes them, and
    is confidential. What ε covers, what it does not, and what a neighbour is, is said in words;
    ``rounded`` says whether δ is 0 but for floating-point rounding.

    Examples
    --------
    >>> import ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20], shape=2, rate=0.4)
    >>> mechanism = ppm.PseudoPosteriorMechanism(model, censor=ppm.Censoring(-3, -2))
    >>> mechanism.run(draws=200, random_seed=1).guarantee.headline
    'strict: epsilon 1 for one release, for every database'
    """

    kind: str
    epsilon: float
    not_covered: tuple
    covered: str = "one release"
    neighbour: str = _NEIGHBOUR
    rounded: bool = False

    @property
    def headline(self):
        """Kind and ε in one line."""
        strict = self.kind == "strict"
        whose = (
            "every database" if strict else "these records and draws only, CONFIDENTIAL"
        )
        epsilon = _rounded_up(self.epsilon, 4)
        return f"{self.kind}: epsilon {epsilon:g} for {self.covered}, for {whose}"

    def __str__(self):
        """Kind, ε, neighbour, and what ε does not cover."""
        twice = (
            "; where a value replaces another, ε counts twice"
            if self.kind == "strict"
            else ""
        )
        sentences = (f"- {sentence}." for sentence in self.not_covered)
        lines = [
            self.headline,
            f"Neighbour: {self.neighbour}{twice}.",
            "Not covered:",
            *sentences,
        ]
        return "\n".join(
            textwrap.fill(line, 84, subsequent_indent="  ") for line in lines
        )


def guarantee_of(result, strict_epsilon=None):
    """Guarantee of one release of a `MechanismResult`; arguments as for the statement."""
    public_set = getattr(result.synthesizer, "public_set", "")
    if strict_epsilon is None and not result.strict:
        unseen = "parameters that the chains have not reached: the chains disagree"
        draws = "" if public_set else " and finitely many draws"
        return Guarantee(
            "local",
            result.epsilon(),
            (
                *([] if result.chains_agree else [unseen]),
                f"every other database: ε was computed from these records{draws}",
                "the effect of one record on the weights of others: ε holds only if there is none",
                _CHOICES,
                *_ALWAYS,
            ),
        )
    chains, ungated = result.diagnostics is not None, result.allow_disagreement
    secure = getattr(result.synthesizer, "secure_noise", False)
    conditions = [
        (
            not chains and not secure,
            "rounding: draws are exact and independent up to floating-point arithmetic",
        ),
        (secure, _PACKAGE),
        (
            chains,
            "the error of Markov chains, whether or not they agree: ε holds for exact and "
            "independent draws of the parameters, and theirs are neither",
        ),
        (
            chains and ungated,
            "whether the fit ended without an error (apart from that, the release "
            "was not gated by the records: whoever ran the fit asserts that it was decided before, "
            "whether or not the chains would agree)",
        ),
        (
            chains and not ungated,
            "the decision to release, which depended on the records: there is "
            "a release only because the fit ended without an error and the chains agreed",
        ),
        (
            not secure,
            f"{_SEED}, or predicts the random numbers, whose generators are not "
            "cryptographic, and can subtract the noise: give no seed for an actual release",
        ),
        (
            strict_epsilon is not None and not public_set,
            "parameters outside the set over which ε "
            "was computed: the prior must be restricted to it",
        ),
        (
            result.has_weights and result.cap is None,
            "weights that depend on other records: whoever "
            "gave the weights asserts that each depends only on its own record and on public values",
        ),
    ]
    not_covered = [sentence for applies, sentence in conditions if applies]
    fixed = "candidates, their groups" if public_set else "prior"
    not_covered.append(
        f"{_CHOICES}: model, {fixed}, any limits with their center and any rule for "
        "weights must be fixed without looking at them"
    )
    return Guarantee(
        "strict",
        strict_epsilon or result.epsilon(),
        (*not_covered, *_ALWAYS),
        _EXACT if chains else "one release",
        rounded=not secure,
    )


def histogram_guarantee(epsilon, *, secure):
    """Guarantee of databases drawn from a histogram with discrete Laplace noise."""
    seeded = (
        f"{_SEED}, and can subtract the noise: for an actual release use secure_noise=True",
        "the law of the noise beyond double precision: seeded noise follows it no further",
    )
    return Guarantee(
        "strict",
        epsilon,
        (
            *([_PACKAGE] if secure else seeded),
            f"{_CHOICES}: limits, bins and groups must be public",
            *_ALWAYS,
        ),
        "the noisy counts and any number of releases drawn from them",
        rounded=not secure,
    )


def belief_limits(prior, epsilon):
    r"""How far a release can move an attacker's belief that a record's value was used.

    Bayes' rule with a likelihood ratio between :math:`e^{-\epsilon}` and :math:`e^{\epsilon}`, for
    an attacker who knows all other records and everything public. A local ε gives no such limits.

    Parameters
    ----------
    prior : float or array_like
        Probability before the release, between 0 and 1.
    epsilon : float or array_like
        ε for every database, in nats; 2ε for the belief in one of two values of a record.

    Returns
    -------
    low, high : float or numpy.ndarray
        Smallest and largest probability afterwards.

    Examples
    --------
    >>> import ppm
    >>> low, high = ppm.disclosure.belief_limits(0.5, 1.0)
    >>> round(float(high), 3)
    0.731
    """
    from scipy.special import expit, logit

    prior, epsilon = as_numbers("prior", prior), as_amounts("epsilon", epsilon)
    if not np.all((prior > 0) & (prior < 1)):
        raise ValueError(
            "prior must be a probability between 0 and 1, neither included"
        )
    return expit(logit(prior) - epsilon), expit(logit(prior) + epsilon)


def detection_limit(false_alarms, epsilon):
    r"""Largest probability that a test with a rate a of false alarms detects a record's value.

    The test says "this value was used" with probability a, ``false_alarms``, where it was not, and
    where it was with probability at most :math:`\min(e^\epsilon a, 1 - e^{-\epsilon}(1 - a))`.
    Numbers or arrays; ε is as for :func:`belief_limits`.

    Examples
    --------
    >>> import ppm
    >>> float(ppm.disclosure.detection_limit(0.05, 1.0).round(3))
    0.136
    """
    rate, epsilon = (
        as_numbers("false_alarms", false_alarms),
        as_amounts("epsilon", epsilon),
    )
    if not np.all((rate >= 0) & (rate <= 1)):
        raise ValueError("false_alarms must be probabilities in [0, 1]")
    with np.errstate(over="ignore", invalid="ignore"):
        up = np.exp(epsilon) * rate
    # a test without false alarms detects nothing, unless ε is infinite
    up = np.where(rate > 0, up, np.where(epsilon == np.inf, np.inf, 0.0))
    return np.minimum(up, -np.expm1(-epsilon) + np.exp(-epsilon) * rate)[()]


def release_statement(result, release=None, *, strict_epsilon=None):
    """A paragraph to publish beside a release: what is promised, and on which conditions.

    It contains nothing that was computed from the confidential records: no local ε or Δ. It states
    ε and odds only if ε holds for every database, and then what NIST SP 800-226 asks of a claim: ε
    and δ, unit of privacy and neighbour, what is public, what adds to ε, whom one has to trust, and
    the random numbers. Unless the result is strict, there is no statement if the chains disagree,
    also under ``allow_disagreement``.

    Parameters
    ----------
    result : ppm.mechanism.MechanismResult or HistogramRelease
        The run that the release was drawn from, or what :func:`ppm.histogram_release` returned,
        which needs nothing else.
    release : xarray.DataArray or xarray.Dataset, optional
        All that one call of ``result.synthesize`` returned.
    strict_epsilon : float, optional
        ε of one release that holds for *every* database, in nats, from public constants alone: for
        example M for weights that each record determines alone, which cap oscillations at M over a
        public set to which the prior is restricted. The run needs ``independent_weights=True``.
        Both are your word. A strict run with ``censor`` has its own ε.

    Examples
    --------
    >>> import ppm
    >>> mechanism = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson([3, 5, 4, 6, 20]))
    >>> result = mechanism.run(draws=200, random_seed=1)
    >>> statement = ppm.disclosure.release_statement(result, result.synthesize(2, random_seed=2))
    >>> "no limit is claimed" in statement
    True
    """
    if hasattr(result, "noisy_counts"):
        (releases, records), (groups, bins) = (
            result.synthetic.shape,
            result.noisy_counts.shape,
        )
        return (
            f"{releases} × {records:,} synthetic values (releases × records), drawn from counts "
            "with discrete Laplace noise. Public are the ends of the histogram, "
            f"{result.edges[0]:.15g} and {result.edges[-1]:.15g}, its {bins:,} bins of equal "
            f"width, the groups of records ({groups:,}) and the number of records in each. "
            f"{_promise(result.guarantee)}"
        )
    if not (result.strict or result.chains_agree):
        raise ChainsDisagreeError("no statement can be made: the chains disagree")
    attributes, sizes = (getattr(release, name, {}) for name in ("attrs", "sizes"))
    many = attributes.get("releases", 0)
    public = result.epsilon(many) if result.strict and many else None
    together = attributes.get("epsilon_total", 0.0)
    wrong = attributes.get("epsilon") != public or (
        public is not None and together < public
    )
    if not many or sizes.get("release") != many or wrong:
        raise ValueError(
            "release must be all that one call of result.synthesize() returned; got "
            f"{type(release).__name__} of another size or origin"
        )
    if strict_epsilon is not None:
        strict_epsilon = check_number("strict_epsilon", strict_epsilon, above=0)
        if result.strict or not result.independent_weights:
            raise ValueError(
                "strict_epsilon is for runs without limits whose weights react to no "
                "other record: a mechanism with weights=…, independent_weights=True"
            )
        if result.oscillation_bound > strict_epsilon:  # by how much is confidential
            raise ValueError(
                "strict_epsilon is contradicted by this run: over its draws a "
                "record's weighted log-likelihood moves by more than that"
            )
    draws = result.draws_charged(many)
    sentences = [_origin(result, many, draws)]
    public_set = getattr(result.synthesizer, "public_set", "")
    if public_set:
        several = draws > 1 and "candidates_drawn" in attributes
        drawn = f"; {drawn_in_words(attributes['candidates_drawn'])}" if several else ""
        sentences.append(
            f"Public are {public_set}, the only ones that could be drawn{drawn}."
        )
    guarantee = guarantee_of(result, strict_epsilon)
    if guarantee.kind == "strict":
        sentences.append(_promise(guarantee, draws, result.diagnostics is not None))
        if public is not None and together > public:
            sentences.append(
                "With everything that was released from the same fit before, ε is "
                f"{_rounded_up(together, 10):.10g}."
            )
        return " ".join(sentences)
    if result.unweighted is None:
        sentences.append("Whoever supplied the weights must say where they come from.")
    else:
        sentences.append("The weights were computed from all records.")
    draws = "" if public_set else " and a finite number of draws"
    return " ".join(
        [
            *sentences,
            "For this release no limit is claimed on what it reveals about a record's "
            f"value: the privacy expenditure that was computed describes one database{draws}, was "
            "itself computed from the confidential records, and is not published. Not covered: "
            f"{'; '.join(_ALWAYS)}.",
        ]
    )


def drawn_in_words(different):
    """How many different candidates were drawn: a number, or one for each group."""
    if np.ndim(different):
        least = min(different)
        return f"in each group at least {least:,} of them {'was' if least == 1 else 'were'} drawn"
    return f"{different:,} of them {'was' if different == 1 else 'were'} drawn"


def _origin(result, many, draws):
    """How the databases of a release were made, from so many draws, in two or three sentences."""
    steps = []
    if result.cap is not None:
        steps.append(
            "multiplied by a weight that keeps its range over all candidates within "
            f"{result.cap:g}"
        )
    elif result.has_weights:
        steps.append("multiplied by a weight")
    if result.censor is not None:
        centered = (
            ", less its value at public parameters," if result.censor.center else ""
        )
        steps.append(f"kept{centered} between two limits")
    shared = (
        ""
        if draws == many
        else f" They share draws, of which there are {draws} in all."
    )
    return (
        f"{many} × {result.weights.size:,} synthetic records (releases × records), each release "
        "drawn from the predictions of a Bayesian model of confidential records, at one draw of "
        f"the model's parameters.{shared} When the model was fitted, each record's log-likelihood "
        f"was {' and '.join(steps)}."
    )


def _promise(guarantee, draws=None, chain=False):
    """What a strict guarantee says, for publication; without ``draws``, of all that it covers."""
    each = _rounded_up(guarantee.epsilon, 4)
    total = (draws or 1) * each
    amount = (
        f"{draws} × {each:g} = {total:.10g}"
        if draws
        else f"{each:g} for {guarantee.covered}"
    )
    begins = (
        "If its draws were exact, the release would be" if chain else "The release is"
    )
    rounding = " but for rounding" if guarantee.rounded else ""
    return (
        f"{begins} ε-differentially private with ε = {amount}, for every possible "
        f"database, and δ = 0{rounding}. The unit of privacy is the confidential value of one "
        f"record: a neighbour is {guarantee.neighbour}. An attacker who knew all other records, "
        "and gave even odds that a certain value of a record was used rather than none, could "
        f"then reach odds of up to about {_odds(total)} to 1; between two values of the record, of "
        f"up to about {_odds(2 * total)} to 1. Not covered: {'; '.join(guarantee.not_covered)}."
    )


def _odds(epsilon):
    """e^ε, not less, as 2.72, 5,190 or 10^174.8."""
    if epsilon < np.log(0.999e6):
        return f"{_rounded_up(np.exp(epsilon), 3):,g}"
    return f"10^{np.ceil(10.0 * epsilon / np.log(10.0)) / 10.0:.1f}"


def _rounded_up(value, digits):
    """The value with so many digits, not smaller but for the rounding of floating point."""
    context = Context(prec=digits, rounding=ROUND_CEILING)
    return float(context.create_decimal(Decimal(float(value) * (1.0 - 1e-12))))
