"""Claims and numbers of the chapter on what is weaker."""

import numpy as np
from scipy.special import softmax

import ppm
from ppm_book.chapters import household


def on_the_list(picture):
    """H leaves the eight, with the others' weights as they were."""
    return picture.state


def list_again(counts):
    """And with the weights computed again."""
    return household.state(counts, 7, again=True)


def anybody_at_any_scale(counts):
    """Each household leaves the eight, at each place of the slider, with weights again."""
    return [
        household.state(counts, place, scale=scale, again=True)
        for place in range(counts.size)
        for scale in np.arange(1, 21) / 20
    ]


def with_threshold(picture):
    """What the first button of the picture shows."""
    return picture.broken["Above 2Δ with M"]


def without_threshold(picture):
    """And the second."""
    return picture.broken["Above 2Δ without M"]


def of_lone(run, lone, seed):
    """Two fits under Weighted: a lone 40 is in, and has left."""
    return run(lone, seed), run(lone[:-1], seed)


def means_of_lone(of_lone):
    return [fit.model.posterior(fit.weights).mean() for fit in of_lone]


def mean_with_m(run, lone, seed, truncate_at):
    """Of μ under Weighted-M, with everybody in."""
    fit = run(lone, seed, truncate_at)
    return fit.model.posterior(fit.weights).mean()


def lone_weighted(forty):
    return forty.loc["Weighted"]


def every_draw_above(lone_weighted):
    return (lone_weighted["smallest loss"] > lone_weighted["2Δ"]).all()


def slopes(growth):
    """By which power of n each line grows, from one end to the other."""
    ends = np.log(growth.iloc[[0, -1]])
    return np.diff(ends, axis=0)[0] / np.diff(np.log(growth.index[[0, -1]]))


def steps(growth):
    return np.diff(growth, axis=0)


def lone_grows(growth, steps, slopes):
    """Above the line everywhere, and in proportion to n."""
    return growth["a lone 40"].min() > 1 and steps[:, 0].min() > 0 and slopes[0] > 0.9


def a_beside(bounds):
    """Weights of A without a threshold: beside H, and when H has left."""
    return ppm.record_weights(bounds)[0], ppm.record_weights(bounds[:7])[0]


def broken(log_ratio):
    return np.abs(log_ratio).max()


def two_delta_broken(beside_h, bounds):
    return 2 * (beside_h * bounds).max()


def broken_by(changed):
    """Loss when each household leaves, with the threshold."""
    return [
        household.state(changed, place, truncate_at=5, again=True).loss
        for place in range(changed.size)
    ]


def outside_broken(log_ratio, two_delta_broken, log_p_on_list, beside_h):
    """Probability, with H, of what is outside the band."""
    outside = np.abs(log_ratio) > two_delta_broken
    return softmax(log_p_on_list @ beside_h)[outside].sum()


def two_delta_list(on_the_list):
    return 2 * on_the_list.delta


def two_delta_changed(changed):
    """Without the threshold."""
    return 2 * household.state(changed).delta


def middle(totals, says):
    """The totals that speak for H."""
    return totals[says > 0]


def middle_speaks(says):
    return says.max() > 0 > max(says[0], says[-1])


def lower_and_wider(posteriors):
    return (
        posteriors[1].mean() < posteriors[0].mean()
        and posteriors[1].std() > posteriors[0].std()
    )


def all_seven_move(seven):
    return (seven["with H"] - seven["without H"]).abs().min() > 0.01


def g_loses(seven):
    return seven["with H"][6] > 0.9 and seven["without H"][6] == 0


def rules_above(again_above):
    """Which have a loss above 2Δ, with the weights computed again."""
    return set(again_above.query("exceeded > 0").index.get_level_values(0))


def eight_below(anybody_at_any_scale):
    return all(one.loss < 2 * one.delta for one in anybody_at_any_scale)


def weighted_stays_below(rules_above, eight_below, again, two_delta):
    """Wherever the chapter looks, for weights without a threshold."""
    return eight_below and again < two_delta and "Weighted" not in rules_above


def reached(with_h):
    return with_h.theta["mu"]


def passed_at(epsilon):
    """By how much draws that are off by 0.001 may let a probability pass its limit."""
    return 0.001 * (1 + np.exp(epsilon))


def posteriors(counts, with_h, without_h):
    """Of μ, by the Gamma prior, with H and when H has left."""
    return [
        ppm.GammaPoisson(records, shape=1.0, rate=0.1).posterior(fit.weights)
        for records, fit in ((counts, with_h), (counts[:-1], without_h))
    ]


def frozen(loss):
    """Largest loss when H leaves and the others keep their weights."""
    return np.abs([*loss.values()][0]).max()


def again(loss):
    """And when the weights are computed again."""
    return np.abs([*loss.values()][1]).max()


def seven(weights):
    return weights.dropna()


def large(again_above, sizes):
    return again_above.loc[("Weighted-M", sizes[-1])]


def typical(times, losses):
    return times.groupby([losses["mechanism"], losses["size"]]).median().unstack()


def shrinks(typical, sizes):
    return 2 * typical[sizes[-1]] < typical[sizes[0]]


def grows(typical, sizes):
    return typical[sizes[-1]] > typical[sizes[0]]


def most_times(times, losses, sizes):
    """Among the databases of Weighted-M."""
    largest = (losses["size"] == sizes[-1]) & (losses["mechanism"] == "Weighted-M")
    return times[largest].max()


def sure(power):
    return power - 2 * np.sqrt(power * (1 - power) * 2 / 20_000)


def spread(one_seed):
    return [law[0].std() / law[0].mean() for law in one_seed]


def h_or_not(ordinary):
    return np.subtract(*(law[0].logpmf(np.arange(200)) for law in ordinary))


CLAIMS = {
    "h-has-no-weight": lambda with_h, on_the_list: (
        with_h.weights[7] == 0 and on_the_list.weights[7] == 0
    ),
    "nothing-changes-on-the-list": lambda on_the_list: np.isclose(on_the_list.loss, 0),
    "five-of-seven-move": lambda list_again: (
        list(np.flatnonzero(np.abs(list_again.weights - list_again.left)[:7] > 0.01))
        == [0, 1, 2, 5, 6]
        and list_again.loss > 1
        and np.all(np.array([list_again.weights, list_again.left])[:, [3, 4]] == 1)
    ),
    "a-loses-its-weight": lambda list_again: (
        list_again.weights[0] > 0.9 and list_again.left[0] == 0
    ),
    "eight-below-two-delta": lambda eight_below: eight_below,
    "only-d-and-e": lambda beside_h: list(np.flatnonzero(beside_h)) == [3, 4],
    "others-come-back": lambda h_away: (
        list(np.flatnonzero(h_away)) == [0, 1, 2, 3, 4, 6]
    ),
    "a-passes-under": lambda a_beside, bounds: (
        a_beside[0] * bounds[0] > 5 > a_beside[1] * bounds[0]
    ),
    "broken-above-two-delta": lambda broken, two_delta_broken, with_threshold: (
        np.isclose(broken, with_threshold.loss)
        and np.isclose(two_delta_broken, 2 * with_threshold.delta)
        and broken > two_delta_broken
    ),
    "weight-0-costs-the-most": lambda beside_h, broken, broken_by, two_delta_broken: (
        beside_h[7] == 0
        and np.argmax(broken_by) == 7
        and np.isclose(broken, broken_by[7])
        and broken > two_delta_broken
    ),
    "highest-at-12": lambda log_ratio, means: (
        np.argmax(log_ratio) == np.argmax(np.abs(log_ratio)) == means.size - 1
    ),
    "draws-reach-less-far": lambda reached, two_delta, two_delta_list: (
        2 < reached.min() < reached.max() < 12 and two_delta < two_delta_list
    ),
    "lower-and-wider": lower_and_wider,
    "down-and-wider": lower_and_wider,
    "g-loses-its-weight": g_loses,
    "g-falls-to-0": g_loses,
    "others-move-g-to-0": lambda all_seven_move, g_loses: all_seven_move and g_loses,
    "a-falls-by-a-third": lambda seven: (
        seven["without H"][0] < 2 / 3 * seven["with H"][0]
    ),
    "all-seven-move": all_seven_move,
    "frozen-nothing-changes": lambda frozen: np.isclose(frozen, 0),
    "far-below-two-delta": lambda again, two_delta: 2 * again < two_delta,
    "one-table-stays-below": lambda again, two_delta: again < two_delta,
    "fixed-none-above": lambda above: (
        above["exceeded"].xs("fixed", level="loss").sum() == 0
    ),
    "unweighted-and-weighted-shrink": lambda shrinks: (
        shrinks["Unweighted"] and shrinks["Weighted"]
    ),
    "weighted-shrinks": lambda shrinks: shrinks["Weighted"],
    "weighted-m-does-not": lambda grows: grows["Weighted-M"],
    "no-other-rule-above": lambda rules_above: rules_above <= {"Weighted-M"},
    "weighted-stayed-below": weighted_stays_below,
    "weighted-in-tables-drawn": weighted_stays_below,
    "weighted-above-too": lambda without_threshold: (
        without_threshold.loss > 1.2 * 2 * without_threshold.delta
    ),
    "three-lose-all": lambda without_threshold: (
        list(np.flatnonzero(without_threshold.left == 0)) == [0, 4, 5, 7]
        and without_threshold.weights[[0, 4, 5]].min() > 0.9
    ),
    "twelves-lose-all": lambda lone_weighted: (
        lone_weighted["weight of a 12"].min() > 0.9
        and lone_weighted["without the 40"].max() == 0
    ),
    "every-draw-above": every_draw_above,
    "three-and-ten-times": lambda lone_weighted: (
        (lone_weighted["smallest loss"] > 3 * lone_weighted["2Δ"]).all()
        and (lone_weighted["largest loss"] > 10 * lone_weighted["2Δ"]).all()
    ),
    "threshold-protects": lambda forty: (
        forty.loc["Weighted-M", ["weight of a 12", "largest loss"]].max(axis=None)
        < 1e-9
        and forty.loc["Weighted-M", "2Δ"].min() > 1
    ),
    "lone-grows": lone_grows,
    "costs-next-to-nothing": lambda growth: (
        growth.drop(columns="a lone 40").max(axis=None) < 0.05
    ),
    "theta-fades": lambda steps, slopes: (
        steps[:, 2].max() < 0 and abs(slopes[2] + 0.5) < 0.1
    ),
    "company-holds": lambda growth, steps: (
        growth["one 40 of many"].max() < 0.05 and steps[:, 1].max() < 0
    ),
    "lone-grows-like-n": lambda slopes: abs(slopes[0] - 1) < 0.1,
    "every-draw-and-n": lambda every_draw_above, lone_grows: (
        every_draw_above and lone_grows
    ),
    "only-weighted-m-above": lambda rules_above: rules_above == {"Weighted-M"},
    "most-in-the-largest": lambda again_above, large, sizes: (
        large["low"] > 2 * again_above.loc["Weighted-M"].drop(sizes[-1])["high"].max()
    ),
    "not-by-a-little": lambda most_times: most_times > 2,
    "up-to-times": lambda large, most_times: large["exceeded"] > 0 and most_times > 1,
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
    "secret-seed-no-end": lambda sure, power: (
        sure.loc[("Without the seed", "likelihood ratio"), 20]
        > power.loc[("Without the seed", "total"), 20]
        and sure.loc[("Without the seed", "likelihood ratio"), 20] > 0.1
    ),
    "one-table-not-much": lambda power: power.loc["With weights", 1].max() < 0.08,
    "wider-at-the-lower-end": lambda twenty: (
        twenty["with H"][0] - twenty["H away"][0]
        > 2 * abs(twenty["with H"][-1] - twenty["H away"][-1])
    ),
    "middle-speaks-for-h": middle_speaks,
    "only-the-middle": middle_speaks,
    "own-do-not-react": lambda own_with_h, own_without_h: np.array_equal(
        own_with_h.weights[:-1], own_without_h.weights
    ),
    "h-keeps-some": lambda own_with_h: (
        np.argmin(own_with_h.weights) == 7 and own_with_h.weights[7] > 0.01
    ),
    "own-keeps-less": lambda own_with_h, on_the_list: (
        own_with_h.weights.sum() < on_the_list.weights.sum()
    ),
    "own-within-w": lambda own_with_h, own_ratio: (
        own_with_h.strict
        and np.abs(own_ratio).max() <= own_with_h.rule.width + 1e-9
        and own_with_h.epsilon() == own_with_h.rule.width
    ),
    "another-table-another-delta": lambda two_delta_list, two_delta_changed: (
        two_delta_changed > two_delta_list
    ),
    "chain-says-nothing": lambda two_delta: passed_at(two_delta) > 1,
}
NUMBERS = {
    "loss without M": lambda without_threshold: f"{without_threshold.loss:.2f}",
    "2Δ without M": lambda without_threshold: f"{2 * without_threshold.delta:.2f}",
    "weight of three": lambda without_threshold: f"{without_threshold.weights[0]:.2f}",
    "twelve before": lambda lone_weighted: (
        f"{lone_weighted['weight of a 12'].iloc[0]:.2f}"
    ),
    "mean before": lambda means_of_lone: f"{means_of_lone[0]:.1f}",
    "mean after": lambda means_of_lone: f"{means_of_lone[1]:.1f}",
    "mean with M": lambda mean_with_m: f"{mean_with_m:.1f}",
    "average of lone": lambda lone: f"{lone.mean():.1f}",
    "held first": lambda growth: f"{100 * growth.iloc[0, 2]:.1f}",
    "held last": lambda growth: f"{100 * growth.iloc[-1, 2]:.1f}",
    "n last": lambda growth: f"{growth.index[-1]:,}",
    "lone last": lambda growth: f"{growth.iloc[-1, 0]:.0f}",
    "A on the list": lambda on_the_list: f"{on_the_list.weights[0]:.2f}",
    "loss broken": lambda broken: f"{broken:.2f}",
    "2Δ broken": lambda two_delta_broken: f"{two_delta_broken:.2f}",
    "factor broken": lambda broken: f"{round(np.exp(broken), -3):,.0f}",
    "outside broken": lambda outside_broken: f"{100 * outside_broken:.2g}",
    "2Δ list": lambda two_delta_list: f"{two_delta_list:.2f}",
    "2Δ changed": lambda two_delta_changed: f"{two_delta_changed:.2f}",
    "G before": lambda seven: f"{seven['with H'][6]:.2f}",
    "chain at 0.1": lambda: f"{passed_at(0.1):.4f}",
    "chain at 2Δ": lambda two_delta: f"{passed_at(two_delta):.1f}",
    "speaks from": lambda middle: f"{middle.min()}",
    "speaks to": lambda middle: f"{middle.max()}",
    "own sum": lambda own_with_h: f"{own_with_h.weights.sum():.1f}",
    "sum": lambda on_the_list: f"{on_the_list.weights.sum():.1f}",
    "A moves": lambda log_p_eight: f"{np.ptp(log_p_eight[:, 0]):.2f}",
    "A own": lambda own_with_h: f"{own_with_h.weights[0]:.2f}",
    "loss again": lambda again: f"{again:.2f}",
    "2Δ": lambda two_delta: f"{two_delta:.2f}",
    "share above": lambda large: f"{100 * large['estimate']:.0f} %",
    "times": lambda most_times: f"{most_times:.1f}",
    **{
        f"{release} {attack} {m}": lambda power, row=(release, attack), m=m: (
            f"{100 * power.loc[row, m]:.0f}"
        )
        for release, attack, m in [
            ("With weights", "total", 20),
            ("With weights", "likelihood ratio", 20),
            ("Without the seed", "total", 20),
            ("Without the seed", "likelihood ratio", 20),
        ]
    },
}
