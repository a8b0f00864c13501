"""Divide and combine: the strict mechanism on disjoint shards of a table, put together again."""

import warnings
from dataclasses import dataclass, field, replace

import numpy as np

from ppm import pdp
from ppm._random import generator, streams
from ppm._validation import check_count, check_weights
from ppm.audits.censored_counts import check_rows
from ppm.censoring import Censoring, check_censor
from ppm.diagnostics import ChainsDisagreeError, must_agree
from ppm.studies.kept_fits import FitRunner
from ppm.studies.risk_utility import one_response
from ppm.studies.tasks import chosen_engine, run_tasks


@dataclass(frozen=True, eq=False)
class ShardedRelease:
    """Releases of a whole table, each shard of it from a fit of its own.

    Releases and ε are withheld with a :class:`ppm.ChainsDisagreeError` where the chains of a shard
    disagree: its draw is then not one of its posterior, and no ε is known. **Whether a release
    appears depends on the records, and no ε covers that.** Chains that disagree are no reason to
    draw another assignment either. :meth:`despite_disagreement` shows what there is.

    Attributes
    ----------
    synthetic : numpy.ndarray, shape (releases, records)
        Synthetic databases in the order of the table, unless withheld. The rows of one shard and
        release come from one draw of the parameters.
    shards : tuple of numpy.ndarray
        Rows of each shard. They may be published where no ``random_seed`` was given.
    censor : ppm.Censoring
        The limits; their width is ε of one release of the whole table.
    oscillations : numpy.ndarray, shape (shards,)
        Largest oscillation of a record's term over the draws of its shard, in nats: confidential.
    diagnostics : tuple of ppm.diagnostics.BoundDiagnostics or None
        Of the terms of each shard's fit: confidential. None where they were not checked: one chain
        of a synthesizer with ``independent_draws``.
    draws_used : int
        Number S of draws of each fit, all chains together.
    agree : bool
        Whether nothing is held against the chains of any shard: confidential.
    shown_anyway : bool
        Whether releases and ε are shown although chains disagree.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> counts = np.array([3, 5, 4, 6, 2, 7, 4, 9])
    >>> found = ppm.studies.sharded_release(
    ...     lambda rows: ppm.GammaPoisson(counts[rows], shape=2, rate=0.4), 8, 2,
    ...     ppm.Censoring(-3, -2), draws=100, random_seed=1)
    >>> found.synthetic.shape, found.epsilon(), found.epsilon(releases=3)
    ((1, 8), 1.0, 3.0)
    """

    synthetic_found: np.ndarray = field(repr=False)
    shards: tuple = field(repr=False)
    censor: Censoring
    oscillations: np.ndarray = field(repr=False)
    diagnostics: tuple = field(repr=False)
    draws_used: int
    shown_anyway: bool = False

    @property
    def synthetic(self):
        """Synthetic databases in the order of the table, unless the chains of a shard disagree."""
        self._withhold()
        if not self.agree:
            warnings.warn(
                "released although chains disagree: the epsilon of these databases is not "
                "known", stacklevel=2,
            )
        return self.synthetic_found

    @property
    def agree(self):
        """Whether nothing is held against the chains of any shard: confidential."""
        return all(found is None or found.agree for found in self.diagnostics)

    def despite_disagreement(self):
        """The same releases, shown although chains disagree: for study."""
        return replace(self, shown_anyway=True)

    def _withhold(self):
        if self.agree or self.shown_anyway:
            return
        first, *others = [
            f"shard {number}: {'; '.join(found.faults)}"
            for number, found in enumerate(self.diagnostics, start=1)
            if found is not None and not found.agree
        ]
        more = f", and {len(others)} more" if others else ""
        raise ChainsDisagreeError(
            f"the release is withheld because of the chains behind it: {first}{more}; table() has "
            "the diagnostics of all shards; despite_disagreement() or "
            "sharded_release(allow_disagreement=True) shows the release for study"
        )

    def epsilon(self, releases=None):
        """ε of m releases of the whole table, in nats: mW, as for one shard alone.

        Parameters
        ----------
        releases : int, optional
            Number m of releases, 1 or more; by default all that were drawn.

        Returns
        -------
        float
            ε in nats; :func:`ppm.pdp.bounded_range_epsilon` says what a δ takes off it.

        Raises
        ------
        ValueError
            If ``releases`` is not a whole number of at least 1.
        ChainsDisagreeError
            If the chains of a shard disagree.
        """
        self._withhold()
        if releases is None:
            releases = len(self.synthetic_found)
        return pdp.bounded_range_epsilon(self.censor.width, releases)

    def table(self):
        """Size and diagnostics of each shard's fit: confidential but for the size.

        Returns
        -------
        pandas.DataFrame
            One row a shard: ``records``, the largest ``oscillation`` of a term, R-hat and effective
            draws of the sum of the terms, NaN where they were not checked, and whether the chains
            ``agree``.
        """
        import pandas as pd

        rows = [
            {
                "records": rows.size,
                "oscillation": oscillation,
                "R-hat, sum of terms": seen.r_hat_log_likelihood if seen else np.nan,
                "effective draws": seen.effective_draws_log_likelihood if seen else np.nan,
                "chains agree": seen is None or seen.agree,
            }
            for rows, oscillation, seen in zip(
                self.shards, self.oscillations, self.diagnostics, strict=True
            )
        ]
        return pd.DataFrame(rows, index=pd.RangeIndex(1, len(rows) + 1, name="shard"))


def random_shards(records, shards, *, random_seed=None):
    """Assign rows to shards at random, without a look at what is in them.

    Parameters
    ----------
    records : int
        Number of records n.
    shards : int
        Number K of shards, from 1 to n; their sizes differ by at most one record.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness. An assignment without a seed may be published. One from a seed tells
        the seed to whoever tries them all: publish it only if nothing else was drawn from that
        seed. It must not be drawn again because of what came out.

    Returns
    -------
    list of numpy.ndarray
        Rows of each shard, increasing.

    Raises
    ------
    ValueError
        If there are more shards than records, or a number is out of range.

    Examples
    --------
    >>> import ppm
    >>> [rows.tolist() for rows in ppm.studies.random_shards(7, 2, random_seed=1)]
    [[0, 1, 4, 5], [2, 3, 6]]
    """
    records, shards = check_count("records", records), check_count("shards", shards)
    if shards > records:
        raise ValueError(f"shards must be at most the {records} records; got {shards}")
    order = generator(random_seed).permutation(records)
    return [np.sort(rows) for rows in np.array_split(order, shards)]


def sharded_release(
    make,
    records,
    shards,
    censor,
    *,
    weights=None,
    releases=1,
    draws=1000,
    random_seed=None,
    allow_disagreement=False,
    executor=None,
):
    r"""Fit disjoint shards of a table under limits, each by itself, and release the whole.

    One release of the whole costs ε = W, as one shard's does: a record is in one shard, so that it
    changes one of the independent draws, and that by a factor between :math:`e^{-W}` and
    :math:`e^W`. Every other condition of :class:`ppm.Censoring` stands as well.

    Parameters
    ----------
    make : callable
        Called with the rows of a shard, an increasing array of whole numbers; returns the
        synthesizer or PyMC model that holds their records. It must be the same model and prior for
        every shard, or differ by what is public.
    records : int
        Number of records n of the table.
    shards : int or sequence of array_like of int
        Number K of shards, to which rows are assigned at random, or the rows of each shard. **The
        assignment must not depend on the records' values**; it may on public columns. Nor may it
        share its chance with the draws: rows that were assigned with a seed need another one than
        ``random_seed``.
    censor : ppm.Censoring
        Public limits of every record's weighted term; the same ones for all shards.
    weights : array_like, shape (records,), optional
        Weights α, 0 or more, inside the limits, each a public number or a function of its own
        record; all 1 by default.
    releases : int, default 1
        Synthetic databases m of the whole table, 1 or more.
    draws : int, default 1000
        Kept draws a chain of each fit, 1 or more.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness, also of the assignment to a number of shards: **for study only**. A
        seed can be found again from such an assignment, and with the seed the draws, so neither
        may be published. For a release of real records leave it out: the assignment then has
        entropy of its own. The draws of a shard do not depend on where it is fitted.
    allow_disagreement : bool, default False
        Show releases and ε even where the chains of a shard disagree.
    executor : concurrent.futures.Executor, optional
        Where the shards are fitted, one task each: see :ref:`studies-on-an-engine`. By default
        here, one after the other. Workers see records: they are part of the building.

    Returns
    -------
    ShardedRelease
        The releases, withheld where the chains of a shard disagree, and what is confidential about
        the fits.

    Raises
    ------
    TypeError
        If ``make`` is no function, or returns no synthesizer, or one whose ``fit`` takes no
        ``censor``.
    RuntimeError
        If a shard fails: there is no release without it. It says where, in names and numbers of
        lines, and repeats no message, which might hold a record. Shards that have not begun do not
        begin.
    ValueError
        If ``censor`` is none, shards overlap or leave a row out, ``make`` returns a model of
        another number of records, or an argument is out of range.

    Notes
    -----
    Not in Savitsky, Williams and Hu (2022). Each shard's posterior is as wide as n/K records make
    it, and has a whole prior to itself. ε is that of exact draws; whether a release appears
    or is withheld depends on the records, and no ε covers it.
    :func:`ppm.audits.censored_shards` computes the loss exactly where a closed form allows it.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> counts = np.random.default_rng(1).poisson(5, 400)
    >>> found = ppm.studies.sharded_release(
    ...     lambda rows: ppm.GammaPoisson(counts[rows], shape=2, rate=0.4), 400, 4,
    ...     ppm.Censoring(-3, -2), weights=np.full(400, 0.5), releases=2, random_seed=1)
    >>> found.epsilon(), [rows.size for rows in found.shards]
    (2.0, [100, 100, 100, 100])
    """
    if not callable(make):
        raise TypeError(
            "make must be a function from the rows of a shard to its synthesizer; got "
            f"{type(make).__name__}"
        )
    if not isinstance(censor, Censoring):
        # fits elsewhere do without limits where there are none: a release with an epsilon cannot
        raise ValueError(f"censor must be a ppm.Censoring; got {type(censor).__name__}")
    records = check_count("records", records)
    releases = check_count("releases", releases)
    draws = check_count("draws", draws)
    weights = np.ones(records) if weights is None else check_weights(weights, records)
    assigned, *seeds = streams(random_seed, 1 + _number(shards))
    if isinstance(shards, (int, np.integer)):
        # published beside the draws, it must say nothing of what they are made from
        own = None if random_seed is None else assigned
        shards = random_shards(records, shards, random_seed=own)
    shards = check_partition(shards, records)
    engine = chosen_engine(executor, None, random_seed)
    tasks = []
    for number, (rows, seed) in enumerate(zip(shards, seeds, strict=True), start=1):
        synthesizer = one_response(make(rows))
        if synthesizer.records != rows.size:
            raise ValueError(
                f"make must return a model of the rows it is given: {rows.size} records; got one "
                f"of {synthesizer.records}"
            )
        check_censor(synthesizer, censor)
        tasks.append(
            _Shard(number, synthesizer, weights[rows], censor, draws, releases, seed)
        )
    fits = [done.result for done in run_tasks(_fit_shard, tasks, engine, here=True, whole=True)]
    synthetic = np.empty(
        (releases, records), dtype=np.result_type(*(fit["synthetic"] for fit in fits))
    )
    for rows, fit in zip(shards, fits, strict=True):
        synthetic[:, rows] = fit["synthetic"]
    return ShardedRelease(
        synthetic,
        tuple(shards),
        censor,
        np.array([fit["oscillation"].item() for fit in fits]),
        tuple(fit["diagnostics"].item() for fit in fits),
        fits[0]["draws_used"].item(),
        bool(allow_disagreement),
    )


@dataclass(frozen=True, eq=False)
class _Shard:
    """One shard, in a form that can be sent to another process and shows no record."""

    number: int
    synthesizer: object = field(repr=False)
    weights: np.ndarray = field(repr=False)
    censor: Censoring = field(repr=False)
    draws: int
    releases: int
    seed: np.random.SeedSequence = field(repr=False)

    @property
    def place(self):
        return {"shard": self.number}


def _fit_shard(task):
    """Releases of one shard, and what its fit looked like."""
    runner = FitRunner(task.synthesizer, draws=task.draws, releases=task.releases)
    found = runner.fit("shard", task.weights, task.seed, censor=task.censor)
    checked = must_agree(task.synthesizer, len(found.diagnostics.by_chain))
    return {
        "synthetic": found.releases["prior"],
        "oscillation": found.oscillation_bound,
        # as it is: nothing here is kept in a store
        "diagnostics": found.diagnostics if checked else None,
        "draws_used": found.draws_used,
    }


def _number(shards):
    if isinstance(shards, (int, np.integer)) or not hasattr(shards, "__len__"):
        return check_count("shards", shards)
    return len(shards)


def check_partition(shards, records):
    """Return the rows of each shard, if every row is in one of them and in no other.

    Raises
    ------
    ValueError
        If not.
    """
    shards = check_rows(shards, records)
    times = np.bincount(np.concatenate(shards), minlength=records)
    if times.max() > 1:
        raise ValueError(
            f"shards must be disjoint: row {int(times.argmax())} is in {int(times.max())} of them, "
            "and its record would be paid for as often"
        )
    if times.min() == 0:
        raise ValueError(f"shards must hold every row: row {int(times.argmin())} is in none")
    return shards
