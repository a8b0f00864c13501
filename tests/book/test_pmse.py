"""The propensity score against its null, the regression's own, and tables of unlike columns."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special

from ppm_book.chapters.pmse import propensity_score

VALUES = np.random.default_rng(1).lognormal(11, 1, size=900)


def powers(values):
    return np.column_stack([values, values**2, values**3])


def average_ratio(draw, repeats=200, **settings):
    ratios = [propensity_score(*draw(), **settings).ratio for _ in range(repeats)]
    return np.mean(ratios), 4 * np.std(ratios) / np.sqrt(repeats)


def test_re_sampled_records_have_a_ratio_of_1_and_independent_samples_of_2():
    rng = np.random.default_rng(1)
    real = rng.normal(size=200)
    # at another size the expectation still is that of a re-sample
    ratio, error = average_ratio(lambda: (powers(real), powers(rng.choice(real, 600))))
    assert ratio == pytest.approx(1, abs=error) and error < 0.3
    ratio, error = average_ratio(lambda: map(powers, rng.normal(size=(2, 200))))
    assert ratio == pytest.approx(2, abs=error) and ratio > 1.3


def test_the_score_is_the_logistic_regressions_own():
    rng = np.random.default_rng(3)
    real, synthetic = rng.normal(size=50), rng.normal(0.7, 1, size=80)
    x, t = np.concatenate([real, synthetic]), np.repeat([0.0, 1.0], [50, 80])

    def loss(b):
        return np.sum(np.logaddexp(0, b[0] + b[1] * x) - t * (b[0] + b[1] * x))

    b = optimize.minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-6}).x
    expected = np.mean((special.expit(b[0] + b[1] * x) - 80 / 130) ** 2)
    found = propensity_score(real, synthetic)
    assert found.score == pytest.approx(expected, rel=1e-5)
    assert found.null == pytest.approx((50 / 130) ** 2 * (80 / 130) / 130)
    assert found.ratio == found.score / found.null
    # the unit does not matter, nor does a column that says nothing new
    again = propensity_score(
        *(np.stack([1e6 * v, v, 0 * v], axis=1) for v in (real, synthetic))
    )
    assert again == pytest.approx(found, rel=1e-5)
    # records that can be told apart for certain reach the largest score, without a warning
    apart = propensity_score(powers(real), powers(real + 100))
    assert apart.score == pytest.approx(0.25, abs=1e-3)


def test_known_columns_carry_the_interactions_and_no_count():
    rng = np.random.default_rng(4)
    known = np.column_stack([rng.integers(2, size=300), rng.normal(size=300)])
    slope = known @ [1.0, 3.0]
    ratio, error = average_ratio(
        lambda: map(powers, slope + rng.normal(size=(2, 300))), known=known
    )
    assert ratio == pytest.approx(2, abs=error) and error < 0.4
    values, other = slope + rng.normal(size=(2, 300))
    # the coefficients' number alone, 9, would call them far too alike
    score = propensity_score(powers(values), powers(other), known=known)
    assert score.null < 0.8 * 9 * 0.125 / 600
    # the same values on other records: only what goes with the known columns can show it
    shuffled = rng.permutation(values)
    assert propensity_score(values, shuffled).ratio < 1e-9
    assert propensity_score(values, shuffled, known=known).ratio > 10


def test_ranks_are_taken_in_both_databases_together_and_equal_values_share_theirs():
    # among the six values 1, 2, 2, 2, 2, 9 the ranks are 1, 3.5 four times, and 6
    found = propensity_score([2.0, 1.0, 2.0], [9.0, 2.0, 2.0], rank_powers=2)
    scaled = [(2 * np.array(r) - 1) / 6 - 1 for r in ([3.5, 1, 3.5], [6, 3.5, 3.5])]
    by_hand = propensity_score(*(np.stack([s, s**2], axis=1) for s in scaled))
    assert found == pytest.approx(by_hand, rel=1e-9)
    # ranked one by one, two databases of one size could never be told apart
    assert propensity_score(VALUES, VALUES * 2, rank_powers=3).ratio > 10


AGES = 1 + np.arange(60) % 37
REAL, MADE = [
    pd.DataFrame({"income": own, "age": AGES, "owner": own > 6e4})
    for own in (VALUES[:60], VALUES[60:120])
]


def test_columns_of_data_frames_belong_together_by_their_names():
    right = propensity_score(REAL.to_numpy(dtype=float), MADE.to_numpy(dtype=float))
    turned = MADE[["owner", "income", "age"]]
    for made in MADE, turned, MADE.to_numpy(dtype=float):
        assert propensity_score(REAL, made) == pytest.approx(right)
    # by place they would be another question
    by_place = propensity_score(REAL, turned.to_numpy(dtype=float))
    assert by_place.ratio > 10 * right.ratio


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (MADE.rename(columns={"age": "years"}), "the columns of confidential, by name"),
        (MADE.to_numpy(dtype=float)[:, :2], "got 2 columns, not 3"),
        (MADE.mask(MADE["age"] == 9), "finite numbers, not NaN .*, column 'income'"),
        (MADE.assign(age="x"), "array of numbers; got .* text at row 0, column 'age'"),
        (
            MADE.assign(age=pd.array([1, pd.NA] * 30, "Int64")),
            "array of numbers; got .* NAType at row 1, column 'age'",
        ),
        (MADE[:1], "in two rows or more"),
    ],
)
def test_tables_of_unlike_columns_are_refused_in_one_line(made, told):
    with pytest.raises(ValueError, match=f"^synthetic must .*{told}") as refused:
        propensity_score(REAL, made)
    assert "\n" not in str(refused.value)
