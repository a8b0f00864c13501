"""Claims and numbers of the chapter on your own model."""

import numpy as np
import pandas as pd

import ppm


def more(synthetic_answers, answer, groups):
    """Share of yes above that of the data, by release and age."""
    return (
        pd.DataFrame((synthetic_answers.values - answer).T)
        .groupby(groups, observed=False)
        .mean()
        .T
    )


def together(synthetic_answers, answer):
    return pd.Series((synthetic_answers.values - answer).mean(axis=1))


def moved(expenditure, level_of, levels, regions):
    """How far the weights moved each region's level, in standard errors."""
    fits = [level_of(fit).values for fit in (expenditure.unweighted, expenditure)]
    error = [
        np.sqrt(sum(one.var() / ppm.chains.effective_draws(one) for one in both))
        for both in zip(*(np.moveaxis(fit, -1, 0) for fit in fits), strict=True)
    ]
    return (levels["weighted"] - levels["unweighted"]).set_axis(regions) / error


def largest(log_lik):
    return ppm.record_bounds(log_lik).max()


def kept(levels):
    """What the islands keep."""
    return levels["sum of weights"].iloc[-1]


def households_there(levels):
    return levels["households"].iloc[-1]


def bound_in(units):
    """Local bound of the unweighted fit, by the unit of expenditures."""
    return units.set_index("Unit of expenditures")["Δ"]


def sample(weighed):
    return [*weighed["posterior mean"]][0]


def population(weighed):
    return [*weighed["posterior mean"]][1]


def inside(weighed):
    return [*weighed["posterior mean"]][2]


def noise(population, asked, draws):
    return np.sqrt(2 * population / asked.size / draws)


def centred_share(of_ill):
    before, centred, _, unprotected = of_ill
    return (centred - before) / (unprotected - before)


def own_share(of_ill):
    before, _, own, unprotected = of_ill
    return (own - before) / (unprotected - before)


CLAIMS = {
    "falls-at-all-ages": lambda together: together.mean() < -2 * together.sem(),
    "most-at-61": lambda more: (
        more.mean().idxmin() == "61–79"
        and more["61–79"].mean() < -2 * more["61–79"].sem()
    ),
    "more-than-halve": lambda expenditure, largest: (
        expenditure.local_bound < largest / 2
    ),
    "keep-nearly-all": lambda kept, households_there, levels: (
        kept > 0.9 * households_there == 0.9 * levels["households"].min()
    ),
    "own-level-hardly-moves": lambda moved: moved.abs().idxmin() == "Islands",
    "other-levels-fall": lambda moved: (moved.drop("Islands") < -2).all(),
    "cents-add": lambda bound_in: np.isclose(
        bound_in["cents"] - bound_in["thousand dollars"], np.log(1e5)
    ),
    "cents-double": lambda bound_in: (
        1.8 < bound_in["cents"] / bound_in["thousand dollars"] < 2.2
    ),
    "largest-count-smallest-weight": lambda visiting, visits: (
        visiting.weights[visits.argmax()] == visiting.weights.min()
    ),
    "varies-much": lambda synthetic_visits: (
        np.quantile(synthetic_visits, 0.99, axis=1).std() > 1
    ),
    "sampling-weights": lambda sample, population: (
        abs(sample - 3.0) < 0.2 and abs(population - 2.4) < 0.2
    ),
    "move-it-down": lambda population, inside, noise: population - inside > 2 * noise,
    "centred-show-half": lambda centred_share: 0.5 < centred_share < 1.2,
    "own-lose-nearly-all": lambda own_share: abs(own_share) < 0.25,
    "r-hat-close-to-1": lambda diagnostics: (
        diagnostics.filter(like="R-hat") < 1.05
    ).all(axis=None),
    "hundreds-of-draws": lambda diagnostics: (diagnostics.filter(like="ESS") > 100).all(
        axis=None
    ),
    "hardly-any-diverged": lambda diagnostics, chains, draws: (
        diagnostics["divergences"].sum() < 0.01 * chains * draws
    ),
}
NUMBERS = {
    "yes in data": lambda shares: f"{shares.loc['61–79', 'confidential']:.2f}",
    "yes in releases": lambda shares: f"{shares.loc['61–79', 'synthetic']:.2f}",
    "bound before": lambda largest: f"{largest:.1f}",
    "bound after": lambda expenditure: f"{expenditure.local_bound:.1f}",
    "islands": lambda kept, households_there: f"{kept:.1f} of {households_there}",
    "population": lambda population: f"{population:.2f}",
    "inside": lambda inside: f"{inside:.2f}",
    "centred share": lambda centred_share: f"{100 * centred_share:.0f} %",
    "own share": lambda own_share: f"{100 * own_share:.0f} %".replace("-", "−"),
}
