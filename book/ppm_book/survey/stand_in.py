"""A simulated stand-in for the survey's table, for runs without the Bureau's files."""

import tomllib
from pathlib import Path

import numpy as np

from ppm.checks import check_count
from ppm.seeds import generator
from ppm_book.survey.expenditure import ConsumerExpenditure, as_table

_GIVEN = tomllib.loads(Path(__file__).with_name("stand_in.toml").read_text("utf-8"))
_INCOME_FLOOR, _INCOME_CAP = -7_000.0, 1_800_000.0  # the range the paper gives, dollars
_NONPOSITIVE_SHARE = 0.0014


def simulate(n=6208, *, random_seed=2017):
    """Simulate a stand-in for the paper's sample, with columns as :func:`~ppm_book.survey.load`.

    Household traits depend on one another (education and marital status on age, family size on
    marital status, urban type on CBSA status, …). Log income is a regression on them plus a
    mixture of three normals; it is skewed, capped at 1.8 million dollars, and about 0.14 % of
    the incomes are zero or a loss of up to 7,000 dollars.

    Parameters
    ----------
    n : int
        Consumer units, at least 1. The default is the paper's.
    random_seed : int, SeedSequence or numpy.random.Generator
        Repeats the same table exactly.

    Returns
    -------
    ConsumerExpenditure
        With ``survey="simulated"``: for learning the method, not for statements on incomes.

    Examples
    --------
    >>> from ppm_book import survey
    >>> data = survey.simulate(100, random_seed=1)
    >>> len(data.table), data.survey
    (100, 'simulated')
    """
    n = check_count("n", n)
    rng = generator(random_seed)

    codes = {}
    for name, trait in _GIVEN["traits"].items():
        rows = codes[trait["given"]] if "given" in trait else np.zeros(n, dtype=int)
        codes[name] = _draw(rng, np.atleast_2d(trait["shares"])[rows])
    codes["earner"] = 1 - codes["earner"]
    model = _GIVEN["log_income"]
    mean = model["level"] + sum(
        np.asarray(effects)[codes[name]] for name, effects in model["effects"].items()
    )
    share, shift, spread = np.array(model["noise"]).T
    part = _draw(rng, np.tile(share, (n, 1)))
    log_income = mean + shift[part] + spread[part] * rng.standard_normal(n)
    income = np.clip(np.round(np.exp(log_income)), 1.0, _INCOME_CAP)
    without = rng.choice(n, size=round(_NONPOSITIVE_SHARE * n), replace=False)
    losses = np.round(rng.uniform(_INCOME_FLOOR, 0.0, size=without.size))
    losses[rng.random(without.size) < 0.5] = 0.0
    income[without] = losses
    return ConsumerExpenditure(
        table=as_table(codes, income),
        source=f"simulated stand-in, {n:,} consumer units",
        units_read=n,
        dropped={},
        substitutions=("Every value is simulated in place of the survey the paper used.",),
        survey="simulated",
        rows_read=n,
        quarter=np.full(n, ""),
    )


def _draw(rng, probabilities):
    """One category per row of `probabilities` (rows, categories), by inverting the sums."""
    sums = np.cumsum(probabilities, axis=1)
    return (rng.random(len(sums))[:, None] * sums[:, -1:] >= sums).sum(axis=1)
