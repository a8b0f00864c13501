"""What an ε means for an attacker, and the statement beside a release."""

import re
import textwrap
import tomllib
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from importlib import resources

import numpy as np

from ppm.checks import as_amounts, as_numbers
from ppm.diagnostics import ChainsDisagreeError

__all__ = ["belief_limits", "detection_limit", "release_statement", "Guarantee"]

# the sentences, by the names that the conditions below give them
WORDS = tomllib.loads(resources.files("ppm").joinpath("words.toml").read_text("utf-8"))
_ALWAYS = ("unchanged", "imputed", "others", "ended", "holders")


@dataclass(frozen=True)
class Guarantee:
    """What one release promises, to whom, and what ε does not cover.

    An ``epsilon`` of the ``kind`` 'strict' follows from public constants alone, holds for every
    database and may be published. A 'local' one was computed from the records, describes them, and
    is confidential. ``covers`` and ``reasons`` name what ε covers and why it does not cover more;
    :attr:`covered`, :attr:`not_covered` and :attr:`neighbour` say it in words. ``rounded`` says
    whether δ is 0 but for floating-point rounding.

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
    reasons: tuple
    covers: str = "release"
    rounded: bool = False

    @property
    def covered(self):
        """What ε covers, in words."""
        return WORDS["covered"][self.covers]

    @property
    def not_covered(self):
        """What ε does not cover, a sentence for each reason."""
        return tuple([WORDS["not_covered"][reason] for reason in self.reasons])

    @property
    def neighbour(self):
        """What a neighbour of a table is, in words."""
        return WORDS["neighbour"]

    @property
    def headline(self):
        """Kind and ε in one line."""
        epsilon = f"{_rounded_up(self.epsilon, 4):g}"
        return WORDS["headline"][self.kind].format(
            epsilon=epsilon, covered=self.covered
        )

    def __str__(self):
        """Kind, ε, neighbour, and what ε does not cover."""
        twice = WORDS["twice"] if self.kind == "strict" else ""
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


def guarantee_of(fit):
    """Guarantee of one release of a :class:`ppm.Fit`."""
    if not fit.strict:
        return Guarantee("local", fit.epsilon(), tuple(_local_reasons(fit)))
    return Guarantee(
        "strict",
        fit.epsilon(),
        tuple(_strict_reasons(fit)),
        covers="release" if fit.diagnostics is None else "exact",
        rounded=not fit.model.secure_noise,
    )


def _local_reasons(fit):
    if not fit.chains_agree:
        yield "unreached"
    yield "databases" if fit.model.public_set else "databases_and_draws"
    yield "reaction"
    yield "choices"
    yield from _ALWAYS


def _strict_reasons(fit):
    if fit.model.secure_noise:
        yield "package"
    elif fit.diagnostics is None:
        yield "rounding"
    if fit.diagnostics is not None:
        yield "chains"
        yield "ungated" if fit.allow_disagreement else "gated"
    if not fit.model.secure_noise:
        yield "seed"
    if fit.terms.source == "caller":
        yield "weights"
    yield "choices_of_candidates" if fit.model.public_set else "choices_of_model"
    yield from _ALWAYS


def noisy_guarantee(epsilon, covers, *, secure):
    """Guarantee of what is made of counts or sums with discrete Laplace noise."""
    noise = ["package"] if secure else ["seed_of_noise", "law_of_noise"]
    reasons = (*noise, "choices_of_bins", *_ALWAYS)
    return Guarantee("strict", epsilon, reasons, covers=covers, rounded=not secure)


def release_statement(result, release=None):
    """A paragraph to publish beside a release: what is promised, and on which conditions.

    It contains nothing that was computed from the confidential records: no local ε or Δ. It states
    ε and odds only if ε holds for every database, and then what NIST SP 800-226 asks of a claim: ε
    and δ, unit of privacy and neighbour, what is public, what adds to ε, whom one has to trust, and
    the random numbers. Unless the result is strict, there is no statement if the chains disagree,
    also under ``allow_disagreement``.

    Parameters
    ----------
    result : ppm.Fit or ppm.noisy.NoisyRelease
        The fit that the release was drawn from, or what a function such as
        :func:`ppm.histogram_release` returned, which needs nothing else.
    release : xarray.DataArray or xarray.Dataset, optional
        All that one call of ``result.synthesize`` returned.

    Examples
    --------
    >>> import ppm
    >>> mechanism = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson([3, 5, 4, 6, 20]))
    >>> result = mechanism.run(draws=200, random_seed=1)
    >>> statement = ppm.disclosure.release_statement(result, result.synthesize(2, random_seed=2))
    >>> "no limit is claimed" in statement
    True
    """
    return " ".join(result.statement(release))


def statement_of(fit, release):
    """Sentences of the statement for all that one call of ``fit.synthesize`` returned."""
    if not (fit.strict or fit.chains_agree):
        raise ChainsDisagreeError("no statement can be made: the chains disagree")
    known = _check_release(fit, release)
    words, public_set = WORDS["statement"], fit.model.public_set
    many = known["releases"]
    draws = fit.draws_charged(many)
    yield words["model"].format(
        releases=many,
        records=fit.terms.records,
        shared="" if draws == many else words["shared"].format(draws=draws),
        steps=" and ".join(_steps(fit.terms)),
    )
    if public_set:
        several = draws > 1 and "candidates_drawn" in known
        drawn = f"; {drawn_in_words(known['candidates_drawn'])}" if several else ""
        yield words["public_set"].format(public_set=public_set, drawn=drawn)
    if fit.strict:
        yield _promise(fit.guarantee, draws, fit.diagnostics is not None)
        if known["epsilon_total"] > known["epsilon"]:
            together = _rounded_up(known["epsilon_total"], 10)
            yield words["together"].format(epsilon=together)
        return
    if fit.terms.source == "caller":
        yield words["weights_given"]
    elif fit.terms.source == "all records":
        yield words["weights_computed"]
    yield words["local"].format(
        described=words["described" if public_set else "described_by_draws"],
        not_covered="; ".join([WORDS["not_covered"][one] for one in _ALWAYS]),
    )


def noisy_statement(release):
    """Sentences of the statement for a :class:`ppm.noisy.NoisyRelease`."""
    yield release.made
    yield _promise(release.guarantee)


def in_lines(sentences):
    """A statement with a sentence a line, and a line for each thing that is not covered."""
    lines = []
    for one in sentences:
        for line in re.sub(r"(?<=\.) (?=[A-Z])", "\n", one).splitlines():
            if line.startswith("Not covered: "):
                line = line.replace(": ", ":\n- ", 1).replace("; ", ";\n- ")
            lines.append(line)
    return "\n".join(lines)


def drawn_in_words(different):
    """How many different candidates were drawn: a number, or one for each group."""
    number = np.min(different)
    which = "one" if number == 1 else "many"
    if np.ndim(different):
        which += "_in_groups"
    return WORDS["drawn"][which].format(number=number)


def _check_release(fit, release):
    """Attributes of a release that is all of one call of ``fit.synthesize``."""
    import xarray as xr

    if isinstance(release, xr.DataArray | xr.Dataset):
        known, many = release.attrs, release.attrs.get("releases", 0)
        epsilon = fit.epsilon(many) if fit.strict and many else None
        together = known.get("epsilon_total", 0.0)
        records = fit.terms.records
        whole = many and release.sizes.get("release") == many
        whole = whole and release.sizes.get("record", records) == records
        paid = epsilon is None or together >= epsilon
        if whole and paid and known.get("epsilon") == epsilon:
            return known
    raise ValueError(
        "release must be all that one call of result.synthesize() returned; got "
        f"{type(release).__name__} of another size or origin"
    )


def _steps(terms):
    """What the fit did with each record's log-likelihood."""
    words = WORDS["steps"]
    if terms.capped:
        yield words["own_weight"].format(width=terms.width)
        return
    if terms.source != "ones":
        yield words["weight"]
    elif terms.limits is None:
        yield words["whole"]
    if terms.limits is not None:
        yield words["limits" if terms.limits.center is None else "centered_limits"]


def _promise(guarantee, draws=None, chain=False):
    """What a strict guarantee says, for publication; without ``draws``, of all that it covers."""
    words, each = WORDS["statement"], _rounded_up(guarantee.epsilon, 4)
    total = (draws or 1) * each
    amount = (
        f"{draws} × {each:g} = {total:.10g}"
        if draws
        else f"{each:g} for {guarantee.covered}"
    )
    return words["promise"].format(
        begins=words["by_chains" if chain else "exact"],
        amount=amount,
        rounding=words["rounding"] if guarantee.rounded else "",
        neighbour=guarantee.neighbour,
        odds=_odds(total),
        odds_of_two=_odds(2 * total),
        not_covered="; ".join(guarantee.not_covered),
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
