"""What a sweep over settings found, and the tables made from it (the paper's section 5)."""

from dataclasses import dataclass, field

import numpy as np

from ppm import pdp
from ppm._random import seed_sequence
from ppm._validation import check_count, check_number, shown
from ppm.mechanism import entry_label
from ppm.studies.tasks import no_failures
from ppm.utility import (
    grouped_barycentres,
    median_shift,
    propensity_scores,
    resample,
    resampled_barycentre,
)


@dataclass(frozen=True, eq=False)
class SweepEntry:
    """One synthesizer of the sweep: its bounds, its diagnostics and its synthetic databases.

    Attributes
    ----------
    mechanism : str
        ``Unweighted``, ``DPweighted``, ``EMweighted`` or ``Countweighted``.
    scale, shift : float
        The (c, g) the entry belongs to; NaN for ``Unweighted`` and ``Countweighted``. An
        ``EMweighted`` entry was made to have the local bound of the ``DPweighted`` one with the
        same (c, g).
    weights, record_bounds : numpy.ndarray, shape (records,)
        Weights α, and bounds in nats.
    local_bound : float
        Δ in nats.
    draws_used : int
        Number S of draws behind it, all chains together.
    diagnostics : ppm.diagnostics.BoundDiagnostics
        R-hat and effective sample size.
    synthetic : numpy.ndarray, shape (releases, records)
        Synthetic databases.
    conditional : numpy.ndarray, shape (releases, records), or None
        With ``conditional_labels``: databases from the same draws of θ whose labels come from
        their full conditional distribution, as in the paper. **No ε covers them.**
    history : tuple of (float, float)
        For ``EMweighted``: weight and bound of every attempt, those shared with other settings
        first.
    oscillation_bound : float
        Largest oscillation of a record, in nats: see :func:`ppm.oscillation_bound`.

    Examples
    --------
    >>> import ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> found = ppm.studies.sweep(model, [(0.7, 0.0)], releases=2, draws=200, random_seed=1)
    >>> entry = found.entry("EMweighted")
    >>> entry.label, entry.releases().shape
    ('EMweighted (0.7, 0)', (2, 5))
    """

    mechanism: str
    scale: float
    shift: float
    weights: np.ndarray = field(repr=False)
    record_bounds: np.ndarray = field(repr=False)
    local_bound: float
    draws_used: int
    diagnostics: object
    synthetic: np.ndarray = field(repr=False)
    history: tuple = ()
    conditional: object = field(default=None, repr=False)
    oscillation_bound: float = np.nan

    def releases(self, labels="prior"):
        """Databases whose labels come from the mixture weights, or from their full conditional.

        Raises
        ------
        ValueError
            If ``labels`` is neither ``"prior"`` nor ``"conditional"``, or the sweep was made
            without ``conditional_labels``.
        """
        if labels not in ("prior", "conditional"):
            raise ValueError(f'labels must be "prior" or "conditional"; got {shown(labels)}')
        if labels == "prior":
            return self.synthetic
        if self.conditional is None:
            raise ValueError(
                "the sweep has no releases with conditional labels: make it with "
                "conditional_labels=True"
            )
        return self.conditional

    @property
    def label(self):
        """Mechanism and setting in one."""
        pair = None if np.isnan(self.scale) else (self.scale, self.shift)
        return entry_label(self.mechanism, pair)


@dataclass(frozen=True, eq=False)
class Sweep:
    """Entries of a sweep, the unweighted synthesizer first.

    Attributes
    ----------
    entries : tuple of SweepEntry
        In the order of the settings, ``DPweighted`` before ``EMweighted``; ``Countweighted`` last.
    failures : pandas.DataFrame
        One row for each setting one of whose fits failed on an executor, with its seed and its
        traceback. Entries of such a setting are left out.

    Examples
    --------
    >>> import ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> found = ppm.studies.sweep(model, [(0.7, 0.0)], releases=2, draws=200, random_seed=1)
    >>> [entry.label for entry in found.entries]
    ['Unweighted', 'DPweighted (0.7, 0)', 'EMweighted (0.7, 0)']
    >>> found.entry("DPweighted").weights.round(2)
    array([0.57, 0.67, 0.63, 0.7 , 0.  ])
    """

    entries: tuple
    failures: object = field(default_factory=no_failures, repr=False)

    def entry(self, mechanism, scale=None, shift=None):
        """The entry of a mechanism, at a setting or at the first one.

        Raises
        ------
        KeyError
            If the sweep has no such entry.
        ValueError
            If the setting is none.
        """
        for name, value in (("scale", scale), ("shift", shift)):
            if value is not None:
                check_number(name, value)
        for entry in self.entries:
            if entry.mechanism == mechanism and (
                scale is None or (entry.scale, entry.shift) == (scale, shift)
            ):
                return entry
        raise KeyError(
            f"the sweep has no {shown(mechanism)} at (scale, shift) = "
            f"({shown(scale)}, {shown(shift)})"
        )

    def distributions(
        self,
        statistic,
        *,
        configuration=None,
        data=None,
        transform=None,
        resamples=500,
        random_seed=None,
        labels="prior",
    ):
        """Re-sampled statistic of the data and of every entry's releases.

        Parameters
        ----------
        statistic, resamples, random_seed
            As for :func:`ppm.utility.resample`; every distribution uses the same stream.
        configuration : (float, float), optional
            Only the entries of this (scale, shift), and Unweighted and Countweighted.
        data : array_like, shape (records,), optional
            The confidential values, on the scale of the statistic.
        transform : callable, optional
            From the synthesizer's scale to that of the statistic, such as ``numpy.exp``.
        labels : {"prior", "conditional"}, default "prior"
            Which releases: see :meth:`SweepEntry.releases`.

        Returns
        -------
        dict of str to numpy.ndarray, shape (resamples,)
            ``Data``, if given, and one Wasserstein barycentre over the releases for each entry, by
            its mechanism, or by its :attr:`SweepEntry.label` without a ``configuration``.
        """
        settings = {"resamples": resamples, "random_seed": seed_sequence(random_seed)}
        found = {} if data is None else {"Data": resample(data, statistic, **settings)}
        for name, entry in self.chosen(configuration).items():
            releases = entry.releases(labels)
            releases = releases if transform is None else transform(releases)
            found[name] = resampled_barycentre(releases, statistic, **settings)
        return found

    def label_effect(
        self, statistic, *, data, transform=None, resamples=500, random_seed=None
    ):
        """What the source of the labels does to a statistic, for every entry.

        Parameters
        ----------
        statistic, data, transform, resamples, random_seed
            As for :meth:`distributions`.

        Returns
        -------
        pandas.DataFrame
            One row an entry, by mechanism and setting: its ``local bound`` in nats, and the shift
            of the statistic's median from the data's, in per cent, with ``labels from pi`` and
            with ``conditional labels``.

        Raises
        ------
        ValueError
            If the sweep was made without ``conditional_labels``.

        Notes
        -----
        Savitsky, Williams and Hu (2022), appendix B, draw labels from their full conditional
        distribution, which looks at each record's confidential value with its full weight, whatever
        weight the record was given. No ε covers such releases.
        """
        import pandas as pd

        settings = {"transform": transform, "resamples": resamples}
        settings["random_seed"] = seed_sequence(random_seed)
        middle = {
            name: self.distributions(statistic, data=data, labels=labels, **settings)
            for name, labels in (
                ("labels from pi (%)", "prior"), ("conditional labels (%)", "conditional")
            )
        }
        rows = [
            {
                "mechanism": entry.mechanism,
                "scale": entry.scale,
                "shift": entry.shift,
                "local bound": entry.local_bound,
                **{
                    name: median_shift(found[entry.label], found["Data"])
                    for name, found in middle.items()
                },
            }
            for entry in self.entries
        ]
        return pd.DataFrame(rows).set_index(["mechanism", "scale", "shift"])

    def chosen(self, configuration=None):
        """Entries of one setting by mechanism, or all entries by label.

        Parameters
        ----------
        configuration : (float, float), optional
            Only the entries of this (scale, shift), and Unweighted and Countweighted.

        Returns
        -------
        dict of str to SweepEntry
            In order.
        """
        if configuration is None:
            return {entry.label: entry for entry in self.entries}
        return {
            entry.mechanism: entry
            for entry in self.entries
            if np.isnan(entry.scale) or (entry.scale, entry.shift) == tuple(configuration)
        }

    def grouped_distributions(
        self,
        groups,
        statistic="mean",
        *,
        configuration=None,
        data=None,
        transform=None,
        resamples=500,
        random_seed=None,
    ):
        """Re-sampled statistic within each group of records, such as means given a predictor.

        Parameters
        ----------
        groups : array_like or pandas.Series, shape (records,)
            A known variable.
        statistic, configuration, data, transform, resamples, random_seed
            As for :meth:`distributions`.

        Returns
        -------
        dict of group to dict of str to numpy.ndarray
            For every group with two records or more what :meth:`distributions` returns.
        """
        settings = {"resamples": resamples, "random_seed": seed_sequence(random_seed)}
        sources = {} if data is None else {"Data": data}
        for name, entry in self.chosen(configuration).items():
            sources[name] = entry.synthetic if transform is None else transform(entry.synthetic)
        found = {}
        for name, values in sources.items():
            by_group = grouped_barycentres(values, groups, statistic, **settings)
            for group, distribution in by_group.items():
                found.setdefault(group, {})[name] = distribution
        return found

    def propensity_scores(self, data, *, configuration=None, known=None, releases=None):
        """Distinguishability of every entry's releases from the data, averaged over releases.

        Parameters
        ----------
        data : array_like, shape (records,)
            The confidential values, on the scale of the synthesizer.
        configuration : (float, float), optional
            As for :meth:`distributions`.
        known : array_like, shape (records, columns), optional
            Columns that were not synthesized.
        releases : int, optional
            How many releases to use of each entry, 1 or more; all of them by default.

        Returns
        -------
        pandas.DataFrame
            One row an entry: ``pMSE``, its expectation ``null`` and ``ratio`` of
            :func:`ppm.utility.propensity_score`, on :func:`ppm.utility.rank_powers`. Without a
            ``configuration`` rows go by label, otherwise by mechanism.
        """
        if releases is not None:
            releases = check_count("releases", releases)
        entries = self.chosen(configuration)
        synthetic = {name: entry.synthetic for name, entry in entries.items()}
        return propensity_scores(data, synthetic, known=known, most=releases)

    def summary(self, distributions, *, configuration):
        """Bounds, diagnostics and utility of the synthesizers at one setting, side by side.

        Parameters
        ----------
        distributions : dict of str to dict
            Name of a statistic to what :meth:`distributions` returned for it at this
            ``configuration``, with ``Data``.
        configuration : (float, float)
            The setting.

        Returns
        -------
        pandas.DataFrame
            One row a synthesizer. For each statistic the shift of its median from the data's, in
            per cent.
        """
        import pandas as pd

        rows = {}
        for name, entry in self.chosen(configuration).items():
            rows[name] = {
                "average weight": entry.weights.mean(),
                "local bound": entry.local_bound,
                "epsilon, 1 release": pdp.epsilon(entry.local_bound),
                "oscillation bound": entry.oscillation_bound,
                "R-hat": entry.diagnostics.r_hat,
                "R-hat, log-likelihood": entry.diagnostics.r_hat_log_likelihood,
            }
            for statistic, found in distributions.items():
                rows[name][f"{statistic} (%)"] = median_shift(found[name], found["Data"])
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("synthesizer")

    def equal_bounds(self, distributions, scores=None):
        """How close EMweighted came to the bound of DPweighted, and what each does to a statistic.

        Parameters
        ----------
        distributions : dict of str to array_like
            What :meth:`distributions` returned for the statistic without a ``configuration``, with
            ``Data``.
        scores : pandas.DataFrame, optional
            What :meth:`propensity_scores` returned without a ``configuration``.

        Returns
        -------
        pandas.DataFrame
            One row a setting: the ``target`` (the bound of DPweighted, in nats); EMweighted's
            ``scalar weight``, ``local bound``, distance from the target in per cent, and the number
            of ``attempts`` that it was the closest of; the distance of each one's median from
            Unweighted's and from the data's, in per cent of those; how much further EMweighted is,
            in points of per cent, below 0 where it is closer; and, with ``scores``, the pMSE
            ratio of each.
        """
        import pandas as pd

        rows = {}
        weighted = [entry for entry in self.entries if entry.mechanism == "DPweighted"]
        for dp in weighted:
            em = self.entry("EMweighted", dp.scale, dp.shift)
            row = {
                "target": dp.local_bound,
                "scalar weight": em.weights[0],
                "local bound": em.local_bound,
                "off target (%)": _off_target(em.local_bound, dp.local_bound),
                "attempts": len(em.history),
            }
            for reference in ("Unweighted", "Data"):
                away = [
                    abs(median_shift(distributions[entry.label], distributions[reference]))
                    for entry in (dp, em)
                ]
                row[f"DPweighted from {reference} (%)"] = away[0]
                row[f"EMweighted from {reference} (%)"] = away[1]
                row[f"EMweighted further from {reference}"] = away[1] - away[0]
            if scores is not None:
                row["DPweighted pMSE ratio"] = scores.loc[dp.label, "ratio"]
                row["EMweighted pMSE ratio"] = scores.loc[em.label, "ratio"]
            rows[dp.scale, dp.shift] = row
        table = pd.DataFrame.from_dict(rows, orient="index")
        return table.rename_axis(["scale", "shift"])

    def table(self, *, releases=1):
        """Bounds, ε and diagnostics, one row an entry.

        Parameters
        ----------
        releases : int, default 1
            The m of the second column of ε.

        Returns
        -------
        pandas.DataFrame
            Bounds and ε in nats.
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "mechanism": entry.mechanism,
                    "scale": entry.scale,
                    "shift": entry.shift,
                    "average weight": entry.weights.mean(),
                    "records removed": int(np.count_nonzero(entry.weights == 0)),
                    "local bound": entry.local_bound,
                    "epsilon, 1 release": pdp.epsilon(entry.local_bound),
                    f"epsilon, {releases} releases": pdp.epsilon(entry.local_bound, releases),
                    "oscillation bound": entry.oscillation_bound,
                    "chains agree": entry.diagnostics.agree,
                    "R-hat": entry.diagnostics.r_hat,
                    "R-hat, log-likelihood": entry.diagnostics.r_hat_log_likelihood,
                    "effective draws": entry.diagnostics.effective_draws,
                    "draws": entry.draws_used,
                    "smallest bound of a chain": min(entry.diagnostics.by_chain),
                    "typical draw": entry.diagnostics.typical,
                }
                for entry in self.entries
            ]
        ).set_index(["mechanism", "scale", "shift"])


def _off_target(bound, target):
    """Distance of a bound from its target in per cent; a target of 0 is met exactly or not."""
    if bound == target:
        return 0.0
    return 100.0 * (bound / target - 1.0) if target > 0 else np.inf
