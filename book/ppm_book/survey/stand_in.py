"""A simulated stand-in for the survey's table, for runs without the Bureau's files."""

import numpy as np

from ppm._random import generator
from ppm._validation import check_count
from ppm_book.survey.expenditure import ConsumerExpenditure, as_table

# Shares rounded from margins of the published 2017 survey, many of them altered, and effects
# made up: they give the stand-in a plausible look and are no estimates of anything.
_AGE_SHARES = (0.01, 0.28, 0.35, 0.30, 0.06)
_EDUCATION_GIVEN_AGE = (
    (0.00, 0.00, 0.15, 0.35, 0.42, 0.07, 0.01, 0.00),
    (0.005, 0.02, 0.06, 0.20, 0.20, 0.115, 0.27, 0.13),
    (0.005, 0.03, 0.06, 0.23, 0.19, 0.11, 0.225, 0.15),
    (0.005, 0.03, 0.06, 0.25, 0.21, 0.095, 0.20, 0.15),
    (0.01, 0.04, 0.11, 0.33, 0.18, 0.05, 0.16, 0.12),
)
_MARITAL_GIVEN_AGE = (
    (0.03, 0.00, 0.00, 0.00, 0.97),
    (0.49, 0.01, 0.07, 0.02, 0.41),
    (0.59, 0.03, 0.20, 0.03, 0.15),
    (0.53, 0.16, 0.20, 0.02, 0.09),
    (0.35, 0.50, 0.10, 0.01, 0.04),
)
_FEMALE_GIVEN_MARITAL = (0.50, 0.80, 0.60, 0.60, 0.55)
_SIZE_GIVEN_MARITAL = (
    (0.02, 0.46, 0.19, 0.18, 0.09, 0.036, 0.012, 0.006, 0.003, 0.0015, 0.0015),
    (0.70, 0.18, 0.065, 0.03, 0.013, 0.006, 0.002, 0.002, 0.001, 0.0005, 0.0005),
    (0.56, 0.24, 0.12, 0.045, 0.02, 0.009, 0.003, 0.001, 0.001, 0.0005, 0.0005),
    (0.38, 0.25, 0.17, 0.10, 0.06, 0.025, 0.008, 0.004, 0.002, 0.0005, 0.0005),
    (0.55, 0.23, 0.12, 0.05, 0.03, 0.012, 0.004, 0.002, 0.001, 0.0005, 0.0005),
)
_EARNS_GIVEN_AGE = (0.75, 0.85, 0.80, 0.40, 0.10)
_REGION_SHARES = (0.18, 0.21, 0.37, 0.24)
_CBSA_SHARES = (0.40, 0.48, 0.12)
_URBAN_TYPE_GIVEN_CBSA = ((0.95, 0.05, 0.00), (0.40, 0.57, 0.03), (0.00, 0.25, 0.75))
_RURAL_GIVEN_CBSA = (0.00, 0.01, 0.60)
_LOG_INCOME_EFFECTS = {
    "gender": (0.0, -0.08),
    "age": (-0.5, 0.0, 0.25, 0.30, 0.25),
    "education": (-0.5, -0.35, -0.25, 0.0, 0.12, 0.22, 0.50, 0.75),
    "region": (0.05, 0.0, -0.06, 0.02),
    "urban": (0.0, -0.15),
    "marital_status": (0.0, -0.20, -0.30, -0.50, -0.40),
    "urban_type": (0.05, 0.0, -0.05),
    "cbsa": (0.10, 0.0, -0.05),
    "family_size": (-0.45, 0.0, 0.12, 0.22, 0.25, 0.28, 0.30, 0.35, 0.40, 0.40, 0.40),
    "earner": (0.0, -0.65),
}
_LOG_INCOME_LEVEL = 10.93
# share, shift and standard deviation of the noise's parts on the log scale: most units, units
# with next to no income in the year, the thin upper tail
_NOISE = ((0.91, 0.0, 0.58), (0.06, -1.5, 1.3), (0.03, 1.0, 0.60))
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
        With ``simulated=True``: for learning the method, not for statements on incomes.

    Examples
    --------
    >>> from ppm_book import survey
    >>> data = survey.simulate(100, random_seed=1)
    >>> len(data.table), data.simulated
    (100, True)
    """
    n = check_count("n", n)
    rng = generator(random_seed)

    age = _draw(rng, np.tile(_AGE_SHARES, (n, 1)))
    marital = _draw(rng, np.asarray(_MARITAL_GIVEN_AGE)[age])
    cbsa = _draw(rng, np.tile(_CBSA_SHARES, (n, 1)))
    codes = {
        "gender": _draw(rng, _two(_FEMALE_GIVEN_MARITAL)[marital]),
        "age": age,
        "education": _draw(rng, np.asarray(_EDUCATION_GIVEN_AGE)[age]),
        "region": _draw(rng, np.tile(_REGION_SHARES, (n, 1))),
        "urban": _draw(rng, _two(_RURAL_GIVEN_CBSA)[cbsa]),
        "marital_status": marital,
        "urban_type": _draw(rng, np.asarray(_URBAN_TYPE_GIVEN_CBSA)[cbsa]),
        "cbsa": cbsa,
        "family_size": _draw(rng, np.asarray(_SIZE_GIVEN_MARITAL)[marital]),
        "earner": 1 - _draw(rng, _two(_EARNS_GIVEN_AGE)[age]),
    }
    mean = _LOG_INCOME_LEVEL + sum(
        np.asarray(effects)[codes[name]] for name, effects in _LOG_INCOME_EFFECTS.items()
    )
    share, shift, spread = np.array(_NOISE).T
    part = _draw(rng, np.tile(share, (n, 1)))
    log_income = mean + shift[part] + spread[part] * rng.standard_normal(n)
    income = np.clip(np.round(np.exp(log_income)), 1.0, _INCOME_CAP)
    without = rng.choice(n, size=round(_NONPOSITIVE_SHARE * n), replace=False)
    losses = np.round(rng.uniform(_INCOME_FLOOR, 0.0, size=without.size))
    losses[rng.random(without.size) < 0.5] = 0.0
    income[without] = losses
    return ConsumerExpenditure(
        table=as_table(codes, income),
        simulated=True,
        source=f"simulated stand-in, {n:,} consumer units",
        units_read=n,
        dropped={},
        substitutions=("Every value is simulated in place of the survey the paper used.",),
        survey="simulated",
        rows_read=n,
    )


def _two(share_of_second):
    second = np.asarray(share_of_second)
    return np.column_stack([1.0 - second, second])


def _draw(rng, probabilities):
    """One category per row of `probabilities` (rows, categories), by inverting the sums."""
    sums = np.cumsum(probabilities, axis=1)
    return (rng.random(len(sums))[:, None] * sums[:, -1:] >= sums).sum(axis=1)
