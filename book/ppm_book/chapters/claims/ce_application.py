"""Claims and numbers of the application to the Consumer Expenditure survey."""

import numpy as np

import ppm
from ppm_book.chapters import application, ledger_values
from ppm_book.chapters.page import surely_less


def ten(components):
    """The text speaks of ten components: with others a run cannot tell."""
    return components == 10 or None


# ------------------------------------------------------------------------------------- the data


def up(data, income):
    """The largest income, as so many middle ones."""
    return data.income_range[1] / np.median(income)


def down(income, income_floor):
    """The middle one, as so many of the smallest."""
    return np.median(income) / max(income_floor, income.min())


# ----------------------------------------------------------------------- one regression by hand


def deviations(response, predictors, f):
    """How far the unit with the largest bound lies off its expectation, by least squares."""
    off = response - predictors @ np.linalg.lstsq(predictors, response)[0]
    return abs(off[f.argmax()]) / off.std()


def pairs_of_bounds(by_hand, of_one):
    """Δ by hand and by the library, each with its Monte Carlo error."""

    def with_error(terms):
        found = ppm.chains.bound_diagnostics(terms.T[None], np.ones(len(terms)))
        return np.abs(terms).max(), found.error

    return [
        (
            with_error(terms),
            (of_one[who].result.local_bound, of_one[who].result.diagnostics.error),
        )
        for who, terms in by_hand.items()
    ]


# ---------------------------------------------------------------------- bounds at every setting


def largest(unweighted):
    """Bounds under Unweighted, by number of components."""
    return {k: found.result.record_bounds for k, found in unweighted.items()}


def off(fits):
    """How far EMweighted is off the bound that it aims at, at every setting."""
    pairs = np.array(
        [[found.result.local_bound for found in pair] for pair in fits.values()]
    )
    return np.abs(ledger_values.over(pairs[:, 1], pairs[:, 0]) - 1)


def ends(fits, counts, settings):
    """DPweighted at the first and at the last setting, by number of components."""
    return {
        k: [fits[k, setting][0].result for setting in (settings[0], settings[-1])]
        for k in counts
    }


def drops(ends):
    return {
        k: np.subtract(*(one.local_bound for one in both)) for k, both in ends.items()
    }


def falls(drops, ends):
    """In per cent."""
    return {
        k: 100 * ledger_values.over(drop, ends[k][0].local_bound)
        for k, drop in drops.items()
    }


def sure_falls(drops, ends):
    return [
        surely_less(
            *[(one.local_bound, one.diagnostics.error) for one in ends[k][::-1]]
        )
        for k in drops
    ]


def poor(bounds_table):
    return np.count_nonzero(~(bounds_table["R-hat"] <= ppm.chains.R_HAT_LIMIT))


def more_weight(fits):
    return all(
        a.result.weights.mean() > b.result.weights.mean() for a, b in fits.values()
    )


# -------------------------------------------------------------------------------------- utility


def off_by(misses, tail):
    def off_by(synthetic):
        """Errors of the percentile, in per cent."""
        return misses(tail, synthetic)

    return off_by


def apart(typical, ALONE, compared):
    return max(
        abs(typical[name, ALONE][0] - typical[name, "Unweighted"][0])
        for name in compared[:4]
    )


def wild(errors, ALONE):
    return errors[ALONE]["mean"].quantile(0.9)


def tame(errors):
    return errors["Unweighted"]["mean"].quantile(0.9)


def alike(typical):
    """Whether the two surely differ by less than a point."""
    both = typical["mean", "DPweighted"], typical["mean", "Unweighted"]
    return all(
        surely_less(one, (two[0] + 1, two[1])) for one, two in (both, both[::-1])
    )


def of_tail(closer, tail):
    return closer(tail, "EMweighted", "DPweighted") and closer(
        tail, "Unweighted", "DPweighted"
    )


def tail_loses_most(closer, tail, compared, typical):
    return closer(tail, "Unweighted", "DPweighted") and tail == max(
        compared,
        key=lambda name: (
            typical[name, "DPweighted"][0] - typical[name, "Unweighted"][0]
        ),
    )


def groups_gain(closer, groups, typical, ALONE, apart):
    return closer(groups, "Unweighted", ALONE) and (
        typical[groups, ALONE][0] - typical[groups, "Unweighted"][0] > 2 * apart
    )


# ------------------------------------------------------------------------- errors along settings


def one(away, tail):
    """Errors of the percentile with one component."""
    return away.xs((tail, 1), level=["statistic", "K"])


def one_dp_for_both(throughout, tail):
    return all(throughout(name, 1, 1) for name in (tail, "mean"))


def least(one):
    return one["error (%)"].min(axis=None)


def plain(unweighted, off_by):
    """Typical error of Unweighted with one component, and its own error."""
    return application.typical(off_by(np.exp(unweighted[1].synthetic)))


def surely_closer(plain, one):
    def surely_closer(who):
        """Whether one is closer than Unweighted, at each setting."""
        return surely_less((one["error (%)"][who], one["±"][who]), plain)

    return surely_closer


def better(surely_closer):
    return surely_closer("DPweighted")


def turned_down(income, fits, settings, data):
    """Incomes of the units that DPweighted turns down furthest."""
    return income[fits[1, settings[0]][0].result.weights.argsort()[: data.nonpositive]]


def floor_units_widen(better, turned_down):
    # without such units a run cannot tell
    return better.all() if turned_down.size else None


def too_high(unweighted, off_by):
    return np.median(off_by(np.exp(unweighted[1].synthetic)))


def level(off_by, incomes):
    """Of Unweighted with ten components, and its error."""
    return application.median(off_by(incomes["Unweighted"]))


def lower(level, off_by):
    def lower(found):
        """Whether a typical release lies surely lower than one of the same model unprotected."""
        return surely_less(application.median(off_by(np.exp(found.synthetic))), level)

    return lower


def pull_further_down(ten, lower, fits, components, settings):
    return ten and all(lower(fits[components, settings[at]][0]) for at in (0, -1))


def scalar_pulls(lower, fits, components, settings, surely_closer):
    """Whether one weight for all surely lowers the percentile anywhere, with either model."""
    return surely_closer("EMweighted").any() or any(
        lower(fits[components, setting][1]) for setting in settings
    )


def means(away, components):
    """Errors of the mean with the mixture."""
    return away["error (%)"].xs(("mean", components), level=["statistic", "K"])


# ----------------------------------------------------------------------------------------- risk


def found(risk):
    return risk["expected match risk"]


def patterns(known):
    """How many units an intruder finds if incomes are shuffled among those that are alike."""
    return len(known.drop_duplicates())


def repaired(better, too_high, turned_down):
    """Whether the weights turn down what makes one regression too wide."""
    if not turned_down.size:
        return None
    return better.all() and too_high > 10 and turned_down.max() < 10


def difference(one, other):
    """A difference of two numbers, each with its standard error, less and more two of its own."""
    error = 2.0 * np.hypot(one[1], other[1])
    return one[0] - other[0] - error, one[0] - other[0] + error


def on_average(away, statistic, k):
    """How much further off EMweighted is, averaged over the settings, with its error."""
    own = away.xs((statistic, k), level=["statistic", "K"])
    sizes, errors = own["error (%)"], own["±"]
    error = np.sqrt((errors**2).sum(axis=None)) / len(own)
    mean = (sizes["EMweighted"] - sizes["DPweighted"]).mean()
    return mean - 2.0 * error, mean + 2.0 * error


def interval(low, high):
    return f"{low:.1f} to {high:.1f}".replace("-", "−")


def dp_where_sure(gap, sure):
    """Whether differences of the mean are sure somewhere, and DPweighted closer in all of these."""
    signs = np.sign(gap[sure])
    of_mean = signs[signs.index.get_level_values("statistic") == "mean"]
    return of_mean.size > 0 and bool((of_mean == 1).all())


def alike_throughout(gap, sure):
    """Whether in each panel the sure differences have one sign."""
    signs = np.sign(gap[sure])
    return sure.any() and (signs.groupby(level=["statistic", "K"]).nunique().max() == 1)


# -------------------------------------------------------------------------------- Countweighted


def found_by_four(found, counted_risk):
    """How many units an intruder finds in a release of each synthesizer."""
    return [*found.drop("Data"), counted_risk["expected match risk"]]


def furthest(typical_of_four, three):
    def furthest(name):
        """Whether Countweighted is further off than each of the others."""
        far = typical_of_four[name, "Countweighted"]
        return all(surely_less(typical_of_four[name, who], far) for who in three)

    return furthest


CLAIMS = {
    "the-smallest": lambda down, up: down > 10 * up,
    "short-upper-tail": lambda down, up: down > 10 * up,
    "a-few-far-below": lambda low, income, floored, income_floor: (
        0 < len(low) < 0.02 * len(income) and np.any(floored <= income_floor)
    ),
    "one-component-or-ten": ten,
    "belongs-to-a-few-dollars": lambda income, largest: all(
        income[bounds.argmax()] < 10 for bounds in largest.values()
    ),
    "several-times-as-large": lambda largest, components: (
        largest[1].max() > 3 * largest[components].max() if components > 1 else None
    ),
    "by-hand-few-dollars": lambda income, f: income[f.argmax()] < 10,
    "half-the-square": lambda deviations, f: 0.7 < deviations**2 / 2 / f.max() < 1,
    "by-hand-agrees": lambda pairs_of_bounds: (
        not any(
            surely_less(*pair) or surely_less(*pair[::-1]) for pair in pairs_of_bounds
        )
    ),
    # bounds at every setting
    "delta-falls": lambda sure_falls: all(sure_falls),
    "paper-lies-between": lambda ten, falls: (
        ten and min(falls.values()) < 78 < max(falls.values())
    ),
    "one-near-the-papers": lambda unweighted: (
        65 < unweighted[1].result.local_bound < 95
    ),
    "ten-far-below": lambda ten, unweighted, components: (
        ten and unweighted[components].result.local_bound < 40
    ),
    "settings-of-the-paper": lambda settings, PAPER: {*settings} == {*PAPER},
    # and there are such units
    "mutes-the-few": lambda dp: (
        0 < np.mean(dp.result.weights < 0.5 * dp.result.weights.max()) < 0.05
    ),
    "mutes-all": lambda dp, em: em.result.weights.max() < 0.9 * dp.result.weights.max(),
    "larger-average-weight": more_weight,
    "keeps-more-of-the-data": more_weight,
    "em-has-lower-bounds": lambda em_lower, income: em_lower > 0.9 * len(income),
    # utility
    "nearly-all-keep-weight": lambda dp: (
        np.mean(dp.result.weights < 0.5 * dp.result.weights.max()) < 0.05
    ),
    "within-one-point": alike,
    "em-closer-above": of_tail,
    "dp-closer-for-worst": lambda closer, groups: closer(
        groups, "DPweighted", "EMweighted"
    ),
    "closer-by-education": lambda closer, groups: closer(
        groups, "DPweighted", "EMweighted"
    ),
    "other-way-round": of_tail,
    "dp-too-low": lambda off_by, incomes: surely_less(
        application.median(off_by(incomes["DPweighted"])), (0, 0)
    ),
    "the-90th": tail_loses_most,
    "weights-cut-the-tail": tail_loses_most,
    "little-to-buy": lambda apart: apart < 5,
    "no-gain-for-the-90th": lambda closer, tail, ALONE: (
        not closer(tail, "Unweighted", ALONE)
    ),
    "first-quarter-closer-than-dp": lambda closer, tail, ALONE: closer(
        tail, ALONE, "DPweighted"
    ),
    "closer-than-first-quarter": lambda closer, groups, ALONE: all(
        closer(groups, who, ALONE) for who in ("Unweighted", "DPweighted")
    ),
    "told-by-means-of-groups": groups_gain,
    "far-behind-for-worst-group": groups_gain,
    "groups-had-most-to-gain": groups_gain,
    "groups-can-buy-most": groups_gain,
    "em-not-closer-than-it": lambda closer, groups, ALONE: (
        not any(
            closer(groups, *pair)
            for pair in (("EMweighted", ALONE), (ALONE, "EMweighted"))
        )
    ),
    "prevent-wild-releases": lambda wild, tame: wild > 2 * tame,
    # errors along the settings
    "ten-em-for-the-90th": lambda ten, throughout, tail, components: (
        ten and throughout(tail, components, -1)
    ),
    "ten-a-few-per-cent-too-low": lambda ten, level: (
        ten and -10 < level[0] and surely_less(level, (0, 0))
    ),
    "weights-pull-further-down": pull_further_down,
    "one-dp-for-both": one_dp_for_both,
    "closer-for-both": one_dp_for_both,
    "neither-close": lambda least: least > 5,
    "far-too-high": lambda too_high: too_high > 10,
    "one-weights-pull-down": lambda too_high, surely_closer: (
        too_high > 10 and surely_closer("DPweighted").all()
    ),
    "one-for-all-at-none": lambda ten, scalar_pulls: ten and not scalar_pulls,
    "turns-these-down-furthest": lambda turned_down: (
        # without such units a run cannot tell
        turned_down.max() < 10 if turned_down.size else None
    ),
    "better": floor_units_widen,
    "floor-units-widen": floor_units_widen,
    "weights-repair": repaired,
    "picture-is-the-same": alike_throughout,
    "closer-than-unprotected": lambda better: better.all(),
    "left-of-the-dashed-line": lambda better: better.all(),
    "each-weight-kept-the-mean": dp_where_sure,
    "tail-depended-on-the-model": lambda ten, throughout, tail, components: (
        ten and throughout(tail, components, -1) and throughout(tail, 1, 1)
    ),
    # risk
    "next-to-nothing": lambda found: (
        abs(found["DPweighted"] / found["Unweighted"] - 1) < 0.02
    ),
    "model-did-the-work": lambda found: found["Unweighted"] < 0.2 * found["Data"],
    # than by shuffling
    "a-third-more-at-most": lambda found, patterns: (
        patterns < found.drop("Data").min()
        and found.drop("Data").max() <= 4 / 3 * patterns
    ),
    "small-part-of-the-data": lambda found: (
        found.drop("Data").max() < 0.2 * found["Data"]
    ),
    "from-the-model": lambda found: found["Unweighted"] < 0.5 * found["Data"],
    "fraction-of-the-bound": lambda dp, unweighted, components: (
        dp.result.local_bound < 0.5 * unweighted[components].result.local_bound
    ),
    "cut-to-a-third": lambda dp, unweighted, components: (
        0.2 < dp.result.local_bound / unweighted[components].result.local_bound < 0.5
    ),
    # Countweighted
    "as-few-to-find": lambda found_by_four: (
        max(found_by_four) < 1.3 * min(found_by_four)
    ),
    "count-is-furthest-off": lambda furthest, tail: furthest("mean") and furthest(tail),
    "count-has-smallest-delta": lambda four: (
        min(four, key=lambda who: four[who].result.local_bound) == "Countweighted"
    ),
}
NUMBERS = {
    "mean, difference": lambda typical: interval(
        *difference(typical["mean", "EMweighted"], typical["mean", "DPweighted"])
    ),
    "mean, on average": lambda away, components: interval(
        *on_average(away, "mean", components)
    ),
    "factor up": lambda up: f"{up:.0f}",
    "factor down": lambda down: f"{down:,.0f}",
    "deviations": lambda deviations: f"{deviations:.0f}",
    "K": lambda components: f"{components}",
    "lowest": lambda income_floor: (
        f"{income_floor:g} US dollar" + "s" * (income_floor != 1)
    ),
    "settings": lambda settings: ", ".join(
        "({:g}, {:g})".format(*pair) for pair in settings
    ),
    "DP weight": lambda dp: f"{dp.result.weights.mean():.2f}",
    "EM weight": lambda em: f"{em.result.weights.mean():.2f}",
    "met": lambda off: f"{np.sum(off <= ppm.OneWeight.tolerance)}",
    "searches": lambda off: f"{len(off)}",
    "fall of one": lambda falls: f"{falls[1]:.0f}",
    "Δ of one": lambda unweighted: f"{unweighted[1].result.local_bound:.1f}",
    "fall of K": lambda falls, components: (
        f"{falls[components]:.0f}" if components > 1 else None
    ),
    "Δ of K": lambda unweighted, components: (
        f"{unweighted[components].result.local_bound:.1f}" if components > 1 else None
    ),
    "poor": lambda poor: f"{poor}",
    "fits": lambda bounds_table: f"{len(bounds_table)}",
    **{
        f"{who}, {name}": lambda typical, place=(name, who): f"{typical[place][0]:.1f}"
        for who, name in [
            ("Unweighted", "90th percentile"),
            ("DPweighted", "mean"),
            ("DPweighted", "90th percentile"),
            ("DPweighted", "means by education"),
            ("EMweighted", "mean"),
            ("EMweighted", "90th percentile"),
            ("EMweighted", "means by education"),
            ("First quarter alone", "means by education"),
        ]
    },
    "apart": lambda apart: f"{apart:.1f}",
    "wild": lambda wild: f"{wild:.0f}",
    "least of one": lambda least: f"{least:.0f}",
    "most of one": lambda one: f"{one['error (%)'].max(axis=None):.0f}",
    "DPweighted of one": lambda one: f"{one['error (%)', 'DPweighted'].max():.0f}",
    "plain of one": lambda plain: f"{plain[0]:.0f}",
    **{
        f"means, {who}": lambda means, who=who: (
            f"{means[who].min():.1f} to {means[who].max():.1f}"
        )
        for who in ("DPweighted", "EMweighted")
    },
    "decided": lambda sure: f"{sure.sum()}",
    "pairs": lambda sure: f"{sure.size}",
    "radius": lambda radius: f"{100 * radius:g}",
    "in the data": lambda found: f"{found['Data']:.0f}",
    "in Unweighted": lambda found: f"{found['Unweighted']:.0f}",
    "found, Unweighted": lambda found: f"{found['Unweighted']:.1f}",
    "found, DPweighted": lambda found: f"{found['DPweighted']:.1f}",
    "fewest found": lambda found: f"{found.drop('Data').min():.0f}",
    "most found": lambda found: f"{found.drop('Data').max():.0f}",
    "shuffled": lambda patterns: f"{patterns}",
}
