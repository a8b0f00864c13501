"""Which draws of the parameters the releases are made from."""

import numpy as np
import pytest
import xarray as xr

import ppm
from ppm.synthesizers.base import choose_draws

CHAINS, DRAWS = 3, 7


def picked(releases, seed):
    """Numbers of the draws, from 0, that the releases are made from."""
    posterior = xr.Dataset({"theta": (("chain", "draw"), np.zeros((CHAINS, DRAWS)))})
    chain, draw = choose_draws(posterior, releases, np.random.default_rng(seed))
    assert chain.shape == draw.shape == (releases,)
    assert chain.max() < CHAINS and draw.max() < DRAWS
    return chain * DRAWS + draw


@pytest.mark.parametrize("releases", [1, 2, 20, 21])
def test_no_draw_is_used_twice_while_others_are_left(releases):
    for seed in range(30):
        assert np.unique(picked(releases, seed)).size == releases


def test_more_releases_than_draws_use_every_draw_equally_often():
    counts = np.bincount(picked(21_000, 1), minlength=21)
    assert np.abs(counts - 1_000).max() < 4.5 * np.sqrt(1_000)
    single = np.bincount([picked(1, seed)[0] for seed in range(4_200)], minlength=21)
    assert np.abs(single - 200).max() < 4.5 * np.sqrt(200)


def gamma_poisson(places):
    """A fit whose draw number d gives counts near a thousand times d + 1."""
    posterior = xr.Dataset({"mu": (("chain", "draw"), 1e6 * (places + 1.0))})
    return ppm.GammaPoisson(np.full(5, 3)), posterior, lambda values: values / 1e6 - 1.0


def finite_mixture(places):
    """A fit whose draw number d has both components at d."""
    whole = places[..., None]
    posterior = xr.Dataset(
        {
            "pi": (("chain", "draw", "component"), 0.5 + 0.0 * whole.repeat(2, axis=2)),
            "beta": (("chain", "draw", "component", "predictor"), whole.repeat(2, 2)[..., None]),
            "sigma": (("chain", "draw", "component"), 1e-6 + 0.0 * whole.repeat(2, axis=2)),
        }
    )
    return ppm.FiniteMixture(np.zeros(5), np.ones((5, 1)), components=2), posterior, np.asarray


@pytest.mark.parametrize("make", [gamma_poisson, finite_mixture])
def test_every_release_of_a_synthesizer_is_made_from_another_draw(make):
    places = np.arange(CHAINS * DRAWS, dtype=np.float64).reshape(CHAINS, DRAWS)
    model, posterior, place_of = make(places)
    fit = xr.DataTree.from_dict({"posterior": posterior})
    for releases in (2, CHAINS * DRAWS):
        synthetic = model.predict(fit, releases=releases, random_seed=4).values
        found = place_of(synthetic).round()
        # all records of a release come from one draw, and no two releases from the same
        assert np.all(found == found[:, :1])
        assert np.unique(found[:, 0]).size == releases
