"""The fits that the chapters on incomes share."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import joblib
import numpy as np

import ppm
from ppm_book.chapters import running

# a component can collapse onto more equal incomes than this: 17 did no harm, 24 did
EQUAL = 15


class Fitted(NamedTuple):
    """A fit, whose bounds are shown also where its chains disagree, and what it releases."""

    result: ppm.Fit
    synthetic: np.ndarray  # (releases, records)


@dataclass(frozen=True)
class Noted(ppm.Rule):
    """A rule, and the fits with one weight for all that it asks for: weight, Δ and draws of each."""

    rule: ppm.Rule
    tried: list = field(default_factory=list, compare=False)

    def terms(self, model, fit):
        def noting(what, **settings):
            made = fit(what, **settings)
            if isinstance(what, ppm.Terms):
                self.tried.append((what.weights[0], made.local_bound, made.draws))
            return made

        return self.rule.terms(model, noting)


@dataclass(frozen=True)
class IncomeFits:
    """Fits of the mixture to log incomes. A run makes each once, for all chapters."""

    response: np.ndarray
    predictors: np.ndarray
    chains: int
    warmup: int
    draws: int
    releases: int
    seed: int

    def model(self, components):
        """The mixture; chains of many records run side by side also in short fits."""
        parallel = True if len(self.response) * self.warmup > 1e6 else None
        return ppm.FiniteMixture(
            self.response,
            self.predictors,
            components=components,
            chains=self.chains,
            warmup=self.warmup,
            parallel=parallel,
        )

    def streams(self, components, *stream):
        """Random numbers of a fit's own: for the fit, and for its releases."""
        return np.random.SeedSequence((self.seed, components, *stream)).spawn(2)

    @running.kept()
    def weighted(self, components, weights, *stream, rule=None, thin=2, places=None):
        """A fit with these weights, which are those of a `rule` if there is one.

        `stream` makes its random numbers its own. Chains start anywhere, or at `places`:
        (chains, …) by name of the parameter.
        """
        of_fit, of_release = self.streams(components, *stream)
        model = self.model(components)
        result = fit_as(
            rule,
            model,
            weights,
            draws=self.draws,
            random_seed=of_fit,
            thin=thin,
            start=places,
        )
        return self.read(result, of_release)

    def unweighted(self, components):
        """The fit that all weights rest on: five sweeps for each draw."""
        everybody, rule = np.ones(len(self.response)), ppm.Unweighted()
        return self.weighted(components, everybody, 0, rule=rule, thin=5)

    def by_rule(self, components, rule):
        """The fit of a rule, which may ask for those of others: the paper's, or your own."""
        if rule == ppm.Unweighted():
            return self.unweighted(components)
        terms = rule.terms(
            self.model(components),
            lambda other: self.by_rule(components, other).result,
        )
        return self.weighted(components, terms.weights, 1, *place(rule), rule=rule)

    @running.kept()
    def em_weighted(self, components, rule):
        """The exponential mechanism: one weight for all, whose Δ comes near that of a rule's fit."""
        of_search, of_release = self.streams(components, 2, *place(rule))
        others = [ppm.Unweighted(), rule]
        result = ppm.fit(
            self.model(components),
            Noted(ppm.OneWeight(like=rule)),
            draws=self.draws,
            random_seed=of_search,
            known={other: self.by_rule(components, other).result for other in others},
            allow_disagreement=True,
        )
        return self.read(result, of_release)

    def read(self, result, random_seed):
        """A fit, and what it releases."""
        synthetic = result.release(self.releases, random_seed=random_seed)
        return Fitted(result, synthetic.values)


def fit_as(rule, model, weights, **settings):
    """A fit with a rule's weights, and random numbers of its own, as the one of this rule."""
    result = ppm.fit(model, ppm.Terms(weights), allow_disagreement=True, **settings)
    return replace(result, rule=rule)


def apart(response, low, random_seed):
    """Responses in which many equal incomes at the low end are no longer equal.

    Where more than `EQUAL` units with low incomes share one response, as those raised to a floor
    may, each of them is moved down by up to 0.1, at random and on its own.
    Whether they are moved depends on how many there are, so that no strict ε can rest on them.

    Parameters
    ----------
    response : numpy.ndarray, shape (n,)
        Incomes as the model takes them.
    low : numpy.ndarray of bool, shape (n,)
        Units at the floor or below it.
    random_seed : int
        Source of randomness.

    Returns
    -------
    numpy.ndarray, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from ppm_book.chapters import application
    >>> few, many = np.zeros(3), np.zeros(30)
    >>> [np.unique(application.apart(one, one == 0, 1)).size for one in (few, many)]
    [1, 30]
    """
    _, which, counts = np.unique(response, return_inverse=True, return_counts=True)
    shift = 0.1 * np.random.default_rng(random_seed).random(len(response))
    return response - np.where(low & (counts[which] > EQUAL), shift, 0.0)


def place(rule):
    """Whole numbers that give the fit of a rule random numbers of its own."""
    if type(rule) is ppm.ByRisk and rule.truncate_at is None:
        return round(1000 * rule.scale), round(1000 * (1 + rule.shift))
    return (int(joblib.hash(rule), 16),)


def diagnosed(result):
    """What is held against the chains of a fit, as a row of a table."""
    of_chains = result.diagnostics
    return {
        "Δ": result.local_bound,
        "smallest Δ of a chain": min(of_chains.by_chain),
        "typical draw": of_chains.typical,
        "R-hat": of_chains.r_hat,
        "R-hat, log-likelihood": of_chains.r_hat_log_likelihood,
        "effective draws": of_chains.effective_draws,
        "chains agree": of_chains.agree,
    }


def median(values):
    """Median over releases; and its standard error, NaN for a single release."""
    again = np.random.default_rng(0).choice(values, (1000, len(values)))
    error = np.median(again, axis=1).std() if len(values) > 1 else np.nan
    return np.median(values), error


def typical(errors):
    """Median size of the releases' errors; and its standard error."""
    return median(np.abs(errors))
