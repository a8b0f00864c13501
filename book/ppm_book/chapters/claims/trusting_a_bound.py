"""Claims and numbers of the chapter on trusting a bound."""

from ppm_book.chapters import agreement


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


FIRST = "R-hat, log-likelihood"

CLAIMS = {
    "chosen-is-nearer": lambda others, chosen: others.max(axis=None) > chosen.max(),
    "unweighted-disagrees": lambda of_unweighted: (of_unweighted[FIRST] > 1.05).all(),
    "r-hat-of-delta-stays-low": lambda of_unweighted: (
        of_unweighted["R-hat"] < 1.05
    ).all(),
    "starts-change-the-verdict": lambda changed: changed.any(),
}
NUMBERS = {
    "agree": lambda fits: agreement.count(fits.values()),
    "chosen": lambda chosen: f"{chosen.max():.1f}",
    "fresh": lambda others: f"{others.max(axis=None):.0f}",
    "R-hat before": lambda of_unweighted: f"{of_unweighted.loc['as above', FIRST]:.2f}",
    "R-hat after": lambda of_unweighted: (
        f"{of_unweighted.loc['both sides', FIRST]:.2f}"
    ),
    "changed": lambda changed: f"{changed.sum()} of {len(changed)}",
}
