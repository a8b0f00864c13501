"""Starting points: a sampler that never crosses is caught by chains from both sides only."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from conftest import by_definition
from scipy import stats

import ppm

COUNTS = np.random.default_rng(7).poisson(100, 40)


class Stuck(ppm.GammaPoisson):
    """Chains that stay in the half of the posterior they start in."""

    independent_draws = False

    def __init__(self, counts, sides, shift=3.0):
        super().__init__(counts)
        self.sides, self.gap, self.fits = sides, shift, []

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        seeds = np.random.SeedSequence(random_seed.entropy).spawn(len(self.sides))
        chains = []
        for side, seed in zip(self.sides, seeds, strict=True):
            fit = super().fit(weights, draws=draws, random_seed=seed)
            mu = fit["posterior"]["mu"].values[0] + self.gap * side
            chains.append(mu)
        mu = np.array(chains)
        log_lik = stats.poisson.logpmf(self.counts, mu[..., None])
        self.fits.append((weights, log_lik))
        return xr.DataTree.from_dict(
            {
                "posterior": xr.Dataset({"mu": (("chain", "draw"), mu)}),
                "log_likelihood": xr.Dataset({"counts": (("chain", "draw", "record"), log_lik)}),
            }
        )


@pytest.fixture(scope="module")
def first():
    """The synthesizer behind a sweep, and the sweep."""
    model = Stuck(COUNTS, [0, 0.15])
    settings = {"releases": 1, "draws": 200, "random_seed": 1, "attempts": 2}
    return model, ppm.studies.sweep(model, [(0.7, 0.0), (0.5, -0.3)], **settings)


@pytest.fixture
def sweep(first):
    return first[1]


def test_other_starts_show_what_equal_starts_hide(sweep):
    table = ppm.studies.compare_starts(sweep, Stuck(COUNTS, [0, 3]), draws=200, random_seed=2)
    assert list(table.index) == ["Unweighted", "DPweighted (0.7, 0)", "DPweighted (0.5, -0.3)"]
    assert (table["R-hat"] < 1.05).all()
    assert (table["R-hat, other starts"] > 1.2).all()
    # the same starts hide it again
    alike = ppm.studies.compare_starts(sweep, Stuck(COUNTS, [0, 0]), draws=200, random_seed=2)
    assert (alike["R-hat, other starts"] < 1.05).all()


def test_the_whole_comparison_is_that_of_the_definitions_on_both_fits(first):
    model, sweep = first
    others = Stuck(COUNTS, [3, 0, 1])
    table = ppm.studies.compare_starts(sweep, others, draws=150, random_seed=2)
    rows, shown = [], ["local bound", "R-hat", "R-hat, log-likelihood"]
    for entry, (weights, log_lik) in zip(
        [e for e in sweep.entries if e.mechanism != "EMweighted"], others.fits, strict=True
    ):
        assert np.array_equal(weights, entry.weights)
        (known,) = [fit for fit in model.fits if np.array_equal(fit[0], entry.weights)]
        before, after = by_definition(*known), by_definition(weights, log_lik)
        by_chain = np.abs(weights * log_lik).max(axis=(1, 2))
        rows.append(
            {name: before[name] for name in shown}
            | {f"{name}, other starts": after[name] for name in shown}
            | {
                "smallest bound of a chain": by_chain.min(),
                "largest bound of a chain": by_chain.max(),
            }
        )
        assert by_chain.min() < by_chain.max() == after["local bound"]
    expected = pd.DataFrame(rows, table.index)
    # ranks of nearly equal values depend on rounding, and R-hat on ranks
    pd.testing.assert_frame_equal(table, expected, rtol=2e-4)
    assert (abs(table["R-hat"] - table["R-hat, log-likelihood"]) > 2e-3).any()


def test_the_comparison_repeats(sweep):
    tables = [
        ppm.studies.compare_starts(sweep, Stuck(COUNTS, [0, 3]), draws=50, random_seed=3)
        for _ in range(2)
    ]
    assert tables[0].equals(tables[1])


def test_another_model_is_refused(sweep):
    with pytest.raises(ValueError, match="synthesizer has 39 records; those of the sweep are 40"):
        ppm.studies.compare_starts(sweep, Stuck(COUNTS[1:], [0, 0]))
