"""How far a release trusts noisy numbers: as far as noise of their own law, and no other, allows."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ppm.release import Bins, Margins, Means, ReleasePlan, bins, margins, means


def lognormal(*given, **named):
    """The same values for every test, in any order of them."""
    return np.random.default_rng(1).lognormal(*given, **named)


def planned(values, mechanism, epsilon, limits=(0, 1e4), **given):
    published = pd.DataFrame({"y": values})
    given |= {} if limits is None else {"limits": limits}
    settings = {"mechanism": mechanism, "epsilon": epsilon}
    return ReleasePlan(published, confidential="y", **settings, **given)


def spy(monkeypatch, module, name):
    """What a function of a module is given, each time, and what it returns."""
    seen, plain = [], getattr(module, name)

    def watched(*given):
        seen.append((given, plain(*given)))
        return seen[-1][-1]

    monkeypatch.setattr(module, name, watched)
    return seen


@pytest.mark.parametrize("epsilon", [0.02, 0.3])
@pytest.mark.parametrize("secure", [False, True])
def test_counts_are_moved_as_noise_of_their_law_lets_them(monkeypatch, epsilon, secure):
    groups = spy(monkeypatch, bins, "_Group")
    seen = spy(monkeypatch, bins, "_moved")
    mechanism = Bins(5)
    plan = planned(lognormal(3, 0.6, 200), mechanism, epsilon)
    mechanism.release(plan.published, plan, random_seed=2, secure_noise=secure)
    (((_, noisy, variance), (moved,)),) = seen
    assert variance == pytest.approx(stats.dlaplace(epsilon).var())
    # of a count that is as likely as the noise the mean lies in between
    ((_, group),) = groups
    (noisy,) = noisy
    apart = (moved - group.expected) @ (noisy - group.expected)
    assert 0 < apart < np.sum((noisy - group.expected) ** 2)


@pytest.mark.parametrize("epsilon", [0.02, 0.3])
def test_totals_are_raked_as_noise_of_their_law_lets_them(monkeypatch, epsilon):
    # to the last digit
    monkeypatch.setattr(margins, "_NEAR", 1e-9)
    seen = spy(monkeypatch, margins, "_raked")
    mechanism = Margins(["y"], change=0.2)
    labels = np.repeat(["a", "b"], [300, 700])
    plan = planned(labels, mechanism, epsilon, limits=None)
    table = plan.published.assign(y=np.repeat(["b", "a"], 500))
    mechanism.release(table, plan, random_seed=2)
    ((_, _, (noisy,), _, donors, *_), (chances, _)) = seen[0]
    (found,), (base,) = chances, donors.base
    # of the least divergence and penalty: two factors, whose logarithms are told by the totals
    published = 1000 * base
    expected = (0.2 * published) ** 2 + (0.01 * 1000) ** 2
    trust = expected / published / stats.dlaplace(epsilon).var()
    logs = trust * (noisy.ravel() - 1000 * found)
    tilt = np.log(found / base)
    assert np.diff(tilt) == pytest.approx(np.diff(logs), rel=1e-3)
    assert abs(np.diff(tilt).item()) > 0.01


@pytest.mark.parametrize("epsilon", [0.01, 0.04])
def test_a_factor_is_as_likely_as_noise_of_its_law_makes_it(monkeypatch, epsilon):
    # of one group, whose factor is thought to be near 1
    monkeypatch.setattr(means, "_OWN", (0.3,))
    monkeypatch.setattr(means, "_COMMON", 0.2)
    seen = spy(monkeypatch, means, "_factors")
    mechanism = Means(0.9)
    plan = planned(lognormal(3, 0.6, 400), mechanism, epsilon)
    table = plan.published.assign(y=1.8 * plan.published["y"])
    mechanism.release(table, plan, random_seed=2)
    (((groups, _, sums, _, _), (factor,)),) = seen
    (group,) = groups
    # on the same grid, with a common factor and the group's own put together
    logs, spread = means._LOGS, 0.2**2 + 0.3**2 + group.sampled

    def mean(rate):
        likely = -rate * np.abs(400 * group.added - sums[0]) - logs**2 / 2 / spread
        chances = np.exp(likely - likely.max())
        return chances @ logs / chances.sum()

    # noise of scale 1 / (2 ε), in caps
    found, right = np.log(factor), mean(2 * epsilon)
    assert found == pytest.approx(right, abs=0.015)
    assert min(abs(mean(rate * epsilon) - right) for rate in (1, 4)) > 0.03


@pytest.mark.parametrize("unit", [2.0**-12, 2.0**9])
@pytest.mark.parametrize(
    "mechanism_in",
    [
        lambda unit: Bins(5, special=[0, 30 * unit], tail=2, above=4),
        lambda unit: Means(special=[0, 30 * unit]),
        lambda unit: Margins(["y"], bins=5, special=[0, 30 * unit], above=4),
    ],
    ids=["bins", "means", "margins"],
)
def test_another_unit_gives_the_same_release_in_that_unit(mechanism_in, unit):
    values = lognormal(3, 0.6, 300)
    values[::7], values[::11] = 0.0, 30.0

    def released(unit):
        mechanism = mechanism_in(unit)
        plan = planned(unit * values, mechanism, 0.7, limits=(-unit, 900 * unit))
        # some are higher than any that were published
        table = plan.published.assign(y=unit * values[::-1] ** 1.2)
        made = mechanism.release(table, plan, random_seed=2).synthetic
        return np.asarray(made["y"] if isinstance(made, dict) else made, dtype=float)

    assert released(unit) == pytest.approx(unit * released(1.0), rel=1e-9)


def test_shares_of_special_values_are_a_whole_at_most(monkeypatch):
    mechanism = Means(special=[0, 1])
    plan = planned(
        np.r_[np.arange(2.0).repeat(490), 2 + lognormal(size=20)], mechanism, 5.0
    )
    many = [700, 700]
    # noise that counts more records than there are
    monkeypatch.setattr(
        means,
        "noisy_integers",
        lambda totals, *_, **__: (
            np.array([many]) if np.ndim(totals) == 2 else np.array(totals)
        ),
    )
    found = mechanism.release(plan.published, plan, random_seed=2).synthetic
    assert [np.mean(found == value) for value in (0, 1)] == pytest.approx(
        [0.5] * 2, abs=0.01
    )


@pytest.mark.parametrize("low", [-100.0, 100.0])
def test_values_of_a_bin_that_nobody_published_are_spread_to_its_ends(low):
    mechanism = Bins(1, special=[10_000])
    published = np.full(100, 10_000.0)
    plan = planned(published, mechanism, 30.0, limits=(low, 20_000))
    table = plan.published.assign(y=np.full(100, 500.0))
    (found,) = mechanism.release(table, plan, random_seed=2).synthetic
    found = np.sort(found[(found > low) & (found < 10_000)])
    assert found.size > 90
    # in the logarithm where it lies above 0
    of = np.log if low > 0 else np.asarray
    shares = (of(found) - of(low)) / (of(10_000) - of(low))
    assert shares == pytest.approx((np.arange(found.size) + 0.5) / found.size, abs=0.03)


def test_other_values_of_a_bin_that_nobody_published_are_of_the_nearest_bin():
    mechanism = Margins(["y"], bins=4, above=3)
    values = np.linspace(1, 9, 400)
    published = pd.DataFrame({"y": values, "z": values})
    plan = ReleasePlan(
        published,
        confidential=["y", "z"],
        mechanism=mechanism,
        epsilon=30.0,
        limits={"y": (0, 1000), "z": (0, 10)},
    )
    found = mechanism.release(published.assign(y=500.0), plan, random_seed=2).synthetic
    y, z = found["y"].ravel().astype(float), found["z"].ravel().astype(float)
    assert np.mean(y > 100) > 0.9
    # the highest quarter, up to the highest published value
    assert z[y > 100].min() > 6.9 and np.ptp(z[y > 100]) > 0.5
