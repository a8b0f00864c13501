"""The two tables of the pages on strict releases, and a posterior for them."""

import numpy as np
import pandas as pd

import ppm
from ppm_book.chapters import survey

#: The lowest and the highest income of a release, in dollars: those that the paper prints.
LIMITS = -7_000, 1_800_000


def last_and_this_year(ce_data, records, seed):
    """Groups and incomes of the published table and of the confidential one.

    The first quarter of the survey plays last year, and the other three play this year.

    Parameters
    ----------
    ce_data : str
        File or folder of the survey; empty for the Diary that comes with the book.
    records : int
        Confidential units to use, drawn at random; 0 for all of them.
    seed : int
        Seed of that draw.

    Returns
    -------
    (pandas.DataFrame, pandas.DataFrame)
        Columns ``group`` and ``income``. Each level of education with at least 100 published units
        is a group, and all other units are in the group "other".
    """
    published, confidential = survey.load(ce_data or None, quarters="all").by_quarter()
    number = min(records, len(confidential.table))
    confidential = confidential.subsample(number, random_seed=seed)
    counted = published.table["education"].value_counts()
    large = counted.index[counted >= 100].astype(str)
    tables = []
    for data in (published, confidential):
        level = data.table["education"].astype(str)
        group = level.where(level.isin(large), "other")
        income = data.table["income"].astype(float)
        tables.append(pd.DataFrame({"group": group, "income": income}))
    return tuple(tables)


def posterior(power, *, weight=None, reach=0.1):
    """A normal distribution of the power of each group's incomes, from a grid of 41 × 9.

    The grid is around the mean and the standard deviation of the published powers of a group.

    Parameters
    ----------
    power : float
        Power of income, as of :func:`ppm_book.chapters.survey.power_income`.
    weight : float, optional
        Weight of all records under limits; without it each record has its own weight.
    reach : float, default 0.1
        How far the grid goes from the published mean.

    Returns
    -------
    ppm.release.Posterior
    """

    def powers(table):
        return survey.power_income(table["income"].to_numpy(), power)

    def normal(table):
        return ppm.Normal(powers(table))

    def grid(table):
        means = powers(table).mean() + np.linspace(-reach, reach, 41)
        sds = powers(table).std() * np.geomspace(1 / (1 + 2 * reach), 1 + 2 * reach, 9)
        means, sds = map(np.ravel, np.meshgrid(means, sds))
        return {"beta": means[:, None], "sigma": sds}

    def middle(table):
        return {"beta": powers(table).mean(keepdims=True), "sigma": powers(table).std()}

    def dollars(values):
        lowest, highest = LIMITS
        return survey.income_from_power(values, power, lowest=lowest, highest=highest)

    if weight is None:
        return ppm.release.Posterior(normal, grid, back=dollars)
    return ppm.release.Posterior(normal, grid, middle, weight=weight, back=dollars)
