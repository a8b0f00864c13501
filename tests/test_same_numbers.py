"""The numbers of a few seeded runs, kept while the library is rewritten beneath them.

They were printed by the code of their day, so they tell a change, not a fault: the tests against
closed forms say what is right. No Markov chain is among them: it amplifies the last digits, which
differ between processors.
"""

import numpy as np
import pytest
from survey_files import csv_text, unit

import ppm
from ppm_book.chapters import survey

COUNTS = np.random.default_rng(1).poisson(6, 40)


def run(limits):
    """Sum of weights, Δ, sum of oscillations, and a few released values."""
    model = ppm.GammaPoisson(COUNTS, shape=2.0, rate=0.5)
    mechanism = ppm.PseudoPosteriorMechanism(model, scale=0.8, shift=0.1, censor=limits)
    result = mechanism.run(draws=100, random_seed=3)
    terms = model.log_likelihood(result.draws)
    released = model.predict(result.draws, releases=3, random_seed=4).values
    moved = ppm.record_oscillations(terms, result.weights).sum()
    bound = ppm.record_bounds(terms, result.weights).max()
    return [
        result.weights.sum(),
        bound,
        moved,
        released.sum(),
        released[0, 0],
        released[2, -1],
    ]


CASES = [
    (None, [25.579280538, 1.8293053944, 14.012041487, 796.0, 6.0, 5.0]),
    (
        ppm.Censoring(-3, -1),
        [25.579280538, 1.8244791104, 15.621140172, 765.0, 4.0, 5.0],
    ),
    (
        ppm.Censoring(-3, -1, False),
        [25.579280538, 1.7933767621, 12.675324185, 756.0, 6.0, 6.0],
    ),
]


@pytest.mark.parametrize(("limits", "numbers"), CASES)
def test_a_run_gives_the_same_numbers(limits, numbers):
    assert run(limits) == pytest.approx(numbers, rel=1e-9)


def test_a_survey_gives_the_same_numbers(tmp_path):
    rows = [unit(n, FINCBTXM=f"{900.5 * n}", AGE_REF=f"{20 + n}") for n in range(1, 60)]
    (tmp_path / "fmli171.csv").write_text(csv_text(*rows))
    data = survey.load(tmp_path / "fmli171.csv")
    whole = survey.load().subsample(200, random_seed=1).table
    sums = [survey.predictor_matrix(table)[0].sum() for table in (data.table, whole)]
    found = [data.table["income"].sum(), *sums, *whole["income"][:2]]
    assert found == pytest.approx([1593885.0, 99.0, 1420.0, 178859.8, 2361.0], rel=1e-9)
