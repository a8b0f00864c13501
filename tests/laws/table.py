"""Rows and columns of the table of laws: models, and rules that give their records terms.

A model in the table stands beside what SciPy alone says of it: its records' log p, its prior, and
places of its parameters. A new model is one entry of `MODELS`, and gets every law.
"""

import doctest
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial

import numpy as np
import pymc as pm
from scipy import integrate, special, stats

import ppm

RECORDS, ALL = 24, np.arange(24)
RNG = np.random.default_rng(7)
COUNTS = np.r_[RNG.poisson(5, 23), 18]
NUMBERS = np.r_[RNG.normal(1.0, 1.0, 23), 4.0]
X = np.linspace(-1.0, 1.0, RECORDS)
# level and slope depend on each other
OFF_CENTER = np.column_stack([np.ones(RECORDS), X + 0.5])
LABELS = np.array(list("aab" * 8))
WEIGHTS = RNG.uniform(0.1, 1.0, RECORDS).round(2)
WEIGHTS[[3, 8]] = 0.0, 1.0


# ---- models ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A model, and what SciPy says of it.

    Parameters
    ----------
    make : callable
        Makes the model of values and rows of records.
    values : numpy.ndarray, shape (records,)
        The confidential values.
    log_p : callable
        Log p by SciPy: of values, rows of records, and a dict of parameters whose last axes are the
        model's own.
    grid : dict
        Places of the parameters; with groups a dict of these by label.
    center : dict
        One place; with groups one for each label.
    far : dict
        Two places, of which one predicts values below ``between``, the other above.
    log_prior : numpy.ndarray, shape (places,)
        Log of the prior's mass on the grid, up to a constant.
    labels : numpy.ndarray, shape (records,), optional
        The groups.
    finite, secure : bool
        Whether the model draws from the grid alone, and takes its random numbers from the operating
        system.
    """

    make: Callable
    values: np.ndarray
    log_p: Callable
    grid: dict
    center: dict
    far: dict
    between: float = 0.0
    log_prior: np.ndarray | float = 0.0
    labels: np.ndarray | None = None
    draws: int = 4_000
    finite: bool = False
    secure: bool = False

    def by_group(self, places):
        """A grid or a center for each group, or for all records by None."""
        return {None: places} if self.labels is None else places

    def own(self, label, rows=ALL):
        """Places of a group's records among these rows."""
        if label is None:
            return np.arange(len(rows))
        return np.flatnonzero(self.labels[rows] == label)

    def log_p_at(self, places, rows=ALL):
        """Log p of records (…, records) at places of the parameters by group."""
        columns, order = [], []
        for label, theta in places.items():
            own = self.own(label, rows)
            theta = {name: np.asarray(value) for name, value in theta.items()}
            columns.append(self.log_p(self.values[rows][own], rows[own], theta))
            order.append(own)
        return np.concatenate(columns, axis=-1)[..., np.argsort(np.concatenate(order))]

    def on_grid(self, rows=ALL):
        """Log p of records at the grid of their group, (places, records)."""
        return self.log_p_at(self.by_group(self.grid), rows)

    def drawn(self, theta):
        """Draws of θ by group and name."""
        if self.labels is None:
            return {None: theta}
        return {
            label: {name: values[:, place] for name, values in theta.items()}
            for place, label in enumerate(self.grid)
        }

    def far_theta(self, place):
        """One θ, in every group the same."""
        theta = {name: np.asarray(values)[place] for name, values in self.far.items()}
        if self.labels is None:
            return theta
        return {
            name: np.stack([value] * len(self.grid)) for name, value in theta.items()
        }


def poisson(values, rows, theta):
    return stats.poisson.logpmf(values, theta["mu"][..., None])


def mean(values, rows, theta):
    return stats.norm.logpdf(values, theta["mean"][..., None])


def regression(values, rows, theta):
    means = theta["beta"] @ OFF_CENTER[rows].T
    return stats.norm.logpdf(values, means, theta["sigma"][..., None])


def line(values, rows, theta):
    means = theta["loc"][..., None] + theta["slope"][..., None] * X[rows]
    return stats.norm.logpdf(values, means, 1.3)


def mixture(columns, values, rows, theta):
    means = theta["beta"] @ columns[rows].T
    parts = stats.norm.logpdf(values, means, theta["sigma"][..., None])
    return special.logsumexp(np.log(theta["pi"])[..., None] + parts, axis=-2)


def gamma_poisson(values, rows):
    return ppm.GammaPoisson(values, shape=2.0, rate=0.4)


def normal(values, rows):
    return ppm.Normal(values, OFF_CENTER[rows], spread=2.0, shape=2.0, scale=1.5)


def in_pymc(values, rows):
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("mu", 2.0, 0.4), observed=values)
    return ppm.PyMCModel(model, warmup=100)


def line_in_pymc(values, rows):
    def build(observed):
        # candidates need no proper prior
        with pm.Model() as model:
            means = pm.Flat("loc") + pm.Flat("slope") * X[rows]
            # 1.5 would be a constant in single precision
            pm.Normal("y", means, 1.3, observed=observed)
        return model

    example = np.random.default_rng(2).normal(size=len(rows))
    return ppm.PyMCModel.from_records(build, values, example=example)


def of_components(components, columns, values, rows):
    settings = {"components": components, "warmup": 100, "parallel": False}
    return ppm.FiniteMixture(values, columns[rows], **settings)


@cache
def example():
    """The class that `ppm.Model` shows as an example of a user's own model."""
    for step in doctest.DocTestParser().get_examples(ppm.Model.__doc__)[:3]:
        exec(step.source, globals())
    return globals()["Mean"]


def documented(values, rows):
    return example()(values)


def candidates(make, grid, values, rows, labels=None, **settings):
    """A finite set; the number of a candidate stays in the draws."""

    def numbered(places):
        return places | {"k": np.arange(len([*places.values()][0]))}

    if labels is None:
        grid = numbered(grid)
    else:
        grid = {label: numbered(places) for label, places in grid.items()}
        settings["groups"] = labels[rows]
    return ppm.Candidates(make(values, rows), grid, **settings)


def mean_and_scale():
    """Places of one component, and the log of their prior's mass."""
    means, scales = np.linspace(-1.5, 3.5, 101), np.geomspace(0.05, 8.0, 81)
    wide = np.geomspace(1e-3, 1e3, 2_001)[:, None]
    # over the half-t scale of the coefficient
    density = stats.t.pdf(wide, 3) * stats.norm.pdf(means, 0.0, wide)
    mean_prior = np.log(integrate.trapezoid(density, wide, axis=0))
    mean, scale = map(np.ravel, np.meshgrid(means, scales))
    grid = {"pi": np.ones((mean.size, 1)), "beta": mean[:, None, None]}
    scale_prior = stats.t.logpdf(scale, 3) + np.log(scale)
    prior = np.tile(mean_prior, scales.size) + scale_prior
    return grid | {"sigma": scale[:, None]}, prior


def lines_and_scale():
    """Places of a regression, and the log of its conjugate prior's mass."""
    axes = (
        np.linspace(-1.2, 3.4, 41),
        np.linspace(-2.2, 2.8, 41),
        np.geomspace(0.5, 3.5, 33),
    )
    level, slope, sigma = map(np.ravel, np.meshgrid(*axes, indexing="ij"))
    prior = stats.invgamma.logpdf(sigma**2, 2.0, scale=1.5) + 2 * np.log(sigma)
    for coefficient in level, slope:
        prior += stats.norm.logpdf(coefficient, 0.0, 2.0 * sigma)
    return {"beta": np.column_stack([level, slope]), "sigma": sigma}, prior


def far_components(number):
    sides = np.array([-50.0, 50.0])[:, None, None]
    theta = {"pi": np.full((2, number), 1.0 / number), "sigma": np.ones((2, number))}
    return theta | {"beta": sides * np.eye(1, number).repeat(number, axis=0)}


ONE, LINE = np.ones((RECORDS, 1)), np.column_stack([np.ones(RECORDS), X])
MU = np.geomspace(1e-3, 80.0, 1_500)
SET = {"mu": np.geomspace(2.0, 20.0, 16)}
SETS = {"a": SET, "b": {"mu": 1.3 * SET["mu"]}}
SOME = np.random.default_rng(5)
LINES = {"loc": SOME.normal(1, 0.5, 9), "slope": SOME.normal(0, 1, 9)}
SHARE = SOME.uniform(0.2, 0.8, 9)
TWO = {
    "pi": np.column_stack([SHARE, 1 - SHARE]),
    "beta": SOME.normal(0.7, 0.7, (9, 2, 2)),
    "sigma": SOME.uniform(0.7, 2.0, (9, 2)),
}
ONE_GRID, ONE_PRIOR = mean_and_scale()
LINE_GRID, LINE_PRIOR = lines_and_scale()

COUNTED = {
    "values": COUNTS,
    "log_p": poisson,
    "center": {"mu": 5.0},
    "far": {"mu": [0.5, 400.0]},
    "between": 100,
}
POISSON = COUNTED | {
    "grid": {"mu": MU},
    "log_prior": stats.gamma.logpdf(MU, 2.0, scale=2.5) + np.log(MU),
}
FINITE = COUNTED | {"grid": SET, "finite": True}
MODELS = {
    "GammaPoisson": Row(gamma_poisson, **POISSON),
    "Normal": Row(
        normal,
        NUMBERS,
        regression,
        LINE_GRID,
        center={"beta": [1.0, 0.0], "sigma": 1.0},
        far={"beta": [[-50.0, 0.0], [50.0, 0.0]], "sigma": [1.0, 1.0]},
        log_prior=LINE_PRIOR,
    ),
    "PyMCModel": Row(in_pymc, **POISSON, draws=300),
    "FiniteMixture": Row(
        partial(of_components, 1, ONE),
        NUMBERS,
        partial(mixture, ONE),
        ONE_GRID,
        center={"pi": [1.0], "beta": [[1.0]], "sigma": [1.0]},
        far=far_components(1),
        log_prior=ONE_PRIOR,
        draws=500,
    ),
    "user's own": Row(
        documented,
        NUMBERS,
        mean,
        {"mean": np.linspace(-2, 5, 2_001)},
        center={"mean": 1.0},
        far={"mean": [-50.0, 50.0]},
    ),
    "Candidates": Row(partial(candidates, gamma_poisson, SET), **FINITE),
    "candidates, mixture": Row(
        partial(candidates, partial(of_components, 2, LINE), TWO),
        NUMBERS,
        partial(mixture, LINE),
        TWO,
        center={name: value[0].tolist() for name, value in TWO.items()},
        far=far_components(2),
        finite=True,
    ),
    "candidates, PyMC": Row(
        partial(candidates, line_in_pymc, LINES),
        NUMBERS,
        line,
        LINES,
        center={"loc": 1.0, "slope": 0.5},
        far={"loc": [-900.0, 900.0], "slope": [0.0, 0.0]},
        draws=1_000,
        finite=True,
    ),
    "groups": Row(
        partial(candidates, gamma_poisson, SETS, labels=LABELS),
        **FINITE | {"grid": SETS, "center": {"a": {"mu": 5.0}, "b": {"mu": 7.0}}},
        labels=LABELS,
    ),
    "secure noise": Row(
        partial(candidates, gamma_poisson, SET, secure_noise=True),
        **FINITE,
        draws=2_000,
        secure=True,
    ),
}


# ---- rules -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """Public weights and limits of all records, or own weights."""

    weights: np.ndarray | None = None
    limits: tuple | None = None
    centered: bool = False
    cap: float | None = None

    @property
    def strict(self):
        return self.limits is not None or self.cap is not None

    @property
    def width(self):
        """What a term can move by."""
        if self.limits is None:
            return self.cap or np.inf
        return self.limits[1] - self.limits[0]

    def taken_by(self, row):
        """Whether the model takes such terms."""
        return row.finite if self.strict else not row.secure

    def rule(self, row, rows=ALL):
        """The library's rule."""
        if self.cap:
            return ppm.Capped(self.cap)
        if self.limits is None:
            return (
                ppm.Unweighted()
                if self.weights is None
                else ppm.Given(self.weights[rows])
            )
        weight = 1.0 if self.weights is None else self.weights[rows]
        center = row.center if self.centered else None
        return ppm.Limited(ppm.Limits(*self.limits), center=center, weight=weight)

    def weights_and_levels(self, row):
        """Weights α and levels b of all records, by their definitions."""
        if self.cap:
            log_p = row.on_grid()
            return np.minimum(1.0, self.cap / np.ptp(log_p, axis=0)), log_p.min(axis=0)
        weights = np.ones(RECORDS) if self.weights is None else self.weights
        if not self.centered:
            return weights, np.zeros(RECORDS)
        return weights, row.log_p_at(row.by_group(row.center))

    def formula(self, log_p, weights, levels):
        """Terms h(α (log p - b)), record by record."""
        low, high = self.limits or (-np.inf, np.inf)
        terms = np.zeros_like(log_p)
        # a record of weight 0 has none
        for record in np.flatnonzero(weights):
            term = weights[record] * (log_p[..., record] - levels[record])
            terms[..., record] = np.minimum(np.maximum(term, low), high)
        return terms


COLUMNS = {
    "limits": Column(limits=(-3.0, -1.0)),
    "unweighted": Column(),
    "weights": Column(WEIGHTS),
    "limits, sampling weights": Column(3.0 * WEIGHTS, (-6.0, -2.0)),
    "limits, centered": Column(WEIGHTS, (-0.5, 0.5), centered=True),
    "own weights": Column(cap=0.7),
}


# ---- cells -----------------------------------------------------------------------------------


@cache
def made(name, rows, order):
    """Models are made once, because one in PyMC is compiled."""
    row, rows = MODELS[name], np.array(rows)
    return row.make(row.values[::order][rows], rows)


def terms_of(model, rule):
    """Terms of a rule that asks for no fit."""
    return rule.terms(model, None)


@dataclass
class Cell:
    """A model under a rule: the library's model, its terms and fit, each of them made once."""

    name: str
    column_name: str
    make: Callable = made

    @property
    def row(self):
        return MODELS[self.name]

    @property
    def column(self):
        return COLUMNS[self.column_name]

    @property
    def rule(self):
        return self.column.rule(self.row)

    def model_of(self, rows, order=1):
        return self.make(self.name, tuple(rows.tolist()), order)

    @cached_property
    def model(self):
        return self.model_of(ALL)

    @cached_property
    def other(self):
        """The same model of other records: the values stand backwards."""
        return self.model_of(ALL, -1)

    @cached_property
    def terms(self):
        return terms_of(self.model, self.rule)

    @cached_property
    def fit(self):
        return self.fitted(draws=self.row.draws, random_seed=5)

    def fitted(self, rule=None, **settings):
        """A fit under this rule, or under its own."""
        rule = self.rule if rule is None else rule
        return ppm.fit(self.model, rule, allow_disagreement=True, **settings)

    def without(self, record):
        """Rows, model and terms of all records but one."""
        rows = np.delete(ALL, record)
        model = self.model_of(rows)
        return rows, model, terms_of(model, self.column.rule(self.row, rows))
