"""The losses that a chapter computes in view, against the library's exact audit."""

import nbformat
import numpy as np
import pytest
from conftest import ROOT

import ppm
from ppm.audits import closed_form

CELLS = {c.id: c.source for c in nbformat.read(ROOT / "notebooks/what_is_weaker.ipynb", 4).cells}


def chapter(source=CELLS["closed-form"], rules=CELLS["rules"], truncate_at=3.5):
    """The chapter's functions, at small settings."""
    space = {"mean": 100.0, "draws": 200, "truncate_at": truncate_at, "seed": 2}
    for part in (CELLS["imports"], source, rules):
        exec(part, space)
    return space


def compared(space, monkeypatch, size, number=0):
    """What the chapter finds for a database, and what the library finds from the same draws."""
    rng = np.random.default_rng([2, size, number])
    counts = rng.poisson(100.0, size)
    first, second = np.sort(rng.uniform(size=(2, 200)))[:, [0, -1]]
    levels = iter([np.repeat(second[:, None], 5, axis=1), first[:, None], np.empty((2, 0))])
    monkeypatch.setattr(closed_form, "_extreme_levels", lambda *given: next(levels))
    found = ppm.audits.exact(
        counts, public=tuple(space["public"]), truncate_at=space["truncate_at"], draws=200,
        weight_draws=1, random_seed=1,
    )
    ours = {name: losses for name, _, *losses in space["one_database"]((size, number))}
    largest = found.sel(mechanism=[*ours])
    theirs = 2 * largest["local_bound"], largest["loss_fixed"], largest["loss_common"]
    theirs = [each.max("left_out") if "left_out" in each.dims else each for each in theirs]
    return np.array([*ours.values()]), np.transpose(theirs)


@pytest.mark.parametrize(("size", "number"), [(4, 0), (150, 0), (150, 1), (2000, 0)])
def test_the_losses_in_view_are_those_of_the_exact_audit(monkeypatch, size, number):
    ours, theirs = compared(chapter(), monkeypatch, size, number)
    assert ours == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize(("right", "wrong"), [
    ("density -= np.log(high - low)", "pass"),
    ("[low + 0 * turn, high + 0 * turn, turn]", "turn"),
])
def test_without_a_normaliser_or_an_end_they_are_not(monkeypatch, right, wrong):
    source = CELLS["closed-form"]
    ours, theirs = compared(chapter(source.replace(right, wrong)), monkeypatch, 4)
    assert right in source and ours != pytest.approx(theirs, rel=1e-2)


@pytest.mark.parametrize(("truncate_at", "size", "number"), [(2.5, 100, 12), (3.5, 5, 7)])
def test_where_no_weight_is_left_they_are_numbers_too(monkeypatch, truncate_at, size, number):
    ours, theirs = compared(chapter(truncate_at=truncate_at), monkeypatch, size, number)
    assert ours == pytest.approx(theirs, rel=1e-6)
    wrong = chapter(rules=CELLS["rules"].replace("TINY", "0"), truncate_at=truncate_at)
    with np.errstate(all="ignore"):
        ours, _ = compared(wrong, monkeypatch, size, number)
    assert np.isnan(ours).any()
