"""Nutpie's NUTS on a weighted model: compiled once, for other weights not again."""

from ppm._validation import needed_for
from ppm.synthesizers.chains import cores, is_alone
from ppm.synthesizers.pymc_rewriting import nothing_written

with needed_for("nuts_sampler='nutpie'"):
    import nutpie

# what the chains behind a bound are judged by, and what a reader may ask of NUTS
_STATISTICS = ("diverging", "depth", "n_steps", "step_size", "energy", "logp")


def compiled(model):
    """The model as nutpie's functions, in memory."""
    with nothing_written():
        return nutpie.compile_pymc_model(model)


def sample(functions, data, *, draws, chains, warmup, target_accept, seed, progress):
    """Draw with other values of some of the model's data.

    Parameters
    ----------
    functions : nutpie.CompiledModel
        What :func:`compiled` returned.
    data : dict of str to numpy.ndarray
        Names of the model's data, and their values.

    Returns
    -------
    posterior, statistics : xarray.Dataset
        Draws, and what NUTS tells of each.

    Raises
    ------
    KeyboardInterrupt
        If interrupted. Nutpie would hand back the draws that it has.
    """
    # chains are threads: a study's task has one
    running = nutpie.sample(
        functions.with_data(**data),
        draws=draws,
        tune=warmup,
        chains=chains,
        cores=1 if is_alone() else min(chains, cores()),
        seed=seed,
        target_accept=target_accept,
        save_warmup=False,
        progress_bar=progress,
        blocking=False,
    )
    try:
        trace = running.wait()
    except BaseException:
        running.cancel()
        raise
    statistics = trace["sample_stats"].to_dataset()
    kept = [name for name in _STATISTICS if name in statistics]
    return trace["posterior"].to_dataset(), statistics[kept]
