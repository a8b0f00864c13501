"""Moving pictures: what the page's script shows is what the library computes."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from conftest import ROOT

import ppm
from ppm import publishing as page
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
        [node(), "-e", program], input=json.dumps([picture.content, places]), text=True,
        capture_output=True, check=True,
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
