"""The exact audit of censored counts: never above W, near it, and above it where weights react."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp

import ppm
from ppm.synthesizers.censored_gamma import CensoredGamma

WIDTHS = ((-3.0, -1.0), (-2.75, -1.75), (-6.0, -2.0), (-1.0, 1.0))
CENSORS = [ppm.Censoring(*limits, smooth) for limits in WIDTHS for smooth in (True, False)]
# the upper limit is that of a count of 40 where it is likeliest
NEAR = ppm.Censoring(-6.0, -2.8, smooth=False)


def own(counts):
    """Weights that every record determines alone, capped over a public interval."""
    bounds = ppm.GammaPoisson(counts).oscillations_within(2.0, 8.0)
    return ppm.public_weights(bounds, ppm.weights.capped_map(1.0))


def min_max(counts):
    """The paper's rule, with bounds over a public interval in the place of draws."""
    if counts.size == 0:
        return np.zeros(0)
    return ppm.record_weights(ppm.GammaPoisson(counts).bounds_within(2.0, 8.0))


def drawn():
    """Databases from two to 400 records, drawn."""
    rng = np.random.default_rng(11)
    for size in np.r_[np.full(900, 2), np.full(600, 5), np.full(350, 20), np.full(90, 100),
                      np.full(60, 400)]:
        yield rng.poisson(rng.choice([0.3, 2.0, 5.0, 30.0]), size)


def adversarial():
    """One far outlier, all equal, an empty middle, two records, zeros."""
    for count in (0, 1, 5, 50, 10_000):
        yield from ([count] * 2, [count] * 30, [count] * 400)
    for size in (1, 3, 30, 399):
        for outlier in (12, 40, 300, 100_000):
            yield [5] * size + [outlier]
            yield [0] * size + [outlier]
        yield [0] * size + [60] * size
        yield [3] * size + [9] * size


def losses_of(databases, weights):
    """Loss as a share of W of each database, the limits taken in turn."""
    return np.array([
        (found := ppm.audits.censored(
            counts, censor, weights=weights(np.asarray(counts)), shape=0.5, rate=0.1
        )).attrs["loss"] / found.attrs["width"]
        for counts, censor in databases
    ])


def in_turn(databases):
    return [(counts, CENSORS[i % len(CENSORS)]) for i, counts in enumerate(databases)]


def some_weights(counts):
    """Fixed numbers, handed out by place."""
    return np.array([1.0, 0.25, 0.0, 10.0])[np.arange(counts.size) % 4]


def test_no_database_of_thousands_loses_more_than_the_width_and_some_come_near():
    every = [(counts, censor) for counts in adversarial() for censor in CENSORS]
    databases = in_turn(drawn())
    shares = np.r_[
        losses_of(databases, lambda counts: None),
        losses_of(every, lambda counts: None),
        losses_of(databases[::8], own),
        losses_of(every[1::4], own),
        losses_of(databases[::8], some_weights),
        losses_of(every[1::4], some_weights),
    ]
    assert shares.size > 3_000
    assert np.count_nonzero(shares > 1.0 + 1e-12) == 0
    # a term half as wide would stay far below
    assert shares.max() > 0.9999


def reference(counts, total, grid=None):
    """Largest log ratio with and without each record on a grid of log μ, from a total of terms."""
    grid = np.linspace(-40.0, 12.0, 20_001) if grid is None else grid
    prior = 0.5 * grid - 0.1 * np.exp(grid)
    log_p = np.array([count * grid - np.exp(grid) - gammaln(count + 1.0) for count in counts])

    def density(rows):
        values = prior + total(rows)
        return values - logsumexp(values)

    return max(
        np.abs(density(log_p) - density(np.delete(log_p, i, axis=0))).max()
        for i in range(len(counts))
    )


CASES = [[5, 5, 6, 40], [0, 0], [3] * 20 + [15], [0] * 5 + [9] * 5]


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("counts", CASES, ids=str)
def test_the_audit_is_what_adding_up_on_a_grid_gives(counts, smooth):
    censor = ppm.Censoring(-3.5, -1.5, smooth)
    found = ppm.audits.censored(counts, censor, shape=0.5, rate=0.1).attrs["loss"]
    # the grid begins where the limit μ to 0 is reached but for e^-40
    assert found == pytest.approx(
        reference(counts, lambda rows: censor.term(rows).sum(axis=0)), abs=2e-3
    )


def test_without_the_limits_or_with_others_the_width_is_exceeded_or_missed():
    counts = [5, 5, 6, 40]
    found = ppm.audits.censored(counts, NEAR, shape=0.5, rate=0.1).attrs["loss"]
    assert 0.99 * NEAR.width < found <= NEAR.width
    # the limits left out
    assert reference(counts, lambda rows: rows.sum(axis=0)) > 10 * NEAR.width
    # limits half as far apart come nowhere near
    narrow = ppm.Censoring(-6.0, -4.4, smooth=False)
    assert reference(counts, lambda rows: narrow.term(rows).sum(axis=0)) < 0.6 * found
    # limits around the sum are another mechanism
    around = reference(counts, lambda rows: NEAR.term(rows.sum(axis=0)))
    assert abs(around - found) > 0.1 * NEAR.width


def test_weights_that_react_inside_the_limits_are_caught_above_the_width():
    counts = np.r_[np.random.default_rng(2).poisson(5, 60), 40]
    censor = ppm.Censoring(-4.0, -1.0)
    caught = ppm.audits.censored(counts, censor, weights=min_max, shape=0.5, rate=0.1)
    assert caught.attrs["loss"] > 2 * censor.width
    # it is the outlier whose leaving moves the weights of all others
    worst = caught.isel(left_out=int(caught["loss"].values.argmax()))
    assert int(worst["count"]) == 40 and bool(worst["reacts"])
    # the same numbers, kept, are within it: the recomputing is what costs
    kept = ppm.audits.censored(counts, censor, weights=min_max(counts), shape=0.5, rate=0.1)
    assert kept.attrs["loss"] <= censor.width
    # and so is a rule of one's own, asked again without each record
    asked = ppm.audits.censored(counts, censor, weights=own, shape=0.5, rate=0.1)
    assert not asked["reacts"].any() and asked.attrs["loss"] <= censor.width
    assert np.array_equal(
        asked["loss"], ppm.audits.censored(
            counts, censor, weights=own(counts), shape=0.5, rate=0.1
        )["loss"]
    )


@pytest.mark.parametrize(("smooth", "below"), [(False, 1.5), (True, 2.5)])
def test_weights_that_all_records_set_break_a_strict_epsilon_inside_the_clip(smooth, below):
    """By the definition itself: an event that one record makes more than exp(ε) times likelier."""
    counts = np.append(np.repeat([3, 4, 4, 5, 5, 6, 7], 20), 18)
    censor = ppm.Censoring(-1.0, 1.0, smooth=smooth)

    def rule(records):
        return ppm.record_weights(ppm.GammaPoisson(records).bounds_within(2.0, 12.0))

    def chance(records, weights):
        model = ppm.GammaPoisson(records, shape=1.0, rate=0.1)
        density = model.posterior(weights, censor=censor).logpdf
        return quad(lambda mean: np.exp(density(mean)), 0.0, below)[0]

    others = counts[:-1]
    kept, again = (chance(others, weights) for weights in (rule(counts)[:-1], rule(others)))
    log_ratios = np.log(chance(counts, rule(counts)) / [kept, again])
    assert abs(log_ratios[0]) <= censor.width < log_ratios[1]
    loss = ppm.audits.censored(counts, censor, weights=rule, shape=1.0, rate=0.1).attrs["loss"]
    assert log_ratios[1] <= loss + 1e-9
    if not smooth:
        # all terms are cut off, and what is left is the prior
        assert chance(counts, rule(counts)) == pytest.approx(-np.expm1(-0.1 * below))
        assert loss == pytest.approx(5.28, abs=0.005)


@pytest.mark.parametrize("counts", CASES, ids=str)
def test_both_ways_to_a_loss_agree_where_no_weight_reacts(counts):
    from ppm.audits.censored_counts import _extremes_between

    counts = np.array(counts)
    for censor in CENSORS:
        found = ppm.audits.censored(counts, censor, shape=0.5, rate=0.1)
        for i, (count, loss) in enumerate(zip(found["count"], found["loss"], strict=True)):
            stays = np.arange(counts.size) != np.flatnonzero(counts == int(count))[0]
            sides = [
                CensoredGamma(kept, np.ones(kept.size), censor, 0.5, 0.1)
                for kept in (counts, counts[stays])
            ]
            assert np.abs(_extremes_between(*sides)).max() == pytest.approx(
                float(loss), abs=1e-9
            ), i


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([3], NEAR), "at least two records"),
        (([3, 4], (-3, -1)), "censor must be a ppm.Censoring"),
        (([3, -4], NEAR), "counts must hold whole numbers"),
        (([3, 4], NEAR, {"weights": [1.0]}), "weights has shape"),
        (([3, 4], NEAR, {"rate": 0.0}), "rate must be a finite number above 0"),
    ],
)
def test_what_cannot_be_audited_is_refused(arguments, message):
    *arguments, settings = arguments if len(arguments) == 3 else (*arguments, {})
    with pytest.raises(ValueError, match=message) as error:
        ppm.audits.censored(*arguments, **settings)
    assert "\n" not in str(error.value)
