"""Databases and models for tests of studies, in a module that other processes can import."""

import os
from pathlib import Path

import numpy as np
import xarray as xr

import ppm


def counts(n, random_seed):
    return np.random.default_rng(random_seed).poisson(100, n)


def sometimes_impossible(n, random_seed):
    """Every third database has a record that no model takes."""
    rng = np.random.default_rng(random_seed)
    found = rng.poisson(100, n)
    if rng.random() < 1 / 3:
        found[0] = -987654
    return found


def marked_counts(n, random_seed):
    """Leaves a mark in the folder of the environment each time that a database is made."""
    Path(os.environ["PPM_TEST_MARKS"], str(np.random.default_rng().integers(2**62))).touch()
    return counts(n, random_seed)


def pymc_counts(values):
    """The same model in PyMC, with chains as short as a test allows."""
    import pymc as pm

    with pm.Model() as model:
        rate = pm.Gamma("rate", 0.001, 0.001, initval=100.0)
        pm.Poisson("y", rate, observed=values)
    return ppm.PyMCSynthesizer(model, chains=2, warmup=60)


def shifted(log_lik):
    return log_lik - 1.0


class ShiftedCounts(ppm.GammaPoisson):
    """A model whose class says nothing of the function it calls."""

    def log_likelihood(self, fit):
        return shifted(super().log_likelihood(fit))


class Chains(ppm.GammaPoisson):
    """Several chains of the censored posterior, which agree or not."""

    independent_draws = False
    warmup, chains = 100, 2
    stuck = False

    def fit(self, weights=None, *, censor=None, **settings):
        fit = super().fit(weights, censor=censor, **settings)
        mu = fit["posterior"]["mu"].values.reshape(2, -1)
        if self.stuck:
            # both chains have the same largest term: that of a record far below the limits
            mu = np.sort(mu.ravel()).reshape(2, -1)
        mu = xr.Dataset({"mu": (("chain", "draw"), mu)})
        log_lik = self.log_likelihood_at(mu).to_dataset(name="counts")
        return xr.DataTree.from_dict({"posterior": mu, "log_likelihood": log_lik})
