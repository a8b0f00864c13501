"""What noisy marginals buy at the same ε, beside the releases of the chapter on a strict release.

For each ε and seed, mbi, the library behind MST and AIM, releases one column of incomes from noisy
tables of income and predictors, on the scale and in the range of the chapter
``notebooks/strict_release.ipynb``, but of the whole survey. The table has the errors of the release
in per cent, and the ratio of its pMSE to its null expectation. AIM chooses what to measure. The
noise is Laplace noise, so that ε holds without a δ.

The neighbour is that of the library: one record's income takes no part, while the number of records
and all predictors are public. AIM and MST as published protect the predictors as well, and release
synthetic ones. Here only marginals with income are measured and have a cost, and each record's
income is drawn given its own predictors, which favours them.

No release looks at the records to choose interval, bins, rounds or what goes to the first
measurement: these are options, and an agency has to set them beforehand. Rounds were tried on
simulated records only.

The noise is drawn in floating-point numbers, by NumPy: enough to compare errors, and not for a
release.

mbi runs in an environment of its own, since it needs JAX::

    python -m venv mbi && mbi/bin/pip install 'mbi>=2,<3'
    python benchmarks/marginals.py --python mbi/bin/python --save benchmarks/marginals.csv

Without ``--data`` the records are the public ones that the book has on board. The errors are
computed from the records, outside any ε: publish them of public records only.
"""

import argparse
import itertools
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from ppm.release.measure import release_errors
from ppm_book.chapters import survey
from ppm_book.chapters.pmse import propensity_score

GROUPS = ["education", "region"]
# bins are on the power of income, first is the share for income alone, iterations those of a fit
SETTINGS = {"bins": 50, "first": 0.25, "rounds": 12, "joined": 12, "iterations": 400}
POWER, LOWEST, HIGHEST = 0.2, -7e3, 1.8e6


def answer(python, given):
    """What ``marginals_worker.py`` finds under another interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "input.npz"), Path(folder, "output.npz")
        np.savez(source, **given)
        worker = Path(__file__).with_name("marginals_worker.py").resolve()
        command = [os.path.abspath(python), worker, source, target]
        # what it compiles would be left where it stands
        subprocess.run(
            command, cwd=folder, check=True, env=os.environ | {"PYTHONPATH": ""}
        )
        return dict(np.load(target))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True, help="interpreter that has mbi")
    parser.add_argument(
        "--data", metavar="PATH", help="survey file; default: the one on board"
    )
    parser.add_argument("--records", type=int, default=0, help="0 for all of them")
    parser.add_argument(
        "--epsilon", type=float, nargs="+", default=[0.25, 0.5, 1.0, 2.0, 4.0]
    )
    parser.add_argument("--seeds", type=int, default=5, help="releases behind each row")
    parser.add_argument("--save", metavar="PATH", help="the table as CSV")
    asked = parser.parse_args()
    data = survey.load(asked.data).subsample(asked.records, random_seed=1)
    table, income = data.table, data.table["income"].to_numpy()
    predictors, _ = survey.predictor_matrix(data)
    limits = survey.power_income([LOWEST, HIGHEST], POWER)
    edges = np.linspace(*limits, SETTINGS["bins"] + 1)
    codes = table[list(survey.expenditure.LABELS)].apply(
        lambda column: column.cat.codes
    )
    # a category that does not occur in public predictors is none
    codes = [np.unique(column, return_inverse=True)[1] for column in codes.to_numpy().T]
    codes = np.column_stack(codes)
    jobs = [*itertools.product(asked.epsilon, range(1, asked.seeds + 1))]
    found = answer(
        asked.python,
        SETTINGS
        | {
            "income": np.searchsorted(
                edges[1:-1], survey.power_income(income, POWER), side="right"
            ),
            "predictors": codes,
            "sizes": codes.max(axis=0) + 1,
            "epsilons": [epsilon for epsilon, _ in jobs],
            "seeds": [seed for _, seed in jobs],
        },
    )
    rows = []
    for (epsilon, seed), bins in zip(jobs, found["income"], strict=True):
        drawn = np.random.default_rng([1, seed]).uniform(edges[bins], edges[bins + 1])
        drawn = survey.income_from_power(drawn, POWER, lowest=LOWEST, highest=HIGHEST)
        errors = release_errors(income, drawn[None], groups=table[GROUPS]).loc[0]
        score = propensity_score(income, drawn, known=predictors, rank_powers=3)
        row = {"ε": epsilon, "seed": seed, "by": str(found["by"])}
        rows.append(row | errors.to_dict() | {"pMSE ratio": score.ratio})
    frame = pd.DataFrame(rows)
    print(
        f"{data.survey}, n = {income.size}: sizes of errors in per cent, median over seeds"
    )
    sizes = frame.drop(columns=["seed", "by"]).set_index("ε").abs()
    print(sizes.groupby(level=0).median().round(1).to_string())
    if asked.save:
        frame.round(3).to_csv(asked.save, index=False)


if __name__ == "__main__":
    main()
