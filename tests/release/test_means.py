"""Noisy sums of groups: their ε, the factors that they make likely, and what they are blind to."""

import functools
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from incomes import mechanism_on, one_column
from neighbours import losses, released_after, totals_of
from scipy import stats
from scipy.special import logsumexp, softmax

import ppm
from ppm.release import Means, means
from ppm.release.noise import noisy_integers

table_of = functools.partial(one_column, groups=3)


def drawn(seed, records, factors=(1.0, 1.0, 1.0)):
    table = table_of(np.random.default_rng(seed).lognormal(3.0, 0.6, records))
    return table.assign(income=table["income"] * np.array(factors)[table["region"]])


LAST, THIS = drawn(1, 1500), drawn(2, 2400, (0.6, 1.2, 1.9))
planned, release = mechanism_on(LAST, THIS, (0, 1e6))


def group_means(found, table=THIS):
    columns = pd.DataFrame(found.synthetic.T).groupby(table["region"].to_numpy()).mean()
    return columns.mean(axis=1).to_numpy()


# ---- what a record moves -------------------------------------------------------------------------

values = st.one_of(
    st.sampled_from([-np.inf, -1.0, 0.0, 5e-324, 20.0, 1e6, 1e300, np.inf]),
    st.floats(0, 200),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(
    st.lists(values, min_size=3, max_size=12),
    st.sampled_from([Means(), Means(0.9), Means(special=[0, 20]), Means(1, [0])]),
    st.floats(1e-3, 30),
)
def test_a_record_that_is_not_used_loses_epsilon_over_sums_and_counts(
    monkeypatch, values, mechanism, epsilon
):
    table, plan = table_of(values), planned(mechanism, epsilon=epsilon)
    found = [*losses(monkeypatch, mechanism, plan, table, "income")]
    assert max(found) <= epsilon * (1 + 1e-12)
    for loss, value in zip(found, np.clip(values, 0, 1e6), strict=True):
        # a value at an end of the sum, and one that is counted, lose all of it
        if value in (0.0, 1e6) or value in mechanism.special:
            assert loss == pytest.approx(epsilon, rel=1e-5)


def test_a_record_in_a_count_is_in_no_sum(monkeypatch):
    mechanism, table = Means(special=[0]), THIS[:30].copy()
    table.loc[4, "income"] = 0.0
    without = table.assign(income=table["income"].where(table.index != 4))
    both = [
        totals_of(monkeypatch, mechanism, planned(mechanism), one)
        for one in (table, without)
    ]
    (sums, *_), (counts, *_) = both[0]
    (same, *_), (fewer, *_) = both[1]
    assert np.array_equal(sums, same) and np.abs(counts - fewer).sum() == 1


@dataclass(frozen=True, repr=False)
class OwnCap(Means):
    """A slip: the cap is a quantile of the confidential values."""

    def release(self, table, plan, **noise):
        return super().release(table, replace(plan, published=table.dropna()), **noise)


def test_broken_variants_lose_more(monkeypatch):
    table = THIS[:60].copy()
    table.loc[:9, "income"] = 0.0
    own, plain = OwnCap(0.9), means._Group.totals
    assert max(losses(monkeypatch, own, planned(own), table, "income")) > 1.5

    def twice(group, values):
        """Special records are in the sum, too."""
        total, counts = plain(group, values)
        return total - len(values[values == 0]) * means._STEPS // 2, counts

    def uncapped(group, values):
        total, counts = plain(group, values)
        over = np.maximum(values / group.cap - 1, 0).sum()
        return total + int(means._STEPS * over), counts

    for broken in (twice, uncapped):
        with monkeypatch.context() as patch:
            patch.setattr(means._Group, "totals", broken)
            special = Means(special=[0])
            found = losses(monkeypatch, special, planned(special), table, "income")
            assert max(found) > 1.2, broken.__name__


@pytest.mark.parametrize(
    ("mechanism", "same"),
    [(Means(), True), (Means(0.9, [0, 20]), True), (OwnCap(0.9), False)],
)
def test_what_follows_the_noise_looks_at_no_confidential_value(
    monkeypatch, mechanism, same
):
    tables = THIS, THIS.assign(income=np.linspace(0, 500, len(THIS)))
    found = [*released_after(monkeypatch, means, release, mechanism, tables)]
    one, other = found
    assert np.array_equal(one.synthetic, other.synthetic) is same
    assert (one.public == other.public) is same


@pytest.mark.parametrize("secure", [False, True])
def test_the_noise_of_sums_and_counts_has_its_scale(monkeypatch, secure):
    """OpenDP's takes no seed: 1 in 10^9 fails."""
    groups = np.arange(8_000)
    monkeypatch.setattr(means, "_factors", lambda groups, *_: np.ones(len(groups)))
    last = one_column(np.r_[10.0 + 0 * groups, 0.0 * groups], np.tile(groups, 2))
    mechanism = Means(1, [0])
    plan = planned(mechanism, last, epsilon=0.5)
    found = mechanism.release(last, plan, random_seed=1, secure_noise=secure).noisy[
        "sums"
    ]
    # each group has one value at the cap, 10, which adds half of it, and one of 0; counts are
    # spread evenly around whole numbers
    spread = np.random.default_rng(1).uniform(-0.5, 0.5, 8_000)
    for noise, law, scale in (
        (found["sum"] - 5.0, laplace, 10.0),
        (found["records of 0"] - 1.0 + spread, spread_laplace, 2.0),
    ):
        assert stats.kstest(noise, law(scale)).pvalue > 1e-9
        assert stats.kstest(noise, law(0.8 * scale)).pvalue < 1e-9


def laplace(scale):
    return stats.laplace(scale=scale).cdf


def spread_laplace(scale):
    law = stats.dlaplace(1 / scale)

    def cdf(x):
        whole = np.floor(x + 0.5)
        return law.cdf(whole - 1) + (x + 0.5 - whole) * law.pmf(whole)

    return cdf


# ---- factors -------------------------------------------------------------------------------------


def test_group_means_are_the_tables_at_a_large_epsilon_and_the_published_at_a_small_one():
    truth, before = (t.groupby("region")["income"].mean() for t in (THIS, LAST))
    near = release(Means(), epsilon=30.0)
    assert group_means(near) == pytest.approx(truth.to_numpy(), rel=0.06)
    # no shape changes: the factor alone is to be found, and at all ε its noise is small
    exact = LAST.assign(
        income=LAST["income"] * np.array([0.6, 1.2, 1.9])[LAST["region"]]
    )
    near = release(Means(), exact, epsilon=30.0)
    known = exact.groupby("region")["income"].mean().to_numpy()
    assert group_means(near, exact) == pytest.approx(known, rel=0.01)
    lost = release(Means(), epsilon=1e-6)
    assert group_means(lost) == pytest.approx(before.to_numpy(), rel=0.01)


@pytest.mark.parametrize("epsilon", [1e-6, 0.5])
def test_every_value_is_a_published_one_of_its_group_times_its_factor(epsilon):
    found = release(Means(), epsilon=epsilon, releases=2).synthetic
    for group in range(3):
        own = np.unique(found[:, THIS["region"] == group])
        pool = np.sort(LAST.loc[LAST["region"] == group, "income"].to_numpy())
        assert own.size == pool.size
        assert np.ptp(own / pool) < 1e-9


@pytest.mark.parametrize("epsilon", [0.02, 0.3, 2.0])
def test_factors_and_shares_assume_the_noise_that_is_drawn(monkeypatch, epsilon):
    """Where nothing else tells, by closed forms of what the noise alone makes likely."""
    rates, plain = [], means.noisy_integers

    def watched(totals, moved, epsilon, **named):
        rates.append(epsilon / moved)
        return plain(totals, moved, epsilon, **named)

    monkeypatch.setattr(means, "noisy_integers", watched)
    release(Means(special=[0]), epsilon=epsilon)
    of_sums, of_counts = rates
    # one group whose factor may be anything before its sum is seen
    monkeypatch.setattr(means, "_OWN", (1e4,))
    in_caps = 1 / of_sums / means._STEPS
    records, added = 8 * max(in_caps, 10.0), 0.4 * np.tanh(2.0 * means._LOGS)
    group = SimpleNamespace(records=records, added=added, sampled=0.0)
    around = means._chances_around([group])
    for share in (0.2, 0.37, -0.39):
        (found,) = means._factors(
            [group], around, np.array([share * records]), [[]], epsilon
        )
        scale = in_caps + 0.5 * records * np.gradient(added)
        chances = stats.laplace(records * added, scale).pdf(share * records)
        mean = chances @ means._LOGS / chances.sum()
        assert np.log(found) == pytest.approx(mean, abs=1e-3)
    # and one whose share of a special value may be anything: of none seen, an exponential law's
    monkeypatch.setattr(means, "_MOVED", 1e4)
    group = means._Group(np.arange(4.0), 20 / of_counts, planned(Means()), Means(), [])
    group.special, group.published = np.zeros(1), np.array([0.5])
    (median,) = group.special_shares([0], epsilon)
    assert median == pytest.approx(np.log(2) / 20, abs=0.0015)


def test_a_common_factor_helps_a_small_group(monkeypatch):
    groups = np.r_[np.repeat([0, 1, 2, 3], 500), np.repeat(4, 12)]
    last = one_column(np.random.default_rng(4).lognormal(3, 0.6, groups.size), groups)
    table = last.assign(income=1.5 * last["income"])

    def error(seed):
        found = release(Means(), table, last, epsilon=0.2, seed=seed).synthetic[0]
        own = groups == 4
        return np.abs(found[own].mean() / table["income"][own].mean() - 1)

    errors = [error(seed) for seed in range(20)]
    # published records are off by a third; it alone can hardly tell
    assert np.mean(errors) < 0.12
    with monkeypatch.context() as patch:
        patch.setattr(means, "_OWN", (10.0,))
        assert np.mean([error(seed) for seed in range(20)]) > 2 * np.mean(errors)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 5.0])
@pytest.mark.parametrize("changes", [(1.0, 1.0, 1.0), (0.7, 1.5, 1.6), (1.2, 1.2, 9.0)])
def test_a_factor_is_the_exponential_of_its_logarithms_mean_given_all_sums(
    changes, epsilon
):
    plan, everyone = planned(Means(), epsilon=epsilon), LAST["income"].to_numpy()
    records = (40, 300, 2000)
    groups = [
        means._Group(np.sort(everyone[place::3]), size, plan, Means(), everyone)
        for place, size in enumerate(records)
    ]
    # of these a part has one of two special values, and is in no sum
    shares = np.array([[0.1, 0.2], [0.0, 0.25], [0.55, 0.05]])
    sizes = records * (1 - shares.sum(axis=1))
    sums = np.array(
        [
            size * np.interp(np.log(change), means._LOGS, group.added)
            for size, change, group in zip(sizes, changes, groups, strict=True)
        ]
    )
    # by the definition, in logarithms, one common factor and one spread after the other
    logs, log_weights, centers = means._LOGS, [], []
    for own in means._OWN:
        for common in means._COMMON_LOGS:
            log_weight, center = -((common / means._COMMON) ** 2) / 2, []
            for size, total, group in zip(sizes, sums, groups, strict=True):
                scale = 0.5 / epsilon + 0.5 * size * np.gradient(group.added)
                seen = -np.abs(size * group.added - total) / scale - np.log(scale)
                around = -((logs - common) ** 2) / 2 / (own**2 + group.sampled)
                joint = seen + around - logsumexp(around)
                log_weight += logsumexp(joint)
                center.append(softmax(joint) @ logs)
            log_weights.append(log_weight)
            centers.append(center)
    wanted = softmax(log_weights) @ np.array(centers)
    around = means._chances_around(groups)
    found = means._factors(groups, around, sums, shares, epsilon)
    np.testing.assert_allclose(np.log(found), wanted, atol=1e-9)


@pytest.mark.parametrize(("records", "epsilon"), [(90, 0.4), (700, 3.0), (700, 0.01)])
def test_what_a_group_tells_is_that_of_its_published_records(records, epsilon):
    """By the definitions, for a group that has special values and other records than published."""
    rng = np.random.default_rng(6)
    others, special = np.sort(rng.lognormal(3.0, 0.6, 240)), np.array([0.0, 500.0])
    pool = np.sort(np.r_[others, np.repeat(special, [40, 120])])
    plan = planned(Means(), epsilon=epsilon)
    group = means._Group(pool, records, plan, Means(special=special), 2.0 * pool)
    cap = np.quantile(others, max(0.95, 1 - 5 / (epsilon * records)))
    assert group.cap == pytest.approx(cap)
    capped = np.minimum(others, cap)
    relative = np.var(capped) / np.mean(capped) ** 2
    assert group.sampled == pytest.approx(relative * (1 / records + 1 / 240))
    for factor, added in zip(np.exp(means._LOGS), group.added, strict=True):
        assert added == pytest.approx(
            np.mean(np.minimum(factor * others / cap, 1)) - 0.5
        )
    # counts that nobody expected, and of each a share of its own
    counts, places = [0.3 * records, 0.1 * records], means._SHARES
    found = group.special_shares(counts, epsilon)
    for share, count, known in zip(found, counts, (0.1, 0.3), strict=True):
        spread = known * (1 - known)
        variance = spread * (1 / records + 1 / 400) + 0.01 * spread + 0.003**2
        density = np.exp(-epsilon * np.abs(count - records * places))
        density /= 1 + (places - known) ** 2 / variance
        below = np.cumsum(density) / density.sum()
        assert (
            below[places < share - 1e-9].max()
            < 0.5
            <= below[places < share + 1e-9].max()
        )


def test_a_share_of_zeros_follows_its_count():
    last = LAST.assign(income=LAST["income"].where(LAST.index % 10 > 0, 0.0))
    table = THIS.assign(income=THIS["income"].where(THIS.index % 4 > 0, 0.0))
    for epsilon, share in ((5.0, 0.25), (1e-6, 0.1)):
        found = release(Means(special=[0]), table, last, epsilon=epsilon).synthetic
        assert (found == 0).mean() == pytest.approx(share, abs=0.01)
    # and of several special values each its own
    few = table.assign(income=table["income"].where(table.index % 9 > 0, 20.0))
    noisy = release(Means(special=[20, 0]), few, epsilon=30.0).noisy["sums"]
    for value in (0, 20):
        count = (few["income"] == value).groupby(few["region"]).sum()
        assert noisy[f"records of {value}"].tolist() == count.tolist()
    # the others have the mean of the others
    found = release(Means(special=[0]), table, last, epsilon=30.0)
    assert group_means(found, table) == pytest.approx(
        table.groupby("region")["income"].mean().to_numpy(), rel=0.06
    )
    # a factor leaves the share of zeros as it was published
    blind = release(Means(), table, last, epsilon=30.0).synthetic
    assert (blind == 0).mean() == pytest.approx(0.1, abs=0.01)


def test_it_is_blind_to_shapes():
    higher = THIS.assign(income=THIS["income"] ** 1.3)
    found = release(Means(), higher, epsilon=30.0).synthetic[0]
    for group in range(3):
        own = THIS["region"] == group
        known = LAST.loc[LAST["region"] == group, "income"]
        spread = found[own].std() / found[own].mean()
        assert spread == pytest.approx(known.std() / known.mean(), rel=0.05)


def test_all_releases_are_made_of_one_set_of_noisy_sums():
    few, many = (release(Means(special=[0]), releases=m) for m in (1, 6))
    pd.testing.assert_frame_equal(few.noisy["sums"], many.noisy["sums"])
    assert few.guarantee == many.guarantee and many.guarantee.epsilon == 1.0
    assert (np.ptp(many.synthetic, axis=0) > 0).mean() > 0.9


# ---- what is refused, and what is promised -------------------------------------------------------


def test_columns_that_are_mostly_below_0_are_refused():
    for wrong in (-LAST["income"], LAST["income"] - 15, 0 * LAST["income"]):
        with pytest.raises(
            ValueError, match="mostly above 0 in each group; in '0' .* Bins"
        ):
            planned(Means(), LAST.assign(income=wrong), limits=(-1e6, 1e6))
    # a group alone is enough
    one = LAST["income"].where(LAST["region"] != 2, -5.0)
    with pytest.raises(ValueError, match="in '2' they are not"):
        planned(Means(), LAST.assign(income=one), limits=(-1e6, 1e6))
    # a few may be below, and special ones count for nothing
    few = LAST["income"].where(LAST.index % 50 > 0, -5.0)
    planned(Means(), LAST.assign(income=few), limits=(-10, 1e6))
    many = LAST["income"].where(LAST.index % 10 > 5, -5.0)
    planned(Means(special=[-5]), LAST.assign(income=many), limits=(-10, 1e6))


def test_caps_are_public_and_in_the_unit_of_the_values():
    one, other = release(Means(0.9)), release(Means(0.9), THIS.assign(income=1.0))
    assert one.public == other.public
    for group, own in LAST.groupby("region")["income"]:
        assert one.public["caps"][str(group)] == pytest.approx(own.quantile(0.9))
    # without one, it follows ε and the group
    low, high = (release(Means(), epsilon=e).public["caps"]["0"] for e in (0.01, 10.0))
    pool = LAST.loc[LAST["region"] == 0, "income"]
    assert low == pytest.approx(pool.quantile(0.95))
    assert high == pytest.approx(pool.quantile(1 - 5 / (10 * 800)))
    # nothing where noise moves the mean of a group, about 22, by a hundredth at most
    for e, whole in ((0.6, False), (2.0, True)):
        found = release(Means(), epsilon=e, limits=(0, 200)).public["caps"]["0"]
        assert (found == 200) is whole
    thousands = release(Means(0.9), THIS.assign(income=1000 * THIS["income"]),
                        LAST.assign(income=1000 * LAST["income"]))  # fmt: skip
    assert thousands.synthetic == pytest.approx(1000 * one.synthetic, rel=1e-9)


def test_the_statement_names_the_sums_and_one_epsilon():
    told = ppm.release.release_statement(release(Means(special=[0]), epsilon=0.25))
    assert told.count("ε = 0.25 for the noisy sums and any number") == 1
    assert "groups of records (3)" in told and "shapes within a group do not" in told
    assert "varies less than a sample of records would" in told


@pytest.mark.parametrize("secure", [True, False])
def test_noise_that_does_not_fit_into_whole_numbers_is_refused(secure):
    noise = {"secure": secure, "rng": np.random.default_rng(1)}
    for moved in (1, 1000, 2**19):
        # of the scale 2 to the 52nd, which OpenDP grants
        drawn = noisy_integers([0] * 50, moved, moved / 2**52, **noise)
        assert 2**50 < np.abs(drawn).mean() < 2**54
        with pytest.raises(ValueError, match="^epsilon of a sum must be") as error:
            noisy_integers([0], moved, moved / 2**54, **noise)
        assert "\n" not in str(error.value)
