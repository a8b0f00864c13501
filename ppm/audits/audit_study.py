"""Exact audits of many simulated databases: losses side by side with what was promised.

Everything in this module is computed from the confidential records and is confidential itself.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import xarray as xr

from ppm import pdp
from ppm._random import generator, numbered, seed_sequence, streams
from ppm._validation import check_count, check_number, shown
from ppm.audits.closed_form import (
    MECHANISMS,
    REACTING,
    RESTRICTED,
    audit_database,
    checked_settings,
    exact,
    shares_of,
)
from ppm.studies.contraction_study import LARGEST_MEAN, check_sizes
from ppm.synthesizers.chains import with_bar

_LOSSES = ("fixed", "common", "worst", "integrated")
# a loss is surely above a bound if it is so by this many of its standard errors
_SURELY = 2.0


@dataclass(frozen=True, eq=False)
class AuditStudy:
    """Privacy losses of many simulated databases, by mechanism and sample size.

    Attributes
    ----------
    dataset : xarray.Dataset
        Dimensions mechanism, size, replicate; what :func:`ppm.audits.exact` returns for one
        database, with the largest loss over its left-out records. In nats, over the set of μ that
        :func:`ppm.audits.exact` describes: ``local_bound`` (Δ), ``oscillation_bound``,
        ``loss_fixed``, ``loss_common``, ``loss_integrated`` with the Monte Carlo standard error
        ``loss_integrated_error``; ``loss_worst``: the largest ``loss_common`` of several seeds;
        ``loss_supremum``: ``loss_common`` over every μ that the prior allows, infinite if that is
        every μ above 0 and the posterior changes at all. ``share_worst``: the largest
        ``loss_common`` as a share of 2Δ over the seeds, each with its own Δ.
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
        The public interval T of μ behind the weights that a record determines alone.
    mean : float
        The μ that generated the data.
    draws : int
        Posterior draws S behind each bound.
    weight_draws : int
        Draws of the weights over which ``loss_integrated`` averages.
    seeds : int
        Seeds behind ``loss_worst`` and ``share_worst``.
    prior : tuple of float
        Shape and rate of the Gamma prior.
    seed : numpy.random.SeedSequence
        What the databases and their audits came from.

    Examples
    --------
    Losses over every μ that the prior allows: all above 0 for Weighted, T for Capped on T.

    >>> import ppm
    >>> study = ppm.audits.study([100], replicates=10, weight_draws=5, random_seed=1)
    >>> study.exceedance(3.5).loc[["Weighted", "Capped on T"]].round(2)
                      estimate   low  high  exceeded
    mechanism   size
    Weighted    100        1.0  0.69  1.00        10
    Capped on T 100        0.0  0.00  0.31         0
    """

    dataset: xr.Dataset
    truncate_at: float
    public: tuple
    mean: float
    draws: int
    weight_draws: int
    seeds: int
    prior: tuple
    seed: np.random.SeedSequence

    def worst(self, mechanism, size, loss="common"):
        """Replicate whose loss over the set of μ stands highest against its own 2Δ.

        Parameters
        ----------
        mechanism : str
            Label.
        size : int
            One of the sample sizes.
        loss : str, default "common"
            ``fixed``, ``common`` (one seed), ``worst`` (of several seeds) or ``integrated``.

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
        cell = self.shares_of_own_bound(loss).sel(mechanism=mechanism, size=size)
        return int(np.argmax(cell.values))

    def shares_of_own_bound(self, loss="common"):
        """Largest loss of every database over its set of μ, as a share of its own 2Δ.

        Parameters
        ----------
        loss : str, default "common"
            ``fixed``, ``common``, ``worst`` or ``integrated``. For ``worst`` each seed is compared
            with its own Δ, and the largest share is taken.

        Returns
        -------
        xarray.DataArray, dimensions (mechanism, size, replicate)
            Shares; above 1 the loss is above 2Δ.

        Raises
        ------
        ValueError
            If there is no such loss.
        """
        self._check("losses", loss, _LOSSES)
        if loss == "worst":
            return self.dataset["share_worst"]
        losses = self.dataset[f"loss_{loss}"]
        return losses.copy(data=shares_of(losses.values, 2.0 * self.dataset["local_bound"].values))

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
            What :func:`ppm.audits.exact` returns.

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
        return exact(
            counts, public=self.public, truncate_at=self.truncate_at, draws=self.draws,
            weight_draws=self.weight_draws, seeds=self.seeds, shape=self.prior[0],
            rate=self.prior[1], random_seed=numbered(seeds, replicate),
        )

    @staticmethod
    def _check(name, value, accepted):
        if value not in accepted:
            listed = ", ".join(str(entry) for entry in accepted)
            raise ValueError(f"{name} must be among {listed}; got {shown(value)}")

    def losses(self):
        """Bounds and losses by mechanism and size, over the set of μ of each database, in nats.

        Returns
        -------
        pandas.DataFrame
            Medians over databases of 2Δ, of the oscillation and of the largest loss of a record in
            three ways; then the largest over databases: with one seed, over several seeds, and
            integrated, with the Monte Carlo standard error of that one number. A largest
            integrated loss is a maximum of noisy values and leans upward.
        """
        data = self.dataset
        table = xr.Dataset(
            {
                "2Δ": 2 * data["local_bound"].median("replicate"),
                "oscillation": data["oscillation_bound"].median("replicate"),
                "weights fixed": data["loss_fixed"].median("replicate"),
                "one seed": data["loss_common"].median("replicate"),
                "integrated out": data["loss_integrated"].median("replicate"),
                "largest, one seed": data["loss_common"].max("replicate"),
                f"largest of {self.seeds} seeds": data["loss_worst"].max("replicate"),
                "largest, integrated": data["loss_integrated"].max("replicate"),
                "its standard error": self._error_of_largest(["replicate"]),
            }
        )
        return _by_mechanism(table)

    def _error_of_largest(self, dims):
        """Standard error of the integrated loss at the database where that is largest."""
        place = self.dataset["loss_integrated"].argmax(dims)
        return self.dataset["loss_integrated_error"].isel(place).drop_vars(dims)

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
            One row a mechanism. ``weights from``: the record's own count, or all records (or no
            record); ``set of μ`` behind the next columns: the range of each database's draws, or
            T, which is all that the prior allows. The largest ``2Δ``, ``oscillation`` and ``loss``
            (integrated, with its Monte Carlo ``standard error``) in nats; ``over own 2Δ``: share
            of databases with that loss above their own 2Δ, at the size where it is largest;
            ``whole prior``: the largest loss over all parameters of the prior, with one seed, in
            nats; ``error``: root mean square error of the mean at the largest size, as a multiple
            of the Unweighted one.
        """
        import pandas as pd

        data = self.dataset
        over = (self.shares_of_own_bound("integrated") > 1).mean("replicate").max("size")
        standard_error = self._error_of_largest(["size", "replicate"])
        error = self.utility()["root mean square error"].unstack("size").iloc[:, -1]
        rows = {}
        for name in data["mechanism"].values:
            cell = data.sel(mechanism=name)
            source = "none" if name == "Unweighted" else "own"
            rows[str(name)] = {
                "weights from": "all" if name in REACTING else source,
                "set of μ": "T" if name in RESTRICTED else "draws",
                "2Δ": float(2.0 * cell["local_bound"].max()),
                "oscillation": float(cell["oscillation_bound"].max()),
                "loss": float(cell["loss_integrated"].max()),
                "standard error": float(standard_error.sel(mechanism=name)),
                "over own 2Δ": float(over.sel(mechanism=name)),
                "whole prior": float(cell["loss_supremum"].max()),
                "error": float(error[name] / error["Unweighted"]),
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("mechanism")

    def over_own_bound(self, losses=_LOSSES, *, confidence=0.95):
        """Share of databases whose loss over their set of μ exceeds their own 2Δ.

        This is not the π of probabilistic differential privacy, for two reasons: ε is another one
        for every database, and for a mechanism that takes the loss over the range of its draws,
        parameters outside that range are left out. See :meth:`exceedance` for π.

        Parameters
        ----------
        losses : sequence of str
            Any of ``fixed``, ``common`` (one seed), ``worst`` (a database counts if for some of
            the seeds the loss is above that seed's own 2Δ) and ``integrated``.
        confidence : float, default 0.95
            Coverage of the exact (Clopper-Pearson) intervals.

        Returns
        -------
        pandas.DataFrame
            One row a mechanism, size and loss: ``estimate``, ``low``, ``high``, ``exceeded`` and
            ``surely``, the databases above by more than two Monte Carlo standard errors of the
            loss. Only the integrated loss has such an error.

        Raises
        ------
        ValueError
            If a loss is not known, or as :func:`ppm.exceedance`.
        """
        import pandas as pd

        data = self.dataset
        least = data["loss_integrated"] - _SURELY * data["loss_integrated_error"]
        shares = {kind: self.shares_of_own_bound(kind) for kind in losses}
        surely = {kind: found > 1 for kind, found in shares.items()}
        surely["integrated"] = least > 2.0 * data["local_bound"]
        rows = {}
        for place in product(data["mechanism"].values, data["size"].values):
            here = dict(zip(("mechanism", "size"), place, strict=True))
            for kind in losses:
                found = pdp.loss_exceedance(
                    shares[kind].sel(here).values, 1.0, confidence=confidence
                )
                rows[*place, kind] = (
                    found.estimate, found.low, found.high, found.exceeded,
                    int(surely[kind].sel(here).sum()),
                )
        return pd.DataFrame(
            list(rows.values()),
            pd.MultiIndex.from_tuples(rows, names=["mechanism", "size", "loss"]),
            columns=["estimate", "low", "high", "exceeded", "surely"],
        )

    def shares_side_by_side(self, *, confidence=0.95):
        """The shares of :meth:`over_own_bound` with weights computed again, in words for a table.

        Parameters
        ----------
        confidence : float, default 0.95
            Coverage of the exact (Clopper-Pearson) intervals.

        Returns
        -------
        pandas.DataFrame
            One row a mechanism and size: shares in per cent, with intervals, for ``one seed``, the
            ``worst of`` several and ``integrated out``; then how many databases are above by the
            integrated loss, and how many ``surely``.
        """
        table = self.over_own_bound(_LOSSES[1:], confidence=confidence)
        shares = (100 * table[["estimate", "low", "high"]]).apply(
            lambda row: "{:.1f} % ({:.1f}–{:.1f})".format(*row), axis=1
        ).unstack("loss", sort=False)
        integrated = table.xs("integrated", level="loss")
        return shares.set_axis(
            ["one seed", f"worst of {self.seeds} seeds", "integrated out"], axis=1
        ).assign(above=integrated["exceeded"], surely=integrated["surely"])

    def exceedance(self, epsilon, *, confidence=0.95):
        """Share of databases whose loss exceeds one ε at some parameter that the prior allows.

        Parameters
        ----------
        epsilon : float
            The one ε for all databases, 0 or more, in nats.
        confidence : float, default 0.95
            Coverage of the exact (Clopper-Pearson) intervals.

        Returns
        -------
        pandas.DataFrame
            One row a mechanism and size: ``estimate``, ``low``, ``high`` and ``exceeded``.

        Raises
        ------
        ValueError
            As :func:`ppm.pdp.loss_exceedance`.

        Notes
        -----
        Savitsky, Williams and Hu (2022), section 4, the definition of probabilistic differential
        privacy: its supremum over all sets of parameters is the supremum of the loss over all
        parameters of the prior. For weights that do not react the share estimates π. Weights that
        react are computed again with the random numbers of one seed: that is the loss of a
        mechanism which tells this seed, and π of a release whose seed is secret is not computed.
        """
        import pandas as pd

        losses = self.dataset["loss_supremum"]
        rows = {}
        for mechanism, size in product(losses["mechanism"].values, losses["size"].values):
            cell = losses.sel(mechanism=mechanism, size=size)
            found = pdp.loss_exceedance(cell.values, epsilon, confidence=confidence)
            rows[mechanism, size] = found.estimate, found.low, found.high, found.exceeded
        return pd.DataFrame(
            list(rows.values()),
            pd.MultiIndex.from_tuples(rows, names=["mechanism", "size"]),
            columns=["estimate", "low", "high", "exceeded"],
        )


def study(
    sizes=(100, 400, 1600, 6400), *, replicates=400, mean=100.0, truncate_at=3.5, public=None,
    draws=1000, weight_draws=200, seeds=None, shape=0.001, rate=0.001, random_seed=None,
    progress=False,
):
    """Simulate Poisson databases and audit each of them exactly.

    The databases are those of :func:`ppm.studies.contraction` for the same seed.

    Parameters
    ----------
    sizes : sequence of int, default (100, 400, 1600, 6400)
        Sample sizes n, increasing, each 2 or more.
    replicates : int, default 400
        Databases R of each size, 2 or more.
    mean : float, default 100
        Mean μ of the counts, above 0 and at most 1e9.
    truncate_at : float, default 3.5
        The paper's M, above 0, in nats.
    public : (float, float), optional
        Public interval T of μ; by default 0.9 and 1.1 times ``mean``.
    draws, weight_draws, seeds, shape, rate
        As for :func:`ppm.audits.exact`.
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

    Examples
    --------
    >>> import ppm
    >>> study = ppm.audits.study([100], replicates=2, weight_draws=5, random_seed=1)
    >>> study.losses().loc[["Weighted", "Capped on T"], ["2Δ", "oscillation", "one seed"]].round(2)
                        2Δ  oscillation  one seed
    mechanism   size
    Weighted    100   6.98         0.75      0.60
    Capped on T 100   7.00         1.90      1.18
    """
    sizes = check_sizes(sizes)
    replicates = check_count("replicates", replicates, at_least=2)
    mean = check_number("mean", mean, above=0, at_most=LARGEST_MEAN)
    if public is None:
        public = 0.9 * mean, 1.1 * mean
    settings = checked_settings(truncate_at, public, draws, weight_draws, seeds, shape, rate)
    entropy = seed_sequence(random_seed)
    names = list(_BY_DATABASE)
    found = np.empty((len(names), len(MECHANISMS), len(sizes), replicates))
    steps = [(place, replicate) for place in range(len(sizes)) for replicate in range(replicates)]
    for place, replicate in with_bar(steps, "Databases audited", show=progress):
        if replicate == 0:
            data, audits = _sources(entropy, sizes[place])
        values, table = np.unique(data.poisson(mean, size=sizes[place]), return_counts=True)
        by_database, _ = audit_database(
            values, table, settings, generator(numbered(audits, replicate))
        )
        found[:, :, place, replicate] = [by_database[name] for name in names]
    dims = ("mechanism", "size", "replicate")
    dataset = xr.Dataset(
        {name: (dims, block) for name, block in zip(names, found, strict=True)},
        {"mechanism": list(MECHANISMS), "size": list(sizes), "replicate": np.arange(replicates)},
    )
    return AuditStudy(
        dataset, truncate_at=settings["truncate_at"], public=settings["public"], mean=mean,
        draws=settings["draws"], weight_draws=settings["weight_draws"], seeds=settings["seeds"],
        prior=settings["prior"], seed=numbered(entropy),
    )


def _sources(entropy, size):
    """Where the databases of one size come from, and the seed of their audits."""
    data, audits = streams(numbered(entropy, size), 2)
    # the first stream is the one the study of contraction draws its databases from
    return generator(data), audits


_BY_DATABASE = (
    "local_bound", "oscillation_bound", "loss_fixed", "loss_common", "loss_integrated",
    "loss_integrated_error", "loss_worst", "share_worst", "loss_supremum", "records_over",
    "parameters_over", "weights_moved", "weights_switched", "outside", "outside_public",
    "average_mean", "spread",
)


def _by_mechanism(table):
    return table.to_dataframe(dim_order=["mechanism", "size"])
