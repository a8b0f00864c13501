"""Calibration of the mixture's sampler at weights of 1: parameters and data drawn from the model.

If θ is drawn from the prior and y given θ, then θ is itself a draw from the posterior given y. A
sampler that starts there and leaves the posterior as it is ends, after any number of sweeps, at
a θ with the same joint distribution with y. Hence the mean of every function of (θ, y) is the
same before and after, however slowly the sampler mixes: no sweeps are lost to warming up.
"""

import numpy as np
import pytest
from scipy import stats

from ppm._validation import one_thread
from ppm.synthesizers.mixture.model import FiniteMixture, Sampler

RECORDS, COMPONENTS, SWEEPS, REPLICATES = 30, 2, 12, 400
X = np.column_stack([np.ones(RECORDS), np.linspace(-1.5, 1.5, RECORDS)])
PRIOR = FiniteMixture(
    np.zeros(RECORDS), X, components=COMPONENTS, concentration_prior=(4.0, 2.0), residual_df=5.0
).prior


def quantities(y, pi, beta, sigma, concentration):
    """Functions of parameters and data that do not depend on how components are numbered."""
    with np.errstate(divide="ignore"):
        log_f = np.log(stats.norm.pdf(y[:, None], X @ beta.T, sigma) @ pi)
    order = np.argsort(pi)
    return {
        "log_likelihood": log_f.sum(),
        "lowest": log_f.min(),
        "largest_pi": pi.max(),
        "log_smallest_pi": np.log(pi.min() + 1e-6),
        "log_sigma_of_large": np.log(sigma[order[-1]]),
        "log_sigma_of_small": np.log(sigma[order[0]]),
        "log_concentration": np.log(concentration),
        "contrast": np.log(np.abs(beta[0] - beta[1]).sum()),
        "slope_times_y": np.tanh((pi @ beta)[0] * y.mean()),
    }


def scores(sampler_class):
    """Mean change of every quantity, in standard errors."""
    changes = []
    rng = np.random.default_rng(20)
    with one_thread(), np.errstate(under="ignore"):
        for _ in range(REPLICATES):
            concentration = rng.gamma(4.0, 1 / 2.0)
            pi = rng.dirichlet(np.full(COMPONENTS, concentration / COMPONENTS))
            auxiliary = 1.0 / rng.gamma(0.5, size=2)
            covariance = stats.invwishart.rvs(4, np.diag(6.0 / auxiliary), random_state=rng)
            beta = rng.multivariate_normal(np.zeros(2), covariance, size=COMPONENTS)
            sigma = np.abs(rng.standard_t(5.0, COMPONENTS))
            label = rng.choice(COMPONENTS, RECORDS, p=pi)
            noise = sigma[label] * rng.standard_normal(RECORDS)
            y = (X @ beta.T)[np.arange(RECORDS), label] + noise
            sampler = sampler_class(y, X, np.ones(RECORDS), COMPONENTS, PRIOR, None, rng)
            sampler.start({"pi": pi, "beta": beta, "sigma": sigma, "concentration": concentration})
            sampler.coefficient_aux = auxiliary
            sampler.draw_residual_aux()
            for _ in range(SWEEPS):
                sampler.sweep()
            before = quantities(y, pi, beta, sigma, concentration)
            after = quantities(
                y, np.exp(sampler.log_pi), sampler.beta, sampler.sigma, sampler.concentration
            )
            changes.append([after[name] - before[name] for name in before])
    changes = np.array(changes)
    standard_error = changes.std(axis=0, ddof=1) / np.sqrt(REPLICATES)
    return dict(zip(before, changes.mean(axis=0) / standard_error, strict=True))


class WideScale(Sampler):
    def propose_sigma(self, k, residual, alpha):
        return 1.2 * super().propose_sigma(k, residual, alpha)


class SharesWithoutData(Sampler):
    def share_mixture_weight(self):
        alpha, self.alpha = self.alpha, 0.0 * self.alpha
        super().share_mixture_weight()
        self.alpha = alpha


def test_parameters_and_data_keep_their_joint_distribution():
    found = scores(Sampler)
    assert max(map(abs, found.values())) < 4.0, found


@pytest.mark.parametrize("broken", [WideScale, SharesWithoutData])
def test_broken_samplers_are_found(broken):
    found = scores(broken)
    assert max(map(abs, found.values())) > 5.0, found
