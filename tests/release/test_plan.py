"""A plan: public alone, saved before the table is opened, and applied to it once."""

import dataclasses
import datetime
import itertools
import json
import os
import pickle
import subprocess
import sys
from decimal import Decimal
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from hypothesis import given
from hypothesis import strategies as st
from incomes import planned_of, year
from scipy import stats

import ppm
from ppm.release import (
    Account,
    Bins,
    Confidential,
    Margins,
    Means,
    Mechanism,
    Posterior,
    Published,
    ReleasePlan,
)
from ppm.release.mechanisms import Records, tables_of
from ppm.release.posterior import PosteriorRelease
from ppm.release.statement import Guarantee, guarantee, statement_of

LAST, THIS = year(1), year(2, 36_000.0)
# what no guarantee covers
ALWAYS = ("unchanged", "imputed", "others", "ended", "holders")
planned = planned_of(LAST)


@pytest.fixture
def release(tmp_path):
    """A function that saves a plan and releases a table by it, with a seed."""

    def released(plan, table=THIS, **settings):
        plan.save(tmp_path / f"{plan.digest}.json")
        noise = {"secure_noise": False, "random_seed": 1, **settings}
        account = noise.pop("account", tmp_path / "account.jsonl")
        return plan.release(Confidential(table), account=account, **noise)

    return released


# ---- what is public, and the digest of it --------------------------------------------------------


@dataclasses.dataclass(frozen=True, repr=False)
class OwnEdges(Bins):
    """A slip: the bins are quantiles of the confidential values."""

    def release(self, table, plan, **noise):
        return super().release(
            table, dataclasses.replace(plan, published=table), **noise
        )


@pytest.mark.parametrize(
    ("mechanism", "public"),
    [(Bins(8), True), (Bins(8, special=[0], tail=2), True), (OwnEdges(8), False)],
)
def test_edges_and_settings_do_not_follow_the_confidential_values(mechanism, public):
    plan = planned(mechanism=mechanism)
    other = THIS.assign(income=np.random.default_rng(3).permutation(THIS["income"]) * 3)
    both = [
        mechanism.release(table, plan, random_seed=1).public["edges"]
        for table in (THIS, other)
    ]
    found = [{label: edges.tolist() for label, edges in one.items()} for one in both]
    assert (found[0] == found[1]) is public
    published = planned(LAST.assign(income=LAST["income"] * 2), mechanism=mechanism)
    moved = mechanism.release(THIS, published, random_seed=1).public["edges"]
    assert ({k: v.tolist() for k, v in moved.items()} != found[0]) is public


DIFFERENT = {
    "a value": {
        "published": LAST.assign(income=LAST["income"].where(LAST.index > 0, 1.0))
    },
    "a public value": {"published": LAST.assign(region=["S", *LAST["region"][1:]])},
    "a type": {"published": LAST.astype({"income": "int32"})},
    "order of columns": {"published": LAST[[*LAST][::-1]]},
    "order of rows": {"published": LAST[::-1]},
    "a public column": {"public": "owner"},
    "another one": {"public": "children"},
    "a missing value": {
        "published": LAST.assign(owner=[None, *LAST["owner"][1:]]),
        "public": "owner",
    },
    "categories": {"published": LAST.astype({"region": "category"})},
    "a category more": {
        "published": LAST.astype({"region": pd.CategoricalDtype(["N", "S", "W", "E"])})
    },
    "ε": {"epsilon": 0.5000001},
    "limits": {"limits": (0, 1_000_001)},
    "groups": {"groups": ["region", "owner"]},
    "no groups": {"groups": ()},
    "releases": {"releases": 2},
    "bins": {"mechanism": Bins(9)},
    "special": {"mechanism": Bins(8, special=[0])},
    "kind": {"mechanism": Means()},
    "cap": {"mechanism": Means(0.9)},
    "ε = 0": {"mechanism": Published(), "epsilon": 0},
    "rehearsed": {"rehearsed": {"goal": "tail"}},
}


def test_plans_that_differ_in_anything_public_have_different_digests():
    found = {planned(**settings).digest for settings in DIFFERENT.values()}
    assert len(found | {planned().digest}) == len(DIFFERENT) + 1
    same = planned(LAST.copy(), groups=["region"], limits={"income": (0.0, 1e6)})
    assert same.digest == planned().digest
    # what the plan does not name is no part of it
    assert planned(LAST.drop(columns=["owner"])).digest == same.digest


@given(
    bins=st.integers(1, 30),
    special=st.lists(st.floats(0, 1e5), max_size=3, unique=True),
    tail=st.integers(0, 3),
    epsilon=st.floats(1e-9, 30),
    releases=st.integers(1, 5),
)
def test_a_plan_that_is_read_again_is_the_same(
    tmp_path_factory, bins, special, tail, epsilon, releases
):
    mechanism = Bins(bins, special=special, tail=tail)
    plan = planned(mechanism=mechanism, epsilon=epsilon, releases=releases)
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    plan.save(path)
    again = ReleasePlan.read(path, LAST)
    assert again.digest == plan.digest and repr(again) == repr(plan)
    edges = mechanism.edges(plan)
    for label, found in again.mechanism.edges(again).items():
        np.testing.assert_array_equal(found, edges[label])


def test_a_file_or_a_table_that_was_changed_is_refused(tmp_path):
    path = tmp_path / "plan.json"
    planned().save(path)
    saved = json.loads(path.read_text("utf-8"))
    assert saved["versions"].keys() == {"ppm", "numpy", "opendp"}
    for name in ("a value", "order of rows"):
        with pytest.raises(
            ValueError, match="published must be the table that the plan"
        ):
            ReleasePlan.read(path, DIFFERENT[name]["published"])
    with pytest.raises(ValueError, match="mechanism must be that of the plan, Bins"):
        ReleasePlan.read(path, LAST, mechanism=Bins(9))
    saved["plan"]["epsilon"] = 0.4
    path.write_text(json.dumps(saved), "utf-8")
    with pytest.raises(ValueError, match="plan as it was saved; plan.json was changed"):
        ReleasePlan.read(path, LAST)
    with pytest.raises(FileExistsError, match="another plan or file stands in plan.js"):
        planned().save(path)
    for other in ("income\n5\n", "[]"):
        path.write_text(other, "utf-8")
        with pytest.raises(ValueError, match="path must hold a plan as JSON; got plan"):
            ReleasePlan.read(path, LAST)


# ---- the one place where the table enters --------------------------------------------------------


def test_a_release_has_the_public_columns_and_its_account(release, tmp_path):
    found = release(planned(releases=2, public=["children", "owner"]))
    table = found.synthetic
    assert [*table] == ["release", *LAST] and len(table) == 2 * len(THIS)
    public = ["region", "children", "owner"]
    for _, one in table.groupby("release"):
        rows = (t[public].sort_values(public, ignore_index=True) for t in (one, THIS))
        pd.testing.assert_frame_equal(*rows)
        means = one.groupby("region")["income"].mean()
        assert (means / THIS.groupby("region")["income"].mean() - 1).abs().max() < 0.25
    lines = found.statement.splitlines()
    assert lines[0].startswith("Not for publication: without secure noise")
    for told in (
        "Synthetic: 'income'.",
        "Released unchanged: 'region', 'children', 'owner'.",
        f"{found.digest}.",
        "opendp 0.",
        "moved towards the published shares",
        "ε adds up to 0.5 so far (20",
        "The plan of this release was saved before it was applied",
    ):
        assert sum(told in line for line in lines) == 1
    assert len(lines) > 20 and "opened" not in found.statement
    # a line for each thing that is not covered
    reasons = found.guarantee.not_covered
    first = lines.index("Not covered:") + 1
    assert [line.strip("- ;.") for line in lines[first : first + len(reasons)]] == [
        *reasons
    ]
    second = release(planned(epsilon=1 / 3), secure_noise=True, random_seed=None)
    # never less than it is
    assert "ε adds up to 0.8333333334 so far (20" in second.statement
    assert "Not for publication" not in second.statement
    assert [one["digest"] for one in Account(tmp_path / "account.jsonl").entries] == [
        found.digest,
        second.digest,
    ]
    assert pickle.loads(pickle.dumps(found)).statement == found.statement
    found.save(tmp_path / "release.csv")
    assert pd.read_csv(tmp_path / "release.csv")["income"].equals(table["income"])
    assert (tmp_path / "release.txt").read_text("utf-8").strip() == found.statement
    numbers = json.loads((tmp_path / "release.json").read_text("utf-8"))
    assert numbers["digest"] == found.digest
    assert numbers["public"]["limits"] == {"income": [0.0, 1e6]}
    counts = pd.DataFrame(numbers["noisy"]["counts"])
    pd.testing.assert_frame_equal(counts, found.noisy["counts"])
    # each with the group and the bin that it counts
    for label, edges in numbers["public"]["edges"].items():
        own, incomes = (
            counts[counts["group"] == label],
            THIS["income"][THIS["region"] == label],
        )
        true = np.histogram(incomes, [*edges[:-1], np.inf])[0]
        assert own["from"].tolist() == edges[:-1] and own["below"].tolist() == edges[1:]
        assert np.abs(own["count"].to_numpy() - true).max() < 30


@pytest.mark.parametrize("standing", ["release.csv", "release.txt", "release.json"])
def test_a_release_overwrites_no_file(release, tmp_path, standing):
    found = release(planned())
    (tmp_path / standing).write_text("mine")
    with pytest.raises(FileExistsError, match=f"path: there is a file '{standing}'"):
        found.save(tmp_path / "release.csv")
    for other in ("other.txt", tmp_path / "other.json", "other", 5, b"other.csv"):
        with pytest.raises(ValueError, match=r"path must be a file .* in \.csv; got"):
            found.save(other)
    assert [one.name for one in tmp_path.glob("release*")] == [standing]
    assert (tmp_path / standing).read_text() == "mine"


def test_a_column_that_is_named_nowhere_is_not_released(release):
    secret = THIS.assign(wealth=MARK, owner="a secret")
    many = dict.fromkeys("abcd", 1)
    plan = planned(LAST.assign(wealth=1.0, **many), public=["children", *many])
    found = release(plan, secret.assign(**many))
    assert [*found.synthetic] == ["region", "income", "children", *many]
    told = "Released unchanged: 'region', 'children', 'a', 'b', 'c', 'd'."
    assert told in found.statement
    # nor is one that margins name
    for wrong in (
        Margins(["income", ("owner", "income")]),
        Margins(["income"], strata=["owner"]),
    ):
        with pytest.raises(
            ValueError, match="there must be a column 'owner' in confid"
        ):
            planned(mechanism=wrong)
    assert planned(mechanism=wrong, public="owner").settings["public"] == ["owner"]


@pytest.mark.parametrize(
    ("column", "limits"),
    [("income", (0, 1e6)), ("owner", {}), ("children", (0, 20)), ("kind", {})],
)
def test_the_published_table_is_not_released_as_the_confidential_one(
    release, column, limits
):
    last = LAST.assign(kind=LAST["owner"].astype("category"))
    mechanism = Published() if limits == {} else Bins(2)
    epsilon = 0.5 if limits else 0
    plan = planned(
        last, confidential=column, limits=limits, mechanism=mechanism, epsilon=epsilon
    )
    plan = dataclasses.replace(plan, rehearsed={"goal": "tail"})
    read_again = pd.DataFrame({name: list(last[name]) for name in last}).astype(
        last.dtypes
    )
    for same in (last, last[[*last]], last.assign(region="N"), read_again):
        with pytest.raises(ValueError, match="another table than the published one"):
            release(plan, same)
    # public columns may be the same
    other = THIS.assign(kind=THIS["owner"].astype("category"))[column]
    release(plan, last.assign(**{column: other}))


def test_the_order_of_rows_tells_nothing(release):
    ordered = THIS.sort_values("income").reset_index(drop=True)
    ordered["owner"] = [f"unit {place:03}" for place in range(len(THIS))]
    last = LAST.assign(owner="unit")
    found = release(planned(last, public="owner"), ordered).synthetic
    assert [*found["owner"]] != sorted(found["owner"])
    places = found["owner"].str[5:].astype(int)
    assert abs(np.corrcoef(places, np.arange(len(places)))[0, 1]) < 0.2


@dataclasses.dataclass(frozen=True)
class Watching(Mechanism):
    """Notes what it is given, and breaks at a call of this number."""

    breaks: int = 0
    seen = []

    def release(self, table, plan, *, random_seed, secure_noise):
        self.seen.append((table, secure_noise))
        if len(self.seen) == self.breaks:
            raise KeyboardInterrupt
        return Bins(8).release(table, plan, random_seed=random_seed)


class Late(Account):
    """A slip: what is entered is written only afterwards."""

    def enter(self, *args, **settings):
        return {"total": "0.5"}


@pytest.mark.parametrize(
    ("kind", "breaks", "entered"),
    [(Account, 1, "0"), (Account, 2, "0.5"), (Late, 2, "0")],
)
def test_epsilon_is_entered_between_the_trial_and_the_noise(
    release, tmp_path, kind, breaks, entered
):
    account = kind(tmp_path / "other.jsonl")
    Watching.seen.clear()
    with pytest.raises(KeyboardInterrupt):
        plan = planned(mechanism=Watching(breaks), public=["children", "owner"])
        release(plan, account=account)
    # what a crash leaves
    assert account.total == Decimal(entered)
    # the trial has the table's public columns, and published values in those that are not
    trial, *_ = Watching.seen[0]
    assert {*trial["income"]} <= {*LAST["income"]}
    public = ["children", "owner", "region"]
    rows = (one[public].sort_values(public, ignore_index=True) for one in (trial, THIS))
    pd.testing.assert_frame_equal(*rows)


@pytest.mark.parametrize("secure", [True, False])
def test_noise_is_secure_unless_told_otherwise(release, tmp_path, secure):
    Watching.seen.clear()
    plan, noise = (
        planned(mechanism=Watching()),
        {} if secure else {"secure_noise": False},
    )
    plan.save(tmp_path / "plan.json")
    found = plan.release(
        Confidential(THIS), account=tmp_path / "account.jsonl", **noise
    )
    assert "Watching is the agency's own: that it has the ε said" in found.statement
    assert [told for _, told in Watching.seen] == [secure, secure]
    with pytest.raises(ValueError, match="random_seed must be left out"):
        release(plan, secure_noise=True, random_seed=1)


def test_a_plan_must_be_saved_and_is_used_once(release, tmp_path, monkeypatch):
    plan, table = planned(), Confidential(THIS)
    account = Account(tmp_path / "account.jsonl")
    noise = {"secure_noise": False, "random_seed": 1}
    with pytest.raises(ValueError, match="plan must be saved"):
        plan.release(table, account=account, **noise)
    first = release(plan)
    with monkeypatch.context() as patch:
        # refused before the trial's work
        patch.setattr(Bins, "release", None)
        with pytest.raises(ValueError, match="plan must not be released twice"):
            plan.release(table, account=account, **noise)
    again = plan.release(table, account=account, again=True, **noise)
    assert again.synthetic.equals(first.synthetic)
    assert account.total == Decimal("1.0")
    # a plan that was changed, or whose file is gone, is another one
    income = plan.published.loc[0, "income"]
    plan.published.loc[0, "income"] += 1
    with pytest.raises(ValueError, match="plan must be as it was saved"):
        plan.release(table, account=account, again=True, **noise)
    plan.published.loc[0, "income"] = income
    (tmp_path / f"{first.digest}.json").unlink()
    with pytest.raises(ValueError, match="plan must be as it was saved, .* is gone"):
        plan.release(table, account=account, again=True, **noise)
    with pytest.raises(ValueError, match="account must be given"):
        release(plan, account=None)
    assert account.total == Decimal("1.0")


MARK = 987_654.0
REFUSED = {
    "lacks a column": THIS.drop(columns="region"),
    "a missing value": THIS.assign(income=THIS["income"].where(THIS.index != 5)),
    "text": THIS.assign(
        income=THIS["income"].astype(object).where(THIS.index != 5, "x")
    ),
    "an unknown group": THIS.assign(region=THIS["region"].where(THIS.index != 5, "E")),
}


@pytest.mark.parametrize("table", REFUSED.values(), ids=REFUSED)
def test_a_table_that_does_not_fit_is_refused_before_it_costs_anything(
    release, tmp_path, table
):
    table.loc[0, "income"] = MARK
    with pytest.raises(ValueError, match="^confidential") as error:
        release(planned(), table)
    assert "987" not in str(error.value)
    assert Account(tmp_path / "account.jsonl").total == 0


def test_a_refusal_tells_no_place_and_no_number_but_the_group(release):
    missing = THIS["income"].where(THIS.index != 417)
    for wrong in (missing, THIS["income"].astype(object).where(THIS.index != 417, "x")):
        with pytest.raises(
            ValueError, match="finite numbers alone in 'income'"
        ) as told:
            release(planned(), THIS.assign(income=wrong))
        assert not any(letter.isdigit() for letter in str(told.value))
    regions = THIS["region"].where(THIS.index != 5, "E")
    with pytest.raises(ValueError, match="no group without published records; got 'E'"):
        release(planned(), THIS.assign(region=regions))
    with pytest.raises(ValueError, match="no missing label in 'region'"):
        release(planned(), THIS.assign(region=THIS["region"].where(THIS.index != 5)))


def test_a_category_that_the_published_column_declares_is_known(release):
    settings = {"confidential": ["income", "owner"], "limits": {"income": (0, 1e6)}}
    margins = Margins(["income", ("region", "owner")], bins=4)
    more = THIS.assign(owner=["lodger"] * 200 + ["yes"] * 400)
    with pytest.raises(
        ValueError, match="only published categories in 'owner', none m"
    ):
        release(planned(**settings, mechanism=margins), more)
    known = pd.CategoricalDtype(["no", "yes", "lodger"])
    plan = planned(LAST.astype({"owner": known}), **settings, mechanism=margins)
    found = release(plan, more).synthetic["owner"].value_counts()
    assert found["lodger"] > 50
    # codes of categories are numbers, unless they are declared
    codes = LAST.assign(owner=LAST["owner"].map({"yes": 1, "no": 2}))
    with pytest.raises(ValueError, match="limits must be given for 'owner'"):
        planned(codes, **settings, mechanism=margins)
    planned(codes.astype({"owner": "category"}), **settings, mechanism=margins)


def test_groups_with_different_values_have_different_labels():
    table = pd.DataFrame(
        {
            "a": ["p", "p × q", "p ×", "p", "p××", "p"],
            "b": ["q × r", "r", "× q", "× × q", "q", "××q"],
        }
    )
    settings = {"groups": ["a", "b"], "mechanism": Published(), "epsilon": 0}
    plan = planned(table.assign(income=1.0 * table.index), **settings)
    assert len({*plan.labels(table)}) == len(table)
    assert [*plan.labels(table)][1] == "p ×× q × r"


def test_limits_are_in_the_order_of_the_confidential_columns(tmp_path):
    limits = {"children": (0, 20), "income": (0, 1e6)}
    settings = {"mechanism": Margins(["income", "children"], bins=4), "limits": limits}
    plan = planned(confidential=["income", "children"], **settings)
    plan.save(tmp_path / "plan.json")
    for one in (plan, ReleasePlan.read(tmp_path / "plan.json", LAST)):
        assert [*one.limits] == ["income", "children"]
        assert one.rehearse(repeats=2).settings["changed"] == "income"


def test_values_beyond_the_limits_count_as_the_limit(release):
    beyond = THIS.assign(income=THIS["income"].where(THIS.index > 99, 1e12))
    at = THIS.assign(income=THIS["income"].where(THIS.index > 99, 1e6))
    plans = planned(), planned(epsilon=0.5)
    first, second = (
        release(plan, table, again=True).synthetic
        for plan, table in zip(plans, (beyond, at), strict=True)
    )
    assert first.equals(second) and first["income"].max() <= 1e6


def test_public_and_confidential_tables_cannot_be_exchanged(release):
    with pytest.raises(ValueError, match="published must be a pandas DataFrame"):
        planned(Confidential(THIS))
    plan = planned()
    with pytest.raises(
        ValueError, match="confidential must be a ppm.release.Confidential"
    ):
        plan.release(THIS, account="account.jsonl")
    table = THIS.assign(income=MARK)
    for shown in (Confidential(table), release(plan, table)):
        assert "987" not in repr(shown)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"confidential": "wealth"}, "confidential: there must be a column 'wealth'"),
        ({"groups": ["state"]}, "groups: there must be a column 'state'"),
        ({"groups": "income"}, "confidential must have no column .* got 'income'"),
        ({"public": "income"}, "confidential must have no column .* got 'income'"),
        ({"public": "state"}, "public: there must be a column 'state'"),
        ({"limits": (5, 1)}, "limits of 'income' must"),
        ({"limits": {"x": (0, 9)}}, "limits must be of confidential columns; got 'x'"),
        ({"limits": {}}, "limits must be given for 'income'"),
        ({"published": LAST[:0]}, r"published must .* got shape \(0, 4\)"),
        (
            {"published": LAST.assign(region=LAST["region"].where(LAST.index > 5))},
            "published must have no missing label in 'region'",
        ),
        ({"confidential": ["income", "children"]}, "takes one confidential column"),
        (
            {"confidential": "owner", "limits": {}, "mechanism": Means()},
            "takes one confidential column of num",
        ),
        (
            {"mechanism": Margins(["income"], strata=0)},
            "strata must be a whole number of at least 1",
        ),
        (
            {"mechanism": Margins(["income"], shares=[0.5])},
            "shares must be 1 numbers above 0",
        ),
        ({"epsilon": 0}, "epsilon must be 0 for ppm.release.Published"),
        ({"epsilon": 31}, "epsilon must be a finite number"),
        ({"mechanism": Published()}, "epsilon must be 0 for ppm.release.Published"),
        ({"mechanism": "Bins"}, "mechanism must be a ppm.release.Mechanism"),
        ({"releases": 0}, "releases must be a whole number"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_refused(settings, told):
    with pytest.raises(ValueError, match=told):
        planned(**settings)


@pytest.mark.parametrize(
    ("kind", "settings", "name"),
    [
        (Bins, {"bins": 0}, "bins"),
        (Bins, {"bins": "a"}, "bins"),
        (Bins, {"bins": 5, "tail": -1}, "tail"),
        (Bins, {"bins": 5, "special": ["a"]}, "special"),
        (Margins, {"margins": ["income"], "bins": 0}, "bins"),
        (Margins, {"margins": ["income"], "reach": 0}, "reach"),
        (Means, {"cap": 0}, "cap"),
        (Means, {"cap": 1.1}, "cap"),
        (Means, {"special": ["a"]}, "special"),
        (Bins, {"bins": 5, "special": 0}, "special"),
        (Posterior, {"build": partial(len), "candidates": planned_of}, "build"),
        (Posterior, {"build": np, "candidates": planned_of}, "build"),
        (Posterior, {"build": "a".join, "candidates": planned_of}, "build"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_at_once(kind, settings, name):
    with pytest.raises(ValueError, match=f"{name} must be"):
        kind(**settings)


# ---- mechanisms ----------------------------------------------------------------------------------


def build(records):
    return ppm.GammaPoisson(records["children"], shape=2, rate=1)


def candidates(published):
    return {"mu": published["children"].mean() * np.linspace(0.5, 2.0, 60)}


def center(published):
    return {"mu": published["children"].mean()}


CENTERS = {label: center(own) for label, own in LAST.groupby("region")}
POSTERIORS = {
    "weights of its own": (Posterior(build, candidates), ppm.Capped(0.5)),
    "limits": (
        Posterior(build, candidates, center, weight=0.3),
        ppm.Limited(ppm.Limits(-0.25, 0.25), center=CENTERS, weight=0.3),
    ),
}


@pytest.mark.parametrize(("mechanism", "rule"), POSTERIORS.values(), ids=POSTERIORS)
def test_a_pseudo_posterior_is_planned_like_the_rest(
    release, tmp_path, mechanism, rule
):
    settings = {"confidential": "children", "limits": (0, 20), "mechanism": mechanism}
    plan = planned(**settings, epsilon=1.0, releases=2)
    assert mechanism.rule(plan) == rule
    found = release(plan, secure_noise=True, random_seed=None)
    assert "2 × 0.5 = 1" in found.statement
    assert found.synthetic["children"].mean() == pytest.approx(1.5, abs=0.4)
    path = tmp_path / f"{plan.digest}.json"
    again = ReleasePlan.read(path, LAST, mechanism=dataclasses.replace(mechanism))
    assert again.digest == plan.digest
    with pytest.raises(ValueError, match="mechanism must be given again: mechanism=P"):
        ReleasePlan.read(path, LAST)
    other = dataclasses.replace(mechanism, build=center)
    with pytest.raises(ValueError, match="mechanism must be that of the plan, Posteri"):
        ReleasePlan.read(path, LAST, mechanism=other)
    assert "The model is the agency's own" in found.statement


def of_children(mechanism):
    last = pd.DataFrame({"children": np.arange(60) % 7})
    columns = {"confidential": "children", "limits": (0, 20)}
    return ReleasePlan(last, mechanism=mechanism, epsilon=0.5, **columns)


@pytest.mark.parametrize("kept", ["closure", "default", "function"])
def test_what_a_function_keeps_from_where_it_was_defined_is_in_the_digest(kept):
    def of(cap):
        def capped(records):
            return build(records.clip({"children": 0}, {"children": cap}))

        def by_default(records, cap=cap):
            return build(records.clip({"children": 0}, {"children": cap}))

        def by_function(records):
            return capped(records)

        made = {"closure": capped, "default": by_default, "function": by_function}
        return of_children(Posterior(made[kept], candidates)).digest

    assert of(5) == of(5) != of(6)
    # of all these each alone, and the same in every run
    kinds = [
        5.0,
        "5",
        None,
        np.exp,
        len,
        np,
        {"a": 1},
        {"b", "a"},
        [1, 2],
        np.arange(3),
    ]
    kinds += [datetime.date(2024, 1, 2), pd.DataFrame({"a": [1]}), float, lambda x: x]
    assert len({of(kind) for kind in kinds}) == len(kinds)
    with pytest.raises(ValueError, match=r"cap is object"):
        of(object())


def test_functions_that_call_each_other_have_a_digest():
    def of(number):
        def even(values):
            return values if number else odd(values)

        def odd(values):
            return even(values)

        return of_children(Posterior(build, candidates, back=even)).digest

    assert of(1) == of(1) != of(2)


def test_a_way_back_that_some_predictions_do_not_have_is_refused(tmp_path):
    def roots(values):
        with np.errstate(invalid="ignore"):
            return np.sqrt(values - 1) ** 2 + 1

    plan = of_children(Posterior(build, candidates, back=roots))
    with pytest.raises(ValueError, match="^back must give a value for each that the"):
        plan.save(tmp_path / "plan.json")
    plan = of_children(Posterior(build, candidates, back=lambda x: x[0]))
    with pytest.raises(ValueError, match=r"in the shape \(1, 1, \d+\) of releases"):
        plan.save(tmp_path / "plan.json")
    of_children(Posterior(build, candidates, back=lambda x: 2 * x)).save(
        tmp_path / "plan.json"
    )


@pytest.mark.parametrize("limits", [(-5_000.5, 2e6), (-2e6, -0.5), (0, 300)])
def test_a_model_is_tried_on_values_from_all_over_the_limits(limits):
    last = LAST.assign(income=np.linspace(*limits, len(LAST)) + 0.25 * LAST["children"])
    last["income"] = last["income"].clip(*limits)
    last.loc[:9, "income"] = often = np.quantile(limits, 0.37)
    plan = planned(last, limits=limits, groups=(), mechanism=POSTERIORS["limits"][0])
    values = plan.mechanism._possible(plan, "income")
    assert (values[0], values[-1]) == limits and often in values
    assert np.isin([code for code in (-9, -1, 0, 1, 96, 97, 98, 99, 999, 99_996)
                    if limits[0] <= code <= limits[1]], values).all()  # fmt: skip
    # of every size up to either end, and evenly
    assert np.diff(values).max() <= np.ptp(limits) / 8 + 1e-6
    for sign, end in zip((-1, 1), limits, strict=True):
        sizes = [10.0**k for k in range(7) if 10.0**k <= sign * end / 10]
        for size in sizes:
            assert ((sign * values >= size) & (sign * values <= 10 * size)).any()


def by_own_mean(records):
    counts = records["children"]
    return ppm.GammaPoisson(counts, shape=2, rate=1 / (1 + counts.mean()))


def moved_by_mean(records):
    counts = records["children"]
    return ppm.GammaPoisson(abs(counts - np.rint(counts.mean())), shape=2, rate=1)


def of_a_global(records):
    return ppm.GammaPoisson(LAST["children"], shape=2, rate=1)


def of_as_many(records):
    return ppm.GammaPoisson(LAST["children"][: len(records)], shape=2, rate=1)


def normal(records, middle):
    with pm.Model() as model:
        mu = pm.Normal("mu", middle(records["children"]), 1)
        pm.Normal("y", mu, 1, observed=records["children"].to_numpy(float))
    return model


def pymc_by_own_mean(records):
    return normal(records, lambda values: values.mean())


def pymc(records):
    return normal(records, lambda values: 1.5)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (by_own_mean, "build: a record's value reaches the prior of mu"),
        (moved_by_mean, "build: a record's value reaches the terms of others"),
        (of_a_global, "build must make a model of the records that it is given"),
        (of_as_many, "build: no record's value reaches its own term"),
        (pymc_by_own_mean, "build: a record's value reaches the prior of mu"),
    ],
)
def test_a_model_that_uses_records_elsewhere_is_neither_saved_nor_read(
    tmp_path, wrong, told
):
    path = tmp_path / "plan.json"
    settings = {"confidential": "children", "limits": (0, 20)}
    plan = planned(**settings, mechanism=Posterior(wrong, candidates))
    with pytest.raises(ValueError, match=told):
        plan.save(path)
    assert not path.exists()
    # nor one that was saved in another way
    content = {"plan": plan.settings, "digest": plan.digest, "versions": {}}
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(ValueError, match=told):
        ReleasePlan.read(path, LAST, mechanism=plan.mechanism)


def test_a_pymc_model_whose_records_have_terms_of_their_own_is_released(release):
    settings = {"confidential": "children", "limits": (-20, 20)}
    plan = planned(**settings, mechanism=Posterior(pymc, candidates), epsilon=1.0)
    found = release(plan, random_seed=1)
    assert found.guarantee.kind == "strict" and found.guarantee.epsilon == 1.0
    assert found.synthetic["children"].mean() == pytest.approx(1.5, abs=0.5)


def test_a_mechanism_follows_every_setting_of_the_plan(release):
    for mechanism in (
        Bins(1, above=3),
        Means(),
        Margins(["income", ("region", "income")]),
    ):
        plans = [planned(mechanism=mechanism, limits=(0, 1e6))]
        with pytest.warns(
            UserWarning, match="limits of 'income': 264 of 600 published"
        ):
            plans += [planned(mechanism=mechanism, limits=(0, 30_000))]
        # above the published ones, which a factor carries beyond the limits
        table = THIS.assign(income=np.maximum(THIS["income"], 29_999))
        found = [release(plan, table, again=True) for plan in plans]
        highest = [one.synthetic["income"].max() for one in found]
        assert highest[1] <= 30_000 < highest[0], mechanism


def test_several_columns_are_raked_to_margins(release):
    margins = [("region", "income"), ("region", "owner"), ("income", "owner")]
    plan = planned(
        confidential=["income", "owner"],
        limits={"income": (0, 1e6)},
        mechanism=Margins(margins, bins=6, special=[0]),
        epsilon=4.0,
    )
    found = release(plan, secure_noise=True, random_seed=None)
    assert "region × income" in found.statement and len(found.noisy) == 3
    assert "Synthetic: 'income', 'owner'; the confidential value" in found.statement
    totals = found.noisy["region × owner"].set_index(["region", "owner"])["total"]
    assert (totals - THIS.groupby(["region", "owner"]).size()).abs().max() < 20
    assert [*found.noisy["income × owner"]["owner"]] == ["no", "yes"]
    # the noise of one release could hide it: means come nearer than the published ones
    again = [release(plan, again=True, random_seed=seed) for seed in range(4)]
    truth, before, after = (
        table.groupby("region")["income"].mean()
        for table in (THIS, LAST, pd.concat([one.synthetic for one in again]))
    )
    assert ((after - truth).abs() < 0.75 * (before - truth).abs()).all()


def test_published_records_are_released_at_epsilon_0_without_an_account(tmp_path):
    settings = {"confidential": ["income", "owner"], "mechanism": Published()}
    plan = planned(**settings, limits={"income": (0, 1e6)}, epsilon=0, releases=2)
    plan.save(tmp_path / "plan.json")
    plan = ReleasePlan.read(tmp_path / "plan.json", LAST)
    assert plan.mechanism == Published()
    account = Account(tmp_path / "account.jsonl")
    account.enter(0.25, "before")
    # secure, as an actual release
    found = plan.release(Confidential(THIS), account=account)
    again = plan.release(Confidential(THIS))
    rows = ["region", "income", "owner"]
    known = {*LAST[rows].itertuples(index=False, name=None)}
    for one in (found, again):
        drawn = one.synthetic
        assert {*drawn[rows].itertuples(index=False, name=None)} <= known
        assert len(drawn) == 2 * len(THIS)
        assert one.guarantee.epsilon == 0 and one.guarantee.kind == "strict"
        assert "ε = 0 for published records" in one.statement
        assert "nothing was entered in an account" in one.statement
        assert "adds up to" not in one.statement
        assert "Not for publication" not in one.statement
        assert "noise" not in one.statement and not one.noisy
        # no package drew any
        assert one.guarantee.reasons == ("choices_of_bins", *ALWAYS)
        # systematic draws by value: a share is off by two records at most
        for label, pool in LAST.groupby("region")["income"]:
            own = drawn[(drawn["region"] == label) & (drawn["release"] == 2)]
            off = stats.ks_2samp(own["income"], pool).statistic
            assert off <= 2 / len(own) + 1e-9
    assert account.total == Decimal("0.25") and len(account.entries) == 1
    # with the same public columns, another confidential table gives the same release
    seeded = {"secure_noise": False, "random_seed": 1}
    other = THIS.assign(income=5.0, owner="no")
    one, same = (plan.release(Confidential(t), **seeded) for t in (THIS, other))
    assert one.synthetic.equals(same.synthetic)
    assert "Not for publication" not in one.statement
    # all others need an account
    bins = planned()
    bins.save(tmp_path / "bins.json")
    with pytest.raises(ValueError, match="account must be given: ε is entered there"):
        bins.release(Confidential(THIS))


@dataclasses.dataclass(frozen=True)
class Dear(Mechanism):
    """A slip: twice the ε of the plan."""

    def release(self, table, plan, **noise):
        return Bins(8).release(table, planned(epsilon=2 * plan.epsilon), **noise)


@dataclasses.dataclass(frozen=True)
class ForEach(Mechanism):
    """A slip: each of several releases has the ε of the plan."""

    def release(self, table, plan, **noise):
        model = ppm.GammaPoisson(table["children"], shape=2.0, rate=1.0)
        on_list = ppm.Candidates(model, {"mu": np.linspace(0.5, 3.0, 20)})
        rule = ppm.Capped(plan.epsilon)
        fit = ppm.fit(on_list, rule, draws=plan.releases, random_seed=1)
        drawn = fit.release(plan.releases, random_seed=2)
        return PosteriorRelease(drawn, guarantee(fit), (*statement_of(fit, drawn),))


@dataclasses.dataclass(frozen=True)
class Untold(Mechanism):
    """A slip: nothing says what was public."""

    def release(self, table, plan, **noise):
        found = Bins(8).release(table, plan, **noise)
        return SimpleNamespace(
            synthetic=found.synthetic,
            noisy=found.noisy,
            guarantee=found.guarantee,
            statement=found.statement,
        )


def test_what_is_lacking_shows_in_the_trial_and_costs_nothing(release, tmp_path):
    with pytest.raises(ValueError, match="SimpleNamespace has no 'public'"):
        release(planned(mechanism=Untold()))
    assert Account(tmp_path / "account.jsonl").total == 0


def test_what_fails_in_the_trial_costs_nothing(release, tmp_path):
    counts = {"confidential": "children", "limits": (0, 100)}
    for broken in (
        planned(mechanism=Dear()),
        planned(mechanism=Records()),
        planned(mechanism=ForEach(), releases=4, **counts),
    ):
        with pytest.raises(
            ValueError, match="strict guarantee, and no more than the pl"
        ):
            release(broken)
    assert Account(tmp_path / "account.jsonl").total == 0
    # a single one is within the plan
    release(planned(mechanism=ForEach(), **counts))


def test_a_seed_gives_the_same_release_in_every_process():
    """The order of a set of words differs from process to process."""
    code = (
        "import ppm, pandas as pd; last = pd.DataFrame({'income': range(60),"
        "'region': list('NSWE') * 15}); plan = ppm.release.ReleasePlan(last, confidential='income',"
        "groups='region', limits=(0, 99), mechanism=ppm.release.Published(), epsilon=0);"
        "print(plan.mechanism.release(last, plan, random_seed=1).synthetic['income'].tolist())"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert printed[0] == printed[1] == printed[2]


# ---- what the trial of a model knows of possible values ------------------------------------------


def visits(records):
    return records["visits"].astype(float)


def by_region(values, records):
    return values.groupby(records["region"])


def of_large_cells(values, records):
    """Mean of the values of an age, where at least 50 records have it."""
    by_age = values.groupby(records["age"])
    return by_age.transform("mean").where(by_age.transform("size") >= 50, 0)


# cleaning steps whose result for one record depends on others; last year's values, 3 to 9, do not
# show most of them
CLEANED = {
    "cut off at three medians": lambda v, r: v.clip(upper=3 * v.median()),
    "cut off by region": lambda v, r: np.minimum(v, 3 * by_region(v, r).transform("median")),
    "cut off at a high quantile": lambda v, r: v.clip(upper=max(20, v.quantile(0.95))),
    "standardised": lambda v, r: (v - v.mean()) / v.std(),
    "scaled where they are wide": lambda v, r: v / max(10, v.std()),
    "ranks": lambda v, r: v.rank(),
    "imputed": lambda v, r: v.mask(v == 99, v[v != 99].mean()),
    "outliers dropped": lambda v, r: v[v <= max(9, 3 * v.median())],
    "outliers missing": lambda v, r: v.mask(v > max(9, v.mean() + 4 * v.std())),
    "rounded to quantiles": lambda v, r: v.rank(pct=True).mul(4).round(),
    "detrended": lambda v, r: v - by_region(v, r).transform("mean"),
    "a unit that is guessed": lambda v, r: v / (10 if v.max() > 80 else 1),
    "outliers beyond 10 sd": lambda v, r: v.mask((v - v.mean()).abs() > 10 * v.std(), 5),
    "cut off where there are many": lambda v, r: v.clip(upper=v.max() if len(v) < 200 else 3 * v.median()),
    "cut off where there are very many": lambda v, r: v.clip(upper=3 * v.median() if len(v) > 500 else 1e5),
    "imputed where an age has many": lambda v, r: v.mask(v == 99, of_large_cells(v, r)),
    "cut off where many are high": lambda v, r: v.clip(upper=50 if (v > 50).sum() > 5 else 100),
}  # fmt: skip
OWN = {
    "as they are": lambda v, r: v,
    "logarithms": lambda v, r: np.log1p(v),
    "cut off at a constant": lambda v, r: v.clip(upper=20),
    "a code": lambda v, r: v.mask(v == 99, 0),
    "by a public column": lambda v, r: v - by_region(r["age"], r).transform("mean"),
}


class AroundMean(ppm.Model):
    """Values around a mean, whatever they are."""

    def __init__(self, values):
        self.values, self.records = np.asarray(values), len(values)

    def draw(self, terms, draws, rng):
        return {"mu": rng.normal(3.0, size=draws)}

    def log_p(self, theta):
        return -((self.values - theta["mu"][:, None]) ** 2) / 2

    def predict(self, theta, rng):
        return rng.normal(theta["mu"], size=self.records)


@pytest.mark.parametrize("limits", [(0, 100), (0, 10_000)], ids=["near", "far"])
@pytest.mark.parametrize("name", [*CLEANED, *OWN])
def test_a_cleaning_step_that_looks_at_others_is_refused_wherever_it_shows(
    tmp_path, name, limits
):
    rng = np.random.default_rng(0)
    last = pd.DataFrame(
        {
            "region": rng.choice(["N", "S", "W"], 400),
            "age": rng.integers(20, 80, 400),
            "visits": np.clip(rng.poisson(5, 400), 3, 9),
        }
    )
    step = (CLEANED | OWN)[name]

    def cleaned(records):
        return AroundMean(step(visits(records), records))

    plan = ReleasePlan(
        last,
        confidential="visits",
        groups="region",
        public="age",
        limits=limits,
        mechanism=Posterior(cleaned, lambda records: {"mu": np.linspace(2.0, 12.0, 11)}),
        epsilon=0.5,
    )  # fmt: skip
    if name in OWN:
        plan.save(tmp_path / "plan.json")
        return
    with pytest.raises(ValueError, match="^build"):
        plan.save(tmp_path / "plan.json")
    assert not (tmp_path / "plan.json").exists()


def test_a_model_that_takes_not_all_that_the_limits_allow_is_refused(tmp_path):
    def of_counts(records):
        return ppm.GammaPoisson(records["income"], shape=2, rate=1)

    last = LAST.assign(income=LAST["income"] + 0.5)
    plan = planned(last, mechanism=Posterior(of_counts, candidates))
    with pytest.raises(
        ValueError, match="^build must make a model of any records whose"
    ):
        plan.save(tmp_path / "plan.json")


# ---- what a release carries, and what a plan lets pass -------------------------------------------


class Named(pd.DataFrame):
    """A table of a class of its own, which keeps a name."""

    _metadata = ["kept"]

    @property
    def _constructor(self):
        return Named


CARRYING = {
    "bins": (Bins(4, special=[0]), 0.5),
    "means": (Means(), 0.5),
    "margins": (Margins([("region", "income")], bins=4), 0.5),
    "published": (Published(), 0),
    "posterior": (Posterior(lambda r: AroundMean(r["income"].to_numpy() / 1e4),
                            lambda r: {"mu": np.linspace(1.0, 5.0, 9)},
                            back=lambda values: values * 1e4), 0.5),
}  # fmt: skip


@pytest.mark.parametrize(("mechanism", "epsilon"), CARRYING.values(), ids=CARRYING)
@pytest.mark.parametrize("releases", [1, 2])
def test_a_release_carries_nothing_of_the_confidential_table(
    release, tmp_path, mechanism, epsilon, releases
):
    # values that nobody published, of which each is known by its bytes
    values = 20_000 + np.random.default_rng(5).random(len(THIS))
    kinds = pd.CategoricalDtype(pd.Index(["N", "S", "W", "SECRET E"], name="SECRET C"))
    known = np.dtype(np.int64, metadata={"SECRET": 1})
    table = Named(THIS.assign(income=values)).astype({"region": kinds})
    table["children"] = pd.Series(THIS["children"].to_numpy().astype(known))
    table["SECRET column"] = 1
    table.index = pd.Index(range(7, 7 + len(table)), name="SECRET index")
    table.columns.name = "SECRET columns"
    table.attrs["SECRET"] = "top earner"
    table.kept = "SECRET"
    table = table.set_flags(allows_duplicate_labels=False)
    settings = {"mechanism": mechanism, "epsilon": epsilon, "releases": releases}
    found = release(planned(public="children", **settings), table)
    assert type(found.synthetic) is pd.DataFrame and not found.synthetic.attrs
    assert found.synthetic.flags.allows_duplicate_labels
    found.save(tmp_path / "release.csv")
    written = [path.read_bytes() for path in tmp_path.glob("release.*")]
    for kept in (pickle.dumps(found), pickle.dumps(found.synthetic), *written):
        assert b"SECRET" not in kept
        assert not any(value.tobytes() in kept for value in values)


def samples(seed, records):
    """Visits, ages and costs that are mostly 0, of which two samples share nearly all rows."""
    rng = np.random.default_rng(seed)
    cost = np.round(rng.lognormal(6, 1, records))
    return pd.DataFrame(
        {
            "region": rng.choice(["N", "S", "W"], records),
            "visits": rng.poisson(3, records),
            "age": rng.integers(16, 90, records),
            "cost": np.where(rng.random(records) < 0.94, 0.0, cost),
            "income": np.round(rng.lognormal(10, 0.6, records)),
        }
    )


@pytest.mark.parametrize("column", ["visits", "age", "cost", "income"])
@pytest.mark.parametrize("records", [40, 600])
def test_independent_samples_pass_however_much_they_share(tmp_path, column, records):
    last, this = samples(1, records), samples(2, 1000)
    if column != "income" and records == 600:
        assert last[column].isin(this[column]).mean() > 0.9
    plan = planned(last, confidential=column, mechanism=Bins(1, special=[0]))
    plan.save(tmp_path / "plan.json")
    plan.release(Confidential(this), account=tmp_path / "account.jsonl")


MADE_OF = {
    "shuffled": lambda t: t.sample(frac=1, random_state=1),
    "shuffled, of values that occur often": lambda t: t.sample(frac=1, random_state=1),
    "a part": lambda t: t.sample(600, random_state=1),
    "all but one": lambda t: t[:-1],
    "of another year": lambda t: t.sample(600, random_state=1).assign(region="N"),
    "of another type": lambda t: t.sample(600, random_state=1).astype({"income": int}),
}


@pytest.mark.parametrize("name", MADE_OF)
def test_a_published_table_made_of_confidential_rows_is_refused(
    release, tmp_path, name
):
    this, made = samples(2, 1000), MADE_OF[name]
    if name.endswith("often"):
        this = this.assign(income=this["income"].round(-3))
        assert 20 <= this["income"].nunique() < 100
    with pytest.raises(ValueError, match="^confidential must be another table than"):
        release(planned(made(this), groups=()), this)
    assert Account(tmp_path / "account.jsonl").total == 0
    # one value that is not there, and it is no part of the table
    other = made(this)
    other = other.assign(income=[*other["income"][:-1], 5])
    release(planned(other, groups=()), this)


@dataclasses.dataclass(frozen=True)
class Types(Mechanism):
    """Published records, which keeps what it was given."""

    given = []

    def release(self, table, plan, **noise):
        self.given.append(table)
        found = Published().release(table, plan, **noise)
        promised = Guarantee("strict", plan.epsilon, (), "counts")
        return dataclasses.replace(found, guarantee=promised)


KINDS = ["none", "one", "two"]


@pytest.mark.parametrize(
    "published",
    [
        pd.Categorical(np.resize(KINDS, 90), [*KINDS, "three"], ordered=True),
        np.resize(KINDS, 90),
    ],
    ids=["categories", "text"],
)
@pytest.mark.parametrize(
    "kinds", [KINDS[1:], ["one"]], ids=["one lacks", "one is left"]
)
@pytest.mark.parametrize("numbers", [Decimal, float, object, bool])
def test_no_type_and_no_category_of_the_confidential_table_reaches_a_mechanism(
    release, published, kinds, numbers
):
    last = pd.DataFrame({"self": np.resize([0, 1, 5], 90), "kind": published})
    this = pd.DataFrame({"self": np.resize([0, 1], 60).astype(bool)})
    if numbers is not bool:
        this["self"] = this["self"].map(
            lambda one: numbers(int(one)) if numbers is not object else int(one)
        )
        this["self"] = this["self"].astype(object if numbers is not float else float)
    this["kind"] = pd.Categorical(np.resize(kinds, 60), kinds)
    plan = planned(
        last,
        confidential=["self", "kind"],
        groups=(),
        limits={"self": (0, 9)},
        mechanism=Types(),
    )
    Types.given.clear()
    release(plan, this)
    trial, real = Types.given
    assert real["self"].dtype == trial["self"].dtype == np.int64
    assert real["kind"].dtype == trial["kind"].dtype == last["kind"].dtype


@pytest.mark.parametrize(
    ("limits", "value"), [((0, 9), 4.5), ((0, 8.5), 12), ((0.5, 9), 0)]
)
def test_a_model_of_whole_numbers_gets_whole_ones_within_the_limits(
    release, limits, value
):
    visits = np.resize([1.0, 2, 3, 4, 8], 100)
    last = pd.DataFrame({"visits": visits})
    this = pd.DataFrame({"visits": np.r_[visits[:90], value]})
    counts = Posterior(
        lambda records: ppm.GammaPoisson(records["visits"]),
        lambda published: {"mu": np.linspace(1.0, 6.0, 11)},
    )
    plan = planned(
        last, confidential="visits", groups=(), limits=limits, mechanism=counts
    )
    found = release(plan, this).synthetic["visits"]
    assert (found % 1 == 0).all() and found.between(*limits).all()


@pytest.mark.parametrize(
    ("columns", "margins"),
    [
        (["total", "income"], ["income", ("total", "income")]),
        (["a", "b", "a × b", "income"], [("a × b", "income"), ("a", "b", "income")]),
    ],
)
def test_margins_whose_numbers_would_have_one_name_are_refused(columns, margins):
    rows = year(1)
    table = pd.DataFrame(
        {name: rows.get(name, rows["region"]).to_numpy() for name in columns}
    )
    with pytest.raises(ValueError, match="^margins must have names that differ"):
        planned(
            table, groups=(), public=columns[:-1], mechanism=Margins(margins, bins=4)
        )


@pytest.mark.parametrize("kind", [Bins, Means, Margins])
def test_special_values_beyond_the_limits_are_refused(kind):
    settings = {Bins: {"bins": 8}, Margins: {"margins": ["income"]}}.get(kind, {})
    planned(mechanism=kind(**settings, special=[0]), limits=(0, 1e6))
    with pytest.raises(ValueError, match="^special must have .* got -8: write"):
        planned(mechanism=kind(**settings, special=[0, -8]), limits=(0, 1e6))


def test_a_special_value_may_be_that_of_one_column_alone():
    last = LAST.assign(children=LAST["children"] + 1)
    limits = {"income": (0, 1e6), "children": (1, 20)}
    margins = Margins([*limits], bins=4, special=[0])
    assert planned(last, confidential=[*limits], limits=limits, mechanism=margins)


CODES = LAST["region"].map({"N": 1, "S": 2, "W": 3})


@pytest.mark.parametrize(
    ("last", "this", "told"),
    [
        (CODES, CODES.astype(str), "numbers in 'region', as .* has: 1, 2, 3; got text"),
        (CODES.astype(str), CODES, "text in 'region', as the .*'1', '2', '3'; got numb"),
        (CODES, CODES + 1, "got '4'; the published table has '1', '2', '3'"),
        (LAST["region"], LAST["region"] + " ", "got 'N ', .* table has 'N', 'S', 'W'"),
        (CODES, CODES.astype(float), None),
        (CODES, CODES.astype("category"), None),
    ],
)  # fmt: skip
def test_labels_of_another_kind_are_refused_and_equal_numbers_are_not(
    release, tmp_path, last, this, told
):
    last, this = LAST.assign(region=last), THIS.assign(region=this)
    if told is None:
        release(planned(last), this)
        return
    with pytest.raises(ValueError, match=f"^confidential .*{told}"):
        release(planned(last), this)
    assert Account(tmp_path / "account.jsonl").total == 0


MIXED = pd.Series([1, "1"] * 300, dtype=object)
FLAWED = {
    "1 and '1'": (LAST.assign(region=MIXED), {}, "labels of one kind in 'region'; got numbers and text$"),
    "a missing category": (
        LAST.assign(owner=LAST["owner"].where(LAST.index > 3)),
        {"confidential": ["income", "owner"], "limits": {"income": (0, 1e6)}},
        "no missing value in 'owner': make it a category of its own",
    ),
    "a year": (LAST.rename(columns={"children": 2023}), {}, "text as names of columns"),
    "several": (LAST.assign(release=1), {"public": "release", "releases": 2},
                "no column 'release'"),
}  # fmt: skip


@pytest.mark.parametrize(("last", "settings", "told"), FLAWED.values(), ids=FLAWED)
def test_what_cannot_be_released_is_told_when_the_plan_is_made(last, settings, told):
    margins = Margins(["income"], bins=4)
    with pytest.raises(ValueError, match=f"^published must have {told}"):
        planned(last, **{"mechanism": margins} | settings)


@pytest.mark.parametrize("kind", ["int64", "Int64", "float64"])
@pytest.mark.parametrize("name", ["bins", "means", "margins", "posterior"])
def test_whole_numbers_stay_whole_and_keep_their_mean(release, monkeypatch, name, kind):
    mechanism, epsilon = CARRYING[name]
    last = LAST.assign(income=LAST["income"].round()).astype({"income": kind})
    plan = planned(last, mechanism=mechanism, epsilon=epsilon)
    found = release(plan)
    made = found.synthetic["income"]
    assert made.dtype == ("float64" if kind == "float64" else "int64")
    assert (made % 1 == 0).all() and "'income' are whole numbers" in found.statement
    # nothing but the rounding is another
    monkeypatch.setattr("ppm.release.mechanisms.whole_columns", lambda plan: [])
    before = release(plan, again=True).synthetic["income"]
    assert np.abs(before - made).max() < 1
    assert before.mean() == pytest.approx(made.mean(), abs=0.02)


def test_each_release_rounds_other_rows_up_and_none_beyond_the_limits():
    last = LAST.assign(children=LAST["children"].clip(1.0, 7.0).astype(float))
    plan = planned(
        last, confidential="children", limits=(0.5, 7.5), mechanism=Means(), releases=3
    )
    drawn = SimpleNamespace(synthetic=np.full((3, len(THIS)), 2.4))
    made = [one["children"] for one in tables_of(plan, THIS, drawn, 3)]
    for one, other in itertools.combinations(made, 2):
        assert {*one} == {2, 3} and one.mean() == pytest.approx(2.4, abs=0.01)
        assert 0.2 < np.mean(one != other) < 0.8
    drawn.synthetic += 5
    assert {*pd.concat(tables_of(plan, THIS, drawn, 3))["children"]} == {7}


def test_the_statement_says_where_the_published_table_comes_from(release, tmp_path):
    told = "the maker of the plan says: Diary of 2018."
    plan = planned(source="Diary of 2018")
    assert told in release(plan).statement
    assert (
        ReleasePlan.read(tmp_path / f"{plan.digest}.json", LAST).digest == plan.digest
    )
    assert (
        "the maker of the plan does not say" in release(planned(epsilon=0.1)).statement
    )
    with pytest.raises(ValueError, match="source must be text of one line"):
        planned(source="a\nb")
