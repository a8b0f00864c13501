"""Fit many kinds of models and search every file that was written for their records' bytes.

Run by ``test_confidential_bytes.py`` in a process of its own, whose home, temporary, working and
compile folder lie in one folder: ``python models_that_could_write.py FOLDER REMEDY NAME …``.
Prints a JSON object: what was found, model -> kind of value -> encoding -> how many of them.
"""

import json
import os
import shutil
import sys
import threading
import warnings
from pathlib import Path

import numpy as np

BESIDE = ("own sampling", "GammaPoisson", "FiniteMixture", "missing values")
WEIGHTS = np.random.default_rng(8).uniform(0.1, 0.9, 12)


def use(name, family):
    """Everything that compiles something: fits, log-likelihoods, releases."""
    import pymc as pm

    import ppm

    if name == "own sampling":
        pm.sample(
            2,
            tune=2,
            chains=1,
            model=family.model_of(family.hierarchical),
            nuts_sampler="pymc",
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
        )
        return
    if name == "GammaPoisson":
        model = ppm.GammaPoisson(family.IDS)
    elif name == "FiniteMixture":
        predictors = np.column_stack([np.ones(family.RECORDS), family.X])
        model = ppm.FiniteMixture(
            family.Y, predictors, components=2, chains=2, warmup=2
        )
    else:
        missing = np.ma.masked_array(family.Y, family.Y_MASK)
        write = {
            "missing values": lambda: pm.Normal(
                "y", pm.Normal("beta") * family.X, observed=missing
            ),
            "poisson": family.poisson,
        }[name]
        model = family.model_of(write)
        model = ppm.PyMCModel(model, chains=2, warmup=2)
    for rule in (ppm.ByRisk(), ppm.Terms(WEIGHTS)):
        fit = ppm.fit(model, rule, draws=2, random_seed=2, allow_disagreement=True)
        fit.release(2, random_seed=3)


def needles(values):
    """Encoding -> byte strings, each of which is enough to recognise records by."""
    column = np.ravel(values)
    if column.dtype.kind == "i" and column.max() < 10:
        # no single count says anything, all of them together do
        kinds = ("int64", "int32", "int16", "int8", "float64", "float32")
        return {kind: [column.astype(kind).tobytes()] for kind in kinds}
    whole = column.dtype.kind == "i"
    single = {kind: column.astype(kind) for kind in ("float64", *["int64"] * whole)}
    single["logarithm"] = np.log(column[column > 0])
    found = {kind: [value.tobytes() for value in many] for kind, many in single.items()}
    for kind in ("float32", *["int32"] * whole):
        # four bytes alone would be met by chance
        pairs = np.lib.stride_tricks.sliding_window_view(column.astype(kind), 2)
        found[kind] = [pair.tobytes() for pair in pairs]
    return found | {"text": [str(value)[:8].encode() for value in column]}


def search(folder, arrays):
    """Name -> encoding -> number of needles that are found in the files below a folder."""
    paths = [path for path in Path(folder).rglob("*") if path.is_file()]
    haystack = b"\0".join(
        [path.read_bytes() for path in paths] + [bytes(path) for path in paths]
    )
    return {
        name: {
            kind: sum(n in haystack for n in many)
            for kind, many in needles(array).items()
        }
        for name, array in arrays.items()
    }, len(paths)


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
                path, parent = Path(os.fsdecode(arguments[0])), arguments[1]
                path = (
                    path
                    if parent == -1
                    else Path(os.readlink(f"/proc/self/fd/{parent}"), path)
                )
                if path.is_file() and not path.is_symlink():
                    self.removed += 1
                    shutil.copy(path, self.folder / f"removed {self.removed}")
            elif isinstance(arguments[0], str | bytes):
                mode, flags = arguments[1:]
                path = Path(os.fsdecode(arguments[0])).absolute()
                written = (
                    {*mode} & {*"wax+"} if isinstance(mode, str) else flags & 0o103
                )
                # numba tries whether a folder is writable, by a file without a name
                if (
                    written
                    and not path.is_dir()
                    and not path.is_relative_to(self.folder)
                ):
                    self.elsewhere |= (
                        set() if path.is_relative_to("/dev") else {str(path)}
                    )
        finally:
            self.busy.now = False


def main(folder, remedy, *names):
    """Fit the models one after another, and search after each."""
    warnings.simplefilter("ignore")
    watch = Watch(folder)
    import pytensor
    from pytensor.link import utils
    from pytensor.link.numba import cache

    original = utils.write_generated_src
    import test_pymc as family

    import ppm.models.pymc  # noqa: F401

    if remedy == "without":
        pytensor.config.numba__cache = True
        utils.write_generated_src = cache.write_generated_src = original
    found = {}
    arrays = {
        name: getattr(family, name) for name in ("X", "Y", "PAIRS", "COUNTS", "IDS")
    }
    for name in names:
        use(name, family)
        found[name], files = search(folder, arrays | {"weights": WEIGHTS})
    json.dump(
        {"found": found, "files": files, "elsewhere": [*watch.elsewhere]}, sys.stdout
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
