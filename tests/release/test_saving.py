"""The last step of a release: its files, and what stands in their way before ε is entered."""

import dataclasses
import datetime
import errno
import itertools
import json
import os
import resource
import secrets
import warnings
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import ppm
from ppm.release import (
    Account,
    Bins,
    Confidential,
    Guarantee,
    Margins,
    Means,
    Mechanism,
    NoisyRelease,
    Posterior,
    Published,
    ReleasePlan,
    files,
)
from ppm.release import account as accounts
from ppm.release import plan as planning
from ppm.release.statement import noisy_guarantee

RECORDS = 240


def year(seed, **public):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "children": rng.integers(0, 8, RECORDS),
            "owner": rng.choice(["no", "yes"], RECORDS),
            "region": np.tile(["N", "S"], RECORDS // 2),
            **public,
        }
    )


def build(records):
    return ppm.GammaPoisson(records["children"], shape=2, rate=1)


def candidates(published):
    return {"mu": published["children"].mean() * np.linspace(0.5, 2.0, 60)}


@dataclasses.dataclass(frozen=True, repr=False)
class OwnNoise(Mechanism):
    """One noisy sum, by noise of its own, with words of its own."""

    def release(self, table, plan, *, random_seed=None, secure_noise=False):
        rng = np.random.default_rng(random_seed)
        if secure_noise:
            rng = np.random.default_rng(secrets.randbits(128))
        noisy = table["children"].sum() + int(rng.laplace(scale=20 / plan.epsilon))
        mean = max(noisy / len(table), 0.0)
        drawn = rng.poisson(mean, (plan.releases, len(table)))
        words = "the noisy sum and any number of releases made of it"
        promised = noisy_guarantee(
            plan.epsilon, "own", secure=secure_noise, words=words
        )
        return NoisyRelease(drawn, {"sum": noisy}, promised, "Counts, drawn anew.")


ONE = {"confidential": "children", "limits": (0, 20)}
TWO = {"confidential": ["children", "owner"], "limits": {"children": (0, 20)}}
MARGINS = [("region", "children"), ("region", "owner"), ("children", "owner")]
MECHANISMS = {
    "Bins": (Bins(3, special=[0]), ONE),
    "Margins": (Margins(MARGINS, bins=3), TWO),
    "Means": (Means(special=[0]), ONE),
    "Posterior": (Posterior(build, candidates), ONE),
    "Published": (Published(), TWO),
    "own": (OwnNoise(), ONE),
}


def planned(name, last, **settings):
    mechanism, columns = MECHANISMS[name]
    epsilon = 0 if name == "Published" else 0.5
    known = {"groups": "region", "mechanism": mechanism, "epsilon": epsilon}
    return ReleasePlan(last, **known | columns | settings)


# two values each, in turn: as groups they are two groups
TURNS = RECORDS // 2
DATES = [datetime.date(2024, 1, 1), datetime.date(2024, 7, 1)]
PUBLIC = {
    "intervals": pd.cut(np.tile([20, 50], TURNS), [0, 30, 65]),
    "interval array": pd.arrays.IntervalArray.from_tuples([(0, 3), (3, 6)] * TURNS),
    "dates": DATES * TURNS,
    "times": pd.to_datetime(["2024-01-01", "2024-07-01"] * TURNS),
    "durations": pd.to_timedelta(["1D", "2D"] * TURNS),
    "periods": pd.PeriodIndex(["2024Q1", "2024Q3"] * TURNS, freq="Q"),
    "decimals": [Decimal("0.10"), Decimal("2.50")] * TURNS,
    "categories": pd.Categorical(["b", 'ä, × "q"'] * TURNS, ordered=True),
    "codes": pd.Categorical([3, 1] * TURNS),
    "flags": np.tile([True, False], TURNS),
    "nullable": pd.array([1, 2] * TURNS, "Int64"),
}


def arrow():
    """The same of PyArrow, where it is installed."""
    pyarrow = pytest.importorskip("pyarrow")
    kinds = {
        "text": (["N", "S"], pyarrow.string()),
        "dates": (DATES, pyarrow.date32()),
        "times": (DATES, pyarrow.timestamp("s")),
        "numbers": ([1, 2], pyarrow.int64()),
        "decimals": ([Decimal("0.10"), Decimal("2.50")], pyarrow.decimal128(5, 2)),
        "flags": ([True, False], pyarrow.bool_()),
        "codes": (["a", "b"], pyarrow.dictionary(pyarrow.int8(), pyarrow.string())),
    }
    return {
        name: pd.array(two * TURNS, pd.ArrowDtype(kind))
        for name, (two, kind) in kinds.items()
    }


@pytest.mark.parametrize("kinds", [dict, arrow])
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.filterwarnings("ignore:.*fewer bins than asked for")
def test_what_each_mechanism_releases_is_written_and_read_again(name, kinds, tmp_path):
    public = kinds() or PUBLIC
    last, this = (year(seed, **public) for seed in (1, 2))
    mechanism = MECHANISMS[name][0]
    if name == "Margins":
        by_each = [(of, "owner") for of in public]
        mechanism = dataclasses.replace(mechanism, margins=MARGINS + by_each)
    settings = {"mechanism": mechanism, "groups": [*public], "public": "region"}
    planned(name, last, **settings, releases=2).save(tmp_path / "plan.json")
    plan = ReleasePlan.read(tmp_path / "plan.json", last, mechanism=mechanism)
    account = Account(tmp_path / "account.jsonl", table="children of 2025")
    found = plan.release(
        Confidential(this), account=account, path=tmp_path / "release.csv"
    )
    again = pd.read_csv(tmp_path / "release.csv", dtype=str, keep_default_na=False)
    table = found.synthetic
    assert [*again] == [*table] and {"release", "region", *public} < {*again}
    assert (again["children"].astype(float) == table["children"]).all()
    for one in public:
        # each value has its own text, in every row
        pairs = {*zip(map(str, table[one]), again[one], strict=True)}
        assert len(pairs) == table[one].nunique() == 2
    assert (tmp_path / "release.txt").read_text("utf-8") == found.statement + "\n"
    numbers = json.loads((tmp_path / "release.json").read_text("utf-8"))
    assert numbers["digest"] == plan.digest
    assert numbers["noisy"].keys() == found.noisy.keys()
    assert numbers["public"].keys() == found.public.keys()
    # who reads the release sees where its values were cut off
    for column, (low, high) in plan.limits.items():
        told = f"Values of {column!r} below {low:,g} or above {high:,g} count as these."
        assert told in found.statement
        assert numbers["public"]["limits"][column] == [low, high]
    own = found.statement.find("is the agency's own: that it has the ε said below")
    assert (own >= 0) == (name == "own") and own < found.statement.index("ε = ")
    assert ("sums of scores" in found.statement) == (name == "Margins")
    for key, noisy in found.noisy.items():
        if isinstance(noisy, pd.DataFrame):
            back = pd.DataFrame(numbers["noisy"][key])
            assert [*back] == [*noisy] and len(back) == len(noisy) > 0
            assert (back.iloc[:, -1] == noisy.iloc[:, -1]).all()
    # account, statement and numbers name each other
    if name == "Published":
        assert numbers["account"] is None and account.total == 0
        return
    assert numbers["account"] == found.account == account.entries[-1]
    assert found.account["account"] == "children of 2025"
    assert found.account["digest"] == plan.digest
    assert "account by the name of children of 2025." in found.statement
    assert plan.digest in found.statement and "in that account" in found.statement


# ---- what stands in the way is found before it costs anything ------------------------------------


def unwritable(folder):
    """A folder in which nothing can be made, also by root."""
    if os.geteuid() == 0:
        return Path("/sys")
    folder.chmod(0o500)
    return folder


def standing(name):
    def put(folder):
        (folder / name).write_text("mine")
        return folder / "release.csv"

    return put


def linked(folder):
    (folder / "release.csv").symlink_to("nowhere")
    return folder / "release.csv"


OBSTACLES = {
    "a table": (standing("release.csv"), "there is a file 'release.csv' already"),
    "a statement": (standing("release.txt"), "there is a file 'release.txt' already"),
    "numbers": (standing("release.json"), "there is a file 'release.json' already"),
    "the plan": (lambda folder: folder / "plan.csv", "there is a file 'plan.json' al"),
    "a link": (linked, "there is a file 'release.csv' already"),
    "no folder": (lambda folder: folder / "no" / "release.csv", "there is no folder"),
    "a file": (lambda folder: folder / "plan.json" / "release.csv", "is no folder"),
    "unwritable": (
        lambda folder: unwritable(folder) / "release.csv",
        "nothing can be written in",
    ),
    "a long name": (lambda folder: folder / f"{'x' * 251}.csv", "name too long"),
    "the account": (
        lambda folder: folder.parent / "account.csv",
        "account.txt would be a file of the account and of the release",
    ),
    "no CSV": (lambda folder: folder / "release.parquet", "whose name ends in .csv"),
    "a full disk": (lambda folder: folder / "release.csv", "nothing can be written in"),
}


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    """A saved plan of each mechanism, and the folder where it is."""
    made = {}
    for name in MECHANISMS:
        made[name] = planned(name, year(1)), tmp_path_factory.mktemp("plan") / "folder"
        made[name][1].mkdir()
        made[name][0].save(made[name][1] / "plan.json")
    return made


@pytest.mark.parametrize("obstacle", OBSTACLES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_an_obstacle_costs_nothing_and_leaves_nothing(plans, full_disk, name, obstacle):
    plan, folder = plans[name]
    path, told = (OBSTACLES[obstacle][0](folder), OBSTACLES[obstacle][1])
    account = Account(folder.parent / "account.txt", budget=1)
    if obstacle == "the account" and not plan.epsilon:
        pytest.skip("nothing is entered")

    def there():
        return {
            file: file.is_file() and file.read_bytes()
            for place in (folder.parent, folder, path.parent)
            for file in (place.iterdir() if place.is_dir() else ())
            if not str(file).startswith("/sys")
        } | {"sys": {*os.listdir("/sys")}}

    before = there()
    if obstacle == "a full disk":
        # the numbers and the statement have room, the table has none
        full_disk(1000)
    with pytest.raises((OSError, ValueError), match=f"path:? .*{told}") as refused:
        plan.release(Confidential(year(2)), account=account, path=path)
    full_disk(resource.RLIM_INFINITY)
    assert there() == before and account.total == 0
    assert "\n" not in str(refused.value)
    folder.chmod(0o700)
    for file in {*folder.iterdir()} - {folder / "plan.json"}:
        file.unlink()


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_full_disk_of_the_account_costs_nothing(plans, full_disk, tmp_path, name):
    plan, _ = plans[name]
    if not plan.epsilon:
        pytest.skip("nothing is entered")
    account = Account(tmp_path / "account.jsonl", budget=1)
    before = account.files[0].read_bytes()
    full_disk(len(before) + 20)
    with pytest.raises(OSError, match="account: nothing is entered, .*too large"):
        plan.release(Confidential(year(2)), account=account)
    full_disk(resource.RLIM_INFINITY)
    assert account.total == 0 and account.files[0].read_bytes() == before
    assert len([*tmp_path.iterdir()]) == 2


def test_a_full_disk_leaves_no_piece_that_stands_in_the_way(plans, full_disk, tmp_path):
    _, folder = plans["Published"]
    plan = ReleasePlan.read(folder / "plan.json", year(1))
    found = plan.release(Confidential(year(2)))
    for save, name in ((plan.save, "again.json"), (found.save, "release.csv")):
        full_disk(200)
        with pytest.raises(
            OSError, match="path: nothing can be written in .*too large"
        ):
            save(tmp_path / name)
        full_disk(resource.RLIM_INFINITY)
        assert not (tmp_path / name).exists()
        save(tmp_path / name)
    assert {*os.listdir(tmp_path)} == {"again.json", *NAMES}
    # a plan may be saved where it is already
    plan.save(tmp_path / "again.json")


@dataclasses.dataclass(frozen=True, repr=False)
class Odd(OwnNoise):
    """What it returns at a call of this number, counted from 1, is not what it should be."""

    how: str = ""
    at: int = 1
    calls = []

    def release(self, table, plan, **noise):
        self.calls.append(len(self.calls) + 1)
        made = super().release(table, plan, **noise)
        if self.calls[-1] != self.at:
            return made
        changed = dataclasses.replace
        promised = made.guarantee
        parts = {
            "guarantee": promised,
            "noisy": made.noisy,
            "public": made.public,
            "synthetic": made.synthetic,
            "statement": made.statement,
        }
        odd = {
            "epsilon": lambda: {"guarantee": changed(promised, epsilon=7.0)},
            "kind": lambda: {"guarantee": changed(promised, kind="local")},
            "reasons": lambda: {"guarantee": changed(promised, reasons=("package",))},
            "no word": lambda: {"guarantee": changed(promised, reasons=("no such",))},
            "no cover": lambda: {"guarantee": Guarantee("strict", 0.5, (), "sum")},
            "no guarantee": lambda: {"guarantee": None},
            "no statement": lambda: parts.pop("statement") and {},
            "letters": lambda: {"statement": lambda: "A statement."},
            "NaN": lambda: {"synthetic": made.synthetic * np.nan},
            "one NaN": lambda: {
                "synthetic": np.where(np.arange(RECORDS), 1.0, np.nan)[None]
            },
            "masked": lambda: {
                "synthetic": np.ma.masked_less(made.synthetic, 3),
            },
            "another name": lambda: {"synthetic": {"child": made.synthetic}},
            "dates": lambda: {"synthetic": made.synthetic.astype("M8[D]")},
            "three axes": lambda: {"synthetic": made.synthetic[..., None]},
            "no synthetic": lambda: parts.pop("synthetic") is None or {},
            "published": lambda: plan.published.insert(0, "more", 1) or {},
            "short": lambda: {"synthetic": made.synthetic[:, 1:]},
            "tuples": lambda: {"public": {("a", "b"): 1}},
            "surrogate": lambda: {"public": {"a": "\udc80"}},
            "public": lambda: {"public": {"edges": [table["children"].max()]}},
        }
        return SimpleNamespace(**parts | odd[self.how]())


@pytest.mark.parametrize(
    ("how", "told"),
    {
        "epsilon": "mechanism must give a strict guarantee, and no more than the plan",
        "kind": "mechanism must give a strict guarantee",
        "no word": "reasons must be of 'unreached', .*'holders'; got 'no such'",
        "no cover": "covers must be of 'release', 'counts', .*'own'; got 'sum'",
        "no guarantee": "mechanism must return a ppm.release.Guarantee; got NoneType",
        "no statement": "SimpleNamespace has no 'statement'",
        "letters": r"mechanism: statement\(\) must return a list of sentences",
        "NaN": "mechanism's synthetic table must have finite numbers alone in 'children'",
        "one NaN": "mechanism's synthetic table must have finite numbers alone",
        "masked": "a synthetic value for each record; 'children' has masked ones",
        "another name": "of each confidential column by its name; 'children' is lacking",
        "dates": "mechanism must return numbers in 'children'; got datetime64",
        "three axes": r"synthetic values of shape \(1, \d+\), .* has \(1, \d+, 1\)",
        "no synthetic": "SimpleNamespace has no synthetic values",
        "published": "mechanism must leave plan.published as it is",
        "short": r"mechanism must return synthetic values of shape \(1, \d+\)",
        "tuples": "mechanism must release what CSV and JSON can hold: keys must be str",
        "surrogate": "mechanism must release what CSV and JSON can hold: 'utf-8' codec",
    }.items(),
)
def test_what_cannot_be_released_shows_in_the_trial(tmp_path, how, told):
    Odd.calls.clear()
    plan = planned("own", year(1), mechanism=Odd(how))
    plan.save(tmp_path / "plan.json")
    with pytest.raises(ValueError, match=told):
        plan.release(
            Confidential(year(2)),
            account=tmp_path / "account.jsonl",
            path=tmp_path / "release.csv",
        )
    assert [file.name for file in tmp_path.iterdir()] == ["plan.json"]


def writes(table):
    table["doubled"] = 2 * table["children"]


def recodes(table):
    table.loc[table["children"] > 3, "region"] = "N"


def sorts(table):
    table[:] = table.sort_values("children").to_numpy()


def drops(table):
    del table["region"]


@dataclasses.dataclass(frozen=True, repr=False)
class Writing(OwnNoise):
    """Writes into the table that it is given."""

    how: str = ""

    def release(self, table, plan, **noise):
        made = super().release(table, plan, **noise)
        globals().get(self.how, len)(table)
        return made


@pytest.mark.parametrize(
    ("how", "where"),
    [
        *itertools.product(["writes", "recodes", "drops"], ["release", "build"]),
        # a build that sorts is refused when the plan is saved
        ("sorts", "release"),
    ],
)
def test_nothing_that_is_written_into_a_table_is_released(tmp_path, how, where):
    def built(records):
        globals()[how](records)
        return ppm.GammaPoisson(records["children"], shape=2, rate=1)

    of_how = Writing(how) if where == "release" else Posterior(built, candidates)
    usual = Writing() if where == "release" else Posterior(build, candidates)
    tables = []
    for mechanism in (usual, of_how):
        settings = {"groups": (), "public": ["id", "region"], "mechanism": mechanism}
        plan = planned("own", year(1, id=np.arange(RECORDS)), **settings)
        plan.save(tmp_path / f"{plan.digest}.json")
        release = plan.release(
            Confidential(year(2, id=np.arange(RECORDS))),
            account=tmp_path / "account.jsonl",
            secure_noise=False,
            random_seed=1,
        )
        tables.append(release.synthetic)
    one, other = (table.drop(columns="children") for table in tables)
    pd.testing.assert_frame_equal(one, other)
    assert {*other} == {"id", "region"}


def test_numbers_that_are_hidden_or_none_are_null(tmp_path):
    hidden = {
        "masked": np.ma.masked_less([3, 200], 10),
        "none": [np.nan, 1.5, pd.NaT, np.float64(2)],
        "nested": {
            "array": np.array([[1.0, -np.inf]]),
            "day": datetime.date(2024, 1, 2),
        },
        "table": pd.DataFrame({"n": [np.inf, 2.0], "of": ["a", pd.NA]}),
    }
    release = planning.Release(pd.DataFrame(), "", None, hidden, {}, "")
    release.save(tmp_path / "release.csv")
    text = (tmp_path / "release.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["noisy"] == {
        "masked": [None, 200],
        "none": [None, 1.5, None, 2.0],
        "nested": {"array": [[1.0, None]], "day": "2024-01-02"},
        "table": [{"n": None, "of": "a"}, {"n": 2.0, "of": None}],
    }


@pytest.mark.parametrize("how", ["epsilon", "kind", "reasons", "public", "letters"])
def test_the_confidential_run_changes_nothing_that_is_promised(tmp_path, how):
    Odd.calls.clear()
    plan = planned("own", year(1), mechanism=Odd(how, at=2))
    plan.save(tmp_path / "plan.json")
    differs = how in ("epsilon", "kind", "reasons")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = plan.release(
            Confidential(year(2)),
            account=tmp_path / "account.jsonl",
            path=tmp_path / "release.csv",
        )
    assert len(Odd.calls) == 2
    assert [str(one.message)[:33] for one in caught] == [
        "mechanism promised something else"
    ] * differs
    own = noisy_guarantee(0.5, "own", secure=True, words=found.guarantee.words)
    assert found.guarantee == own and found.public == {"limits": plan.limits}
    assert "ε = 0.5 for the noisy sum and any number of releases" in found.statement
    assert "Counts, drawn anew." in found.statement
    assert (tmp_path / "release.txt").read_text("utf-8") == found.statement + "\n"


# ---- what happens after ε was entered ------------------------------------------------------------


@dataclasses.dataclass(frozen=True, repr=False)
class Lookup(OwnNoise):
    """Fails at a value that nobody published, and says which."""

    def release(self, table, plan, **noise):
        known = {*plan.published["children"]}
        if lacking := {*table["children"].tolist()} - known:
            raise KeyError(lacking.pop())
        return super().release(table, plan, **noise)


@pytest.mark.parametrize("how", ["NaN", "one NaN", "short", "lookup"])
def test_what_fails_with_the_confidential_table_alone_tells_nothing_of_it(
    tmp_path, how
):
    Odd.calls.clear()
    mechanism = Lookup() if how == "lookup" else Odd(how, at=2)
    plan = planned("own", year(1), mechanism=mechanism)
    plan.save(tmp_path / "plan.json")
    table = year(2)
    table.loc[7, "children"] = 8.0
    assert 8.0 not in plan.published["children"].to_numpy()
    with pytest.raises(RuntimeError, match="^mechanism failed with the conf") as told:
        plan.release(
            Confidential(table),
            account=tmp_path / "account.jsonl",
            path=tmp_path / "release.csv",
        )
    # no value, and no error behind this one that a log would show
    words = str(told.value)
    assert "8" not in words and "Epsilon is entered, and nothing is" in words
    assert told.value.__suppress_context__
    assert {*os.listdir(tmp_path)} == {
        "plan.json",
        "account.jsonl",
        "account.jsonl.last",
    }


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_disk_that_fills_after_epsilon_loses_no_release(
    plans, tmp_path, monkeypatch, elsewhere
):
    plan, _ = plans["Bins"]
    folder, temporary = tmp_path / "folder", tmp_path / "temporary"
    for place in (folder, temporary):
        place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    write, account = files.write, Account(tmp_path / "account.jsonl")

    def full(file, content):
        here = temporary in Path(file).parents
        if account.total and "account" not in file.name and not (elsewhere and here):
            raise OSError(errno.ENOSPC, "No space left on device")
        write(file, content)

    monkeypatch.setattr(files, "write", full)
    with pytest.raises(OSError, match="epsilon is entered, but .*No space") as told:
        plan.release(
            Confidential(year(2)), account=account, path=folder / "release.csv"
        )
    assert account.total == Decimal("0.5") and not [*folder.iterdir()]
    if elsewhere:
        (place,) = temporary.iterdir()
        assert str(told.value).endswith(f"it is in {place}")
        assert {one.name for one in place.iterdir()} == NAMES
        where = place / "release.csv"
    else:
        monkeypatch.undo()
        where = tmp_path / "release.csv"
        told.value.release.save(where)
    children = told.value.release.synthetic["children"]
    assert pd.read_csv(where)["children"].equals(children)


def test_an_interrupt_after_epsilon_loses_no_release(plans, tmp_path, monkeypatch):
    plan, _ = plans["Bins"]
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    placed, calls = files._placed, []

    def interrupted(*given):
        calls.append(given)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return placed(*given)

    monkeypatch.setattr(files, "_placed", interrupted)
    (tmp_path / "folder").mkdir()
    with pytest.raises(KeyboardInterrupt) as told:
        plan.release(
            Confidential(year(2)),
            account=tmp_path / "account.jsonl",
            path=tmp_path / "folder" / "release.csv",
        )
    (note,) = told.value.__notes__
    where = Path(note.removeprefix(note.partition("it is in ")[0] + "it is in "))
    children = told.value.release.synthetic["children"]
    assert pd.read_csv(where / "release.csv")["children"].equals(children)
    assert not [*(tmp_path / "folder").iterdir()]


NAMES = {"release.csv", "release.txt", "release.json"}


@pytest.mark.parametrize("meddled", sorted(NAMES))
def test_a_file_that_appears_meanwhile_is_not_overwritten(
    plans, tmp_path, monkeypatch, meddled
):
    plan, _ = plans["Bins"]
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / "folder"
    folder.mkdir()
    enter = Account.enter

    def entered(*args, **settings):
        (folder / meddled).write_text("another process")
        return enter(*args, **settings)

    monkeypatch.setattr(Account, "enter", entered)
    with pytest.raises(OSError, match="epsilon is entered, but .*File exists"):
        plan.release(
            Confidential(year(2)),
            account=tmp_path / "account.jsonl",
            path=folder / "release.csv",
        )
    assert [file.name for file in folder.iterdir()] == [meddled]
    assert (folder / meddled).read_text() == "another process"
    (place,) = tmp_path.glob("release-*")
    assert {one.name for one in place.iterdir()} == NAMES


def test_files_are_as_open_to_others_as_all_that_are_written_here(plans, tmp_path):
    plan, _ = plans["Published"]
    (tmp_path / "plain").write_text("")
    plan.release(Confidential(year(2)), path=tmp_path / "release.csv")
    modes = {file.stat().st_mode for file in tmp_path.iterdir()}
    assert len(modes) == 1 and {*os.listdir(tmp_path)} == {"plain", *NAMES}


def killed(*_, **__):
    os._exit(9)


def kill(step, patch):
    """Let this process be killed at a step of a release."""

    def after(owner, name, when):
        function = getattr(owner, name)

        def called(*args, **settings):
            function(*args, **settings)
            if when(*args):
                killed()

        patch.setattr(owner, name, called)

    draw, drawn = planning.draw, []

    def third(*args, **settings):
        drawn.append(args)
        return draw(*args, **settings) if len(drawn) < 3 else killed()

    if step == "before the copy":
        after(accounts, "pour", lambda file, line: b"epsilon" in line)
    elif step == "after a name":
        after(Path, "replace", lambda old, new: Path(new).suffix == ".csv")
    elif step:
        name, function = {
            "before the entry": ((Account, "enter"), killed),
            "in the entry": ((accounts, "pour"), killed),
            "in the draw": ((planning, "draw"), third),
            "before the files": ((files, "_placed"), killed),
            "before the names": ((Path, "touch"), killed),
        }[step]
        patch.setattr(*name, function)


STEPS = {
    "before the entry": "0",
    "in the entry": "0",
    "before the copy": "0.5",
    "in the draw": "0.5",
    "before the files": "0.5",
    "before the names": "0.5",
    "after a name": "0.5",
}


@pytest.mark.filterwarnings("ignore:.*fork")
@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_is_killed_leaves_no_piece_and_stands_in_no_way(
    plans, tmp_path, step
):
    plan, _ = plans["Means"]
    plan.save(tmp_path / "plan.json")

    def run(step):
        """How a process ends that makes a release."""
        if process := os.fork():
            return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        try:
            kill(step, pytest.MonkeyPatch())
            plan.release(
                Confidential(year(2)),
                account=tmp_path / "account.jsonl",
                path=tmp_path / "release.csv",
                again=True,
            )
            os._exit(0)
        finally:
            os._exit(1)

    assert run(step) == 9
    assert Account(tmp_path / "account.jsonl").total == Decimal(STEPS[step])
    there = {*os.listdir(tmp_path)} & NAMES
    assert there == ({"release.csv"} if step == "after a name" else set())
    if there:
        # whole, and the others are beside it
        assert len(pd.read_csv(tmp_path / "release.csv")) == RECORDS
        (hidden,) = tmp_path.glob(".ppm-*")
        assert {*os.listdir(hidden)} | there == NAMES
        return
    assert run("") == 0
    assert {*os.listdir(tmp_path)} & NAMES == NAMES
    total = Decimal(STEPS[step]) + Decimal("0.5")
    assert Account(tmp_path / "account.jsonl").total == total
