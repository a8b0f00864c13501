"""Made-up incomes of a year, for plans and rehearsals."""

import numpy as np
import pandas as pd


def year(seed, middle=30_000.0, records=600, regions=None):
    """A table whose regions N, S and W have these shares, by default equal ones."""
    rng = np.random.default_rng(seed)
    incomes = np.round(middle * rng.lognormal(sigma=0.6, size=records))
    region = rng.choice(["N", "S", "W"], records, p=regions)
    return pd.DataFrame(
        {
            "region": region,
            "income": incomes * np.where(region == "S", 0.7, 1.0),
            "children": rng.poisson(1.5, records),
            "owner": rng.choice(["yes", "no"], records),
        }
    )
