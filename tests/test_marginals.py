"""The benchmark beside marginals: what its δ buys."""

import numpy as np
import pytest
from marginals import rho_of
from scipy.stats import norm


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_gaussian_noise_for_rho_keeps_epsilon_with_its_delta(epsilon):
    def exact_delta(rho):
        # of one count that moves by 1, by the curve of Balle and Wang (2018)
        spread = (2 * rho) ** -0.5
        lower = -epsilon * spread - 1 / (2 * spread)
        return norm.cdf(lower + 1 / spread) - np.exp(epsilon) * norm.cdf(lower)

    rho = rho_of(epsilon, 1e-6)
    assert 1e-8 < exact_delta(rho) <= 1e-6 < exact_delta(1.3 * rho)
