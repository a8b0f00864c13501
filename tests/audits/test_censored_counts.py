"""The exact audit of censored counts: never above W, near it, above where something reacts."""

from functools import partial

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import poisson

import ppm

PRIOR = {"shape": 0.5, "rate": 0.1}
WIDTHS = ((-3.0, -1.0), (-2.75, -1.75), (-6.0, -2.0), (-1.0, 1.0))
CENSORS = [
    ppm.Censoring(*limits, smooth) for limits in WIDTHS for smooth in (True, False)
]
CENSORS.append(ppm.Censoring(-0.5, 0.5, False, {"mu": 4.0}))
CENTRED = ppm.Censoring(-0.75, 0.75, True, {"mu": 4.0})
MIDDLE = [ppm.Censoring(-3.5, -1.5, smooth) for smooth in (True, False)]


audited = partial(ppm.audits.censored, **PRIOR)


def loss(counts, censor, **settings):
    return audited(counts, censor, **settings).attrs["loss"]


def own(counts):
    """Weights that every record determines alone, capped over a public interval."""
    bounds = ppm.GammaPoisson(counts).oscillations_within(2.0, 8.0)
    return ppm.mapped_weights(bounds, ppm.weights.capped_map(1.0))


def min_max(counts):
    """The paper's rule, with bounds over a public interval in the place of draws."""
    return ppm.record_weights(ppm.GammaPoisson(counts).bounds_within(2.0, 8.0))


def some_weights(counts):
    """Fixed numbers, handed out by place."""
    return np.array([1.0, 0.25, 0.0, 10.0])[np.arange(counts.size) % 4]


def databases():
    """Drawn ones of two to 100 records; a far outlier, an empty middle, all equal, zeros."""
    rng = np.random.default_rng(11)
    for size in np.repeat([2, 5, 20, 100], [8, 6, 4, 1]):
        yield rng.poisson(rng.choice([0.3, 2.0, 5.0, 30.0]), size)
    for size in (1, 30):
        for outlier in (12, 40, 100_000):
            yield np.array([5] * size + [outlier])
        for low, high in ((0, 0), (0, 60), (10_000, 10_000)):
            yield np.array([low] * size + [high] * size)


@pytest.mark.parametrize("weights", [lambda counts: None, own, some_weights])
def test_no_database_loses_more_than_the_width_and_some_come_near(weights):
    shares = np.array(
        [
            loss(counts, censor, weights=weights(counts)) / censor.width
            for place, counts in enumerate(databases())
            for censor in CENSORS[place % 3 :: 3]
        ]
    )
    assert shares.size > 80 and shares.max() <= 1.0 + 1e-12
    # a term half as wide would stay far below
    assert shares.max() > 0.99


def on_a_grid(counts, censor, weights=None):
    """Losses by adding up terms on a grid of log μ."""
    grid = np.r_[-20_000.0:-41.0:2000j, -40.0:12.0:20001j, 13.0:99.0:100j]
    prior = PRIOR["shape"] * grid - PRIOR["rate"] * np.exp(grid)
    log_p = counts[:, None] * grid - np.exp(grid) - gammaln(counts + 1.0)[:, None]
    if censor.center:
        log_p -= poisson.logpmf(counts, censor.center["mu"])[:, None]

    def density(absent):
        kept = np.arange(counts.size) != absent
        alpha = np.ones(counts.size)
        if weights is not None:
            alpha[kept] = weights(counts[kept]) if callable(weights) else weights[kept]
        total = censor.term(alpha[:, None] * log_p)[kept].sum(axis=0)
        top = (prior + total).max()
        # without the prior, which cancels
        return total - top - np.log(np.trapezoid(np.exp(prior + total - top), grid))

    whole = density(None)
    return [np.abs(whole - density(i)).max() for i in range(counts.size)]


COUNTS, WEIGHTS = np.array([5, 6, 0, 4, 40]), np.array([1.0, 0.3, 0.8, 0.5, 0.9])
SEVERAL, THREE = np.array([0] * 10 + [1, 1000]), np.array([0, 1, 5])
PAIR = np.array([0] * 10 + [1, 1500, 1500])


def far(counts):
    """The term of a record far from all mass changes most beside its peak."""
    return np.where(counts == 1000, 1.0 if counts.size == SEVERAL.size else 0.05, 1.0)


def meeting(counts):
    """Far from all mass terms change most where they meet a limit, with a record or without it."""
    shares = np.where(
        counts.size == np.array([SEVERAL.size, PAIR.size]), [0.5, 0.25], [0.3, 0.55]
    )
    return np.select([counts == 1000, counts == 1500], [*shares], 1.0)


def above(counts):
    """A term comes to its limit only at a μ far above all mass."""
    return np.where(counts == 0, 1e-30 * (counts.size == THREE.size), 1.0)


def below(counts):
    """A term comes to its limit at a μ far below all mass, where another one does not."""
    whole = counts.size == THREE.size
    return np.select([counts == 0, counts == 1], [1.0 - whole, 1e-3 * whole], 1.0)


@pytest.mark.parametrize("censor", MIDDLE, ids=["smooth", "hard"])
@pytest.mark.parametrize(
    ("counts", "weights"),
    [
        (COUNTS, WEIGHTS),
        (COUNTS, min_max),
        (np.repeat([0, 9], 5), None),
        (SEVERAL, far),
        (THREE, above),
        (THREE, below),
    ],
)
def test_the_audit_is_what_the_density_gives_on_a_grid(counts, weights, censor):
    found = audited(counts, censor, weights=weights)
    exact = on_a_grid(counts, censor, weights)
    assert found.attrs["loss"] == pytest.approx(max(exact), abs=2e-3)
    assert found["reacts"].any() == callable(weights)


@pytest.mark.parametrize(
    ("counts", "censor", "weights"),
    [
        (COUNTS, CENTRED, WEIGHTS),
        # terms bend between two points of an even grid
        (
            np.array([1, 2, 3, 40]),
            ppm.Censoring(-0.8, 0.8, True, {"mu": 947.0}),
            min_max,
        ),
    ],
)
def test_the_audit_takes_centred_limits(counts, censor, weights):
    exact = max(on_a_grid(counts, censor, weights=weights))
    assert loss(counts, censor, weights=weights) == pytest.approx(exact, abs=1e-2)


@pytest.mark.parametrize("counts", [SEVERAL, PAIR])
def test_where_far_terms_meet_hard_limits_is_looked_at(counts):
    exact = on_a_grid(counts, MIDDLE[1], weights=meeting)
    assert loss(counts, MIDDLE[1], weights=meeting) == pytest.approx(
        max(exact), abs=2e-3
    )


@pytest.mark.parametrize(
    "change",
    [
        {"counts": [3]},
        {"censor": (-3, -1)},
    ],
)
def test_what_cannot_be_audited_is_refused(change):
    with pytest.raises(ValueError, match=f"^{next(iter(change))} must "):
        ppm.audits.censored(**{"counts": [3, 4, 9], "censor": MIDDLE[0]} | change)
