"""Claims and numbers of the chapter on trusting a bound."""

from ppm_book.chapters import agreement
from ppm_book.chapters.page import surely_less


def chosen(fresh):
    return fresh["chosen fit"].abs()


def others(fresh):
    return fresh.drop(columns="chosen fit").abs()


def of_unweighted(starts):
    return starts.xs("Unweighted").astype(float)


def changed(starts):
    """Fits whose chains agree from one start, and disagree from the other."""
    agree = starts["chains agree"].unstack("starts")
    return agree["as above"] != agree["both sides"]


def by_two(by_sampler):
    """Pairs of fits of one rule: by PyMC, and by the mixture's own sampler."""
    one, other = by_sampler["PyMC"], by_sampler["own sampler"]
    return [(one.unweighted, other.unweighted), (one, other)]


def two_converged(by_two):
    """Whether the chains of all these fits agree, by both R-hats."""
    return all(agreement.agrees(fit) for pair in by_two for fit in pair)


def same_bounds(by_two, two_converged):
    """Whether no Δ of one sampler surely differs from that of the other."""
    pairs = [
        [(fit.local_bound, fit.diagnostics.error) for fit in pair] for pair in by_two
    ]
    return two_converged and not any(
        surely_less(*pair) or surely_less(*pair[::-1]) for pair in pairs
    )


def divergences(by_two):
    return sum(one.diagnostics.divergences or 0 for one, _ in by_two)


FIRST = "R-hat, log-likelihood"

CLAIMS = {
    "chosen-is-nearer": lambda others, chosen: others.max(axis=None) > chosen.max(),
    "unweighted-disagrees": lambda of_unweighted: (of_unweighted[FIRST] > 1.05).all(),
    "r-hat-of-delta-stays-low": lambda of_unweighted: (
        of_unweighted["R-hat"] < 1.05
    ).all(),
    "starts-change-the-verdict": lambda changed: changed.any(),
    # appendix B in PyMC
    "two-samplers-agree": same_bounds,
    "two-samplers-converged": two_converged,
}
NUMBERS = {
    "agree": lambda fits: agreement.count(fits.values()),
    "chosen": lambda chosen: f"{chosen.max():.1f}",
    "fresh": lambda others: f"{others.max(axis=None):.0f}",
    "R-hat before": lambda of_unweighted: f"{of_unweighted.loc['as above', FIRST]:.2f}",
    "R-hat after": lambda of_unweighted: (
        f"{of_unweighted.loc['both sides', FIRST]:.2f}"
    ),
    "divergences of PyMC": lambda divergences: f"{divergences}",
    "changed": lambda changed: f"{changed.sum()} of {len(changed)}",
}
