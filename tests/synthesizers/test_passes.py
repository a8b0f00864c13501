"""The compiled passes over the records against NumPy's, which read like the formulas."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ppm
from ppm._validation import one_thread
from ppm.synthesizers.mixture import record_passes
from ppm.synthesizers.mixture.model import FiniteMixture, _Sampler

pytest.importorskip("numba")
from ppm.synthesizers.mixture import compiled_passes  # noqa: E402

# no multiple of what is worked on at a time, and more than one piece of it
RECORDS, COMPONENTS = compiled_passes.CHUNK + 189, 4


def dummies(records=RECORDS):
    """An intercept and indicators of five categorical variables."""
    rng = np.random.default_rng(1)
    columns = [np.ones((records, 1))]
    for levels in (2, 3, 4, 5, 6):
        columns.append(np.eye(levels)[rng.integers(0, levels, records)][:, 1:])
    return np.hstack(columns)


def dense(records=RECORDS):
    rng = np.random.default_rng(2)
    return np.column_stack([np.ones(records), rng.standard_normal((records, 3))])


def mixed(records=RECORDS):
    """Indicators beside a variable that never takes a value twice."""
    return np.column_stack([dummies(records), dense(records)[:, 1]])


def few_values(records=RECORDS):
    """Numbers of children, rooms and cars: small, but not only zeros and ones."""
    return np.random.default_rng(3).integers(0, 4, (records, 7)) / 2.0


DESIGNS = {"dummies": dummies, "dense": dense, "mixed": mixed, "few values": few_values}


def response(X):
    rng = np.random.default_rng(4)
    noise = rng.standard_normal(len(X)) * rng.choice([0.3, 1.0, 3.0], len(X))
    return X @ rng.normal(0.0, 0.5, X.shape[1]) + noise


# ---- exponential and logarithm ------------------------------------------------------------------


def test_exponential_and_logarithm_are_right_to_the_last_place():
    x = np.concatenate([np.random.default_rng(0).uniform(-700.0, 700.0, 4000), [0.0, -0.0]])
    y = np.exp(x)
    exp = np.array([compiled_passes.exp(value) for value in x])
    log = np.array([compiled_passes.log(value) for value in y])
    near_one = np.random.default_rng(1).uniform(0.9, 1.1, 4000)
    log_near_one = np.array([compiled_passes.log(value) for value in near_one])
    np.testing.assert_allclose(exp, y, rtol=3e-16)
    np.testing.assert_allclose(log, np.log(y), rtol=3e-16)
    np.testing.assert_allclose(log_near_one, np.log(near_one), rtol=3e-16)
    # single precision would not pass
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(np.exp(x.astype(np.float32) / 8), np.exp(x / 8), rtol=3e-16)


def test_exponential_outside_the_range_of_floats():
    assert 0.0 <= compiled_passes.exp(-1e10) < 1e-300
    assert 0.0 <= compiled_passes.exp(-np.inf) < 1e-300
    assert compiled_passes.exp(1e10) > 1e300
    assert np.isnan(compiled_passes.exp(np.nan))


# ---- predictors ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DESIGNS)
def test_products_of_the_predictors(kind):
    X = DESIGNS[kind]()
    y, design = response(X), compiled_passes.Design(X)
    assert (design.codes is not None) == (kind in ("dummies", "few values"))
    assert design.binary == (kind == "dummies")
    rng = np.random.default_rng(5)
    coefficients = rng.standard_normal((3, X.shape[1]))
    np.testing.assert_allclose(design.times(coefficients), coefficients @ X.T, atol=1e-12)
    members = rng.permutation(RECORDS)[:300]
    alpha = rng.random(300)
    gram, product = design.moments(members, alpha, y[members])
    weighted = X[members].T * alpha
    np.testing.assert_allclose(np.tril(gram), np.tril(weighted @ X[members]), atol=1e-10)
    np.testing.assert_allclose(product, weighted @ y[members], atol=1e-10)


# ---- every pass, also where references have moved away -----------------------------------------


@pytest.fixture(params=["in range", "out of range"])
def state(request):
    """log_pi, log_density, scaled, top, log_f; "out of range": not all terms are in doubles."""
    rng = np.random.default_rng(6)
    log_pi = np.log(rng.dirichlet(np.ones(COMPONENTS)))
    log_density = -rng.exponential(3.0, (COMPONENTS, RECORDS))
    if request.param == "out of range":
        log_density[:, 50] = -3000.0, -1e6, -2000.0, -3500.0
        log_density[:, 60] = -1e8
    top, scaled, log_f = record_passes.reference(log_pi, log_density)
    if request.param == "out of range":
        top[7], top[RECORDS - 1] = top[7] + 2000.0, top[RECORDS - 1] - 2000.0
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.exp(log_pi[:, None] + log_density - top)
    return log_pi, log_density, scaled, top, log_f


def both(name, *arguments, **changes):
    """Results of both kinds of a pass, with fresh copies of what it may change."""
    results = []
    for passes in (record_passes, compiled_passes):
        fresh = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        with np.errstate(all="ignore"):
            results.append(getattr(passes, name)(*fresh))
    return results


def assert_same(first, second, **tolerances):
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, **{"rtol": 1e-12, "atol": 1e-300} | tolerances)


def test_densities_and_reference(state):
    log_pi, log_density = state[:2]
    first, second = both("reference", log_pi, log_density)
    assert_same(first, second)
    X = dense()
    means = np.random.default_rng(7).standard_normal((COMPONENTS, RECORDS))
    first, second = both("log_densities", response(X), means, np.linspace(0.3, 3.0, COMPONENTS))
    np.testing.assert_allclose(first, second, rtol=1e-12)


def test_labels_and_their_groups(state):
    _, _, scaled, _, _ = state
    rng = np.random.default_rng(8)
    alpha = rng.random(RECORDS)
    first, second = both("draw_labels", scaled, rng.random(RECORDS))
    np.testing.assert_array_equal(first, second)
    assert len(set(first)) == COMPONENTS
    first, second = both("group_by_label", first, alpha, COMPONENTS + 2)
    assert_same(first, second)


def test_terms_are_replaced(state):
    terms = state[:4]
    rows, shares = np.array([2, 0]), np.log([0.4, 0.2])
    new = -np.random.default_rng(9).exponential(3.0, (2, RECORDS))
    new[0, 3] = 4000.0
    for densities, density_rows in ((terms[1], rows), (new, np.arange(2))):
        with np.errstate(all="ignore"):
            first, second = both("replace_terms", rows, shares, densities, density_rows, *terms)
        assert np.all(np.isfinite(first[0]))
        np.testing.assert_allclose(first[0], second[0], rtol=1e-12)
        # what neither can represent may be 0 in one and tiny in the other
        np.testing.assert_allclose(first[1], second[1], rtol=1e-11, atol=1e-300)


def test_shares_of_a_pair(state):
    terms = state[:4]
    alpha = np.random.default_rng(10).random(RECORDS)
    pair = np.array([3, 1])
    total = np.logaddexp(*terms[0][pair])
    first, second = both("pair_terms", pair, total, *terms)
    for kinds in (first, second):
        with np.errstate(under="ignore"):
            # each record has a factor of its own, which drops out of a difference
            values = [
                [passes.share_log_density(x, 0.2, alpha, *kinds) for x in (-30.0, -1.0, 0.0, 2.5)]
                for passes in (record_passes, compiled_passes)
            ]
        np.testing.assert_allclose(values[0], values[1], rtol=1e-12)
    expected = np.array(
        [record_passes.share_log_density(x, 0.2, alpha, *first) for x in (-1.0, 2.5)]
    )
    found = np.array(
        [compiled_passes.share_log_density(x, 0.2, alpha, *second) for x in (-1.0, 2.5)]
    )
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-10)


def moves(state, passes):
    """Coefficients and scale of component 1: five steps, some accepted, then a new scale."""
    log_pi, log_density, scaled, top, log_f = (values.copy() for values in state)
    rng = np.random.default_rng(11)
    residual = np.sqrt(-2.0 * log_density[1])
    shifts = 0.02 * rng.standard_normal((5, RECORDS)) + np.array([[0.0, 0.3, -0.02, -0.3, 0.02]]).T
    rest_alpha = rng.random(RECORDS)
    rest_members = np.where(rng.random(RECORDS) < 0.3, rest_alpha, 0.0)
    thresholds = np.full(6, -4.0)
    with np.errstate(all="ignore"):
        rest = passes.rest_of(1, log_pi, log_density, scaled, top)
        accepted, residual, log_f = passes.try_steps(
            1, shifts, thresholds[:5], residual, 0.9, rest, rest_members, rest_alpha,
            (log_pi, log_density, scaled, top, log_f),
        )
        outcomes = []
        for scale in (0.905, 0.2):
            outcome, log_f = passes.try_scale(
                1, scale, thresholds[5], residual, 0.9, rest, rest_members, rest_alpha,
                (log_pi, log_density, scaled, top, log_f),
            )
            outcomes += [outcome, log_density[1].copy(), np.maximum(scaled[1], 1e-290)]
    return accepted, [residual, log_f, *outcomes]


def test_moves_of_a_component(state):
    (accepted, first), (again, second) = (
        moves(state, passes) for passes in (record_passes, compiled_passes)
    )
    np.testing.assert_array_equal(accepted, again)
    assert 0 < np.count_nonzero(accepted) < 5
    assert (first[2], first[5]) == (True, False)
    assert_same(first, second, rtol=1e-10, atol=1e-12)


# ---- whole chains -------------------------------------------------------------------------------


def chain(passes, kind, weights, far=False, sweeps=25):
    """Parameters and log f at the end of a chain that takes all kinds of steps."""
    X = DESIGNS[kind]()
    y = response(X)
    if far:
        y[:3] = 1e5, -1e5, 300.0
    prior = FiniteMixture(y, X).prior
    rng = np.random.default_rng(12)
    sampler = _Sampler(y, X, weights, COMPONENTS, prior, 3, rng, passes=passes)
    with one_thread():
        sampler.start(None)
        for _ in range(sweeps):
            sampler.sweep()
    return sampler.log_pi, sampler.beta, sampler.sigma, [sampler.concentration], sampler.log_f


UNEQUAL = np.random.default_rng(13).uniform(0.2, 1.0, RECORDS)


@pytest.mark.parametrize("far", [False, True], ids=["near", "far out"])
@pytest.mark.parametrize("weights", [np.ones(RECORDS), UNEQUAL], ids=["ones", "unequal"])
@pytest.mark.parametrize("kind", DESIGNS)
def test_both_kinds_of_passes_give_the_same_chain(kind, weights, far):
    first, second = (
        chain(passes, kind, weights, far) for passes in (record_passes, compiled_passes)
    )
    # records far out drive coefficients to 1e5, and the rounding of the others with them
    assert_same(first, second, rtol=1e-6, atol=1e-5 if far else 1e-8)


def changed(**functions):
    """The compiled passes with some of them exchanged."""
    return SimpleNamespace(**vars(compiled_passes) | functions)


BROKEN = {
    "a correction left out": {"weighted_change": lambda *a: 0.0},
    "steps that leave out a record": {
        "try_steps": lambda k, shifts, *a: compiled_passes.try_steps(
            k, shifts * (np.arange(RECORDS) != 5), *a
        )
    },
    "a scale of which the members do not know": {
        "try_scale": lambda *a: compiled_passes.try_scale(*a[:6], 0.0 * a[6], *a[7:])
    },
}


@pytest.mark.parametrize("broken", BROKEN)
def test_another_pass_gives_another_chain(broken):
    first = chain(record_passes, "dummies", UNEQUAL)
    second = chain(changed(**BROKEN[broken]), "dummies", UNEQUAL)
    assert not all(
        np.allclose(a, b, rtol=1e-6, atol=1e-8) for a, b in zip(first, second, strict=True)
    )


# ---- where the compiled passes come from ------------------------------------------------------

SMALL_FIT = """
import sys
import numpy as np
{before}
import ppm
from ppm.synthesizers.mixture import sampler

y = np.random.default_rng(0).standard_normal(40)
X = np.column_stack([np.ones(40), np.arange(40) % 2])
model = ppm.FiniteMixture(y, X, components=2, warmup=5, parallel=False)
assert "numba" not in sys.modules or sys.modules["numba"] is None
fit = model.fit(np.full(40, 0.5), draws=5, random_seed=1)
print(sampler.fastest_passes().__name__.rpartition(".")[2], "numba" in sys.modules)
print(repr(float(fit["sample_stats"]["weighted_log_likelihood"].sum())))
"""


def small_fit(before=""):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SMALL_FIT.format(before=before)],
        cwd=Path(ppm.__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    passes, value = done.stdout.splitlines()
    return passes.split()[0], float(value)


def test_numpy_stands_in_where_numba_is_missing():
    assert small_fit()[0] == "compiled_passes"
    passes, value = small_fit('sys.modules["numba"] = None')
    assert passes == "record_passes"
    assert value == pytest.approx(small_fit()[1], rel=1e-9)


def test_compiles_also_where_no_folder_can_be_written_to(monkeypatch):
    asked = []

    def njit(signature, cache=False, **options):
        def decorate(function):
            asked.append(cache)
            if cache:
                raise RuntimeError("cannot cache function: no locator available")
            return compiled(signature, **options)(function)

        return decorate

    compiled = compiled_passes.njit
    monkeypatch.setattr(compiled_passes, "njit", njit)
    assert compiled_passes._compile("f8(f8)")(lambda x: x + 1.0)(1.0) == 2.0
    assert asked == [True, False]
