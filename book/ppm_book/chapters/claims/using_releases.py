"""Claims and numbers of the chapter on using releases."""

import numpy as np

from ppm_book.chapters.page import surely_less

PREDICTED = [
    ("regression", "mean", name) for name in ("Unweighted", "EMweighted", "Constant")
]
PERCENTILE = ("regression", "90th percentile", "DPweighted")
COEFFICIENT = ("regression", "coefficient", "DPweighted")
LIMITS = ("counts", "mean", "Limits")
PARTIALLY = "partially synthetic"
KNOWN = "one release, weight known"
MISSING = ("regression", "mean", "Unweighted")
BIASED = ("regression", "90th percentile")


def in_errors(largest, replicates):
    """How far coverage is from what was promised, in standard errors."""
    in_errors = (largest["coverage"] - 0.95) / np.sqrt(0.95 * 0.05 / replicates)
    return in_errors.unstack("rule")


def one_weight(in_errors):
    return in_errors.query("mechanism in ['Unweighted', 'EMweighted', 'Constant']")


def efficient(one_weight):
    return one_weight.query("quantity in ['mean', 'coefficient']")


def real(covered):
    return covered["one release as real"]


def constant(efficient):
    return efficient.drop(index=PREDICTED).query("mechanism == 'Constant'")


def ratio_off(largest):
    return ((largest["variance ratio"] - 1) / largest["error of the ratio"]).unstack(
        "rule"
    )


def wider(ratio):
    wider = ratio.query(
        "quantity == 'coefficient' and mechanism in ['EMweighted', 'Constant']"
    )
    return wider["fully synthetic"]


def chosen(instead):
    return instead[instead.index.isin(["mean", "coefficient"], level="quantity")]


def failed(chosen):
    return chosen["not above 0 (%)"] / 100


def off(chosen, replicates):
    def off(sign, share):
        """How far coverage of such intervals is from 95 per cent, in standard errors."""
        return (chosen[f"coverage (%) {sign}"] / 100 - 0.95) / np.sqrt(
            0.95 * 0.05 / (share * replicates)
        )

    return off


def over(off, failed):
    return off("above 0", 1 - failed)


def under(off, failed):
    return off("not above 0", failed)


def times_others(ends):
    return ends["Published"] / ends.drop(columns=["Unweighted", "Published"]).max(
        axis=1
    )


def seen(in_errors):
    return in_errors.xs("Published", level="mechanism")


def relative(growing):
    return growing["bias / standard deviation"].unstack("records")


def its_error(relative, replicates):
    return np.sqrt((1 + relative**2 / 2) / replicates)


def before(relative, its_error, sizes):
    """How far off in the smallest samples, with its error."""
    return relative[sizes[0]].abs(), its_error[sizes[0]]


def after(relative, its_error, sizes):
    """And in the largest."""
    return relative[sizes[-1]].abs(), its_error[sizes[-1]]


def grows(before, after):
    return surely_less(before, after)


def falls(before, after):
    return surely_less(after, before)


def sure(before, after):
    return surely_less((0, 0), before) & surely_less((0, 0), after)


def simple(efficient):
    return efficient.drop(index=PREDICTED)[KNOWN].dropna()


CLAIMS = {
    "covers-too-rarely-everywhere": lambda in_errors: (
        in_errors["one release as real"] < -2
    ).all(),
    "at-worst": lambda real: real.idxmin()[2] in ("Published", "Constant"),
    "keeps-its-promise": lambda efficient: (efficient[PARTIALLY].abs() <= 2).all(),
    "more-often-than-promised": lambda one_weight, efficient: (
        one_weight.drop(efficient.index)[PARTIALLY] > 2
    ).all(),
    "constant-too-rarely": lambda constant: (constant["parameter drawn"] < -2).all(),
    "limits-a-little-less": lambda in_errors: in_errors.loc[LIMITS, PARTIALLY] < -2,
    "no-other-rule": lambda in_errors, shown: (
        in_errors.loc[PERCENTILE, shown] < -2
    ).all(),
    "coefficient-suffers": lambda in_errors: in_errors.loc[COEFFICIENT, PARTIALLY] < -2,
    "right-variance": lambda ratio_off, efficient: (
        ratio_off.loc[efficient.index, PARTIALLY].abs() <= 2
    ).all(),
    "too-much": lambda ratio_off, wider: (
        ratio_off.loc[wider.index, "fully synthetic"] > 2
    ).all(),
    "too-little": lambda ratio_off: ratio_off.loc[MISSING, "fully synthetic"] < -2,
    "more-often-than-stated": lambda over: (over > 2).all(),
    "then-too-narrow": lambda chosen: (chosen["width not above 0"] < 1).all(),
    "in-most-rows-less-often": lambda under: (under < -2).mean() > 0.5,
    # standard error of a quotient of two such errors, if they were independent
    "surely-farthest": lambda times_others, replicates: surely_less(
        (1, 0), (times_others.drop(BIASED), np.sqrt(1 / replicates))
    ).all(),
    "published-is-farthest": lambda times_others: (times_others > 1).all(),
    "dp-about-as-far": lambda ends: (
        0.85 < ends.loc[BIASED, "DPweighted"] / ends.loc[BIASED, "Published"] < 1.18
    ),
    "published-too-rarely": lambda seen: (
        seen[PARTIALLY].loc[[("counts", "mean"), ("regression", "coefficient")]] < -2
    ).all(),
    "bias-does-not-keep-up": lambda grows: grows[PERCENTILE],
    "mean-count-is-biased": lambda sure: sure["counts", "mean", "DPweighted"],
    "growth-undecided": lambda grows, falls: (
        not ((grows | falls)["counts", "mean", "DPweighted"])
    ),
    "limits-have-a-bias": lambda sure: sure[LIMITS],
    "one-as-often-as-promised": lambda simple: (simple.abs() <= 2).all(),
    "one-too-often": lambda in_errors: (
        in_errors.loc[PREDICTED, KNOWN].dropna() > 2
    ).all(),
}
NUMBERS = {
    "real at best": lambda real: f"{real.max():.0f}",
    "real at worst": lambda real: f"{real.min():.0f}",
    "limits": lambda covered: f"{covered.loc[LIMITS, PARTIALLY]:.1f}",
    "percentile": lambda covered: f"{covered.loc[PERCENTILE, PARTIALLY]:.0f}",
    "coefficient": lambda covered: f"{covered.loc[COEFFICIENT, PARTIALLY]:.0f}",
    "too much": lambda wider: f"{wider.mean():.1f}",
    "too little": lambda ratio: f"{ratio.loc[MISSING, 'fully synthetic']:.1f}",
    "failed": lambda failed: f"{100 * failed['regression', 'mean', 'Unweighted']:.0f}",
    "wide": lambda chosen: f"{chosen['width above 0'].median():.1f}",
    "far": lambda ends: (
        f"{ends['Published'].min():.1f} to {ends['Published'].max():.1f}"
    ),
    "bias before": lambda relative, sizes: f"{-relative.loc[PERCENTILE, sizes[0]]:.1f}",
    "bias after": lambda relative, sizes: f"{-relative.loc[PERCENTILE, sizes[-1]]:.1f}",
    "known": lambda largest: (
        f"{largest.loc[(*PREDICTED[0], KNOWN), 'coverage']:.0%}".rstrip("%")
    ),
}
