"""What a model shows of itself, and which draws the releases are made from."""

import numpy as np
import pytest

import ppm

GAMMA = "GammaPoisson(records=3, shape=2.0, rate=0.4)"


# a model of the user's own may show its records
class Own(ppm.GammaPoisson):
    def __repr__(self):
        return str(self.counts)


OWN = Own([77, 77, 3], shape=2, rate=0.4)


def test_a_repr_has_public_settings_in_one_line_and_no_confidential_number():
    fit = ppm.fit(OWN, ppm.Unweighted(), draws=9, random_seed=1)
    terms = "Terms(records=3, limits=None)"
    assert repr(fit) == (
        f"Fit(model={GAMMA.replace('GammaPoisson', 'Own')}, rule=Unweighted, terms={terms}, "
        "draws=9, allow_disagreement=False)"
    )


class Numbers(ppm.Model):
    """Draws that say their own numbers, of three chains of seven."""

    records, chains = 2, 3

    def draw(self, terms, draws, rng):
        return {"theta": np.arange(self.chains * draws)}

    def log_p(self, theta):
        return np.zeros((len(theta["theta"]), 2))

    def predict(self, theta, rng):
        return np.full(2, theta["theta"])


FIT = ppm.fit(Numbers(), ppm.Unweighted(), draws=7, allow_disagreement=True)


def picked(releases, seed):
    """Numbers of the draws that the releases are made from."""
    return FIT.release(releases, random_seed=seed).values[:, 0]


@pytest.mark.parametrize("releases", [1, 2, 20, 21])
def test_no_draw_is_used_twice_while_others_are_left(releases):
    assert all(np.unique(picked(releases, seed)).size == releases for seed in range(30))


def test_every_draw_is_used_equally_often():
    counts = np.bincount(picked(21_000, 1), minlength=21)
    assert np.abs(counts - 1_000).max() < 4.5 * np.sqrt(1_000)
    single = np.bincount([picked(1, seed)[0] for seed in range(1_050)], minlength=21)
    assert np.abs(single - 50).max() < 4.5 * np.sqrt(50)
