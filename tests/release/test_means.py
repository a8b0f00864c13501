"""Published values that are moved and stretched to two noisy sums: their noise and their fit."""

import numpy as np
import pytest
from scipy import stats

import ppm
from ppm.release import sums

PUBLISHED = np.random.default_rng(1).normal(10.0, 2.0, 1500)
VALUES = np.random.default_rng(2).normal(11.0, 2.5, 3000)
GROUPS = np.arange(3000) % 3


def release(values=VALUES, **settings):
    settings = {"epsilon": 1.0, "random_seed": 3} | settings
    return sums.sums_release(values, PUBLISHED, (-20.0, 40.0), **settings)


def plain_sums(values, clip=(1.5, 2.2)):
    """Both sums by their definition, in their units."""
    standard = (values - PUBLISHED.mean()) / PUBLISHED.std()
    first = np.clip(standard, -clip[0], clip[0]).sum() / clip[0]
    return first, (np.minimum(standard**2, clip[1] ** 2) / (clip[1] ** 2 / 2) - 1).sum()


def test_without_noise_both_sums_are_those_of_their_definition(monkeypatch):
    monkeypatch.setattr(
        sums, "noisy_integers", lambda totals, *_, **__: np.array(totals)
    )
    groups = {"groups": GROUPS, "published_groups": np.arange(1500) * 0}
    # groups 1 and 2 were not published, and take all published values, as group 0 has
    found = release(**groups).noisy["sums"]
    for group in range(3):
        assert found[group] == pytest.approx(
            plain_sums(VALUES[GROUPS == group]), abs=2e-3
        )
    # at the values' own mean and deviation, far from the prior's
    far = release(PUBLISHED * 1.2 + 1.0)
    assert far.synthetic.mean() == pytest.approx(13.0, abs=0.25)
    assert far.synthetic.std() == pytest.approx(1.2 * PUBLISHED.std(), rel=0.05)


@pytest.mark.parametrize("value", [-1e300, -50.0, 0.0, 9.9, 10.0, 15.0, 1e300])
def test_no_value_moves_a_sum_by_more_than_its_noise_is_made_for(monkeypatch, value):
    """A value that is not used is absent: the sums of the others stay."""
    seen = []

    def kept(totals, moved, epsilon, **_):
        seen.append((np.array(totals), moved, epsilon))
        return np.array(totals)

    monkeypatch.setattr(sums, "noisy_integers", kept)
    release(VALUES[:20], share=0.7, epsilon=2.0)
    release(np.r_[VALUES[:20], value], share=0.7, epsilon=2.0)
    for (without, moved, epsilon), (with_it, *_), spent in zip(
        seen[:2], seen[2:], (1.4, 0.6), strict=True
    ):
        assert np.abs(with_it - without) <= moved and epsilon == pytest.approx(spent)
    # an ε that is given to both sums whole, or half of the sensitivity, would not do
    assert sum(epsilon for *_, epsilon in seen[:2]) == pytest.approx(2.0)
    largest = max(
        np.abs(b - a)[0] for (a, *_), (b, *_) in zip(seen[:2], seen[2:], strict=True)
    )
    assert value in (9.9, 10.0) or largest > sums._STEPS / 2


@pytest.mark.parametrize("secure", [False, True])
def test_the_noise_of_both_sums_has_its_scale(monkeypatch, secure):
    """In their units the scale is 1 / (share ε). OpenDP's takes no seed: 1 in 10^9 fails."""
    monkeypatch.setattr(sums, "_moved", lambda *_: (0.0, 1.0))
    groups = np.arange(20_000)
    found = sums.sums_release(
        np.full(20_000, PUBLISHED.mean()),
        PUBLISHED,
        (-20.0, 40.0),
        epsilon=1.0,
        share=0.8,
        groups=groups,
        published_groups=np.full(1500, -1),
        secure_noise=secure,
        random_seed=1,
    ).noisy["sums"]
    for noise, scale in ((found[:, 0], 1.25), (found[:, 1] + 1.0, 5.0)):
        assert stats.kstest(noise, stats.laplace(scale=scale).cdf).pvalue > 1e-9
        assert stats.kstest(noise, stats.laplace(scale=0.8 * scale).cdf).pvalue < 1e-9


def test_the_release_leans_to_the_published_table_where_noise_drowns_the_sums():
    lost = release(epsilon=1e-4)
    assert abs(lost.synthetic.mean() - 10.0) < 0.5
    near = release(epsilon=5.0, releases=3)
    assert near.synthetic.shape == (3, 3000)
    assert near.synthetic.mean() == pytest.approx(VALUES.mean(), abs=0.1)
    assert near.synthetic.std() == pytest.approx(VALUES.std(), rel=0.04)
    assert np.array_equal(near.noisy["sums"], release(epsilon=5.0).noisy["sums"])


def test_centers_are_published_ones_and_what_is_wrong_is_named():
    one, other = release(), release(VALUES + 3.0)
    assert one.public == other.public
    told = ppm.release.release_statement(
        release(groups=GROUPS, published_groups=np.zeros(1500))
    )
    assert "groups of records (3)" in told
    assert "1 for the noisy sums" in told
    for named, words in (
        ({"clip": (1.0, 0.0)}, "clip must be"),
        ({"share": 1.0}, "share must be"),
        ({"groups": GROUPS}, "published_groups must be given"),
        ({"epsilon": 0.0}, "epsilon must be"),
    ):
        with pytest.raises(ValueError, match=words):
            release(**named)
    # of numbers so small the standard deviation is 0
    for alike in ([2.0, 2.0], [1e-200, 3e-200]):
        with pytest.raises(ValueError, match="published must have two different"):
            sums.sums_release([1.0], alike, (0, 9), epsilon=1.0)
    with pytest.raises(ValueError, match="limits must be"):
        sums.sums_release([1.0], PUBLISHED, (9, 0), epsilon=1.0)
