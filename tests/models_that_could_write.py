"""Fit a dozen kinds of models and search every file that was written for their records' bytes.

Run by ``test_confidential_bytes.py`` in a process of its own, whose home, temporary, working and
compile folder lie in one folder: ``python models_that_could_write.py FOLDER REMEDY MODEL …``.
Prints a JSON object: model -> kind of value -> encoding -> how many of them were found.
"""

import contextlib
import json
import os
import shutil
import sys
import threading
import warnings
from pathlib import Path

import numpy as np

RECORDS = 24
MODELS = {}


def model(build):
    """Add a model: a function that returns a synthesizer and its confidential arrays by name."""
    MODELS[build.__name__] = build
    return build


def _values(seed):
    """Numbers of seven digits, the last of them no 0, so that NumPy prints them as they are."""
    return np.random.default_rng(seed).permutation(999_999)[:RECORDS] // 10 * 1e-5 + 3.000001


def _codes(seed):
    """Whole numbers of nine digits."""
    return np.random.default_rng(seed).integers(1e8, 2e8, RECORDS)


def _few(seed, kinds):
    """Whole numbers from 0 on, of which only the whole column can be recognised."""
    return np.random.default_rng(seed).integers(0, kinds, RECORDS)


def _any_model(build, nuts_sampler="pymc", **confidential):
    import pymc as pm

    import ppm

    with pm.Model(coords={"person": _codes(99)}) as written:
        build(pm)
    synthesizer = ppm.PyMCSynthesizer(written, chains=2, warmup=2, nuts_sampler=nuts_sampler)
    return synthesizer, {"ids": _codes(99), **confidential}


@model
def normal():
    y = _values(1)
    return _any_model(
        lambda pm: pm.Normal("y", pm.Normal("mu", 8.0), pm.HalfNormal("sigma"), observed=y), y=y
    )


@model
def hierarchical():
    y, x, age, region = _values(2), _values(3), _codes(4), _few(5, 4)

    def build(pm):
        level = pm.Normal("level", pm.Normal("mu", 8.0), 1.0, shape=4)
        mean = level[region] + pm.Normal("b") * x + 1e-20 * (age - pm.Normal("c")) ** 2
        pm.Normal("y", mean, 1.0, observed=y, dims="person")

    return _any_model(build, y=y, x=x, age=age, region=region)


@model
def logistic():
    y, x = _few(6, 2), _values(7)
    return _any_model(
        lambda pm: pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Normal("b") * x, observed=y),
        y=y, x=x,
    )


@model
def poisson():
    y, exposure = _codes(8), _values(9)
    return _any_model(
        lambda pm: pm.Poisson("y", pm.Gamma("rate", 10.0, 1e-6) * exposure, observed=y),
        y=y, exposure=exposure,
    )


@model
def negative_binomial():
    y = _codes(10)
    return _any_model(
        lambda pm: pm.NegativeBinomial(
            "y", mu=pm.Gamma("rate", 10.0, 1e-7), alpha=pm.Exponential("alpha", 1.0), observed=y
        ),
        y=y,
    )


@model
def lognormal_with_data_containers():
    y, x = _values(11), _values(12)

    def build(pm):
        mean = pm.Normal("a") + pm.Normal("b") * pm.Data("x", x)
        pm.LogNormal("y", mean, pm.HalfNormal("sigma"), observed=pm.Data("income", y))

    return _any_model(build, y=y, x=x)


@model
def masked():
    y = _values(13)
    missing = np.ma.masked_array(y, np.arange(RECORDS) % 5 == 2)
    return _any_model(lambda pm: pm.Normal("y", pm.Normal("mu", 8.0), 1.0, observed=missing), y=y)


@model
def two_responses():
    y, z = _values(14), _codes(15)

    def build(pm):
        pm.Normal("y", pm.Normal("mu", 8.0), 1.0, observed=y)
        pm.Poisson("z", pm.Gamma("rate", 10.0, 1e-7), observed=z)

    return _any_model(build, y=y, z=z)


@model
def multivariate():
    y = np.column_stack([_values(16), _values(17)])
    covariance = np.array([[1.0, 0.3], [0.3, 2.0]])
    return _any_model(
        lambda pm: pm.MvNormal("y", pm.Normal("mu", 8.0, shape=2), covariance, observed=y), y=y
    )


@model
def own_distribution():
    y, known = _values(18), _values(19)

    def build(pm):
        def log_density(value, mean):
            return -0.5 * (value - mean * known) ** 2

        def draw(mean, rng=None, size=None):
            return rng.normal(mean * known)

        mean = pm.Normal("mean", 1.0)
        pm.CustomDist("y", mean, logp=log_density, random=draw, observed=y, signature="()->()")

    return _any_model(build, y=y, known=known)


@model
def response_in_a_prior():
    y = _values(24)

    def build(pm):
        first = pm.Normal("y", pm.Normal("mu", 8.0), 1.0, observed=y)
        later = pm.Normal("later", first.mean(), 1.0)
        pm.Normal("z", later, 1.0, observed=y + 1.0)

    return _any_model(build, y=y, z=y + 1.0)


@model
def drawn_by_nutpie():
    y, x = _values(25), _values(26)

    def build(pm):
        pm.Normal("y", x * pm.Normal("mu", 8.0), 1.0, observed=y, dims="person")

    return _any_model(build, nuts_sampler="nutpie", y=y, x=x)


@model
def gamma_poisson():
    import ppm

    return ppm.GammaPoisson(_codes(20)), {"y": _codes(20)}


@model
def finite_mixture():
    import ppm

    y, x = _values(22), _values(23)
    X = np.column_stack([np.ones(RECORDS), x])
    return ppm.FiniteMixture(y, X, components=2, chains=2, warmup=2), {"y": y, "x": x}


def use(synthesizer, weights):
    """Everything that compiles something: fits, log-likelihoods, releases."""
    fit = synthesizer.fit(draws=2, random_seed=1)
    fit = synthesizer.fit(weights, draws=2, random_seed=2)
    synthesizer.log_likelihood(fit)
    synthesizer.predict(fit, releases=2, random_seed=3)


def use_rewritten_model(synthesizer):
    """What a user may do with the rewritten model itself, before any fit."""
    import pymc as pm

    quiet = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
    # where nutpie is installed PyMC would take that, which compiles by itself and leaves files
    quiet["nuts_sampler"] = "pymc"
    pm.sample(2, tune=2, chains=1, cores=1, model=synthesizer.model, **quiet)


# ---- the search -------------------------------------------------------------------------------


def needles(values):
    """Encoding -> byte strings, each of which is enough to recognise records by."""
    column = np.asarray(values).ravel()
    if column.dtype.kind == "i" and column.max() < 10:
        # no single category says anything, all of them together do
        kinds = ("int64", "int32", "int16", "int8", "float64", "float32")
        return {kind: [column.astype(kind).tobytes()] for kind in kinds}
    found = {"float64": column.astype("float64"), "logarithm": np.log(column)}
    # four bytes alone would be met by chance
    pairs = {"float32": column.astype("float32")}
    if column.dtype.kind == "i":
        found["int64"], pairs["int32"] = column, column.astype("int32")
    found = {kind: [value.tobytes() for value in many] for kind, many in found.items()}
    for kind, many in pairs.items():
        found[kind] = [pair.tobytes() for pair in np.lib.stride_tricks.sliding_window_view(many, 2)]
    found["text"] = [str(value)[:8].encode() for value in column]
    return found


def files_below(folder):
    """The files in a folder and in those below it."""
    return [path for path in Path(folder).rglob("*") if path.is_file()]


def search(folder, arrays):
    """Name -> encoding -> number of needles that are found in the files below a folder."""
    paths = files_below(folder)
    haystack = b"\0".join([path.read_bytes() for path in paths] + [bytes(path) for path in paths])
    return {
        name: {kind: sum(n in haystack for n in many) for kind, many in needles(array).items()}
        for name, array in arrays.items()
    }


class Watch:
    """Keep what is removed, and the names of files that are written elsewhere than in a folder."""

    def __init__(self, folder):
        self.folder, self.elsewhere, self.removed = Path(folder).resolve(), set(), 0
        self.busy = threading.local()
        sys.addaudithook(self)

    def __call__(self, event, arguments):
        if event not in ("open", "os.remove") or getattr(self.busy, "now", False):
            return
        self.busy.now = True
        try:
            if event == "os.remove":
                self.keep(*arguments)
            elif isinstance(arguments[0], str | bytes) and _writes(*arguments[1:]):
                path = Path(os.fsdecode(arguments[0])).absolute()
                if not path.is_relative_to(self.folder) and not path.is_relative_to("/dev"):
                    self.elsewhere.add(str(path))
        finally:
            self.busy.now = False

    def keep(self, path, parent):
        """Copy a file that is about to be removed."""
        path = Path(os.fsdecode(path))
        if parent != -1:
            path = Path(os.readlink(f"/proc/self/fd/{parent}"), path)
        if path.is_file() and not path.is_symlink():
            self.removed += 1
            shutil.copy(path, self.folder / f"removed {self.removed}")


def _writes(mode, flags):
    if isinstance(mode, str):
        return bool(set(mode) & set("wax+"))
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


@contextlib.contextmanager
def _no_remedy():
    import pytensor

    with pytensor.config.change_flags(cxx=""):
        yield


def main(folder, remedy, *names):
    """Fit the models one after another, and search after each."""
    warnings.simplefilter("ignore")
    watch = Watch(folder)
    found = {}
    import pytensor

    from ppm.synthesizers import pymc_rewriting

    settings = (pytensor.config.numba__cache, pytensor.config.cxx)
    if remedy == "without":
        pymc_rewriting.nothing_written = _no_remedy
    weights = _values(98) / 10.0
    for name in names:
        synthesizer, confidential = MODELS[name]()
        if name in ("normal", "response_in_a_prior"):
            use_rewritten_model(synthesizer)
        if name != "response_in_a_prior":
            use(synthesizer, weights)
        found[name] = search(folder, {**confidential, "weights": weights})
    assert (pytensor.config.numba__cache, pytensor.config.cxx) == settings
    report = {
        "found": found,
        "elsewhere": sorted(watch.elsewhere),
        "files": len(files_below(folder)),
    }
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
