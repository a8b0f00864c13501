"""Log-likelihoods of a fit, computed from its draws: at once, or in blocks as they are read."""

import math
import threading
from importlib.util import find_spec

import numpy as np

#: bytes of the largest log-likelihood that is held in memory; dask computes larger ones when read
HELD = 1 << 28
# draws times records in a block
_BLOCK = 1 << 22
# compiled functions hold the values they work on, and are not thread-safe
_ONE_AT_A_TIME = threading.RLock()


def is_held(*shape):
    """Whether a log-likelihood of this shape is held in memory; without dask all are."""
    return 8 * math.prod(shape) <= HELD or find_spec("dask") is None


def log_likelihood_from(evaluate, posterior, records):
    """Log-likelihood of every record at draws of θ, an `xarray.DataArray` (chain, draw, record).

    Parameters
    ----------
    evaluate : callable
        From an `xarray.Dataset` of draws to a numpy.ndarray (chain, draw, record).
    posterior : xarray.Dataset
        Draws of the parameters that ``evaluate`` uses.
    records : int
        Number of records.
    """
    import xarray as xr

    dims, shape = ("chain", "draw"), tuple(posterior.sizes[d] for d in ("chain", "draw"))
    coords = {name: posterior[name] for name in dims if name in posterior.coords}
    if is_held(*shape, records):
        values = evaluate(posterior)
    else:
        import dask.array

        def block(block_info=None):
            (chains, draws, _) = block_info[None]["array-location"]
            with _ONE_AT_A_TIME:
                return evaluate(posterior.isel(chain=slice(*chains), draw=slice(*draws)))

        chunks = (1, max(1, _BLOCK // records), records)
        chunks = dask.array.core.normalize_chunks(chunks, (*shape, records))
        values = dask.array.map_blocks(block, chunks=chunks, meta=np.empty((0, 0, 0)))
    return xr.DataArray(values, dims=(*dims, "record"), coords=coords)
