"""A rehearsal: between both ends, with drift, at this year's sizes, and as the comparison itself."""

import dataclasses
import functools
import warnings

import incomes
import numpy as np
import pandas as pd
import pytest

import ppm
from ppm.release import (
    Bins,
    Guarantee,
    Margins,
    Means,
    Mechanism,
    Posterior,
    Published,
    ReleasePlan,
)
from ppm.release import posterior as posteriors
from ppm.release import rehearsal as room
from ppm.release.measure import top_tenth
from ppm.release.mechanisms import Records
from ppm.release.rehearsal import GOALS, PUBLISHED, RECORDS, default_changes

# so that N is the largest region
year = functools.partial(incomes.year, regions=[0.5, 0.3, 0.2])

LAST, THIS = year(1), year(2, 36_000.0)
planned = incomes.planned_of(LAST)
DRIFTS = ["all × 0.7", "all × 1.4"]
SHAPES = ["a tenth becomes 0", "top tenth × 1.3", "spread × 1.25"]


@dataclasses.dataclass(frozen=True)
class Times(Mechanism):
    """The table itself, times a factor."""

    factor: float

    def release(self, table, plan, **_):
        found = Records().release(table, plan, random_seed=1)
        values = table["income"].to_numpy()[None] * self.factor
        return dataclasses.replace(found, synthetic=values)


# ---- errors and changes --------------------------------------------------------------------------


def test_errors_and_shares_are_those_of_a_known_mechanism():
    plan = planned(mechanism=Times(1.1), limits=(0, 1e9))
    table = plan.rehearse(repeats=4, random_seed=1).table
    row = table.loc[("Times(factor=1.1)", 0.5)]
    for name in ("levels", "tail", *(f"{one}, unchanged" for one in (
        "levels", "worst level", "tail", "mean", "median"))):  # fmt: skip
        assert row[name] == pytest.approx(10.0)
    # a tenth more of each change is shown, but of a number of records, which no factor changes
    for name in (*DRIFTS, "N × 0.8", "top tenth × 1.3", "spread × 1.25"):
        assert row[name] == pytest.approx(10.0, abs=0.1), name
    assert row["a tenth becomes 0"] == pytest.approx(0.0, abs=1e-9)
    assert row["change"] == pytest.approx(10.0, abs=0.1)
    assert row["shapes"] == pytest.approx((2 / 3 * 100) ** 0.5, abs=0.1)


def test_published_records_show_nothing_of_a_change_and_the_records_all_of_it():
    # a large table: samples of it hardly differ
    last = year(5, records=6_000)
    plan = planned(last)
    table = plan.rehearse(repeats=4, random_seed=3).table
    changes = [*DRIFTS, "N × 0.8", *SHAPES]
    lowest, highest = table.loc[PUBLISHED, changes], table.loc[RECORDS, changes]
    assert lowest.to_numpy() == pytest.approx(np.full(6, 100.0), abs=20)
    # its draws are systematic: there is hardly an error
    assert highest[["all × 0.7", "all × 1.4", "N × 0.8"]].max() < 3
    assert table.loc[RECORDS, "levels"] < 0.2 < 5 < table.loc[PUBLISHED, "levels"]
    # a drift is among the levels: off by 3 in 7 and by 4 in 14, and by little without it
    drift = 100 * (3 / 7 + 4 / 14) / 3
    assert table.loc[PUBLISHED, "levels"] == pytest.approx(drift, rel=0.1)
    # the tail is of all changes
    tails = [0.0]
    for change in default_changes(plan).values():
        changed = change[0](last) if isinstance(change, tuple) else change(last)
        tails.append(100 * abs(top_tenth(last["income"]) / top_tenth(changed) - 1))
    assert table.loc[PUBLISHED, "tail"] == pytest.approx(np.mean(tails), rel=0.15)
    assert table.loc[PUBLISHED, "levels, unchanged"] < 3


@pytest.mark.parametrize("column", ["children", "income"])
def test_changes_are_those_that_their_names_say(column):
    plan = planned(confidential=column, limits=(0, 1e6), mechanism=Means())
    table = LAST.sample(frac=1, random_state=1, ignore_index=True)
    table[column] = table[column].astype(float)
    changes = default_changes(plan)
    assert [*changes] == [*DRIFTS, "N × 0.8", *SHAPES]
    found = {
        name: change[0](table) if isinstance(change, tuple) else change(table)
        for name, change in changes.items()
    }
    for name, changed in found.items():
        assert (changed != table[column]).any(), name
        # whole numbers stay whole ones
        assert column == "income" or (changed % 1 == 0).all(), name
    own, old = table["region"] == "N", table[column]
    assert found["N × 0.8"][~own].equals(old[~own])
    for name, rows in (
        (DRIFTS[0], own | True),
        (DRIFTS[1], own | True),
        ("N × 0.8", own),
    ):
        factor = float(name.split()[-1])
        ratio = found[name][rows].mean() / old[rows].mean()
        assert ratio == pytest.approx(factor, abs=0.03)
    # and those that are not whole in part are not rounded
    if column == "income":
        assert found["all × 1.4"].equals(1.4 * old) and 0 < (old % 1 == 0).mean() < 1
    assert (found[SHAPES[0]] == 0).mean() >= 0.1
    low = old <= old.quantile(0.9)
    assert found[SHAPES[1]][low].equals(old[low])


def test_changes_of_ones_own_and_several_columns():
    def doubled(table):
        return table["income"] * 2

    plan = planned(
        confidential=["income", "owner"],
        limits={"income": (0, 1e7)},
        mechanism=Margins(["income", "owner"]),
        groups=(),
    )
    changes = {"doubled": doubled, "its median": (doubled, np.median)}
    found = plan.rehearse(changes=changes, repeats=3, random_seed=1)
    assert found.settings["of level"] == ["doubled"]
    assert found.settings["of shape"] == ["its median"]
    ends = found.table.loc[[PUBLISHED, RECORDS], ["doubled", "its median"]].to_numpy()
    assert ends[0] == pytest.approx([100, 100], abs=20)
    assert ends[1] == pytest.approx([0, 0], abs=3)
    # without groups, levels are of all together
    assert found.table["levels"].notna().all()


# ---- the rows, and what is computed of repeats ---------------------------------------------------


def test_a_rehearsal_has_both_ends_and_is_the_same_for_the_same_seed():
    settings = {"repeats": 3, "random_seed": 3, "levels": ["region", "owner"]}
    with pytest.raises(ValueError, match="levels, of groups or public: .* 'owner'"):
        planned().rehearse(**settings)
    plan = planned(public="owner")
    first, second = (plan.rehearse(Means(), **settings) for _ in range(2))
    pd.testing.assert_frame_equal(first.table, second.table)
    assert [*first.table.index] == [
        ("published records", 0.0),
        ("Bins(bins=8)", 0.5),
        ("Means()", 0.5),
        ("the records, unprotected", np.inf),
    ]
    other = plan.rehearse(repeats=3, random_seed=4)
    assert other.table.iloc[0]["levels"] != first.table.iloc[0]["levels"]


def test_rows_are_medians_over_repeats_and_differences_are_paired():
    found = planned().rehearse(repeats=9, random_seed=1)
    losses, table, row = found.losses, found.table, ("Bins(bins=8)", 0.5)
    assert losses.index.names == ["mechanism", "ε", "repeat"]
    losses = losses.unstack("repeat")
    runs = found.runs
    own = runs[(runs["mechanism"] == row[0])]
    assert sorted(own["repeat"].unique()) == [*range(9)]
    for goal, kind in (("change", "of level"), ("shapes", "of shape")):
        squares = (own["share"] - 100) ** 2
        squares = squares[own["change"].isin(found.settings[kind])]
        by_hand = squares.groupby(own["repeat"]).mean() ** 0.5
        assert losses[goal].loc[row].to_numpy() == pytest.approx(by_hand.to_numpy())
    for goal in ("levels", "tail"):
        rows = own["change"].isin(["", *DRIFTS]) | (goal == "tail")
        by_hand = own[goal][rows].groupby(own["repeat"]).mean()
        assert losses[goal].loc[row].to_numpy() == pytest.approx(by_hand.to_numpy())
        assert table.loc[row, goal] == pytest.approx(by_hand.median())
        # a median's standard error: half of what lies between ranks 1/2 ± 1/(2 √n)
        low, high = np.quantile(by_hand, [0.5 - 0.5 / 3, 0.5 + 0.5 / 3])
        assert table.loc[row, f"{goal} ±"] == pytest.approx((high - low) / 2)
        apart = (
            losses[goal].loc[row].to_numpy() - losses[goal].loc[PUBLISHED].to_numpy()
        )
        mean, error = found.difference(row, PUBLISHED, goal)
        assert mean == pytest.approx(apart.mean())
        assert error == pytest.approx(apart.std(ddof=1) / 3)


def test_standard_errors_of_medians_are_those_of_repeated_rehearsals():
    """Of made-up losses of a normal law, whose median's standard error is known."""
    found = planned().rehearse(repeats=2, random_seed=1)
    rng, sizes = np.random.default_rng(1), []
    for _ in range(50):
        runs = pd.DataFrame(
            {"mechanism": "a", "ε": 1.0, "repeat": np.arange(64), "change": ""}
        )
        for name in ("levels", "worst level", "tail", "mean", "median", "share"):
            runs[name] = rng.normal(10.0, 1.0, 64)
        one = dataclasses.replace(
            found, runs=runs, settings=found.settings | {"repeats": 64}
        )
        sizes.append(one.table["levels ±"].iloc[0])
    assert np.mean(sizes) == pytest.approx((np.pi / 2 / 64) ** 0.5, rel=0.1)


# ---- what is public about this year --------------------------------------------------------------


def test_groups_have_this_years_sizes():
    # N has 300 records, this year 60, and W has 600 in place of 120
    now = pd.DataFrame({"region": np.repeat(["N", "S", "W"], [60, 100, 600])})
    seen = []

    @dataclasses.dataclass(frozen=True)
    class Sizes(Mechanism):
        def release(self, table, plan, **noise):
            seen.append((table["region"].value_counts(), len(plan.published)))
            return Means().release(table, plan, **noise)

    found = planned(mechanism=Sizes()).rehearse(public=now, repeats=2, random_seed=1)
    for sizes, published in seen:
        assert sizes.to_dict() == {"N": 60, "S": 100, "W": 600} and published == 600
    assert found.settings["records"] == 760
    # a small group has the larger error
    few = planned().rehearse(
        public=now[:160], repeats=6, random_seed=1, levels="region"
    )
    assert few.settings["left out"] == []
    own = planned().rehearse(repeats=6, random_seed=1)
    assert own.settings["records"] == 600
    row = ("Bins(bins=8)", 0.5)
    assert few.table.loc[row, "levels"] > own.table.loc[row, "levels"]
    with pytest.raises(ValueError, match="public must be left out with confidential"):
        planned().rehearse(public=now, confidential=THIS)


def test_a_group_that_nobody_published_is_refused_before_it_is_rehearsed():
    now = pd.DataFrame({"region": ["N", "S", "E"] * 100})
    with pytest.raises(
        ValueError, match="public must have no group without .* got 'E'"
    ):
        planned().rehearse(public=now, repeats=2)
    with pytest.raises(ValueError, match="public: there must be a column 'region'"):
        planned().rehearse(public=now.rename(columns={"region": "area"}), repeats=2)


def test_what_a_rehearsal_cannot_know_of_the_tail_is_told():
    rehearsal = planned(mechanism=Times(1.0)).rehearse(repeats=3, random_seed=1)
    with pytest.warns(UserWarning, match="knows last year's highest values alone"):
        rehearsal.best("tail")


def test_a_group_that_is_not_there_this_year_is_left_out_of_nothing():
    now = pd.DataFrame({"region": np.repeat(["N", "S"], [300, 200])})
    found = planned().rehearse(public=now, repeats=2, random_seed=1)
    assert found.settings["records"] == 500 and found.table["levels"].notna().all()


def test_a_pair_of_samples_differs_as_two_years_do():
    plan = planned(groups=())
    pairs = [room._pair(plan, None, np.random.default_rng(s)) for s in range(300)]
    differences = [b["income"].mean() - a["income"].mean() for a, b in pairs]
    both = LAST["income"].std(ddof=0) * (2 / 600) ** 0.5
    assert np.std(differences) == pytest.approx(both, rel=0.15)
    assert {len(one) for pair in pairs for one in pair} == {600}


def test_small_groups_and_tiny_means_are_told_and_not_averaged():
    last = pd.concat([year(1), year(3, records=30).assign(region="few")])
    last = pd.concat([last, year(4, 1.0, 90).assign(region="tiny")], ignore_index=True)
    last.loc[last["region"] == "tiny", "income"] += 0.001
    plan = planned(last, mechanism=Times(1.1))
    found = plan.rehearse(repeats=2, random_seed=1)
    assert found.settings["left out"] == ["few", "tiny"]
    # in them all is wrong, and it does not show
    wrong = planned(last, mechanism=WrongInFew())
    told = wrong.rehearse(repeats=2, random_seed=1)
    assert told.table.loc["WrongInFew()", "levels"].item() < 1
    with pytest.warns(UserWarning, match="means of 'few', 'tiny' are left out"):
        told.best("levels")
    with_few = wrong.rehearse(repeats=2, random_seed=1, smallest=20)
    assert with_few.settings["left out"] == ["tiny"]
    assert with_few.table.loc["WrongInFew()", "levels"].item() > 20
    # one column of several is enough
    last["children"] += 1
    limits = {"children": (0, 99), "income": (0, 1e6)}
    counted = room._groups(planned(last, confidential=[*limits], limits=limits,
                                   mechanism=Margins([*limits])), last, ["region"], 50)  # fmt: skip
    assert counted[1] == ["few", "tiny"]
    with pytest.raises(ValueError, match="smallest must be"):
        plan.rehearse(smallest=0)


@dataclasses.dataclass(frozen=True, repr=False)
class WrongInFew(Mechanism):
    """The table, but twice its values in two groups."""

    def release(self, table, plan, **_):
        found = Records().release(table, plan, random_seed=1)
        factors = np.where(table["region"].isin(["few", "tiny"]), 2.0, 1.0)
        return dataclasses.replace(
            found, synthetic=(table["income"] * factors).to_numpy()[None]
        )


# ---- the choice ----------------------------------------------------------------------------------


def test_the_best_of_a_rehearsal_is_noted_in_the_plan():
    rehearsal = planned().rehearse(
        [Bins(2), Bins(4), Bins(16)], repeats=6, epsilons=[0.5, 2.0], random_seed=1
    )
    table = rehearsal.table
    rows = [row for row in table.index if row[1] == 2.0]
    nearest = min(rows, key=table["shapes"].get)
    with pytest.warns(UserWarning):
        plan = rehearsal.best("shapes", epsilon=2.0)
    assert (str(plan.mechanism), plan.epsilon) == nearest
    assert nearest[0] != "Bins(bins=2)"
    # no sample of a repeat stays in it
    assert plan.published.equals(rehearsal.plan.published)
    noted = plan.rehearsed
    assert noted["goal"] == "shapes" and noted["repeats"] == 6
    assert noted["errors"].keys() == {
        PUBLISHED[0],
        RECORDS[0],
        *(name for name, _ in rows),
    }
    assert noted["errors"][nearest[0]] == pytest.approx(
        table["shapes"][nearest], abs=1e-4
    )
    assert plan.digest != dataclasses.replace(plan, rehearsed=None).digest
    with pytest.raises(
        ValueError, match="goal must be one of levels, change, shapes, ta"
    ):
        rehearsal.best("median")
    with pytest.raises(ValueError, match="epsilon must be one that was rehearsed"):
        rehearsal.best("levels", epsilon=3.0)


@dataclasses.dataclass(frozen=True, repr=False)
class Worse(Mechanism):
    """Published records, twice their values."""

    def release(self, table, plan, **noise):
        found = Published().release(table, plan, **noise)
        return dataclasses.replace(found, synthetic=found.synthetic["income"] * 9)


@pytest.mark.parametrize("goal", ["levels", "tail"])
def test_the_best_may_be_published_records(tmp_path, goal):
    rehearsal = planned(mechanism=Worse(), epsilon=1e-6).rehearse(
        repeats=3, random_seed=1
    )
    with pytest.warns(
        UserWarning, match=r"^published records: nothing .* at ε = 1e-06"
    ):
        plan = rehearsal.best(goal)
    assert plan.mechanism == Published() and plan.epsilon == 0
    assert plan.rehearsed["notes"][0].startswith("nothing that was tried at ε = 1e-06")
    plan.save(tmp_path / "plan.json")
    assert ReleasePlan.read(tmp_path / "plan.json", LAST).digest == plan.digest


def test_what_is_not_surely_nearer_than_published_records_is_told():
    rehearsal = planned(epsilon=1e-6).rehearse(repeats=5, random_seed=1)
    with pytest.warns(UserWarning) as told:
        rehearsal.best("levels")
    words = str(told[0].message)
    assert len(told) == 1
    assert (
        "nothing that was tried" in words or "not surely nearer than published" in words
    )
    # what is surely nearer at a change, and always, has no note
    exact = planned(mechanism=Times(1.0)).rehearse(repeats=4, random_seed=1)
    assert exact.best("levels").rehearsed["notes"] == []


def test_notes_are_in_the_order_in_which_they_matter():
    """Nearer where values drift, and further off where nothing changes, with an edge and a group."""
    last = pd.concat(
        [LAST, year(3, records=30).assign(region="few")], ignore_index=True
    )
    plan = planned(last, mechanism=Times(0.8), limits=(0, 1e9))
    rehearsal = plan.rehearse([Times(0.75), Times(0.7)], repeats=3, random_seed=1)
    with pytest.warns(UserWarning) as told:
        chosen = rehearsal.best("levels")
    notes = chosen.rehearsed["notes"]
    begins = [
        "if nothing changed, it is not surely",
        "means of 'few' are",
        "at the edge of what",
    ]
    where = [[note.startswith(one) for note in notes].index(True) for one in begins]
    assert where == sorted(where) and len(told) == 1
    assert str(told[0].message) == f"{chosen.mechanism}: {'; '.join(notes)}"


@pytest.mark.parametrize("goal", GOALS)
def test_a_plan_of_several_columns_is_told_which_one_was_changed(goal):
    last = LAST.assign(spending=LAST["income"] / 2)
    columns = {"confidential": ["spending", "income"], "limits": (0, 1e6)}
    plan = planned(last, mechanism=Margins(["income"]), epsilon=2.0, **columns)
    with pytest.warns(UserWarning):
        noted = plan.rehearse(repeats=2, random_seed=1).best(goal).rehearsed["notes"]
    told = any(
        "only 'spending' was changed" in note and "of 'income', and" in note
        for note in noted
    )
    assert told == (goal in ("change", "shapes"))


@pytest.mark.parametrize(("goal", "told"), [("levels", True), ("change", False)])
def test_levels_by_means_are_told_to_rest_on_last_years_shapes(goal, told):
    rehearsal = planned(mechanism=Means()).rehearse(repeats=3, random_seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = rehearsal.best(goal)
    assert plan.mechanism == Means()
    assert any("shapes change" in note for note in plan.rehearsed["notes"]) == told


@pytest.mark.parametrize(
    ("best", "edges"),
    [
        (Means(), []),
        (Means(special=[0]), []),
        (Means(cap=0.95), ["cap = 0.95"]),
        (Means(cap=0.97), []),
        (Bins(5), ["bins = 5"]),
    ],
)
def test_the_edge_of_what_was_tried_is_that_of_numbers(best, edges):
    """Some mechanisms of a kind may lack the number that others have."""
    tried = [Means(), Means(cap=0.95), Means(special=[0]), Means(cap=0.97)]
    tried += [Means(cap=0.99), Bins(5), Bins(10)]
    assert [*room._edges(best, *tried)] == edges


def test_the_picture_has_a_bar_for_each_row_and_goal():
    figure = planned().rehearse(repeats=2, random_seed=1).plot()
    assert [len(one.patches) for one in figure.axes] == [3, 3, 3, 3]
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels[1:] == ["Bins(bins=8), ε = 0.5", "published records, ε = 0"]


def test_a_mechanism_warns_once_of_its_settings():
    last = LAST.assign(income=LAST["income"].where(LAST.index % 2 > 0, 0.0))
    with pytest.warns(UserWarning, match="fewer bins") as told:
        plan = planned(last)
        plan.rehearse([Bins(12)], repeats=2, epsilons=[0.5, 1.0], random_seed=1)
    bins = [str(one.message).split(":")[0] for one in told]
    assert bins.count("Bins(bins=12)") == 1


# ---- the comparison itself -----------------------------------------------------------------------


def test_with_the_confidential_table_errors_are_those_of_that_table():
    table = THIS.assign(income=THIS["income"] * np.where(THIS["region"] == "W", 2, 1.0))
    found = planned().rehearse(confidential=table, repeats=4, random_seed=1)
    assert found.settings["records"] == 600
    # groups' means of published records are known, and a systematic draw has nearly these
    means, before = (t.groupby("region")["income"].mean() for t in (table, LAST))
    errors = (100 * (before / means - 1)).abs()
    row = found.table.loc[PUBLISHED]
    assert row["levels, unchanged"] == pytest.approx(errors.mean(), rel=0.05)
    assert row["worst level, unchanged"] == pytest.approx(errors.max(), rel=0.05)
    ends = found.table.loc[RECORDS]
    assert ends["levels, unchanged"] == pytest.approx(0, abs=1e-9)
    assert ends[["levels", "tail", "change"]].max() == pytest.approx(0, abs=1e-9)
    # repeats differ in their noise alone
    exact = planned(mechanism=Times(1.1), limits=(0, 1e9)).rehearse(
        confidential=table, repeats=3, random_seed=1
    )
    assert exact.losses.loc["Times(factor=1.1)"]["levels"].to_numpy() == pytest.approx(
        np.full(3, 10.0)
    )
    with pytest.raises(
        ValueError, match="confidential: there must be a column 'region'"
    ):
        planned().rehearse(confidential=table.drop(columns="region"))


# ---- a posterior ---------------------------------------------------------------------------------


def build(records):
    return ppm.GammaPoisson(records["children"], shape=2, rate=1)


def candidates(published):
    return {"mu": published["children"].mean() * np.linspace(0.5, 2.0, 60)}


POSTERIOR = Posterior(build, candidates)
OF_CHILDREN = {"confidential": "children", "limits": (0, 30), "mechanism": POSTERIOR}


def test_several_releases_of_one_fit_have_the_law_of_single_ones():
    plan = planned(**OF_CHILDREN, epsilon=2.0, groups=())
    table = room.clipped(plan, THIS[["children"]])
    many = POSTERIOR.released(table, plan, random_seed=1, draws=400).synthetic.values
    single = [
        POSTERIOR.release(table, plan, random_seed=seed).synthetic.values[0]
        for seed in range(150)
    ]
    means = [np.mean(one, axis=1) for one in (many, np.array(single))]
    error = np.hypot(*[np.std(one) / len(one) ** 0.5 for one in means])
    assert abs(means[0].mean() - means[1].mean()) < 4 * error
    assert means[0].std() == pytest.approx(means[1].std(), rel=0.25)
    # each has its own θ
    assert np.unique(means[0]).size > 20
    # and all of ε: a share of it would be a wider law
    share = dataclasses.replace(plan, releases=10)
    wider = POSTERIOR.released(table, share, random_seed=1, draws=400).synthetic.values
    assert np.std(np.mean(wider, axis=1)) > 1.5 * means[1].std()


def test_a_posterior_is_rehearsed_beside_the_rest():
    plan = planned(**OF_CHILDREN | {"mechanism": Bins(2)})
    found = plan.rehearse([POSTERIOR], repeats=2, random_seed=1).table
    assert found["change"].notna().all()
    of_table = plan.rehearse([POSTERIOR], confidential=THIS, repeats=3, random_seed=1)
    row = (str(POSTERIOR), 0.5)
    assert len({*of_table.losses.loc[row, "levels"]}) == 3
    assert of_table.table.loc[row, "levels, unchanged"] < 40


def test_records_with_equal_public_values_share_the_predictions_of_one_draw(
    monkeypatch,
):
    """The law of a value stays; at one θ, the mean of a pattern varies less."""

    def one_theta(published):
        return {"mu": np.array([1.5])}

    fixed = Posterior(build, one_theta)
    plan = planned(**OF_CHILDREN | {"mechanism": fixed}, epsilon=1.0)
    table = room.clipped(plan, THIS[["region", "children"]])

    def drawn():
        return fixed.released(table, plan, random_seed=1, draws=400).synthetic.values

    pooled = drawn()
    monkeypatch.setattr(posteriors, "_one_of", lambda predicted, *_: predicted[:, 0])
    alone = drawn()
    poisson = np.array(
        [np.exp(-1.5) * 1.5**k / np.prod(np.arange(1, k + 1)) for k in range(7)]
    )
    for one in (pooled, alone):
        of_first = np.bincount(one[:, 0].astype(int), minlength=7)[:7] / 400
        assert of_first == pytest.approx(poisson, abs=0.1)
        # releases are of one θ, and otherwise independent
        assert (
            np.abs(np.corrcoef(one.mean(axis=1)[1:], one.mean(axis=1)[:-1])[0, 1]) < 0.2
        )
        shares = np.bincount(one.ravel().astype(int), minlength=7)[:7] / one.size
        assert shares == pytest.approx(poisson, abs=0.005)
    own = (table["region"] == "W").to_numpy()
    spread, of_sample = (one[:, own].mean(axis=1).var() for one in (pooled, alone))
    assert of_sample == pytest.approx(1.5 / own.sum(), rel=0.25)
    # ten predictions of each record are a tenth of it, and draws from them add little
    assert spread == pytest.approx(0.1 * of_sample, rel=0.5)


def test_missing_public_values_are_values_of_their_own(monkeypatch):
    seen, one_of = [], posteriors._one_of
    monkeypatch.setattr(
        posteriors, "_one_of", lambda *given: seen.append(given[1]) or one_of(*given)
    )
    plan = planned(**OF_CHILDREN, public="owner")
    table = THIS.assign(owner=THIS["owner"].where(THIS.index % 3 > 0))
    found = POSTERIOR.release(room.clipped(plan, table), plan, random_seed=1)
    # and the model's values are taken back to those of the column
    further = dataclasses.replace(POSTERIOR, back=lambda values: values + 100)
    back = further.release(room.clipped(plan, table), plan, random_seed=1)
    assert np.array_equal(back.synthetic, found.synthetic + 100)
    patterns = table["region"] + table["owner"].fillna("missing")
    # those with equal public values are alike, and no others
    pairs = {*zip(seen[0], patterns, strict=True)}
    assert len(pairs) == len({*seen[0]}) == len({*patterns}) == 9


def test_the_statement_says_that_predictions_are_pooled(tmp_path):
    plan = planned(**OF_CHILDREN, epsilon=1.0)
    plan.save(tmp_path / "plan.json")
    found = plan.release(
        ppm.release.Confidential(THIS), account=tmp_path / "account.jsonl"
    )
    assert "take their values together from several predictions" in found.statement
    assert "varies less than a sample of records would" in found.statement


def test_nothing_is_chosen_by_the_confidential_table():
    rehearsal = planned().rehearse(confidential=THIS, repeats=2, random_seed=1)
    with pytest.raises(
        ValueError, match="best must not choose by the confidential table"
    ):
        rehearsal.best("levels")
    assert "left out" not in repr(rehearsal)


@pytest.mark.parametrize("mechanism", [Bins, Means])
@pytest.mark.parametrize("special", [[0, 0], [0.0, -0.0], [1, 2, 1]])
def test_a_special_value_that_is_given_twice_is_refused(mechanism, special):
    # a record of it would be counted twice, with noise for one
    settings = {"bins": 5} if mechanism is Bins else {}
    with pytest.raises(ValueError, match="special must have each value once"):
        mechanism(special=special, **settings)


def test_a_sample_that_lacks_what_the_table_has_is_rehearsed_all_the_same():
    few = pd.DataFrame({"region": "few", "income": [-1.0, *[5.0] * 12]})
    last = pd.concat([LAST[["region", "income"]], few], ignore_index=True)
    settings = {"limits": (-10, 1_000_000), "mechanism": Means()}
    planned(last, **settings).rehearse(repeats=5, random_seed=1)
    kinds = LAST.assign(owner=["rare", *LAST["owner"][1:]])
    plan = planned(kinds, confidential="owner", limits={}, mechanism=Margins(["owner"]))
    assert len(plan.rehearse(repeats=8, random_seed=1).runs) == 8 * 3


@dataclasses.dataclass(frozen=True)
class AsTheyAre(Mechanism):
    """The other end without drawing again: the records themselves, which have no error."""

    def release(self, table, plan, **noise):
        found = Published().release(table, plan, **noise)
        own = {name: table[name].to_numpy()[None] for name in plan.confidential}
        promised = Guarantee("strict", plan.epsilon, (), "counts")
        return dataclasses.replace(found, synthetic=own, guarantee=promised)


def test_what_is_released_as_it_is_has_no_error_in_any_column():
    rng = np.random.default_rng(4)
    last = pd.DataFrame(
        {
            "x": rng.lognormal(size=400),
            "c": rng.choice(["u", "v", "w", "z"], 400, p=[0.5, 0.3, 0.15, 0.05]),
            "g": rng.choice(["N", "S"], 400),
        }
    )
    plan = ReleasePlan(
        last,
        confidential=["x", "c"],
        groups="g",
        limits={"x": (0, 50)},
        mechanism=AsTheyAre(),
        epsilon=1.0,
    )
    found = plan.rehearse(repeats=6, smallest=20, random_seed=3)
    own = found.runs[found.runs["mechanism"] == "AsTheyAre()"]
    assert len(own) == 6 * 7
    sizes = own[["levels", "worst level", "tail", "mean"]]
    np.testing.assert_allclose(sizes, 0.0, atol=1e-12)
    others = found.runs[found.runs["mechanism"] == "published records"]
    assert (others["levels"] > 0).all()
