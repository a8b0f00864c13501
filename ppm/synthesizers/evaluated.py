"""Log-likelihoods of a fit that are computed from its draws of θ, where they are too many to hold.

Up to ``HELD`` bytes the whole array is computed once. A larger one stays an
``xarray.DataArray`` of the same shape, of which only those draws are computed that are read, each
time they are read.
"""

import math
import threading

import numpy as np

from ppm import lipschitz

#: bytes of a fit's log-likelihood that are held in memory; a larger one is computed when it is read
HELD = 1 << 28

# compiled functions keep the numbers that they are working on
_ONE_AT_A_TIME = threading.RLock()


def is_held(*shape):
    """Whether a log-likelihood of this shape, in double precision, is held in memory."""
    return 8 * math.prod(shape) <= HELD


def log_likelihood_from(evaluate, posterior, records):
    """Log-likelihood of every record at draws of θ: held, or computed when it is read.

    Parameters
    ----------
    evaluate : callable
        From some draws, an ``xarray.Dataset`` with the dimensions chain and draw, to their
        log-likelihoods, a numpy.ndarray (chain, draw, record) in nats. It is called by one thread
        at a time.
    posterior : xarray.Dataset
        Draws of θ: all that ``evaluate`` looks at, and little else. They are not copied.
    records : int
        Number of records.

    Returns
    -------
    xarray.DataArray, dimensions (chain, draw, record)
        The log-likelihood. One that is computed when it is read, by its blocks of draws, can be
        indexed, copied and written as any other; ``.load()`` holds it in memory. It cannot be
        pickled before that.
    """
    import xarray as xr

    shape = (posterior.sizes["chain"], posterior.sizes["draw"], records)
    dims = ("chain", "draw", "record")
    coords = {name: posterior[name] for name in dims[:2] if name in posterior.coords}
    if is_held(*shape):
        with _ONE_AT_A_TIME:
            return xr.DataArray(evaluate(posterior), dims=dims, coords=coords)
    draws = max(1, lipschitz.BLOCK // records)
    values = xr.Variable(
        dims,
        _lazily(evaluate, posterior, shape, draws),
        # read along these, no draw is computed twice
        encoding={
            "preferred_chunks": {"chain": 1, "draw": min(draws, shape[1]), "record": records}
        },
    )
    return xr.DataArray(values, coords=coords)


def _lazily(evaluate, posterior, shape, together):
    from xarray.backends import BackendArray
    from xarray.core import indexing

    class Evaluated(BackendArray):
        """An array of which xarray asks for a part, and of which that part is then computed."""

        def __init__(self):
            self.shape, self.dtype = shape, np.dtype(np.float64)

        def __getitem__(self, key):
            return indexing.explicit_indexing_adapter(
                key, self.shape, indexing.IndexingSupport.OUTER, self._read
            )

        def _read(self, key):
            chains, draws, records = (
                np.arange(size)[part] for size, part in zip(self.shape, key, strict=True)
            )
            found = np.empty((chains.size, draws.size, records.size))
            everyone = records.size == self.shape[2] and np.array_equal(
                records, np.arange(self.shape[2])
            )
            for start in range(0, draws.size, together):
                some = np.atleast_1d(draws)[start : start + together]
                for place, chain in enumerate(np.atleast_1d(chains)):
                    with _ONE_AT_A_TIME:
                        block = evaluate(posterior.isel(chain=[chain], draw=some))[0]
                    if not everyone:
                        block = block[:, np.atleast_1d(records)]
                    found[place, start : start + together] = block
            # a number in the place of a slice takes its dimension away
            return found.reshape((*chains.shape, *draws.shape, *records.shape))

        def __deepcopy__(self, memo):
            # nothing in it changes, and compiled functions cannot be copied
            return self

        def __reduce_ex__(self, protocol):
            raise TypeError(
                "a log-likelihood that is computed when it is read cannot be pickled: hand over "
                "the fit's posterior and call log_likelihood_at() there, or load() it first"
            )

    return indexing.CopyOnWriteArray(indexing.LazilyIndexedArray(Evaluated()))
