"""Published records raked to noisy margins: weights, noise, what a record moves, and promises."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

import ppm
from ppm.release import Margins, ReleasePlan, margins

EDGES = {
    "income": np.array([0.0, 2.0, 4.0, 5.0, 6.0, 8.0, 10.0]),
    "spending": np.array([0.0, 2.0, 3.0, 4.0, 8.0]),
}
LIMITS = {"income": (0, 10), "spending": (0, 8)}
MARGINS = ["income", ("area", "income"), ("age", "owner"), ("income", "spending")]


def simulated(records, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    area, age = rng.integers(3, size=records), rng.integers(2, size=records)
    income = np.clip(rng.normal(4.0 + area + shift * (age > 0), 1.5), 0.1, 9.9)
    spending = np.clip(0.5 * income + rng.normal(0.5, 0.7, records), 0.1, 7.9)
    owner = rng.random(records) < 0.2 + 0.06 * income
    return pd.DataFrame(
        {
            "area": np.array(["north", "south", "west"])[area],
            "age": np.array(["old", "young"])[age],
            "income": income,
            "spending": spending,
            "owner": np.where(owner, "yes", "no"),
        }
    )


PUBLISHED, TABLE = simulated(600, 1), simulated(900, 2, shift=1.0)


def planned(published=PUBLISHED, **given):
    plan = {
        "confidential": ["income", "spending", "owner"],
        "public": ["area", "age"],
        "epsilon": given.pop("epsilon", 1.0),
        "releases": given.pop("releases", 1),
    } | {name: given.pop(name) for name in ("confidential", "public") if name in given}
    limits = {
        name: ends for name, ends in LIMITS.items() if name in plan["confidential"]
    }
    mechanism = Margins(**{"margins": MARGINS, "bins": 5} | given)
    return ReleasePlan(published, limits=limits, mechanism=mechanism, **plan)


def release(table=TABLE, published=PUBLISHED, secure_noise=False, seed=3, **given):
    plan = planned(published, **given)
    table = table[[*plan.published]]
    return plan.mechanism.release(
        table, plan, random_seed=seed, secure_noise=secure_noise
    )


def spy(monkeypatch, name):
    """What a function of the module is given, and what it returns."""
    seen, plain = [], getattr(margins, name)

    def watched(*given, **named):
        seen.append((given, named, plain(*given, **named)))
        return seen[-1][-1]

    monkeypatch.setattr(margins, name, watched)
    return seen


# ---- weights -------------------------------------------------------------------------------------


def fitted(start, sums, rounds=500):
    """Iterative proportional fitting of a table to sums over some of its axes."""
    table = start.copy()
    for _ in range(rounds):
        for axes, wanted in sums:
            table *= wanted / table.sum(axis=axes, keepdims=True)
    return table


def test_without_noise_raking_is_iterative_proportional_fitting(monkeypatch):
    seen = spy(monkeypatch, "_raked")
    release(
        confidential=["owner"],
        margins=[("area", "owner"), ("age", "owner")],
        strata=["area"],
        epsilon=30.0,
    )
    (_, levels, *_, donors, own, _), _, (chances, pattern) = seen[0]
    true = pd.crosstab([TABLE["area"], TABLE["age"]], TABLE["owner"])
    true = true.to_numpy().reshape(3, 2, 2)
    start = true.sum(axis=2, keepdims=True) * donors.base[:, None, :]
    sums = [(axis, true.sum(axis=axis, keepdims=True)) for axis in (1, 0, 2)]
    wanted = fitted(start, sums)
    wanted /= wanted.sum(axis=2, keepdims=True)
    assert np.abs(chances[pattern] - wanted[levels[:, 0], levels[:, 1]]).max() < 2e-3
    # published chances are others, and so are those of one margin alone
    assert np.abs(donors.base[own] - chances[pattern]).max() > 0.02
    one = fitted(start, sums[::2])
    one /= one.sum(axis=2, keepdims=True)
    assert np.abs(one - wanted).max() > 0.02


def test_at_a_large_epsilon_the_totals_of_a_release_are_those_of_the_table():
    found = release(epsilon=30.0, releases=20)
    drawn, edges = found.synthetic, found.public["edges"]["income"]
    bins = np.histogram(TABLE["income"], edges)[0]
    counts = np.histogram(drawn["income"], edges)[0] / 20
    assert np.abs(counts - bins).max() < 5
    for age in ("old", "young"):
        rows = (TABLE["age"] == age).to_numpy()
        owners = (drawn["owner"][:, rows] == "yes").sum() / 20
        assert owners == pytest.approx((TABLE["owner"][rows] == "yes").sum(), abs=5)


@pytest.mark.parametrize("epsilon", [0.2, 3.0])
def test_factors_have_the_least_divergence_and_penalty(monkeypatch, epsilon):
    """The minimum over chances themselves, in plain arithmetic, for one row of each pattern."""
    seen = spy(monkeypatch, "_raked")
    found = release(
        confidential=["owner"],
        margins=["owner", ("age", "owner")],
        strata=["age"],
        epsilon=epsilon,
        change=0.2,
    )
    *_, donors, own, _ = seen[0][0]
    chances, pattern = seen[0][-1]
    rows = np.bincount(own)
    rate = epsilon / 2
    noise = 2 * np.exp(-rate) / (1 - np.exp(-rate)) ** 2
    noisy = [found.noisy[name]["total"].to_numpy() for name in ("owner", "age × owner")]
    noisy = [noisy[0], *noisy[1].reshape(2, 2)]

    def totals(p):
        return np.sum([n * one for n, one in zip(rows, p, strict=True)], axis=0), *[
            n * one for n, one in zip(rows, p, strict=True)
        ]

    levels, published = (rows.sum(), *rows), totals(donors.base)

    def objective(logits):
        p = np.exp(logits.reshape(2, 2))
        p /= p.sum(axis=1, keepdims=True)
        value = np.sum(rows[:, None] * p * np.log(p / donors.base))
        for raked, aim, before, size in zip(
            totals(p), noisy, published, levels, strict=True
        ):
            expected = (0.2 * before) ** 2 + (0.01 * size) ** 2
            value += np.sum((raked - aim) ** 2 * expected / (2 * noise * before))
        return value

    plain = optimize.minimize(objective, np.log(donors.base).ravel(), tol=1e-12).x
    plain = np.exp(plain.reshape(2, 2))
    plain /= plain.sum(axis=1, keepdims=True)
    assert np.abs(chances[pattern] - plain[own]).max() < 1e-3
    assert np.abs(plain - donors.base).max() > 5e-3


def test_the_penalty_of_every_kind_of_margin_has_the_variance_of_its_noise(monkeypatch):
    """At the minimum a total's factor is what it lacks over its penalty, which has that variance."""
    seen, drawn = (spy(monkeypatch, name) for name in ("_raked", "noisy_integers"))
    # counts, sums of scores and of their products, by public levels and by classes
    kinds = ["income", "owner", ("age", "income"), ("income", "spending")]
    kinds += [("income", "owner"), ("area", "owner")]
    shares = [0.1, 0.15, 0.3, 0.2, 0.15, 0.1]
    release(margins=kinds, shares=shares, strata=1, change=0.2, epsilon=2.0)
    (views, levels, noisy, _, donors, *_), _, (chances, pattern) = seen[0]
    assert {view.moved for view in views} == {1, 1000}
    (base,), own = donors.base, np.bincount(pattern)
    tilt = np.zeros_like(chances)
    rows = [levels[pattern == one][0] for one in range(len(chances))]
    for view, at, found, (given, *_) in zip(
        views, np.transpose(rows), noisy, drawn, strict=True
    ):
        _, moved, epsilon = given
        noise = stats.dlaplace(epsilon / moved).var() / moved**2
        kind, score = view.of_codes(donors.cells, 0)
        seen_by = np.zeros((base.size, found.shape[1]))
        seen_by[np.arange(base.size), kind] = score / moved
        records = np.bincount(at, own)[:, None]
        totals = np.zeros_like(found, dtype=float)
        np.add.at(totals, at, own[:, None] * (chances @ seen_by))
        before = np.maximum(records * (base @ seen_by**2), 0.5)
        expected = (0.2 * before) ** 2 + (0.01 * records) ** 2
        factors = (found - totals) * expected / (before * noise)
        tilt += factors[at] @ seen_by.T
    wanted = base * np.exp(tilt - tilt.max(axis=1, keepdims=True))
    wanted /= wanted.sum(axis=1, keepdims=True)
    off = np.abs(chances - wanted).sum(axis=1).max()
    assert off < 0.1 * np.abs(wanted - base).sum(axis=1).max(), off


def test_large_tables_are_raked_alike(monkeypatch):
    seen = spy(monkeypatch, "_raked")
    release(epsilon=3.0)
    monkeypatch.setattr(margins, "_FULL", 0)
    release(epsilon=3.0)
    (chances, pattern), (others, same) = (raked for *_, raked in seen)
    assert np.abs(chances - others).max() < 1e-4 and np.array_equal(pattern, same)


# ---- noise and what a record moves ---------------------------------------------------------------


def fits(noise, rate):
    """P-value of the noise under discrete Laplace with this rate."""
    ends = np.ceil(np.arange(-6, 8) / rate)
    below = stats.dlaplace(rate).cdf(ends - 1)
    seen = np.bincount(np.searchsorted(ends, noise, side="right"), minlength=15)
    return stats.chisquare(seen, np.diff(np.r_[0.0, below, 1.0]) * noise.size).pvalue


def test_each_margin_has_the_noise_of_its_share(monkeypatch):
    """100,000 draws of each: of sums of scores, by one column and by another."""
    rows = 100_000
    table = pd.DataFrame({"id": np.arange(rows), "y": 0.0, "z": 1.0})
    monkeypatch.setattr(
        margins,
        "_raked",
        lambda views, levels, noisy, rates, donors, own, change: (
            donors.base[:1],
            np.zeros(own.size, dtype=int),
        ),
    )
    shares = [0.2, 0.8]
    mechanism = Margins([("id", "y"), ("id", "z")], bins=1, strata=1, shares=shares)
    plan = ReleasePlan(
        table[:3],
        confidential=["y", "z"],
        limits={"y": (-1, 2), "z": (0, 3)},
        public="id",
        mechanism=mechanism,
        epsilon=0.5,
    )
    found = mechanism.release(table, plan, random_seed=1)
    for (name, sums), share in zip(found.noisy.items(), shares, strict=True):
        assert sums["id"].tolist() == [*range(rows)]
        noise = np.rint(1000 * (sums["total"] - np.median(sums["total"])))
        assert fits(noise, share * 0.5 / 1000) > 1e-9, name
        # of all ε, or of another margin's share
        for wrong in (0.5, (1 - share) * 0.5):
            assert fits(noise, wrong / 1000) < 1e-9


def losses(
    monkeypatch, spent=None, own_edges=None, table=TABLE, rows=range(60), **given
):
    """Largest log ratio of all noisy totals, for each record that is not used.

    The record's row stays, for its columns that are not confidential are public.
    """
    plain, edges_of = margins._View.totals, margins.edges_of

    def asked(unused=()):
        def totals(view, *columns):
            return plain(view, *[np.delete(each, unused, axis=0) for each in columns])

        def edges(values, ends, settings):
            if own_edges is None:
                return edges_of(values, ends, settings)
            return own_edges(table.drop(index=[*unused])[values.name])

        with monkeypatch.context() as patch:
            patch.setattr(margins._View, "totals", totals)
            patch.setattr(margins, "edges_of", edges)
            # raking itself has nothing to do with it
            patch.setattr(margins, "_raked", raked_nothing)
            seen = spy(patch, "noisy_integers")
            release(table, **{"shares": [0.4, 0.3, 0.2, 0.1]} | given)
        return [(totals, *rest) for (totals, *rest), *_ in seen]

    whole = asked()
    for row in rows:
        pairs = zip(whole, asked([row]), spent or [None] * 4, strict=True)
        yield sum(
            (rate or own) * np.abs(all_ - others[0]).sum() / moved
            for (all_, moved, own), others, rate in pairs
        )


def raked_nothing(views, levels, noisy, rates, donors, own, change):
    return donors.base[:1], np.zeros(own.size, dtype=int)


EXTREME = TABLE[:60].copy().reset_index(drop=True)
EXTREME.loc[:5, ["income", "spending"]] = [
    [0, 0],
    [10, 8],
    [0, 8],
    [10, 0],
    [2, 2],
    [5, 8],
]


@pytest.mark.parametrize("table", [TABLE[:90], EXTREME])
@pytest.mark.parametrize("special", [(), [0, 10]])
def test_a_record_that_is_not_used_loses_epsilon_over_all_margins_and_no_more(
    monkeypatch, table, special
):
    exact = [*losses(monkeypatch, table=table, special=special, rows=range(30))]
    assert 0.9 < max(exact) <= 1.0 + 1e-9


def test_broken_accounts_and_edges_lose_more(monkeypatch):
    # every margin with all of ε; and the last one without an account
    few = {"rows": range(20)}
    assert max(losses(monkeypatch, [1.0] * 4, **few)) > 2.5
    assert max(losses(monkeypatch, [0.5, 0.3, 0.2, 0.4], **few)) > 1.0

    def of_the_confidential(values):
        return np.unique(np.quantile(values, np.linspace(0, 1, 9)))

    assert max(losses(monkeypatch, own_edges=of_the_confidential, **few)) > 1.0


def test_what_follows_the_noise_looks_at_no_confidential_value(monkeypatch):
    first = release(releases=3)
    seen = iter([one["total"].to_numpy() for one in first.noisy.values()])

    def same(totals, moved, epsilon, **named):
        return np.rint(next(seen).reshape(totals.shape) * moved)

    monkeypatch.setattr(margins, "noisy_integers", same)
    others = TABLE.assign(income=1.0, spending=7.0, owner="no")
    again = release(others, releases=3)
    for name, values in first.synthetic.items():
        assert np.array_equal(again.synthetic[name], values), name


def test_all_releases_are_made_of_one_set_of_noisy_margins():
    few, many = (release(releases=m) for m in (1, 6))
    for name, noisy in few.noisy.items():
        pd.testing.assert_frame_equal(noisy, many.noisy[name])
    assert few.guarantee == many.guarantee and many.guarantee.epsilon == 1.0
    drawn = many.synthetic["income"]
    assert drawn.shape == (6, 900) and (np.ptp(drawn, axis=0) > 0).mean() > 0.9


def test_draws_of_a_pattern_are_systematic():
    """Of equal public values, shares of a category are those of the chances but for a record."""
    found = release(releases=40, epsilon=3.0, strata=["area", "age"])
    owners = pd.DataFrame((found.synthetic["owner"] == "yes").T)
    by = [TABLE["area"].to_numpy(), TABLE["age"].to_numpy()]
    counts = owners.groupby(by).sum()
    size = owners.groupby(by).size()
    # independent draws have a standard deviation of half the root of the number
    assert (counts.std(axis=1) < 0.5 * 0.5 * size**0.5).all()


def test_opendp_draws_the_noise_of_an_actual_release():
    first, again = (release(secure_noise=True) for _ in range(2))
    assert not first.noisy["income"].equals(again.noisy["income"])
    assert "package" in first.guarantee.reasons


# ---- strata --------------------------------------------------------------------------------------


def strata(table, published, confidential, number=8):
    """Stratum of each row of both tables, by predictions of the confidential columns."""
    edges = {name: EDGES[name] for name in confidential if name in EDGES}
    limits = {name: LIMITS[name] for name in edges}
    plan = ReleasePlan(
        published,
        confidential=confidential,
        limits=limits,
        mechanism=Margins(confidential),
        epsilon=1,
    )
    kinds = {name: margins._kind(name, plan, edges) for name in confidential}
    public = table.drop(columns=confidential)
    return np.concatenate(margins._strata(number, public, published, kinds))


def balanced(shift):
    """A table in which two patterns of public values have one prediction."""
    first, second = np.indices((2, 2)).reshape(2, 4, 1)
    income = first + second + np.linspace(3.0, 4.0, 30) + shift
    first, second = (np.repeat(each, 30) for each in (first, second))
    return pd.DataFrame({"a": first, "b": second, "income": income.ravel()})


@pytest.mark.parametrize("confidential", [["income"], ["owner"], ["income", "owner"]])
def test_equal_public_values_are_in_one_stratum_whichever_rows_are_there(confidential):
    """Enough rows for kernels that multiply the last ones otherwise than the first."""
    table = TABLE.drop(columns={"income", "spending", "owner"} - {*confidential})
    published = PUBLISHED[[*table]]
    whole = strata(table, published, confidential)
    both = pd.concat([table, published])
    assert both.assign(of=whole).groupby(["area", "age"])["of"].nunique().eq(1).all()
    for dropped in range(1, 20):
        fewer = strata(table[dropped:], published, confidential)
        assert np.array_equal(fewer, whole[dropped:])


def test_strata_are_cut_by_the_leading_prediction_of_all_columns():
    """By the definition, of columns of unlike scales and a table unlike the published one."""
    tables = []
    for of_all, seed in ((PUBLISHED, 4), (TABLE[:500], 5)):
        rng, area = np.random.default_rng(seed), of_all["area"] == "west"
        hours = 40.0 * seed + 300.0 * of_all["spending"] * rng.uniform(
            0.2, 1.8, area.size
        )
        tables.append(of_all.assign(hours=hours, size=rng.normal(area, 0.1)))
    published, table = tables
    public, found = ["area", "age", "hours", "size"], ["income", "spending", "owner"]
    X = pd.get_dummies(pd.concat([table, published])[public], dtype=float).to_numpy()
    known = X[500:]
    X = (X - known.mean(axis=0)) / known.std(axis=0)
    known, responses = X[500:], []
    for name in found:
        column = published[name]
        one = pd.get_dummies(column) if name == "owner" else column.rank().to_frame()
        one = one.to_numpy(float) - one.to_numpy(float).mean(axis=0)
        responses.append(one / np.linalg.norm(one))
    responses = np.hstack(responses)
    fitted = np.linalg.solve(known.T @ known + np.eye(X.shape[1]), known.T @ responses)
    leading = np.linalg.svd(known @ fitted)[2][0]
    # of both signs the one that is nearer to a fixed direction
    prediction = X @ fitted @ leading * np.sign(leading @ np.sin([1, 2, 3, 4]))
    upto = np.searchsorted(np.sort(prediction[500:]), prediction + 1e-12)
    wanted = np.clip(8 * (upto - 1) // (len(published) - 1), 0, 7)
    assert np.array_equal(
        strata(table[public + found], published[public + found], found), wanted
    )


def test_rounding_decides_no_stratum(monkeypatch):
    """Another processor's last digits, and its sign of a direction."""
    tables = balanced(0.5), balanced(0.0)
    whole = strata(*tables, ["income"], 4), strata(TABLE, PUBLISHED, ["owner"])
    of = pd.DataFrame(tables[0]).assign(of=whole[0][:120]).groupby(["a", "b"])["of"]
    low, one, other, high = of.unique().explode()
    assert low < one == other < high
    # about equally many published records in each
    assert np.ptp(np.unique(whole[0][120:], return_counts=True)[1]) <= 30
    rng, solve, svd = np.random.default_rng(1), np.linalg.solve, np.linalg.svd

    def other_digits(*given):
        found = solve(*given)
        return found * (1 + 1e-15 * rng.standard_normal(found.shape))

    def other_sign(*given, **named):
        first, sizes, last = svd(*given, **named)
        return -first, sizes, -last

    monkeypatch.setattr(np.linalg, "solve", other_digits)
    for _ in range(20):
        assert np.array_equal(strata(*tables, ["income"], 4), whole[0])
    monkeypatch.setattr(np.linalg, "svd", other_sign)
    assert np.array_equal(strata(*tables, ["income"], 4), whole[0])
    assert np.array_equal(strata(TABLE, PUBLISHED, ["owner"]), whole[1])


# ---- donors --------------------------------------------------------------------------------------


def test_chances_and_scores_of_donors_follow_their_definitions():
    """With a bin and a category that nobody published, and strata of unlike sizes, one empty."""
    kinds = {
        "income": margins._Kind("income", True, EDGES["income"]),
        "owner": margins._Kind("owner", False, np.array(["no", "shared", "yes"])),
    }
    some = ~PUBLISHED["income"].between(5, 6)
    published = PUBLISHED.loc[some, ["income", "owner"]].reset_index(drop=True)
    own = np.arange(len(published)) % 7 // 5
    donors = margins._donors(published, own, 3, kinds)
    income = np.digitize(published["income"], EDGES["income"][1:-1])
    owner = published["owner"].map({"no": 0, "yes": 2}).to_numpy()
    # half a record in all for the bin from 5 to 6, like those of both neighbours, and for "shared"
    shared, near = np.zeros((6, 3)), np.isin(income, [2, 4])
    np.add.at(shared, (income, owner), 1.0)
    np.add.at(shared[3], owner[near], 0.5 / near.sum())
    np.add.at(shared[:, 1], income, 0.5 / income.size)
    chances = np.tile(shared / shared.sum(), (3, 1, 1))
    np.add.at(chances, (own, income, owner), 1.0)
    chances /= chances.sum(axis=(1, 2), keepdims=True)
    found = np.zeros_like(chances)
    found[:, *donors.cells.T] = donors.base
    np.testing.assert_allclose(found, chances, atol=1e-12)
    of_bins = chances.sum(axis=2)
    middles = np.cumsum(of_bins, axis=1) - of_bins / 2
    scores = np.clip(stats.norm.ppf(middles) / 0.7, -1, 1)
    np.testing.assert_allclose(donors.scores(0, 6, 0.7), scores, atol=1e-9)
    assert (np.abs(scores) < 1).any(axis=1).all()
    made = donors.values[len(published) :]
    assert (made["income"] == 5.5).sum() == near.sum()
    # of no stratum, so that a published one is taken where there is one
    assert donors.stratum.tolist() == [*own, *[3] * len(made)]


def test_all_values_of_a_row_come_from_one_published_record():
    found = release(releases=4).synthetic
    found = pd.DataFrame({name: values.ravel() for name, values in found.items()})
    own = set(PUBLISHED[["income", "spending", "owner"]].itertuples(index=False))
    drawn = set(
        found[["income", "spending", "owner"]].itertuples(index=False, name=None)
    )
    assert drawn <= {tuple(one) for one in own} and len(drawn) > 100
    # whole relations, which no margin asked for
    yes = found.query("owner == 'yes'")["spending"].mean()
    no = found.query("owner == 'no'")["spending"].mean()
    known = PUBLISHED.groupby("owner")["spending"].mean()
    assert yes - no == pytest.approx(known["yes"] - known["no"], abs=0.3)


def test_donors_are_of_the_own_stratum_where_it_has_some():
    found = release(strata=["area"], releases=4).synthetic["spending"]
    area = PUBLISHED.set_index("spending")["area"]
    own = [np.mean(area[drawn].to_numpy() == TABLE["area"]) for drawn in found]
    assert min(own) > 0.95


def test_a_bin_or_a_category_that_nobody_published_can_be_drawn():
    kinds = pd.CategoricalDtype(["no", "yes", "shared"])
    published = PUBLISHED.astype({"owner": kinds})
    table = TABLE.astype({"owner": kinds})
    table.loc[:299, ["income", "owner"]] = 0.0, "shared"
    found = release(table, published, special=[0], epsilon=20.0).synthetic
    assert (found["income"] == 0.0).mean() == pytest.approx(1 / 3, abs=0.05)
    assert (found["owner"] == "shared").mean() == pytest.approx(1 / 3, abs=0.05)


def test_a_small_epsilon_leaves_the_published_relations():
    found = release(epsilon=0.001, margins=["income", ("area", "income")], releases=20)
    means = found.synthetic["income"].mean(axis=0)
    known = PUBLISHED.groupby("area")["income"].mean()
    for area, mean in known.items():
        assert means[TABLE["area"] == area].mean() == pytest.approx(mean, abs=0.25)


# ---- what is refused, and what is promised -------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {
                "published": PUBLISHED.assign(
                    age=PUBLISHED["age"].where(PUBLISHED.index > 9)
                )
            },
            "published has missing values in 'age'",
        ),
        (
            {"table": TABLE.assign(age=TABLE["age"].where(TABLE.index > 9))},
            "table has missing values in 'age'",
        ),
        ({"margins": []}, "margins must be"),
        ({"margins": [("area", "age")]}, "margins must be .*'area', 'age'"),
        ({"margins": ["income", ("income",)]}, "margins must be different"),
        ({"margins": ["wealth"]}, "margins: there must be a column 'wealth'"),
        ({"shares": [0.5, 0.5]}, "shares must be 4 numbers"),
        ({"shares": [0.5, 0.5, 0.5, 0.5]}, "shares must be .* add up to 1"),
        ({"shares": [0.6, 0.5, -0.2, 0.1]}, "shares must be 4 numbers above 0"),
        ({"strata": ["income"]}, "strata must be public columns; got 'income'"),
        ({"strata": 0}, "strata must be a whole number"),
        ({"reach": 0}, "reach must be"),
        ({"change": -1}, "change must be"),
        (
            {
                "table": TABLE.assign(
                    owner=TABLE["owner"].where(TABLE.index != 9, "hidden")
                )
            },
            "table must have the published cat",
        ),
    ],
)
def test_what_is_wrong_is_named(settings, told):
    with pytest.raises(ValueError, match=f"^{told}") as refused:
        release(**settings)
    assert "\n" not in str(refused.value) and "hidden" not in str(refused.value)


def test_the_statement_names_the_margins_and_one_epsilon():
    found = release(epsilon=0.25, releases=2)
    told = ppm.release.release_statement(found)
    assert "2 × 900 synthetic records" in told
    assert "income; area × income; age × owner; income × spending" in told
    assert told.count("ε = 0.25 for the noisy margins and any number") == 1
    assert found.guarantee.kind == "strict" and found.guarantee.covers == "margins"
    shares = found.public["shares"]
    assert [*itertools.chain(shares.values())] == [0.25] * 4
