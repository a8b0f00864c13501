"""What a model shows of itself, and which draws the releases are made from."""

import numpy as np
import pytest
import xarray as xr

import ppm
from ppm.synthesizers.base import choose_draws

CHAINS, DRAWS = 3, 7
MODEL, LIMITS = ppm.GammaPoisson([77, 77, 3], shape=2, rate=0.4), ppm.Censoring(-3, -1)
GAMMA = "GammaPoisson(records=3, shape=2.0, rate=0.4)"
LIMITED = ppm.PseudoPosteriorMechanism(
    MODEL, censor=LIMITS, weights=[0.5, 0.25, 0.125], independent_weights=True
)


# a synthesizer of the user's own may show its records
class Own(ppm.GammaPoisson):
    def __repr__(self):
        return str(self.counts)


OWN = Own([77, 77, 3], shape=2, rate=0.4)


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        (
            ppm.PseudoPosteriorMechanism(OWN, scale=0.7),
            "PseudoPosteriorMechanism("
            f"model={GAMMA.replace('GammaPoisson', 'Own')}, "
            "rule={'scale': 0.7}, censor=None, terms=None)",
        ),
        (
            LIMITED.run(draws=9, random_seed=1),
            f"Fit(model={GAMMA}, terms=Terms(records=3, limits={LIMITS}, own=True, "
            "source='caller'), allow_disagreement=False, draws_used=9)",
        ),
    ],
)
def test_a_repr_has_public_settings_in_one_line_and_no_confidential_number(shown, told):
    assert repr(shown) == told


def picked(releases, seed):
    """Numbers of the draws, from 0, that the releases are made from."""
    posterior = xr.Dataset({"theta": (("chain", "draw"), np.zeros((CHAINS, DRAWS)))})
    chain, draw = choose_draws(posterior, releases, np.random.default_rng(seed))
    assert chain.shape == (releases,) and chain.max() < CHAINS and draw.max() < DRAWS
    return chain * DRAWS + draw


@pytest.mark.parametrize("releases", [1, 2, 20, 21])
def test_no_draw_is_used_twice_while_others_are_left(releases):
    assert all(np.unique(picked(releases, seed)).size == releases for seed in range(30))


def test_every_draw_is_used_equally_often():
    counts = np.bincount(picked(21_000, 1), minlength=21)
    assert np.abs(counts - 1_000).max() < 4.5 * np.sqrt(1_000)
    single = np.bincount([picked(1, seed)[0] for seed in range(1_050)], minlength=21)
    assert np.abs(single - 50).max() < 4.5 * np.sqrt(50)
