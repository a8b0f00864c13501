"""What noisy marginals buy at the same ε: a row of the chapter on a strict release.

For each ε and seed, mbi, the library behind MST and AIM, releases one column of incomes from noisy
tables of income and predictors, on the scale and in the range of the chapter
``notebooks/strict_release.ipynb``. The table has the errors of the release as the chapter has them,
in per cent, and the ratio of its pMSE to its null expectation. Rows:

- ``Marginals``: AIM chooses what to measure. The noise is Laplace noise, so that ε holds without an
  exception, as for the chapter's other rows.
- ``Marginals, δ``: the same with Gaussian noise. ε then holds with an exception δ only. It is
  converted from zero-concentrated differential privacy by the sharper formula of Canonne, Kamath
  and Steinke (2020), which gives a little more than the one of the book's theory chapter.

All have the neighbour of the library: one record's income takes no part, while the number of
records and all predictors are public. AIM and MST as published protect the predictors as well, and
release synthetic ones. Here only marginals with income are measured and have a cost, and each
record's income is drawn given its own predictors, which favours them.

No release looks at the records to choose interval, bins, rounds or what goes to the first
measurement: these are options, and an agency has to set them beforehand. Rounds were tried on the
simulated stand-in only.

The noise is drawn in floating-point numbers, by NumPy: enough to compare errors, and not for a
release.

mbi runs in an environment of its own, since it needs JAX::

    python benchmarks/marginals.py --install              makes it, in your cache folder
    python benchmarks/marginals.py                        the simulated stand-in
    python benchmarks/marginals.py --mbi-python PATH      with an environment of your own
    python benchmarks/marginals.py --data diary17.zip --save book/marginals.csv

The last line writes what the chapter shows where it runs on the same incomes, scale and range; what
the file has of other incomes stays in it. The errors are computed from the records, outside any ε:
publish them of public records only.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from environments import answer, find, install

HERE = Path(__file__).resolve().parent
REQUIREMENT = "mbi>=2,<3"
GROUPS = ["education", "region"]


def find_mbi(given):
    """Interpreter that has mbi, or an end with what to do."""
    return find(
        "mbi", given, ("mbi.estimation", "numpy"),
        "make one with `python benchmarks/marginals.py --install`, or give an interpreter that has "
        "mbi by --mbi-python PATH",
    )  # fmt: skip


def rho_of(epsilon, delta):
    """Largest ρ whose zero-concentrated guarantee gives (ε, δ): Canonne, Kamath and Steinke."""
    from scipy.optimize import brentq, minimize_scalar

    def log_delta(rho):
        def at(log_order):
            # order - 1 is positive
            order = 1 + np.exp(log_order)
            return (
                (order - 1) * (order * rho - epsilon) - np.log(order - 1)
                + order * np.log1p(-1 / order)
            )

        return minimize_scalar(at, bounds=(-5, 15), method="bounded").fun

    log_rho = brentq(lambda x: log_delta(np.exp(x)) - np.log(delta), -30, np.log(epsilon + 1))
    return float(np.exp(log_rho))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--install", action="store_true", help="make the environment for mbi")
    parser.add_argument("--python", help="interpreter that --install builds on")
    parser.add_argument("--mbi-python", help="interpreter that has mbi")
    parser.add_argument("--data", metavar="PATH", help="survey file; default: simulated records")
    parser.add_argument("--records", type=int, default=0, help="0 for all of them")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.25, 0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--delta", type=float, default=1e-6, help="of the rows with an exception")
    parser.add_argument("--seeds", type=int, default=5, help="releases behind each row")
    parser.add_argument("--power", type=float, default=0.2, help="of income, which is binned")
    parser.add_argument("--limits", type=float, nargs=2, default=[-7e3, 1.8e6], help="in dollars")
    parser.add_argument("--bins", type=int, default=50, help="on the power of income")
    parser.add_argument("--first", type=float, default=0.25, help="share for income alone")
    parser.add_argument("--rounds", type=int, default=12, help="most rounds")
    parser.add_argument("--joined", type=int, default=12, help="joined bins")
    parser.add_argument("--iterations", type=int, default=400, help="of a fit")
    parser.add_argument("--seed", type=int, default=1, help="the first of the seeds")
    parser.add_argument("--save", metavar="PATH", help="the table as CSV")
    options = parser.parse_args()
    if options.install:
        return install("mbi", REQUIREMENT, [options.python or sys.executable])
    python = find_mbi(options.mbi_python)

    from ppm_book import survey

    import ppm

    data = survey.load(options.data) if options.data else survey.simulate(random_seed=2017)
    data = data.subsample(options.records, random_seed=options.seed)
    lowest, highest = options.limits
    income, table = data.table["income"].to_numpy(), data.table
    predictors, _ = survey.predictor_matrix(data)
    limits = survey.power_income(pd.DataFrame({"income": options.limits}), options.power)
    edges = np.linspace(*limits, options.bins + 1)
    codes = table[list(survey.expenditure.LABELS)].apply(lambda column: column.cat.codes)
    # a category that does not occur in public predictors is none
    codes = np.column_stack(
        [np.unique(column, return_inverse=True)[1] for column in codes.to_numpy().T]
    )
    jobs = [
        (epsilon, gaussian, options.seed + place)
        for epsilon in options.epsilon for gaussian in (False, True)
        for place in range(options.seeds)
    ]
    found = answer(
        "mbi", python, HERE / "marginals_worker.py",
        given={
            "income": np.searchsorted(
                edges[1:-1], survey.power_income(data, options.power), side="right"
            ),
            "predictors": codes,
            "sizes": codes.max(axis=0) + 1,
            "bins": options.bins,
            "budgets": [rho_of(e, options.delta) if g else e for e, g, _ in jobs],
            "gaussian": [g for _, g, _ in jobs],
            "seeds": [seed for *_, seed in jobs],
            "first": options.first,
            "rounds": options.rounds,
            "groups": options.joined,
            "iterations": options.iterations,
        },
    )
    rows = []
    for (epsilon, gaussian, seed), bins in zip(jobs, found["income"], strict=True):
        drawn = np.random.default_rng([options.seed, seed]).uniform(edges[bins], edges[bins + 1])
        drawn = survey.income_from_power(drawn, options.power, lowest=lowest, highest=highest)
        errors = ppm.utility.release_errors(income, drawn[None], groups=table[GROUPS]).loc[0]
        score = ppm.utility.propensity_score(
            *ppm.utility.rank_powers(income, drawn), known=predictors
        )
        rows.append(
            {
                "mechanism": f"Marginals, δ = {options.delta:g}" if gaussian else "Marginals",
                "ε": epsilon, "seed": seed, **errors, "pMSE ratio": score.ratio,
            }
        )
    frame = pd.DataFrame(rows)
    title = ["mechanism", "ε"]
    print(f"{'real' if options.data else 'simulated'} records, n = {income.size}; sizes of errors "
          f"in per cent: median over {options.seeds} seeds")
    print(frame.drop(columns="seed").set_index(title).abs().groupby(title).median().round(1).to_string())
    if options.save:
        # what the chapter recognises its own incomes and settings by, and who computed the rest
        told = ", ".join(
            f"{name} {getattr(options, name)}"
            for name in ("bins", "first", "rounds", "joined", "iterations")
        )
        about = {
            "survey": data.survey, "units": income.size, "mean income": income.mean(),
            "power": options.power, "lowest": lowest, "highest": highest,
            "by": f"{found['by']}, {told}",
        }
        kept = [frame.assign(**about)]
        if Path(options.save).exists():
            before = pd.read_csv(options.save)
            kept.insert(0, before[~np.isclose(before["mean income"], income.mean())])
        pd.concat(kept).round(3).to_csv(options.save, index=False)


if __name__ == "__main__":
    main()
