"""What the chapters on incomes share: fits, and the equal bound."""

import numpy as np
import pytest
import xarray as xr

import ppm
from ppm_book.chapters import application
from ppm_book.chapters.application import (
    EQUAL,
    FITS,
    RUNGS,
    SETTLE,
    TOLERANCE,
    IncomeFits,
    Rung,
    apart,
    diagnosed,
    in_parts,
    ladder,
    search,
    typical,
    weight_at,
)
from ppm_book.tools import parameters

INCOMES = np.random.default_rng(5).normal(10.0, 1.0, 40)


def test_every_fit_is_read_by_the_library_and_has_random_numbers_of_its_own(
    monkeypatch,
):
    streams = []

    def noting(method):
        def call(*arguments, random_seed, **options):
            streams.append((random_seed.entropy, random_seed.spawn_key))
            return method(*arguments, random_seed=random_seed, **options)

        return call

    for name in "fit", "predict":
        monkeypatch.setattr(
            ppm.FiniteMixture, name, noting(getattr(ppm.FiniteMixture, name))
        )
    made = IncomeFits(INCOMES, np.ones((40, 1)), 2, 60, 60, 4, 7)
    unweighted, dp = made.unweighted(2), made.dp_weighted(2, 0.7, 0.0)
    weights = ppm.record_weights(unweighted.result.record_bounds, scale=0.7, shift=0.0)
    assert dp.result.weights == pytest.approx(weights) and dp.synthetic.shape == (4, 40)
    log_lik = made.model(2).log_likelihood(dp.result.draws)
    assert dp.result.record_bounds == pytest.approx(ppm.record_bounds(log_lik, weights))
    maxima = np.abs(weights * log_lik).max(axis=2)
    assert dp.result.draw_maxima == pytest.approx(maxima.values)
    told, by_chain = diagnosed(dp.result), maxima.max("draw").values
    assert told["Δ"] == pytest.approx(max(by_chain))
    assert told["smallest Δ of a chain"] == pytest.approx(min(by_chain))
    # the same setting again, and another one
    assert made.dp_weighted(2, 0.7, 0.0).synthetic == pytest.approx(dp.synthetic)
    assert not np.allclose(made.weighted(2, weights, 5).synthetic, dp.synthetic)
    em = made.em_weighted(2, 0.7, 0.0)
    assert np.ptp(em.result.weights) == 0
    assert (em.result.weights[0], em.result.local_bound) in [
        (weight, pytest.approx(bound)) for weight, bound in em.tried
    ]
    # another setting has the same ladder
    made.em_weighted(2, 0.5, 0.0)
    assert len({*streams}) == len(streams)
    rungs = [key for entropy, key in streams if entropy == (7, 2, 7)]
    assert rungs == [(i,) for i in range(len(RUNGS))]
    settings = parameters.defaults("ce_application")["configurations"]
    assert len({application.place(*each) for each in settings}) == len(settings) > 1


class OneWeight:
    """A model whose Δ is a function of the weight and of how many fits were made before."""

    records, warmup = 3, 100

    def __init__(self, response):
        self.response, self.made = response, []

    def fit(self, weights, *, draws, random_seed, initial):
        place = None if initial is None else initial["posterior"]["number"].item()
        self.made.append((weights[0], draws, self.warmup, place))
        number = np.full((1, draws), len(self.made))
        posterior = xr.Dataset({"number": (["chain", "draw"], number)})
        return xr.DataTree.from_dict({"posterior": posterior})

    def log_likelihood(self, fit):
        number = fit["posterior"]["number"].values
        weight = self.made[number[0, 0] - 1][0]
        size = self.response(weight, number[0, 0]) / weight if weight else 1.0
        return xr.DataArray(np.full((1, number.size, 3), -size))


def rungs_of(response):
    """Rungs whose Δ is a function of the weight; each ends at minus its place."""
    ends = [xr.Dataset({"number": -1.0 - i}) for i in range(1 + len(RUNGS))]
    return [
        Rung(w, np.full((2, 1), response(w)), xr.DataTree.from_dict({"posterior": end}))
        for w, end in zip([1.0, *RUNGS], ends, strict=True)
    ]


def searched(response, target=5.0, of_ladder=None):
    """A search for a Δ that DPweighted reaches in the last fifth of its draws."""
    largest = np.full((2, 50), 0.8 * target)
    largest[1, -1] = target
    model, rungs = OneWeight(response), rungs_of(of_ladder or (lambda w: 20 * w**1.2))
    return model, search(model, largest, rungs, 50, np.random.SeedSequence(1))


def test_the_curve_meets_the_target_also_beside_and_below_its_rungs():
    def response(weight):
        return 20 * weight**1.2 * np.exp(0.05 * np.log(weight) ** 2)

    for weight in (0.9, 0.3, 0.05):
        found = weight_at(response(weight), rungs_of(response))
        assert found == pytest.approx(weight, rel=0.01)
    lowest = RUNGS.min()
    below = weight_at(0.1 * response(lowest), rungs_of(response))
    assert below == pytest.approx(0.1 * lowest, rel=0.01)
    assert weight_at(100.0, rungs_of(response)) == pytest.approx(1.0)
    assert weight_at(0.0, rungs_of(response)) == 0


def test_a_ladder_goes_down_from_the_unweighted_fit_each_rung_from_the_last():
    model = OneWeight(lambda weight, _: 20 * weight)
    unweighted = xr.Dataset({"number": (["chain", "draw"], [[7, 8]])})

    class Unweighted:
        draws = xr.DataTree.from_dict({"posterior": unweighted})
        draw_maxima = np.arange(40.0)[None]

    rungs = ladder(model, Unweighted, 40, np.random.SeedSequence(1))
    assert rungs[0].weight == 1 and rungs[0].bounds.tolist() == [[7, 15, 23, 31, 39]]
    short = model.warmup // SETTLE
    assert model.made == [(weight, 8, short, i or 8) for i, weight in enumerate(RUNGS)]
    heights = [rung.bounds.item() for rung in rungs[1:]]
    assert heights == pytest.approx(20 * RUNGS)


class Poisson:
    """The conjugate model, with exact draws and no chain to go on with."""

    warmup = 100

    def __init__(self, counts):
        self.model = ppm.GammaPoisson(counts)
        self.records, self.log_likelihood = (
            self.model.records,
            self.model.log_likelihood,
        )

    def fit(self, weights, *, initial, **options):
        return self.model.fit(weights, **options)


def test_the_weight_from_the_curve_has_the_delta_that_many_exact_draws_show():
    draws, counts = 2000, np.r_[np.random.default_rng(1).poisson(5, 20), 25]
    model, ones = Poisson(counts), np.ones(counts.size)
    fit = model.fit(ones, initial=None, draws=draws, random_seed=1)
    unweighted = ppm.mechanism.bound_fit(model.model, fit, ones)
    rungs = ladder(model, unweighted, draws, np.random.SeedSequence(51))

    def delta(weight):
        """Δ of a part of a chain, on average over a hundred of them."""
        weights = np.full(counts.size, weight)
        fit = model.fit(weights, initial=None, draws=20 * draws, random_seed=3)
        largest = np.abs(model.log_likelihood(fit).values).max(axis=2)
        return weight * np.exp(np.log(in_parts(largest, draws)).mean())

    for share in (0.5, 0.2, 0.08):
        target = share * delta(1.0)
        assert delta(weight_at(target, rungs)) == pytest.approx(target, rel=0.05)
        # the paper's formula, which takes this share as the weight, misses the target
        assert delta(share) > 1.1 * target


def test_the_equal_bound_is_met_by_one_fit_where_the_ladder_shows_it():
    # over parts, as the ladder has them, DPweighted reaches about 0.8 of its Δ
    model, found = searched(lambda w, _: 25 * w**1.2)
    assert found.tried == ((found.weight, pytest.approx(5.0, rel=TOLERANCE)),)
    # it begins at the rung with the nearest weight, after a short warm-up
    nearest = np.abs(np.array([1.0, *RUNGS]) - found.weight).argmin()
    assert model.made == [(found.weight, 50, 10, -1 - nearest)]


def test_a_fit_that_misses_becomes_a_rung_and_the_next_one_begins_there():
    model, found = searched(lambda w, _: 28 * w**1.2, target=6.5)
    assert len(found.tried) > 1 and found.weight < found.tried[0][0]
    assert [start for *_, start in model.made[1:]] == [*range(1, len(model.made))]


def test_a_bound_that_is_not_met_is_the_closest_of_all_fits():
    bounds = [9.0, 5.4, 7.0]
    _, found = searched(lambda _, number: bounds[number - 1])
    assert found.fit["posterior"]["number"].values[0, 0] == 2
    assert len(found.tried) == FITS == len(bounds)


def test_no_weight_is_above_1_and_a_target_of_0_takes_one_fit():
    for target, largest in ((50.0, 1.0), (0.0, 0.0)):
        model, _ = searched(lambda weight, _: weight, target)
        assert max(fit[0] for fit in model.made) == pytest.approx(largest)
    assert len(model.made) == 1


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
            model.fit(draws=20, random_seed=1)
    moved = apart(incomes, low, 1)
    ppm.FiniteMixture(moved, design, components=3, warmup=50).fit(
        draws=20, random_seed=1
    )
    assert np.array_equal(moved[~low], incomes[~low])
    assert (
        np.unique(moved[low]).size == 40
        and -0.1 < moved[low].min() < moved[low].max() <= 0
    )
    few = incomes[40 - EQUAL :]
    assert np.array_equal(apart(few, few <= 0, 1), few)
