"""What a sweep keeps of a fit, and the folder that keeps it for the next time."""

import contextlib
import copy
import dataclasses
import inspect
import sys
import threading
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from ppm._random import streams
from ppm._validation import needed_for
from ppm.diagnostics import BoundDiagnostics, diagnose
from ppm.lipschitz import read_once, weighted
from ppm.studies.engine import WorkersGone, give_up, given, packed
from ppm.studies.kept_folder import KeptFolder
from ppm.studies.origins import digest_of, identity
from ppm.studies.tasks import chosen_engine, given_back
from ppm.synthesizers.chains import ChainPool, ChainsStopped, seconds_between_states, sharing

NOTE = """The files in this folder are CONFIDENTIAL.

Each holds one fit of a synthesizer to confidential records: weights, bounds and
diagnostics of every record, draws of parameters, and more synthetic databases
than were released. No epsilon covers them. Keep the folder where the records
themselves may be kept, and hand nothing out of it.

The files only save time: delete them whenever you like. A file's name is a hash
of the synthesizer's fingerprint and class, of weights, settings and library, and of
the seed where one was given: without one, a new draw needs a new folder. Of what a
class of your own calls or reads outside of itself nothing is known: take a new
folder when that changes.
"""


@dataclass(frozen=True, eq=False)
class FitSummary:
    """What a sweep keeps of a fit: all but its draws and its log-likelihoods.

    Attributes
    ----------
    key : str
        Hash of what the fit was computed from.
    weights : numpy.ndarray, shape (records,)
        Weights α.
    largest : numpy.ndarray, shape (records,)
        Unweighted bounds of the records: the largest \\|log-likelihood\\| over the draws, in nats.
    oscillations : numpy.ndarray, shape (records,)
        Unweighted oscillation of every record's log-likelihood over the draws, in nats.
    draws_used : int
        Number S of draws, all chains together.
    diagnostics : ppm.diagnostics.BoundDiagnostics
        R-hat and effective sample size of the bound's quantity.
    releases : dict of str to numpy.ndarray
        Where a release's labels come from, ``prior`` or ``conditional``, to the synthetic
        databases, shape (releases, records, …).
    end : xarray.DataTree or None
        The last draw of each chain, for another fit to start from.
    """

    key: str
    weights: np.ndarray = field(repr=False)
    largest: np.ndarray = field(repr=False)
    oscillations: np.ndarray = field(repr=False)
    draws_used: int
    diagnostics: BoundDiagnostics
    releases: dict = field(repr=False)
    end: object = field(repr=False)

    @property
    def record_bounds(self):
        """Bounds of the weighted records, in nats."""
        return weighted(self.largest, self.weights)

    @property
    def local_bound(self):
        """Local Lipschitz bound Δ, in nats."""
        return float(self.record_bounds.max())

    @property
    def oscillation_bound(self):
        """Largest oscillation of a weighted record, in nats."""
        return float(weighted(self.oscillations, self.weights).max())


class FitRunner:
    """Run fits of one synthesizer, each one once, and keep a summary of each.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer
        The model.
    draws, releases : int
        Kept draws a chain, and synthetic databases, of every fit.
    labels : tuple of str, default ("prior",)
        Where the labels of releases come from; one set of releases for each.
    store : FitStore, optional
        Where summaries are kept.
    pool : ppm.synthesizers.chains.ChainPool, optional
        Where chains run, if the synthesizer leaves them to
        :func:`ppm.synthesizers.chains.run_chains`.
    progress : FitProgress, optional
        Is told how far the fits are.
    longer : int, default 1
        How many times as many sweeps lie between two kept draws of a fit that is asked for with
        ``longer=True``.
    executor : ppm.studies.engine.GivenExecutor, optional
        Where whole fits run, in place of their chains in a pool.
    seeded : bool, default True
        Whether a kept fit is found by its seed too. One without is found by its place in the
        study, and its seed, which nobody knows, is kept nowhere.

    Raises
    ------
    ValueError
        With a store, if the synthesizer cannot say what it is made from.
    """

    def __init__(
        self,
        synthesizer,
        *,
        draws,
        releases,
        labels=("prior",),
        store=None,
        pool=None,
        progress=None,
        longer=1,
        executor=None,
        seeded=True,
    ):
        self.synthesizer, self.seeded = synthesizer, seeded
        self.warm = warm_copy(synthesizer)
        self.longer = longer_copy(synthesizer, longer)
        self.draws, self.releases, self.labels = draws, releases, tuple(labels)
        self.store, self.pool, self.executor = store, pool, executor
        self.progress = FitProgress(False) if progress is None else progress
        # without a store nothing outlives the runner, whose synthesizer is always the same
        self.identities = {
            id(model): "" if store is None else identity(model)
            for model in (self.synthesizer, self.warm, self.longer)
        }
        self._known, self._lock = {}, threading.Lock()

    def sweeps(self, warm=False, longer=False):
        """Sweeps of a fit, all chains together; draws, where the synthesizer has no warm-up."""
        model = self.warm if warm else self.longer if longer else self.synthesizer
        chain = getattr(model, "warmup", 0) + self.draws * getattr(model, "thin", 1)
        return chain * getattr(model, "chains", 1)

    def fit(self, name, weights, seed, *, start=None, longer=False, censor=None):
        """Summary of one fit: from the store, from earlier in this run, or computed.

        Threads may ask for fits at the same time.

        Parameters
        ----------
        name : str
            What the progress bar calls it.
        weights : numpy.ndarray, shape (records,)
            Weights α, 0 or more.
        seed : numpy.random.SeedSequence
            Source of randomness.
        start : FitSummary, optional
            A fit to start from, with a fifth of the warm-up, if the synthesizer can do so.
        longer : bool, default False
            Whether to make more sweeps for each kept draw; not together with ``start``.
        censor : ppm.Censoring, optional
            Public limits of every record's weighted term. Bounds, oscillations and diagnostics are
            then those of the terms, and the summary's ``weights`` 1, or 0 for a record without one.

        Returns
        -------
        FitSummary
            What is kept of the fit.
        """
        if start is not None and start.end is None:
            start = None
        model = self.longer if longer else self.synthesizer if start is None else self.warm
        key = digest_of(
            {
                "model": (start is not None, self.identities[id(model)]),
                "weights": weights,
                "draws": self.draws,
                "releases": (self.releases, self.labels),
                "seed": seed if self.seeded else seed.spawn_key,
                "start": None if start is None else start.key,
                "censor": censor,
            }
        )
        work = _Fit(
            key, model, weights, self.draws, self.releases, self.labels, seed,
            None if start is None else start.end, censor, self.warm is not self.synthesizer,
        )
        sweeps = self.sweeps(start is not None, longer)
        with self._lock:
            future = self._known.get(key)
            mine = future is None
            if mine:
                future = self._known[key] = Future()
        if mine:
            try:
                future.set_result(self._load_or_run(name, work, sweeps))
            except BaseException as error:
                # whoever waits for the same fit must not wait for ever
                future.set_exception(error)
                raise
        return future.result()

    def _load_or_run(self, name, work, sweeps):
        summary = None if self.store is None else self.store.load(work.key)
        if summary is None:
            with self.progress.running(name, sweeps) as advance:
                summary = self._run(work, advance)
            if self.store is not None:
                self.store.save(summary)
        return summary

    def _run(self, work, advance):
        if self.executor is not None:
            return self._elsewhere(work)
        shared = contextlib.nullcontext() if self.pool is None else sharing(self.pool, advance)
        with shared:
            return _summarise(work)

    def _elsewhere(self, work):
        payload = packed(_summarise, work)
        try:
            future = self.executor.submit(payload)
            while not wait([future], timeout=0.2).done:
                if self.pool is not None and self.pool.stopped:
                    give_up([future])
                    raise ChainsStopped
                if self.executor.gone():
                    give_up([future])
                    raise WorkersGone
            outcome = future.result()
        except ChainsStopped:
            raise
        except (Exception, CancelledError) as error:
            # of the executor itself
            outcome = given_back(error)
        if outcome.failure is not None:
            raise FitFailed(outcome.failure, work.seed)
        return outcome.result


class FitFailed(RuntimeError):
    """A fit failed on an executor.

    Attributes
    ----------
    failure : ppm.studies.engine.Failure
        Why.
    seed : numpy.random.SeedSequence
        The seed of the fit.
    """

    def __init__(self, failure, seed):
        super().__init__(f"a fit failed on the executor:\n{failure.traceback}")
        self.failure, self.seed = failure, seed


@dataclass(frozen=True, eq=False)
class _Fit:
    """One fit, in a form that can be sent to another process."""

    key: str
    model: object
    weights: np.ndarray
    draws: int
    releases: int
    labels: tuple
    seed: np.random.SeedSequence
    start: object
    censor: object
    keep_end: bool


def _summarise(work):
    """Make a fit and return its :class:`FitSummary`."""
    fit_seed, release_seed = streams(work.seed, 2)
    settings = {} if work.start is None else {"initial": work.start}
    if work.censor is not None:
        settings["censor"] = work.censor
    fit = work.model.fit(work.weights, draws=work.draws, random_seed=fit_seed, **settings)
    log_lik = work.model.log_likelihood(fit)
    found = read_once(log_lik, work.weights, censor=work.censor)
    diagnostics = diagnose(fit, found, total_decides=work.censor is not None)
    before = dataclasses.replace(found, weights=None)
    releases = {}
    for labels in work.labels:
        # synthesizers without labels know no such argument
        choice = {} if labels == "prior" else {"labels": labels}
        synthetic = work.model.predict(
            fit, releases=work.releases, random_seed=release_seed, **choice
        )
        releases[labels] = synthetic.values
    return FitSummary(
        work.key, found.weights, before.bounds, before.oscillations, found.draws_used, diagnostics,
        releases, last_draws(fit) if work.keep_end else None,
    )


class FitProgress:
    """One progress bar for many fits, some of them at the same time, on the error stream.

    Parameters
    ----------
    shown : bool
        Whether there is a bar (needs tqdm) at all.
    unit : str, default "sweeps"
        What is counted.
    """

    def __init__(self, shown, unit="sweeps"):
        self._lock = threading.Lock()
        self._planned, self._running, self._done = {}, {}, 0
        self._bar = None
        if shown:
            with needed_for("progress=True"):
                from tqdm import tqdm

            self._bar = tqdm(
                total=0, unit=f" {unit}", file=sys.stderr, smoothing=0.05,
                mininterval=seconds_between_states(),
            )

    def plan(self, part, sweeps):
        """Say how many sweeps a part of the work still needs, beside those of running fits."""
        with self._lock:
            self._planned[part] = sweeps
            self._show()

    @contextlib.contextmanager
    def running(self, name, sweeps):
        """Yield a function that takes the number of sweeps done so far by the fit of this name."""
        fit = object()

        def advance(done):
            with self._lock:
                self._running[fit] = (name, done, sweeps)
                self._show()

        advance(0)
        try:
            yield advance
        finally:
            with self._lock:
                del self._running[fit]
                self._done += sweeps
                self._show()

    def _show(self):
        if self._bar is None:
            return
        running = self._running.values()
        self._bar.total = (
            self._done
            + sum(self._planned.values())
            + sum(max(done, sweeps) for _, done, sweeps in running)
        )
        self._bar.set_description_str(", ".join(name for name, _, _ in running), refresh=False)
        self._bar.update(self._done + sum(done for _, done, _ in running) - self._bar.n)

    def close(self):
        """End the bar."""
        if self._bar is not None:
            self._bar.close()


def longer_copy(synthesizer, factor):
    """The synthesizer with ``factor`` times as many sweeps between two kept draws."""
    if factor == 1:
        return synthesizer
    longer = copy.copy(synthesizer)
    longer.thin = factor * synthesizer.thin
    return longer


@contextlib.contextmanager
def fit_runner(synthesizer, *, fits, random_seed, progress, executor=None, **settings):
    """Yield a :class:`FitRunner` with a pool of processes and a progress bar, and end both.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer
        The model.
    fits : path-like or None
        Folder of a :class:`FitStore`.
    random_seed : object
        What the caller draws from. Where it is None, kept fits are found without a seed.
    progress : bool
        Whether there is a bar.
    executor : concurrent.futures.Executor, optional
        Where the fits run; by default the environment may name one, or a number of processes.
    **settings
        Of :class:`FitRunner`.

    Raises
    ------
    ValueError
        If fits cannot be kept.
    """
    executor = chosen_engine(executor, None, random_seed).executor
    workers = executor if isinstance(executor, int) else None
    store = None if fits is None else FitStore(fits)
    bar = FitProgress(progress, "sweeps" if hasattr(synthesizer, "warmup") else "draws")
    # no process starts before a fit asks for one
    with contextlib.closing(bar), ChainPool(workers) as pool:
        yield FitRunner(
            synthesizer, store=store, pool=pool, progress=bar,
            executor=given(executor) if workers is None and executor is not None else None,
            seeded=random_seed is not None, **settings,
        )


def warm_copy(synthesizer):
    """The synthesizer with a fifth of its warm-up, or itself if it cannot start from a fit."""
    parameters = inspect.signature(synthesizer.fit).parameters
    if "initial" not in parameters or not hasattr(synthesizer, "warmup"):
        return synthesizer
    warm = copy.copy(synthesizer)
    warm.warmup = -(-synthesizer.warmup // 5)
    return warm


def last_draws(fit):
    """The end of every chain of a fit: enough to start another one from."""
    posterior = fit["posterior"].to_dataset().isel(draw=[-1])
    return xr.DataTree.from_dict({"posterior": posterior.copy(deep=True)})


# ---- the folder -------------------------------------------------------------------------------


class FitStore(KeptFolder):
    """A folder of fit summaries: see :class:`ppm.studies.kept_folder.KeptFolder`.

    Parameters
    ----------
    folder : path-like
        The folder.
    """

    def __init__(self, folder):
        super().__init__(folder, name="fits", note=NOTE, what="fit")

    def load(self, key):
        """The summary with this key, or None if there is none that can be read."""
        return self.read(key, _summary)

    def save(self, summary):
        """Keep a summary."""
        self.write(summary.key, *_parts(summary))


def _parts(summary):
    head = {
        "draws_used": summary.draws_used,
        "diagnostics": dataclasses.asdict(summary.diagnostics),
        "end": None,
    }
    arrays = {
        "weights": summary.weights,
        "largest": summary.largest,
        "oscillations": summary.oscillations,
    }
    arrays |= {f"releases {labels}": found for labels, found in summary.releases.items()}
    if summary.end is not None:
        posterior = summary.end["posterior"]
        head["end"] = {str(name): list(posterior[name].dims) for name in posterior.data_vars}
        arrays |= {f"end {name}": posterior[name].values for name in posterior.data_vars}
    return head, arrays


def _summary(head, arrays):
    found = head["diagnostics"]
    found |= {name: tuple(found[name]) for name in ("by_chain", "spread")}
    end = None
    if head["end"] is not None:
        variables = {name: (dims, arrays[f"end {name}"]) for name, dims in head["end"].items()}
        end = xr.DataTree.from_dict({"posterior": xr.Dataset(variables)})
    return FitSummary(
        key=head["key"],
        weights=arrays["weights"],
        largest=arrays["largest"],
        oscillations=arrays["oscillations"],
        draws_used=head["draws_used"],
        diagnostics=BoundDiagnostics(**found),
        releases={
            name.removeprefix("releases "): array
            for name, array in arrays.items()
            if name.startswith("releases ")
        },
        end=end,
    )
