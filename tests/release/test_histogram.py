"""Values from a differentially private histogram: its noise, its groups and what it promises."""

from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import ppm
from ppm.release import histogram, noise
from ppm.release.histogram import histogram_release, public_edges
from ppm.release.noise import nearest_counts, noisy_integers, seeded_noise

VALUES = np.random.default_rng(1).normal(10.0, 2.0, 3000)
GROUPS = (VALUES > 9.0).astype(int) + 2 * (np.arange(3000) % 2)


def release(values=VALUES, **settings):
    settings = {"epsilon": 1.0, "random_seed": 2} | settings
    edges = np.linspace(0.0, 20.0, settings.pop("bins", 40) + 1)
    return histogram_release(values, edges, **settings)


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
        lambda size, epsilon: noisy_integers(
            np.zeros(size), 1, epsilon, secure=True, rng=None
        ),
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
    drawn, made = Mock(side_effect=seeded_noise), Mock(side_effect=histogram.generator)
    monkeypatch.setattr(noise, "seeded_noise", drawn)
    monkeypatch.setattr(histogram, "generator", made)
    few, many = (release(groups=GROUPS, releases=m) for m in (1, 7))
    assert [call.args[0] for call in drawn.call_args_list] == [(4 * 40,)] * 2
    assert np.array_equal(few.noisy["counts"], many.noisy["counts"])
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
            r"groups must have no missing .* record 2\)",
        ),
        (
            np.ones(3),
            pd.DataFrame({"a": [1, 1, 1], "b": [1, None, 1]}),
            "groups must have one label for each of the 3 records; got shape .3, 2.",
        ),
        (
            np.ones(3),
            np.ma.array(list("abc"), mask=[0, 1, 0]),
            "groups holds masked values",
        ),
        (
            np.ones(3),
            "abc",
            "groups must have one label for each of the 3 records; got shape ",
        ),
    ],
)
def test_what_is_missing_is_named_by_its_place(values, groups, told):
    with pytest.raises(ValueError, match=f"^{told}") as refused:
        release(values, groups=groups)
    assert "\n" not in str(refused.value)
    # a category without records has no counts
    unused = pd.Categorical(list("aab"), categories=list("abc"))
    assert release(np.ones(3), groups=unused).noisy["counts"].shape == (2 * 40,)


# ---- public bins and published values ------------------------------------------------------------


def test_public_edges_are_quantiles_special_values_and_a_tail_and_only_inside_the_limits():
    published = np.arange(1.0, 101.0)
    edges = public_edges(published, (0, 200), bins=4, special=[50, 500], tail=2)
    # half of the last quarter is 12.5 records, and half of these 6.25
    inner = [25, 50, np.nextafter(50, 51), 75, 88, 94]
    assert np.array_equal(edges, [0, *inner, 200])
    assert np.array_equal(public_edges(published, (60, 70), bins=4), [60, 70])
    # a round edge is no last digit away from the values that lie on it
    edges = public_edges(published, (0, 300), bins=4, above=2)
    assert np.array_equal(edges, [0, 25, 50, 75, 150, 300])
    # many published values that agree make fewer bins
    assert np.array_equal(public_edges(np.r_[np.zeros(90), published], (-1, 101), bins=2),
                          [-1, 5, 101])  # fmt: skip
    for wrong in ((2, 1), (0, np.nan), (0,)):
        with pytest.raises(ValueError, match="^limits must be"):
            public_edges(published, wrong, bins=4)


def test_a_bin_holds_published_values_of_the_group_else_of_any_else_uniform_ones():
    published, of = np.array([1.0, 1.5, 6.0, 12.0]), np.array(list("abbb"))
    values, groups = np.tile([1.2, 7.0, 17.0], 50), np.repeat(["a", "c"], 75)
    found = histogram_release(
        values,
        {"a": [0, 5, 10, 20], "c": [0, 5, 10, 15, 20]},
        epsilon=30.0,
        groups=groups,
        published=published,
        published_groups=of,
        releases=4,
        random_seed=1,
    )
    a, c = found.synthetic[:, :75], found.synthetic[:, 75:]
    # the only one of group a in the first bin; none of its own in the others
    assert set(a[a < 5]) == {1.0} and set(a[(a > 5) & (a < 10)]) == {6.0}
    assert set(a[a > 10]) == {12.0}
    # a group that nobody published has those of all, and a bin without any is uniform
    assert set(c[c < 5]) == {1.0, 1.5}
    high = c[c > 10]
    assert high.size and high.min() >= 15 and np.unique(high).size == high.size


def test_a_special_value_keeps_its_share():
    rng = np.random.default_rng(3)
    published, values = rng.gamma(2.0, 3.0, 2000), rng.gamma(2.0, 3.0, 2000)
    values[:200] = 0.0
    kept, lost = (
        histogram_release(
            values,
            public_edges(published, (-10.0, 100.0), bins=10, special=special),
            epsilon=1.0,
            published=published,
            releases=20,
            random_seed=1,
        ).synthetic
        for special in ([0.0], [])
    )
    assert abs(100 * (kept == 0).mean() - 10) < 1.0
    assert not (lost == 0).any()


def test_nothing_public_follows_the_confidential_values():
    published = np.random.default_rng(2).normal(10.0, 2.0, 500)
    edges = public_edges(published, (0.0, 20.0), bins=8)
    one, other = (
        release_in(values, edges, published) for values in (VALUES, VALUES + 3.0)
    )
    for label, found in one.public["edges"].items():
        assert np.array_equal(found, other.public["edges"][label])
    # of the confidential values' own quantiles it does not hold
    assert not np.array_equal(
        *(public_edges(values, (0.0, 20.0), bins=8) for values in (VALUES, VALUES + 3))
    )


def release_in(values, edges, published):
    return histogram_release(
        values, edges, epsilon=1.0, published=published, random_seed=1
    )


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ({"edges": [0, 1, 1]}, "edges must be two or more"),
        ({"edges": [3]}, "edges must be two or more"),
        (
            {"edges": {0: [0, 1]}},
            "edges must have an entry for each label.* none for 1",
        ),
        ({"published": [1.0, np.nan]}, "published must be .* position 1"),
        ({"published": [1.0]}, "published_groups must be given"),
        (
            {"published": [1.0], "published_groups": [1, 2]},
            "published_groups must have one",
        ),
    ],
)
def test_wrong_edges_and_published_values_are_named(named, told):
    given = {"edges": [0, 20], "groups": [0, 1], "epsilon": 1.0} | named
    with pytest.raises(ValueError, match=told):
        histogram_release([1.0, 2.0], given.pop("edges"), **given)


# ---- what is promised ----------------------------------------------------------------------------


def test_the_guarantee_names_the_neighbour_of_the_mechanism_and_the_source_of_the_noise():
    seeded, secure, again = (
        release(secure_noise=secure) for secure in (False, True, True)
    )
    # a seed does not repeat OpenDP's noise
    assert not np.array_equal(secure.noisy["counts"], again.noisy["counts"])
    model = ppm.Candidates(ppm.GammaPoisson([3, 5, 4]), {"mu": np.arange(1.0, 9.0)})
    limited = ppm.release.guarantee(
        ppm.fit(model, ppm.Limited(ppm.Limits(-3, -2)), draws=50, random_seed=1)
    )
    for found, rounded in (seeded, True), (secure, False):
        assert ("but for rounding" in ppm.release.release_statement(found)) == rounded
    seeded, secure = seeded.guarantee, secure.guarantee
    assert seeded.kind == secure.kind == "strict"
    assert seeded.neighbour == secure.neighbour == limited.neighbour
    assert "any number of releases" in str(seeded) and "for one release" in str(limited)
    assert "guesses the seed" in str(seeded) and "seed" not in str(secure)
    assert "double precision" in str(seeded) and "precision" not in str(secure)


def test_the_statement_says_what_the_guarantee_says_what_is_public_and_nothing_of_the_values():
    found = release(epsilon=0.5, groups=GROUPS, releases=3)
    told, guarantee = ppm.release.release_statement(found), found.guarantee
    for words in (
        guarantee.neighbour,
        *guarantee.not_covered,
        f"ε = 0.5 for {guarantee.covered}",
        "3 × 3,000",
        "values are uniform",
        "edges of all 160 bins",
        "records (4)",
        "1.65 to 1",
        "2.72 to 1",
    ):
        assert words in told
    other = release(VALUES[::-1], epsilon=0.5, groups=GROUPS, releases=3, random_seed=5)
    assert ppm.release.release_statement(other) == told
