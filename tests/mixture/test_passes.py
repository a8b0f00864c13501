"""The compiled passes over the records against the formulas, also far outside double precision."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from ppm.models.mixture import passes

# no multiple of what is worked on at a time, and more than one piece of it
RECORDS, K = passes.CHUNK + 189, 4


def dummies():
    """An intercept and indicators of five categorical variables."""
    rng, columns = np.random.default_rng(1), [np.ones((RECORDS, 1))]
    for levels in (2, 3, 4, 5, 6):
        columns.append(np.eye(levels)[rng.integers(0, levels, RECORDS)][:, 1:])
    return np.hstack(columns)


DENSE = np.column_stack(
    [np.ones(RECORDS), np.random.default_rng(2).normal(size=(RECORDS, 3))]
)
# numbers of children, rooms and cars: small, but not only zeros and ones
FEW = np.random.default_rng(3).integers(0, 4, (RECORDS, 7)) / 2.0
DESIGNS = {
    "dummies": dummies(),
    "dense": DENSE,
    "mixed": np.c_[dummies(), DENSE],
    "few": FEW,
}


def test_exponential_and_logarithm_are_right_to_the_last_place():
    x = np.random.default_rng(0).uniform(-700.0, 700.0, 4000)
    near_one = np.random.default_rng(1).uniform(0.9, 1.1, 4000)
    for function, exact, at in (
        (passes.exp, np.exp, x),
        (passes.log, np.log, np.exp(x)),
        (passes.log, np.log, near_one),
    ):
        found = [function(value) for value in at]
        np.testing.assert_allclose(found, exact(at), rtol=3e-16)
    assert 0.0 <= passes.exp(-np.inf) < 1e-300 and passes.exp(1e10) > 1e300
    assert np.isnan(passes.exp(np.nan))
    nothing = np.array([[-np.inf, 1.0], [-np.inf, -800.0]])
    assert passes.log_sum_exp(nothing).tolist() == [-np.inf, 1.0]


@pytest.mark.parametrize("kind", DESIGNS)
def test_products_of_the_predictors(kind):
    X, rng = DESIGNS[kind], np.random.default_rng(5)
    design = passes.Design(X)
    assert (design.codes is not None, design.sparse) == (
        kind in ("dummies", "few"),
        "m" in kind,
    )
    coefficients = rng.standard_normal((3, X.shape[1]))
    np.testing.assert_allclose(
        design.times(coefficients), coefficients @ X.T, atol=1e-12
    )
    members, alpha, y = rng.permutation(RECORDS)[:300], rng.random(300), rng.random(300)
    gram, product = design.moments(members, alpha, y)
    weighted = X[members].T * alpha
    np.testing.assert_allclose(
        np.tril(gram), np.tril(weighted @ X[members]), atol=1e-10
    )
    np.testing.assert_allclose(product, weighted @ y, atol=1e-10)


@pytest.mark.parametrize("far", [False, True], ids=["in range", "out of range"])
def test_passes_are_the_formulas(far):
    rng = np.random.default_rng(6)
    log_pi, residual = np.log(rng.dirichlet(np.ones(K))), rng.normal(0.0, 2.0, RECORDS)
    means = rng.standard_normal((K, RECORDS))
    if far:
        # some terms are below the smallest number, and two offsets have moved away
        means[[1, 3], 70] = 1e3
        means[:, 50], means[:, 60], residual[60] = [80.0, 1e3, 60.0, 90.0], 1e4, 1e4
    y, sigma, weights = (
        np.zeros(RECORDS),
        np.linspace(0.3, 3.0, K),
        rng.random((2, RECORDS)),
    )
    log_density = passes.log_densities(y, means, sigma)
    np.testing.assert_allclose(
        log_density, norm.logpdf(y, means, sigma[:, None]), rtol=1e-12
    )
    joint = log_pi[:, None] + log_density
    offset, scaled, log_f = passes.rescale(log_pi, log_density)
    np.testing.assert_allclose(log_f, logsumexp(joint, axis=0), rtol=1e-12)
    uniforms, edges = (
        rng.random(RECORDS),
        np.cumsum(np.exp(joint - joint.max(axis=0)), axis=0),
    )
    labels = passes.draw_labels(scaled, uniforms)
    np.testing.assert_array_equal(labels, (edges < uniforms * edges[-1]).sum(axis=0))
    if far:
        shift = (
            np.isin(np.arange(RECORDS), [7, RECORDS - 1])
            * np.linspace(-1, 1, RECORDS)
            * 2e3
        )
        offset = offset + shift
        with np.errstate(over="ignore"):
            scaled = np.exp(joint - offset)
    state = passes.MixtureState(log_pi, log_density, scaled, offset)
    # other mixture weights and densities of two components
    rows, shares, new = np.array([2, 0]), np.log([0.4, 0.2]), log_density[:2] - 1.0
    changed = joint.copy()
    changed[rows] = shares[:, None] + new
    expected = logsumexp(changed, axis=0)
    np.testing.assert_allclose(
        passes.replace_terms(state, rows, shares, new)[0], expected, rtol=1e-12
    )
    # another residual and scale of one
    density = norm.logpdf(residual, 0.0, 0.7)
    changed = joint.copy()
    changed[1] = log_pi[1] + density
    rest = passes.rest_of(1, scaled)
    ratio, found = passes.move_component(state, 1, residual, 0.7, rest, *weights)
    expected = logsumexp(changed, axis=0)
    assert ratio == pytest.approx(
        weights[0] @ density - weights[1] @ expected, rel=1e-12
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    found = np.empty((2, RECORDS))
    passes.set_component(log_pi[1], 0.7, residual, offset, *found)
    expected = density, np.exp(np.clip(changed[1] - offset, -708.0, 709.0))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    # a pair's shares: each record has a factor of its own, which drops out of a difference
    pair = np.array([3, 1])
    total = np.logaddexp(*log_pi[pair])
    terms = passes.pair_terms(state, pair, total)
    values = []
    for x in (-30.0, -1.0, 2.5):
        log_shares = -np.logaddexp(0.0, [-x, x])
        changed[pair] = (total + log_shares)[:, None] + log_density[pair]
        exact = 0.2 * log_shares.sum() + weights[0] @ logsumexp(changed, axis=0)
        values.append([passes.share_log_density(x, 0.2, weights[0], *terms), exact])
    np.testing.assert_allclose(*np.diff(values, axis=0).T, rtol=1e-7)
    # where no component has a record, and where a term is NaN
    log_density[:, 5], log_density[2, 6] = -np.inf, np.nan
    found = passes.rescale(log_pi, log_density)[2]
    assert found[5] < -1e299 and np.flatnonzero(np.isnan(found)).tolist() == [6]
