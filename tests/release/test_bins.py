"""Noisy counts in public bins: their ε, their edges, and how published shares move them."""

import functools
import itertools
import warnings
from dataclasses import dataclass, replace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from incomes import mechanism_on, one_column
from neighbours import losses, released_after
from scipy import stats
from scipy.linalg import block_diag
from scipy.special import softmax

import ppm
from ppm.release import Bins, bins, noise
from ppm.release.noise import (
    nearest_counts,
    noise_variance,
    noisy_integers,
    seeded_noise,
)

table_of = functools.partial(one_column, groups=2)
LAST = table_of(np.random.default_rng(1).lognormal(3.0, 0.6, 800))
THIS = table_of(1.3 * np.random.default_rng(2).lognormal(3.0, 0.6, 900))
planned, release = mechanism_on(LAST, THIS, (0, 1e4))


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
    ratios = np.diff(np.log(law[middle - 60 : middle + 61]))
    assert np.abs(ratios) == pytest.approx(np.full(120, epsilon), rel=1e-9)


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


@pytest.mark.parametrize(
    ("moved", "epsilon"), [(1, 0.01), (1, 0.5), (1, 30.0), (1000, 0.5), (7, 2.0)]
)
def test_the_variance_of_the_noise_is_that_of_what_is_drawn(moved, epsilon):
    variance = noise_variance(moved, epsilon)
    assert variance == pytest.approx(stats.dlaplace(epsilon / moved).var())
    drawn = noisy_integers(
        np.zeros(50_000), moved, epsilon, secure=False, rng=np.random.default_rng(4)
    )
    assert drawn.var() == pytest.approx(variance, rel=0.05, abs=1e-4)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
@pytest.mark.parametrize("special", [(), (0, 20)])
def test_counts_are_moved_to_their_mean_given_the_noisy_ones(
    monkeypatch, special, epsilon
):
    """By the definition: over the sizes of changes, with groups of different content."""
    seen, plain = [], bins._moved

    def watched(batches, noisy, variance):
        seen.append((noisy, plain(batches, noisy, variance)))
        return seen[-1][-1]

    monkeypatch.setattr(bins, "_moved", watched)
    zeros = (LAST.index % 12 < 3) & (len(special) > 0)
    last = LAST.assign(income=LAST["income"].mask(zeros, 0.0))
    last.loc[last["region"] == 1, "income"] *= 3.0
    # fewer records, and bins that hold no published value
    table, mechanism = THIS[:700], Bins(6, special=special, above=3)
    plan = planned(mechanism, last, epsilon=epsilon)
    mechanism.release(table, plan, random_seed=1)
    parts, ranks, alone, of_group, expected = [], [], [], [], []
    for label, edges in mechanism.edges(plan).items():
        pool = last["income"][last["region"] == int(label)].to_numpy()
        records, many = np.sum(table["region"] == int(label)), edges.size - 1
        published = np.histogram(pool, [*edges[:-1], np.inf])[0] + 0.5 / many
        shares = published / published.sum()
        sampled = np.diag(shares) - np.outer(shares, shares)
        sampled = (records + records**2 / pool.size) * sampled
        sizes = records * np.maximum(shares, 0.005)
        # a relative change of each bin, and all counts in proportion, so that their sum stays
        change = np.diag(sizes) - np.outer(shares, sizes)
        parts.append((sampled, change))
        expected.append(records * shares)
        ranks.append(stats.norm.ppf(np.cumsum(shares) - shares / 2))
        alone.append(np.isin(edges[:-1], special))
        of_group.append(np.full(many, label))
    ranks, alone, of_group, expected = map(
        np.concatenate, (ranks, alone, of_group, expected)
    )
    sampled, change = (block_diag(*each) for each in zip(*parts, strict=True))
    shared = np.where(of_group[:, None] == of_group, 1.0, 0.5)
    near = np.exp(-((ranks[:, None] - ranks) ** 2) / 2)
    smooth = np.where(alone[:, None] | alone, 0.0, shared * near)
    apart = np.where(alone[:, None] & alone, shared, 0.0)
    ((noisy, moved),) = seen
    noisy, log_weights, centers = np.concatenate(noisy), [], []
    for of_all, of_alone in itertools.product(bins._SMOOTH, bins._ALONE):
        changed = change @ (of_all**2 * smooth + of_alone**2 * apart) @ change.T
        known = sampled + changed
        both = known + stats.dlaplace(epsilon).var() * np.eye(noisy.size)
        log_weights.append(stats.multivariate_normal(expected, both).logpdf(noisy))
        gain = np.linalg.solve(both, noisy - expected)
        centers.append(expected + known @ gain)
    wanted = softmax(log_weights) @ np.array(centers)
    assert np.concatenate(moved) == pytest.approx(wanted, abs=1e-6)


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
        found = release(Bins(8), epsilon=epsilon, secure_noise=True)
        loss = seen[-1].map
        assert 0.999 * epsilon < loss(1) <= epsilon == found.guarantee.epsilon
        assert np.isclose(loss(2), 2 * epsilon)


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


# ---- what a record moves -------------------------------------------------------------------------

# limits, beyond them, special values, and what lies beside edges
values = st.one_of(
    st.sampled_from([-np.inf, -1.0, 0.0, 5e-324, 20.0, 1e4, 1e300, np.inf]),
    st.floats(0, 200),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    st.lists(values, min_size=2, max_size=12),
    st.sampled_from([Bins(4), Bins(4, special=[0, 20]), Bins(3, tail=2, above=3)]),
    st.floats(1e-3, 30),
)
def test_a_record_that_is_not_used_loses_epsilon_over_all_counts(
    monkeypatch, values, mechanism, epsilon
):
    plan = planned(mechanism, epsilon=epsilon)
    found = [*losses(monkeypatch, mechanism, plan, table_of(values), "income")]
    assert found == pytest.approx([epsilon] * len(values), rel=1e-12)


@dataclass(frozen=True, repr=False)
class OwnEdges(Bins):
    """A slip: the bins are quantiles of the confidential values."""

    def release(self, table, plan, **noise):
        return super().release(table, replace(plan, published=table.dropna()), **noise)


def test_broken_variants_lose_more(monkeypatch):
    table, own = THIS[:60], OwnEdges(8)
    assert max(losses(monkeypatch, own, planned(own), table, "income")) > 1.5
    mechanism, counted = Bins(4), bins.counted

    def twice(values, edges):
        # confidential values are fewer than the published ones of any group
        return (1 + (np.size(values) <= len(table))) * counted(values, edges)

    monkeypatch.setattr(bins, "counted", twice)
    found = losses(monkeypatch, mechanism, planned(mechanism), table, "income")
    assert max(found) == pytest.approx(2.0)


MECHANISMS = {
    "plain": (Bins(6), True),
    "special": (Bins(6, special=[0, 20], tail=1, above=2), True),
    "own edges": (OwnEdges(6), False),
}


@pytest.mark.parametrize(("mechanism", "same"), MECHANISMS.values(), ids=MECHANISMS)
def test_what_follows_the_noise_looks_at_no_confidential_value(
    monkeypatch, mechanism, same
):
    tables = THIS, THIS.assign(income=np.linspace(0, 500, len(THIS)))
    found = [*released_after(monkeypatch, bins, release, mechanism, tables)]
    one, other = found
    assert np.array_equal(one.synthetic, other.synthetic) is same
    pd.testing.assert_frame_equal(one.noisy["counts"][["group", "count"]],
                                  other.noisy["counts"][["group", "count"]])  # fmt: skip
    edges = [{k: v.tolist() for k, v in each.public["edges"].items()} for each in found]
    assert (edges[0] == edges[1]) is same


def test_all_releases_are_drawn_from_one_set_of_noisy_counts(monkeypatch):
    """Otherwise they would cost m times ε: the noise is drawn once, whatever m is."""
    drawn, made = Mock(side_effect=seeded_noise), Mock(side_effect=bins.generator)
    monkeypatch.setattr(noise, "seeded_noise", drawn)
    monkeypatch.setattr(bins, "generator", made)
    few, many = (release(Bins(8), releases=m) for m in (1, 7))
    assert [call.args[0] for call in drawn.call_args_list] == [(2 * 8,)] * 2
    pd.testing.assert_frame_equal(few.noisy["counts"], many.noisy["counts"])
    assert few.guarantee == many.guarantee and many.guarantee.epsilon == 1.0
    assert many.synthetic.shape == (7, 900)
    # each release draws its own values, and from another stream than the noise
    assert (np.ptp(many.synthetic, axis=0) > 0.5).mean() > 0.99
    assert {call.args[0].spawn_key for call in made.call_args_list} == {(0,), (1,)}


# ---- edges ---------------------------------------------------------------------------------------


def edges(published, ends, *given, **named):
    return bins.edges_of(published, ends, Bins(*given, **named))


def test_edges_are_quantiles_special_values_and_a_tail_and_only_inside_the_limits():
    published = np.arange(1.0, 101.0)
    found = edges(published, (0, 200), 4, special=[500], tail=2)
    # half of the last quarter is 12.5 records, and half of these 6.25
    assert np.array_equal(found, [0, 25, 50, 75, 88, 94, 200])
    # quantiles of the others: without 1 to 20, where they are special
    found = edges(published, (0, 200), 4, special=np.arange(1.0, 21.0))
    assert np.array_equal(found[found > 21], [40, 60, 80, 200])
    assert np.array_equal(edges(published, (60, 70), 4), [60, 70])
    # a round edge is no last digit away from the values that lie on it
    found = edges(published, (0, 300), 4, above=2)
    assert np.array_equal(found, [0, 25, 50, 75, 150, 300])
    for label, of_plan in Bins(4).edges(planned(Bins(4))).items():
        own = LAST.loc[LAST["region"].astype(str) == label, "income"]
        assert np.array_equal(of_plan, edges(own, (0.0, 1e4), 4))


def test_a_special_value_has_a_bin_of_its_own_and_no_quantile():
    rng = np.random.default_rng(3)
    incomes = np.where(rng.random(2000) < 0.94, 0.0, rng.lognormal(3, 1, 2000))
    published = table_of(incomes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Bins(5, special=[0]).edges(planned(Bins(5, special=[0]), published))
    for of_group in found.values():
        alone = np.nextafter(0.0, 1.0)
        # 0 alone, and five bins between quantiles of the others, of which the last is cut once
        assert np.array_equal(of_group[:2], [0.0, alone]) and of_group.size == 2 + 5
    # 6 % of the records hold the others: nearly equal numbers in each
    own = incomes[::2]
    inside = np.histogram(own[own > 0], found["0"][1:])[0]
    assert inside.max() - inside.min() <= 2
    with pytest.warns(UserWarning, match=r"Bins\(bins=5\): fewer bins .* in 2 of 2 gr"):
        planned(Bins(5), published)


@pytest.mark.parametrize("tail", [0, 2])
def test_a_warning_tells_that_fewer_bins_result(tail):
    equal = table_of(np.r_[np.repeat(7.0, 500), np.linspace(1, 20, 300)])
    with pytest.warns(UserWarning, match="fewer bins than asked for in 2 of 2 groups"):
        planned(Bins(10, tail=tail), equal)
    # the tail alone is missing, where the highest values are equal
    highest = table_of(np.minimum(np.linspace(1, 20, 800), 17.0))
    if tail:
        with pytest.warns(UserWarning, match="fewer bins .* in 2 of 2 groups"):
            planned(Bins(4, tail=tail), highest)
    else:
        planned(Bins(4), highest)
    # two bins are there
    plan = planned(Bins(2), equal)
    assert {one.size for one in Bins(2).edges(plan).values()} == {3}


# ---- from noisy counts to values -----------------------------------------------------------------


def shares(found, group, edges):
    own = found.synthetic[:, THIS["region"] == group]
    return np.histogram(own, edges)[0] / own.size


def test_shares_are_the_published_ones_at_a_small_epsilon_and_the_tables_at_a_large_one():
    # a change of shape, which no smooth factor is
    table = THIS.assign(income=np.where(THIS.index % 5, THIS["income"], 90.0))
    found = {
        epsilon: release(Bins(8), table, epsilon=epsilon, releases=2)
        for epsilon in (1e-4, 30.0)
    }
    for group in (0, 1):
        ends = found[30.0].public["edges"][str(group)]
        known, true = (
            np.histogram(t.loc[t["region"] == group, "income"], ends)[0] for t in (LAST, table)
        )  # fmt: skip
        known, true = known / known.sum(), true / true.sum()
        assert np.abs(known - true).max() > 0.1
        assert shares(found[1e-4], group, ends) == pytest.approx(known, abs=0.01)
        assert shares(found[30.0], group, ends) == pytest.approx(true, abs=0.01)


@pytest.mark.parametrize(("records", "published"), [(100, 1000), (1000, 100)])
def test_counts_differ_as_two_samples_of_different_sizes_do(records, published):
    pool = np.random.default_rng(1).uniform(0.0, 4.0, published)
    group = bins._Group(records, np.arange(5.0), pool, ())
    shares = (np.bincount(pool.astype(int)) + 0.125) / (published + 0.5)
    # n of this year, and n times the shares of the published ones
    of_shares = np.diag(shares) - np.outer(shares, shares)
    known = records * of_shares + records**2 * of_shares / published
    assert group.sampled == pytest.approx(known)
    assert group.expected == pytest.approx(records * shares)


def test_moved_counts_are_nearer_than_noisy_and_than_published_ones():
    """Over repetitions, at an ε where neither is much nearer than the other."""
    table = table_of(1.1 * np.random.default_rng(7).lognormal(3.0, 0.6, 900))
    sizes = {"moved": [], "noisy": [], "published": []}
    for seed in range(30):
        found = release(Bins(15), table, epsilon=0.1, seed=seed)
        for group in (0, 1):
            ends = found.public["edges"][str(group)]
            rows = found.noisy["counts"]
            noisy = rows.loc[rows["group"] == str(group), "count"].to_numpy(float)
            own = table["region"] == group
            true = bins.counted(table["income"][own], ends)
            known = bins.counted(LAST["income"][LAST["region"] == group], ends)
            moved = bins.counted(found.synthetic[0, own], ends)
            for name, one in (
                ("moved", moved),
                ("noisy", nearest_counts(noisy, own.sum())),
                ("published", known * own.sum() / known.sum()),
            ):
                sizes[name].append(np.sum((one - true) ** 2))
    mean = {name: np.mean(one) for name, one in sizes.items()}
    assert mean["moved"] < 0.9 * min(mean["noisy"], mean["published"]), mean


@pytest.mark.parametrize("published_share", [0.0, 0.05])
def test_a_spike_of_zeros_appears_if_zero_is_special(published_share):
    zeros = np.arange(800) % 20 < 20 * published_share
    last = LAST.assign(income=LAST["income"].where(~zeros, 0.0))
    table = THIS.assign(income=THIS["income"].where(THIS.index % 4 > 0, 0.0))
    kept = release(Bins(10, special=[0]), table, last, epsilon=5.0).synthetic
    assert (kept == 0).mean() == pytest.approx(0.25, abs=0.01)
    # a share that is not special is that of the published records in its bin
    lost = release(Bins(5), table, last, epsilon=5.0).synthetic
    assert abs((lost == 0).mean() - 0.25) > 0.05


def test_a_bin_holds_published_values_of_its_group_or_is_spread_evenly():
    last = table_of([*np.linspace(1, 9, 40), *np.linspace(11, 90, 40)])
    last["region"] = np.repeat([0, 1], 40)
    table = one_column(
        np.r_[np.full(60, 4.0), np.full(60, 5000.0)], np.repeat([0, 1], 60)
    )
    found = release(
        Bins(4, above=4), table, last, epsilon=30.0, limits=(0, 1e4), releases=2
    )
    low, high = found.synthetic[:, :60], found.synthetic[:, 60:]
    # all of the bin, the lowest and the highest too, and as often as the others
    ends, pool = found.public["edges"]["0"], last["income"][:40].to_numpy()
    inside = pool[np.digitize(pool, ends) == np.digitize(4.0, ends)]
    drawn, often = np.unique(low, return_counts=True)
    assert np.array_equal(drawn, inside) and np.ptp(often) <= 2
    ends = found.public["edges"]["1"]
    place = np.searchsorted(ends, 5000.0)
    assert ends[place - 1] > 90 and ends[place - 1] <= high.min() <= high.max() < 1e4
    # in the logarithm, above 0
    logs = np.log(high / ends[place - 1]) / np.log(ends[place] / ends[place - 1])
    assert stats.kstest(logs.ravel(), "uniform").pvalue > 1e-3


def test_values_stay_in_their_bins_and_no_special_value_takes_others():
    found = release(Bins(5, special=[0, 20]), epsilon=0.2, releases=4)
    assert found.synthetic.min() >= 0 and found.synthetic.max() <= 1e4
    ends = Bins(5, special=[0, 20]).edges(planned(Bins(5, special=[0, 20])))["0"]
    # 20 and what is just above it, in another bin
    assert np.any(ends == 20.0) and np.any(ends == np.nextafter(20.0, 21.0))
    # which is told without its last digit
    told = found.public["edges"]["0"]
    assert np.sum(told == 0.0) == np.sum(told == 20.0) == 2 and told.size == ends.size
    assert (
        "(0, 20) that stands twice among the edges has a bin" in found.public["special"]
    )
    near = found.synthetic[np.abs(found.synthetic - 20) < 1e-9]
    assert {*near} <= {20.0}


# ---- what is promised ----------------------------------------------------------------------------


def test_the_guarantee_names_the_neighbour_of_the_mechanism_and_the_source_of_the_noise():
    seeded, secure, again = (
        release(Bins(8), secure_noise=secure) for secure in (False, True, True)
    )
    # a seed does not repeat OpenDP's noise
    assert not seeded.noisy["counts"].equals(secure.noisy["counts"])
    assert not again.noisy["counts"].equals(secure.noisy["counts"])
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
    found = release(Bins(8), epsilon=0.5, releases=3)
    told, guarantee = ppm.release.release_statement(found), found.guarantee
    for words in (
        guarantee.neighbour,
        *guarantee.not_covered,
        f"ε = 0.5 for {guarantee.covered}",
        "3 × 900",
        "moved towards the published shares",
        "varies less than a sample of records would",
        "edges of all 16 bins",
        "records (2)",
        "1.65 to 1",
        "2.72 to 1",
    ):
        assert words in told
    other = release(
        Bins(8),
        THIS.assign(income=THIS["income"].to_numpy()[::-1]),
        epsilon=0.5,
        releases=3,
        seed=5,
    )
    assert ppm.release.release_statement(other) == told


def test_no_bin_lies_between_special_values_where_nobody_published_any():
    rng = np.random.default_rng(1)
    incomes = np.round(rng.lognormal(5, 0.6, 900))
    incomes[::10], incomes[1::20] = -8, 0
    settings = {"limits": (-8, 1e4), "epsilon": 0.05, "releases": 4}
    for last in (incomes, np.where(incomes == -8, 3.0, incomes)):
        found = release(Bins(6, special=[-8, 0]), published=table_of(last), **settings)
        made = {*found.synthetic.ravel()}
        assert not [value for value in made if value < 0 and value != -8]
        ends = found.public["edges"]["0"]
        assert [*ends[:3]] == [
            -8,
            0,
            0,
        ] and "stands once shares its bin" in found.public["special"]
    # one published value, and the bin is there
    between = release(
        Bins(6, special=[-8, 0]), published=table_of([*incomes[:-1], -4.0]), **settings
    )
    assert [*between.public["edges"]["1"][:4]] == [-8, -8, 0, 0]
