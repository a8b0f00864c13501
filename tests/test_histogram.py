"""Values from a differentially private histogram: its noise, its groups and what it promises."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import ppm
from ppm import histogram
from ppm.histogram import nearest_counts, secure_counts, seeded_noise

VALUES = np.random.default_rng(1).normal(10.0, 2.0, 3000)
GROUPS = (VALUES > 9.0).astype(int) + 2 * (np.arange(3000) % 2)
release = partial(
    ppm.histogram_release, VALUES, [0.0, 20.0], bins=40, epsilon=1.0, random_seed=2
)


# ---- the noise -----------------------------------------------------------------------------------


class Noted:
    """A source of randomness that notes with which probability it was asked, and gives ones."""

    def geometric(self, probability, size):
        self.probability = probability
        return np.ones(size, dtype=np.int64)


def law_of_noise(noise):
    """Probabilities of the noise, in the middle of their array, from the law of its two parts."""
    source = Noted()
    assert not noise(3, source).any()
    one = stats.geom(source.probability).pmf(np.arange(1, 4000))
    return np.convolve(one, one[::-1])


def largest_loss(law, *, within=60):
    """Largest |log ratio| of the probabilities of a noisy count where the count differs by 1."""
    middle = law.size // 2
    log_p = np.log(law[middle - within : middle + within + 1])
    return np.abs(np.diff(log_p)).max()


def halved(size, rng, epsilon):
    """Noise of half the scale."""
    return seeded_noise(size, 2 * epsilon, rng)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_a_noisy_count_loses_epsilon_and_no_more(epsilon):
    law = law_of_noise(lambda size, rng: seeded_noise(size, epsilon, rng))
    assert np.isclose(law.sum(), 1.0) and np.allclose(law, law[::-1], rtol=1e-9, atol=0)
    assert np.isclose(largest_loss(law), epsilon, rtol=1e-9)
    assert largest_loss(law_of_noise(partial(halved, epsilon=epsilon))) > 1.9 * epsilon


def fits(noise, epsilon):
    """P-value of the noise under discrete Laplace with this ε."""
    ends = np.arange(-12, 14) / epsilon
    decay = np.exp(-epsilon)
    # P(Z < z) at whole numbers z
    below = np.where(
        np.ceil(ends) <= 0,
        decay ** -(np.ceil(ends) - 1) / (1 + decay),
        1 - decay ** np.ceil(ends) / (1 + decay),
    )
    expected = np.diff(np.r_[0.0, below, 1.0])
    seen = np.bincount(np.searchsorted(np.ceil(ends), noise, side="right"), minlength=27)
    return stats.chisquare(seen, expected * noise.size).pvalue


def opendp_noise(size, epsilon):
    noisy = secure_counts(np.zeros(3, dtype=int), size, epsilon)
    noisy[0] -= 3
    return noisy


@pytest.mark.parametrize("epsilon", [0.25, 1.0])
def test_both_sources_draw_the_noise_of_this_epsilon(epsilon):
    """OpenDP's takes no seed: one run in a thousand million fails without a fault."""
    sources = {
        "seeded": lambda size, epsilon: seeded_noise(size, epsilon, np.random.default_rng(3)),
        "OpenDP": opendp_noise,
    }
    for name, source in sources.items():
        assert fits(source(20_000, epsilon), epsilon) > 1e-9, name
        # of half the scale, and of a scale that a tenth is missing from
        for wrong in (2.0, 1.1):
            assert fits(source(20_000, wrong * epsilon), epsilon) < 1e-9, name


def test_opendp_itself_grants_epsilon_and_twice_that_where_a_value_is_replaced(monkeypatch):
    import opendp.prelude as dp

    seen = []
    search = dp.binary_search_chain

    def noting(*arguments, **named):
        seen.append(search(*arguments, **named))
        return seen[-1]

    monkeypatch.setattr(dp, "binary_search_chain", noting)
    for epsilon in (0.1, 0.7, 1.0, 3.0):
        found = release(epsilon=epsilon, groups=GROUPS, secure_noise=True)
        loss = seen[-1].map
        assert 0.999 * epsilon < loss(1) <= epsilon == found.guarantee.epsilon
        assert np.isclose(loss(2), 2 * epsilon)


# ---- what a record moves -------------------------------------------------------------------------


def without_noise(monkeypatch):
    monkeypatch.setattr(histogram, "seeded_noise", lambda size, *_: np.zeros(size, int))


def test_a_value_is_in_one_count_of_its_own_group_wherever_it_lies(monkeypatch):
    without_noise(monkeypatch)
    counts = release(groups=GROUPS).noisy_counts
    # rows stand in the order in which the groups first occur
    rows = pd.factorize(GROUPS)[0]
    assert np.array_equal(counts.sum(axis=1), np.bincount(rows))
    for place, value in enumerate([-1e300, -0.1, 0.0, 0.5, 7.3, 19.5, 20.0, 1e300]):
        moved = VALUES.copy()
        moved[place] = value
        change = ppm.histogram_release(
            moved, [0.0, 20.0], bins=40, epsilon=1.0, groups=GROUPS, random_seed=2
        ).noisy_counts - counts
        # one count gives a record away, another one takes it
        assert np.abs(change).sum() in (0, 2) and change.sum() == 0
        assert not np.delete(change, rows[place], axis=0).any()


def test_opendp_counts_as_numpy_does():
    """At an ε whose noise is 0 but once in 10^86."""
    cells = np.random.default_rng(4).integers(0, 50, 500)
    assert np.array_equal(secure_counts(cells, 60, 200.0), np.bincount(cells, minlength=60))


def test_all_releases_are_drawn_from_one_set_of_noisy_counts(monkeypatch):
    """Otherwise they would cost m times ε: the noise is drawn once, whatever m is."""
    calls = []

    def noting(size, *arguments):
        calls.append(size)
        return seeded_noise(size, *arguments)

    monkeypatch.setattr(histogram, "seeded_noise", noting)
    few, many = (release(groups=GROUPS, releases=m) for m in (1, 7))
    assert calls == [4 * 40] * 2
    assert np.array_equal(few.noisy_counts, many.noisy_counts)
    assert few.guarantee == many.guarantee and many.guarantee.epsilon == 1.0
    assert "any number of releases" in str(many.guarantee)
    assert len(np.unique(many.synthetic)) == many.synthetic.size == 7 * 3000


# ---- from noisy counts to values -----------------------------------------------------------------


@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=30).map(np.array),
    st.integers(1, 10**5),
)
def test_the_nearest_counts_are_nearest(noisy, total):
    """The conditions of Karush, Kuhn and Tucker, which only the projection meets."""
    near = nearest_counts(noisy, total)
    assert near.min() >= 0 and np.isclose(near.sum(), total)
    given_away = noisy - near
    constant = given_away[near > 0]
    assert np.allclose(constant, constant[0], atol=1e-6)
    assert np.all(given_away <= constant[0] + 1e-6)


def test_at_a_large_epsilon_a_release_is_near_the_data_in_every_group():
    found = release(epsilon=30.0, bins=400, groups=GROUPS, releases=5)
    assert found.synthetic.shape == (5, 3000)
    for group in range(4):
        own, drawn = VALUES[GROUPS == group], found.synthetic[:, GROUPS == group]
        near = 4 * own.std() / np.sqrt(drawn.size) + 0.05
        assert abs(drawn.mean() - own.mean()) < near
        assert stats.ks_2samp(drawn.ravel(), own).pvalue > 1e-3
    # a record's group decides: without groups, the values know nothing of them
    alone = release(epsilon=30.0, bins=400, releases=5).synthetic
    high = GROUPS % 2 == 1
    assert found.synthetic[:, high].min() > 8.9 and found.synthetic[:, ~high].max() < 9.1
    assert abs(alone[:, high].mean() - alone[:, ~high].mean()) < 0.2


def test_the_noise_decides_for_a_group_with_a_single_record_and_all_releases_share_it():
    groups = [*np.zeros(2999), 1]
    values = [
        release(groups=groups, releases=20, random_seed=seed).synthetic[:, -1] for seed in range(50)
    ]
    # another bin with other noise, but the same few in all releases from one
    assert np.std(np.mean(values, axis=1)) > 4
    assert np.median(np.std(values, axis=1)) < 2


# ---- seeds and what is promised ------------------------------------------------------------------


def test_a_seed_repeats_the_noise_only_if_it_is_not_opendp_s(monkeypatch):
    assert np.array_equal(release().noisy_counts, release().noisy_counts)
    secure = [release(secure_noise=True, groups=GROUPS) for _ in range(2)]
    assert not np.array_equal(secure[0].noisy_counts, secure[1].noisy_counts)
    # given the noisy counts, the seed decides
    monkeypatch.setattr(histogram, "secure_counts", lambda *_: np.arange(40))
    first, again = (release(secure_noise=True).synthetic for _ in range(2))
    assert np.array_equal(first, again)


def test_the_guarantee_names_the_neighbour_of_the_mechanism_and_the_source_of_the_noise():
    seeded, secure = release().guarantee, release(secure_noise=True).guarantee
    censored = ppm.PseudoPosteriorMechanism(
        ppm.GammaPoisson([3, 5, 4], shape=2, rate=0.4), censor=ppm.Censoring(-3, -2)
    ).run(draws=50, random_seed=1).guarantee
    assert seeded.kind == secure.kind == "strict"
    assert seeded.neighbour == secure.neighbour == censored.neighbour
    assert "for one release" in str(censored)
    assert "guesses the seed" in str(seeded) and "seed" not in str(secure)
