"""How the application's published bounds move with what the paper leaves unstated (section 5)."""

import textwrap
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from ppm._random import generator, numbered, seed_sequence, streams
from ppm._validation import check_count, check_number, shown
from ppm.diagnostics import R_HAT_LIMIT
from ppm.mechanism import entry_label, refit
from ppm.studies.tasks import chosen_engine, failures_of, no_failures, run_combinations
from ppm.synthesizers.mixture.model import FiniteMixture
from ppm.weights import record_weights
from ppm_book.survey.design import log_income, predictor_matrix

#: Δ in nats that the paper reports: Unweighted, then DPweighted by (scale, shift)
PUBLISHED_BOUNDS = {
    None: 78.7,
    (0.7, 0.0): 10.10,
    (0.6, 0.0): 8.16,
    (0.6, -0.1): 7.30,
    (0.5, 0.0): 6.09,
    (0.5, -0.1): 5.71,
    (0.5, -0.3): 2.25,
}
#: how incomes of zero or less can enter the model; the paper does not say
TRANSFORMATIONS = ("logarithm, floored", "inverse hyperbolic sine", "logarithm, shifted")


@dataclass(frozen=True, eq=False)
class SettingsStudy:
    """Local bounds of Unweighted and of the paper's six settings, by K and transformation.

    Attributes
    ----------
    dataset : xarray.Dataset
        Dimensions transformation, components and setting (``Unweighted`` first). ``local_bound``:
        Δ in nats; ``error``: its Monte Carlo standard error; ``r_hat``: R-hat of what it is the
        maximum of; ``r_hat_log_likelihood``: that of the weighted log-likelihood; ``typical``:
        median over draws of the first, which is no bound; ``published`` (setting): the paper's Δ.
    draws : int
        Posterior draws S behind each bound, all chains together.
    failures : pandas.DataFrame
        One row for each combination that failed on an executor, with its seed and its traceback;
        its numbers are NaN.

    Examples
    --------
    >>> from ppm_book import open_settings, survey
    >>> data = survey.simulate(60, random_seed=1)
    >>> found = open_settings.settings(data, [1], transformations=["inverse hyperbolic sine"],
    ...                              warmup=10, draws=20, random_seed=1, parallel=False)
    >>> found.draws, found.dataset["published"].values.tolist()
    (40, [78.7, 10.1, 8.16, 7.3, 6.09, 5.71, 2.25])
    """

    dataset: xr.Dataset
    draws: int
    failures: object = field(default_factory=no_failures, repr=False)

    def table(self):
        """Bounds, one row a transformation and K and one column a setting, the paper's last.

        Returns
        -------
        pandas.DataFrame
            Bounds in nats.
        """
        import pandas as pd

        table = self.dataset["local_bound"].to_series().unstack("setting")
        table = table.reindex(columns=list(self.dataset["setting"].values))
        table = table.reindex(list(self.dataset["transformation"].values), level=0)
        paper = self.dataset["published"].to_series()
        index = pd.MultiIndex.from_tuples([("as published", "")], names=table.index.names)
        return pd.concat([table, pd.DataFrame([paper.to_numpy()], index, table.columns)])

    def distances(self):
        """How far every combination lies from the published sequence, the nearest first.

        Returns
        -------
        pandas.DataFrame
            One row a transformation and K. ``distance``: root mean square of log(ours / published)
            over the seven bounds; ``factor``: its exponential, the typical ratio; ``Unweighted /
            published`` and ``last / published``: the ratio at both ends of the sequence;
            ``error``: Monte Carlo standard error of the distance; ``largest R-hat`` of the fits,
            and ``largest R-hat, log-likelihood``; NaN where that of a fit cannot be told.
        """
        found = self.dataset
        ratio = np.log(found["local_bound"] / found["published"])
        distance = np.sqrt((ratio**2).mean("setting"))
        relative = found["error"] / found["local_bound"]
        error = np.sqrt(((ratio * relative) ** 2).sum("setting")) / (ratio.sizes["setting"])
        table = xr.Dataset(
            {
                "distance": distance,
                "error": error / distance,
                "factor": np.exp(distance),
                "Unweighted / published": np.exp(ratio.isel(setting=0, drop=True)),
                "last / published": np.exp(ratio.isel(setting=-1, drop=True)),
                "largest R-hat": found["r_hat"].max("setting", skipna=False),
                "largest R-hat, log-likelihood": found["r_hat_log_likelihood"].max(
                    "setting", skipna=False
                ),
            }
        ).to_dataframe()
        return table.sort_values("distance")

    def nearest(self):
        """Sentences on the combination that comes nearest, and on those that chance cannot tell.

        Returns
        -------
        str
            Two or three sentences, in lines of at most 72 characters.
        """
        table = self.distances()
        first = table.iloc[0]
        apart = np.hypot(table["error"], first["error"])
        alike = table[table["distance"] - first["distance"] <= 2.0 * apart].index[1:]
        lines = [
            f"Nearest to the published sequence: {_named(table.index[0])}, off by a factor of "
            f"{first['factor']:.2f} on average."
        ]
        if len(alike):
            listed = "; ".join(_named(pair) for pair in alike)
            lines.append(f"Not told apart from it by these draws: {listed}.")
        else:
            lines.append("The others are further off by more than twice the Monte Carlo error.")
        size = self.dataset["r_hat"].size
        # written so that NaN is counted too
        poor, poor_sum = (
            size - int((self.dataset[name] <= R_HAT_LIMIT).sum())
            for name in ("r_hat", "r_hat_log_likelihood")
        )
        lines.append(
            f"R-hat is above {R_HAT_LIMIT} in {poor} of {size} fits, and that of the "
            f"log-likelihood in {poor_sum}."
        )
        return "\n".join(textwrap.fill(line, 72) for line in lines)


def _named(pair):
    transformation, components = pair
    return f"{transformation}, K = {components}"


def transformed_income(data, transformation, *, floor=1.0, shift=7001.0):
    """Income on the scale of the model, by one of three transformations.

    Parameters
    ----------
    data : pandas.DataFrame or ppm_book.survey.ConsumerExpenditure
        With the column ``income``, dollars.
    transformation : {"logarithm, floored", "inverse hyperbolic sine", "logarithm, shifted"}
        The logarithm after raising income to a floor; its inverse hyperbolic sine, which is close
        to log(2 income) for large incomes and needs no floor; the logarithm of income plus a shift,
        raised to 1 dollar where that is less.
    floor : float, default 1
        Dollars, above 0, for the first.
    shift : float, default 7001
        Dollars, above 0, for the third. The paper's smallest income is about -7,000.

    Returns
    -------
    numpy.ndarray, shape (records,)
        Finite values.

    Raises
    ------
    ValueError
        If the transformation is unknown, or the table or an amount is not accepted.

    Examples
    --------
    >>> from ppm_book import open_settings
    >>> import pandas as pd, ppm
    >>> table = pd.DataFrame({"income": [-500.0, 0.0, 50_000.0]})
    >>> open_settings.transformed_income(table, "logarithm, floored").round(2)
    array([ 0.  ,  0.  , 10.82])
    >>> open_settings.transformed_income(table, "inverse hyperbolic sine").round(2)
    array([-6.91,  0.  , 11.51])
    """
    if not isinstance(transformation, str) or transformation not in TRANSFORMATIONS:
        raise ValueError(
            f"transformation must be one of {', '.join(TRANSFORMATIONS)}; "
            f"got {shown(transformation)}"
        )
    shift = check_number("shift", shift, above=0)
    table = getattr(data, "table", data)
    response, _ = log_income(table, floor)
    if transformation == TRANSFORMATIONS[0]:
        return response
    income = table["income"].to_numpy(dtype=np.float64)
    if transformation == TRANSFORMATIONS[1]:
        return np.arcsinh(income)
    return np.log(np.maximum(income + shift, 1.0))


def income_of(response, transformation, *, shift=7001.0):
    """Dollars that belong to values on the scale of the model: the inverse transformation.

    Parameters
    ----------
    response : array_like
        Values on the scale of the model.
    transformation, shift
        As for :func:`ppm_book.open_settings.transformed_income`.
    """
    inverse = {
        TRANSFORMATIONS[0]: np.exp,
        TRANSFORMATIONS[1]: np.sinh,
        TRANSFORMATIONS[2]: lambda values: np.exp(values) - shift,
    }
    return inverse[transformation](response)


def settings(
    data,
    components=(1, 2, 5, 10, 20),
    *,
    transformations=TRANSFORMATIONS,
    floor=1.0,
    shift=7001.0,
    chains=2,
    warmup=100,
    draws=200,
    random_seed=None,
    parallel=True,
    executor=None,
    store=None,
    progress=False,
):
    """Fit Unweighted and DPweighted at the paper's six settings, by K and transformation.

    Parameters
    ----------
    data : pandas.DataFrame or ppm_book.survey.ConsumerExpenditure
        The table.
    components : sequence of int, default (1, 2, 5, 10, 20)
        Numbers of components K, increasing, each 1 or more.
    transformations : sequence of str, default all three
        As for :func:`ppm_book.open_settings.transformed_income`.
    floor, shift : float
        As for :func:`ppm_book.open_settings.transformed_income`, in dollars.
    chains, warmup, draws : int, default 2, 100 and 200
        Short chains. Those of the weighted fits start where the unweighted ones ended.
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
    SettingsStudy
        Bounds with their diagnostics, and their distance from the published ones.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 5, and appendix B for the model. Its table gives Δ for
    six settings, but neither K nor the draws, nor what became of incomes of zero or less. Bounds
    are shown also where chains disagree, with R-hat.

    Examples
    --------
    >>> from ppm_book import open_settings, survey
    >>> data = survey.simulate(60, random_seed=1)
    >>> found = open_settings.settings(data, [1], transformations=["inverse hyperbolic sine"],
    ...                              warmup=10, draws=20, random_seed=1, parallel=False)
    >>> dict(found.dataset["local_bound"].sizes)
    {'transformation': 1, 'components': 1, 'setting': 7}
    """
    components = _check_components(components)
    transformations = list(transformations)
    if not transformations or len(set(transformations)) < len(transformations):
        raise ValueError(f"transformations must be different ones; got {shown(transformations)}")
    chains, draws = check_count("chains", chains), check_count("draws", draws)
    warmup = check_count("warmup", warmup, at_least=0)
    predictors, _ = predictor_matrix(data)
    responses = {
        name: transformed_income(data, name, floor=floor, shift=shift) for name in transformations
    }
    engine = chosen_engine(executor, store, random_seed, parallel=parallel)
    root = seed_sequence(generator(random_seed))
    pairs = [(name, k) for name in transformations for k in components]
    jobs = [
        _Combination(
            responses[name], predictors, name, k, chains, warmup, draws,
            numbered(root, TRANSFORMATIONS.index(name), k),
        )
        for name, k in pairs
    ]
    outcomes = run_combinations(_fit_all, jobs, engine, parallel=parallel, progress=progress)
    names = ("local_bound", "error", "r_hat", "r_hat_log_likelihood", "typical")
    values = np.full((len(names), len(pairs), len(PUBLISHED_BOUNDS)), np.nan)
    for i, outcome in enumerate(outcomes):
        if outcome.failure is None:
            values[:, i] = outcome.result["values"]
    values = values.reshape(len(names), len(transformations), len(components), -1)
    dims = ("transformation", "components", "setting")
    dataset = xr.Dataset(
        {name: (dims, block) for name, block in zip(names, values, strict=True)},
        {
            "transformation": transformations,
            "components": list(components),
            "setting": [_setting(pair) for pair in PUBLISHED_BOUNDS],
        },
    )
    dataset["published"] = "setting", list(PUBLISHED_BOUNDS.values())
    return SettingsStudy(
        dataset, draws=chains * draws, failures=failures_of(jobs, outcomes)
    )


def _setting(pair):
    return entry_label("Unweighted") if pair is None else f"({pair[0]:g}, {pair[1]:g})"


def _check_components(components):
    try:
        components = tuple(check_count("components", k) for k in components)
    except TypeError:
        raise ValueError(
            f"components must be a list of whole numbers, such as [1, 10]; got {shown(components)}"
        ) from None
    if not components or any(a >= b for a, b in zip(components, components[1:], strict=False)):
        raise ValueError(f"components must increase from one to the next; got {shown(components)}")
    return components


@dataclass(frozen=True, eq=False)
class _Combination:
    """One K and one transformation, in a form that can be sent to another process."""

    response: np.ndarray
    predictors: np.ndarray
    transformation: str
    components: int
    chains: int
    warmup: int
    draws: int
    seed: np.random.SeedSequence

    @property
    def place(self):
        return {"transformation": self.transformation, "components": self.components}

    @property
    def sweeps(self):
        return len(PUBLISHED_BOUNDS) * self.chains * (self.warmup + self.draws)


def _fit_all(job, report=lambda sweeps: None):
    """Bound, its error, both R-hats and typical draw: ``values``, shape (5, settings)."""
    synthesizer = FiniteMixture(
        job.response, job.predictors, components=job.components, chains=job.chains,
        warmup=job.warmup, parallel=False,
    )
    seeds = streams(job.seed, len(PUBLISHED_BOUNDS))
    result = np.empty((5, len(PUBLISHED_BOUNDS)))
    unweighted, start = None, {}
    for place, (pair, seed) in enumerate(zip(PUBLISHED_BOUNDS, seeds, strict=True)):
        if pair is None:
            weights = np.ones(synthesizer.records)
        else:
            weights = record_weights(unweighted.record_bounds, scale=pair[0], shift=pair[1])
            start = {"initial": unweighted.draws}
        bound = refit(
            synthesizer, weights, draws=job.draws, random_seed=seed, allow_disagreement=True,
            **start,
        )
        unweighted = unweighted or bound
        found = bound.diagnostics
        result[:, place] = (
            bound.local_bound, found.error, found.r_hat, found.r_hat_log_likelihood, found.typical
        )
        report((place + 1) * job.sweeps // len(PUBLISHED_BOUNDS))
    return {"values": result}
