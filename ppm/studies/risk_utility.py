"""Risk and utility over a sequence of (scale, shift) settings (the paper's section 5)."""

import inspect
import itertools
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import numpy as np

from ppm import pdp
from ppm._random import numbered, seed_sequence
from ppm._validation import check_count, check_number, check_weights, shown
from ppm.mechanism import as_synthesizer, entry_label
from ppm.studies.kept_fits import fit_runner
from ppm.studies.scalar_search import rungs, search_weight
from ppm.synthesizers.chains import ChainsStopped
from ppm.utility import (
    grouped_barycentres,
    median_shift,
    propensity_score,
    rank_powers,
    resample,
    resampled_barycentre,
)
from ppm.weights import record_weights


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
    """

    entries: tuple

    def entry(self, mechanism, scale=None, shift=None):
        """The entry of a mechanism, at a setting or at the first one.

        Raises
        ------
        KeyError
            If the sweep has no such entry.
        """
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
        import pandas as pd

        if releases is not None:
            releases = check_count("releases", releases)
        rows = {}
        for name, entry in self.chosen(configuration).items():
            scores = [
                propensity_score(*rank_powers(data, synthetic), known=known)
                for synthetic in entry.synthetic[:releases]
            ]
            rows[name] = {
                "pMSE": np.mean([score.score for score in scores]),
                "null": np.mean([score.null for score in scores]),
                "ratio": np.mean([score.ratio for score in scores]),
            }
        return pd.DataFrame.from_dict(rows, orient="index")

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


def sweep(
    synthesizer,
    configurations,
    *,
    releases=20,
    draws=1000,
    random_seed=None,
    tolerance=0.03,
    attempts=30,
    count_weights=None,
    conditional_labels=False,
    unweighted_thin=1,
    fits=None,
    progress=False,
):
    """Run the synthesizers of the application over a sequence of (scale, shift) settings.

    Unweighted once, DPweighted and EMweighted at every setting, and Countweighted once if its
    weights are given.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer or pymc.Model
        The model, holding the confidential records. A PyMC model is taken as it is written, by
        :class:`ppm.PyMCSynthesizer` with its default settings; it must have one response.
    configurations : sequence of (float, float)
        Pairs (c, g), at least one, and each of them once.
    releases : int, default 20
        Synthetic databases m for each entry, 1 or more.
    draws : int, default 1000
        Kept draws a chain of each fit, 1 or more.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.
    tolerance, attempts
        How close EMweighted comes to the bound of DPweighted, and how many fits it may take at
        each setting: see :func:`ppm.studies.match_local_bound`, also for what it means that the
        bound of EMweighted is chosen among several. Attempts with weights 1/3, 1/9, … serve all
        settings.
    count_weights : array_like, shape (records,), optional
        Weights of Countweighted, in [0, 1]: see :func:`ppm.count_weights`.
    conditional_labels : bool, default False
        Keep, beside the releases of each entry, as many with labels from their full conditional
        distribution, for comparison with the paper. **No ε covers those**: see
        :meth:`ppm.FiniteMixture.predict`. It needs a synthesizer whose ``predict`` takes
        ``labels``.
    unweighted_thin : int, default 1
        Sweeps for each kept draw of Unweighted, for a synthesizer that thins: this one fit gives
        all others their weights, and deserves to explore further.
    fits : path-like, optional
        Folder that keeps every fit as soon as it is finished. A sweep that was interrupted goes
        on where it stopped, and one with other configurations computes only what is new. A fit
        is found by a hash of its data, settings, weights and seed, of the library's source and of
        the versions of the libraries it rests on. **What lies in the folder is confidential**:
        weights, bounds, and more synthetic databases than are released; a text file in it says
        so. It needs a ``random_seed``, and a synthesizer with a method ``fingerprint()``, which
        :class:`ppm.PyMCSynthesizer` does not have.
    progress : bool, default False
        Show one progress bar for all fits on standard error: sweeps of the sampler done, of those
        expected, and what is running.

    Returns
    -------
    Sweep
        One entry for Unweighted, two for every setting, and one for Countweighted.

    Raises
    ------
    TypeError
        If ``synthesizer`` is neither a synthesizer nor a PyMC model.
    ValueError
        If a setting or another argument is out of range, the model has several responses, or its
        fits cannot be kept.
    KeyboardInterrupt
        If interrupted; the processes end first.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 5. The unweighted fit is made once and gives the
    weights of every setting. Only bounds and synthetic data of a fit are kept, not its draws. The
    stream of an entry depends on ``random_seed`` and its own setting, not on what else is in the
    sweep. Chains of all fits share one process for each core; the draws do not depend on where
    they run. A sweep shows bounds also where chains disagree, and marks them: column ``chains
    agree``.
    """
    synthesizer = one_response(synthesizer)
    pairs = _check_configurations(configurations)
    releases = check_count("releases", releases)
    draws = check_count("draws", draws)
    tolerance = check_number("tolerance", tolerance, above=0)
    attempts = check_count("attempts", attempts)
    if count_weights is not None:
        try:
            count_weights = check_weights(count_weights, synthesizer.records)
        except ValueError as error:
            raise ValueError(f"count_{error}") from None
    labels = ("prior",)
    if conditional_labels:
        labels = ("prior", "conditional")
        if "labels" not in inspect.signature(synthesizer.predict).parameters:
            raise ValueError(
                "conditional_labels needs a synthesizer whose predict takes labels, as that of "
                f"ppm.FiniteMixture does; {type(synthesizer).__name__} has none"
            )
    unweighted_thin = check_count("unweighted_thin", unweighted_thin)
    if unweighted_thin > 1 and not hasattr(synthesizer, "thin"):
        raise ValueError(
            "unweighted_thin needs a synthesizer that thins, such as ppm.FiniteMixture; "
            f"{type(synthesizer).__name__} does not"
        )
    root = seed_sequence(random_seed)
    with fit_runner(
        synthesizer, fits=fits, random_seed=random_seed, progress=progress, draws=draws,
        releases=releases, labels=labels, longer=unweighted_thin,
    ) as runner:
        entries = _SweepFits(runner, root, tolerance, attempts).run(pairs, count_weights)
    return Sweep(tuple(entries))


def one_response(model):
    """The synthesizer of a model, as :func:`ppm.mechanism.as_synthesizer`, if it has one response.

    Raises
    ------
    TypeError
        If it is no model.
    ValueError
        If it has several responses.
    """
    synthesizer = as_synthesizer(model)
    responses = getattr(synthesizer, "responses", ())
    if len(responses) > 1:
        raise ValueError(
            "a sweep compares releases of one response; the model has "
            f"{len(responses)}: {', '.join(responses)}"
        )
    return synthesizer


_MECHANISMS = ("Unweighted", "DPweighted", "EMweighted", "Countweighted")
_NOWHERE = (np.nan, np.nan)


class _SweepFits:
    """The fits of one sweep, and which of them wait for which."""

    # attempts that the progress bar expects of a search
    EXPECTED = 4

    def __init__(self, runner, root, tolerance, attempts):
        self.runner, self.root = runner, root
        self.tolerance, self.attempts = tolerance, attempts
        self.progress = runner.progress

    def run(self, pairs, count_weights):
        """All entries, in order."""
        for pair in pairs:
            self.plan(pair, self.EXPECTED, cold=1)
        self.progress.plan("Unweighted", self.runner.sweeps(longer=True))
        if count_weights is not None:
            self.plan("Countweighted", 0, cold=1)
        # what a thread does besides waiting for chains is short
        threads = self.runner.pool.workers
        if not getattr(self.runner.synthesizer, "concurrent_fits", False):
            threads = 0
        with _Tasks(threads, self.runner.pool) as tasks:
            self.unweighted = tasks.submit(self.single, "Unweighted", None)
            if count_weights is not None:
                counted = tasks.submit(self.single, "Countweighted", count_weights)
            by_pair = {pair: tasks.submit(self.pair, pair) for pair in pairs}
            tasks.wait()
        entries = [_entry("Unweighted", _NOWHERE, self.unweighted.result())]
        entries += [entry for pair in pairs for entry in by_pair[pair].result()]
        if count_weights is not None:
            entries.append(_entry("Countweighted", _NOWHERE, counted.result()))
        return entries

    def plan(self, part, warm, cold=0):
        """Tell the progress bar how many fits a part still needs."""
        sweeps = cold * self.runner.sweeps() + warm * self.runner.sweeps(warm=True)
        self.progress.plan(part, sweeps)

    def single(self, mechanism, weights):
        first = weights is None
        if first:
            weights = np.ones(self.runner.synthesizer.records)
        self.plan(mechanism, 0)
        return self.runner.fit(mechanism, weights, _seed(self.root, mechanism), longer=first)

    def pair(self, pair):
        unweighted = self.unweighted.result()
        weights = record_weights(unweighted.largest, scale=pair[0], shift=pair[1])
        self.plan(pair, self.EXPECTED)
        weighted = self.runner.fit(
            entry_label("DPweighted", pair), weights, _seed(self.root, "DPweighted", pair)
        )
        # one stream for all attempts: those on the rungs belong to every setting
        seed = _seed(self.root, "EMweighted")
        tried = itertools.count(1)

        def attempt(weight, start):
            self.plan(pair, max(0, self.EXPECTED - next(tried)))
            weights = np.full(unweighted.weights.size, weight)
            return self.runner.fit(entry_label("EMweighted", pair), weights, seed, start=start)

        # the others start near these, which must therefore not depend on what else is there
        target = weighted.local_bound
        found, history = search_weight(
            target, unweighted, attempt, tolerance=self.tolerance, attempts=self.attempts,
            shared=rungs(target, unweighted.local_bound)[: self.attempts - 1],
        )
        self.plan(pair, 0)
        return _entry("DPweighted", pair, weighted), _entry("EMweighted", pair, found, history)


def _entry(mechanism, pair, fit, history=()):
    return SweepEntry(
        mechanism, *pair, fit.weights, fit.record_bounds, fit.local_bound, fit.draws_used,
        fit.diagnostics, fit.releases["prior"], history, fit.releases.get("conditional"),
        fit.oscillation_bound,
    )


def _seed(root, mechanism, pair=()):
    """Stream of an entry: its own, whatever other entries the sweep has."""
    words = np.array(pair, dtype=np.float64).view(np.uint32).tolist()
    return numbered(root, _MECHANISMS.index(mechanism), *words)


def _off_target(bound, target):
    """Distance of a bound from its target in per cent; a target of 0 is met exactly or not."""
    if bound == target:
        return 0.0
    return 100.0 * (bound / target - 1.0) if target > 0 else np.inf


class _Tasks:
    """Run tasks in threads, in the order they come; with 0 threads at once, in this one."""

    def __init__(self, threads, pool):
        self.threads = ThreadPoolExecutor(threads) if threads else None
        self.pool, self.futures = pool, []

    def submit(self, function, *arguments):
        if self.threads is None:
            future = Future()
            future.set_result(function(*arguments))
        else:
            future = self.threads.submit(function, *arguments)
        self.futures.append(future)
        return future

    def wait(self):
        """Wait for all tasks, or for the first that fails."""
        waiting = self.futures
        while waiting:
            # not for ever, so that an interrupt is seen on every system
            done, waiting = wait(waiting, timeout=0.5, return_when="FIRST_EXCEPTION")
            if any(future.exception() for future in done):
                break

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if self.threads is None:
            return
        if kind is not None or any(f.done() and f.exception() for f in self.futures):
            self.pool.stop()
        self.threads.shutdown(cancel_futures=True)
        if kind is None:
            # what stopped because of another's failure is not what went wrong
            errors = [f.exception() for f in self.futures if not f.cancelled()]
            for failed in sorted(filter(None, errors), key=lambda e: isinstance(e, ChainsStopped)):
                raise failed


def _check_configurations(configurations):
    try:
        pairs = [tuple(pair) for pair in configurations]
    except TypeError:
        pairs = []
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise ValueError(
            "configurations must be a list of pairs (scale, shift), such as [[0.7, 0.0]]; "
            f"got {shown(configurations)}"
        )
    # adding 0 makes -0 and 0 the same setting
    pairs = [
        (check_number("scale", scale, above=0), check_number("shift", shift) + 0.0)
        for scale, shift in pairs
    ]
    labels = [entry_label("", pair).strip() for pair in pairs]
    twice = [label for place, label in enumerate(labels) if label in labels[:place]]
    if twice:
        raise ValueError(
            "configurations must be different pairs, and differ in six digits, which tables and "
            f"figures show; {twice[0]} comes twice"
        )
    return pairs
