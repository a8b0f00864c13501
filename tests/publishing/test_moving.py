"""Moving pictures: what the page's script shows is what the library computes."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from conftest import ROOT
from ppm_book import page

import ppm
from ppm.publishing import moving

SCRIPT = ROOT / "book" / "_static" / "moving.js"
COUNTS = [3, 4, 4, 5, 5, 6, 7, 18]


def node():
    """Path of a JavaScript engine, if need be the one that playwright brings."""
    found = shutil.which("node")
    if not found:
        driver = pytest.importorskip("playwright._impl._driver", reason="no node was found")
        found = driver.compute_driver_executable()[0]
    return found


def states(picture, places, script=SCRIPT):
    """What the script makes of a picture at places of its sliders: state and sentence."""
    program = (
        f"const kinds = require({json.dumps(str(script))});"
        "const [data, places] = JSON.parse(require('fs').readFileSync(0));"
        "const { state, say, draw } = kinds[data.kind];"
        "console.log(JSON.stringify(places.map((at) => {"
        "const found = state(data, at); return [found, say(data, found), draw(data, found, 340)];"
        "})))"
    )
    done = subprocess.run(
        [node(), "-e", program], text=True, capture_output=True, check=True,
        # in this order a notebook's file has its keys
        input=json.dumps([picture.content, places], sort_keys=True),
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def weighed():
    """Eight households, their bounds, and the picture of their weights."""
    households = ppm.GammaPoisson(COUNTS, shape=1.0, rate=0.1)
    bounds = ppm.record_bounds(households.log_likelihood(households.fit(random_seed=1)))
    picture = page.moving_weights(
        households, bounds, names="ABCDEFGH", scale=0.75, draws=100, random_seed=2
    )
    return households, bounds, picture


# places of c, g and M: some weights cut at 0, some at 1, one record out, many out, all out
PLACES = [[7, 5, 6], [10, 5, 6], [10, 9, 6], [5, 2, 6], [10, 5, 5], [10, 5, 1], [0, 0, 0]]


def differences(weighed, script=SCRIPT):
    """Largest difference between the script's numbers and the library's, over the places."""
    households, bounds, picture = weighed
    content, largest = picture.content, 0.0
    found = states(picture, PLACES, script)
    for (c, g, m), (state, *_) in zip(PLACES, found, strict=True):
        alpha = ppm.record_weights(
            bounds, scale=content["scales"][c], shift=content["shifts"][g],
            truncate_at=content["limits"][m],
        )
        log_lik = households.log_likelihood(households.fit(alpha, draws=100, random_seed=2))
        after = ppm.record_bounds(log_lik, alpha)
        for ours, theirs in (
            (alpha, state["alpha"]), (after, state["after"]), (after.max(), state["delta"]),
            (ppm.epsilon(ppm.local_bound(log_lik, alpha)), state["epsilon"]),
        ):
            largest = max(largest, np.abs(np.subtract(ours, theirs)).max())
    return largest


def test_weights_bounds_and_epsilon_on_the_page_are_the_librarys(weighed):
    assert differences(weighed) < 1e-5


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("(1 - (bound - lowest) / span)", "(bound - lowest) / span"),
        ("+ shifts[g]", ""),
        ("Math.max(0, weight)", "weight"),
        ("cut * bound > limits[m]", "bound > limits[m]"),
        ("weight && weight * Math.max(", "Math.max("),
        ("...ends.map", "...ends.slice(1).map"),
        ("- factorials[i]", ""),
        ("(c * shifts.length + g)", "(g * scales.length + c)"),
        ("epsilon: 2 * delta", "epsilon: delta"),
    ],
)
def test_a_wrong_formula_on_the_page_would_be_seen(weighed, tmp_path, right, wrong):
    script = SCRIPT.read_text("utf-8")
    assert script.count(right) == 1
    broken = tmp_path / "moving.js"
    broken.write_text(script.replace(right, wrong), "utf-8")
    assert differences(weighed, broken) > 1e-3


def test_the_picture_begins_where_the_chapter_stands_and_says_so(weighed):
    households, bounds, picture = weighed
    sliders = picture.content["sliders"]
    assert [slider["shown"][slider["at"]] for slider in sliders] == ["0.75", "0", "none"]
    alpha = ppm.record_weights(bounds, scale=0.75)
    log_lik = households.log_likelihood(households.fit(alpha, draws=100, random_seed=2))
    (_, said, drawn), = states(picture, [[slider["at"] for slider in sliders]])
    assert f"Δ = {ppm.local_bound(log_lik, alpha):.2f} nats" in said
    # the riskiest is named first
    assert re.search(r"Smallest weights: H 0\.00, ", said)
    assert "NaN" not in str(drawn) and "undefined" not in str(drawn)


def test_a_place_on_the_page_is_hidden_until_a_script_fills_it_and_no_name_ends_it(weighed):
    content = {**weighed[2].content, "names": ["</script><b>", *"BCDEFGH"]}
    place = moving.on_the_page(content)
    assert re.match(r'<div class="moving" id="moving-weights" hidden>', place)
    assert place.count("</script>") == 1 and "<b>" not in place
    data = re.search(r"<script type=\"application/json\">(.*)</script>", place)[1]
    assert json.loads(data)["names"][0] == "</script><b>"
    (_, _, drawn), = states(moving.MovingPicture(content), [[0, 0, 0]])
    assert "<b>" not in drawn[0]


def test_in_a_notebook_it_is_a_line_of_text_and_on_the_page_its_place(weighed):
    shown = weighed[2]._repr_mimebundle_()
    assert shown["text/plain"] == repr(weighed[2])
    text = {"output_type": "stream", "name": "stdout", "text": "words"}
    outputs = [{"output_type": "display_data", "data": dict(shown)}, dict(text)]
    moving.show_moving(outputs)
    assert outputs == [
        {**outputs[0], "data": {"text/html": moving.on_the_page(weighed[2].content)}}, text,
    ]


def test_names_that_do_not_match_the_records_are_refused():
    households = ppm.GammaPoisson(COUNTS)
    with pytest.raises(ValueError, match="names and bounds must have one entry for each of the 8"):
        page.moving_weights(households, np.ones(8), names="ABC")


# ------------------------------------------------------------------------- bounds by size


@pytest.fixture(scope="module")
def studied():
    study = ppm.studies.contraction([40, 80], replicates=30, draws=40, random_seed=3)
    return study, page.moving_contraction(study)


def test_the_bounds_on_the_page_are_those_of_the_study(studied):
    study, picture = studied
    summary = study.summary()
    for place, size in enumerate([40, 80]):
        (state, said, drawn), = states(picture, [[place]])
        assert [row["name"] for row in state["rows"]] == list(summary.index.levels[0].unique())
        for row in state["rows"]:
            own = summary.loc[row["name"], size]
            for column in ("smallest", "median", "largest"):
                assert row[column] == own[column]
                assert f"{own[column]:.2f}" in said
            above = study.exceedance([2 * study.truncate_at])["estimate"].sel(
                mechanism=row["name"], size=size
            )
            assert row["above"] == above.item()
            assert f"{row['name']} {own['smallest']:.2f} to" in said
        assert "of 30 databases" in said
        assert drawn[0].count("<polygon") == 3 and "NaN" not in drawn[0]


def test_a_violin_of_equal_bounds_is_drawn_too(studied):
    study, picture = studied
    rows = json.loads(json.dumps(picture.content["mechanisms"]))
    rows[1]["sizes"][0] = moving._distribution(np.full(5, 3.5), 3.5)
    (state, _, drawn), = states(
        moving.MovingPicture({**picture.content, "mechanisms": rows}), [[0]]
    )
    assert state["rows"][1]["above"] == 0
    assert "NaN" not in drawn[0]


# ------------------------------------------------------------------------- strict releases


@pytest.fixture(scope="module")
def released():
    rng = np.random.default_rng(4)
    income = rng.lognormal(10.5, 1.0, 300)
    # where two bins meet, as rounded incomes do
    income[:40] = 20_000.0
    synthetic = {
        name: {width: rng.lognormal(10.5, 1 + 1 / width, (3, 300)) for width in (0.25, 1.0, 4.0)}
        for name in ("Limits", "Histogram")
    }
    errors = {
        name: {width: ppm.utility.release_errors(income, found) for width, found in group.items()}
        for name, group in synthetic.items()
    }
    picture = page.moving_release(
        income, synthetic, errors, statistics=["mean", "median"], simulated=True
    )
    return income, synthetic, errors, picture


def test_an_error_that_is_no_number_is_not_told():
    income = np.array([0.0, 0.0, 0.0, 20_000.0, 30_000.0, 40_000.0])
    errors = {"Limits": {1.0: ppm.utility.release_errors(income, [income + 1.0])}}
    picture = page.moving_release(
        income, {"Limits": {1.0: [income + 1.0]}}, errors, statistics=["mean", "10th percentile"],
        simulated=True,
    )
    told = picture.content["mechanisms"][0][0]["errors"]
    assert [name for name, _ in told] == ["mean"]
    # as JSON a number that is none would be an error
    moving.on_the_page(picture.content)


def apart(released, script=SCRIPT):
    """Largest difference of the share that would have to move, from NumPy's own bins."""
    income, synthetic, _, picture = released
    ends = [-np.inf, *range(0, 210_000, 10_000), np.inf]
    largest = 0.0
    places = [[width, name] for width in range(3) for name in range(2)]
    for (width, name), (state, *_) in zip(
        places, states(picture, places, script), strict=True
    ):
        drawn = list(list(synthetic.values())[name].values())[width][0]
        shares = [np.histogram(values, ends)[0] / 300 for values in (income, drawn)]
        largest = max(largest, abs(state["apart"] - np.abs(np.subtract(*shares)).sum() / 2))
    return largest


def test_a_release_beside_the_original_differs_by_the_share_that_numpy_counts(released, tmp_path):
    assert apart(released) < 1e-3
    right = "mechanisms[name][width]"
    script = SCRIPT.read_text("utf-8")
    assert right in script
    (tmp_path / "moving.js").write_text(
        script.replace(right, "mechanisms[0][width]"), "utf-8"
    )
    assert apart(released, tmp_path / "moving.js") > 0.01


def test_what_a_strict_release_promises_is_said_with_the_librarys_numbers(released):
    _, _, errors, picture = released
    middle = ppm.utility.median_errors(errors)
    for place, width in enumerate([0.25, 1.0, 4.0]):
        (state, said, drawn), = states(picture, [[place, 1]])
        limit = ppm.disclosure.detection_limit(0.05, width)
        assert said.startswith(f"this ε {moving.promise(width)} (at 5 % false alarms")
        assert f"{100 * limit:.0f} % probability" in said
        own = middle.loc[("Histogram", f"{width:g}"), ["mean", "median"]].to_dict()
        assert dict(state["errors"]) == own
        assert f"mean {own['mean']:.1f} %, median {own['median']:.1f} %." in said
        # words of neighbours that share one stand once
        assert drawn[0].count(">excludes<") == 1 and drawn[0].count(">hardly excludes<") == 1
    assert "Simulated stand-in" in picture.content["hint"]


def test_a_larger_epsilon_never_excludes_more():
    order = ["excludes", "excludes some", "excludes little", "hardly excludes"]
    said = [moving.promise(epsilon) for epsilon in (0, 0.25, 1, 1.2, 2, 2.5, 3, 4, 40)]
    assert set(said) == set(order)
    assert said == sorted(said, key=order.index)
