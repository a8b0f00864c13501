"""What chapters show, save and keep."""

import itertools
import json
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest
from survey_files import csv_text, unit

import ppm
from ppm_book.chapters import household, page, running, sentences, survey
from ppm_book.chapters.ledger_values import measured

TABLE = pd.DataFrame({"bound": [10.1234, 1234.5]}, index=["a", "b"])
VALUES = {"a bound": measured([1.5, np.inf], np.nan, "few")}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Folder of a run."""
    monkeypatch.setenv("PPM_RESULTS", str(tmp_path))
    monkeypatch.setenv("PPM_FITS", str(tmp_path / "fits"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_table_shows_rounded_numbers_and_one_row_of_headings():
    html = page.table(TABLE.rename_axis("setting"), "B.", digits=1).to_html()
    assert all(told in html for told in ("10.1", "1,234.5", "B."))
    assert html.count("<tr>") == 3 and ">setting</th>" in html


def test_what_a_run_saves_is_read_back_with_the_kind_of_its_data(run):
    page.save(TABLE, "bounds")
    pd.testing.assert_frame_equal(pd.read_csv(run / "bounds.csv", index_col=0), TABLE)
    data = survey.load()
    some = data.subsample(60, random_seed=1)
    for given, kind, part in (
        (None, "drawn", False),
        (data, "diary", False),
        (some, "diary", True),
    ):
        page.save_values(VALUES, data=given)
        saved = json.loads((run / "values.json").read_text("utf-8"))
        assert (saved["data"], saved["part"]) == (kind, part)
        # what is not finite becomes null
        told = {"value": [1.5, None], "error": [None, None], "doubt": "few"}
        assert saved["values"] == {"a bound": told}


MODULE = """
import numpy as np

def largest(bounds, called):
    called.append("largest")
    return np.max(bounds)

def of_nobody():
    return np.max([])

CLAIMS = {
    "rose": lambda largest: largest > 0,
    "fell": lambda largest: largest < 0,
    "no-such-record": lambda: None,
    "of-nobody": lambda of_nobody: of_nobody > 0,
    "warns": lambda: np.mean([]) < 0,
    "many": lambda bounds: bounds > 0,
    "misspelt": lambda bound: bound > 0,
}
NUMBERS = {
    "largest": lambda largest: f"{largest:.2f}",
    "of nobody": lambda of_nobody: f"{of_nobody:.2f}",
    "absent": lambda: None,
    **{f"of {place}": lambda bounds, at=place: f"{bounds[at]:.0f}" for place in (0, 1)},
}
"""


def test_a_claim_is_told_by_itself_and_none_where_its_condition_fails_or_warns(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "chapter.py").write_text(MODULE, "utf-8")
    monkeypatch.setattr(page, "CLAIMS", tmp_path)
    shown, called = [], []

    def display(shows, **about):
        shown.append((shows, about))

    monkeypatch.setattr("IPython.display.display", display)
    names = {"bounds": np.array([1.0, 2.0]), "called": called, "largest": "another"}
    page.check_claims("chapter", names)
    (told, _), *glued, (numbers, _) = shown
    told = told._repr_mimebundle_()
    untold = ("no-such-record", "of-nobody", "warns", "many", "misspelt")
    assert told[page.CLAIMS_TYPE] == {
        "rose": True,
        "fell": False,
        **dict.fromkeys(untold),
    }
    assert json.loads(json.dumps(told)) == told
    # without the chapter's source each claim is told by its name
    assert told["text/plain"].splitlines() == [
        "1 of 7 claims of the text hold in this run.",
        "Not in this run, or not surely:",
        "- fell",
        "This run cannot tell:",
        *(f"- {name}" for name in untold),
    ]
    assert [line.split()[-1] for line in numbers["text/plain"].splitlines()] == [
        *("here", "2.00", "–", "–", "1", "2")
    ]
    assert numbers["text/html"].count("<tr") == 6
    numbers = {
        about["metadata"]["scrapbook"]["name"]: [*text.values()]
        for text, about in glued
    }
    assert numbers == {"largest": ["'2.00'"], "of 0": ["'1'"], "of 1": ["'2'"]}
    # what several entries need is computed once
    assert called == ["largest"]
    faults = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert [*faults] == ["of-nobody", "warns", "many", "misspelt", "of nobody"]
    assert faults["warns"].startswith("RuntimeWarning: Mean of empty")
    assert faults["misspelt"].endswith("neither the notebook nor its claims have bound")


CHAPTER = """# Bounds

They {ref}`rose<rose>`<!--claim: rose-->. They
fell{numref}`fig-it`<!--claim: fell--> to {glue:text}`largest`, and {glue:text}`of nobody`<!--claim: many-->.
"""


def test_a_claim_that_does_not_hold_is_told_by_its_sentence(tmp_path, monkeypatch):
    (tmp_path / "notebooks").mkdir()
    cells = [nbformat.v4.new_markdown_cell(CHAPTER)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbformat.write(notebook, tmp_path / "notebooks" / "chapter.ipynb")
    (tmp_path / "chapter.py").write_text(MODULE, "utf-8")
    monkeypatch.setattr(page, "CLAIMS", tmp_path)
    monkeypatch.setattr(running, "ROOT", tmp_path)
    shown = []
    monkeypatch.setattr(
        "IPython.display.display", lambda shows, **_: shown.append(shows)
    )
    page.check_claims("chapter", {"bounds": np.array([1.0, 2.0]), "called": []})
    _, heading, fell, untold, *others = repr(shown[0]).splitlines()
    assert (heading, untold) == (
        "Not in this run, or not surely:",
        "This run cannot tell:",
    )
    # with this run's numbers, and a reference by its label
    assert fell == "- They fell`fig-it` to 2.00, and –."
    assert others[-2:] == [fell, "- misspelt"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # § is where its mark stands
        ("First. It rose§. Last.", "It rose."),
        ("First. It rose.§ Last.", "It rose."),
        ("First? It **rose**.§ Last!", "It **rose**."),
        ("It rose,\nand fell§", "It rose, and fell"),
        ("Before.\n\nIt rose§.\n\nAfter.", "It rose."),
        ("Three\n- one\n  goes on§\n- two", "one goes on"),
        ("1. one. It rose§\n2. two", "It rose"),
        (":::{note} Title\n:class: tip\nIt rose§.\n:::\nMore.", "It rose."),
        # a cell of a table, with the head of its row
        (
            "|a|b|c|d|\n|-|-|-|-|\n|row |first| It rose.§ |e|\n|next|x|y|z|",
            "row: It rose.",
        ),
        ("|a|b|\n|-|-|\n|row|last|\n|it§|x|", "it"),
    ],
)
def test_the_sentence_of_a_claim_ends_where_a_reader_s_eye_does(text, words):
    place = text.index("§")
    assert sentences.sentence(text.replace("§", ""), place) == words


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (list[int], [50, 200], ["[50, 200]", 50, [50.0], ["50"], (50,)]),
        (list[list[float]], [[0.7, 0]], [[0.7, 0], "[[0.7, 0.0]]", [["0.7"]]]),
        (int, 3, [3.0, "3", True, None, [3]]),
        (float, 3, ["3", True, None]),
        (str, "", [None, 0, ["a"]]),
    ],
)
def test_a_parameter_of_another_type_is_refused_by_its_name(kind, good, bad):
    cell = {"__annotations__": {"one": kind}, "another": "a name of no parameter"}
    page.check_parameters(cell | {"one": good})
    page.check_parameters({})
    for value in bad:
        with pytest.raises(TypeError, match="^one must be ") as refused:
            page.check_parameters(cell | {"one": value})
        # a notebook shows this line alone
        assert refused.value._render_traceback_() == [f"TypeError: {refused.value}"]
        assert ("-y 'one: […]'" in str(refused.value)) == ("list" in str(kind))


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        ("python bin/papermill a.ipynb out.ipynb -p draws 40", "out_results"),
        ("python -m papermill -k python3 a.ipynb b/out.ipynb", "b/out_results"),
        # a folder that is not there, an output that is no file here, and another program
        ("python -m papermill a.ipynb c/out.ipynb", None),
        ("python -m papermill a.ipynb -", None),
        ("python -m jupyterlab a.ipynb out.ipynb", None),
        ("bash", None),
        ("", None),
    ],
)
def test_tables_of_plain_papermill_lie_beside_its_output(
    tmp_path, monkeypatch, command, folder
):
    (tmp_path / "b").mkdir()
    parent = SimpleNamespace(cmdline=command.split, cwd=lambda: str(tmp_path))
    started = SimpleNamespace(parent=lambda: parent if command else None)
    monkeypatch.setattr("psutil.Process", lambda: started)
    monkeypatch.delenv("PPM_RESULTS", raising=False)
    page.save(TABLE, "bounds")
    files = [str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.csv")]
    assert files == ([f"{folder}/bounds.csv"] if folder else [])
    # which only their owner opens
    assert not folder or (tmp_path / folder).stat().st_mode & 0o077 == 0


def test_claims_do_not_count_for_what_other_results_are_kept_by(tmp_path):
    (claims := tmp_path / "claims").mkdir()
    digests = []
    for text in ("CLAIMS = {}", "CLAIMS = {1: 2}"):
        (claims / "chapter.py").write_text(text)
        digests.append(
            [running.digest(tmp_path), running.digest(claims / "chapter.py")]
        )
    (together, alone), (together_then, alone_then) = digests
    assert together == together_then and alone != alone_then


@pytest.mark.parametrize(
    ("one", "other", "sure"),
    [
        # the error of the difference is 0.1
        ((1, 0.06), (1.21, 0.08), True),
        ((1, 0.06), (1.19, 0.08), False),
        ((1.21, 0.06), (1, 0.08), False),
        ((1, 0), (1, 0), False),
        ((1, 0), (1.01, 0), True),
        ((1, np.nan), (9, 0), False),
        (
            ([1, 1], [0.06, 0]),
            (pd.Series([1.21, 1.19]), pd.Series([0.08, 0.1])),
            [True, False],
        ),
    ],
)
def test_a_number_is_surely_less_by_two_errors_of_the_difference(one, other, sure):
    assert np.array_equal(page.surely_less(one, other), sure)


def kept(text, *given):
    """A function of this text, kept, and the arguments that it was really called with."""
    called = []

    def function(*arguments, **options):
        called.append(arguments)
        return {"sum": np.sum(arguments), "parts": np.array(arguments), **options}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running.inspect, "getsource", lambda function: text)
        return running.kept(*given)(function), called


def test_a_kept_result_comes_back_only_for_the_same_text_arguments_and_packages(
    run, monkeypatch
):
    (run / "fits").mkdir()
    (run / "fits").chmod(0o755)
    kept("def f", 2022)[0](1.0, 2.0)
    again, called = kept("def f", 2022)
    found = again(1.0, 2.0)
    assert found["sum"] == 3.0 and found["parts"].tolist() == [1.0, 2.0] and not called
    # an argument that is given by its name counts as well
    assert [again(1.0, 2.0, thin=thin)["thin"] for thin in (5, 2)] == [5, 2]
    others = [kept("def f, changed", 2022), kept("def f", 2023), kept("def f", 2022)]
    monkeypatch.setattr(running, "_packages", lambda: "another version")
    others.append(kept("def f", 2022))
    for (function, calls), argument in zip(others, (2.0, 2.0, 3.0, 2.0), strict=True):
        function(1.0, argument)
        assert len(calls) == 1
    # it is the owner's, and says that it is confidential
    note = (run / "fits" / running.NOTE_FILE).read_text("utf-8")
    assert note.startswith(
        "The contents of this folder were computed from records: the confidential file."
    )
    (run / "fits" / running.NOTE_FILE).unlink()
    files = [*(run / "fits").rglob("*")]
    assert sum(file.suffix == ".joblib" for file in files) == 7
    assert not any(file.stat().st_mode & 0o077 for file in [run / "fits", *files])
    # what other versions left is removed when a book stands
    running.forget_fits(run / "fits")
    assert len([*(run / "fits").rglob("*.joblib")]) == 4


RULE = """import dataclasses, numpy as np, ppm
@dataclasses.dataclass(frozen=True)
class Mine(ppm.Rule):
    def terms(self, model, fit):
        return ppm.Terms(np.full(model.records, {}))
"""


@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: ppm.OneWeight(like=one)])
def test_a_rule_of_ones_own_counts_by_what_it_does(run, tmp_path, monkeypatch, wrap):
    """Its name and its settings may be those of an earlier one."""

    def rule(weight):
        (file := tmp_path / f"{weight}" / "mine.py").parent.mkdir(exist_ok=True)
        file.write_text(RULE.format(weight))
        spec = spec_from_file_location("mine", file)
        module = module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "mine", module)
        spec.loader.exec_module(module)
        return wrap(module.Mine())

    def called(rule, given=()):
        calls = []

        @running.kept(*given)
        def fitted(*arguments):
            calls.append(arguments)

        fitted(rule)
        return len(calls)

    assert [called(rule(weight)) for weight in (1.0, 1.0, 0.5)] == [1, 0, 1]
    # in what is given besides the arguments, too
    found = [called("an argument", [[rule(weight)]]) for weight in (1.0, 1.0, 0.5)]
    assert found == [1, 0, 1]


def test_a_fit_that_stops_leaves_nothing_and_outside_a_run_nothing_is_written(
    run, monkeypatch
):
    def stops(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        running.kept()(stops)(1.0)
    for name in ("PPM_FITS", "PPM_RESULTS"):
        monkeypatch.delenv(name)
    kept("def f")[0](1.0)
    page.save(TABLE, "bounds")
    page.save_values(VALUES, data=None)
    assert not list(run.iterdir())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fmli171x.csv", "interview"),
        ("fmli172.csv", "other"),
    ],
)
def test_only_the_papers_own_quarter_counts_as_the_papers(tmp_path, name, kind):
    (tmp_path / name).write_text(csv_text(*map(unit, range(3))))
    data = survey.load(tmp_path / name)
    assert page.data_kind(data) == kind
    # the sentence that a reader sees says the same
    assert (kind == "interview") != any(
        "2017 Q1" in told for told in data.substitutions
    )
    assert page.data_kind(data.subsample(2, random_seed=1)) == "other"
    # nor is a year the paper's quarter
    (tmp_path / "fmli174.csv").write_text(csv_text(*map(unit, range(3, 6))))
    assert page.data_kind(survey.load(tmp_path, quarters="all")) == "other"


def test_a_moving_picture_computes_each_frame_once_and_no_word_of_it_ends_its_script():
    def frame(a, b):
        return f"{min(a, b)} </script><b>", [{"bars": np.array([a / 3, 1.0])}]

    sliders = {"One a": {"1": 1, "2": 2}, "Other b": {"4": 4, "5": 5, "6": 6}}
    panels = [{"outline": np.array([2 / 3])}]
    options = {"panels": panels, "start": [2, 5], "hint": "Try."}
    picture = page.moving("Two", sliders, frame, **options)
    assert picture.data.count("</script>") == 1 and "<b>" not in picture.data
    content = json.loads(re.search(r"<script[^>]*>(.*)</script>", picture.data)[1])
    assert content == json.loads(json.dumps(picture.content))
    # row by row, the last slider moves first
    assert content["at"] == [0, 0, 0, 1, 1, 1]
    assert [now[0]["bars"] for _, now in content["frames"]] == [
        [0.333, 1.0],
        [0.667, 1.0],
    ]
    (panel,) = content["panels"]
    assert panel == {"outline": [0.667], "heights": [0, 1.0]}
    assert content["hint"] == "Try."
    first = page.moving("Two", sliders, frame, panels=panels).content
    both = [[slider["at"] for slider in of["sliders"]] for of in (content, first)]
    assert both == [[1, 1], [0, 0]]


def test_the_words_on_a_household_that_leaves_are_those_of_its_panels():
    content = household.moving("", draws=300).content
    places = [*itertools.product(*(slider["shown"] for slider in content["sliders"]))]
    for (who, _), at in zip(places, content["at"], strict=True):
        said, (weights, ratio, released) = content["frames"][at]
        away = household.HOUSEHOLDS.index(who)
        assert weights["bars"][away] == 0.0 and f"Without {who} " in said
        assert np.delete(weights["bars"], away).tolist() == pytest.approx(
            np.delete(weights["outline"], away).tolist()
        )
        (epsilon,) = re.findall(r"ε of one release = (\S+) nats", said)
        twice = pytest.approx(float(epsilon), abs=0.006)
        (above, words), (below, _) = ratio["across"]
        assert (above, -below, words) == (twice, twice, f"2Δ {epsilon}")
        (change,) = re.findall(r"changes by (\S+) nats", said)
        for dot in ratio["dots"]:
            assert dot["words"] == change
            assert abs(dot["at"][1]) == pytest.approx(float(change), abs=0.006)
        # its right end rises if the household's count is above it
        rises = np.diff(ratio["lines"][0]["y"])[-1]
        if weights["outline"][away] > 0.1:
            assert (rises > 0) == (household.COUNTS[away] > ratio["lines"][0]["x"][-1])
        # 9 of 10 released counts lie between these, and one less at either end is too few
        share = np.cumsum([0, *released["bars"]])
        told = re.findall(r"is then (\S+) on.*between (\d+) and (\d+)", said)
        ((average, low, high),) = np.array(told, float)
        # with all weights 0 some counts are beyond the picture
        if share[-1] > 99.9:
            for end, part in ((int(low), 5), (int(high), 95)):
                assert share[end] < part <= share[end + 1]
            mean = np.arange(25) @ released["bars"] / 100
            assert average == pytest.approx(mean, abs=0.15)
        assert said.endswith("the eight households' own average is 6.5.")


def test_the_panels_of_a_household_that_leaves_say_what_they_hold():
    content = household.moving("", scale=0.7, shift=0.1, draws=50).content
    weights, ratio, released = content["panels"]
    names = "A 3", "B 4", "C 4", "D 5", "E 5", "F 6", "G 7", "H 18"
    assert tuple(weights["names"]) == names
    # G is away at first, at the chapter's own scale
    who, scale = content["sliders"]
    assert who["shown"][who["at"]] == "G" and scale["shown"][scale["at"]] == "0.7"
    assert scale["shown"] == ["0", "0.2", "0.4", "0.6", "0.7", "0.8", "1"]
    places = {tuple(place[1][0]["bars"]) for place in content["frames"]}
    assert min(map(min, places)) == 0 and max(map(max, places)) == 1
    lines = [frame[1][1]["lines"][0]["x"] for frame in content["frames"]]
    low, high = ratio["range"]
    assert low == 0 and max(map(max, lines)) <= high < 2 * max(map(max, lines))
    bars = content["frames"][0][1][2]["bars"]
    assert released["range"] == [-0.5, len(bars) - 0.5] and len(bars) > 18
    shares = 12.5 * np.bincount([3, 4, 4, 5, 5, 6, 7, 18], minlength=len(bars))
    assert released["outline"] == shares.tolist()


def test_a_panel_has_lines_dots_and_words_and_its_heights_have_room_for_all_frames():
    def frame(a):
        return "", [
            {
                "lines": [{"y": [-a, 2 * a], "colour": "H", "words": "up"}],
                "dots": [{"at": [1, 3 * a], "words": "top"}],
                "across": [[-4 * a, "low"], [0, ""]],
            },
            {"bars": [a]},
        ]

    panels = [{"x": [0, 1], "range": [0, 1]}, {"across": [5, "five"]}]
    picture = page.moving("Lines", {"One a": {"1": 1, "2": 2}}, frame, panels=panels)
    lines, bars = picture.content["panels"]
    assert (lines["heights"], bars["heights"]) == ([-8, 6], [0, 5])
    # named colours are those of the figures
    (line,) = picture.content["frames"][1][1][0]["lines"]
    assert line["colour"] == "#B84A00"
    # nothing but zeros has a height all the same
    flat = page.moving(
        "Flat", {"One a": {"1": 1}}, lambda a: ("", [{"bars": [0]}]), panels=[{}]
    )
    assert flat.content["panels"][0]["heights"] == [0, 1]


def test_a_moving_picture_leaves_a_still_one_with_the_sentence_of_its_start():
    def frame(a, b):
        return f"{a}{b} <i>", [{"bars": [a, b]}]

    sliders = {"One a": {"1": 1, "2": 2}, "Other b": {"4 m": 4, "5 m": 5}}
    picture = page.moving("Two <i>", sliders, frame, panels=[{}], start=[2, 4])
    still = picture.data.partition("<script")[0]
    assert still.count('src="data:image/png;base64,') == 1 and "<i>" not in still
    assert "<p>a = 2, b = 4 m: 24 &lt;i&gt;</p>" in still
    assert "choose other values: One a; Other b." in still
