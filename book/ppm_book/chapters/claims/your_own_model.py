"""Claims and numbers of the chapter on your own model."""

import numpy as np
import pandas as pd

import ppm


def more(synthetic_answers, table, groups_of_age):
    """Share of yes above that of the data, by release and age."""
    return (
        pd.DataFrame((synthetic_answers.values - table["answer"].to_numpy()).T)
        .groupby(groups_of_age.to_numpy(), observed=False)
        .mean()
        .T
    )


def together(synthetic_answers, table):
    return pd.Series((synthetic_answers.values - table["answer"].to_numpy()).mean(1))


def bound_in(units):
    """Local bound of the unweighted fit, by the unit of expenditures."""
    return units.set_index("Unit of expenditures")["Δ"]


def in_millions(log_p):
    return log_p - np.log(1e-3)


def typical(spending):
    """How far each household is from the mean, in standard deviations."""
    return np.abs(spending - spending.mean()) / spending.std()


def long_fit(diagnostics):
    return diagnostics.iloc[:, 0].astype(float)


def short_fit(diagnostics):
    return diagnostics.iloc[:, 1].astype(float)


def changes(published, shown):
    """Mean change that each rule shows, as a share of what nothing protected shows."""
    moved = pd.Series(shown) - published.mean()
    return moved / moved["Data"]


def own_weights_of(listed, rules, new_table):
    """Mean own weight of the insured, by their answer."""
    weights = ppm.fit(listed, rules["Own weights"], draws=1).weights
    insured = new_table["insured"] == 1
    return pd.Series(weights)[insured].groupby(new_table["answer"][insured]).mean()


def by_d(carried):
    return carried.set_index("parameters")


def four_carried(by_d):
    """Whether with four parameters a few candidates are left, and one is near."""
    return by_d.loc[4, "left, r = 5"] > 4 and by_d.loc[4, "nearest, r = 5"] < 1


CLAIMS = {
    "falls-at-all-ages": lambda together: together.mean() < -2 * together.sem(),
    "most-at-61": lambda more: (
        more.mean().idxmin() == "61–79"
        and more["61–79"].mean() < -2 * more["61–79"].sem()
    ),
    "cents-add": lambda bound_in: np.isclose(
        bound_in["cents"] - bound_in["thousand dollars"], np.log(1e5)
    ),
    "typical-at-risk": lambda log_p, spending: (
        np.median(in_millions(log_p)) > 0
        and typical(spending)[ppm.record_bounds(in_millions(log_p)).argmax()] < 0.3
    ),
    "r-hat-close-to-1": lambda long_fit: (long_fit.filter(like="R-hat") < 1.05).all(),
    "hundreds-of-draws": lambda long_fit: (long_fit.filter(like="ESS") > 100).all(),
    "hardly-any-diverged": lambda long_fit: (
        long_fit["divergences"] < 0.01 * long_fit["draws S"]
    ),
    "short-is-smaller": lambda long_fit, short_fit: short_fit["Δ"] < long_fit["Δ"],
    "limits-show-most": lambda changes: 0.8 < changes["Limits"] < 1.2,
    "own-turn-down-yes": lambda own_weights_of: (
        own_weights_of[1] < own_weights_of[0] - 0.1
    ),
    "few-share": lambda chances: (
        1 / (chances["Data"] ** 2).sum() < 0.05 * chances["Data"].size
    ),
    "one-has-a-thousand": lambda by_d: (by_d.loc[1].filter(like="left") > 1000).all(),
    "own-show-nothing": lambda changes: changes["Own weights"] < 0.1,
    "divides-by-r": lambda by_d: all(
        0.9 * r < (10_000 / by_d.loc[4, f"left, r = {r}"]) ** (1 / 4) < 1.5 * r
        for r in (3, 5)
    ),
    "carries-four": lambda four_carried: four_carried,
    "list-for-four": lambda four_carried: four_carried,
    "eight-are-too-many": lambda by_d: (
        by_d.loc[8, "left, r = 5"] < 4 and by_d.loc[8, "nearest, r = 5"] > 1.2
    ),
    "limits-leave-more": lambda by_d: (
        by_d["left under limits, r = 5"] > by_d["left, r = 5"]
    ).all(),
}
NUMBERS = {
    "yes in data": lambda shares: f"{shares.loc['61–79', 'confidential']:.2f}",
    "yes in releases": lambda shares: f"{shares.loc['61–79', 'synthetic']:.2f}",
    "few": lambda short_fit: f"{short_fit['ESS, sum']:.0f}",
    "limits share": lambda changes: f"{100 * changes['Limits']:.0f} %",
    "candidates": lambda of_insured: f"{of_insured.size:,}",
    "eight": lambda by_d: f"{by_d.loc[8, 'left, r = 5']:.1f}",
    "nearest": lambda by_d: f"{by_d.loc[8, 'nearest, r = 5']:.1f}",
}
