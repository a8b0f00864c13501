"""Claims and numbers of the chapter on what is weaker."""

import numpy as np


def frozen(loss):
    """Largest loss when H leaves and the others keep their weights."""
    return np.abs([*loss.values()][0]).max()


def again(loss):
    """And when the weights are computed again."""
    return np.abs([*loss.values()][1]).max()


def seven(weights):
    return weights.dropna()


def small(again_above, sizes):
    return again_above.loc[("Weighted-M", sizes[0])]


def large(again_above, sizes):
    return again_above.loc[("Weighted-M", sizes[-1])]


def typical(times, losses):
    return times.groupby([losses["mechanism"], losses["size"]]).median().unstack()


def shrinks(typical, sizes):
    return 2 * typical[sizes[-1]] < typical[sizes[0]]


def grows(typical, sizes):
    return typical[sizes[-1]] > typical[sizes[0]]


def worst(losses, sizes):
    return losses[losses["size"] == sizes[-1]].groupby("mechanism")["common"].max()


def most_times(times, losses, sizes):
    return times[losses["size"] == sizes[-1]].max()


def sure(power):
    return power - 2 * np.sqrt(power * (1 - power) * 2 / 20_000)


def spread(one_seed):
    return [law[0].std() / law[0].mean() for law in one_seed]


def h_or_not(ordinary):
    return np.subtract(*(law[0].logpmf(np.arange(200)) for law in ordinary))


def worst_of(losses):
    return losses.groupby("mechanism")["common"].max()


CLAIMS = {
    "h-has-no-weight": lambda with_h: with_h.weights[7] == 0,
    "g-loses-its-weight": lambda seven: (
        seven["with H"][6] > 0.9 and seven["without H"][6] == 0
    ),
    "all-seven-move": lambda seven: (
        (seven["with H"] - seven["without H"]).abs().min() > 0.01
    ),
    "frozen-nothing-changes": lambda frozen: np.isclose(frozen, 0),
    "far-below-two-delta": lambda again, two_delta: 2 * again < two_delta,
    "picture-below-two-delta": lambda picture: all(
        max(now[-1]["bars"]) <= now[-1]["across"][0]
        for _, now in picture.content["frames"]
    ),
    "fixed-none-above": lambda above: (
        above["exceeded"].xs("fixed", level="loss").sum() == 0
    ),
    "unweighted-and-weighted-shrink": lambda shrinks: (
        shrinks["Unweighted"] and shrinks["Weighted"]
    ),
    "weighted-m-does-not": lambda grows: grows["Weighted-M"],
    "share-far-larger": lambda large, small: large["low"] > 2 * small["high"],
    "no-other-rule-above": lambda again_above: (
        set(again_above.query("exceeded > 0").index.get_level_values(0))
        == {"Weighted-M"}
    ),
    "not-by-a-little": lambda most_times: most_times > 2,
    "average-hardly-changes": lambda one_seed: (
        abs(one_seed[0][0].mean() / one_seed[1][0].mean() - 1) < 0.1
    ),
    "weights-add-up-to-less": lambda without_h, with_h: (
        without_h.weights.sum() < with_h.weights.sum() - 1
    ),
    "tables-differ-more": lambda spread: spread[1] > spread[0],
    "ratio-rises": lambda h_or_not: np.diff(h_or_not).min() > 0,
    "better-attack": lambda sure, power: all(
        sure.loc[(name, "likelihood ratio"), m] > power.loc[(name, "total"), m]
        for name in ("With weights", "Without the seed")
        for m in (3, 20)
    ),
    "one-table-not-much": lambda power: power.loc["With weights", 1].max() < 0.08,
    "differ-for-h-only": lambda own_term, all_terms: (
        list(np.flatnonzero(~np.isclose(own_term, all_terms))) == [7]
    ),
    "costs-the-most": lambda all_terms: np.argmax(all_terms) == 7,
    "unweighted-smallest-loss": lambda decisive: (
        decisive["loss"].idxmin() == "Unweighted"
    ),
    "repaired-stay-below": lambda decisive, worst_of: all(
        decisive.loc[rule, "ε"] > 1.25 * worst_of[rule]
        for rule in ("Capped on T", "Range-capped on T")
    ),
}
NUMBERS = {
    "loss again": lambda again: f"{again:.2f}",
    "2Δ": lambda two_delta: f"{two_delta:.2f}",
    "fewest": lambda sizes: f"{sizes[0]:,}",
    "most": lambda sizes: f"{sizes[-1]:,}",
    "share above": lambda large: f"{100 * large['estimate']:.0f} %",
    "largest loss": lambda worst: f"{worst['Weighted-M']:.1f}",
    "times": lambda most_times: f"{most_times:.1f}",
    **{
        f"{release} {attack} {m}": lambda power, row=(release, attack), m=m: (
            f"{100 * power.loc[row, m]:.0f}"
        )
        for release, attack, m in [
            ("With weights", "total", 3),
            ("With weights", "total", 20),
            ("With weights", "likelihood ratio", 3),
            ("With weights", "likelihood ratio", 20),
            ("Without the seed", "total", 20),
            ("Without the seed", "likelihood ratio", 20),
        ]
    },
}
