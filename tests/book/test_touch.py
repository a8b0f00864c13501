"""The picture that one can touch computes what the library does."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from browsers import CHROMIUM
from conftest import ROOT

import ppm
from ppm_book.chapters import household

SCRIPT = ROOT / "book" / "_static" / "touch.js"
# what it gives back of each case: weights before and after, Δ, the log ratio, the loss, and words
ASK = """(cases) => cases.map(([settings, grid, names]) => {
  const found = takeAway.state(settings, grid);
  const { weights, left, delta, ratio, loss } = found;
  return { weights, left, delta, ratio, loss, words: takeAway.words(found, names, settings) };
})"""
NAMES = [*"ABCDEFGHIJ"]
PUBLISHED = {
    (3, 4, 4, 5, 5, 12, 7, 18): (5.0, 7, 10.05, 8.73),
    (15, 10, 9, 9, 10, 6, 25, 6): (7.3, 6, 18.29, 8.84),
    (3, 4, 4, 5, 3, 3, 7, 18): (None, 7, 15.17, 11.51),
}


def case(counts, away, again, *, scale=1.0, shift=0.0, truncate_at=None, grid=None):
    settings = {
        "counts": [*map(int, counts)],
        "away": away,
        "again": bool(again),
        "scale": scale,
        "shift": shift,
        "truncate_at": truncate_at,
    }
    return settings, [*(grid or household.GRID)]


def cases():
    """The chapters' states, published ones, some with ties, and 380 random ones."""
    eight = household.COUNTS
    found = [case(eight, away, again) for away in range(8) for again in (0, 1)]
    found += [
        case(eight, None, 0),
        case(eight, 0, 0, scale=0.4, shift=-0.2, grid=(0.5, 20, 40)),
    ]
    found += [
        case(counts, away, 1, truncate_at=threshold)
        for counts, (threshold, away, *_) in PUBLISHED.items()
    ]
    # equal bounds have no span: everybody, or all who stay
    found += [
        case(counts, away, again, truncate_at=threshold)
        for counts in ([5] * 8, [5] * 7 + [18], [0, 0], [3, 9], [0] * 4 + [25] * 4)
        for away in (0, len(counts) - 1)
        for again in (0, 1)
        for threshold in (None, 3.0)
    ]
    # a loss that rounds to all of 2Δ
    found.append(case([6, 13], 0, 1, scale=0.16, truncate_at=8.4))
    # a threshold that leaves nobody a weight
    found += [case(eight, 7, again, truncate_at=1) for again in (0, 1)]
    rng = np.random.default_rng(46)
    for _ in range(380):
        counts = rng.integers(0, 26, rng.choice([2, 5, 8, 8, 8, 10]))
        options = {
            "scale": round(rng.uniform(0.05, 1), 2),
            "truncate_at": rng.choice([None, round(rng.uniform(1, 9), 1)]),
        }
        found.append(
            case(counts, int(rng.integers(counts.size)), rng.random() < 0.6, **options)
        )
    return found


def by_the_library(settings, grid):
    """The same by ``ppm``: weights before and after, Δ, and the log ratio."""
    counts, away = np.array(settings["counts"]), settings["away"]
    candidates = {"mu": np.linspace(*grid)}
    options = {name: settings[name] for name in ("scale", "shift", "truncate_at")}

    def on_grid(records):
        return ppm.Candidates(ppm.GammaPoisson(records), candidates)

    everybody = on_grid(counts)
    weights = ppm.record_weights(np.abs(everybody.ends()).max(axis=0), **options)
    left = np.where(np.arange(counts.size) == away, 0.0, weights)
    if settings["again"]:
        others = np.abs(on_grid(np.delete(counts, away)).ends()).max(axis=0)
        left = np.insert(ppm.record_weights(others, **options), away, 0.0)
    both = (everybody.probabilities(ppm.Terms(each)) for each in (weights, left))
    ratio = np.subtract(*map(np.log, both))
    bounds = np.abs(weights * everybody.ends()).max(axis=0)
    return weights, left, bounds.max(), ratio


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """What runs the model of a script on cases: Node, or a browser where there is no Node."""
    node = shutil.which("node")
    if node:
        folder = tmp_path_factory.mktemp("script")

        def with_node(script, given):
            (folder / "touch.js").write_text(script, "utf-8")
            (folder / "ask.js").write_text(
                'const takeAway = require("./touch.js");'
                f"const answers = ({ASK})(JSON.parse(require('fs').readFileSync(0)));"
                "console.log(JSON.stringify(answers));",
                "utf-8",
            )
            done = subprocess.run(
                [node, folder / "ask.js"],
                input=json.dumps(given),
                capture_output=True,
                encoding="utf-8",
                check=True,
            )
            return json.loads(done.stdout)

        yield with_node
    elif CHROMIUM:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            page = playwright.chromium.launch(executable_path=CHROMIUM).new_page()

            def with_browser(script, given):
                page.goto("about:blank")
                page.add_script_tag(content=script)
                return page.evaluate(ASK, given)

            yield with_browser
    else:
        pytest.skip("neither Node nor Chromium (apt-get install nodejs)")


@pytest.fixture(scope="module")
def expected():
    """The cases, and what the library says of each."""
    return [
        (settings, grid, *by_the_library(settings, grid)) for settings, grid in cases()
    ]


def differences(answers, expected):
    """Largest difference of each case, over all numbers that the picture shows."""
    return np.array(
        [
            max(
                np.abs(np.subtract(answer[name], value)).max()
                for name, value in zip(
                    ("weights", "left", "delta", "ratio"), values, strict=True
                )
            )
            for answer, (_, _, *values) in zip(answers, expected, strict=True)
        ]
    )


def ask(run, script, expected):
    return run(
        script,
        [
            (settings, grid, NAMES[: len(settings["counts"])])
            for settings, grid, *_ in expected
        ],
    )


def test_the_page_computes_what_the_library_computes_and_says_so(run, expected):
    assert len(expected) > 400
    answers = ask(run, SCRIPT.read_text("utf-8"), expected)
    assert differences(answers, expected).max() < 1e-12
    # and so does Python, in the same words: every third, as it takes its time
    for answer, (settings, grid, *_, ratio) in [*zip(answers, expected, strict=True)][
        ::3
    ]:
        here = household.state(grid=grid, **settings)
        assert np.abs(np.subtract(here.ratio, ratio)).max() < 1e-12
        assert here.loss == pytest.approx(answer["loss"], abs=1e-12)
        names = NAMES[: here.weights.size]
        away, again = settings["away"], settings["again"]
        assert [*household.said_of(here, names, away, again)] == answer["words"]


@pytest.mark.parametrize("counts", PUBLISHED)
def test_a_loss_can_exceed_twice_the_bound_when_weights_are_computed_again(counts):
    threshold, away, loss, twice = PUBLISHED[counts]
    options = {"truncate_at": threshold}
    found = household.state(counts, away, again=True, **options)
    assert (round(found.loss, 2), round(2 * found.delta, 2)) == (loss, twice)
    said = household.said_of(found, NAMES[:8], away, True)[0].replace("\xa0", " ")
    assert said.endswith(f"by up to {loss} nats: more than 2Δ = {twice}.")
    frozen = household.state(counts, away, **options)
    assert frozen.loss < 2 * frozen.delta
    nobody = household.state(counts, away, truncate_at=1)
    said = household.said_of(nobody, NAMES[:8], away)[0].replace("\xa0", " ")
    assert said == "All weights are 0, so no probability changes: 2Δ = 0.00."


# what goes wrong -> words of the script, and others in their place
BROKEN = {
    "the normaliser is forgotten": ("value - norm", "value - top"),
    "others keep their weights": ("again ? weightsWithout", "!again ? weightsWithout"),
    "who is away keeps a weight": ("(i === away ? 0 : weight)", "weight"),
    "who is away has a say": ("(_, i) => i !== away", "(_, i) => i"),
    "no absolute value": ("Math.abs(value)), 0)", "value), 0)"),
    "the factorial is forgotten": ("- mu - constant", "- mu"),
    "the bound without its weight": ("weight * bound > thr", "bound > thr"),
    "the scale is forgotten": ("scale * (1 -", "(1 -"),
    "the shift is forgotten": (" + shift", ""),
    "equal bounds give no number": ("lowest || 1", "lowest"),
    "a grid without its upper end": ("(number - 1)", "number"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_script_is_seen(run, expected, fault):
    script = SCRIPT.read_text("utf-8")
    words, others = BROKEN[fault]
    assert script.count(words) == 1
    # the chapters' states, those above 2Δ, and those with ties
    few = expected[:60]
    # what is no number became null
    answers = json.loads(
        json.dumps(ask(run, script.replace(words, others), few)).replace("null", "NaN")
    )
    assert not differences(answers, few).max() < 1e-12


@pytest.mark.parametrize(
    ("told", "given"),
    [
        ("counts must be 2 to 26 whole numbers from 0 to 100", {"counts": [5]}),
        ("counts must be 2 to 26 whole numbers from 0 to 100", {"counts": [5, 101]}),
        ("counts must be whole numbers of at least 0", {"counts": [5, -1]}),
        ("names must be 8 different ones of 1 to 3 letters", {"names": ["A"] * 8}),
        ("names must be 2 different ones", {"counts": [1, 2], "names": ["A", "Anna"]}),
        ("grid: lowest μ must be", {"grid": (0, 12, 101)}),
        ("grid: lowest and highest μ must be two finite", {"grid": (12, 2, 101)}),
        ("grid: number of values must be", {"grid": (2, 12, 1)}),
        ("scale must be", {"scale": 1.5}),
        ("shift must be", {"shift": 2}),
        ("truncate_at must be", {"truncate_at": 0}),
        ("away must be None or one of A, B", {"away": "Z"}),
        ("again must be True or False", {"again": "yes"}),
        ("breaking: 'M' must be a dict of any of counts", {"breaking": {"M": 5}}),
        ("breaking: 'M' must be a dict of any", {"breaking": {"M": {"c": 1}}}),
        ("M: counts must be 8 whole numbers", {"breaking": {"M": {"counts": [1, 2]}}}),
        ("M: away must be None or one", {"breaking": {"M": {"away": 7}}}),
    ],
)
def test_what_the_picture_cannot_show_is_refused_in_one_line(told, given):
    with pytest.raises(ValueError) as refused:
        household.touch(**given)
    assert told in str(refused.value) and "\n" not in str(refused.value)


def test_the_notebooks_values_reach_the_page_and_stand_there_as_a_still_picture():
    picture = household.touch(
        counts=[0, 9, 12],
        names=["<b>", "H", "P"],
        grid=(1, 20, 39),
        scale=0.5,
        shift=0.1,
        away="P",
        breaking={"<M>": {"truncate_at": 2, "again": True}, "No M": {"again": True}},
        title="Three & no more",
    )
    (data,) = re.findall(r"<script[^>]*>(.*?)</script>", picture.data)
    content = json.loads(data)
    assert content == picture.content and content["grid"] == [1, 20, 39]
    start = {"counts": [0, 9, 12], "away": 2, "again": False, "scale": 0.5}
    assert content["start"] == start | {"truncate_at": None}
    again = start | {"truncate_at": None, "again": True}
    assert content["breaking"] == {"<M>": again | {"truncate_at": 2}, "No M": again}
    assert (content["shift"], content["colours"][1]) == (0.1, "#B84A00")
    options = {"scale": 0.5, "shift": 0.1, "grid": (1, 20, 39)}
    here = household.state([0, 9, 12], 2, **options)
    assert picture.state.loss == here.loss
    computed_again = household.state([0, 9, 12], 2, again=True, **options)
    assert picture.broken["No M"].loss == computed_again.loss != here.loss
    still = picture.data.partition("<script")[0]
    assert 'src="data:image/png;base64,' in still and "<b>" not in picture.data
    assert "<M>" not in picture.data
    assert content["title"] == "Three & no more" and "Three &amp; no more" in still
    for said in household.said_of(here, content["names"], 2):
        assert said.replace("<b>", "&lt;b&gt;") in still


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.004, "less than 1 % of"), (0.5, ": 50 % of"), (0.994, ": 99 % of")]
    + [(0.996, ": 99 % of"), (1 - 1e-12, ": 99 % of"), (1.004, "more than")],
)
def test_a_loss_short_of_twice_delta_is_never_said_to_be_all_of_it(share, words):
    grid, twice = np.array([1.0, 2.0]), 8.0
    state = household.State(
        means=grid,
        weights=np.ones(2),
        left=np.ones(2),
        delta=twice / 2,
        before=np.array([-1.0, -1.0]),
        after=np.array([-1.0, -1.0 - share * twice]),
    )
    said, _ = household.said_of(state, ["A", "B"], away=0)
    assert words in said
