"""Claims and numbers of the chapter on the settings of the application."""

import itertools

import numpy as np

import ppm
from ppm_book.chapters.page import surely_less

TAIL = "90th percentile"
THOUSANDS = "asinh of thousands"
TEN_THOUSANDS = "asinh of ten thousands"


def of_model(models):
    def of_model(scale, k):
        """Row of a model, if this run has it."""
        return models.loc[scale, k] if (scale, k) in models.index else None

    return of_model


def misses(of_model):
    def misses(point, scale, k):
        """Whether a model misses a point of the criterion; None if this run cannot tell."""
        row = of_model(scale, k)
        return None if row is None else point in row["misses"]

    return misses


def too_high(of_model, misses):
    def too_high(scale, k):
        """Whether the tail does not fit because the mean is more than a tenth too high."""
        missed = misses("3", scale, k)
        return missed and bool(of_model(scale, k)["mean (%)"] > 10)

    return too_high


def mean_of(of_model):
    def mean_of(scale, k):
        """How far the mean of Unweighted is off, in per cent; empty if this run cannot tell."""
        row = of_model(scale, k)
        return "" if row is None else f"{row['mean (%)']:.0f}"

    return mean_of


def of_verdicts(verdicts):
    def of_verdicts(model, *statistics):
        """Rows of a model, if this run has compared it."""
        models = verdicts.index.get_level_values("model")
        here = verdicts[models == model]
        return here.loc[[*(statistics or ("mean", TAIL))]] if len(here) else None

    return of_verdicts


def throughout(of_verdicts):
    def throughout(model, who, *statistics):
        """Whether one mechanism is surely closer at both settings."""
        rows = of_verdicts(model, *statistics)
        return None if rows is None else (rows["closer"] == who).all()

    return throughout


def repairs(of_verdicts):
    def repairs(model):
        """Whether DPweighted is closer at the 90th percentile than with nothing protected."""
        rows = of_verdicts(model, TAIL)
        return None if rows is None else (rows["DPweighted"] < rows["Unweighted"]).all()

    return repairs


def weights_repair(repairs):
    return repairs("log, K = 1") and repairs(f"{THOUSANDS}, K = 1")


def by_fit(told, truth):
    """Smallest, median and largest 90th percentile of the releases, over the data's, by fit."""
    return {
        model: {
            rule: np.quantile(one.of_releases[TAIL] / truth[TAIL], [0, 0.5, 1])
            for rule, one in found.items()
        }
        for model, found in told.items()
    }


def between_the_two(by_fit, ends):
    """Where all of Unweighted lies above the data, DPweighted's median lies in between."""
    found = [
        1 < of[ppm.ByRisk(*pair)][1] < of[ppm.Unweighted()][1]
        for of in by_fit.values()
        for pair in ends
        if of[ppm.Unweighted()][0] > 1
    ]
    return all(found) if found else None


def scatters_around(by_fit, ends, partner):
    """Where Unweighted lies on the data's line, EMweighted does, and reaches further."""
    found = []
    for of in by_fit.values():
        low, _, high = of[ppm.Unweighted()]
        if low <= 1 <= high:
            reach = [of[partner(ppm.ByRisk(*pair))] for pair in ends]
            found += [
                least <= 1 <= most and most - least > high - low
                for least, _, most in reach
            ]
    return all(found) if found else None


def depends(verdicts):
    """Whether the verdicts differ by statistic and by model, by more than two standard errors."""

    def apart(one, other):
        pair = [(row["difference"], row["±"] / 2) for row in (one, other)]
        surely = surely_less(*pair) or surely_less(*pair[::-1])
        return one["closer"] != other["closer"] and surely

    rows = dict(verdicts.iterrows())
    pairs = [*itertools.combinations(rows, 2)]
    by_model = [
        (one, other)
        for one, other in pairs
        if one[0] == other[0] == TAIL and one[2] == other[2]
    ]
    by_statistic = [(one, other) for one, other in pairs if one[1:] == other[1:]]
    return all(
        any(apart(rows[one], rows[other]) for one, other in kind)
        for kind in (by_model, by_statistic)
    )


def prior_decides(priors):
    return surely_less(*bounds_at(priors, 1.0, 10.0))


def property_of_the_prior(prior_decides, priors):
    """Whether Δ grows with the prior alone, and is that of a record that stands alone."""
    return prior_decides and priors.loc[10.0, "the only one of its kind"]


def off(repaired):
    return repaired["90th percentile"]


def single_log(order):
    """The text speaks of one component and the log."""
    return order[0] == ("log", 1) or None


def reach(of_verdicts):
    """How far the difference at the 90th percentile may go with the chapter's model."""
    rows = of_verdicts(f"{THOUSANDS}, K = 2", TAIL)
    return None if rows is None else (rows["difference"].abs() + rows["±"]).max()


def gap(of_verdicts):
    def gap(model, place):
        """The difference at the 90th percentile, with two standard errors, in words."""
        if (rows := of_verdicts(model, TAIL)) is None:
            return ""
        row = rows.iloc[place]
        return f"{row['difference']:.1f} ± {row['±']:.1f}".replace("-", "−")

    return gap


def bounds_at(priors, *scales):
    """Δ at some scales of the prior, with standard errors."""
    return [(priors.loc[scale, "Δ"], priors.loc[scale, "±"] / 2) for scale in scales]


def growth(by_draws):
    """From the fewest draws to all of them, in per cent."""
    return 100 * (by_draws.iloc[-1] / by_draws.iloc[0] - 1)


CLAIMS = {
    "log-one-misfits": lambda too_high: too_high("log", 1),
    "log-two-misfits": lambda too_high: too_high("log", 2),
    "one-thousands-nearest": lambda models: (
        models["off the paper's"].idxmin() == (THOUSANDS, 1)
        # a run with one setting has nothing to hold against the paper's three bounds
        if "off the paper's" in models
        else None
    ),
    "mean-everywhere": lambda verdicts: (
        (verdicts.xs("mean")["closer"] == "DPweighted").all()
        if "mean" in verdicts.index
        else None
    ),
    "chapter-undecided": lambda throughout: throughout(f"{THOUSANDS}, K = 2", "", TAIL),
    "chapter-within-two": lambda reach: reach and reach < 2,
    "ten-thousands-first": lambda of_verdicts: (
        rows["closer"].iloc[0] == "DPweighted"
        if (rows := of_verdicts(f"{TEN_THOUSANDS}, K = 1", TAIL)) is not None
        else None
    ),
    "one-component": lambda throughout: throughout("log, K = 1", "DPweighted"),
    "one-component-thousands": lambda throughout: throughout(
        f"{THOUSANDS}, K = 1", "DPweighted"
    ),
    "closer-than-unprotected": weights_repair,
    "between-the-two": between_the_two,
    "scatters-around": scatters_around,
    "log-three-disagrees": lambda misses: misses("1", "log", 3),
    "thousands-one-misfits": lambda too_high: too_high(THOUSANDS, 1),
    "thousands-two-passes": lambda misses: misses("none", THOUSANDS, 2),
    "ten-thousands-passes": lambda misses: misses("none", TEN_THOUSANDS, 1),
    "ten-disagrees": lambda misses: misses("1", "log", 10),
    "largest-is-nearest": lambda models: (
        models["Unweighted"].idxmax()
        == np.log(models["Unweighted"] / 78.7).abs().idxmin()
    ),
    "property-of-the-prior": property_of_the_prior,
    "prior-decides": prior_decides,
    "one-of-its-kind": lambda priors: priors.loc[10.0, "the only one of its kind"],
    "shuffled-stays": lambda single_log, off: (
        single_log and abs(off["Shuffled"] - off["Unweighted"]) < 3
    ),
    "trimmed-repairs": lambda single_log, off: (
        single_log
        and off["Trimmed"] < off["DPweighted"] < off["Unweighted"] - 5
        and abs(off["Trimmed"]) < abs(off["DPweighted"])
    ),
    "very-different-bounds": lambda models: (
        models["Unweighted"].max() > 3 * models["Unweighted"].min()
    ),
    "prior-decides-in-summary": property_of_the_prior,
    "statistic-and-model": depends,
    "repair-in-summary": weights_repair,
}
NUMBERS = {
    "log one": lambda mean_of: mean_of("log", 1),
    "log two": lambda mean_of: mean_of("log", 2),
    "usual prior": lambda priors: f"{priors.loc[1.0, 'Δ']:.1f}",
    "others": lambda priors: f"{priors.loc[10.0, 'largest bound of the others']:.1f}",
    "wide prior": lambda priors: f"{priors.loc[10.0, 'Δ']:.1f}",
    "income of one": lambda priors: f"{priors.loc[10.0, 'from an income of']:,.0f}",
    "fewest draws": lambda by_draws: by_draws.index[0],
    "all draws": lambda by_draws: by_draws.index[-1],
    "growth of Unweighted": lambda growth: f"{growth['Unweighted']:.0f}",
    "growth of DPweighted": lambda growth: f"{growth['DPweighted']:.0f}",
    "chapter first": lambda gap: gap(f"{THOUSANDS}, K = 2", 0),
    "chapter last": lambda gap: gap(f"{THOUSANDS}, K = 2", -1),
    "ten thousands last": lambda gap: gap(f"{TEN_THOUSANDS}, K = 1", -1),
    "smallest Δ": lambda models: f"{models['Unweighted'].min():.0f}",
    "largest Δ": lambda models: f"{models['Unweighted'].max():.0f}",
}
