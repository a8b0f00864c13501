"""Do chains that start elsewhere find the same bounds? A check on the diagnostics themselves."""

from ppm._random import generator, streams
from ppm._validation import check_count
from ppm.studies.kept_fits import fit_runner
from ppm.studies.risk_utility import one_response


def compare_starts(sweep, synthesizer, *, draws=1000, random_seed=None, fits=None, progress=False):
    """Fit the settings of a sweep again from other starting points, and compare the diagnostics.

    R-hat compares chains with each other. Chains that all start alike can agree and still leave
    out a part of the posterior. Here the same weights are fitted by a synthesizer whose chains
    start differently; an R-hat that rises from the one to the other shows what the first could not.

    Parameters
    ----------
    sweep : ppm.studies.Sweep
        What :func:`ppm.studies.sweep` returned.
    synthesizer : ppm.Synthesizer or pymc.Model
        The same model with other starting points, such as ``ppm.FiniteMixture(…,
        starting_components=[1, 10])``.
    draws : int, default 1000
        Kept draws a chain, 1 or more.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.
    fits : path-like, optional
        Folder that keeps the fits, as for :func:`ppm.studies.sweep`: it is confidential.
    progress : bool, default False
        Show a progress bar on standard error.

    Returns
    -------
    pandas.DataFrame
        One row for Unweighted and for every setting of DPweighted; local bounds in nats. Columns
        ``local bound``, ``R-hat``, ``R-hat, log-likelihood``, then the same ``, other starts``, and
        the ``smallest`` and ``largest bound of a chain`` among those.

    Raises
    ------
    TypeError
        If ``synthesizer`` is neither a synthesizer nor a PyMC model.
    ValueError
        If the synthesizer has another number of records or several responses, or an argument is
        out of range.

    Notes
    -----
    For section 5 of Savitsky, Williams and Hu (2022), which shows no diagnostics.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> y, ones = np.linspace(-1.0, 1.0, 20), np.ones((20, 1))
    >>> model = ppm.FiniteMixture(y, ones, components=2, warmup=50)
    >>> found = ppm.studies.sweep(model, [(0.5, 0.0)], draws=50, random_seed=1, attempts=1)
    >>> other = ppm.FiniteMixture(y, ones, components=2, warmup=50, starting_components=[1, 2])
    >>> ppm.studies.compare_starts(found, other, draws=50, random_seed=1).index.to_list()
    ['Unweighted', 'DPweighted (0.5, 0)']
    """
    import pandas as pd

    synthesizer = one_response(synthesizer)
    entries = [e for e in sweep.entries if e.mechanism in ("Unweighted", "DPweighted")]
    if synthesizer.records != entries[0].weights.size:
        raise ValueError(
            f"synthesizer has {synthesizer.records:,} records; those of the sweep are "
            f"{entries[0].weights.size:,}"
        )
    draws = check_count("draws", draws)
    seeds = streams(generator(random_seed), len(entries))
    rows = {}
    with fit_runner(
        synthesizer, fits=fits, random_seed=random_seed, progress=progress, draws=draws, releases=1
    ) as runner:
        for place, (entry, seed) in enumerate(
            zip(entries, seeds, strict=True), start=1
        ):
            runner.progress.plan("others", (len(entries) - place) * runner.sweeps())
            other = runner.fit(entry.label, entry.weights, seed)
            rows[entry.label] = {
                **_row(entry.local_bound, entry.diagnostics, ""),
                **_row(other.local_bound, other.diagnostics, ", other starts"),
                "smallest bound of a chain": min(other.diagnostics.by_chain),
                "largest bound of a chain": max(other.diagnostics.by_chain),
            }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("synthesizer")


def _row(bound, diagnostics, suffix):
    return {
        f"local bound{suffix}": bound,
        f"R-hat{suffix}": diagnostics.r_hat,
        f"R-hat, log-likelihood{suffix}": diagnostics.r_hat_log_likelihood,
    }
