"""The exact privacy audit of Gamma-Poisson: losses in closed form, weights computed again.

Everything in this module is computed from the confidential records and is confidential itself.
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.special import gammainc, gammaincinv, gammaln

from ppm import pdp
from ppm._random import generator, seed_sequence
from ppm._validation import check_count, check_counts, check_number
from ppm.contraction import _check_sizes
from ppm.lipschitz import local_bound, oscillation_bound
from ppm.synthesizers.gamma_poisson import log_likelihood_of_counts
from ppm.weights import (
    capped_map,
    linear_weights,
    mapped_weights,
    reciprocal_map,
    record_determined_weights,
)

MECHANISMS = ("Unweighted", "Weighted", "Weighted-M", "Capped", "Range-capped")
# those whose weights hang on posterior draws, and so on the other records
REACTING = ("Weighted", "Weighted-M")
_LOSSES = ("fixed", "common", "integrated")
# parameter values at which a loss without a closed-form maximum is evaluated
_GRID = 41
_LEVELS = (np.arange(_GRID) + 0.5) / _GRID
# stands in for a quantile of μ that underflows, where all counts are 0
_TINY = np.finfo(np.float64).tiny
# a weight that moves by more than this has moved visibly
_VISIBLE = 0.01


@dataclass(frozen=True, eq=False)
class AuditStudy:
    """Privacy losses of many simulated databases, by mechanism and sample size.

    Attributes
    ----------
    dataset : xarray.Dataset
        Dimensions mechanism, size, replicate; what :func:`exact_audit` returns for one database,
        with the largest loss over its left-out records. In nats: ``local_bound`` (Δ),
        ``oscillation_bound``, ``loss_fixed``, ``loss_common``, ``loss_integrated``.
        ``records_over`` and ``parameters_over``: shares of records, and of draws of μ for the worst
        record, with ``loss_common`` above 2Δ. ``weights_moved`` and ``weights_switched``: records
        whose weight moves visibly, or to or from 0, when the record with the largest bound leaves.
        ``outside``: largest mass that the pseudo posterior of the database or of a neighbour (with
        weights computed again) has outside the set of μ; ``outside_public``: the database's mass
        outside the public interval. ``average_mean``, ``spread``: mean and standard deviation of
        the pseudo posterior.
    truncate_at : float
        The M of Weighted-M, in nats.
    public : tuple of float
        The public interval of μ behind Capped and Range-capped.
    mean : float
        The μ that generated the data.
    draws : int
        Posterior draws S behind each bound.
    weight_draws : int
        Draws of the weights over which ``loss_integrated`` averages.
    prior : tuple of float
        Shape and rate of the Gamma prior.
    seed : numpy.random.SeedSequence
        What the databases and their audits came from.
    """

    dataset: xr.Dataset
    truncate_at: float
    public: tuple
    mean: float
    draws: int
    weight_draws: int
    prior: tuple
    seed: np.random.SeedSequence

    def worst(self, mechanism, size, loss="common"):
        """Replicate whose loss stands highest against its own 2Δ.

        Parameters
        ----------
        mechanism : str
            Label.
        size : int
            One of the sample sizes.
        loss : str, default "common"
            ``fixed``, ``common`` or ``integrated``.

        Returns
        -------
        int
            Number of the replicate, for :meth:`audit`.

        Raises
        ------
        ValueError
            If the study has no such mechanism, size or loss.
        """
        self._check("mechanism", mechanism, list(self.dataset["mechanism"].values))
        self._check("size", size, list(self.dataset["size"].values))
        self._check("loss", loss, _LOSSES)
        cell = self.dataset.sel(mechanism=mechanism, size=size)
        return int(np.argmax((cell[f"loss_{loss}"] / cell["local_bound"]).values))

    def audit(self, size, replicate):
        """Audit one of the databases again, with its own random numbers, record by record.

        Parameters
        ----------
        size : int
            One of the sample sizes.
        replicate : int
            Number of the database, from 0.

        Returns
        -------
        xarray.Dataset
            What :func:`exact_audit` returns.

        Raises
        ------
        ValueError
            If the study has no such database.
        """
        self._check("size", size, list(self.dataset["size"].values))
        replicate = check_count("replicate", replicate, at_least=0)
        if replicate >= self.dataset.sizes["replicate"]:
            raise ValueError(
                f"replicate must be below {self.dataset.sizes['replicate']}; got {replicate}"
            )
        data, seeds = _sources(self.seed, size)
        for _ in range(replicate + 1):
            counts = data.poisson(self.mean, size=size)
        return exact_audit(
            counts, public=self.public, truncate_at=self.truncate_at, draws=self.draws,
            weight_draws=self.weight_draws, shape=self.prior[0], rate=self.prior[1],
            random_seed=_numbered(seeds, replicate),
        )

    @staticmethod
    def _check(name, value, accepted):
        if value not in accepted:
            listed = ", ".join(str(entry) for entry in accepted)
            raise ValueError(f"{name} must be among {listed}; got {value!r}")

    def losses(self):
        """Medians over databases of twice the bound, the oscillation and the losses, in nats.

        Returns
        -------
        pandas.DataFrame
            One row a mechanism and size. The last column is the largest integrated loss.
        """
        data = self.dataset
        table = xr.Dataset(
            {
                "2Δ": 2 * data["local_bound"].median("replicate"),
                "oscillation": data["oscillation_bound"].median("replicate"),
                "weights fixed": data["loss_fixed"].median("replicate"),
                "common numbers": data["loss_common"].median("replicate"),
                "integrated out": data["loss_integrated"].median("replicate"),
                "largest common": data["loss_common"].max("replicate"),
                "largest integrated": data["loss_integrated"].max("replicate"),
            }
        )
        return _by_mechanism(table)

    def reactions(self):
        """What one leaving record does to the weights of others, and the mass left out.

        Returns
        -------
        pandas.DataFrame
            One row a mechanism and size; averages over databases, and the largest mass outside
            the public interval.
        """
        data = self.dataset
        table = xr.Dataset(
            {
                "weights moved": data["weights_moved"].mean("replicate"),
                "weights switched": data["weights_switched"].mean("replicate"),
                "share of records over": data["records_over"].mean("replicate"),
                "share of μ over": data["parameters_over"].mean("replicate"),
                "mass outside draws": data["outside"].mean("replicate"),
                "mass outside public": data["outside_public"].max("replicate"),
            }
        )
        return _by_mechanism(table)

    def utility(self):
        """Error of the pseudo posterior mean of μ over databases.

        Returns
        -------
        pandas.DataFrame
            One row a mechanism and size: ``bias`` and ``root mean square error`` of the mean, and
            the average ``spread``, the pseudo posterior's standard deviation.
        """
        data = self.dataset
        error = data["average_mean"] - self.mean
        table = xr.Dataset(
            {
                "bias": error.mean("replicate"),
                "root mean square error": np.sqrt((error**2).mean("replicate")),
                "spread": data["spread"].mean("replicate"),
            }
        )
        return _by_mechanism(table)

    def comparison(self):
        """What each mechanism promised, lost and cost, over all databases of the study.

        Returns
        -------
        pandas.DataFrame
            One row a mechanism. ``weights depend on``: the record alone, or all records (or no
            record); ``largest 2Δ`` and ``largest loss`` (integrated) in nats; ``databases over``:
            share of databases with that loss above their own 2Δ, at the size where it is largest;
            ``error``: root mean square error of the mean at the largest size, as a multiple of
            the Unweighted one.
        """
        import pandas as pd

        data = self.dataset
        over = (data["loss_integrated"] > 2.0 * data["local_bound"]).mean("replicate").max("size")
        error = self.utility()["root mean square error"].unstack("size").iloc[:, -1]
        rows = {}
        for name in data["mechanism"].values:
            cell = data.sel(mechanism=name)
            depend = "no record" if name == "Unweighted" else "the record alone"
            rows[str(name)] = {
                "weights depend on": "all records" if name in REACTING else depend,
                "largest 2Δ": float(2.0 * cell["local_bound"].max()),
                "largest oscillation": float(cell["oscillation_bound"].max()),
                "largest loss": float(cell["loss_integrated"].max()),
                "databases over": float(over.sel(mechanism=name)),
                "error": float(error[name] / error["Unweighted"]),
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("mechanism")

    def exceedance(self, losses=_LOSSES, *, confidence=0.95):
        """Share π of databases whose privacy loss itself exceeds their own 2Δ.

        Parameters
        ----------
        losses : sequence of str
            Any of ``fixed``, ``common`` and ``integrated``.
        confidence : float, default 0.95
            Coverage of the exact (Clopper-Pearson) intervals.

        Returns
        -------
        pandas.DataFrame
            One row a mechanism, size and loss: ``estimate``, ``low``, ``high``, ``exceeded``.

        Raises
        ------
        ValueError
            If a loss is not known, or as :func:`ppm.exceedance`.

        Notes
        -----
        Savitsky, Williams and Hu (2022), section 4, the definition of probabilistic differential
        privacy, with the loss in the place that :func:`ppm.exceedance` gives to 2Δ.
        """
        import pandas as pd

        rows = {}
        for kind in losses:
            self._check("losses", kind, _LOSSES)
        for mechanism in self.dataset["mechanism"].values:
            for size in self.dataset["size"].values:
                cell = self.dataset.sel(mechanism=mechanism, size=size)
                for kind in losses:
                    found = pdp.loss_exceedance(
                        cell[f"loss_{kind}"].values,
                        2.0 * cell["local_bound"].values,
                        confidence=confidence,
                    )
                    rows[mechanism, size, kind] = (
                        found.estimate, found.low, found.high, found.exceeded
                    )
        index = pd.MultiIndex.from_tuples(rows, names=["mechanism", "size", "loss"])
        return pd.DataFrame(
            list(rows.values()), index, columns=["estimate", "low", "high", "exceeded"]
        )


def exact_audit(
    counts, *, public, truncate_at=3.5, draws=1000, weight_draws=200, shape=0.001, rate=0.001,
    random_seed=None,
):
    r"""Privacy loss of every leave-one-out neighbour of a database of counts, in closed form.

    For each record i that may leave, the loss is :math:`\log \xi(\mu \mid x) - \log \xi(\mu \mid
    x_{-i})`, two Gamma densities; reported is its largest absolute value for μ between the smallest
    and the largest of S draws from the pseudo posterior of x, the set behind Δ as well.

    Parameters
    ----------
    counts : array_like of int, shape (records,)
        The database x, at least two records.
    public : (float, float)
        Public interval of μ behind the weights that a record determines alone: fixed before the
        counts were seen.
    truncate_at : float, default 3.5
        The paper's M, above 0, in nats: of Weighted-M, and the cap of Capped. Range-capped caps
        oscillations at 2M, so that all three aim at ε = 2M.
    draws : int, default 1000
        Posterior draws S of each fit, 2 or more.
    weight_draws : int, default 200
        Draws of the weights (each from S draws of the unweighted posterior) that are averaged on
        each side; 1 or more.
    shape, rate : float, default 0.001
        Gamma prior of μ, as for :class:`ppm.GammaPoisson`.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.

    Returns
    -------
    xarray.Dataset
        Dimensions mechanism and left_out (the distinct counts of the database: equal counts leave
        the same neighbour). ``records``: how many have this count; ``weight`` and ``bound``: its
        weight and its weighted bound; ``loss_fixed``: the other records keep their weights;
        ``loss_common``: weights computed again without the record, with the same random numbers;
        ``loss_integrated``: the same with densities averaged over the weights' draws on each side;
        ``loss_over_draws``: the loss at common random numbers, with its sign, at the quantiles
        ``level`` of the pseudo posterior.
        By mechanism: what :class:`AuditStudy` lists.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Savitsky, Williams and Hu (2022), the theorem of section 2 and the mechanisms of section 4.

    A release of one μ, or of records drawn from it, with everything else kept secret, has the
    integrated loss: its density is an average over the draws that made the weights. The loss at
    common random numbers is that of a mechanism which publishes the seed of the weights as well;
    its largest value over the seeds bounds the integrated one and, times their number, that of
    several releases made with the same weights. Equal random numbers means equal levels of the
    distribution functions of the two posteriors. The more draws of the weights, the closer comes
    the average; with few of them it lies nearer to the loss at common random numbers.

    The log ratio of two Gamma densities is unbounded over all μ. What the set leaves out is
    ``outside``, the largest mass that either pseudo posterior has there.
    """
    counts = check_counts("counts", counts)
    if counts.size < 2:
        raise ValueError("counts must hold at least two records: one of them leaves")
    settings = _settings(truncate_at, public, draws, weight_draws, shape, rate)
    values, table = np.unique(counts, return_counts=True)
    return _dataset(*_audit(values, table, settings, generator(random_seed)), values)


def audit_study(
    sizes=(100, 400, 1600, 6400), *, replicates=400, mean=100.0, truncate_at=3.5, public=None,
    draws=1000, weight_draws=200, shape=0.001, rate=0.001, random_seed=None, progress=False,
):
    """Simulate Poisson databases and audit each of them exactly.

    The databases are those of :func:`ppm.contraction_study` for the same seed.

    Parameters
    ----------
    sizes : sequence of int, default (100, 400, 1600, 6400)
        Sample sizes n, increasing, each 2 or more.
    replicates : int, default 400
        Databases R of each size, 2 or more.
    mean : float, default 100
        Mean μ of the counts, above 0.
    truncate_at : float, default 3.5
        The paper's M, above 0, in nats.
    public : (float, float), optional
        Public interval of μ; by default 0.9 and 1.1 times ``mean``.
    draws, weight_draws, shape, rate
        As for :func:`exact_audit`.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.
    progress : bool, default False
        Whether to show a bar; needs tqdm.

    Returns
    -------
    AuditStudy
        Bounds and losses, with the tables made from them.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 4, the simulation study.
    """
    sizes = _check_sizes(sizes)
    replicates = check_count("replicates", replicates, at_least=2)
    mean = check_number("mean", mean, above=0)
    if public is None:
        public = 0.9 * mean, 1.1 * mean
    settings = _settings(truncate_at, public, draws, weight_draws, shape, rate)
    entropy = seed_sequence(random_seed)
    names = list(_BY_DATABASE)
    found = np.empty((len(names), len(MECHANISMS), len(sizes), replicates))
    steps = [(place, replicate) for place in range(len(sizes)) for replicate in range(replicates)]
    if progress:
        from tqdm.auto import tqdm

        steps = tqdm(steps, desc="Databases audited")
    for place, replicate in steps:
        if replicate == 0:
            data, seeds = _sources(entropy, sizes[place])
        values, table = np.unique(data.poisson(mean, size=sizes[place]), return_counts=True)
        by_database, _ = _audit(
            values, table, settings, np.random.default_rng(_numbered(seeds, replicate))
        )
        found[:, :, place, replicate] = [by_database[name] for name in names]
    dims = ("mechanism", "size", "replicate")
    dataset = xr.Dataset(
        {name: (dims, block) for name, block in zip(names, found, strict=True)},
        {"mechanism": list(MECHANISMS), "size": list(sizes), "replicate": np.arange(replicates)},
    )
    return AuditStudy(
        dataset, truncate_at=settings["truncate_at"], public=settings["public"], mean=mean,
        draws=settings["draws"], weight_draws=settings["weight_draws"],
        prior=settings["prior"], seed=_numbered(entropy),
    )


def _sources(entropy, size):
    """Where the databases of one size come from, and the seed of their audits."""
    data, audits = _numbered(entropy, size).spawn(2)
    # the first stream is the one the study of contraction draws its databases from
    return np.random.default_rng(data), audits


def _numbered(seed, *place):
    """A seed of its own for each place, the same one again whenever it is asked for."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *place))


_BY_DATABASE = (
    "local_bound", "oscillation_bound", "loss_fixed", "loss_common", "loss_integrated",
    "records_over", "parameters_over", "weights_moved", "weights_switched", "outside",
    "outside_public", "average_mean", "spread",
)


def _settings(truncate_at, public, draws, weight_draws, shape, rate):
    try:
        lowest, highest = public
    except (TypeError, ValueError):
        raise ValueError(f"public must be two numbers, an interval of μ; got {public!r}") from None
    lowest = check_number("public", lowest, above=0)
    return {
        "truncate_at": check_number("truncate_at", truncate_at, above=0),
        "public": (lowest, check_number("public", highest, above=lowest)),
        "draws": check_count("draws", draws, at_least=2),
        "weight_draws": check_count("weight_draws", weight_draws),
        "prior": (check_number("shape", shape, above=0), check_number("rate", rate, above=0)),
    }


def _dataset(by_database, by_record, values):
    """The audit of one database as a Dataset."""
    dataset = xr.Dataset(
        {
            name: (("mechanism", "left_out", "level")[: block.ndim], block)
            for name, block in by_record.items()
        },
        {"mechanism": list(MECHANISMS), "left_out": values, "level": _LEVELS},
    )
    dataset["records"] = dataset["records"].isel(mechanism=0, drop=True)
    return dataset.assign(
        {
            name: ("mechanism", value)
            for name, value in by_database.items()
            if name not in by_record
        }
    )


def _extreme_levels(draws, size, rng):
    """Levels of the smallest and the largest of independent draws, ``size`` times: (2, size)."""
    # a row of random numbers for each time, so that fewer of them are the first of more
    first, second = rng.uniform(size=(size, 2)).T
    top = first ** (1.0 / draws)
    return np.stack([top * -np.expm1(np.log(second) / (draws - 1)), top])


def _audit(values, table, settings, rng):
    """Audit one database: (by mechanism, by mechanism and left-out value).

    Arrays have the axes left-out value (0 is nobody), draw of the weights, value.
    """
    truncate_at, draws = settings["truncate_at"], settings["draws"]
    prior = settings["prior"]
    values = values.astype(np.float64)
    # row 0 is x itself, row j + 1 its neighbour without one record of the j-th value
    tables = np.vstack([table, table - np.eye(values.size)])
    # the set of μ first: it does not depend on how many draws of the weights there are
    sets = _extreme_levels(draws, len(MECHANISMS), rng).T
    levels = _extreme_levels(draws, settings["weight_draws"], rng)
    shapes = prior[0] + tables @ values
    rates = prior[1] + tables.sum(axis=1)
    means = [gammaincinv(shapes[:, None], level) / rates[:, None] for level in levels]
    # the logarithm is taken of the means alone, before they meet the values
    factorials = gammaln(values + 1.0)
    low, high = (
        mean[..., None] - np.log(np.maximum(mean, _TINY))[..., None] * values + factorials
        for mean in means
    )
    bounds = np.maximum(low, high, out=low)
    absent = tables == 0
    lowest, highest = bounds.min(axis=-1, keepdims=True), bounds.max(axis=-1, keepdims=True)
    for row in np.flatnonzero(absent.any(axis=1)):
        there = bounds[row][:, ~absent[row]]
        lowest[row], highest[row] = there.min(-1, keepdims=True), there.max(-1, keepdims=True)
    # where a value occurs only once and has left, its own weight is not asked for
    weighted = linear_weights(bounds, lowest, highest)
    lowest, highest = settings["public"]
    ends = log_likelihood_of_counts(values, np.array([[lowest], [highest]]))
    within = log_likelihood_of_counts(values, np.clip(values, lowest, highest))
    rules = {
        "Unweighted": np.ones(values.size),
        "Weighted": weighted,
        "Weighted-M": np.where(weighted * bounds > truncate_at, 0.0, weighted),
        "Capped": record_determined_weights(-ends.min(axis=0), capped_map(truncate_at)),
        "Range-capped": record_determined_weights(
            within - ends.min(axis=0), capped_map(2.0 * truncate_at)
        ),
    }
    extreme = int(np.argmax(np.where(table > 0, bounds[0, 0], -np.inf)))
    found = [
        _one_mechanism(
            values, table, tables, weights, prior, ends, extreme, np.array(settings["public"])
        )
        for weights, ends in zip(rules.values(), sets, strict=True)
    ]
    return tuple(
        {name: np.array([one[part][name] for one in found]) for name in found[0][part]}
        for part in (0, 1)
    )


def _one_mechanism(values, table, tables, weights, prior, levels, extreme, public):
    reacting = weights.ndim == 3
    every = weights if reacting else np.broadcast_to(weights, (len(tables), 1, values.size))
    here = every[0, 0]
    effective = every * tables[:, None]
    shapes, rates = prior[0] + effective @ values, prior[1] + effective.sum(axis=-1)
    # the set of μ: between the smallest and the largest of S draws, as behind Δ
    low, high = gammaincinv(shapes[0, 0], levels) / rates[0, 0]
    log_lik = log_likelihood_of_counts(values, np.array([[low], [high]]))
    inside = log_likelihood_of_counts(values, np.clip(values, low, high))
    # not a product: a record that was removed can have an infinite bound
    bounds, oscillations = (
        np.multiply(here, found, out=np.zeros(values.size), where=here > 0)
        for found in (-log_lik.min(axis=0), inside - log_lik.min(axis=0))
    )
    local_bound = bounds.max()

    fixed_shapes, fixed_rates = shapes[0, 0] - here * values, rates[0, 0] - here
    fixed = _largest_loss(shapes[0, 0], rates[0, 0], fixed_shapes, fixed_rates, low, high)
    common = integrated = fixed
    parts = fixed_shapes, fixed_rates
    if reacting:
        parts = shapes[1:, 0], rates[1:, 0]
        common = _largest_loss(shapes[0, 0], rates[0, 0], *parts, low, high)
        points = np.linspace(low, high, _GRID)
        density = _log_mean(_log_gamma(points, shapes[..., None], rates[..., None]))
        integrated = np.abs(density[0] - density[1:]).max(axis=-1)
    # over μ from the pseudo posterior of x
    points = gammaincinv(shapes[0, 0], _LEVELS) / rates[0, 0]
    over_draws = _log_gamma(points, shapes[0, 0], rates[0, 0]) - _log_gamma(
        points, parts[0][:, None], parts[1][:, None]
    )
    sides_shape, sides_rate = np.append(parts[0], shapes[0, 0]), np.append(parts[1], rates[0, 0])
    inside_mass = gammainc(sides_shape, high * sides_rate) - gammainc(sides_shape, low * sides_rate)
    moved = np.abs(every[extreme + 1, 0] - here)
    left = tables[extreme + 1]
    switched = (every[extreme + 1, 0] > 0) != (here > 0)
    over = common > 2.0 * local_bound
    return {
        "local_bound": local_bound,
        "oscillation_bound": oscillations.max(),
        "loss_fixed": fixed.max(),
        "loss_common": common.max(),
        "loss_integrated": integrated.max(),
        "records_over": table[over].sum() / table.sum(),
        "parameters_over": np.mean(np.abs(over_draws) > 2.0 * local_bound, axis=-1).max(),
        "weights_moved": left[moved > _VISIBLE].sum(),
        "weights_switched": left[switched].sum(),
        "outside": 1.0 - inside_mass.min(),
        "outside_public": 1.0 - np.diff(gammainc(shapes[0, 0], rates[0, 0] * public))[0],
        "average_mean": shapes[0, 0] / rates[0, 0],
        "spread": math.sqrt(shapes[0, 0]) / rates[0, 0],
    }, {
        "records": table,
        "weight": here,
        "bound": bounds,
        "oscillation": oscillations,
        "loss_fixed": fixed,
        "loss_common": common,
        "loss_integrated": integrated,
        "loss_over_draws": over_draws,
    }


def _log_gamma(mu, shape, rate):
    log_mu = np.log(np.maximum(mu, _TINY))
    return shape * np.log(rate) - gammaln(shape) + (shape - 1.0) * log_mu - rate * mu


def _log_mean(log_density):
    """Logarithm of the mean over draws of the weights, up to one constant for all; overwrites."""
    largest = log_density.max(axis=1, keepdims=True)
    log_density -= largest
    return largest[:, 0] + np.log(np.exp(log_density, out=log_density).sum(axis=1))


def _largest_loss(shape, rate, shapes, rates, low, high):
    """Largest absolute log ratio of two Gamma densities on an interval: at an end or in between."""
    turn = np.divide(
        shape - shapes, rate - rates, out=np.full(shapes.shape, low), where=rate != rates
    )
    ends = [np.full(shapes.shape, end) for end in (low, high)]
    points = np.stack([*ends, np.clip(turn, low, high)])
    return np.abs(_log_gamma(points, shape, rate) - _log_gamma(points, shapes, rates)).max(axis=0)


def _by_mechanism(table):
    return table.to_dataframe(dim_order=["mechanism", "size"])


def bounds_by_unit(values, units, *, draws=1000, random_seed=None):
    """Bounds and reciprocal-map weights of the same values in several units of measurement.

    The model is a normal distribution with the values' own standard deviation, and a mean that is
    drawn from its posterior under a flat prior. All units use the same draws.

    Parameters
    ----------
    values : array_like, shape (records,)
        Values in the first unit, two or more that differ.
    units : dict of str to float
        Name of a unit, and how much of the values' unit one of it is, above 0.
    draws : int, default 1000
        Draws S of the mean, 2 or more.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.

    Returns
    -------
    pandas.DataFrame
        One row a unit: ``2Δ`` and ``oscillation`` with all weights 1, in nats; ``average`` and
        ``smallest reciprocal weight``.

    Raises
    ------
    ValueError
        If the values or a unit are out of range.

    Notes
    -----
    On section 2 of Savitsky, Williams and Hu (2022), whose bound is one on the logarithm of a
    density: that has a unit.
    """
    import pandas as pd
    from scipy import stats

    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not np.all(np.isfinite(values)) or np.ptp(values) == 0:
        raise ValueError("values must be finite numbers that are not all the same")
    draws = check_count("draws", draws, at_least=2)
    units = {name: check_number(f"units[{name!r}]", size, above=0) for name, size in units.items()}
    scale = values.std()
    rng = generator(random_seed)
    centre = rng.normal(values.mean(), scale / np.sqrt(values.size), (draws, 1))
    rows = {}
    for name, size in units.items():
        log_lik = stats.norm.logpdf(values / size, centre / size, scale / size)
        weights = mapped_weights(log_lik, reciprocal_map)
        rows[name] = {
            "2Δ": pdp.epsilon(local_bound(log_lik)),
            "oscillation": oscillation_bound(log_lik),
            "average reciprocal weight": weights.mean(),
            "smallest reciprocal weight": weights.min(),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("unit")
