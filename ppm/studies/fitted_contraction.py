"""The Monte Carlo study of section 4 for any synthesizer: fits, where there is no closed form."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ppm._random import numbered, seed_sequence, streams
from ppm._validation import check_count, check_number, shown
from ppm.mechanism import bound_fit, refit
from ppm.studies.contraction_study import MECHANISMS, ContractionStudy, check_sizes
from ppm.studies.tasks import chosen_engine, failures_of, run_tasks
from ppm.synthesizers.accepted import as_synthesizer
from ppm.weights import record_weights

_OF_A_FIT = (
    "local_bound", "records_removed", "r_hat", "r_hat_log_likelihood", "effective_draws",
    "chains_agree",
)


def contraction_by_fits(
    simulate,
    synthesizer,
    sizes,
    *,
    replicates=100,
    truncate_at=3.5,
    scale=1.0,
    shift=0.0,
    draws=1000,
    random_seed=None,
    executor=None,
    store=None,
    progress=False,
):
    """Simulate databases, fit any synthesizer to each, and compute the local bounds.

    Unweighted (all weights 1), Weighted (c, g) and Weighted-M (the same, truncated at M) are fitted
    to the same databases: three fits for each of them, spread over an engine.

    Parameters
    ----------
    simulate : callable
        ``simulate(n, random_seed)`` returns one database of n records, in whatever form
        ``synthesizer`` takes. The seed is a SeedSequence.
    synthesizer : callable
        From such a database to a :class:`ppm.Synthesizer` or a PyMC model. A class that takes the
        data alone will do, such as :class:`ppm.GammaPoisson`.
    sizes : sequence of int
        Sample sizes n, increasing, each 2 or more.
    replicates : int, default 100
        Databases R of each size, 2 or more.
    truncate_at : float, default 3.5
        The paper's M, above 0, in nats.
    scale, shift : float, default 1 and 0
        The paper's c, above 0, and g, of Weighted and Weighted-M.
    draws : int, default 1000
        Kept draws a chain of each fit, 2 or more.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness. Every database has a stream of its own, and is the same whichever
        other sizes, replicates or workers there are.
    executor : concurrent.futures.Executor, optional
        Where the databases are worked on: a Dask ``client.get_executor()``, one of Parsl or of
        executorlib, a pool of processes. By default processes are spawned, one for each core, with
        one thread each.
    store : path-like, optional
        Folder that keeps every database's bounds as soon as they are there. A study that was
        interrupted goes on where it stopped, and one with more replicates or sizes computes only
        what is new. It needs a ``random_seed``. A file is found by a hash of the seed, the
        settings, the code of both functions with what it names and imports, and the library. Of
        files they read, and of what is set at run time, nothing is known: use a new folder then.
    progress : bool, default False
        Whether to show a progress bar on the error stream: databases done.

    Returns
    -------
    ContractionStudy
        Bounds and numbers of removed records, ``r_hat``, ``r_hat_log_likelihood``,
        ``effective_draws`` (NaN where draws are independent) and ``chains_agree`` (1 or 0) of every
        fit. ``failures`` has a row for every database that could not be fitted.

    Raises
    ------
    ValueError
        If an argument is out of range, ``simulate`` returns another number of records than it was
        asked for, which is tried on the first database, or a function cannot be sent to other
        processes or told from another one.
    TypeError
        If ``synthesizer`` makes no model of the first database.
    RuntimeError
        If no database at all could be fitted.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 4. Bounds are shown also where chains disagree, and
    marked: ``summary`` counts them.

    To run a failure again, make its seed from the row, with ``seed = SeedSequence(row.entropy,
    spawn_key=row.spawn_key)``, and its database with ``simulate(row["size"], seed.spawn(4)[0])``;
    the other three streams are those of the fits. A traceback names files, functions and lines, and
    leaves out all messages, since those may repeat a record.

    What a worker writes into its log, and what an engine spills to disk, is the engine's affair: on
    confidential data start the workers under ``umask 077``.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> def simulate(n, random_seed):
    ...     return np.random.default_rng(random_seed).poisson(100, n)
    >>> study = ppm.studies.contraction_by_fits(
    ...     simulate, ppm.GammaPoisson, [50], replicates=4, draws=200, random_seed=1)
    >>> study.summary().loc["Weighted-M", ["median", "largest"]].round(2)
          median  largest
    size
    50       3.4     3.51
    """
    for name, value in (("simulate", simulate), ("synthesizer", synthesizer)):
        if not callable(value):
            raise ValueError(f"{name} must be a function; got a {type(value).__name__}")
    sizes = check_sizes(sizes)
    replicates = check_count("replicates", replicates, at_least=2)
    draws = check_count("draws", draws, at_least=2)
    truncate_at = check_number("truncate_at", truncate_at, above=0)
    scale, shift = check_number("scale", scale, above=0), check_number("shift", shift)
    engine = chosen_engine(executor, store, random_seed)
    entropy = seed_sequence(random_seed)
    tasks = [
        _Database(
            simulate, synthesizer, n, replicate, truncate_at, scale, shift, draws,
            numbered(entropy, n, replicate),
        )
        for n in sizes
        for replicate in range(replicates)
    ]
    _check_a_database(tasks[0])
    outcomes = run_tasks(_one_database, tasks, engine, progress=progress)
    values = np.full((len(_OF_A_FIT), len(MECHANISMS), len(tasks)), np.nan)
    used = 0
    for column, outcome in enumerate(outcomes):
        if outcome.failure is None:
            values[:, :, column] = outcome.result["values"]
            used = int(outcome.result["draws"])
    values = values.reshape(*values.shape[:2], len(sizes), replicates)
    dims = ("mechanism", "size", "replicate")
    dataset = xr.Dataset(
        {name: (dims, block) for name, block in zip(_OF_A_FIT, values, strict=True)},
        {"mechanism": list(MECHANISMS), "size": list(sizes), "replicate": np.arange(replicates)},
    )
    dataset["local_bound"].attrs["units"] = "nats"
    return ContractionStudy(
        dataset, truncate_at=truncate_at, mean=None, draws=used,
        failures=failures_of(tasks, outcomes),
    )


@dataclass(frozen=True, eq=False)
class _Database:
    """One simulated database, in a form that can be sent to another process."""

    simulate: object
    synthesizer: object
    n: int
    replicate: int
    truncate_at: float
    scale: float
    shift: float
    draws: int
    seed: np.random.SeedSequence

    @property
    def place(self):
        return {"size": self.n, "replicate": self.replicate}


def _as_asked(made, n):
    """What ``synthesizer`` made of a database, if it is a model of as many records as asked for."""
    model = as_synthesizer(made)
    if model.records != n:
        raise ValueError(
            f"simulate returned {shown(model.records)} records where {n} were asked for"
        )
    return model


def _check_a_database(task):
    """Make a database here and count its records: of what a task says, no message is kept."""
    try:
        made = task.synthesizer(task.simulate(task.n, streams(task.seed, 1)[0]))
    except Exception as error:
        if isinstance(getattr(error, "obj", None), np.random.SeedSequence):
            raise ValueError(
                "simulate is given a SeedSequence, which draws nothing: begin with "
                "rng = np.random.default_rng(random_seed)"
            ) from None
        # perhaps of this database alone, or of this process: its own task says it
        return
    _as_asked(made, task.n)


def _one_database(task):
    """What is kept of the three fits: ``values``, shape (quantities, mechanisms), and ``draws``."""
    data, *seeds = streams(task.seed, 1 + len(MECHANISMS))
    model = _as_asked(task.synthesizer(task.simulate(task.n, data)), task.n)
    fit = model.fit(draws=task.draws, random_seed=seeds[0])
    found = bound_fit(model, fit, np.ones(model.records), allow_disagreement=True)
    bounds, columns = found.record_bounds, [_of_a_fit(found)]
    for seed, truncate_at in zip(seeds[1:], (None, task.truncate_at), strict=True):
        weights = record_weights(
            bounds, scale=task.scale, shift=task.shift, truncate_at=truncate_at
        )
        found = refit(
            model, weights, draws=task.draws, random_seed=seed, allow_disagreement=True
        )
        columns.append(_of_a_fit(found))
    return {"values": np.array(columns, dtype=np.float64).T, "draws": found.draws_used}


def _of_a_fit(found):
    """The quantities that :data:`_OF_A_FIT` names."""
    of_chains = found.diagnostics
    return [
        found.local_bound,
        np.sum(found.weights == 0),
        *(
            [np.nan] * 3
            if of_chains is None
            else [of_chains.r_hat, of_chains.r_hat_log_likelihood, of_chains.effective_draws]
        ),
        found.chains_agree,
    ]
