"""What the chapters on incomes share: fits, and the equal bound."""

import numpy as np
import pytest
import xarray as xr

import ppm
from ppm_book.chapters import application
from ppm_book.chapters.application import (
    EQUAL,
    FITS,
    TOLERANCE,
    TRIALS,
    IncomeFits,
    apart,
    diagnosed,
    search,
    typical,
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
    assert np.ptp(em.result.weights) == 0 and em.tried[-1, 2] == pytest.approx(
        maxima.max().item()
    )
    assert em.result.weights[0] in em.tried[:, 0]
    assert len(streams) == len(em.tried) + 7 == len({*streams})
    settings = parameters.defaults("ce_application")["configurations"]
    assert len({application.place(*each) for each in settings}) == len(settings) > 1


class OneWeight:
    """A model whose Δ is a function of the weight and of how many fits were made before."""

    records, warmup = 3, 100

    def __init__(self, response):
        self.response, self.made = response, []

    def fit(self, weights, *, draws, random_seed, initial):
        self.made.append(
            (weights[0], draws, self.warmup, initial, random_seed.spawn_key)
        )
        return len(self.made)

    def log_likelihood(self, number):
        weight = self.made[number - 1][0]
        return xr.DataArray(
            [[[-self.response(weight, number) / weight if weight else 1.0]]]
        )


def searched(response, target=5.0):
    """A search for a Δ that DPweighted reaches in the last fifth of its draws."""
    largest = np.full((2, 50), 0.8 * target)
    largest[1, -1] = target
    model = OneWeight(response)
    return model, search(model, largest, 20.0, 50, np.random.SeedSequence(1))


def test_the_equal_bound_is_met_within_the_tolerance():
    # short fits reach less, as DPweighted does over as many draws
    def response(weight, number):
        return (20 if number > TRIALS else 16.8) * weight**0.8

    model, found = searched(response)
    assert 20 * found.weight**0.8 == pytest.approx(5.0, rel=TOLERANCE)
    # the paper's formula comes first, and misses; one full fit is enough
    assert found.tried[0] == pytest.approx([0.25, 16.8 * 0.25**0.8, 4.2])
    assert found.tried[0][1] > 1.2 * found.tried[0][2]
    assert found.fit == len(found.tried) == TRIALS + 1
    # each fit starts where the last one ended, after a short warm-up, with numbers of its own
    made = [(10, 20, None), (10, 20, 1), (10, 20, 2), (50, 20, 3)]
    assert [fit[1:-1] for fit in model.made] == made
    assert len({fit[-1] for fit in model.made}) == len(made)


def test_a_bound_that_is_not_met_is_the_closest_of_all_full_fits():
    bounds = [4.2, 4.2, 4.2, 9.0, 4.0, 5.4, 7.0]
    model, found = searched(lambda _, number: bounds[number - 1])
    # a trial does not count, however close
    assert found.fit == 6 and found.weight == model.made[5][0]
    assert len(found.tried) == TRIALS + FITS == len(bounds)


class Poisson:
    """The conjugate model, with exact draws and no chain to go on with."""

    warmup = 100

    def __init__(self, counts):
        self.model, self.records = ppm.GammaPoisson(counts), len(counts)
        self.log_likelihood = self.model.log_likelihood

    def fit(self, weights, *, draws, random_seed, initial=None):
        return self.model.fit(weights, draws=draws, random_seed=random_seed)

    def largest(self, weight, draws, seed):
        """Largest weighted |log-likelihood| of each draw of a fit with one weight."""
        fit = self.fit(np.full(self.records, weight), draws=draws, random_seed=seed)
        return weight * np.abs(self.log_likelihood(fit).values).max(axis=2)


@pytest.mark.parametrize("weight", [0.5, 0.2])
def test_the_search_finds_the_weight_that_the_target_was_made_with(weight):
    model, draws = Poisson([*np.random.default_rng(1).poisson(5, 20), 25]), 20_000
    target, unweighted = (model.largest(w, draws, 3) for w in (weight, 1.0))
    seed = np.random.SeedSequence(5)
    found = search(model, target, unweighted.max(), draws, seed)
    assert found.weight == pytest.approx(weight, rel=0.08)
    bound = found.weight * np.abs(model.log_likelihood(found.fit).values).max()
    assert bound == pytest.approx(target.max(), rel=TOLERANCE)
    assert found.tried[-1] == pytest.approx([found.weight, bound, target.max()])
    # the paper's formula misses it
    assert target.max() / unweighted.max() > 1.1 * weight


def test_no_weight_is_above_1_and_a_target_of_0_takes_one_fit():
    for target, largest in ((5.0, 1.0), (0.0, 0.0)):
        model, _ = searched(lambda weight, _: weight, target)
        assert max(fit[0] for fit in model.made) == largest
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
