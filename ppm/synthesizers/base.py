"""What the mechanism asks of a model, and what models share."""

import math
import threading
from importlib.util import find_spec
from typing import Protocol, runtime_checkable

import numpy as np
import xarray as xr

from ppm.censoring import Censoring
from ppm.checks import listed, shown

#: bytes of the largest log-likelihood that is held in memory; dask computes larger ones when read
HELD = 1 << 28
# draws times records in a block
_BLOCK = 1 << 22
# compiled functions hold the values they work on, and are not thread-safe
_ONE_AT_A_TIME = threading.RLock()


@runtime_checkable
class Synthesizer(Protocol):
    """A Bayesian model of a database that can be fitted with record weights.

    Attributes
    ----------
    records : int
        Number of records n.

    Notes
    -----
    Four more things are optional:

    - An attribute ``independent_draws = True`` says that draws come from no Markov chain. The fits
      of all other synthesizers are diagnosed before a bound is shown.
    - A method ``log_likelihood_at(posterior)`` returns the log-likelihood of the synthesizer's own
      records, (chain, draw, record), at the draws of a fit's ``posterior``. A fit that the caller
      supplies is compared with it, and refused if it belongs to other records.
    - A method ``extremes(weights, censor=…)``, as :class:`ppm.CandidateSynthesizer` has it, gives
      bounds over all parameters that can be drawn.
    - A ``fit`` with an argument ``censor``, a :class:`ppm.Censoring`, draws from the prior times
      the exponential of the sum over records of ``censor.term(weight * log-likelihood)``, of the
      log-likelihood less ``censor.levels(self)`` where the limits have a center. Its
      ``log_likelihood`` stays uncensored. Without the argument the mechanism refuses to censor.

    Whoever calls ``fit`` or ``predict`` gives ``random_seed`` as an int, SeedSequence, Generator or
    None (fresh), and ``releases``, the number m of databases, 1 or more. From the mechanism
    ``random_seed`` reaches ``fit`` as a ``numpy.random.SeedSequence``, for
    ``numpy.random.default_rng``; do not spawn from it.

    ``progress`` says whether a fit shows a progress bar, on the error stream. By default (None) a
    fit that takes longer than a second shows one in a terminal and in an open notebook, and is
    quiet where output goes to a file or a pipe, in workers, and in notebooks that a program
    executes. The bar needs tqdm, without which the default is quiet.

    Examples
    --------
    >>> import ppm
    >>> isinstance(ppm.GammaPoisson([3, 5, 4]), ppm.Synthesizer)
    True
    """

    @property
    def records(self): ...

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=None):
        """Draw θ from the pseudo posterior with these weights (all 1 by default).

        Returns an ``xarray.DataTree`` with the groups ``posterior`` (dimensions chain, draw, …)
        and ``log_likelihood`` (one variable, chain, draw, record: *unweighted*); ``draws`` counts
        kept draws per chain.
        """

    def log_likelihood(self, fit):
        """Return that log-likelihood, an ``xarray.DataArray`` (chain, draw, record)."""

    def predict(self, fit, *, releases, random_seed=None):
        """Draw synthetic databases, (release, record), each from one randomly chosen draw of θ.

        Their ε counts on it: a release that used several draws would cost more.
        """


class Brief:
    """An object whose ``repr`` shows, in one line, the public settings that it names, alone."""

    def __repr__(self):
        def words(value):
            # a user's own synthesizer may show its records
            return (
                repr(value)
                if isinstance(value, (Brief, Censoring, dict))
                else shown(value)
            )

        settings = ", ".join(
            f"{name}={words(getattr(self, name))}" for name in self._public
        )
        return f"{type(self).__name__}({settings})"


class Model(Brief):
    """A model with ``log_likelihood_at``, whose fits keep the result under a name of their own."""

    def _fit_of(self, posterior, **groups):
        """A fit of these draws of θ: with the log-likelihoods there, and with further groups."""
        log_lik = self.log_likelihood_at(posterior).to_dataset(name=self._kept_as)
        return xr.DataTree.from_dict(
            {"posterior": posterior, "log_likelihood": log_lik} | groups
        )

    def log_likelihood(self, fit):
        """Log-likelihood of every record at every draw of a fit, an array (chain, draw, record)."""
        return fit["log_likelihood"][self._kept_as]


def choose_draws(posterior, releases, rng):
    """Pick draws of θ for the releases (step 3a), different ones while they last.

    Returns the chain and draw index of each release.
    """
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    total = math.prod(shape)
    return np.unravel_index(
        rng.choice(total, size=releases, replace=releases > total), shape
    )


def check_names(name, posterior, parameters):
    """Refuse draws of θ that lack one of these parameters."""
    lacking = [one for one in parameters if one not in posterior]
    if lacking:
        raise ValueError(
            f"{name} must hold every parameter of the model, {listed(parameters)}: "
            f"lacking {listed(lacking)}, got {listed([*posterior])}"
        )


def log_likelihood_from(evaluate, posterior, records):
    """Log-likelihood of every record at draws of θ, an `xarray.DataArray` (chain, draw, record).

    A large one is computed in blocks each time it is read, if dask is installed.

    ``evaluate`` computes a numpy.ndarray from a Dataset of draws, such as ``posterior``.
    """
    dims = ["chain", "draw"]
    shape = (*[posterior.sizes[d] for d in dims], records)
    coords = {d: posterior[d] for d in dims if d in posterior.coords}
    if 8 * math.prod(shape) <= HELD or find_spec("dask") is None:
        return xr.DataArray(evaluate(posterior), dims=(*dims, "record"), coords=coords)
    import dask.array

    def block(block_info=None):
        (chains, draws, _) = block_info[None]["array-location"]
        with _ONE_AT_A_TIME:
            return evaluate(posterior.isel(chain=slice(*chains), draw=slice(*draws)))

    chunks = dask.array.core.normalize_chunks(
        (1, max(1, _BLOCK // records), records), shape
    )
    values = dask.array.map_blocks(block, chunks=chunks, meta=np.empty((0, 0, 0)))
    return xr.DataArray(values, dims=(*dims, "record"), coords=coords)
