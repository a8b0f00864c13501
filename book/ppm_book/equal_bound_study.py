"""DPweighted against EMweighted at equal local bounds, and why the one or the other wins."""

import textwrap
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from ppm._random import generator, numbered, seed_sequence, streams
from ppm._validation import check_count, check_number, shown
from ppm.diagnostics import R_HAT_LIMIT
from ppm.mechanism import entry_label, refit
from ppm.studies.risk_utility import check_configurations
from ppm.studies.scalar_search import match_local_bound
from ppm.studies.tasks import chosen_engine, failures_of, no_failures, run_combinations
from ppm.synthesizers.mixture.model import FiniteMixture
from ppm.utility import STATISTICS, resample
from ppm.weights import record_weights
from ppm_book.open_settings import TRANSFORMATIONS, income_of, transformed_income
from ppm_book.survey.design import predictor_matrix

#: the mechanisms compared, and two controls: see :func:`equal_bounds`
MECHANISMS = ("Unweighted", "DPweighted", "EMweighted", "Shuffled", "Trimmed")
COMPARED = {
    name: STATISTICS[name] for name in ("mean", "10th percentile", "median", "90th percentile")
}
SHORT = dict(zip(TRANSFORMATIONS, ("log", "asinh", "shifted log"), strict=True))
#: share of the records that "Trimmed" leaves out
TRIMMED = 0.01
# a comparison counts where it is larger than so many standard errors, as in the ledger
_SURE = 2.0
_OF_A_FIT = ("local_bound", "error", "r_hat", "r_hat_log_likelihood", "average_weight")
# what the study keeps of each, in the order in which it is measured
_BLOCKS = ("numbers", "misfit", "off", "off_error", "average_off")
# standard error of the median of m normal values, over that of their average
_OF_A_MEDIAN = np.sqrt(np.pi / 2.0)
_QUARTILES_APART = 1.349


@dataclass(frozen=True, eq=False)
class EqualBoundStudy:
    """Utility of DPweighted and EMweighted at equal local bounds, by K and transformation.

    Attributes
    ----------
    dataset : xarray.Dataset
        Dimensions combination (with ``components`` and ``transformation``), repeat, setting and
        mechanism. ``local_bound``: Δ in nats; ``error``: its Monte Carlo standard error; ``r_hat``
        and ``r_hat_log_likelihood``: R-hat of what it is the maximum of, and of the weighted
        log-likelihood; ``average_weight``; ``misfit``: the largest distance between the
        distribution functions of data and release, in per cent, averaged over releases. With
        dimension statistic: ``off``: by how much a typical release (the median over releases) is
        above the data, in per cent of the data's; ``off_error``: its standard error;
        ``average_off``: the same for the average over releases. ``spread`` (statistic): standard
        deviation of the data's re-samples, in per cent.
    releases : int
        Synthetic databases behind each of these.
    draws : int
        Posterior draws S behind each bound, all chains together.
    failures : pandas.DataFrame
        One row for each combination and repeat that failed on an executor, with its seed and its
        traceback; its numbers are NaN, and averages are over the other repeats.

    Examples
    --------
    >>> from ppm_book import equal_bound_study, survey
    >>> data = survey.simulate(60, random_seed=1)
    >>> found = equal_bound_study.equal_bounds(
    ...     data, [(1, "logarithm, floored")], [(0.5, -0.3)], repeats=1, warmup=10, draws=20,
    ...     releases=4, attempts=2, random_seed=1, parallel=False)
    >>> found.labels, found.draws
    (('K = 1, log',), 40)
    """

    dataset: xr.Dataset
    releases: int
    draws: int
    failures: object = field(default_factory=no_failures, repr=False)

    @property
    def labels(self):
        """Name of every combination, such as ``K = 1, log``."""
        pairs = zip(
            self.dataset["components"].values, self.dataset["transformation"].values, strict=True
        )
        return tuple(f"K = {k}, {SHORT[name]}" for k, name in pairs)

    def table(self):
        """Bounds, diagnostics and utility of every mechanism, averaged over the repeats.

        Returns
        -------
        pandas.DataFrame
            One row a combination, setting and mechanism. Bounds in nats, the rest in per cent of
            the data's; R-hat is the largest of the repeats.
        """
        found = self.dataset
        mean = found.mean("repeat")
        columns = {
            "average weight": mean["average_weight"],
            "local bound": mean["local_bound"],
            **{
                f"{name} (%)": mean["off"].sel(statistic=name, drop=True)
                for name in found["statistic"].values
            },
            "misfit (%)": mean["misfit"],
            "largest R-hat": found["r_hat"].max("repeat", skipna=False),
            "largest R-hat, log-likelihood": found["r_hat_log_likelihood"].max(
                "repeat", skipna=False
            ),
        }
        return self._table(columns, ["combination", "setting", "mechanism"])

    def _table(self, columns, dims):
        table = xr.Dataset(columns).assign_coords(combination=list(self.labels))
        return table.drop_vars(["components", "transformation"]).to_dataframe(dim_order=dims)

    def margins(self, statistic):
        """By how much DPweighted is closer to the data than EMweighted.

        Parameters
        ----------
        statistic : str
            One of those of the study.

        Returns
        -------
        xarray.Dataset
            ``margin``: in points of per cent, above 0 where DPweighted is closer; ``error``: its
            standard error. Dimensions combination, repeat and setting.
        """
        found = self.dataset.sel(statistic=statistic)
        away = np.abs(found["off"])
        error = found["off_error"]
        dp, em = ({"mechanism": name, "drop": True} for name in ("DPweighted", "EMweighted"))
        return xr.Dataset(
            {
                "margin": away.sel(**em) - away.sel(**dp),
                "error": np.hypot(error.sel(**em), error.sel(**dp)),
            }
        )

    def comparisons(self, statistics=("90th percentile", "mean")):
        """How often DPweighted or EMweighted is closer to the data, over the repeats.

        Parameters
        ----------
        statistics : sequence of str, default ("90th percentile", "mean")
            Some of those of the study.

        Returns
        -------
        pandas.DataFrame
            One row a statistic, combination and setting: distance from the data of Unweighted,
            DPweighted and EMweighted, averaged over repeats, in per cent, and in how many repeats
            ``DPweighted`` or ``EMweighted`` was ``closer`` by more than two standard errors.
        """
        statistics = list(statistics)
        margins = self.margins(statistics)
        sure = _SURE * margins["error"]
        off = self.dataset["off"].sel(statistic=statistics).mean("repeat")
        columns = {
            **{f"{name} (%)": off.sel(mechanism=name, drop=True) for name in MECHANISMS[:3]},
            "DPweighted closer": (margins["margin"] > sure).sum("repeat"),
            "EMweighted closer": (margins["margin"] < -sure).sum("repeat"),
        }
        return self._table(columns, ["statistic", "combination", "setting"])

    def verdict(self, statistic="90th percentile"):
        """Sentences on where DPweighted beats EMweighted, and on what goes with it.

        Parameters
        ----------
        statistic : str, default "90th percentile"
            One of those of the study.

        Returns
        -------
        str
            In lines of at most 66 characters.
        """
        margins = self.margins(statistic)
        sure = _SURE * margins["error"]
        repeats = self.dataset.sizes["repeat"]
        each = margins["margin"][0].size
        lines = [f"{statistic}: setting by setting and seed by seed ({each} comparisons each)."]
        for i, label in enumerate(self.labels):
            margin, limit = margins["margin"][i], sure[i]
            dp, em = int((margin > limit).sum()), int((margin < -limit).sum())
            plain = self.dataset["off"].sel(statistic=statistic, mechanism="Unweighted")
            plain = plain.isel(combination=i, setting=0).mean().item()
            who = (
                "DPweighted closer in all" if dp == each
                else "EMweighted closer in all" if em == each
                else f"DPweighted closer in {dp}, EMweighted in {em}, undecided {each - dp - em}"
            )
            lines.append(f"{label}: {who}. Unweighted is off by {plain:+.0f} %.")
        r_hat = self.dataset["r_hat"]
        # written so that NaN is counted too
        poor = r_hat.size - int((r_hat <= R_HAT_LIMIT).sum())
        lines.append(
            f"R-hat is above {R_HAT_LIMIT} in {poor} of {r_hat.size} fits of {repeats} seeds."
        )
        return "\n".join(textwrap.fill(line, 66, subsequent_indent="  ") for line in lines)

    def reasons(self, statistic="90th percentile"):
        """Sentences on the controls: where the weights move a statistic, and what else does.

        Parameters
        ----------
        statistic : str, default "90th percentile"
            One of those of the study.

        Returns
        -------
        str
            In lines of at most 66 characters: averages over settings and repeats.
        """
        found = self.dataset["off"].sel(statistic=statistic).mean(["repeat", "setting"])
        lines = [f"{statistic}, moved from where Unweighted has it, in points of per cent:"]
        for i, label in enumerate(self.labels):
            off = {
                name: found.isel(combination=i).sel(mechanism=name).item() for name in MECHANISMS
            }
            moved = [
                f"{name} {off[name] - off['Unweighted']:+.1f}"
                for name in ("DPweighted", "EMweighted", "Shuffled", "Trimmed")
            ]
            lines.append(
                f"{label}: {', '.join(moved)}. It is then off the data by "
                f"{off['DPweighted']:+.1f} % under DPweighted and {off['Trimmed']:+.1f} % under "
                "Trimmed."
            )
        return "\n".join(textwrap.fill(line, 66, subsequent_indent="  ") for line in lines)


def equal_bounds(
    data,
    combinations=((1, TRANSFORMATIONS[0]), (10, TRANSFORMATIONS[0])),
    configurations=((0.7, 0.0), (0.5, -0.3)),
    *,
    repeats=3,
    releases=50,
    floor=1.0,
    shift=7001.0,
    chains=2,
    warmup=100,
    draws=200,
    tolerance=0.1,
    attempts=8,
    random_seed=None,
    parallel=True,
    executor=None,
    store=None,
    progress=False,
):
    """Compare DPweighted with EMweighted at equal local bounds, by K and transformation.

    Two controls ask why one of them wins. *Shuffled* deals the weights of DPweighted to the records
    at random: what is left is their average. *Trimmed* is no private mechanism: it gives weight 0
    to the hundredth of the records with the largest unweighted bounds and weight 1 to all others,
    which is what a statistician may do with outliers.

    Parameters
    ----------
    data : pandas.DataFrame or ppm_book.survey.ConsumerExpenditure
        The table.
    combinations : sequence of (int, str)
        Different pairs of a number of components K and a transformation, as for
        :func:`ppm_book.open_settings.transformed_income`.
    configurations : sequence of (float, float), default ((0.7, 0.0), (0.5, -0.3))
        Different pairs (c, g).
    repeats : int, default 3
        How often everything is done, each time with streams of its own.
    releases : int, default 50
        Synthetic databases m of every fit, 2 or more.
    floor, shift : float
        As for :func:`ppm_book.open_settings.transformed_income`, in dollars.
    chains, warmup, draws : int, default 2, 100 and 200
        Short chains. Those of the weighted fits start where the unweighted ones ended.
    tolerance, attempts
        How close EMweighted comes to the bound of DPweighted, and how many fits it may take: see
        :func:`ppm.studies.match_local_bound`. Fits that differ by chance alone have bounds a tenth
        apart.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness. A combination's numbers are the same whichever others are asked for.
    parallel : bool, default True
        Whether the combinations are shared out among the cores; the numbers do not depend on it.
    executor : concurrent.futures.Executor, optional
        Where the combinations are worked on, one task each, in place of processes of their own.
    store : path-like, optional
        Folder that keeps what is finished: the next call with the same arguments goes on from
        there. It needs a ``random_seed``, and is as confidential as the data.
    progress : bool, default False
        Whether to show a progress bar on the error stream.

    Returns
    -------
    EqualBoundStudy
        Bounds with their diagnostics, and how far releases are from the data.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 5, compare the two at one K, which they do not state.
    They average over releases; where a posterior is wide, one release with a few enormous incomes
    decides such an average of means. So this study takes the median over releases, and keeps
    the average beside it.

    Examples
    --------
    >>> from ppm_book import equal_bound_study, survey
    >>> data = survey.simulate(60, random_seed=1)
    >>> found = equal_bound_study.equal_bounds(
    ...     data, [(1, "logarithm, floored")], [(0.5, -0.3)], repeats=1, warmup=10, draws=20,
    ...     releases=4, attempts=2, random_seed=1, parallel=False)
    >>> dict(found.dataset["local_bound"].sizes)
    {'combination': 1, 'repeat': 1, 'setting': 1, 'mechanism': 5}
    """
    combinations = _check_combinations(combinations)
    configurations = check_configurations(configurations)
    repeats, chains = check_count("repeats", repeats), check_count("chains", chains)
    draws, attempts = check_count("draws", draws), check_count("attempts", attempts)
    releases = check_count("releases", releases, at_least=2)
    warmup = check_count("warmup", warmup, at_least=0)
    tolerance = check_number("tolerance", tolerance, above=0)
    predictors, _ = predictor_matrix(data)
    responses = {
        name: transformed_income(data, name, floor=floor, shift=shift)
        for name in dict.fromkeys(name for _, name in combinations)
    }
    income = getattr(data, "table", data)["income"].to_numpy(dtype=np.float64)
    engine = chosen_engine(executor, store, random_seed, parallel=parallel)
    root = seed_sequence(generator(random_seed))
    places = [(pair, repeat) for pair in combinations for repeat in range(repeats)]
    jobs = [
        _Combination(
            responses[name], predictors, income, name, k, tuple(configurations), chains, warmup,
            draws, releases, tolerance, attempts, shift, repeat,
            numbered(root, TRANSFORMATIONS.index(name), k, repeat),
        )
        for (k, name), repeat in places
    ]
    outcomes = run_combinations(_fit_all, jobs, engine, parallel=parallel, progress=progress)
    found = next(outcome.result for outcome in outcomes if outcome.failure is None)
    nowhere = {name: np.full_like(block, np.nan) for name, block in found.items()}
    blocks = [nowhere if outcome.failure else outcome.result for outcome in outcomes]
    numbers, misfit, off, off_error, average = (
        np.stack([block[name] for block in blocks]).reshape(
            len(combinations), repeats, *found[name].shape
        )
        for name in _BLOCKS
    )
    dims = ("combination", "repeat", "setting", "mechanism")
    spread = [
        100.0 * np.std(resample(income, f, resamples=200, random_seed=numbered(root, 9)), ddof=1)
        / abs(f(income, axis=0))
        for f in COMPARED.values()
    ]
    dataset = xr.Dataset(
        {
            **{name: (dims, numbers[..., i]) for i, name in enumerate(_OF_A_FIT)},
            "misfit": (dims, misfit),
            "off": ((*dims, "statistic"), off),
            "off_error": ((*dims, "statistic"), off_error),
            "average_off": ((*dims, "statistic"), average),
            "spread": ("statistic", spread),
        },
        {
            "components": ("combination", [k for k, _ in combinations]),
            "transformation": ("combination", [name for _, name in combinations]),
            "setting": [entry_label("", pair).strip() for pair in configurations],
            "mechanism": list(MECHANISMS),
            "statistic": list(COMPARED),
        },
    )
    return EqualBoundStudy(
        dataset, releases=releases, draws=chains * draws, failures=failures_of(jobs, outcomes)
    )


def _check_combinations(combinations):
    try:
        pairs = [(k, name) for k, name in combinations]
    except (TypeError, ValueError):
        pairs = []
    if not pairs:
        raise ValueError(
            "combinations must be a list of pairs (components, transformation), such as "
            f"[(1, {TRANSFORMATIONS[0]!r})]; got {shown(combinations)}"
        )
    pairs = [(check_count("components", k), name) for k, name in pairs]
    for _, name in pairs:
        if not isinstance(name, str) or name not in TRANSFORMATIONS:
            raise ValueError(
                f"transformation must be one of {', '.join(TRANSFORMATIONS)}; got {shown(name)}"
            )
    if len(set(pairs)) < len(pairs):
        raise ValueError(f"combinations must be different ones; got {shown(combinations)}")
    return pairs


@dataclass(frozen=True, eq=False)
class _Combination:
    """One K, transformation and repeat, in a form that can be sent to another process."""

    response: np.ndarray
    predictors: np.ndarray
    income: np.ndarray
    transformation: str
    components: int
    configurations: tuple
    chains: int
    warmup: int
    draws: int
    releases: int
    tolerance: float
    attempts: int
    shift: float
    repeat: int
    seed: np.random.SeedSequence

    # fits expected of a setting: DPweighted, Shuffled and three short attempts of EMweighted
    EXPECTED = 5

    @property
    def place(self):
        return {
            "components": self.components, "transformation": self.transformation,
            "repeat": self.repeat,
        }

    @property
    def sweeps(self):
        fits = 2 + self.EXPECTED * len(self.configurations)
        return fits * self.chains * (self.warmup + self.draws)


def _fit_all(job, report=lambda sweeps: None):
    """What the study keeps of every fit: blocks whose first dimensions are setting, mechanism."""
    synthesizer = FiniteMixture(
        job.response, job.predictors, components=job.components, chains=job.chains,
        warmup=job.warmup, parallel=False,
    )
    seeds = iter(streams(job.seed, 4 + 3 * len(job.configurations)))
    settings = {"draws": job.draws, "allow_disagreement": True}
    measure = _Measure(synthesizer, job, next(seeds))
    plain = refit(
        synthesizer, np.ones(synthesizer.records), random_seed=next(seeds), **settings
    )
    start = {"initial": plain.draws}
    kept = np.ones(synthesizer.records)
    kept[np.argsort(plain.record_bounds)[-max(1, round(TRIMMED * kept.size)) :]] = 0.0
    trimmed = measure(refit(synthesizer, kept, random_seed=next(seeds), **start, **settings))
    unweighted, rng = measure(plain), np.random.default_rng(next(seeds))
    rows = []
    for place, (scale, shift) in enumerate(job.configurations):
        weights = record_weights(plain.record_bounds, scale=scale, shift=shift)
        dp = refit(synthesizer, weights, random_seed=next(seeds), **start, **settings)
        em, _ = match_local_bound(
            synthesizer, dp.local_bound, unweighted=plain.draws, random_seed=next(seeds),
            tolerance=job.tolerance, attempts=job.attempts, **settings,
        )
        shuffled = refit(
            synthesizer, rng.permutation(weights), random_seed=next(seeds), **start, **settings
        )
        rows.append([unweighted, measure(dp), measure(em), measure(shuffled), trimmed])
        report((place + 1) * job.sweeps // len(job.configurations))
    return {
        name: np.array([[entry[i] for entry in row] for row in rows], dtype=np.float64)
        for i, name in enumerate(_BLOCKS)
    }


class _Measure:
    """Numbers of a fit, and how far releases drawn from it are from the data."""

    def __init__(self, synthesizer, job, seed):
        self.synthesizer, self.job, self.seed = synthesizer, job, seed
        self.ordered = np.sort(job.income)
        self.targets = [f(job.income, axis=0) for f in COMPARED.values()]

    def __call__(self, result):
        job, found = self.job, result.diagnostics
        numbers = [
            result.local_bound, found.error, found.r_hat, found.r_hat_log_likelihood,
            result.weights.mean(),
        ]
        synthetic = self.synthesizer.predict(
            result.draws, releases=job.releases, random_seed=self.seed
        ).values
        # an income beyond the range of numbers is infinite, and so is its mean
        with np.errstate(over="ignore", invalid="ignore"):
            incomes = income_of(synthetic, job.transformation, shift=job.shift)
            off = np.array(
                [
                    100.0 * (f(incomes, axis=1) - target) / abs(target)
                    for f, target in zip(COMPARED.values(), self.targets, strict=True)
                ]
            )
            quartiles = np.quantile(off, [0.25, 0.75], axis=1)
            error = _OF_A_MEDIAN * (quartiles[1] - quartiles[0]) / _QUARTILES_APART
            error = error / np.sqrt(job.releases)
            average = off.mean(axis=1)
        misfit = 100.0 * np.mean([self._largest_distance(one) for one in incomes])
        return numbers, misfit, np.median(off, axis=1), error, average

    def _largest_distance(self, incomes):
        """The statistic of Kolmogorov and Smirnov for the data and one release."""
        release = np.sort(incomes)
        both = np.concatenate([self.ordered, release])
        shares = [np.searchsorted(x, both, side="right") / x.size for x in (self.ordered, release)]
        return np.abs(shares[0] - shares[1]).max()
