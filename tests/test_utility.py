"""Re-sampling against its known spread, scores against their null, errors by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special

from ppm.utility import (
    gini,
    propensity_score,
    release_errors,
    resample,
)

VALUES = np.random.default_rng(1).lognormal(11, 1, size=900)


def test_the_re_sampled_mean_has_the_standard_error_of_the_mean():
    found = resample(VALUES, "mean", resamples=2_000, random_seed=1)
    assert found.mean() == pytest.approx(VALUES.mean(), rel=0.01)
    # drawing without replacement would give no spread at all
    assert found.std() == pytest.approx(VALUES.std() / np.sqrt(VALUES.size), rel=0.08)


# ---- the score -----------------------------------------------------------------------------------


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


def arrow(table):
    return pytest.importorskip("pyarrow").table(table)


@pytest.mark.parametrize("kind", [pd.DataFrame, arrow])
@pytest.mark.parametrize(
    "names", [["income", "age", "owner"], [("a", 1), ("a", 2), ("b", 1)]]
)
def test_columns_belong_together_by_their_names(kind, names):
    def table(frame, names=names):
        # Arrow has no names but text
        names = [*map(str, names)] if kind is arrow else names
        return kind(frame.set_axis(pd.Index(names), axis=1))

    right = propensity_score(REAL.to_numpy(dtype=float), MADE.to_numpy(dtype=float))
    turned = table(MADE.iloc[:, [2, 0, 1]], [names[place] for place in (2, 0, 1)])
    for made in table(MADE), turned, MADE.to_numpy(dtype=float):
        assert propensity_score(table(REAL), made) == pytest.approx(right)
    # by place they would be another question
    by_place = propensity_score(
        table(REAL), MADE.iloc[:, [2, 0, 1]].to_numpy(dtype=float)
    )
    assert by_place.ratio > 10 * right.ratio
    # two columns of the data alone have names
    assert propensity_score(
        REAL["age"], MADE["age"].rename("made")
    ).score == pytest.approx(0)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (
            MADE.rename(columns={"age": "years"}),
            "by name; it lacks 'age' and alone has 'years'$",
        ),
        (MADE.assign(more=1.0), "by name; it alone has 'more'$"),
        (MADE[["age"]], "'income', 'owner'$"),
        (MADE.set_axis(["income", "age", "a\nb"], axis=1), r"alone has 'a\\nb'$"),
        (
            pd.concat([MADE, MADE[["age"]]], axis=1),
            "in the same order, where two of them share a name",
        ),
        (
            MADE.mask(MADE["age"] == 9),
            "not NaN or inf.*wrong: 6 of 180, .* row 8, column 'income'",
        ),
        (
            MADE.astype({"age": "Int64"}).mask(MADE["age"] == 9),
            "got DataFrame with (float|NAType) at",
        ),
        (
            MADE.to_numpy(dtype=float) * [1, np.inf, 1],
            r"wrong: 60 of 180, .* row 0, column 1\)$",
        ),
        (MADE.assign(age=pd.Timestamp("2020")), "with Timestamp at row 0, column 1$"),
        (MADE.assign(age="x"), "with text at row 0, column 1$"),
        (MADE[:0], "at least 2 rows"),
        (MADE[:1], "at least 2 rows"),
        (MADE[[]], "lacks 'income', 'age', 'owner'$"),
    ],
)
def test_two_tables_of_unlike_columns_are_refused_and_what_is_missing_is_named(
    made, told
):
    with pytest.raises(ValueError, match=f"^synthetic must .*{told}") as refused:
        propensity_score(REAL, made)
    assert "\n" not in str(refused.value)


# ---- errors of releases --------------------------------------------------------------------------


def test_errors_of_a_release_are_those_computed_by_hand():
    rng = np.random.default_rng(3)
    area = np.repeat(["north", "south", "islands"], [500, 370, 30])
    # one release too low, one too high, in every area: the errors of groups have no sign
    releases = VALUES * rng.uniform(0.8, 1.3, (3, VALUES.size)) * [[0.8], [1.0], [1.2]]
    # the islands are too few; their means are far off and must not show
    releases[:, area == "islands"] *= 9.0
    found = release_errors(VALUES, releases, groups={"area": area}, smallest=50)
    of = {"mean": np.mean, "median": np.median, "Gini coefficient": gini}
    of |= {f"{n}th percentile": lambda v, n=n: np.percentile(v, n) for n in (10, 90)}
    for row, release in zip(found.to_dict("records"), releases, strict=True):
        for name, statistic in of.items():
            assert row[name] == pytest.approx(
                100 * (statistic(release) / statistic(VALUES) - 1)
            )
        parts = [area == a for a in ("north", "south")]
        worst = max(
            abs(release[part].mean() / VALUES[part].mean() - 1) for part in parts
        )
        assert row["means by area"] == pytest.approx(100 * worst)
    # above the data is positive, also where the data are negative
    assert release_errors(-VALUES, [1 - VALUES]).loc[0, "mean"] > 0


def test_groups_of_errors_are_variables_by_name():
    data, twice = np.arange(1.0, 7.0), pd.DataFrame([[1, 2]] * 6, columns=["a", "a"])
    for wrong in [1] * 6, pd.Series([1] * 6), twice, "a":
        with pytest.raises(
            ValueError, match="^groups must be a pandas DataFrame or a dict of pu"
        ):
            release_errors(data, [data], groups=wrong)
    for wrong in (
        [1] * 5,
        [[1]] * 6,
        "abcdef",
        np.ma.array([1] * 6, mask=[1, 0, 0, 0, 0, 0]),
    ):
        with pytest.raises(
            ValueError, match="^groups: a (must have one label|holds masked)"
        ):
            release_errors(data, [data], groups={"a": wrong})
    # a record without a label is in no group, and a category may be empty
    labels = pd.Categorical(["x", "x", "y", "y", "y", None], categories=["x", "y", "z"])
    found = release_errors(data, [[*data[:5], 99.0]], groups={"a": labels}, smallest=2)
    assert found["means by a"].tolist() == [0.0]


def test_no_error_is_relative_to_a_statistic_that_is_0_and_the_others_stay():
    data = np.array([0.0, 0.0, 0.0, 20.0, 30.0, 40.0])
    area = {"area": ["south"] * 3 + ["north"] * 3, "half": ["a", "b"] * 3}
    found = release_errors(data, [data + 1.0, data * 2.0], groups=area, smallest=3)
    # the means by area have a group whose mean is 0
    assert {*found.columns[found.isna().any()]} == {"10th percentile", "means by area"}
    assert found["mean"].tolist() == pytest.approx([100 / 15, 100.0])
    assert found["means by half"].tolist() == pytest.approx([10.0, 100.0])
