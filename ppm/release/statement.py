"""What a release promises in words: its guarantee, and the statement beside it."""

import re
import textwrap
import tomllib
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from importlib import resources

import numpy as np
import xarray as xr

from ppm.candidates import Candidates
from ppm.chains import ChainsDisagreeError
from ppm.checks import check_number, shown
from ppm.fit import Fit
from ppm.rules import Capped, Given, Limited, Unweighted

__all__ = ["Guarantee", "guarantee", "release_statement"]

# the sentences, by the names that the conditions below give them
WORDS = tomllib.loads(
    resources.files("ppm.release").joinpath("words.toml").read_text("utf-8")
)
_ALWAYS = ("unchanged", "imputed", "others", "ended", "holders")


@dataclass(frozen=True)
class Guarantee:
    """What one release promises, to whom, and what ε does not cover.

    An ``epsilon`` of the ``kind`` 'strict' follows from public constants alone, holds for every
    database and may be published. A 'local' one was computed from the records, describes them, and
    is confidential. ``covers`` and ``reasons`` name what ε covers and why it does not cover more;
    :attr:`covered`, :attr:`not_covered` and :attr:`neighbour` say it in words. ``rounded`` says
    whether δ is 0 but for floating-point rounding.

    Parameters
    ----------
    kind : {'strict', 'local'}
        Whom it holds for.
    epsilon : float
        ε.
    reasons : tuple of str
        Why ε does not cover more: keys of ``not_covered`` in ``ppm/release/words.toml``, which a
        refusal lists.
    covers : {'release', 'counts', 'margins', 'sums', 'published', 'own'}
        What ε covers: each release, or noisy numbers and any number of releases made of them.
    rounded : bool, default False
        Whether δ is 0 but for rounding.
    words : str, optional
        With ``covers="own"``, what these noisy numbers are, in one line: "the noisy shares and any
        number of releases made of them".

    Examples
    --------
    >>> import numpy as np, ppm
    >>> model = ppm.Candidates(ppm.GammaPoisson([3, 5, 4, 6, 20]), {"mu": np.arange(2.0, 9.0)})
    >>> fit = ppm.fit(model, ppm.Limited(ppm.Limits(-3, -2)), draws=200, random_seed=1)
    >>> ppm.release.guarantee(fit).headline
    'strict: epsilon 1 for one release, for every database'
    """

    kind: str
    epsilon: float
    reasons: tuple
    covers: str = "release"
    rounded: bool = False
    words: str = ""

    def __post_init__(self):
        _check_word("kind", self.kind, WORDS["headline"])
        _check_word("covers", self.covers, [*WORDS["covered"], "own"])
        if not isinstance(self.reasons, tuple | list):
            raise ValueError(f"reasons must be a tuple; got {shown(self.reasons)}")
        for reason in self.reasons:
            _check_word("reasons", reason, WORDS["not_covered"])
        if self.kind == "strict":
            check_number("epsilon", self.epsilon, at_least=0)
        lines = self.words.splitlines() if isinstance(self.words, str) else "??"
        if len(lines) != (self.covers == "own"):
            raise ValueError(
                "words must be a line that says what epsilon covers where covers is 'own', and "
                f"be left out elsewhere; got {shown(self.words)}"
            )

    @property
    def covered(self):
        """What ε covers, in words."""
        return self.words or WORDS["covered"][self.covers]

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


def _check_word(name, word, accepted):
    """Refuse a word that stands for no sentence."""
    if not isinstance(word, str) or word not in accepted:
        known = ", ".join(map(repr, accepted))
        raise ValueError(f"{name} must be of {known}; got {shown(word)}")


def guarantee(fit):
    """Guarantee of one release of a fit.

    Parameters
    ----------
    fit : ppm.Fit
        The fit.

    Returns
    -------
    ppm.release.Guarantee

    Examples
    --------
    >>> import ppm
    >>> fit = ppm.fit(ppm.GammaPoisson([3, 5, 4, 6, 20]), ppm.ByRisk(), draws=200, random_seed=1)
    >>> ppm.release.guarantee(fit).kind
    'local'
    """
    if not fit.strict:
        return Guarantee("local", fit.epsilon(), tuple(_local_reasons(fit)))
    return Guarantee(
        "strict",
        fit.epsilon(),
        tuple(_strict_reasons(fit)),
        rounded=not fit.model.secure_noise,
    )


def _local_reasons(fit):
    if not fit.chains_agree:
        yield "unreached"
    yield "databases" if _on_candidates(fit) else "databases_and_draws"
    yield "reaction"
    yield "choices"
    yield from _ALWAYS


def _strict_reasons(fit):
    yield from ["package"] if fit.model.secure_noise else ["rounding", "seed"]
    if type(fit.rule) is Limited and isinstance(fit.rule.weight, tuple):
        yield "weights"
    if not type(fit.model.model).__module__.startswith("ppm."):
        yield "own_model"
    yield "choices_of_candidates"
    yield from _ALWAYS


def _on_candidates(fit):
    """Whether nothing but a finite public set can be drawn: by type, as in :attr:`Fit.strict`."""
    return type(fit.model) is Candidates


def noisy_guarantee(epsilon, covers, *, secure, words=""):
    """Guarantee of what is made of counts, sums or other numbers with noise.

    Parameters
    ----------
    epsilon : float
        ε of all of these numbers together.
    covers : {'counts', 'margins', 'sums', 'published', 'own'}
        What the numbers are.
    secure : bool
        Whether the noise is secure, so that nobody can compute it again.
    words : str, optional
        With ``covers="own"``, what the numbers are, in one line.

    Returns
    -------
    ppm.release.Guarantee
    """
    noise = ["package"] if secure else ["seed_of_noise", "law_of_noise"]
    reasons = (*noise, "choices_of_bins", *_ALWAYS)
    return Guarantee("strict", epsilon, reasons, covers, not secure, words)


def release_statement(result, release=None):
    """A paragraph to publish beside a release: what is promised, and on which conditions.

    It contains nothing that was computed from the confidential records: no local ε or Δ. It states
    ε and odds only if ε holds for every database, and then what NIST SP 800-226 asks of a claim: ε
    and δ, unit of privacy and neighbour, what is public, what adds to ε, whom one has to trust, and
    the random numbers. There is no statement if chains disagree, also under
    ``allow_disagreement``.

    Parameters
    ----------
    result : ppm.Fit or ppm.release.NoisyRelease
        The fit that the release was drawn from, or what a mechanism returned, which needs nothing
        else.
    release : xarray.DataArray or xarray.Dataset, optional
        All that one call of :meth:`ppm.Fit.release` returned.

    Returns
    -------
    str

    Raises
    ------
    ppm.ChainsDisagreeError
        If the chains of the fit, or of a fit behind it, disagree.
    ValueError
        If the release is not all of one of this fit.

    Examples
    --------
    >>> import ppm
    >>> fit = ppm.fit(ppm.GammaPoisson([3, 5, 4, 6, 20]), ppm.ByRisk(), draws=200, random_seed=1)
    >>> statement = ppm.release.release_statement(fit, fit.release(2, random_seed=2))
    >>> "no limit is claimed" in statement
    True
    """
    of_fit = isinstance(result, Fit)
    return " ".join(statement_of(result, release) if of_fit else result.statement())


def statement_of(fit, release):
    """Sentences of the statement for all that one call of ``fit.release`` returned."""
    if not fit.chains_agree:
        raise ChainsDisagreeError("no statement can be made: the chains disagree")
    known = _check_release(fit, release)
    words, many = WORDS["statement"], known["releases"]
    draws = fit.draws_charged(many)
    yield words["model"].format(
        releases=many,
        records=fit.terms.records,
        shared="" if draws == many else words["shared"].format(draws=draws),
        steps=" and ".join(_steps(fit)),
    )
    if _on_candidates(fit):
        labels = fit.model.labels or ()
        yield words["public_set"].format(
            candidates=fit.model.candidates_in_all,
            groups=words["in_groups"].format(groups=len(labels)) if labels[1:] else "",
        )
    if fit.strict:
        yield _promise(guarantee(fit), draws)
        if known["epsilon_total"] > known["epsilon"]:
            together = _rounded_up(known["epsilon_total"], 10)
            yield words["together"].format(epsilon=together)
        return
    if fit.rule is None or type(fit.rule) is Given:
        yield words["weights_given"]
    elif type(fit.rule) is not Unweighted:
        yield words["weights_computed"]
    described = "described" if _on_candidates(fit) else "described_by_draws"
    yield words["local"].format(
        described=words[described],
        not_covered="; ".join([WORDS["not_covered"][reason] for reason in _ALWAYS]),
    )


def noisy_statement(release):
    """Sentences of the statement for a :class:`ppm.release.NoisyRelease`."""
    yield release.sentence
    yield _promise(release.guarantee)


def in_lines(sentences):
    """A statement with a sentence a line, and a line for each thing that is not covered."""
    lines = []
    for sentence in sentences:
        for line in re.sub(r"(?<=\.) (?=[A-Z])", "\n", sentence).splitlines():
            if line.startswith("Not covered: "):
                line = line.replace(": ", ":\n- ", 1).replace("; ", ";\n- ")
            lines.append(line)
    return "\n".join(lines)


def _check_release(fit, release):
    """Attributes of a release that is all of one call of ``fit.release``."""
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
        "release must be all that one call of fit.release() returned; got "
        f"{type(release).__name__} of another size or origin"
    )


def _steps(fit):
    """What the fit did with each record's log-likelihood."""
    words, rule = WORDS["steps"], fit.rule
    if type(rule) is Unweighted:
        yield words["whole"]
    elif type(rule) is Capped:
        yield words["own_weight"].format(width=fit.terms.width)
    elif type(rule) is Limited:
        if rule.weight != 1.0:
            yield words["weight"]
        yield words["limits" if rule.center is None else "centered_limits"]
    else:
        yield words["weight"]
        if fit.terms.limits is not None:
            yield words["limits"]


def _promise(guarantee, draws=None):
    """What a strict guarantee says, for publication; without ``draws``, of all that it covers."""
    words, each = WORDS["statement"], _rounded_up(guarantee.epsilon, 4)
    total = (draws or 1) * each
    amount = (
        f"{draws} × {each:g} = {total:.10g}"
        if draws
        else f"{each:g} for {guarantee.covered}"
    )
    return words["promise"].format(
        amount=amount,
        rounding=words["rounding"] if guarantee.rounded else "",
        neighbour=guarantee.neighbour,
        odds=_odds(total),
        probability=f"{_rounded_up(100 / (1 + np.exp(-total)), 3):g}",
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
