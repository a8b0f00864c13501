"""Claims and numbers of the chapter on trusting a bound."""

from ppm_book.chapters import agreement


def chosen(fresh):
    return fresh["chosen fit"].abs()


def others(fresh):
    return fresh.drop(columns="chosen fit").abs()


def both(starts):
    return starts.xs("both sides", level="starts")


FIRST = "R-hat, log-likelihood"

CLAIMS = {
    "chosen-is-nearer": lambda others, chosen: others.max(axis=None) > chosen.max(),
    "chains-do-not-meet": lambda both: both.loc["Unweighted", FIRST] > 1.5,
    "r-hat-of-delta-stays-low": lambda both: both.loc["Unweighted", "R-hat"] < 1.1,
}
NUMBERS = {
    "agree": lambda fits: agreement.count(fits.values()),
    "chosen": lambda chosen: f"{chosen.max():.1f}",
    "fresh": lambda others: f"{others.max(axis=None):.0f}",
    "R-hat before": lambda starts: (
        f"{starts.loc[('Unweighted', 'as above'), FIRST]:.2f}"
    ),
    "R-hat after": lambda both: f"{both.loc['Unweighted', FIRST]:.2f}",
}
