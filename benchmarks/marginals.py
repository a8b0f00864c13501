"""What noisy marginals buy at the same ε: a row of the chapter on a strict release.

For each ε and seed, mbi, the library behind MST and AIM, releases one column of incomes from noisy
tables of income and predictors, on the scale and in the range of the chapter
``notebooks/strict_release.ipynb``. The table has the errors of the release as the chapter has them,
in per cent, and the ratio of its pMSE to its null expectation. Rows:

- ``Marginals``: AIM chooses what to measure. The noise is Laplace noise, so that ε holds without an
  exception, as for the chapter's other rows.
- ``Marginals, δ``: the same with Gaussian noise. ε then holds with an exception δ only. It is
  converted from zero-concentrated differential privacy by the sharper formula of Canonne, Kamath
  and Steinke (2020), which gives a little more than the one of the book's chapter on censoring.

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

    python -m venv mbi && mbi/bin/pip install 'mbi>=2,<3'
    python benchmarks/marginals.py --python mbi/bin/python        the simulated stand-in
    python benchmarks/marginals.py --python mbi/bin/python --data diary17.zip \\
        --save benchmarks/marginals.csv

The last line writes what the chapter shows where it runs on the same incomes, scale and range; what
the file has of other incomes stays in it. The errors are computed from the records, outside any ε:
publish them of public records only.
"""

import argparse
import itertools
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import ppm
from ppm_book import survey

GROUPS = ["education", "region"]
# bins are on the power of income, first is the share for income alone, iterations those of a fit
SETTINGS = {"bins": 50, "first": 0.25, "rounds": 12, "joined": 12, "iterations": 400}
POWER, LOWEST, HIGHEST = 0.2, -7e3, 1.8e6
# of the rows with an exception
DELTA = 1e-6


def rho_of(epsilon, delta):
    """Largest ρ whose zero-concentrated guarantee gives (ε, δ): Canonne, Kamath and Steinke."""
    from scipy.optimize import brentq, minimize_scalar

    def log_delta(rho):
        def at(log_order):
            # order - 1 is positive
            order = 1 + np.exp(log_order)
            moved = (order - 1) * (order * rho - epsilon) - np.log(order - 1)
            return moved + order * np.log1p(-1 / order)

        return minimize_scalar(at, bounds=(-5, 15), method="bounded").fun

    log_rho = brentq(lambda x: log_delta(np.exp(x)) - np.log(delta), -30, np.log(epsilon + 1))
    return float(np.exp(log_rho))


def answer(python, given):
    """What ``marginals_worker.py`` finds under another interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "input.npz"), Path(folder, "output.npz")
        np.savez(source, **given)
        worker = Path(__file__).with_name("marginals_worker.py").resolve()
        command = [os.path.abspath(python), worker, source, target]
        # what it compiles would be left where it stands
        subprocess.run(command, cwd=folder, check=True, env=os.environ | {"PYTHONPATH": ""})
        return dict(np.load(target))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True, help="interpreter that has mbi")
    parser.add_argument("--data", metavar="PATH", help="survey file; default: simulated records")
    parser.add_argument("--records", type=int, default=0, help="0 for all of them")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.25, 0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--seeds", type=int, default=5, help="releases behind each row")
    parser.add_argument("--save", metavar="PATH", help="the table as CSV")
    asked = parser.parse_args()
    data = survey.load(asked.data) if asked.data else survey.simulate(random_seed=2017)
    data = data.subsample(asked.records, random_seed=1)
    table, income = data.table, data.table["income"].to_numpy()
    predictors, _ = survey.predictor_matrix(data)
    limits = survey.power_income(pd.DataFrame({"income": [LOWEST, HIGHEST]}), POWER)
    edges = np.linspace(*limits, SETTINGS["bins"] + 1)
    codes = table[list(survey.expenditure.LABELS)].apply(lambda column: column.cat.codes)
    # a category that does not occur in public predictors is none
    codes = [np.unique(column, return_inverse=True)[1] for column in codes.to_numpy().T]
    codes = np.column_stack(codes)
    jobs = [*itertools.product(asked.epsilon, (False, True), range(1, asked.seeds + 1))]
    found = answer(asked.python, SETTINGS | {
        "income": np.searchsorted(edges[1:-1], survey.power_income(data, POWER), side="right"),
        "predictors": codes,
        "sizes": codes.max(axis=0) + 1,
        "budgets": [rho_of(e, DELTA) if gaussian else e for e, gaussian, _ in jobs],
        "gaussian": [gaussian for _, gaussian, _ in jobs],
        "seeds": [seed for *_, seed in jobs],
    })
    rows = []
    for (epsilon, gaussian, seed), bins in zip(jobs, found["income"], strict=True):
        drawn = np.random.default_rng([1, seed]).uniform(edges[bins], edges[bins + 1])
        drawn = survey.income_from_power(drawn, POWER, lowest=LOWEST, highest=HIGHEST)
        errors = ppm.utility.release_errors(income, drawn[None], groups=table[GROUPS]).loc[0]
        score = ppm.utility.propensity_score(income, drawn, known=predictors, rank_powers=3)
        name = f"Marginals, δ = {DELTA:g}" if gaussian else "Marginals"
        row = {"mechanism": name, "ε": epsilon, "seed": seed}
        rows.append(row | errors.to_dict() | {"pMSE ratio": score.ratio})
    frame = pd.DataFrame(rows)
    print(f"{data.survey}, n = {income.size}: sizes of errors in per cent, median over seeds")
    sizes = frame.drop(columns="seed").set_index(["mechanism", "ε"]).abs()
    print(sizes.groupby(level=[0, 1]).median().round(1).to_string())
    if asked.save:
        # what the chapter recognises its own incomes and settings by, and who computed the rest
        told = ", ".join(f"{name} {value}" for name, value in SETTINGS.items())
        frame = frame.assign(**{
            "survey": data.survey, "units": income.size, "mean income": income.mean(),
            "power": POWER, "lowest": LOWEST, "highest": HIGHEST, "by": f"{found['by']}, {told}",
        })
        if Path(asked.save).exists():
            before = pd.read_csv(asked.save)
            frame = pd.concat([before[~np.isclose(before["mean income"], income.mean())], frame])
        frame.round(3).to_csv(asked.save, index=False)


if __name__ == "__main__":
    main()
