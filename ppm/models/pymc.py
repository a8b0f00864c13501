"""Any PyMC model as a synthesizer, fitted by NUTS and PyMC's other step methods."""

import logging
import warnings

import numpy as np
import pymc as pm
import xarray as xr

from ppm import own_terms
from ppm.checks import check_count, check_share
from ppm.seeds import generator, streams
from ppm.synthesizers import pymc_weights
from ppm.synthesizers.base import (
    Synthesizer,
    check_names,
    choose_draws,
    log_likelihood_from,
)
from ppm.synthesizers.progress import progress_bar
from ppm.terms import as_terms


class PyMCSynthesizer(Synthesizer):
    r"""Any PyMC model as a synthesizer, fitted by NUTS and PyMC's other step methods.

    The model's observed variables are the responses, with one row per record. Each record's
    log-likelihood is weighted; priors, potentials and predictive draws stay as they are. The model
    is copied: yours is never changed, and later changes to it have no effect here.

    Parameters
    ----------
    model : pymc.Model
        Its observed variables have the record as first dimension; the terms of several are added.
    chains : int, default 2
        Number of chains. PyMC's own sampler runs them one after another.
    warmup : int, default 1000
        Tuning steps per chain, which are discarded.
    target_accept : float, default 0.9
        Target acceptance probability of NUTS, where PyMC uses it; closer to 1 is slower and safer.
    public_potentials : sequence of str, default ()
        Names of potentials, such as those of a spatial prior. By naming one you assert that it
        holds nothing confidential and, with ``censor``, that it leaves every prior proper.

    Attributes
    ----------
    model : pymc.Model
        The copy, with the weights and limits of the latest fit. Its data cannot be changed.
    responses : tuple of str
        Names of the responses.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3: :math:`\prod_i p(x_i \mid \theta)^{\alpha_i}`
    takes the place of the likelihood. Refused are a model without such a product (no observed
    variable, responses of different lengths, one density for all records, minibatches), a response
    whose shape its parameters do not fit, or with an infinite value that has no density, a
    potential that depends on a response, repeats one or is not named, a model with discrete
    parameters only, a response that cannot be drawn, an ``initval`` that the model computes, and
    predictors with NaN or, as a constant index, a number below 0. Survey weights are no potential:
    they go to :class:`ppm.PseudoPosteriorMechanism` as ``weights``. A record's value is neither
    weighted nor bounded where the model uses it as a constant, such as last month's value in the
    mean of this month's.

    Missing entries of a masked response are imputed as parameters. A record contributes its
    observed entries only; one with none has log-likelihood 0. A predictor with missing entries,
    observed as a variable of the model, is a response too. A record with weight exactly 0
    contributes nothing, not even where its log-likelihood is -inf.

    With ``censor`` the weighted log-likelihood of a record, all its responses together, is one term
    between the limits, and NaN counts as the lower limit. A fit then refuses every model in which
    an observed value can be seen to reach more than its own record's term: a prior, another
    record's term, a response computed from several records, or the distribution of the releases. It
    also refuses what it cannot distinguish from these, a flat prior, and a prior that cannot be
    drawn from. That a ``pm.CustomDist`` is a proper prior is your word.

    What is tried depends on how the model was given. **Best is** :meth:`from_records`, a function
    that builds the model from the records: it is built again of public records with other values,
    and what moves is seen, however it was computed.

    Of a finished model the graph is read: observed variables, ``pm.Data`` that they are observed
    from, and constant arrays that hold a response or a column of it along any axis (except values
    in equal steps, as 0, 0, 0 or 0, 1, 2). **It cannot see other numbers that you computed from the
    records beforehand**: with a NumPy array ``y``, the mean in ``pm.Normal("mu", y.mean(), 1)``,
    ``observed=y - y.mean()``, the records in another order, and the value of the record before are
    constants like any others. **Nor can it see what a Python function of yours holds**, such as
    ``random=`` of a ``pm.CustomDist``. If there are such numbers, ε does not hold. Predictors, and
    which entries are missing, count as public.

    Discrete parameters, and those of a density without a gradient (an operation of your own, a
    ``pm.Simulator``), are moved by PyMC's other step methods, which easily get stuck: marginalise
    discrete parameters where you can. A simulator's density is drawn anew whenever it is read, so
    that no strict ε is given for it. With dask, a log-likelihood of more than 256 MiB is computed
    in blocks each time it is read. Importing this class keeps all that PyTensor compiles in memory,
    for a ``pm.sample`` of your own too; until then it writes observed values to files.

    Examples
    --------
    >>> import numpy as np, pymc as pm, ppm
    >>> with pm.Model() as model:
    ...     rate = pm.Gamma("rate", 2.0, 0.5)
    ...     y = pm.Poisson("y", rate, observed=np.array([3, 5, 4, 6, 20]))
    >>> synthesizer = ppm.PyMCSynthesizer(model)
    >>> synthesizer.records, synthesizer.responses
    (5, ('y',))
    """

    takes_limits = True
    _public = ("records", "chains", "warmup", "target_accept")

    def __init__(
        self,
        model,
        *,
        chains=2,
        warmup=1000,
        target_accept=0.9,
        public_potentials=(),
    ):
        if not isinstance(model, pm.Model):
            raise TypeError(f"model must be a pymc.Model; got {type(model).__name__}")
        self.chains = check_count("chains", chains)
        self.warmup = check_count("warmup", warmup, at_least=0)
        self.target_accept = check_share("target_accept", target_accept)
        self.model, self._smooth = pymc_weights.weighted(model, public_potentials)
        self._plain, self._read, self._passed = self.model.plain, None, set()
        self.records = self._plain.responses[0].records
        self.responses = tuple([response.name for response in self._plain.responses])
        self._own_terms = pymc_weights.check_own_terms
        self._kept_as = "_and_".join(self.responses)

    @classmethod
    def from_records(cls, build, records, *, example, confidential=None, **settings):
        """A synthesizer of the model that a function builds from the records.

        For a strict ε it is then tried on public records, by ``ppm.own_terms.check``, whether a
        record acts through its own term only. This sees what is computed from the records before
        they reach PyMC too, and a refusal tells nothing of the confidential records.

        Parameters
        ----------
        build : callable
            Function of the records that returns a `pymc.Model`. **Whatever is computed from the
            records must be computed in it**: what comes from outside counts as public.
        records : array_like (records, …) or pandas.DataFrame
            The confidential records. A data frame can have public columns beside them.
        example : array_like (records, …) or pandas.DataFrame
            **Public** records of the same form, made up or published, whose values reach as far as
            those of the confidential ones may. Two dozen are enough.
        confidential : sequence of str, optional
            Of data frames the columns that are not public.
        **settings
            As for :class:`ppm.PyMCSynthesizer`.

        Examples
        --------
        >>> import numpy as np, pymc as pm, ppm
        >>> def build(counts):
        ...     with pm.Model() as model:
        ...         rate = pm.Exponential("rate", 1.0 / counts.mean())
        ...         pm.Poisson("y", rate, observed=counts)
        ...     return model
        >>> synthesizer = ppm.PyMCSynthesizer.from_records(
        ...     build, np.array([3, 5, 4, 6, 20]), example=np.array([0, 1, 2, 4, 30])
        ... )
        >>> synthesizer.check_own_terms()
        Traceback (most recent call last):
            ...
        ValueError: build: a record's value reaches the prior of rate: for a strict epsilon a record
            must act through its own term only
        """
        made = cls(build(records), **settings)
        made._own_terms = lambda model: own_terms.check(
            lambda table: cls(build(table), **settings),
            example,
            confidential=confidential,
        )
        return made

    def fit(self, terms=None, *, draws=1000, random_seed=None, progress=None):
        """Draw from the pseudo posterior: the model is compiled at the first fit only.

        Parameters
        ----------
        terms : ppm.Terms or array_like (records,), optional
            What each record adds, or weights α. For smooth limits the model is compiled once more;
            they give NUTS a gradient everywhere.
        draws, random_seed, progress
            As for :meth:`ppm.Synthesizer.fit`, with ``draws`` kept in each chain.

        Returns
        -------
        xarray.DataTree
            Groups ``posterior``, ``log_likelihood`` (unweighted, by record) and ``sample_stats``.
        """
        draws = check_count("draws", draws)
        model = self._with(as_terms(terms, self.records))
        # other step methods would begin at an impossible place without a word
        if pm.NUTS not in model.steps:
            start = pymc_weights.at_start(model, model.logp())
            if not np.isfinite(start):
                raise self._impossible()
        try:
            # that a graph is too large for one loop costs time only
            warnings.filterwarnings("ignore", "Loop fusion failed")
            trace = self._sample(model, draws, random_seed, progress)
        except RuntimeError:
            # PyMC's message shows log-densities, which may reveal a record
            raise self._impossible() from None
        fit = {name: trace[name].to_dataset() for name in ("posterior", "sample_stats")}
        return self.fit_of(**fit)

    def _sample(self, model, draws, random_seed, progress):
        """PyMC's own result."""
        settings = {
            "tune": self.warmup,
            "chains": self.chains,
            "model": model,
            "random_seed": np.random.default_rng(*streams(random_seed, 1)),
            # whatever other samplers are installed: their seeds are short
            "nuts_sampler": "pymc",
            "compute_convergence_checks": False,
        }
        # PyMC takes no setting of a step method that it does not use
        if pm.NUTS in model.steps:
            settings["target_accept"] = self.target_accept
        with progress_bar(
            progress, self.chains * (self.warmup + draws), "draws"
        ) as advance:
            # PyMC's chains run in this process: forking a process with threads can deadlock
            return pm.sample(
                draws,
                cores=1,
                callback=lambda trace, draw: advance(1),
                progressbar=False,
                quiet=True,
                **settings,
            )

    def _impossible(self):
        """Error of a start at which the log-density is no finite number."""
        terms = pymc_weights.at_start(self.model, self.model.logp(sum=False)[0])
        wrong = np.flatnonzero(~np.isfinite(terms))
        what = f"record {wrong[0]}" if wrong.size else "the prior or a gradient"
        return ValueError(
            f"{what} is impossible at the model's initial values: correct it or "
            "the model, set initval=, or give the record weight 0"
        )

    def _with(self, terms):
        """The model with these terms."""
        limits, levels = terms.limits, terms.levels
        if limits is not None:
            self.check_own_terms()
            self._once(pymc_weights.check_proper)
        ends = (-np.inf, np.inf) if limits is None else (limits.low, limits.high)
        self.model.alpha.set_value(terms.weights)
        self.model.limits.set_value(np.array(ends))
        self.model.levels.set_value(
            np.zeros(self.records) if levels is None else levels
        )
        return self._smooth if limits is not None and limits.smooth else self.model

    def check_own_terms(self):
        """Refuse a model in which a record is seen to reach more than its own term: see Notes.

        After :meth:`from_records` the public example alone is looked at.
        """
        self._once(self._own_terms)

    def _points(self, number):
        """Values of the parameters: near the initial ones, and as many from the prior."""
        return pymc_weights.points(self.model, number)

    def _log_prior_at(self, posterior):
        """Log-prior of each parameter and potential, or other shapes of the parameters."""
        return pymc_weights.log_prior_at(self.model, posterior)

    def _once(self, check):
        if check not in self._passed:
            check(self.model)
            self._passed.add(check)

    def log_likelihood_at(self, posterior):
        """Log-likelihood of every record at draws of θ: see :class:`ppm.Synthesizer`."""
        names = [variable.name for variable in self.model.free_RVs]
        return log_likelihood_from(self._evaluate, posterior[names], self.records)

    def _evaluate(self, posterior):
        self._read = self._read or pymc_weights.reader(self._plain)
        log_lik = np.empty(
            (posterior.sizes["chain"], posterior.sizes["draw"], self.records)
        )
        values = {name: array.values for name, array in posterior.data_vars.items()}
        # no warnings about -inf and NaN, as with numba
        with np.errstate(all="ignore"):
            for index in np.ndindex(log_lik.shape[:2]):
                log_lik[index] = self._read(
                    {name: v[index] for name, v in values.items()}
                )
        return log_lik

    def check_parameters(self, name, posterior):
        """Refuse draws that lack a free variable; ``name`` is that of an argument."""
        check_names(
            name, posterior, [variable.name for variable in self.model.free_RVs]
        )

    def predict(self, fit, *, releases, random_seed=None):
        """Draw synthetic databases from the model's predictive distribution.

        Parameters
        ----------
        fit, releases, random_seed
            As for :meth:`ppm.GammaPoisson.predict`.

        Returns
        -------
        xarray.DataArray or xarray.Dataset
            An array (release, record, …), or a dataset of one for each of several responses. Every
            entry is drawn, including those that were missing. Predictors and coordinates of the
            records are not synthetic and left out.
        """
        releases = check_count("releases", releases)
        rng = generator(random_seed)
        imputed = {f"{name}_unobserved" for name in self.responses}
        known = [v.name for v in self.model.free_RVs if v.name not in imputed]
        posterior = fit["posterior"].to_dataset()[known]
        places = dict(
            zip(("chain", "draw"), choose_draws(posterior, releases, rng), strict=True)
        )
        picked = posterior.drop_vars([*places], errors="ignore")
        picked = picked.isel({name: ("draw", place) for name, place in places.items()})
        picked = picked.expand_dims("chain").assign_coords(
            chain=[0], draw=np.arange(releases)
        )
        logger = logging.getLogger("pymc.sampling.forward")
        level = logger.level
        logger.setLevel(logging.WARNING)
        try:
            predictive = pm.sample_posterior_predictive(
                xr.DataTree.from_dict({"posterior": picked}),
                model=self._plain,
                progressbar=False,
                var_names=[*self.responses, *known],
                freeze_vars=known,
                random_seed=int.from_bytes(rng.bytes(16)),
                compile_kwargs={"mode": pymc_weights.drawing_mode(self._plain)},
            )["posterior_predictive"]
        finally:
            logger.setLevel(level)
        # an interrupted PyMC returns, uninitialised, what it had neither drawn nor copied
        for name in known:
            copied = predictive[name].values if name in predictive else None
            wanted = picked[name].transpose("chain", "draw", ...)
            if not np.array_equal(copied, wanted, equal_nan=True):
                raise KeyboardInterrupt
        arrays = {}
        for name in self.responses:
            array = predictive[name].isel(chain=0, drop=True)
            if array.isnull().any():
                raise ValueError(
                    f"model draws NaN for {name}, which is no release: correct it"
                )
            array = array.rename({array.dims[0]: "release", array.dims[1]: "record"})
            # coordinates may identify records
            arrays[name] = array.drop_vars(["release", "record"], errors="ignore")
        return arrays[name] if len(arrays) == 1 else xr.Dataset(arrays)
