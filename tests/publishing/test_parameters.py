"""The vocabulary of parameters: what is accepted, what is refused, and how it says so."""

import math

import numpy as np
import pytest
from ppm_book import page

from ppm.publishing.notebooks import describe
from ppm.publishing.parameters import PARAMETERS, ParameterError, parse_value

# parameter -> accepted values at the edges of the range, values just beyond them
EDGES = {
    "replicates": ([2, 100_000], [1, 0, -3, 100_001, 10**12]),
    "sizes": (
        [[2], [100, 400], [2, 1_000_000], (100, 400)],
        [[], [1, 4], [400, 100], [100, 100], [100, 1_000_001], [100, 2.5], 100, "[100]"],
    ),
    "component_counts": (
        [[1], [1, 2, 200]],
        [[], [0, 1], [2, 1], [2, 2], [1, 201], [1.5], 3, "[1]"],
    ),
    "strict_components": ([1, 200], [0, 201]),
    "widths": (
        [[0.25], [0.5, 1, 100]],
        [[], [0.0, 1.0], [2.0, 1.0], [1.0, 1.0], [1.0, 101.0], ["1"], 1.0, "[1.0]"],
    ),
    "outside": ([0, 0.02, 0.5], [-0.01, 0.51]),
    "power": ([1e-9, 0.2, 1], [0, 1.1]),
    "shards": ([2, 100], [1, 101]),
    "measured_sizes": (
        [[10, 20, 30], [1000, 10_000, 10_000_000]],
        [[], [10, 20], [9, 20, 30], [30, 20, 10], [10, 20, 10_000_001], [10, 20, 30.5], 100],
    ),
    "bins": ([2, 10_000], [1, 10_001]),
    "cell_bins": ([2, 10_000], [1, 10_001]),
    "compared_counts": (
        [[1], [1, 2, 200]],
        [[], [0, 1], [2, 1], [2, 2], [1, 201], [1.5], 3, "[1]"],
    ),
    "repeats": ([1, 100], [0, 101]),
    "mean": ([1e-9, 100, 1e6], [0, -1, 1.1e6]),
    "truncate_at": ([1e-9, 3.5, 1000], [0, -3.5, 1001]),
    "weight_draws": ([1, 100_000], [0, 100_001, 2.0]),
    "public_width": ([1e-9, 0.1, 0.99], [0, -0.1, 1]),
    "scale": ([1e-9, 1], [0, -0.5, 1.01]),
    "shift": ([-1, 0, 1], [-1.01, 1.01]),
    "configurations": (
        [[[1, 0]], [[1, 0], [0.7, -0.1]], [[1e-9, -1], [1, 1]]],
        [[], [[]], [[1]], [[1, 0, 0]], [[0, 0]], [[1, 1.1]], [[1, 0], [1, "0"]], [1, 0]],
    ),
    "local_bound": ([1e-9, 10.1, 10_000], [0, -1, 10_001]),
    "releases": ([1, 1000], [0, 1001]),
    "draws": ([2, 100_000], [1, 100_001]),
    "warmup": ([1, 100_000], [0, 100_001]),
    "chains": ([1, 64], [0, 65]),
    "components": ([1, 200], [0, 201]),
    "resamples": ([2, 100_000], [1, 100_001]),
    "ce_data": (["", __file__], ["/no/such/file.zip", 3, None, "a\nb"]),
    "records": ([0, 50, 1_000_000], [-1, 1, 49, 1_000_001]),
    "income_floor": ([1e-9, 1, 1e6], [0, -1, 1.1e6]),
    "point_mass": ([True, False], [0, 1, "true", "False"]),
    "radius": ([1e-9, 0.2, 10], [0, -0.1, 11]),
    "seed": ([0, 2**32 - 1], [-1, 2**32]),
}
ACCEPTED = [(name, value) for name, (good, _) in EDGES.items() for value in good]
REFUSED = [(name, value) for name, (_, bad) in EDGES.items() for value in bad]


def test_every_parameter_has_edges_here():
    assert EDGES.keys() >= PARAMETERS.keys(), "give the new parameter its row in EDGES"
    assert EDGES.keys() <= PARAMETERS.keys()


@pytest.mark.parametrize(("name", "value"), ACCEPTED, ids=str)
def test_edge_of_the_range_is_accepted(name, value):
    page.check(**{name: value})


@pytest.mark.parametrize(("name", "value"), REFUSED, ids=str)
def test_beyond_the_range_is_refused_in_one_line(name, value):
    with pytest.raises(ParameterError) as caught:
        page.check(**{name: value})
    message = str(caught.value)
    assert "\n" not in message
    assert name in message
    assert PARAMETERS[name].accepted in message


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("value", [True, None, "many", {}, math.nan, math.inf, -math.inf, 1j])
def test_a_wrong_type_is_refused(name, value):
    # (there is no file called many)
    if name == "point_mass" and value is True:
        return
    with pytest.raises(ParameterError, match=rf"^{name} = "):
        page.check(**{name: value})


def test_whole_numbers_serve_as_numbers_but_not_the_other_way_round():
    assert type(PARAMETERS["mean"].check(100)) is float
    assert type(PARAMETERS["replicates"].check(np.int64(7))) is int
    with pytest.raises(ParameterError):
        page.check(replicates=400.0)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ParameterError) as caught:
        page.check(replicate=3)
    message = str(caught.value)
    assert "\n" not in message
    assert "'replicate'" in message
    assert "did you mean replicates?" in message
    assert all(name in message for name in PARAMETERS)


def test_the_first_wrong_one_among_several_is_named():
    with pytest.raises(ParameterError, match="^draws = 1 "):
        page.check(seed=1, draws=1, releases=2)


def test_a_long_value_is_shown_shortened():
    with pytest.raises(ParameterError) as caught:
        page.check(sizes="x" * 10_000)
    assert len(str(caught.value)) < 300


def test_values_from_a_command_line_become_python_values():
    assert parse_value("replicates", "50") == 50
    assert parse_value("sizes", " [100, 400] ") == [100, 400]
    assert parse_value("mean", "1e2") == 100.0
    for text in ("true", "True", " true"):
        assert parse_value("point_mass", text) is True
    assert parse_value("point_mass", "false") is parse_value("point_mass", "False") is False
    for text in ("yes", "1", "TRUE"):
        with pytest.raises(ParameterError, match="accepted; .* True or False$"):
            page.check(point_mass=parse_value("point_mass", text))
    # a path stays a path, whatever it looks like
    assert parse_value("ce_data", "2017") == "2017"


def test_text_that_is_no_literal_is_never_evaluated():
    text = "__import__('os').getpid()"
    assert parse_value("replicates", text) == text
    with pytest.raises(ParameterError):
        page.check(replicates=parse_value("replicates", text))


def test_a_parameters_cell_is_read_as_it_is_written(tmp_path):
    from conftest import chapter, write_notebook

    values = {"replicates": 400, "sizes": [100, 400], "mean": 100.0, "ce_data": "", "seed": 7}
    path = write_notebook(tmp_path / "cell.ipynb", chapter("Cell", **values))
    assert describe(path).parameters == values
    assert list(describe(path).parameters) == list(values)
