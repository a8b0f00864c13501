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
import xarray as xr
from scipy import integrate, special, stats

import ppm
from ppm.terms import as_terms

RECORDS, ALL = 24, np.arange(24)
RNG = np.random.default_rng(7)
COUNTS = np.r_[RNG.poisson(5, 23), 18]
NUMBERS = np.r_[RNG.normal(1.0, 1.0, 23), 4.0]
X = np.linspace(-1.0, 1.0, RECORDS)
LABELS = np.array(list("aab" * 8))
WEIGHTS = RNG.uniform(0.1, 1.0, RECORDS).round(2)
WEIGHTS[[3, 8]] = 0.0, 1.0


# ---- models ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """A synthesizer, and what SciPy says of it.

    Parameters
    ----------
    make : callable
        Makes the synthesizer of values and rows of records.
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
    limits, finite, chain, secure : bool
        Whether the model takes limits, draws from the grid alone, has a Markov chain, and takes its
        random numbers from the operating system.
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
    limits: bool = True
    finite: bool = False
    chain: bool = False
    secure: bool = False

    def by_group(self, one):
        """A grid or a center for each group, or for all records by None."""
        return {None: one} if self.labels is None else one

    def own(self, label, rows=ALL):
        """Places of a group's records among these rows."""
        if label is None:
            return np.arange(len(rows))
        return np.flatnonzero(self.labels[rows] == label)

    def log_p_at(self, places, rows=ALL):
        """Log p of records (…, records) at places of the parameters by group."""
        found, order = [], []
        for label, at in places.items():
            own = self.own(label, rows)
            at = {name: np.asarray(value) for name, value in at.items()}
            found.append(self.log_p(self.values[rows][own], rows[own], at))
            order.append(own)
        return np.concatenate(found, axis=-1)[..., np.argsort(np.concatenate(order))]

    def on_grid(self, rows=ALL):
        """Log p of records at the grid of their group, (places, records)."""
        return self.log_p_at(self.by_group(self.grid), rows)

    def drawn(self, fit):
        """Parameters in a fit, by group and name."""
        posterior = fit["posterior"].dataset
        alone = {
            label: posterior if label is None else posterior.sel(group=label)
            for label in self.by_group(self.grid)
        }
        return {
            label: {
                name: own[name].transpose("chain", "draw", ...).values for name in own
            }
            for label, own in alone.items()
        }

    def fit_at(self, places):
        """A fit with these places as its draws, in every group the same.

        Of two chains the last draw alone has the second place, of one chain as well.
        """
        at = np.array([[0, 0], [0, 1]] if self.chain else [[0, 1]])
        one = xr.Dataset(
            {
                name: (
                    ("chain", "draw", "k", "r")[: 1 + np.ndim(value)],
                    np.array(value)[at],
                )
                for name, value in places.items()
            }
        )
        one = one.assign_coords(chain=range(len(at)), draw=[0, 1])
        if self.labels is not None:
            one = one.expand_dims(group=[*self.grid])
        return xr.DataTree.from_dict({"posterior": one})


def poisson(values, rows, at):
    return stats.poisson.logpmf(values, at["mu"][..., None])


def normal(values, rows, at):
    return stats.norm.logpdf(values, at["mean"][..., None])


def line(values, rows, at):
    mean = at["loc"][..., None] + at["slope"][..., None] * X[rows]
    return stats.norm.logpdf(values, mean, 1.3)


def mixture(columns, values, rows, at):
    means = at["beta"] @ columns[rows].T
    parts = stats.norm.logpdf(values, means, at["sigma"][..., None])
    return special.logsumexp(np.log(at["pi"])[..., None] + parts, axis=-2)


def gamma_poisson(values, rows):
    return ppm.GammaPoisson(values, shape=2.0, rate=0.4)


def in_pymc(values, rows):
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("mu", 2.0, 0.4), observed=values)
    return ppm.PyMCSynthesizer(model, warmup=100)


def line_in_pymc(values, rows):
    # candidates need no proper prior
    with pm.Model() as model:
        mean = pm.Flat("loc") + pm.Flat("slope") * X[rows]
        # 1.5 would be a constant in single precision
        pm.Normal("y", mean, 1.3, observed=values)
    return ppm.PyMCSynthesizer(model)


def of_components(components, columns, values, rows):
    settings = {"components": components, "warmup": 100, "parallel": False}
    return ppm.FiniteMixture(values, columns[rows], **settings)


@cache
def example():
    """The class that `ppm.Synthesizer` shows as an example of a user's own model."""
    for step in doctest.DocTestParser().get_examples(ppm.Synthesizer.__doc__)[:3]:
        exec(step.source, globals())
    return globals()["Normal"]


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
    return ppm.CandidateSynthesizer(make(values, rows), grid, **settings)


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


def far_components(number):
    sides = np.array([-50.0, 50.0])[:, None, None]
    at = {"pi": np.full((2, number), 1.0 / number), "sigma": np.ones((2, number))}
    return at | {"beta": sides * np.eye(1, number).repeat(number, axis=0)}


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
    "GammaPoisson": Model(gamma_poisson, **POISSON),
    "PyMCSynthesizer": Model(in_pymc, **POISSON, draws=300, chain=True),
    "FiniteMixture": Model(
        partial(of_components, 1, ONE),
        NUMBERS,
        partial(mixture, ONE),
        ONE_GRID,
        center={"pi": [1.0], "beta": [[1.0]], "sigma": [1.0]},
        far=far_components(1),
        log_prior=ONE_PRIOR,
        draws=500,
        chain=True,
    ),
    "user's own": Model(
        documented,
        NUMBERS,
        normal,
        {"mean": np.linspace(-2, 5, 2_001)},
        center={"mean": 1.0},
        far={"mean": [-50.0, 50.0]},
        limits=False,
    ),
    "CandidateSynthesizer": Model(partial(candidates, gamma_poisson, SET), **FINITE),
    "candidates, mixture": Model(
        partial(candidates, partial(of_components, 2, LINE), TWO),
        NUMBERS,
        partial(mixture, LINE),
        TWO,
        center={name: value[0].tolist() for name, value in TWO.items()},
        far=far_components(2),
        finite=True,
    ),
    "candidates, PyMC": Model(
        partial(candidates, line_in_pymc, LINES),
        NUMBERS,
        line,
        LINES,
        center={"loc": 1.0, "slope": 0.5},
        far={"loc": [-900.0, 900.0], "slope": [0.0, 0.0]},
        draws=1_000,
        finite=True,
    ),
    "groups": Model(
        partial(candidates, gamma_poisson, SETS, labels=LABELS),
        **FINITE | {"grid": SETS, "center": {"a": {"mu": 5.0}, "b": {"mu": 7.0}}},
        labels=LABELS,
    ),
    "secure noise": Model(
        partial(candidates, gamma_poisson, SET, secure_noise=True),
        **FINITE,
        draws=2_000,
        secure=True,
    ),
}


# ---- terms -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """Weights and limits of all records, or a cap, and what is to be said of them."""

    weights: np.ndarray | None = None
    limits: tuple | None = None
    centered: bool = False
    cap: float | None = None
    own: bool = True
    source: str = "caller"

    @property
    def width(self):
        """What a term can move by."""
        if self.limits is None:
            return self.cap or np.inf
        return self.limits[1] - self.limits[0]

    def taken_by(self, model):
        """Whether the model takes such terms."""
        if self.cap:
            return model.finite
        return model.limits if self.limits else not model.secure

    def terms(self, model, synthesizer, rows=ALL):
        """The library's terms."""
        if self.cap:
            return ppm.rules.capped(synthesizer, self.cap)
        terms = None
        if self.weights is not None:
            terms = ppm.Terms(self.weights[rows], own=self.own)
        if self.limits is None:
            return as_terms(terms, len(rows))
        center = model.center if self.centered else None
        limits = ppm.Censoring(*self.limits, center=center)
        return ppm.rules.limited(synthesizer, limits, terms)

    def weights_and_levels(self, model):
        """Weights α and levels b of all records, by their definitions."""
        if self.cap:
            log_p = model.on_grid()
            return np.minimum(1.0, self.cap / np.ptp(log_p, axis=0)), log_p.min(axis=0)
        weights = np.ones(RECORDS) if self.weights is None else self.weights
        if not self.centered:
            return weights, np.zeros(RECORDS)
        return weights, model.log_p_at(model.by_group(model.center))

    def formula(self, log_p, weights, levels):
        """Terms h(α (log p - b)), record by record."""
        low, high, smooth = self.limits or (-np.inf, np.inf, False)
        terms = np.zeros_like(log_p)
        # a record of weight 0 has none
        for record in np.flatnonzero(weights):
            term = weights[record] * (log_p[..., record] - levels[record])
            if smooth:
                middle, half = (high + low) / 2, (high - low) / 2
                term = middle + half * np.tanh((term - middle) / half)
            terms[..., record] = np.minimum(np.maximum(term, low), high)
        return terms


AROUND_0, SMOOTH_AROUND_0 = (-0.5, 0.5, False), (-0.5, 0.5, True)
RULES = {
    "hard": Rule(limits=(-3.0, -1.0, False), source="ones"),
    "plain": Rule(source="ones"),
    "weights": Rule(WEIGHTS),
    "smooth, given weights": Rule(WEIGHTS, (-4.0, -1.5, True), own=False),
    "hard, sampling weights": Rule(3.0 * WEIGHTS, (-6.0, -2.0, False)),
    "smooth, centered": Rule(None, SMOOTH_AROUND_0, centered=True, source="ones"),
    "hard, centered": Rule(WEIGHTS, AROUND_0, centered=True),
    "cap": Rule(cap=0.7, source="own range"),
}


# ---- cells -----------------------------------------------------------------------------------


@cache
def made(name, rows, order):
    """Models are made once, because one in PyMC is compiled."""
    model, rows = MODELS[name], np.array(rows)
    return model.make(model.values[::order][rows], rows)


@dataclass
class Cell:
    """A model under a rule: its synthesizer, terms and fit, each of them made once."""

    name: str
    rule_name: str
    make: Callable = made

    @property
    def model(self):
        return MODELS[self.name]

    @property
    def rule(self):
        return RULES[self.rule_name]

    def synthesizer_of(self, rows, order=1):
        return self.make(self.name, tuple(rows.tolist()), order)

    @cached_property
    def synthesizer(self):
        return self.synthesizer_of(ALL)

    @cached_property
    def other(self):
        """The same model of other records: the values stand backwards."""
        return self.synthesizer_of(ALL, -1)

    @cached_property
    def terms(self):
        return self.rule.terms(self.model, self.synthesizer)

    @cached_property
    def fit(self):
        return self.fitted(draws=self.model.draws, random_seed=5)

    def fitted(self, terms=None, **settings):
        """A fit with these terms, or with its own."""
        terms = self.terms if terms is None else terms
        return ppm.fit(self.synthesizer, terms, allow_disagreement=True, **settings)

    def without(self, record):
        """Rows, model and terms of all records but one."""
        rows = np.delete(ALL, record)
        synthesizer = self.synthesizer_of(rows)
        return rows, synthesizer, self.rule.terms(self.model, synthesizer, rows)
