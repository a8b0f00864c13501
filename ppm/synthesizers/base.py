"""What the mechanism asks of a model, and what models share."""

import inspect
import math
import sys
import threading
from abc import ABC, abstractmethod
from importlib.util import find_spec

import numpy as np
import xarray as xr

from ppm.brief import Brief
from ppm.checks import listed
from ppm.scan import scan

#: bytes of the largest log-likelihood that is held in memory; dask computes larger ones when read
HELD = 1 << 28
# draws times records in a block
_BLOCK = 1 << 22
# settings of the mechanism, for messages
_OWN = "scale, shift, truncate_at, weights, censor, cap, independent_weights"
# tolerance between two computations of one log-likelihood, absolute and relative
_ROUNDING = 1e-6
# compiled functions hold the values they work on, and are not thread-safe
_ONE_AT_A_TIME = threading.RLock()


class Synthesizer(Brief, ABC):
    """A Bayesian model of a database, whose records' terms can be weighted or limited.

    A model of your own inherits from this class. It has ``records``, the number n of its records,
    and the methods :meth:`fit` and :meth:`predict`; what else there is has a default, and most
    models need a :meth:`log_likelihood_at` too.

    Attributes
    ----------
    records : int
        Number of records n.
    independent_draws : bool
        Whether draws come from no Markov chain; False by default. The fits of all other models are
        diagnosed before a bound is shown.
    takes_limits : bool
        Whether :meth:`fit` draws from the prior times the exponential of the sum of whatever
        ``terms`` it is given, limits included; False by default, and then a mechanism with limits
        refuses the model. A cap never cuts, and is taken all the same.
    public_set : str
        What is public about the parameters, in words, if they come from a finite public set over
        which :meth:`read` finds extremes; empty by default.
    secure_noise : bool
        Whether a program made for it draws the parameters, with the operating system's randomness.

    Notes
    -----
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
    The mean of a normal distribution with a standard deviation of 1, under a flat prior:

    >>> import numpy as np, ppm, xarray as xr
    >>> from scipy import stats
    >>> class Normal(ppm.Synthesizer):
    ...     independent_draws = True
    ...
    ...     def __init__(self, values):
    ...         self.values = np.asarray(values)
    ...         self.records = self.values.size
    ...
    ...     def fit(self, terms=None, *, draws=1000, random_seed=None, progress=None):
    ...         weights = ppm.terms.as_terms(terms, self.records).weights
    ...         total, rng = weights.sum(), np.random.default_rng(random_seed)
    ...         mean = rng.normal(weights @ self.values / total, total**-0.5, (1, draws))
    ...         return self.fit_of(xr.Dataset({"mean": (("chain", "draw"), mean)}))
    ...
    ...     def log_likelihood_at(self, posterior):
    ...         log_lik = stats.norm.logpdf(self.values, posterior["mean"].values[..., None])
    ...         return xr.DataArray(log_lik, dims=("chain", "draw", "record"))
    ...
    ...     def predict(self, fit, *, releases, random_seed=None):
    ...         rng = np.random.default_rng(random_seed)
    ...         mean = rng.choice(fit["posterior"]["mean"].values[0], (releases, 1))
    ...         values = rng.normal(mean, size=(releases, self.records))
    ...         return xr.DataArray(values, dims=("release", "record"))
    >>> result = ppm.PseudoPosteriorMechanism(Normal([0.3, -1.2, 4.0])).run(random_seed=1)
    >>> result.weights.round(2)
    array([1.  , 0.15, 0.  ])
    """

    def __init_subclass__(cls, **settings):
        super().__init_subclass__(**settings)
        if "public_set" in vars(cls) and cls.read is Synthesizer.read:
            raise TypeError(
                f"{cls.__name__} has a public_set and must have a read() that goes over all of it"
            )

    records: int
    independent_draws = False
    takes_limits = False
    public_set = ""
    secure_noise = False
    # name of the log-likelihood in a fit
    _kept_as = "records"

    @abstractmethod
    def fit(self, terms=None, *, draws=1000, random_seed=None, progress=None):
        """Draw θ from the prior times the exponential of the sum of these terms.

        ``terms`` are :class:`ppm.Terms`, or weights (records,), all 1 by default;
        ``ppm.terms.as_terms(terms, records)`` makes terms of either. ``draws`` counts the kept
        draws of each chain. Returns an ``xarray.DataTree`` with the groups ``posterior``
        (dimensions chain, draw, …) and ``log_likelihood`` (one variable, chain, draw, record,
        neither weighted nor limited): :meth:`fit_of` makes one.
        """

    @abstractmethod
    def predict(self, fit, *, releases, random_seed=None):
        """Draw synthetic databases, (release, record), each from one randomly chosen draw of θ.

        Their ε counts on it: a release that used several draws would cost more.
        """

    def log_likelihood_at(self, posterior):
        """Log-likelihood of the model's own records, (chain, draw, record), at draws of θ.

        A fit that the caller supplies is compared with it, and refused if it belongs to other
        records. Candidates and centers of limits need it.
        """
        raise NotImplementedError

    def fit_of(self, posterior, **groups):
        """A fit of these draws of θ: with the log-likelihoods there, and with further groups."""
        log_lik = self.log_likelihood_at(posterior).to_dataset(name=self._kept_as)
        return xr.DataTree.from_dict(
            {"posterior": posterior, "log_likelihood": log_lik} | groups
        )

    def log_likelihood(self, fit):
        """Log-likelihood of every record at every draw of a fit, an array (chain, draw, record)."""
        return next(iter(fit["log_likelihood"].data_vars.values()))

    def read(self, fit, terms=None):
        """Extremes of the records' log p, and sums and maxima of terms: `ppm.scan.scan`.

        Over the draws of the fit; where there is a ``public_set`` over all of it, whatever the fit.
        """
        return scan(self.log_likelihood(fit), terms)

    def check_own_terms(self):
        """Refuse a model in which a record is seen to reach more than its own term."""

    def check_parameters(self, name, posterior):
        """Refuse draws of θ that the model cannot have; ``name`` is that of an argument."""

    def candidates_drawn(self, fit):
        """Number of different candidates among a fit's draws; None without a finite set."""

    # what `ppm.own_terms` looks at, to see whether a record acts through its own term only

    def _points(self, number):
        """Values of the parameters, an xarray.Dataset (chain, draw, …)."""
        return self.fit(draws=number, random_seed=1)["posterior"].to_dataset()

    def _log_prior_at(self, posterior):
        """What tells one prior from another, by name: draws, here, under weights of 0."""
        fit = self.fit(np.zeros(self.records), draws=4, random_seed=1)
        return {name: x.values for name, x in fit["posterior"].data_vars.items()}

    def check_fit(self, fit, name):
        """Refuse a fit of other records than these; ``name`` is that of an argument.

        The log-likelihood of the first and last draw of each chain is computed again and compared,
        if there is a :meth:`log_likelihood_at`.
        """
        try:
            kept = self.log_likelihood(fit)
            ends = sorted({0, kept.sizes["draw"] - 1})
            kept = kept.isel(draw=ends).transpose("chain", "draw", ...).values
            posterior = fit["posterior"].to_dataset().isel(draw=ends)
            own = self.log_likelihood_at(posterior).transpose("chain", "draw", ...)
            same = kept.shape == own.shape and np.allclose(
                kept, own.values, rtol=_ROUNDING, atol=_ROUNDING, equal_nan=True
            )
            fault = None
        except NotImplementedError:
            return
        except (
            AttributeError,
            IndexError,
            KeyError,
            StopIteration,
            TypeError,
            ValueError,
        ) as error:
            # the fit of another model lacks what this one looks for
            same, fault = False, error
        if not same:
            raise ValueError(
                f"{name} is no fit of this synthesizer: its log-likelihoods are not those "
                "of the synthesizer's records; accepted: what its own fit() returned for "
                "these very records"
            ) from fault


def as_synthesizer(model, **settings):
    """Return a synthesizer as it is, and a PyMC model as a :class:`ppm.PyMCSynthesizer`."""
    # a PyMC model exists only where PyMC has been imported
    pymc = sys.modules.get("pymc")
    if pymc is not None and isinstance(model, pymc.Model):
        from ppm.synthesizers.pymc_model import PyMCSynthesizer

        known = [*inspect.signature(PyMCSynthesizer).parameters][1:]
        if unknown := ", ".join(name for name in settings if name not in known):
            raise TypeError(
                f"{unknown}: neither a setting of the mechanism ({_OWN}) nor of "
                f"PyMCSynthesizer ({', '.join(known)})"
            )
        return PyMCSynthesizer(model, **settings)
    if not isinstance(model, Synthesizer):
        kind = (
            f"the class {model.__name__}"
            if isinstance(model, type)
            else type(model).__name__
        )
        raise TypeError(
            "synthesizer must be a ppm.Synthesizer, such as ppm.GammaPoisson(counts) or a "
            f"model of your own that inherits from it, or a PyMC model; got {kind}"
        )
    if settings:
        raise TypeError(
            f"{', '.join(settings)}: no setting of the mechanism ({_OWN}); settings of "
            f"a model go with a PyMC model only, not with {type(model).__name__}"
        )
    return model


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
