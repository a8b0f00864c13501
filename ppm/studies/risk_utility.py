"""Risk and utility over a sequence of (scale, shift) settings (the paper's section 5)."""

import inspect
import itertools
from concurrent.futures import Future, ThreadPoolExecutor, wait

import numpy as np

from ppm._random import numbered, seed_sequence
from ppm._validation import check_count, check_number, check_weights, shown
from ppm.mechanism import entry_label
from ppm.studies.kept_fits import FitFailed, fit_runner
from ppm.studies.scalar_search import rungs, search_weight
from ppm.studies.sweep_results import Sweep, SweepEntry
from ppm.studies.tasks import failure_table
from ppm.synthesizers.accepted import as_synthesizer
from ppm.synthesizers.chains import ChainsStopped
from ppm.weights import record_weights


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
    executor=None,
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
        so. Without a ``random_seed`` the seeds are fresh and kept nowhere: a fit is then found by
        all the rest, and the same folder gives the same releases until it is emptied. It needs a
        synthesizer with a method ``fingerprint()``, which :class:`ppm.PyMCSynthesizer` does not
        have.
    executor : concurrent.futures.Executor, optional
        Where the fits run, each as one task. The numbers do
        not depend on it. A setting one of whose fits fails there is a row of ``failures``.
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

    Examples
    --------
    >>> import ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> found = ppm.studies.sweep(model, [(0.7, 0.0)], releases=2, draws=200, random_seed=1)
    >>> found.table()["local bound"].round(2)
    mechanism   scale  shift
    Unweighted  NaN    NaN      17.38
    DPweighted  0.7    0.0       3.70
    EMweighted  0.7    0.0       3.62
    Name: local bound, dtype: float64
    """
    synthesizer = one_response(synthesizer)
    pairs = check_configurations(configurations)
    releases = check_count("releases", releases)
    draws = check_count("draws", draws)
    tolerance = check_number("tolerance", tolerance, above=0)
    attempts = check_count("attempts", attempts)
    if count_weights is not None:
        try:
            count_weights = check_weights(
                count_weights, synthesizer.records, at_most_1="Countweighted only lowers weights"
            )
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
        releases=releases, labels=labels, longer=unweighted_thin, executor=executor,
    ) as runner:
        fitted = _SweepFits(runner, root, tolerance, attempts)
        entries = fitted.run(pairs, count_weights)
    # in the order of the settings, whichever failed first
    failures = sorted(
        fitted.failures,
        key=lambda row: [*pairs, _NOWHERE].index((row[0]["scale"], row[0]["shift"])),
    )
    return Sweep(tuple(entries), failure_table(_PLACE, failures))


def one_response(model):
    """The synthesizer of a model, if it has one response.

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
_PLACE = ("mechanism", "scale", "shift")
# threads that wait for fits on an executor, which decides how many of them run
_WAITING = 64


class _SweepFits:
    """The fits of one sweep, and which of them wait for which."""

    # attempts that the progress bar expects of a search
    EXPECTED = 4

    def __init__(self, runner, root, tolerance, attempts):
        self.runner, self.root = runner, root
        self.tolerance, self.attempts = tolerance, attempts
        self.progress = runner.progress
        self.failures = []

    def run(self, pairs, count_weights):
        """All entries, in order."""
        for pair in pairs:
            self.plan(pair, self.EXPECTED, cold=1)
        self.progress.plan("Unweighted", self.runner.sweeps(longer=True))
        if count_weights is not None:
            self.plan("Countweighted", 0, cold=1)
        # what a thread does besides waiting for chains is short
        threads = self.runner.pool.workers
        if self.runner.executor is not None:
            threads = min(len(pairs) + 2, _WAITING)
        elif not getattr(self.runner.synthesizer, "concurrent_fits", False):
            threads = 0
        with _Tasks(threads, self.runner.pool) as tasks:
            self.unweighted = tasks.submit(self.single, "Unweighted", None)
            if count_weights is not None:
                counted = tasks.submit(
                    self.or_a_failure, ("Countweighted", *_NOWHERE), self.counted, count_weights
                )
            by_pair = {
                pair: tasks.submit(self.or_a_failure, ("setting", *pair), self.pair, pair)
                for pair in pairs
            }
            tasks.wait()
        entries = [_entry("Unweighted", _NOWHERE, self.unweighted.result())]
        entries += [entry for pair in pairs for entry in by_pair[pair].result()]
        if count_weights is not None:
            entries += counted.result()
        return entries

    def or_a_failure(self, place, function, *arguments):
        """Entries, or none where a fit failed on the executor."""
        try:
            return function(*arguments)
        except FitFailed as error:
            place = dict(zip(_PLACE, place, strict=True))
            self.failures.append((place, error.seed, error.failure))
            return ()

    def first(self):
        """The unweighted fit, without which there is no sweep."""
        try:
            return self.unweighted.result()
        except FitFailed:
            # it is told where it failed
            raise ChainsStopped from None

    def counted(self, weights):
        return (_entry("Countweighted", _NOWHERE, self.single("Countweighted", weights)),)

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
        unweighted = self.first()
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


def check_configurations(configurations):
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
