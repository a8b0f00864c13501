"""Costs: known laws are found again, with their errors, and only the smallest run counts."""

import itertools

import numpy as np
import pytest
from scipy import stats

from ppm.studies import cost_model, fit_cost, measure_cost

SIZES = np.array([100, 300, 1000, 3000, 10_000, 30_000])


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("fixed", [0.0, 0.02, 5.0])
def test_a_law_without_scatter_is_found_again(fixed, exponent):
    found = fit_cost(SIZES, fixed + 1e-3 * SIZES**exponent)
    assert found.fixed == pytest.approx(fixed, rel=1e-4, abs=1e-9)
    assert found.factor == pytest.approx(1e-3, rel=1e-4)
    assert found.exponent == pytest.approx(exponent, abs=1e-5)
    ahead = found.at([1e8])
    assert ahead["cost"].item() == pytest.approx(fixed + 1e-3 * 1e8**exponent, rel=1e-3)


def test_without_a_fixed_part_in_the_model_the_exponent_would_be_far_off():
    costs = 5.0 + 1e-3 * SIZES
    plain = np.polyfit(np.log(SIZES), np.log(costs), 1)[0]
    assert plain < 0.4 and fit_cost(SIZES, costs).exponent == pytest.approx(1.0, abs=1e-5)


def test_the_error_of_the_exponent_and_the_interval_are_those_of_repeated_measurements():
    rng = np.random.default_rng(5)
    truth = 0.3 + 1e-3 * SIZES
    fits = [fit_cost(SIZES, truth * np.exp(0.05 * rng.normal(size=6))) for _ in range(300)]
    exponents = np.array([fit.exponent for fit in fits])
    errors = np.array([fit.exponent_error for fit in fits])
    assert exponents.mean() == pytest.approx(1.0, abs=0.02)
    assert np.median(errors) == pytest.approx(exponents.std(), rel=0.3)
    ahead = [fit.at([1e6]).iloc[0] for fit in fits]
    covered = np.mean([row["low"] <= 1000.3 <= row["high"] for row in ahead])
    assert 0.88 < covered < 0.99
    wide, narrow = (fits[0].at([1e6], confidence=level).iloc[0] for level in (0.95, 0.5))
    assert wide["low"] < narrow["low"] < narrow["cost"] < narrow["high"] < wide["high"]


def test_without_a_fixed_part_it_is_the_textbooks_regression_of_logarithms():
    # bent down at both ends, where a fixed part would bend it up
    x, y = np.log([1.0, 10.0, 100.0, 1000.0]), np.array([0.0, 2.5, 4.8, 6.9])
    found, line = fit_cost(np.exp(x), np.exp(y)), stats.linregress(x, y)
    left = y - line.intercept - line.slope * x
    assert found.fixed == 0.0 and found.exponent == pytest.approx(line.slope)
    assert found.exponent_error == pytest.approx(line.stderr)
    assert found.residual == pytest.approx(np.sqrt(np.mean(left**2)))
    ahead = found.at([1e6], confidence=0.9).iloc[0]
    far = np.log(1e6) - x.mean()
    error = np.sqrt(np.sum(left**2) / 2 * (1 / 4 + far**2 / np.sum((x - x.mean()) ** 2)))
    width = np.log(ahead[["low", "high"]] / ahead["cost"]).to_numpy()
    assert width == pytest.approx(stats.t(2).ppf(0.95) * error * np.array([-1, 1]))


def test_three_points_leave_no_interval_but_a_cost():
    found = fit_cost([10, 100, 1000], [1.5, 6.0, 51.0])
    assert np.isnan(found.exponent_error)
    ahead = found.at([100]).iloc[0]
    assert ahead["cost"] == pytest.approx(6.0) and np.isnan(ahead["low"])


def test_of_several_runs_the_fastest_counts_and_sizes_take_turns(monkeypatch):
    clock = itertools.accumulate(
        # start and end of every run: two sizes, three times
        [0.0, 3.0, 0.0, 7.0, 0.0, 1.0, 0.0, 9.0, 0.0, 2.0, 0.0, 8.0]
    )
    monkeypatch.setattr(cost_model.time, "process_time", lambda: next(clock))
    asked = []
    found = measure_cost(asked.append, [5, 50])
    assert asked == [5, 50] * 3
    assert found.to_dict() == {5: 1.0, 50: 7.0}


@pytest.mark.parametrize(
    ("sizes", "costs", "message"),
    [
        ([1, 2], [1, 2], "three different sizes"),
        ([1, 2, 2], [1, 2, 3], "three different sizes"),
        ([1, 2, 3], [1, 2], "of one length"),
        ([0, 1, 2], [1, 2, 3], "sizes must be finite numbers above 0"),
        ([1, 2, 3], [1, np.nan, 3], "costs must be finite numbers above 0"),
        ([1, 2, 3], [1, np.inf, 3], "costs must be finite numbers above 0"),
    ],
)
def test_what_cannot_be_fitted_is_refused(sizes, costs, message):
    with pytest.raises(ValueError, match=message):
        fit_cost(sizes, costs)


def test_what_cannot_be_measured_is_refused():
    for sizes, repeats, message in (([], 3, "at least one size"), ([1], 0, "repeats must be")):
        with pytest.raises(ValueError, match=message):
            measure_cost(None, sizes, repeats=repeats)
