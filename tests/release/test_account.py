"""An account of ε: exact, appended to by one process at a time, and refused once it was changed."""

import multiprocessing
import resource
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppm.release import Account, files
from ppm.release import account as room


@pytest.fixture
def three(tmp_path):
    """An account with three entries."""
    account = Account(tmp_path / "account.jsonl", budget=0.4)
    for number in range(3):
        account.enter(0.1, f"table {number}")
    return account


@given(st.lists(st.floats(0.0, 1e6), max_size=20))
def test_the_sum_is_exact_and_no_entry_lowers_it(tmp_path_factory, amounts):
    account = Account(tmp_path_factory.mktemp("account") / "account.jsonl")
    totals = [Decimal(account.enter(one, "table")["total"]) for one in amounts]
    meant = [Fraction(repr(one)) for one in amounts]
    assert Fraction(account.total) == sum(meant)
    assert totals == sorted(totals)
    assert [Fraction(one["epsilon"]) for one in account.entries] == meant


def test_each_line_says_what_when_and_how_much(three):
    entry = three.entries[-1]
    assert (entry["what"], entry["epsilon"], entry["total"]) == (
        "table 2",
        "0.1",
        "0.3",
    )
    assert entry["time"].endswith("+00:00")
    # floating point has another sum
    assert three.total == Decimal("0.3") != Decimal(0.1 + 0.1 + 0.1)


CHANGES = {
    "the first line removed": lambda lines: lines[1:],
    "a line removed": lambda lines: [*lines[:2], lines[3]],
    "the last line removed": lambda lines: lines[:3],
    "all lines removed": lambda lines: [],
    "lines exchanged": lambda lines: [lines[0], lines[2], lines[1], lines[3]],
    "the budget raised": lambda lines: [lines[0].replace("0.4", "0.9"), *lines[1:]],
    "an entry lowered": lambda lines: [
        lines[0],
        lines[1].replace('"0.1"', '"0.01"'),
        *lines[2:],
    ],
    "the last one lowered, and its total": lambda lines: [
        *lines[:3],
        lines[3].replace('"0.1"', '"0.05"').replace('"0.3"', '"0.25"'),
    ],
    "its words changed": lambda lines: [*lines[:3], lines[3].replace("table", "tabel")],
    "the last line torn": lambda lines: [*lines[:3], lines[3][:-9]],
    "no account at all": lambda lines: ["income,region\n"],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_line_that_was_changed_or_removed_is_found_and_nothing_is_entered(
    three, change
):
    lines = Path(three.path).read_text().splitlines(keepends=True)
    changed = "".join(change(lines))
    Path(three.path).write_text(changed)
    for use in (lambda: three.total, lambda: three.enter(0.1, "table 3")):
        with pytest.raises(ValueError, match="account: .*(written|changed)"):
            use()
    assert Path(three.path).read_text() == changed
    Path(three.path).write_text("".join(lines))
    assert three.total == Decimal("0.3")


def test_an_account_without_its_second_file_is_refused(three):
    Path(f"{three.path}.last").unlink()
    with pytest.raises(ValueError, match="account.jsonl.last"):
        _ = three.total


def test_a_crash_between_line_and_note_leaves_the_entry(three, monkeypatch):
    monkeypatch.setattr(room.Path, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        three.enter(0.1, "table 3")
    monkeypatch.undo()
    assert three.total == Decimal("0.4")
    with pytest.raises(ValueError, match="budget"):
        three.enter(0.1, "table 4")
    three.enter(0.0, "table 4")
    assert three.total == Decimal("0.4")


@pytest.mark.parametrize("crashes", [1, 2, 3])
def test_interrupted_entries_count_and_close_no_account(three, monkeypatch, crashes):
    def killed(file, line):
        files.pour(file, line)
        raise ZeroDivisionError

    for number in range(crashes):
        monkeypatch.setattr(room, "pour", killed)
        with pytest.raises(ZeroDivisionError):
            three.enter(0.01, f"interrupted {number}")
        monkeypatch.undo()
    assert three.total == Decimal("0.3") + crashes * Decimal("0.01")
    lines = Path(three.path).read_bytes().splitlines(keepends=True)
    assert three.files[1].read_bytes() == lines[-1]


@pytest.mark.parametrize("behind", [1, 2])
def test_what_two_crashes_of_the_older_library_left_is_mended(three, behind):
    lines = Path(three.path).read_bytes().splitlines(keepends=True)
    three.files[1].write_bytes(lines[-1 - behind])
    assert Account(three.path).total == Decimal("0.3")
    assert three.files[1].read_bytes() == lines[-1]
    # but the copy is never ahead of the lines
    Path(three.path).write_bytes(b"".join(lines[:-1]))
    with pytest.raises(ValueError, match="lines are missing, or were changed"):
        _ = three.total


@pytest.mark.parametrize("left", [9, -1])
def test_a_piece_of_a_line_is_no_entry(three, left):
    whole = Path(three.path).read_bytes()
    entry = whole.splitlines(keepends=True)[-1]
    Path(three.path).write_bytes(whole + entry[:left])
    assert three.total == Decimal("0.3") and Path(three.path).read_bytes() == whole
    Path(three.path).write_bytes(whole + entry[:left])
    three.enter(0.1, "table 3")
    assert Account(three.path).total == Decimal("0.4")
    # a piece of a line that was copied is of an entry that counts
    Path(three.path).write_bytes(whole)
    with pytest.raises(ValueError, match="lines are missing, or were changed"):
        _ = three.total


@pytest.mark.parametrize("left", [1, 12, -1])
def test_a_piece_of_the_first_line_is_no_account_yet(tmp_path, left):
    path = tmp_path / "account.jsonl"
    Account(path, budget=1)
    path.write_bytes(path.read_bytes()[:left])
    Path(f"{path}.last").unlink()
    account = Account(path, budget=1)
    account.enter(0.5, "table 1")
    assert Account(path).total == Decimal("0.5") and Account(path).budget == 1


@pytest.mark.parametrize(
    "text",
    [
        '{"table": "incomes", "rows": [1, 2]}',
        '{"table": 5',
        '{"table": null, "rows": 3}',
        '{"tables": 1}',
        "words",
    ],
)
def test_a_file_that_is_no_account_stays_as_it_is(tmp_path, text):
    (file := tmp_path / "mine.json").write_text(text)
    for settings in ({}, {"budget": 1}):
        with pytest.raises(ValueError, match="^account: line 1 is not as it was"):
            Account(file, **settings)
    assert file.read_text() == text and [*tmp_path.iterdir()] == [file]


@pytest.mark.parametrize("lost", ["moved away", "an older copy", "the last line"])
def test_an_open_account_forgets_nothing(three, lost):
    files = [Path(file) for file in three.files]
    older = [file.read_bytes() for file in files]
    three.enter(0.05, "one more")
    if lost == "moved away":
        for file in files:
            file.rename(file.with_suffix(".old"))
    elif lost == "an older copy":
        for file, content in zip(files, older, strict=True):
            file.write_bytes(content)
    else:
        *lines, _ = files[0].read_bytes().splitlines(True)
        files[0].write_bytes(b"".join(lines))
        files[1].write_bytes(lines[-1])
    for ask in (lambda: three.total, lambda: three.enter(0.01, "another")):
        with pytest.raises(
            ValueError, match="^account: account.jsonl (is gone|lacks l)"
        ):
            ask()


@pytest.mark.parametrize("room_for", ["nothing", "the copy", "a piece"])
def test_an_entry_that_cannot_be_written_is_none(three, full_disk, room_for):
    before, copied = (file.read_bytes() for file in three.files)
    most = {"nothing": 0, "the copy": 400, "a piece": len(before) + 50}[room_for]
    full_disk(most)
    with pytest.raises(OSError, match="account: nothing is entered, .*too large"):
        three.enter(0.1, "table 3")
    assert [file.read_bytes() for file in three.files] == [before, copied]
    full_disk(resource.RLIM_INFINITY)
    assert sorted(file.name for file in three.files[0].parent.iterdir()) == [
        "account.jsonl",
        "account.jsonl.last",
    ]
    three.enter(0.1, "table 3")
    assert three.total == Decimal("0.4")


def test_a_budget_and_a_name_are_written_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Account("account.jsonl").total == 0 and not [*tmp_path.iterdir()]
    Account("account.jsonl", budget=1, table="incomes of 2025")
    # what a plan does that is given the path
    Account("account.jsonl").enter(0.5, "a table", digest="a")
    Account("account.jsonl").enter(0.5, "a table", digest="b")
    with pytest.raises(ValueError, match="budget of 1; with 0.5 the sum would be 1.5"):
        Account("account.jsonl").enter(0.5, "a table", digest="c")
    entries = Account("account.jsonl").entries
    assert [one["account"] for one in entries] == ["incomes of 2025"] * 2


def test_an_account_without_a_budget_can_be_given_one_and_no_other(tmp_path):
    path = tmp_path / "account.jsonl"
    for _ in range(3):
        Account(path).enter(0.5, "a table")
    assert Account(path).entries[0]["account"] == "account.jsonl"
    with pytest.raises(ValueError, match="budget must be no less than .* 1.5; got 1"):
        Account(path, budget=1)
    assert Account(path).budget is None
    Account(path, budget=2)
    assert Account(path, table="incomes").budget == 2.0
    with pytest.raises(ValueError, match="budget must be left out, or be .* 2.0"):
        Account(path, budget=3)
    # nor by a line that follows from the others
    forged = {"table": None, "budget": 9.0}
    with open(path, "ab", buffering=0) as file:
        Account(path)._append(file, forged, path.read_bytes().splitlines(True)[-1])
    again = Account(path)
    assert (again.total, again.budget, again.table) == (Decimal("1.5"), 2.0, "incomes")
    with pytest.raises(ValueError, match="epsilon must keep .* budget of 2"):
        again.enter(0.6, "a table")


def test_an_account_at_its_budget_takes_that_budget_and_a_name(tmp_path):
    path = tmp_path / "account.jsonl"
    for _ in range(3):
        # 0.1 + 0.2 is above 0.3 in floating point
        Account(path).enter(0.1, "a table")
    for _ in range(2):
        assert Account(path, budget=0.3).total == Decimal("0.3")
    assert Account(path, budget=0.3, table="incomes").table == "incomes"
    assert Account(path).budget == 0.3 and len(Account(path).entries) == 3
    with pytest.raises(ValueError, match="epsilon must keep .* budget of 0.3"):
        Account(path).enter(1e-9, "a table")


def test_an_account_stays_where_it_was_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "linked.jsonl").symlink_to("account.jsonl")
    account = Account("account.jsonl", budget=1)
    account.enter(0.9, "a table")
    monkeypatch.chdir("other")
    for same in (account, Account("../account.jsonl"), Account("../linked.jsonl")):
        with pytest.raises(ValueError, match="epsilon must keep .* budget of 1"):
            same.enter(0.9, "another one")
    assert not [*(tmp_path / "other").iterdir()]


def test_no_message_sends_to_an_older_copy(three):
    Path(three.path).write_bytes(b"")
    with pytest.raises(ValueError, match="begin a new account, and enter first the su"):
        Account(three.path)


def test_a_budget_refuses_before_anything_is_entered(tmp_path):
    account = Account(tmp_path / "account.jsonl", budget=0.3)
    for _ in range(3):
        # 0.1 + 0.2 is above 0.3 in floating point
        account.enter(0.1, "table")
    with pytest.raises(ValueError, match="epsilon must keep .* budget of 0.3"):
        account.enter(1e-9, "table")
    assert len(account.entries) == 3
    # it belongs to the account, whoever opens it
    with pytest.raises(ValueError, match="epsilon must keep .* budget of 0.3"):
        Account(account.path).enter(0.1, "table")
    for other in (0.2, 5.0):
        with pytest.raises(ValueError, match="budget must be left out, or .* 0.3"):
            Account(account.path, budget=other)
    early = Account(tmp_path / "other.jsonl")
    Account(early.path, budget=0.3, table="incomes").enter(0.1, "table")
    # also whoever opened it before it had one
    with pytest.raises(ValueError, match="epsilon must keep .* budget of 0.3"):
        early.enter(0.3, "table")
    assert early.table == "incomes"
    with pytest.raises(ValueError, match="table must be left out, or .* incomes"):
        Account(early.path, table="spending")


@pytest.mark.parametrize("path", [None, 5, 0.25, True, b"x"])
def test_only_a_path_is_an_account(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="account must be a path or a ppm.release.Acc"):
        Account(path)
    for place in ("folder/account.jsonl", tmp_path):
        with pytest.raises(ValueError, match="account must be a file in a folder that"):
            Account(place)
    assert not [*tmp_path.iterdir()]


def test_a_digest_is_entered_once_unless_told(tmp_path):
    account = Account(tmp_path / "account.jsonl")
    account.enter(0.1, "table", digest="a")
    with pytest.raises(ValueError, match="plan must not be released twice"):
        account.enter(0.1, "table", digest="a")
    account.enter(0.1, "table", digest="b")
    account.enter(0.1, "table", digest="a", again=True)
    assert account.total == Decimal("0.3")


@pytest.mark.parametrize("epsilon", [-0.1, float("nan"), float("inf"), "1", True])
def test_an_amount_that_is_none_is_refused(three, epsilon):
    with pytest.raises(ValueError, match="epsilon must be a finite number"):
        three.enter(epsilon, "table")
    assert len(three.entries) == 3


def enter_many(path, locked, together):
    """Entries by one process, which does not lock if it is told so."""
    if not locked:
        import fcntl

        fcntl.flock = lambda *_: None
    together.wait()
    for number in range(40):
        Account(path).enter(0.001, f"table {number}")


def lines_of_two_processes(path, locked):
    """Whether two processes ended well, and the sum of what they entered at the same time."""
    context = multiprocessing.get_context("fork")
    together = context.Barrier(2)
    both = [
        context.Process(target=enter_many, args=(path, locked, together))
        for _ in range(2)
    ]
    for one in both:
        one.start()
    for one in both:
        one.join()
    return [one.exitcode for one in both]


@pytest.mark.filterwarnings("ignore:.*fork")
def test_two_processes_at_once_lose_no_line(tmp_path):
    path = tmp_path / "account.jsonl"
    assert lines_of_two_processes(path, locked=True) == [0, 0]
    assert Account(path).total == Decimal("0.08")
    # without the lock, lines follow from none, and one of the processes meets them
    broken = tmp_path / "broken.jsonl"
    assert lines_of_two_processes(broken, locked=False) != [0, 0]
