"""How often a recipient's nominal intervals cover the truth, by mechanism and combining rule."""

import math
from dataclasses import dataclass, field

import numpy as np
import xarray as xr
from scipy import special, stats

from ppm._random import generator, numbered, seed_sequence, streams
from ppm._validation import check_count, check_number, check_share, shown
from ppm.censoring import censoring_limits
from ppm.lipschitz import weighted
from ppm.studies.combining import combine_releases
from ppm.studies.contraction_study import check_sizes
from ppm.studies.tasks import chosen_engine, failures_of, no_failures, run_tasks
from ppm.synthesizers.gamma_poisson import GammaPoisson, log_likelihood_of_counts
from ppm.weights import linear_weights

# what the recipient does; "one release, weight known" needs a weight that an agency may tell
RULES = {
    "one release as real": "as real",
    "parameter fixed": "parameter fixed",
    "parameter drawn": "parameter drawn",
    "fully synthetic": "fully synthetic",
    "partially synthetic": "partially synthetic",
    "one release, weight known": "parameter drawn",
}
MECHANISMS = ("Plug-in", "Unweighted", "DPweighted", "EMweighted", "Constant", "Limits")
PUBLIC = ("Unweighted", "Constant", "Limits")
_SMALLEST_SIZE = 50
# Replicates are worked on in groups of about this many numbers: 32 MB of float64
_CHUNK = 1 << 22


class Counts:
    """Poisson counts with the nearly flat Gamma prior: the synthesizer of section 4."""

    mean = 100.0
    shape = rate = 0.001
    limits = True

    def __init__(self):
        law = stats.poisson(self.mean)
        self.threshold = int(law.ppf(0.9))
        self.truth = {
            "mean": self.mean,
            f"share above {self.threshold}": float(law.sf(self.threshold)),
        }

    def simulate(self, group, n, rng):
        return rng.poisson(self.mean, size=(group, n)).astype(np.float64), None

    def posterior_draws(self, values, predictor, weights, draws, rng):
        """Parameters, each an array (databases, draws), of the pseudo posterior."""
        shape = self.shape + (weights * values).sum(axis=1)
        rate = self.rate + weights.sum(axis=1)
        gamma = rng.standard_gamma(shape[:, None], size=(len(values), draws))
        return (gamma / rate[:, None],)

    def estimate(self, values, predictor):
        return (values.mean(axis=1, keepdims=True),)

    def bounds(self, values, predictor, parameters):
        # concave in the mean, so that its absolute value is largest at an extreme draw
        (mean,) = parameters
        ends = mean.min(axis=1, keepdims=True), mean.max(axis=1, keepdims=True)
        return np.maximum(*(-log_likelihood_of_counts(values, end) for end in ends))

    def log_likelihood(self, values, predictor, parameters):
        (mean,) = parameters
        return log_likelihood_of_counts(values[:, None, :], mean[:, :, None])

    def limited_draws(self, values, weight, limits, draws, rng):
        """Draws of the pseudo posterior under limits, one database after the other."""
        weights = np.full(values.shape[1], weight)
        return (
            np.stack([
                GammaPoisson(counts.astype(np.int64), shape=self.shape, rate=self.rate)
                .posterior(weights, censor=limits)
                .rvs(size=draws, random_state=rng)
                for counts in values
            ]),
        )

    def release(self, parameters, predictor, n, rng):
        (mean,) = parameters
        return rng.poisson(mean[:, :, None], size=(*mean.shape, n)).astype(np.float64)

    def analyse(self, released, predictor):
        """Estimates and variances of every quantity, each (quantities, databases, releases)."""
        n = released.shape[-1]
        share = (released > self.threshold).mean(axis=-1)
        return (
            np.stack([released.mean(axis=-1), share]),
            np.stack([released.var(axis=-1, ddof=1) / n, share * (1.0 - share) / (n - 1)]),
        )


class Regression:
    """Normal regression on one public predictor, with a nearly flat conjugate prior.

    The response is 2 + x + e with x and e standard normal. The prior of the coefficients given σ²
    is normal with variance 1000 σ², that of σ² inverse gamma(0.001, 0.001).
    """

    intercept, slope, residual = 2.0, 1.0, 1.0
    precision = shape = rate = 0.001
    quantile = 0.9
    limits = False

    def __init__(self):
        spread = math.hypot(self.slope, self.residual)
        self.truth = {
            "mean": self.intercept,
            "90th percentile": self.intercept + spread * float(stats.norm.ppf(self.quantile)),
            "coefficient": self.slope,
        }

    def simulate(self, group, n, rng):
        predictor, error = rng.standard_normal((group, 2, n)).swapaxes(0, 1)
        return self.intercept + self.slope * predictor + self.residual * error, predictor

    def posterior(self, values, predictor, weights):
        """Normal-inverse-gamma pseudo posterior: centre, precision, shape and rate of databases.

        Given σ², the coefficients are normal with the centre and the precision matrix over σ².
        """
        design = np.stack([np.ones_like(predictor), predictor], axis=-1)
        weighted_design = np.swapaxes(design * weights[..., None], 1, 2)
        precision = self.precision * np.eye(2) + weighted_design @ design
        moments = weighted_design @ values[..., None]
        centre = np.linalg.solve(precision, moments)[..., 0]
        shape = self.shape + weights.sum(axis=1) / 2.0
        # squared residuals and not a difference of large sums
        misfit = (values - (design @ centre[..., None])[..., 0]) ** 2
        rate = (weights * misfit).sum(axis=1) + self.precision * (centre**2).sum(axis=1)
        return centre, precision, shape, self.rate + rate / 2.0

    def posterior_draws(self, values, predictor, weights, draws, rng):
        centre, precision, shape, rate = self.posterior(values, predictor, weights)
        gamma = rng.standard_gamma(shape[:, None], size=(len(values), draws))
        variance = rate[:, None] / gamma
        root = np.linalg.cholesky(np.linalg.inv(precision))
        normal = rng.standard_normal((len(values), draws, 2)) @ np.swapaxes(root, 1, 2)
        coefficients = centre[:, None, :] + np.sqrt(variance)[..., None] * normal
        return coefficients[..., 0], coefficients[..., 1], variance

    def estimate(self, values, predictor):
        intercept, slope, _, residual = least_squares(values, predictor)
        return intercept[:, None], slope[:, None], residual[:, None]

    def log_likelihood(self, values, predictor, parameters):
        # the study spends most of its time here: one product of matrices, and no copies
        intercept, slope, variance = (part[..., None] for part in parameters)
        row = np.concatenate([-intercept, -slope, np.ones_like(slope)], axis=-1)
        row /= np.sqrt(variance)
        terms = row @ np.stack([np.ones_like(values), predictor, values], axis=1)
        terms *= terms
        terms += np.log(2.0 * np.pi * variance)
        terms *= -0.5
        return terms

    def bounds(self, values, predictor, parameters):
        terms = self.log_likelihood(values, predictor, parameters)
        return np.maximum(terms.max(axis=1), -terms.min(axis=1))

    def release(self, parameters, predictor, n, rng):
        intercept, slope, variance = (part[:, :, None] for part in parameters)
        error = rng.standard_normal((*variance.shape[:2], n))
        return intercept + slope * predictor[:, None, :] + np.sqrt(variance) * error

    def analyse(self, released, predictor):
        n = released.shape[-1]
        _, slope, variance, _ = least_squares(released, predictor[:, None, :])
        quantile, of_quantile = quantile_and_variance(released, self.quantile)
        return (
            np.stack([released.mean(axis=-1), quantile, slope]),
            np.stack([released.var(axis=-1, ddof=1) / n, of_quantile, variance]),
        )


MODELS = {"counts": Counts, "regression": Regression}


def least_squares(values, predictor):
    """Intercept, slope, the slope's estimated variance, and s², along the last axis."""
    n = values.shape[-1]
    x = predictor - predictor.mean(axis=-1, keepdims=True)
    y = values - values.mean(axis=-1, keepdims=True)
    squares = (x**2).sum(axis=-1)
    slope = (x * y).sum(axis=-1) / squares
    residual = ((y - slope[..., None] * x) ** 2).sum(axis=-1) / (n - 2)
    intercept = values.mean(axis=-1) - slope * predictor.mean(axis=-1)
    return intercept, slope, residual / squares, residual


def quantile_and_variance(values, probability):
    """Sample quantile, and its variance from the distance of two order statistics.

    Woodruff's interval: quantiles at the probability plus and minus 1.96 binomial standard errors,
    a distance of 3.92 standard errors of the quantile.
    """
    n = values.shape[-1]
    z = special.ndtri(0.975)
    step = z * math.sqrt(probability * (1.0 - probability) / n)
    # an order statistic beyond the sample's ends does not exist
    ends = np.clip([probability - step, probability + step], 0.0, 1.0)
    low, middle, high = np.quantile(values, [ends[0], probability, ends[1]], axis=-1)
    return middle, ((high - low) / (2.0 * z)) ** 2


@dataclass(frozen=True, eq=False)
class CoverageStudy:
    """Estimates and nominal intervals of many simulated databases' recipients.

    Attributes
    ----------
    dataset : xarray.Dataset
        Dimensions size, quantity, mechanism, rule, replicate: ``estimate``, ``variance`` (by the
        rule), ``low`` and ``high`` (ends of the interval); NaN where a rule has no meaning for a
        mechanism. ``truth`` by quantity. ``weight``, by size, mechanism and replicate: the average
        weight of the records.
    confidence : float
        Nominal coverage.
    releases : int
        Releases m of every database.
    failures : pandas.DataFrame
        One row for each size that failed on an executor, with its seed and its traceback.

    Examples
    --------
    >>> import ppm
    >>> study = ppm.studies.coverage(
    ...     "regression", [200], replicates=200, draws=50, random_seed=1
    ... )
    >>> table = study.table(["partially synthetic", "one release as real"])
    >>> table.loc[("coefficient", 200, "Unweighted"), "coverage"].round(2).tolist()
    [0.95, 0.74]
    """

    dataset: xr.Dataset
    confidence: float
    releases: int
    failures: object = field(default_factory=no_failures, repr=False)

    def table(self, rules=None):
        """How the intervals do.

        Parameters
        ----------
        rules : sequence of str, optional
            Rules to show, in this order; all by default.

        Returns
        -------
        pandas.DataFrame
            One row a quantity, size, mechanism and rule. ``coverage``: share of the databases whose
            interval holds the truth, and its ``Monte Carlo error`` (a standard error); ``median
            width`` of the intervals; ``bias`` and ``standard deviation`` of the estimate over the
            databases; ``variance ratio``: the rule's variance, on average, over the estimate's own,
            and the ``error of the ratio`` (a standard error, by the delta method).

        Raises
        ------
        ValueError
            If a rule is unknown.
        """
        data = self.dataset
        if rules is not None:
            unknown = [rule for rule in rules if rule not in data["rule"].values]
            if unknown:
                raise ValueError(
                    f"rules must be among {', '.join(RULES)}; got {shown(unknown[0])}"
                )
            data = data.sel(rule=list(rules))
        known = data["low"].notnull().all("replicate")
        covered = (data["low"] <= data["truth"]) & (data["truth"] <= data["high"])
        coverage = covered.mean("replicate").where(known)
        replicates = data.sizes["replicate"]
        off = data["estimate"] - data["truth"]
        spread, stated = off.std("replicate", ddof=1), data["variance"].mean("replicate")
        share = data["variance"] / stated - (off - off.mean("replicate")) ** 2 / spread**2
        ratio = stated / spread**2
        columns = {
            "coverage": coverage,
            "Monte Carlo error": np.sqrt(coverage * (1.0 - coverage) / replicates),
            "median width": (data["high"] - data["low"]).median("replicate"),
            "bias": off.mean("replicate"),
            "standard deviation": spread,
            "variance ratio": ratio,
            "error of the ratio": ratio * share.std("replicate") / math.sqrt(replicates),
        }
        order = ["quantity", "size", "mechanism", "rule"]
        return xr.Dataset(columns).to_dataframe(dim_order=order).dropna(subset="coverage")


def coverage(
    model,
    sizes=(500,),
    *,
    replicates=1000,
    releases=5,
    draws=200,
    scale=1.0,
    shift=0.0,
    width=1.0,
    confidence=0.95,
    random_seed=None,
    executor=None,
    store=None,
):
    r"""Simulate databases, release each m times, and see which nominal intervals cover the truth.

    Parameters
    ----------
    model : {"counts", "regression"}
        ``"counts"``: Poisson counts of mean 100 and :class:`ppm.GammaPoisson`; the recipient asks
        for the mean, and the share of counts above their 90th percentile. ``"regression"``: y = 2 +
        x + e with standard normal x and e, of which x is public and anew in every database; the
        recipient asks for the mean of y, its 90th percentile, and the coefficient of x.
    sizes : sequence of int, default (500,)
        Numbers n of records, increasing, each 50 or more.
    replicates : int, default 1000
        Databases of each size, 2 or more.
    releases : int, default 5
        Releases m of every database, 2 or more, each from a draw of θ of its own.
    draws : int, default 200
        Posterior draws S behind every bound, 2 or more.
    scale, shift : float, default 1 and 0
        The paper's c, above 0, and g.
    width : float, default 1
        Width of the limits in nats, above 0: it fixes the constant weight.
    confidence : float, default 0.95
        Nominal coverage.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness. A size's databases are the same whichever other sizes are asked for.
    executor : concurrent.futures.Executor, optional
        Where the sizes are worked on, one task each; in this process by default. The numbers do
        not depend on it.
    store : path-like, optional
        Folder that keeps what is finished: the next call with the same arguments goes on from
        there. It needs a ``random_seed``.

    Returns
    -------
    CoverageStudy
        Intervals of every database, and the table of their coverage.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Not in Savitsky, Williams and Hu (2022). The model that synthesizes is the one that generated
    the data, and pseudo posteriors are drawn from exactly, so that what goes wrong is due to
    synthesis, weights and rules alone. The mechanisms:

    - *Plug-in*: no draw of θ, all releases from its estimate. Not private; it is here for its rule.
    - *Unweighted*: all weights 1.
    - *DPweighted*: the paper's weights (section 3, step 1d) with c and g.
    - *EMweighted*: the same weight for all records, such that times the bound of Unweighted it is
      the bound of DPweighted, as section 5 compares them.
    - *Constant*: one public weight, with which limits of the given width would cut off 2 per cent
      of a public database: :func:`ppm.censoring.censoring_limits`.
    - *Limits*: the same within these limits, for counts alone: ε is the width for every database.

    The recipient's standard errors are those of a textbook; that of the percentile is Woodruff's.
    For rules see :func:`ppm.studies.combine_releases`. *One release as real* and *one release,
    weight known* see the first release only. The latter takes the weight of Unweighted, Constant or
    Limits: the others have none that an agency may tell.

    Examples
    --------
    >>> import ppm
    >>> study = ppm.studies.coverage("counts", [100], replicates=50, draws=50, random_seed=1)
    >>> study.dataset["weight"].mean("replicate").sel(mechanism="Constant", size=100).item() < 1
    True
    """
    if not isinstance(model, str) or model not in MODELS:
        raise ValueError(f"model must be one of {', '.join(MODELS)}; got {shown(model)}")
    sizes = check_sizes(sizes)
    for size in sizes:
        check_count("sizes", size, at_least=_SMALLEST_SIZE)
    replicates = check_count("replicates", replicates, at_least=2)
    releases = check_count("releases", releases, at_least=2)
    draws = check_count("draws", draws, at_least=2)
    scale = check_number("scale", scale, above=0)
    shift = check_number("shift", shift)
    width = check_number("width", width, above=0)
    confidence = check_share("confidence", confidence)
    engine = chosen_engine(executor, store, random_seed)
    work = MODELS[model]()
    entropy = seed_sequence(random_seed)
    names = [name for name in MECHANISMS if work.limits or name != "Limits"]
    tasks = [
        _Size(
            model, n, replicates, releases, draws, scale, shift, width, tuple(names), confidence,
            numbered(entropy, n),
        )
        for n in sizes
    ]
    outcomes = run_tasks(_one_size, tasks, engine, here=True)
    found = [
        tuple(outcome.result[name] for name in ("estimate", "variance", "low", "high", "weight"))
        for outcome in outcomes
        if outcome.failure is None
    ]
    *values, weights = (np.stack(column) for column in zip(*found, strict=True))
    dims = ("size", "quantity", "mechanism", "rule", "replicate")
    dataset = xr.Dataset(
        {
            name: (dims, block)
            for name, block in zip(("estimate", "variance", "low", "high"), values, strict=True)
        }
        | {
            "truth": ("quantity", list(work.truth.values())),
            "weight": (("size", "mechanism", "replicate"), weights),
        },
        {
            "quantity": list(work.truth), "mechanism": names,
            # a size that failed is left out
            "size": [
                task.n for task, outcome in zip(tasks, outcomes, strict=True)
                if outcome.failure is None
            ],
            "rule": list(RULES), "replicate": np.arange(replicates),
        },
    )
    return CoverageStudy(
        dataset, confidence=confidence, releases=releases, failures=failures_of(tasks, outcomes)
    )


@dataclass(frozen=True)
class _Size:
    """All databases of one size, in a form that can be sent to another process."""

    model: str
    n: int
    replicates: int
    releases: int
    draws: int
    scale: float
    shift: float
    width: float
    names: tuple
    confidence: float
    seed: np.random.SeedSequence

    @property
    def place(self):
        return {"size": self.n}


def _one_size(task):
    """What the recipients see, each (quantity, mechanism, rule, replicate), and average weights."""
    estimates, variances, weights = _released(task)
    seen = _intervals(estimates, variances, weights, task.names, task.confidence)
    found = dict(zip(("estimate", "variance", "low", "high"), seen, strict=True))
    return found | {"weight": weights}


def _released(task):
    """Estimates and variances (quantity, mechanism, release, replicate), and average weights."""
    work, n, replicates, releases = MODELS[task.model](), task.n, task.replicates, task.releases
    draws, scale, shift, width, names = task.draws, task.scale, task.shift, task.width, task.names
    data, public, *others = map(generator, streams(task.seed, 4 + len(MECHANISMS)))
    for_bounds, for_weighted, *synthetic = others
    limits, weight = _public_choice(work, n, draws, width, public)
    step = max(1, _CHUNK // (n * max(draws, releases)))
    groups = []
    # the data's stream is read in order: more draws or releases leave the databases as they are
    for start in range(0, replicates, step):
        group = min(step, replicates - start)
        values, predictor = work.simulate(group, n, data)
        ones = np.ones((group, n))

        def bounds(weights, rng, values=values, predictor=predictor):
            parameters = work.posterior_draws(values, predictor, weights, draws, rng)
            return work.bounds(values, predictor, parameters)

        unweighted = bounds(ones, for_bounds)
        record_weights = linear_weights(
            unweighted, unweighted.min(axis=1, keepdims=True),
            unweighted.max(axis=1, keepdims=True), scale=scale, shift=shift,
        )
        target = weighted(bounds(record_weights, for_weighted), record_weights).max(axis=1)
        scalar = np.minimum(1.0, target / unweighted.max(axis=1))[:, None]
        weights = {
            "Unweighted": ones, "DPweighted": record_weights, "EMweighted": scalar * ones,
            "Constant": weight * ones,
        }
        results, averages = [], []
        for name, rng in zip(names, synthetic, strict=False):
            if name == "Plug-in":
                parameters = [
                    np.repeat(part, releases, axis=1) for part in work.estimate(values, predictor)
                ]
            elif name == "Limits":
                parameters = work.limited_draws(values, weight, limits, releases, rng)
            else:
                parameters = work.posterior_draws(values, predictor, weights[name], releases, rng)
            results.append(
                work.analyse(work.release(parameters, predictor, n, rng), predictor)
            )
            used = {"Plug-in": ones, "Limits": weights["Constant"]}.get(name, weights.get(name))
            averages.append(used.mean(axis=1))
        # (2, mechanisms, quantities, databases, releases)
        groups.append((np.stack([np.stack(pair) for pair in results], axis=1), np.stack(averages)))
    blocks, averages = zip(*groups, strict=True)
    estimates, variances = np.concatenate(blocks, axis=3).transpose(0, 2, 1, 4, 3)
    return estimates, variances, np.concatenate(averages, axis=1)


def _public_choice(work, n, draws, width, rng):
    """The limits, and the constant weight, from a public database of the same size."""
    values, predictor = work.simulate(1, n, rng)
    parameters = work.posterior_draws(values, predictor, np.ones((1, n)), draws, rng)
    (reference,) = work.log_likelihood(values, predictor, parameters)
    return censoring_limits(width, reference, smooth=False)


def _intervals(estimates, variances, weights, names, confidence):
    """Estimate, variance and ends, each (quantity, mechanism, rule, replicate)."""
    result = np.full((4, *estimates.shape[:2], len(RULES), estimates.shape[-1]), np.nan)
    for place, (label, rule) in enumerate(RULES.items()):
        known = label == "one release, weight known"
        seen = slice(1) if label.startswith("one release") else slice(None)
        for row, name in enumerate(names):
            if known and name not in PUBLIC:
                continue
            found = combine_releases(
                np.moveaxis(estimates[:, row, seen], 1, 0),
                np.moveaxis(variances[:, row, seen], 1, 0),
                rule=rule, confidence=confidence,
                weight=float(weights[row, 0]) if known else 1.0,
            )
            result[:, :, row, place] = found.estimate, found.variance, found.low, found.high
    return result
