"""Starting points: a sampler that never crosses is caught by chains from both sides only."""

import numpy as np
import pytest
import xarray as xr

import ppm

COUNTS = np.random.default_rng(7).poisson(100, 40)


class Stuck(ppm.GammaPoisson):
    """Chains that stay in the half of the posterior they start in."""

    independent_draws = False

    def __init__(self, counts, sides, shift=3.0):
        super().__init__(counts)
        self.sides, self.gap = sides, shift

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        seeds = np.random.SeedSequence(random_seed.entropy).spawn(len(self.sides))
        chains = []
        for side, seed in zip(self.sides, seeds, strict=True):
            fit = super().fit(weights, draws=draws, random_seed=seed)
            mu = fit["posterior"]["mu"].values[0] + self.gap * side
            chains.append(mu)
        mu = np.array(chains)
        from scipy import stats

        return xr.DataTree.from_dict(
            {
                "posterior": xr.Dataset({"mu": (("chain", "draw"), mu)}),
                "log_likelihood": xr.Dataset(
                    {
                        "counts": (
                            ("chain", "draw", "record"),
                            stats.poisson.logpmf(self.counts, mu[..., None]),
                        )
                    }
                ),
            }
        )


@pytest.fixture(scope="module")
def sweep():
    return ppm.risk_utility_sweep(
        Stuck(COUNTS, [0, 0]), [(0.7, 0.0)], releases=1, draws=200, random_seed=1, attempts=2
    )


def test_other_starts_show_what_equal_starts_hide(sweep):
    table = ppm.compare_starts(sweep, Stuck(COUNTS, [0, 3]), draws=200, random_seed=2)
    assert list(table.index) == ["Unweighted", "DPweighted (0.7, 0)"]
    assert (table["R-hat"] < 1.05).all()
    assert (table["R-hat, other starts"] > 1.2).all()
    assert (table["smallest bound of a chain"] < table["largest bound of a chain"]).all()
    assert table["local bound, other starts"].equals(table["largest bound of a chain"])
    # the same starts hide it again
    alike = ppm.compare_starts(sweep, Stuck(COUNTS, [0, 0]), draws=200, random_seed=2)
    assert (alike["R-hat, other starts"] < 1.05).all()


def test_the_comparison_repeats(sweep):
    tables = [
        ppm.compare_starts(sweep, Stuck(COUNTS, [0, 3]), draws=50, random_seed=3) for _ in range(2)
    ]
    assert tables[0].equals(tables[1])


def test_another_model_is_refused(sweep):
    with pytest.raises(ValueError, match="synthesizer has 39 records; those of the sweep are 40"):
        ppm.compare_starts(sweep, Stuck(COUNTS[1:], [0, 0]))
    with pytest.raises(ValueError, match="fits needs a random_seed"):
        ppm.compare_starts(sweep, Stuck(COUNTS, [0, 0]), fits="somewhere")
