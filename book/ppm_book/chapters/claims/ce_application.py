"""Claims and numbers of the application to the Consumer Expenditure survey."""

import numpy as np

import ppm
from ppm_book.chapters import agreement
from ppm_book.chapters.page import surely_less


def trusted(*fits):
    """Whether the chains of these fits agree, by both R-hats; without that nothing is sure."""
    return all(map(agreement.agrees, fits))


# ------------------------------------------------------------------------------------- the data


def deviations(response, predictors, f):
    """How far the unit with the largest bound lies off its expectation, by least squares."""
    off = response - predictors @ np.linalg.lstsq(predictors, response)[0]
    return abs(off[f.argmax()]) / off.std()


# ----------------------------------------------------------------------- one regression by hand


def by_hand_over_library(hand, of_one):
    """Δ of one regression by hand, as so many of the library's, at every setting."""
    fits = [fit for rule, fit in of_one.items() if rule != ppm.Unweighted()]
    return [
        bounds.max() / fit.local_bound
        for (bounds, _), fit in zip(hand.values(), fits, strict=True)
    ]


# ---------------------------------------------------------------------- bounds at every setting


def weighted(fits):
    return [dp for dp, _ in fits.values()]


def scalar(fits):
    return [em for _, em in fits.values()]


def mixtures(four, fits):
    """All fits of all units with the chapter's number of components, each once."""
    others = [four["Unweighted"], four["Countweighted"]]
    return others + [fit for pair in fits.values() for fit in pair]


def read(fit):
    return fit.local_bound, fit.diagnostics.error


def fall(weighted):
    """In per cent, from the first setting to the last."""
    return 100 * (1 - weighted[-1].local_bound / weighted[0].local_bound)


def rises(weighted, fits):
    """The steps, from one setting to the next, at which Δ surely rises."""
    settings = list(fits)
    return [
        (settings[at], settings[at + 1])
        for at in range(len(settings) - 1)
        if surely_less(read(weighted[at]), read(weighted[at + 1]))
    ]


def weights_of(weighted, scalar):
    """How many times the average weight of EMweighted DPweighted keeps."""
    return np.divide(
        *([fit.weights.mean() for fit in some] for some in (weighted, scalar))
    )


# -------------------------------------------------------------------------------------- utility


def errors(utility):
    """Typical errors with their standard errors, by statistic and synthesizer."""
    pairs = utility[["typical error", "±"]].itertuples(name=None)
    return {place: found for place, *found in pairs}


def closer(errors, four):
    def closer(name, one, other):
        """Whether a typical database of one synthesizer is surely closer than one of another."""
        sure = surely_less(errors[name, one], errors[name, other])
        return sure and trusted(four[one], four[other])

    return closer


def difference(one, other):
    """A difference of two numbers, each with its standard error, less and more two of its own."""
    error = 2.0 * np.hypot(one[1], other[1])
    return one[0] - other[0] - error, one[0] - other[0] + error


def in_words(low, high):
    """An interval of a difference in words: larger, smaller, or between the two."""
    if low > 0:
        return f"larger by {low:.1f} to {high:.1f}"
    if high < 0:
        return f"smaller by {-high:.1f} to {-low:.1f}"
    return f"between {-low:.1f} smaller and {high:.1f} larger"


def sure(away, fits):
    """Where one of the two is surely closer: +1 DPweighted, −1 EMweighted, 0 neither."""
    agreed = np.array([trusted(dp, em) for dp, em in fits.values()])

    def sure(name):
        own = away.xs(name, level="statistic")
        dp, em = (
            (own["error (%)"][who].to_numpy(), own["±"][who].to_numpy())
            for who in ("DPweighted", "EMweighted")
        )
        return agreed * (surely_less(dp, em) * 1 - surely_less(em, dp) * 1)

    return sure


def at_last(away):
    def at_last(name):
        """Typical errors at the last setting, EMweighted's and DPweighted's."""
        own = away.xs(name, level="statistic").iloc[-1]
        return [
            (own["error (%)", who], own["±", who])
            for who in ("EMweighted", "DPweighted")
        ]

    return at_last


def of_tail(away, tail):
    return away.xs(tail, level="statistic")


def widens(of_tail):
    """Whether EMweighted scatters more at every setting."""
    scatter = of_tail["scatter"]
    return (scatter["EMweighted"] > scatter["DPweighted"]).all()


def left_out(of_data, of_drawn, near):
    """Databases more than 30 per cent off, by synthesizer and statistic."""
    found = []
    for name, of in of_drawn.items():
        middle = np.median(of_data[name])
        for who, values in of.items():
            if many := len(values) - len(near(values, middle)):
                found.append(f"{many} of {who} for the {name}")
    return found


def apart(typical, ALONE, compared):
    return max(
        abs(typical[name, ALONE][0] - typical[name, "Unweighted"][0])
        for name in compared[:4]
    )


def groups_gain(groups, typical, ALONE, apart, four, published):
    return (
        trusted(four["Unweighted"], published)
        and surely_less(typical[groups, "Unweighted"], typical[groups, ALONE])
        and typical[groups, ALONE][0] - typical[groups, "Unweighted"][0] > 2 * apart
    )


def dp_where_sure(sure):
    """Whether differences of the mean are sure somewhere, and DPweighted closer in all of these."""
    found = sure("mean")
    return found.any() and (found >= 0).all()


def scatter_and_level(of_tail, widens):
    """Whether EMweighted lies nearer but at the last setting, where it lies above by as much."""
    bias = of_tail["bias"]
    before = bias.iloc[:-1].abs()
    if not len(before):
        return None
    nearer = before["EMweighted"] < before["DPweighted"] - 0.5
    return widens and nearer.all() and bias["EMweighted"].iloc[-1] > 2


CLAIMS = {
    "long-upper-tail": lambda income: income.max() > 8 * np.median(income),
    "by-hand-negative": lambda income, f: income[f.argmax()] < 0,
    "half-the-square": lambda deviations, f: 0.7 < deviations**2 / 2 / f.max() < 1,
    "by-hand-agrees": lambda by_hand_over_library, of_one: (
        trusted(*of_one.values())
        and all(1 / 1.1 < ratio < 1.1 for ratio in by_hand_over_library[:-1])
        and by_hand_over_library[-1] > 1.3
    ),
    # bounds
    "em-flattens": lambda em_lower, income: em_lower > 0.9 * len(income),
    "em-has-lower-bounds": lambda em_lower, income: em_lower > 0.9 * len(income),
    "unweighted-by-far": lambda four: (
        trusted(*four.values())
        and four["Unweighted"].local_bound
        > 2 * max(four[who].local_bound for who in four if who != "Unweighted")
    ),
    "count-has-smallest-delta": lambda four: (
        trusted(*four.values())
        and all(
            surely_less(read(four["Countweighted"]), read(four[who]))
            for who in four
            if who != "Countweighted"
        )
    ),
    "risks-go-together": lambda correlation: correlation > 0.1,
    "chains-do-not-agree": lambda over_determined: not trusted(over_determined),
    "delta-falls": lambda weighted: (
        trusted(*weighted) and surely_less(read(weighted[-1]), read(weighted[0]))
    ),
    "rises-once": lambda rises, weighted: (
        trusted(*weighted) and rises == [((0.6, -0.1), (0.5, 0.0))]
    ),
    "larger-average-weight": lambda weights_of: weights_of.min() > 1,
    # utility at the first setting
    "dp-nearest-for-the-mean": lambda utility: (
        utility["bias"]["mean"].abs().idxmin() == "DPweighted"
    ),
    "all-below": lambda utility, tail: utility["bias"][tail].max() < 0,
    "count-far-below": lambda utility, tail: (
        utility["bias"][tail, "Countweighted"]
        < 2 * utility["bias"][tail].drop("Countweighted").min()
    ),
    "dp-closer-for-the-mean": lambda closer: closer(
        "mean", "DPweighted", "Countweighted"
    ),
    "own-bias-upwards": lambda closer, utility: (
        closer("mean", "DPweighted", "Unweighted")
        and utility["bias"]["mean", "Unweighted"]
        > abs(utility["bias"]["mean", "DPweighted"])
    ),
    "dp-closer-than-count": lambda closer, tail: closer(
        tail, "DPweighted", "Countweighted"
    ),
    "dp-loses-tail": lambda closer, tail: closer(tail, "Unweighted", "DPweighted"),
    "em-scatters-more": lambda utility, tail: (
        utility["scatter"][tail, "EMweighted"] > utility["scatter"][tail, "DPweighted"]
    ),
    "em-middle-nearer": lambda utility, tail: (
        abs(utility["bias"][tail, "EMweighted"])
        < abs(utility["bias"][tail, "DPweighted"])
    ),
    # along the settings
    "em-widens": lambda widens, of_tail: (
        widens
        and of_tail["scatter", "EMweighted"].iloc[-1]
        > 1.3 * of_tail["scatter", "EMweighted"].iloc[:-1].max()
    ),
    "scatters-more-throughout": lambda widens: widens,
    # the band reaches about six per cent to both sides
    "dp-stays-low": lambda of_tail: (
        -6 < of_tail["bias", "DPweighted"].min()
        and of_tail["bias", "DPweighted"].max() < -2
    ),
    "dp-for-the-mean": dp_where_sure,
    "holds-for-the-mean": lambda sure, closer, tail: (
        dp_where_sure(sure)
        and all(closer(name, "DPweighted", "Countweighted") for name in ("mean", tail))
    ),
    # sure for one weight for all at most settings, and for one for each record at none
    "fails-for-the-tail": lambda sure, tail: (
        # one setting alone is the last, and leaves nothing to tell
        (sure(tail)[:-1] <= 0).all() and (sure(tail)[:-1] < 0).mean() > 0.5
        if len(sure(tail)) > 1
        else None
    ),
    "em-above-at-last": lambda of_tail: of_tail["bias"]["EMweighted"].iloc[-1] > 0,
    "each-weight-kept-the-mean": dp_where_sure,
    "scatter-and-level": scatter_and_level,
    "dp-shortens": lambda dp, income, utility, tail: (
        dp.weights[income.argmax()] < dp.weights.mean()
        and utility["bias"][tail, "DPweighted"] < utility["bias"][tail, "Unweighted"]
    ),
    "fraction-of-the-bound": lambda four: (
        four["DPweighted"].local_bound < 0.5 * four["Unweighted"].local_bound
    ),
    # both ends
    "little-to-buy": lambda apart: apart < 5,
    "told-by-means-of-groups": groups_gain,
    "groups-had-most-to-gain": groups_gain,
    "groups-can-buy-most": groups_gain,
    # risk
    "small-part-of-the-data": lambda risk: risk.drop("Data").max() < 0.2 * risk["Data"],
    "from-the-model": lambda risk: (
        risk["Data"] - risk["Unweighted"]
        > 5 * np.abs(risk.drop("Data") - risk["Unweighted"]).max()
    ),
}
NUMBERS = {
    "factor up": lambda data, income: f"{data.income_range[1] / np.median(income):.0f}",
    "smallest": lambda data: f"{data.income_range[0] / 1000:.0f}".replace("-", "−"),
    "largest": lambda data: f"{data.income_range[1] / 1000:.0f} thousand",
    "lowest income": lambda income, f: f"{income[f.argmax()]:,.0f}".replace("-", "−"),
    "deviations": lambda deviations: f"{deviations:.0f}",
    "K": lambda components: f"{components}",
    "settings": lambda settings: ", ".join(
        "({:g}, {:g})".format(*pair) for pair in settings
    ),
    "DP weight": lambda four: f"{four['DPweighted'].weights.mean():.2f}",
    "EM weight": lambda four: f"{four['EMweighted'].weights.mean():.2f}",
    "rank correlation": lambda correlation: f"{correlation:.2f}",
    "agreeing": lambda mixtures: agreement.count(mixtures),
    "count weight": lambda four: f"{four['Countweighted'].weights.mean():.2f}",
    "least ε": lambda weighted, releases: (
        f"{min(fit.epsilon(releases) for fit in weighted):.0f}"
    ),
    "most ε": lambda weighted, releases: (
        f"{max(fit.epsilon(releases) for fit in weighted):.0f}"
    ),
    "fall": lambda fall: f"{fall:.0f}",
    "times the weight": lambda weights_of: (
        f"{weights_of.min():.1f} to {weights_of.max():.1f}"
    ),
    "releases": lambda releases: f"{releases}",
    "databases": lambda databases: f"{databases}",
    "left out": lambda left_out: "; ".join(left_out) or "none",
    **{
        f"{name}, {who}": lambda errors, place=(name, who): in_words(
            *difference(errors[place], errors[place[0], "DPweighted"])
        )
        for name in ("mean", "90th percentile")
        for who in ("Unweighted", "EMweighted", "Countweighted")
    },
    "mean, settings": lambda sure: f"{np.sum(sure('mean') > 0)} of {len(sure('mean'))}",
    "tail, settings": lambda sure, tail: f"{np.sum(sure(tail) < 0)}",
    "tail, settings of DP": lambda sure, tail: f"{np.sum(sure(tail) > 0)}",
    "tail, last": lambda at_last, tail: in_words(*difference(*at_last(tail))),
    # for the front page
    **{
        f"means, {who}": lambda away, who=who: "{:.1f} to {:.1f}".format(
            *np.quantile(away["error (%)", who].xs("mean", level="statistic"), [0, 1])
        )
        for who in ("DPweighted", "EMweighted")
    },
    "apart": lambda apart: f"{apart:.1f}",
    **{
        f"{who}, means by education": lambda typical, who=who: (
            f"{typical['means by education', who][0]:.1f}"
        )
        for who in ("First quarter alone", "Unweighted", "DPweighted", "EMweighted")
    },
    "radius": lambda radius: f"{100 * radius:g}",
    "fewest found": lambda risk: f"{risk.drop('Data').min():.0f}",
    "most found": lambda risk: f"{risk.drop('Data').max():.0f}",
    "in the data": lambda risk: f"{risk['Data']:.0f}",
}
