"""The Monte Carlo study of how local bounds contract with the sample size (section 4)."""

import math
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from ppm import pdp
from ppm._random import generator, numbered, seed_sequence, streams
from ppm._validation import check_count, check_number, shown
from ppm.lipschitz import weighted
from ppm.studies.tasks import chosen_engine, failures_of, no_failures, run_tasks
from ppm.synthesizers.gamma_poisson import log_likelihood_of_counts
from ppm.weights import linear_weights, truncated

MECHANISMS = ("Unweighted", "Weighted", "Weighted-M")
# Replicates are worked on in groups of about this many numbers: 64 MB of float64
_CHUNK = 1 << 23
LARGEST_MEAN = 1e9


@dataclass(frozen=True, eq=False)
class ContractionStudy:
    """Local bounds of many simulated databases, by mechanism and sample size.

    Attributes
    ----------
    dataset : xarray.Dataset
        Dimensions mechanism, size, replicate. ``local_bound``: Δ in nats; ``average_mean``: average
        of the draws of μ; ``records_removed``: number of records with weight 0.
        Of :func:`contraction_by_fits` there are diagnostics of every fit in place of
        ``average_mean``, and NaN for a replicate that failed.
    truncate_at : float
        The M of Weighted-M, in nats.
    mean : float or None
        The μ that generated the data, if it is known.
    draws : int
        Posterior draws S behind each bound.
    failures : pandas.DataFrame
        One row for each part of the study that failed, with its seed and its traceback.

    Examples
    --------
    >>> import ppm
    >>> study = ppm.studies.contraction([100], replicates=20, random_seed=1)
    >>> study.exceedance([7.0])["estimate"].sel(mechanism="Unweighted").item()
    1.0
    >>> study.safety_factors([1.0, 1.1]).round(2)
    factor           1.0   1.1
    mechanism  size
    Unweighted 100   0.5  0.31
    Weighted   100   0.5  0.11
    Weighted-M 100   0.5  0.01
    """

    dataset: xr.Dataset
    truncate_at: float
    mean: float | None
    draws: int
    failures: object = field(default_factory=no_failures, repr=False)

    def __repr__(self):
        bound = self.dataset["local_bound"]
        missing = int(bound.isnull().any("mechanism").sum())
        lost = f"{missing} of {bound[0].size} databases missing: see failures, " if missing else ""
        return (
            f"ContractionStudy({lost}truncate_at={self.truncate_at!r}, mean={self.mean!r}, "
            f"draws={self.draws!r}, dataset={self.dataset!r})"
        )

    def summary(self):
        """Smallest, median and largest local bound, and their spread, for every mechanism and size.

        Returns
        -------
        pandas.DataFrame
            One row a mechanism and size; bounds in nats. Where parts of the study failed, a column
            ``missing`` says how many replicates are left out.
        """
        bound = self.dataset["local_bound"]
        columns = {
            "smallest": bound.min("replicate"),
            "median": bound.median("replicate"),
            "largest": bound.max("replicate"),
            "largest - smallest": bound.max("replicate") - bound.min("replicate"),
        }
        if "average_mean" in self.dataset:
            columns["average of the mean"] = self.dataset["average_mean"].mean("replicate")
        columns["records removed"] = self.dataset["records_removed"].mean("replicate")
        if "r_hat" in self.dataset:
            columns["largest R-hat"] = self.dataset["r_hat"].max("replicate")
            columns["chains disagree"] = (self.dataset["chains_agree"] == 0).sum("replicate")
        if len(self.failures):
            columns["missing"] = bound.isnull().sum("replicate")
        return xr.Dataset(columns).to_dataframe(dim_order=["mechanism", "size"])

    def exceedance(self, epsilons, *, confidence=0.95):
        """Share of databases whose 2Δ over the draws exceeds ε, over a range of ε.

        The paper reads it as π. The definition's π is about the privacy loss over every set of
        parameters instead.

        Parameters
        ----------
        epsilons : array_like
            Values of ε for one release, in nats.
        confidence : float, default 0.95
            Coverage of the exact binomial intervals.

        Returns
        -------
        xarray.Dataset
            ``estimate``, ``low`` and ``high`` with the dimensions mechanism, size, epsilon.

        Raises
        ------
        ValueError
            As :func:`ppm.exceedance`.
        """
        epsilons = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
        bound = self.dataset["local_bound"]
        shape = 3, bound.sizes["mechanism"], bound.sizes["size"], epsilons.size
        values = np.full(shape, np.nan)
        for row, mechanism in enumerate(bound.values):
            for column, bounds in enumerate(mechanism):
                bounds = bounds[~np.isnan(bounds)]
                for place, epsilon in enumerate(epsilons if bounds.size else ()):
                    found = pdp.exceedance(bounds, epsilon, confidence=confidence)
                    values[:, row, column, place] = found.estimate, found.low, found.high
        dims = ("mechanism", "size", "epsilon")
        return xr.Dataset(
            {
                name: (dims, block)
                for name, block in zip(("estimate", "low", "high"), values, strict=True)
            },
            {"mechanism": bound["mechanism"], "size": bound["size"], "epsilon": epsilons},
        )

    def safety_factors(self, factors=(1.0, 1.01, 1.02, 1.05, 1.10)):
        """How often another database exceeds one database's bound times a factor of safety.

        Every replicate is taken in turn as the database an agency holds; the share of the *other*
        replicates whose bound lies above that replicate's bound times the factor is averaged.

        Parameters
        ----------
        factors : array_like, default (1, 1.01, 1.02, 1.05, 1.10)
            Factors s of safety, above 0.

        Returns
        -------
        pandas.DataFrame
            One row a mechanism and size, one column a factor; shares between 0 and 1.

        Raises
        ------
        ValueError
            If a factor is not above 0.

        Notes
        -----
        Checks the recommendation that ends section 4 of Savitsky, Williams and Hu (2022).
        """
        factors = np.array([check_number("factors", factor, above=0) for factor in factors])
        bound = self.dataset["local_bound"]
        ordered = np.sort(bound.values, axis=-1)
        shares = np.full((*ordered.shape[:2], factors.size), np.nan)
        for index in np.ndindex(ordered.shape[:2]):
            # without replicates that failed
            held = ordered[index][~np.isnan(ordered[index])]
            others = held.size - 1
            for place, factor in enumerate(factors if others > 0 else ()):
                above = held.size - np.searchsorted(held, factor * held, side="right")
                # below a factor of 1 a replicate lies above its own reduced bound: leave it out
                above = above - (held > factor * held)
                shares[*index, place] = (above / others).mean()
        return (
            xr.DataArray(
                shares,
                dims=("mechanism", "size", "factor"),
                coords={
                    "mechanism": bound["mechanism"], "size": bound["size"], "factor": factors
                },
            )
            .to_dataframe("share")["share"]
            .unstack("factor")
            .reindex(MECHANISMS, level="mechanism")
        )


def contraction(
    sizes=(100, 400, 1600, 6400),
    *,
    replicates=400,
    mean=100.0,
    truncate_at=3.5,
    draws=1000,
    shape=0.001,
    rate=0.001,
    random_seed=None,
    executor=None,
    store=None,
):
    """Simulate Poisson databases and compute the local bound of three mechanisms on each.

    Unweighted (all weights 1), Weighted (c = 1, g = 0) and Weighted-M (the same, truncated at M)
    are fitted to the same databases with the Gamma-Poisson model.

    Parameters
    ----------
    sizes : sequence of int, default (100, 400, 1600, 6400)
        Sample sizes n, increasing, each 2 or more.
    replicates : int, default 400
        Databases R of each size, 2 or more.
    mean : float, default 100
        Mean μ of the counts, above 0 and at most 1e9: of larger counts the log-probabilities are
        differences of much larger numbers, and their last digits are lost.
    truncate_at : float, default 3.5
        The paper's M, above 0, in nats.
    draws : int, default 1000
        Posterior draws S of each fit, 2 or more. The paper does not state its number.
    shape, rate : float, default 0.001
        Gamma prior of μ, as for :class:`ppm.GammaPoisson`.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness. A size's databases are the same whichever other sizes are asked for.
    executor : concurrent.futures.Executor, optional
        Where the sizes are worked on, one task each; in this process by default. The numbers do
        not depend on it. For many short or long tasks see :func:`contraction_by_fits`.
    store : path-like, optional
        Folder that keeps what is finished: the next call with the same arguments goes on from
        there. It needs a ``random_seed``.

    Returns
    -------
    ContractionStudy
        Bounds, averages of μ and numbers of removed records, with the tables made from them.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 4, the simulation study. A Poisson log-probability is
    never positive and is concave in μ, so that its absolute value is largest at the smallest or at
    the largest draw of μ; and it depends on a record through its value only. A database therefore
    costs two evaluations for every *distinct* count, however many draws and records there are, and
    gives exactly what the draws x records matrix would give.

    Examples
    --------
    >>> import ppm
    >>> study = ppm.studies.contraction([100, 400], replicates=20, random_seed=1)
    >>> study.summary().loc["Weighted-M", ["median", "largest"]].round(2)
          median  largest
    size
    100     3.39     3.66
    400     3.43     3.58
    """
    sizes = check_sizes(sizes)
    replicates = check_count("replicates", replicates, at_least=2)
    draws = check_count("draws", draws, at_least=2)
    mean = check_number("mean", mean, above=0, at_most=LARGEST_MEAN)
    truncate_at = check_number("truncate_at", truncate_at, above=0)
    prior = check_number("shape", shape, above=0), check_number("rate", rate, above=0)
    engine = chosen_engine(executor, store, random_seed)
    entropy = seed_sequence(random_seed)
    tasks = [
        _Size(n, replicates, mean, truncate_at, draws, prior, numbered(entropy, n)) for n in sizes
    ]
    outcomes = run_tasks(_one_size, tasks, engine, here=True)
    values = np.full((3, len(MECHANISMS), len(sizes), replicates), np.nan)
    for column, outcome in enumerate(outcomes):
        if outcome.failure is None:
            values[:, :, column] = outcome.result["values"]
    dims = ("mechanism", "size", "replicate")
    dataset = xr.Dataset(
        {
            "local_bound": (dims, values[0], {"units": "nats"}),
            "average_mean": (dims, values[1]),
            "records_removed": (dims, values[2]),
        },
        {
            "mechanism": list(MECHANISMS),
            "size": list(sizes),
            "replicate": np.arange(replicates),
        },
    )
    return ContractionStudy(
        dataset, truncate_at=truncate_at, mean=mean, draws=draws,
        failures=failures_of(tasks, outcomes),
    )


@dataclass(frozen=True)
class _Size:
    """All databases of one size, in a form that can be sent to another process."""

    n: int
    replicates: int
    mean: float
    truncate_at: float
    draws: int
    prior: tuple
    seed: np.random.SeedSequence

    @property
    def place(self):
        return {"size": self.n}


def _one_size(task):
    """Bound, average of μ and removed records: ``values``, shape (3, mechanisms, replicates)."""
    n, replicates, mean, draws = task.n, task.replicates, task.mean, task.draws
    truncate_at, prior = task.truncate_at, task.prior
    data, *posteriors = map(generator, streams(task.seed, 1 + len(MECHANISMS)))
    # distinct counts hardly spread over more than 12 standard deviations
    step = max(1, _CHUNK // max(n, draws, 12 * math.isqrt(int(mean) + 1)))
    groups = []
    # each stream is read in order, so that the size of the groups does not change the numbers
    for start in range(0, replicates, step):
        group = min(step, replicates - start)
        counts = data.poisson(mean, size=(group, n))
        values, table = _tabulate(counts)
        groups.append(_bounds_of_tables(values, table, truncate_at, draws, prior, posteriors))
    return {"values": np.concatenate(groups, axis=2)}


def _tabulate(counts):
    """Distinct values, and how often each occurs in every database (databases, values)."""
    lowest, highest = int(counts.min()), int(counts.max())
    width = highest - lowest + 1
    rows = np.arange(counts.shape[0])[:, None] * width
    table = np.bincount((counts - lowest + rows).ravel(), minlength=rows.size * width)
    table = table.reshape(-1, width)
    seen = table.any(axis=0)
    return np.arange(lowest, highest + 1)[seen], table[:, seen]


def _bounds_of_tables(values, table, truncate_at, draws, prior, streams):
    present = table > 0
    result = np.empty((3, len(MECHANISMS), table.shape[0]))

    def fit(weights, rng):
        effective = weights * table
        shape = prior[0] + effective @ values
        rate = prior[1] + effective.sum(axis=1)
        mu = rng.standard_gamma(shape[:, None], size=(table.shape[0], draws)) / rate[:, None]
        extremes = mu.min(axis=1), mu.max(axis=1)
        bounds = np.maximum(
            *(-log_likelihood_of_counts(values, extreme[:, None]) for extreme in extremes)
        )
        return bounds, mu.mean(axis=1)

    ones = np.ones(table.shape)
    bounds, average = fit(ones, streams[0])
    lowest = np.where(present, bounds, np.inf).min(axis=1, keepdims=True)
    highest = np.where(present, bounds, -np.inf).max(axis=1, keepdims=True)
    rules = (
        ones,
        linear_weights(bounds, lowest, highest),
        truncated(linear_weights(bounds, lowest, highest), bounds, truncate_at),
    )
    for row, (weights, rng) in enumerate(zip(rules, streams, strict=True)):
        if row:
            bounds, average = fit(weights, rng)
        removed = np.where(present & (weights == 0), table, 0).sum(axis=1)
        largest = weighted(bounds, present * weights).max(axis=1)
        result[:, row] = largest, average, removed
    return result


def check_sizes(sizes):
    try:
        sizes = tuple(check_count("sizes", n, at_least=2) for n in sizes)
    except TypeError:
        raise ValueError(
            f"sizes must be a list of sample sizes, such as [100, 400]; got {shown(sizes)}"
        ) from None
    if not sizes:
        raise ValueError("sizes must name at least one sample size; got an empty list")
    if any(a >= b for a, b in zip(sizes, sizes[1:], strict=False)):
        raise ValueError(f"sizes must increase from one to the next; got {shown(sizes)}")
    return sizes
