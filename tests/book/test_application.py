"""What the chapters on incomes share, and what the application claims of its fits."""

import dataclasses
import runpy
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import ppm
from ppm_book.chapters import agreement, page
from ppm_book.chapters.application import EQUAL, apart, diagnosed, typical

CLAIMS = runpy.run_path(str(page.CLAIMS / "ce_application.py"))


def test_diagnosed_reads_both_r_hats_and_agrees_only_by_both():
    rng = np.random.default_rng(5)
    model = ppm.FiniteMixture(
        rng.normal(10.0, 1.0, 40), np.ones((40, 1)), components=1, warmup=60
    )
    fit = ppm.fit(model, ppm.Unweighted(), draws=200, random_seed=1)
    told = diagnosed(fit)
    maxima = fit.draw_maxima.max(axis=1)
    assert told["Δ"] == pytest.approx(maxima.max()) == fit.local_bound
    assert told["smallest Δ of a chain"] == pytest.approx(maxima.min())
    assert told["R-hat, log-likelihood"] == fit.diagnostics.r_hat_log_likelihood
    assert told["chains agree"]
    # chains that move apart in log p alone: each has other parameters
    apart_in_log_p = ppm.chains.diagnose(
        fit.draw_maxima, np.array([[0.0, 1.0] * 100, [50.0, 51.0] * 100]), np.ones(40)
    )
    assert apart_in_log_p.agree and apart_in_log_p.r_hat_log_likelihood > 1.05
    untold = dataclasses.replace(apart_in_log_p, r_hat_log_likelihood=np.nan)
    for found in apart_in_log_p, untold:
        assert not agreement.agrees(SimpleNamespace(diagnostics=found))
    other = type("Fit", (), {"diagnostics": apart_in_log_p, "local_bound": 1.0})
    assert not diagnosed(other)["chains agree"]
    assert not CLAIMS["trusted"](fit, other) and CLAIMS["trusted"](fit)


def away(of_dp, of_em):
    """Errors along two settings as the chapter has them."""
    rows = {
        (name, setting, who): (size, 0.1, 0.0, 1.0)
        for name in ("mean", "90th percentile")
        for who, sizes in (("DPweighted", of_dp), ("EMweighted", of_em))
        for setting, size in zip("ab", sizes, strict=True)
    }
    table = pd.DataFrame(rows, ["error (%)", "±", "bias", "scatter"]).T.unstack(
        sort=False
    )
    table.index.names = ["statistic", "(c, g)"]
    return table


def test_nothing_is_sure_of_fits_whose_chains_disagree(monkeypatch):
    sure, good = CLAIMS["sure"], object()
    monkeypatch.setitem(
        sure.__globals__, "trusted", lambda *fits: all(fit is good for fit in fits)
    )
    fits = {"a": (good, good), "b": (good, None)}
    found = sure(away([1.0, 1.0], [2.0, 2.0]), fits)("mean")
    assert found.tolist() == [1, 0]
    fits["b"] = good, good
    found = sure(away([1.0, 1.0], [2.0, 0.5]), fits)("mean")
    assert found.tolist() == [1, -1]
    assert not CLAIMS["dp_where_sure"](lambda name: found)
    assert CLAIMS["dp_where_sure"](lambda name: np.array([1, 0]))
    assert not CLAIMS["dp_where_sure"](lambda name: np.array([0, 0]))


def test_a_difference_is_called_larger_or_smaller_only_with_its_whole_interval():
    in_words = CLAIMS["in_words"]
    assert in_words(0.1, 1.3) == "larger by 0.1 to 1.3"
    assert in_words(-1.4, -0.4) == "smaller by 0.4 to 1.4"
    assert in_words(-0.2, 0.5) == "between 0.2 smaller and 0.5 larger"


def test_one_wild_release_moves_neither_the_typical_error_nor_its_standard_error():
    errors = np.random.default_rng(1).normal(-4.0, 0.5, 20)
    size, error = typical(errors)
    assert size == pytest.approx(4.0, abs=0.3) and error == pytest.approx(
        0.14, abs=0.08
    )
    wild = typical(np.r_[errors[:-1], 1e6])
    assert wild == (pytest.approx(size, abs=0.3), pytest.approx(error, abs=0.1))
    assert np.isnan(typical([3.0])[1])


def test_a_component_collapses_onto_many_equal_incomes_unless_they_are_moved_apart():
    rng = np.random.default_rng(3)
    incomes = np.r_[np.zeros(40), rng.normal(10.0, 1.0, 360)]
    design, low = np.ones((400, 1)), incomes <= 0
    for response in (incomes, apart(incomes, ~low, 1)):
        model = ppm.FiniteMixture(response, design, components=3, warmup=50)
        with pytest.raises(RuntimeError, match="take fewer components"):
            ppm.fit(model, ppm.Unweighted(), draws=20, random_seed=1)
    moved = apart(incomes, low, 1)
    model = ppm.FiniteMixture(moved, design, components=3, warmup=50)
    ppm.fit(model, ppm.Unweighted(), draws=20, random_seed=1)
    assert np.array_equal(moved[~low], incomes[~low])
    assert (
        np.unique(moved[low]).size == 40
        and -0.1 < moved[low].min() < moved[low].max() <= 0
    )
    few = incomes[40 - EQUAL :]
    assert np.array_equal(apart(few, few <= 0, 1), few)
