"""The mixture's sampler with limits on every record's term, against the prior itself.

With limits the pseudo likelihood lies between two numbers whatever the parameters are, so that
draws from the prior, weighted by it, give every expectation: no chain is behind the reference.
"""

import functools
from dataclasses import replace

import numpy as np
import pytest

import ppm
from ppm.synthesizers.mixture import model as finite_mixture
from ppm.synthesizers.mixture.censored import CensoredSampler

RECORDS, COMPONENTS, PRIOR_DRAWS = 10, 2, 400_000
X = np.column_stack([np.ones(RECORDS), np.linspace(-1.0, 1.0, RECORDS)])
Y = np.array([0.4, 0.1, 0.9, 1.1, 1.3, 1.2, 2.1, 2.4, 2.0, 6.5])
WEIGHTS = np.array([1.0, 0.9, 0.2, 1.5, 0.5, 1.3, 0.7, 0.05, 1.0, 1.0])
CENSORS = {"hard": ppm.Censoring(-2.2, -1.0, smooth=False), "smooth": ppm.Censoring(-2.6, -0.8)}
SETTINGS = {"components": COMPONENTS, "concentration_prior": (4.0, 2.0), "residual_df": 5.0}


def log_normal(residual, sigma):
    return -0.5 * (residual / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2.0 * np.pi)


def log_f(pi, beta, sigma):
    """Log-likelihood of all records at many draws at once, shape (draws, records)."""
    with np.errstate(divide="ignore"):
        terms = [
            np.log(pi[:, [k]]) + log_normal(Y - beta[:, k] @ X.T, sigma[:, [k]])
            for k in range(COMPONENTS)
        ]
    return np.logaddexp(*terms)


def quantities(pi, beta, sigma, concentration):
    """Functions of parameters and data that do not depend on how components are numbered."""
    terms, rows, order = log_f(pi, beta, sigma), np.arange(len(pi)), np.argsort(pi, axis=1)
    return {
        "term of the first": np.clip(terms[:, 0], -6.0, 0.0),
        "term of the outlier": np.clip(terms[:, -1], -9.0, 0.0),
        "largest share": pi.max(axis=1),
        "log scale of the large": np.log(sigma[rows, order[:, 1]]),
        "log scale of the small": np.log(sigma[rows, order[:, 0]]),
        "level": np.tanh((pi[..., None] * beta).sum(axis=1)[:, 0]),
        "slope of the large": np.tanh(beta[rows, order[:, 1], 1]),
        "log concentration": np.log(concentration),
    }


@pytest.fixture(scope="module")
def prior():
    """Draws of the parameters from the prior, as the model's docstring states it."""
    rng, shape = np.random.default_rng(1), (PRIOR_DRAWS, COMPONENTS)
    concentration = rng.gamma(4.0, 0.5, PRIOR_DRAWS)
    gammas = rng.standard_gamma(np.repeat(concentration[:, None] / COMPONENTS, COMPONENTS, 1))
    gammas += 1e-300
    auxiliary = 1.0 / rng.gamma(0.5, size=(PRIOR_DRAWS, 2))
    root = np.sqrt(auxiliary / 6.0)
    # Bartlett: the precision of the coefficients is L L'
    first, below, second = (
        root[:, 0] * np.sqrt(rng.chisquare(4, PRIOR_DRAWS)),
        root[:, 1] * rng.standard_normal(PRIOR_DRAWS),
        root[:, 1] * np.sqrt(rng.chisquare(3, PRIOR_DRAWS)),
    )
    z = rng.standard_normal((*shape, 2))
    slope = z[..., 1] / second[:, None]
    level = (z[..., 0] - below[:, None] * slope) / first[:, None]
    return (
        gammas / gammas.sum(axis=1, keepdims=True), np.stack([level, slope], axis=-1),
        np.abs(rng.standard_t(5.0, shape)), concentration,
    )


@pytest.fixture(scope="module")
def expected(prior):
    """Function of limits: means under the censored pseudo posterior and their standard errors."""
    return functools.cache(functools.partial(_expected, prior))


def _expected(prior, censor):
    terms = censor.terms(log_f(*prior[:3]), WEIGHTS)
    weights = np.exp(terms.sum(axis=1) - terms.sum(axis=1).max())
    weights /= weights.sum()
    assert 1.0 / (weights**2).sum() > 2000
    found = {}
    for name, values in quantities(*prior).items():
        mean = weights @ values
        found[name] = mean, np.sqrt((weights**2) @ (values - mean) ** 2)
    return found


def scores(expected, censor, monkeypatch, sampler=CensoredSampler, draws=1000):
    """How far the chains' means lie from those, in standard errors of the difference."""
    monkeypatch.setattr(finite_mixture, "CensoredSampler", sampler)
    model = ppm.FiniteMixture(Y, X, chains=2, warmup=400, thin=2, parallel=False, **SETTINGS)
    fit = model.fit(WEIGHTS, draws=draws, random_seed=3, censor=censor)
    posterior = (
        fit["posterior"].to_dataset().stack(sample=("chain", "draw")).transpose("sample", ...)
    )
    found = quantities(
        *(posterior[name].values for name in ("pi", "beta", "sigma", "concentration"))
    )
    result = {}
    for name, (mean, error) in expected(censor).items():
        batches = found[name].reshape(40, -1).mean(axis=1)
        own = batches.std(ddof=1) / np.sqrt(batches.size)
        result[name] = (batches.mean() - mean) / np.hypot(own, error)
    return result


@pytest.mark.parametrize("kind", CENSORS)
def test_draws_are_those_of_the_censored_pseudo_posterior(expected, monkeypatch, kind):
    found = scores(expected, CENSORS[kind], monkeypatch)
    assert max(np.abs([*found.values()])) < 4.0, found


class WithoutApproximation(CensoredSampler):
    def slice_on_ellipse(self, k, rest, centre, step, left_out):
        super().slice_on_ellipse(k, rest, centre, step, lambda beta: 0.0)


class AnotherPrior(CensoredSampler):
    def draw_scale(self, k, rest):
        before, self.prior = self.prior, replace(self.prior, residual_scale=3.0)
        super().draw_scale(k, rest)
        self.prior = before


class AuxiliaryKept(CensoredSampler):
    def draw_coefficient_aux(self):
        pass


class SharesWithoutRecords(CensoredSampler):
    def draw_shares(self):
        self.total = lambda log_f=None: 0.0
        super().draw_shares()
        del self.total


@pytest.mark.parametrize(
    "sampler", [WithoutApproximation, AnotherPrior, AuxiliaryKept, SharesWithoutRecords]
)
def test_a_sampler_with_a_slip_in_it_is_caught(expected, monkeypatch, sampler):
    found = scores(expected, CENSORS["hard"], monkeypatch, sampler, 400)
    assert max(np.abs([*found.values()])) > 5.0, found


# ---- the tails, of few records and one component ------------------------------------------------

QUANTILES = (0.02, 0.1, 0.5, 0.9, 0.98)
TAILS = {
    "8 records, width 1": (8, ppm.Censoring(-0.7, 0.3, smooth=False), 0.3),
    "40 records, width 0.25": (40, ppm.Censoring(-0.16, 0.09), 0.04),
}


def small_table(records):
    return 1.0 + 0.3 * np.random.default_rng(records).standard_t(5, records)


def exact_quantiles(y, censor, weight):
    """Of coefficient, log scale and sum of terms: draws from the prior, weighted by the terms."""
    rng = np.random.default_rng(1)
    variance = 3.0 * rng.gamma(0.5, 0.25, PRIOR_DRAWS) / rng.gamma(1.5, size=PRIOR_DRAWS)
    beta = np.sqrt(variance) * rng.standard_normal(PRIOR_DRAWS)
    sigma = 0.3 * np.abs(rng.standard_t(3.0, PRIOR_DRAWS))
    total = sum(censor.term(weight * log_normal(one - beta, sigma)) for one in y)
    weights = np.exp(total - total.max())
    weights /= weights.sum()
    assert 1.0 / (weights**2).sum() > 20_000
    found = {}
    for name, values in {"beta": beta, "log scale": np.log(sigma), "sum": total}.items():
        order = np.argsort(values)
        found[name] = values[order][np.searchsorted(np.cumsum(weights[order]), QUANTILES)]
    return found


def tail_scores(case, monkeypatch, sampler=CensoredSampler):
    """How far shares of draws below exact quantiles are from what they should be, in errors."""
    records, censor, weight = TAILS[case]
    monkeypatch.setattr(finite_mixture, "CensoredSampler", sampler)
    y = small_table(records)
    model = ppm.FiniteMixture(
        y, np.ones((records, 1)), components=1, chains=2, warmup=500, thin=2, parallel=False,
        coefficient_scale=0.5, residual_scale=0.3,
    )
    fit = model.fit(np.full(records, weight), draws=2000, random_seed=2, censor=censor)
    drawn = {
        "beta": fit["posterior"]["beta"].values[..., 0, 0],
        "log scale": np.log(fit["posterior"]["sigma"].values[..., 0]),
        "sum": fit["sample_stats"]["weighted_log_likelihood"].values,
    }
    found = {}
    for name, exact in exact_quantiles(y, censor, weight).items():
        for share, quantile in zip(QUANTILES, exact, strict=True):
            below = (drawn[name] < quantile).reshape(40, -1).mean(axis=1)
            if np.mean(np.isclose(drawn[name], quantile, atol=1e-9)) > 0.002:
                # all terms at the lower limit: a value with a probability of its own
                continue
            least = np.sqrt(share * (1.0 - share) / drawn[name].size)
            error = max(below.std(ddof=1) / np.sqrt(below.size), least)
            found[name, share] = (below.mean() - share) / error
    return found


@pytest.mark.parametrize("case", TAILS)
def test_the_tails_are_those_of_the_posterior(case, monkeypatch):
    found = tail_scores(case, monkeypatch)
    assert max(np.abs([*found.values()])) < 4.5, found


class FromResiduals(CensoredSampler):
    """Scales proposed from squared residuals, and accepted with the right probability."""

    def draw_scale(self, k, rest):
        prior, counts = self.prior, self.alpha
        shape = 0.5 * (prior.residual_df + counts.sum())
        rate = 0.5 * prior.residual_df * prior.residual_scale**2
        rate += 0.5 * counts @ self.residuals[k] ** 2
        new = np.sqrt(rate / self.rng.standard_gamma(shape))

        def log_ratio(sigma):
            density = log_normal(self.residuals[k], sigma)
            spread = prior.residual_df * prior.residual_scale**2
            target = -0.5 * (prior.residual_df + 1.0) * np.log1p(sigma**2 / spread)
            proposed = -(2.0 * shape + 1.0) * np.log(sigma) - rate / sigma**2
            return target + self.total(self.log_pi[k] + density) - proposed

        if log_ratio(new) - log_ratio(self.sigma[k]) > -self.rng.standard_exponential():
            self.sigma[k] = new
            self.log_density[k] = log_normal(self.residuals[k], new)
            self.log_f = self.log_pi[k] + self.log_density[k]


@pytest.mark.parametrize("case", TAILS)
def test_scales_from_residuals_miss_the_tail(case, monkeypatch):
    # not one draw of 4,000 below the 2 % quantile
    assert tail_scores(case, monkeypatch, FromResiduals)["log scale", 0.02] < -8.0


@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.parametrize(
    "y", [[1.0, 2.0], np.zeros(60), np.repeat([1.0, 2.0], 15), [1.0, 1.2, 0.9, 1e12], [0.0, -1e49]]
)
def test_every_database_has_a_release_under_limits(y, components):
    # an error would tell something of the records that no limit covers
    model = ppm.FiniteMixture(
        y, np.ones((len(y), 1)), components=components, chains=1, warmup=50, parallel=False
    )
    fit = model.fit(draws=50, random_seed=1, censor=ppm.Censoring(-3.0, -1.0))
    assert np.isfinite(model.predict(fit, releases=2, random_seed=1)).all()
    assert not np.isnan(model.log_likelihood(fit)).any()


def test_a_component_of_next_to_no_share_comes_back():
    # two groups that one component cannot hold, and a start that the prior allows: a share of
    # e^-3000 of the second, and a concentration that goes with it
    y = np.r_[np.full(100, -3.0), np.full(100, 3.0)] + np.random.default_rng(0).normal(size=200)
    X = np.ones((200, 1))
    sampler = CensoredSampler(
        y, X, np.full(200, 0.3), 2, ppm.FiniteMixture(y, X).prior, None, np.random.default_rng(1),
        censor=ppm.Censoring(-1.0, 0.0, smooth=False),
    )
    sampler.start(None)
    sampler.log_pi, sampler.concentration = np.array([0.0, -3000.0]), 1e-3
    sampler.log_f = sampler.log_f_with(None, sampler.log_pi[:, None] + sampler.log_density)
    for _ in range(200):
        sampler.sweep()
    assert np.exp(sampler.log_pi).min() > 0.1


def test_approximations_stay_as_warm_up_left_them(monkeypatch):
    seen = []

    class Watched(CensoredSampler):
        def sweep(self):
            super().sweep()
            seen.append(self.approximations[0])

    monkeypatch.setattr(finite_mixture, "CensoredSampler", Watched)
    model = ppm.FiniteMixture(Y, X, chains=1, warmup=50, parallel=False, **SETTINGS)
    model.fit(draws=30, random_seed=1, censor=ppm.Censoring(-4.0, 0.5, smooth=False))
    # at weights of 1, too
    assert seen[24] is None and seen[50] is not None
    assert seen[25] is not seen[50]
    assert all(later is seen[50] for later in seen[50:])


def test_a_run_is_strict_and_its_sum_is_that_of_the_terms():
    censor = CENSORS["smooth"]
    model = ppm.FiniteMixture(Y, X, chains=2, warmup=300, thin=3, parallel=False, **SETTINGS)
    mechanism = ppm.PseudoPosteriorMechanism(
        model, censor=censor, weights=np.full(RECORDS, 0.5), independent_weights=True
    )
    result = mechanism.run(draws=400, random_seed=2, allow_disagreement=True)
    if result.chains_agree:
        assert result.strict
        assert result.epsilon() == censor.width
    assert result.oscillation_bound <= censor.width * (1 + 1e-12)
    terms = censor.terms(model.log_likelihood(result.draws).values, np.full(RECORDS, 0.5))
    np.testing.assert_allclose(
        result.draws["sample_stats"]["weighted_log_likelihood"], terms.sum(axis=-1), rtol=1e-9
    )
