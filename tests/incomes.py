"""Made-up incomes of a year, for plans and rehearsals."""

import numpy as np
import pandas as pd

from ppm.release import Bins, ReleasePlan


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


def planned_of(last):
    """A function that plans to release this table's incomes by bins, or by what it is given."""
    usual = {
        "confidential": "income",
        "groups": "region",
        "limits": (0, 1_000_000),
        "mechanism": Bins(8),
        "epsilon": 0.5,
    }

    def planned(published=last, **settings):
        return ReleasePlan(**{"published": published} | usual | settings)

    return planned


def one_column(values, groups):
    """A table of incomes in so many regions, one record after another, or in those given."""
    groups = np.arange(len(values)) % groups if np.isscalar(groups) else groups
    return pd.DataFrame({"region": groups, "income": np.asarray(values, dtype=float)})


def mechanism_on(last, this, limits):
    """Two functions of a mechanism: its plan, and its release of a table by that plan."""

    def planned(mechanism, published=last, **given):
        given = {"epsilon": 1.0, "limits": limits, "groups": "region"} | given
        return ReleasePlan(
            published, confidential="income", mechanism=mechanism, **given
        )

    def release(
        mechanism, table=this, published=last, secure_noise=False, seed=3, **given
    ):
        plan = planned(mechanism, published, **given)
        return mechanism.release(
            table, plan, random_seed=seed, secure_noise=secure_noise
        )

    return planned, release
