"""A fit of the finite mixture: made of what its chains return, and where others start from."""

import numpy as np

from ppm.synthesizers.mixture.sampler import _Sampler


def _stacked(results, name):
    """One array of those of all chains, each of which is let go once it is copied."""
    first = results[0].pop(name)
    found = np.empty((len(results), *first.shape), first.dtype)
    found[0] = first
    del first
    for chain, result in enumerate(results[1:], start=1):
        found[chain] = result.pop(name)
    return found


def data_tree(results, log_likelihood_at):
    """Make a fit of what the chains returned.

    Parameters
    ----------
    results : list of dict of str to numpy.ndarray
        Kept draws of each chain, with or without their log-likelihood; emptied.
    log_likelihood_at : callable
        From the posterior to the log-likelihood, for draws without.

    Returns
    -------
    xarray.DataTree
        As :meth:`ppm.FiniteMixture.fit` returns it.
    """
    import xarray as xr

    draws, K, R = results[0]["beta"].shape
    stacked = {name: _stacked(results, name) for name in [*results[0]]}
    dims = {
        "pi": ("component",),
        "beta": ("component", "predictor"),
        "sigma": ("component",),
        "concentration": (),
        "coefficient_scale": ("predictor",),
        "floor_coefficients": ("predictor",),
        "weighted_log_likelihood": (),
        "occupied_components": (),
        "acceptance_rate": ("block_kind",),
    }
    coords = {
        "chain": np.arange(len(results)),
        "draw": np.arange(draws),
        "component": np.arange(K),
        "predictor": np.arange(R),
        "block_kind": list(_Sampler.KINDS),
    }
    groups = {
        "posterior": (
            "pi", "beta", "sigma", "concentration", "coefficient_scale", "floor_coefficients",
        ),
        "sample_stats": ("weighted_log_likelihood", "occupied_components", "acceptance_rate"),
    }
    tree = {}
    for group, names in groups.items():
        variables = {
            name: (("chain", "draw", *dims[name]), stacked[name])
            for name in names
            if name in stacked
        }
        used = {dim for variable_dims, _ in variables.values() for dim in variable_dims}
        tree[group] = xr.Dataset(variables, {dim: coords[dim] for dim in coords if dim in used})
    if "response" in stacked:
        log_lik = xr.DataArray(stacked["response"], dims=("chain", "draw", "record"))
    else:
        log_lik = log_likelihood_at(tree["posterior"])
    coords = {
        "chain": coords["chain"],
        "draw": coords["draw"],
        "record": np.arange(log_lik.shape[-1]),
    }
    tree["log_likelihood"] = log_lik.assign_coords(coords).to_dataset(name="response")
    return xr.DataTree.from_dict(
        {name: tree[name] for name in ("posterior", "log_likelihood", "sample_stats")}
    )


def starting_points(initial, chains, components, predictors, floor=None):
    """The last draw of a chain of an earlier fit for every chain, or None for each."""
    if initial is None:
        return [None] * chains
    try:
        posterior = initial["posterior"]
        names = ["pi", "beta", "sigma", "concentration"]
        names += [] if floor is None else ["floor_coefficients"]
        last = {name: posterior[name].isel(draw=-1).values for name in names}
    except (KeyError, TypeError, AttributeError):
        raise ValueError(
            "initial must be what an earlier call of fit returned"
            + ("" if floor is None else ", with a floor")
        ) from None
    if last["beta"].shape[1:] != (components, predictors):
        raise ValueError(
            f"initial has {last['beta'].shape[1]} components and {last['beta'].shape[2]} "
            f"predictors; this model has {components} and {predictors}"
        )
    size = len(last["beta"])
    return [{name: values[c % size] for name, values in last.items()} for c in range(chains)]
