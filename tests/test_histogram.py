"""Values from a differentially private histogram: its noise, its groups and what it promises."""

from unittest.mock import Mock

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


def release(values=VALUES, **settings):
    settings = {"bins": 40, "epsilon": 1.0, "random_seed": 2} | settings
    return ppm.histogram_release(values, [0.0, 20.0], **settings)


# ---- the noise -----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_a_noisy_count_loses_epsilon_and_no_more(epsilon):
    source = Mock(**{"geometric.return_value": np.ones((2, 3))})
    # the difference of two parts
    assert not seeded_noise(3, epsilon, source).any()
    one = stats.geom(source.geometric.call_args.args[0]).pmf(np.arange(1, 4000))
    law = np.convolve(one, one[::-1])
    middle = law.size // 2
    assert law[middle] == pytest.approx(stats.dlaplace(epsilon).pmf(0))
    # log ratios of a noisy count where the count differs by 1
    losses = np.diff(np.log(law[middle - 60 : middle + 61]))
    assert np.abs(losses) == pytest.approx(np.full(120, epsilon), rel=1e-9)


def fits(noise, epsilon):
    """P-value of the noise under discrete Laplace with this ε."""
    # of so many draws every cell expects ten or more, as this test needs
    ends = np.ceil(np.arange(-6, 8) / epsilon)
    below = stats.dlaplace(epsilon).cdf(ends - 1)
    seen = np.bincount(np.searchsorted(ends, noise, side="right"), minlength=15)
    return stats.chisquare(seen, np.diff(np.r_[0.0, below, 1.0]) * noise.size).pvalue


@pytest.mark.parametrize(
    "source",
    [
        lambda size, epsilon: seeded_noise(size, epsilon, np.random.default_rng(3)),
        # the first of the counts holds a record
        lambda size, epsilon: secure_counts(np.zeros(1, dtype=int), size + 1, epsilon)[
            1:
        ],
    ],
)
def test_both_sources_draw_the_noise_of_this_epsilon(source):
    """OpenDP's takes no seed: one run in a thousand million fails without a fault."""
    assert fits(source(20_000, 0.5), 0.5) > 1e-9
    # of half the scale, and of a scale that a tenth is missing from
    for wrong in (2.0, 1.15):
        assert fits(source(20_000, wrong * 0.5), 0.5) < 1e-9


def test_opendp_itself_grants_epsilon_and_twice_that_where_a_value_is_replaced(
    monkeypatch,
):
    import opendp.prelude as dp

    seen, search = [], dp.binary_search_chain
    monkeypatch.setattr(
        dp,
        "binary_search_chain",
        lambda *a, **named: seen.append(search(*a, **named)) or seen[-1],
    )
    for epsilon in (0.1, 1.0, 3.0):
        found = release(epsilon=epsilon, groups=GROUPS, secure_noise=True)
        loss = seen[-1].map
        assert 0.999 * epsilon < loss(1) <= epsilon == found.guarantee.epsilon
        assert np.isclose(loss(2), 2 * epsilon)


# ---- what a record moves -------------------------------------------------------------------------


def test_all_releases_are_drawn_from_one_set_of_noisy_counts(monkeypatch):
    """Otherwise they would cost m times ε: the noise is drawn once, whatever m is."""
    noise, made = Mock(side_effect=seeded_noise), Mock(side_effect=histogram.generator)
    monkeypatch.setattr(histogram, "seeded_noise", noise)
    monkeypatch.setattr(histogram, "generator", made)
    few, many = (release(groups=GROUPS, releases=m) for m in (1, 7))
    assert [call.args[0] for call in noise.call_args_list] == [4 * 40] * 2
    assert np.array_equal(few.noisy_counts, many.noisy_counts)
    assert few.guarantee == many.guarantee and many.guarantee.epsilon == 1.0
    assert len(np.unique(many.synthetic)) == many.synthetic.size == 7 * 3000
    # each release draws its own bins, and from another stream than the noise
    assert (np.ptp(many.synthetic, axis=0) > 0.5).mean() > 0.99
    assert {call.args[0].spawn_key for call in made.call_args_list} == {(0,), (1,)}


# ---- from noisy counts to values -----------------------------------------------------------------


noisy_counts = st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=30).map(
    np.array
)


@given(noisy_counts, st.integers(1, 10**5))
def test_the_nearest_counts_are_nearest(noisy, total):
    """The conditions of Karush, Kuhn and Tucker, which only the projection meets."""
    near = nearest_counts(noisy, total)
    assert near.min() >= 0 and np.isclose(near.sum(), total)
    given_away = noisy - near
    constant = given_away[near > 0]
    assert np.allclose(constant, constant[0], atol=1e-6)
    assert np.all(given_away <= constant[0] + 1e-6)


@pytest.mark.parametrize("secure", [False, True])
def test_at_a_large_epsilon_a_release_is_near_the_data_in_every_group(secure):
    found = release(
        epsilon=30.0, bins=400, groups=GROUPS, releases=5, secure_noise=secure
    )
    for group in range(4):
        own, drawn = VALUES[GROUPS == group], found.synthetic[:, GROUPS == group]
        assert stats.ks_2samp(drawn.ravel(), own).pvalue > 1e-3
    # without groups, the values know nothing of them
    alone = release(epsilon=30.0, bins=400, releases=5).synthetic
    high = GROUPS % 2 == 1
    assert abs(alone[:, high].mean() - alone[:, ~high].mean()) < 0.2


@pytest.mark.parametrize(
    ("values", "groups", "told"),
    [
        (
            np.where(np.arange(9) == 7, np.nan, 1.0),
            None,
            r"values must .* 1 of 9, .* position 7\)$",
        ),
        (
            [1.0, -np.inf, np.inf],
            None,
            r"values must .*wrong: 2 of 3, the first at position 1\)$",
        ),
        (
            pd.Series([1, 2, 3], dtype="Int64").where([True, False, True]),
            None,
            "values .* position 1",
        ),
        (
            np.ones(3),
            pd.Categorical(["a", "b", None]),
            r"groups must have no missing .* record 2, ",
        ),
        (
            np.ones(3),
            pd.DataFrame({"a": [1, 1, 1], "b": [1, None, 1]}),
            "groups .*record 1, column 'b",
        ),
        (
            np.ones(3),
            np.ma.array(list("abc"), mask=[0, 1, 0]),
            "groups holds masked values",
        ),
        (
            np.ones(3),
            "abc",
            "groups must be a list, an array or a pandas DataFrame of labels; got str",
        ),
    ],
)
def test_what_is_missing_is_named_by_its_place(values, groups, told):
    with pytest.raises(ValueError, match=f"^{told}") as refused:
        release(values, groups=groups)
    assert "\n" not in str(refused.value)
    # a category without records has no counts
    unused = pd.Categorical(list("aab"), categories=list("abc"))
    assert release(np.ones(3), groups=unused).noisy_counts.shape == (2, 40)


# ---- what is promised ----------------------------------------------------------------------------


def test_the_guarantee_names_the_neighbour_of_the_mechanism_and_the_source_of_the_noise():
    seeded, secure, again = (
        release(secure_noise=secure) for secure in (False, True, True)
    )
    # a seed does not repeat OpenDP's noise
    assert not np.array_equal(secure.noisy_counts, again.noisy_counts)
    censored = (
        ppm.PseudoPosteriorMechanism(
            ppm.GammaPoisson([3, 5, 4], shape=2, rate=0.4), censor=ppm.Censoring(-3, -2)
        )
        .run(draws=50, random_seed=1)
        .guarantee
    )
    for found, rounded in (seeded, True), (secure, False):
        assert (
            "but for rounding" in ppm.disclosure.release_statement(found)
        ) == rounded
    seeded, secure = seeded.guarantee, secure.guarantee
    assert seeded.kind == secure.kind == "strict"
    assert seeded.neighbour == secure.neighbour == censored.neighbour
    assert "any number of releases" in str(seeded) and "for one release" in str(
        censored
    )
    assert "guesses the seed" in str(seeded) and "seed" not in str(secure)
    assert "double precision" in str(seeded) and "precision" not in str(secure)


def test_the_statement_says_what_the_guarantee_says_what_is_public_and_nothing_of_the_values():
    found = release(epsilon=0.5, groups=GROUPS, releases=3)
    told, guarantee = ppm.disclosure.release_statement(found), found.guarantee
    for words in (
        guarantee.neighbour,
        *guarantee.not_covered,
        f"ε = 0.5 for {guarantee.covered}",
        "3 × 3,000",
        "0 and 20",
        "40 bins",
        "records (4)",
        "1.65 to 1",
        "2.72 to 1",
    ):
        assert words in told
    other = release(VALUES[::-1], epsilon=0.5, groups=GROUPS, releases=3, random_seed=5)
    assert ppm.disclosure.release_statement(other) == told
