"""Any PyMC model as a synthesizer, fitted by NUTS.

PyMC 6 compiles with Numba by default, so that no C compiler is needed. What touches PyMC's
internals stands in :mod:`ppm.synthesizers.pymc_rewriting`.
"""

import logging
import warnings

import numpy as np
import pymc as pm
import xarray as xr

from ppm._random import generator, streams
from ppm._validation import check_count, check_number, check_weights, shown
from ppm.synthesizers import pymc_rewriting as rewriting
from ppm.synthesizers.base import choose_draws
from ppm.synthesizers.evaluated import log_likelihood_from


class PyMCSynthesizer:
    r"""Any PyMC model as a synthesizer, fitted by NUTS.

    The model is taken as it is written. Its observed variables are the responses, one row of each
    for every record; their log-likelihood is weighted record by record. Priors, potentials,
    deterministics, coordinates and predictive draws stay as they were. It is copied: the model
    itself is never changed, and what is changed in it later has no effect here.

    Parameters
    ----------
    model : pymc.Model
        A model with one or more observed variables, whose first dimension is the record. Several
        responses of the same length belong to the same records: their terms are added.
    chains : int, default 2
        Number of chains, run one after another.
    warmup : int, default 1000
        Tuning steps of each chain, thrown away.
    target_accept : float, default 0.9
        Acceptance probability NUTS aims at, between 0 and 1; closer to 1 is slower and safer.
    public_potentials : sequence of str, default ()
        Names of the model's potentials, such as a map's neighbourhoods. By naming one you vouch
        that it holds nothing confidential, and with ``censor`` that it leaves every prior proper.
    nuts_sampler : {"pymc", "nutpie"}, default "pymc"
        Whose NUTS draws: see the notes.

    Attributes
    ----------
    model : pymc.Model
        The rewritten copy, with the weights of the latest fit.
    weights_name : str
        Name of its weights, ``record_weights``; ``pymc.set_data`` changes them. Other data but
        ``record_limits`` must stay as they are: the bounds would not follow, so that :meth:`fit`
        and :meth:`predict` refuse.
    responses : tuple of str
        Names of the responses.

    Raises
    ------
    TypeError
        If ``model`` is not a PyMC model.
    ValueError
        If the model has no by-record likelihood: no observed variable, a likelihood written as a
        potential, responses of different lengths, one density for all records together (a random
        walk), minibatches, NaN among the data, missing values in a response whose observed part
        PyMC cannot separate; if a potential is not named or depends on a response; if NUTS
        has no parameter to move, because all are discrete or the density has no gradient; if a
        response cannot be drawn, as a ``CustomDist`` without ``random``; if it is the inner one of
        nested models; if an argument is out of range.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3: :math:`\prod_i p(x_i \mid \theta)^{\alpha_i}`
    takes the place of the likelihood. What a potential says of the records would be neither
    weighted nor bounded, so that a model is refused unless ``public_potentials`` names all of its
    potentials, and always if one depends on a response. Nor is a record's value weighted or bounded
    where the model uses it as a plain number, such as last month's value in the mean of this
    month's. Missing entries of a masked response are imputed as parameters. A record contributes
    its observed entries only; one with none has log-likelihood 0.

    A record with weight exactly 0 contributes nothing, not even where its log-likelihood is -inf.

    With ``censor`` the weighted log-likelihood of a record, all its responses together, is taken
    between the limits as one term, and NaN counts as the lower limit. A fit then refuses every
    model in which an observed value is seen to reach more than its own record's term: a prior, the
    term of another record, a response computed from the values of several records, or the
    distribution that releases are drawn from. It also refuses what it cannot tell from these, a
    flat prior, and one that cannot be drawn from. That a ``pm.CustomDist`` is a proper prior is
    your word.

    It sees observed variables, and ``pm.Data`` that responses are observed from. **It cannot see
    numbers that you computed from the records beforehand**: in ``pm.Normal("mu", y.mean(), 1)`` or
    ``observed=(y - y.mean()) / y.std()``, with a NumPy array ``y``, the mean is a constant like any
    other. That there is none is your word, and without it ε does not hold. Predictors, and which
    entries are missing, count as public.

    Discrete parameters beside continuous ones are moved by PyMC's own steps for them, which easily
    stick: sum them out where you can.

    A fit holds the draws of the parameters, and the log-likelihood of every record at every draw
    only where it takes 256 MiB or less (``ppm.synthesizers.evaluated.HELD``). A larger one is
    computed from the draws in blocks, anew each time it is read, so that memory does not grow with
    draws times records. The mechanism reads it once. It is an ``xarray.DataArray`` all the same:
    ``.load()`` holds it, and it cannot be pickled before that.

    What is compiled here stays in memory. A ``pm.sample`` of your own model leaves its observed
    values in files: see :func:`ppm.disclosure.output_table`. So does one of ``model`` with another
    sampler than PyMC's own, which PyMC takes by itself where nutpie is installed.

    Nutpie's NUTS, if asked for, takes longer to compile and less to draw: of models that are fitted
    once for seconds PyMC's own is done sooner, of those whose draws take minutes, or that are
    fitted again and again, nutpie's (``benchmarks/mechanism.py --nutpie`` at commit 873f84a). Its
    chains run at the same time, one on each core. It draws other chains for a seed, and no discrete
    parameters. It is never chosen by itself, so that results do not hang on what is installed.

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

    def __init__(
        self, model, *, chains=2, warmup=1000, target_accept=0.9, public_potentials=(),
        nuts_sampler="pymc",
    ):
        if not isinstance(model, pm.Model):
            raise TypeError(f"model must be a pymc.Model; got {type(model).__name__}")
        self.chains = check_count("chains", chains)
        self.warmup = check_count("warmup", warmup, at_least=0)
        self.target_accept = check_number("target_accept", target_accept, above=0)
        if self.target_accept >= 1:
            raise ValueError(f"target_accept must be below 1; got {shown(target_accept)}")
        self.nuts_sampler = _check_sampler(nuts_sampler, model)
        with rewriting.nothing_written():
            plain = rewriting.copied(model)
            # in the user's order, which copying does not keep
            terms = rewriting.find_terms(plain, [plain[v.name] for v in model.observed_RVs])
            rewriting.check_potentials(plain, public_potentials)
            rewriting.check_random(terms, plain.free_RVs)
            rewriting.check_gradient(plain)
            self._log_likelihood = rewriting.ByRecord(plain, terms)
            self._parameters = [
                v.name for v in plain.free_RVs if v.name not in {term.imputed for term in terms}
            ]
            self._plain = plain
            *self._models, names = rewriting.weighted(model, plain, terms)
        self.model, self._terms = self._models[0], terms
        self.weights_name, self._limits_name = names
        self.records = terms[0].records
        self.responses = tuple(term.response for term in terms)
        self._data = rewriting.shared_data(self.model, names)
        self._compiled, self._checked = {}, False

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False, censor=None):
        """Draw from the pseudo posterior by NUTS.

        Parameters
        ----------
        weights : array_like, shape (records,), optional
            Weights α, 0 or more; all 1 by default. The model is compiled at the first fit only.
        draws : int, default 1000
            Kept draws a chain.
        random_seed : int, SeedSequence or Generator, optional
            Source of randomness.
        progress : bool, default False
            Whether PyMC shows its progress bar and messages.
        censor : ppm.Censoring, optional
            Public limits of every record's weighted term: that of all its responses together.
            Smooth limits leave NUTS a gradient everywhere. The model is compiled for smooth limits,
            and for hard ones or none.

        Returns
        -------
        xarray.DataTree
            Groups ``posterior``, ``log_likelihood`` (unweighted, by record) and ``sample_stats``.

        Raises
        ------
        ValueError
            If an argument is out of range or the data of ``model`` were changed; with ``censor`` if
            a prior is flat or a record does more than its own term; without it if a record with
            a weight above 0 is impossible where the chains start.
        """
        self._check_data()
        draws = check_count("draws", draws)
        weights = np.ones(self.records) if weights is None else weights
        weights = check_weights(weights, self.records)
        model = self._limited(censor)
        pm.set_data({self.weights_name: weights}, model=model)
        settings = {
            "draws": draws, "chains": self.chains, "warmup": self.warmup,
            "target_accept": self.target_accept, "progress": progress,
        }
        rng = np.random.default_rng(*streams(random_seed, 1))
        try:
            if self.nuts_sampler == "nutpie":
                posterior, statistics = self._by_nutpie(model, rng, settings)
            else:
                trace = _sample(model, random_seed=rng, **settings)
                posterior, statistics = (
                    trace[group].to_dataset() for group in ("posterior", "sample_stats")
                )
        except RuntimeError:
            # PyMC's SamplingError is one, and so is what nutpie raises
            # its message names no record, but log-densities that one record may determine
            if censor is None:
                self._name_impossible_record(weights)
            raise
        log_lik = self.log_likelihood_at(posterior)
        return xr.DataTree.from_dict(
            {
                "posterior": posterior,
                "log_likelihood": log_lik.to_dataset(name="_and_".join(self.responses)),
                "sample_stats": statistics,
            }
        )

    def _by_nutpie(self, model, rng, settings):
        from ppm.synthesizers import pymc_nutpie

        if model.smooth not in self._compiled:
            self._compiled[model.smooth] = pymc_nutpie.compiled(model)
        data = {name: model[name].get_value() for name in model.own_names}
        seed = int(rng.integers(2**64, dtype=np.uint64))
        return pymc_nutpie.sample(self._compiled[model.smooth], data, seed=seed, **settings)

    def _limited(self, censor):
        """The model with these limits, or with none."""
        model = self._models[censor is not None and censor.smooth]
        if censor is not None and not self._checked:
            with rewriting.nothing_written():
                rewriting.check_strict(self._plain, self._terms)
            self._checked = True
        limits = (-np.inf, np.inf) if censor is None else (censor.low, censor.high)
        pm.set_data({self._limits_name: np.array(limits)}, model=model)
        return model

    def _check_data(self):
        for variable, value in self._data.items():
            if not np.array_equal(variable.get_value(borrow=True), value):
                raise ValueError(
                    f"{variable.name or 'data'} of the rewritten model was changed since the "
                    "synthesizer was made, and the bounds do not follow: change your own model "
                    "and make a new PyMCSynthesizer of it"
                )

    def _name_impossible_record(self, weights):
        with rewriting.nothing_written():
            by_response, _ = rewriting.log_densities(self.model, self._terms)
            for term, part in zip(self._terms, by_response, strict=True):
                finite = np.isfinite(rewriting.at_start(self.model, part))
                wrong = np.flatnonzero(~finite.reshape(len(finite), -1).all(axis=1))
                wrong = wrong if term.rows is None else term.rows[wrong]
                wrong = wrong[weights[wrong] > 0]
                if wrong.size:
                    raise ValueError(
                        f"record {wrong[0]} of {term.response} is impossible at the model's "
                        "initial values: correct it or the model, set initval=, or give it weight 0"
                    ) from None

    def log_likelihood(self, fit):
        """Log-likelihood of every record at every draw of a fit, an array (chain, draw, record)."""
        return fit["log_likelihood"]["_and_".join(self.responses)]

    def log_likelihood_at(self, posterior):
        """Log-likelihood of every record at draws of θ: see :class:`ppm.Synthesizer`."""
        names = [variable.name for variable in self._log_likelihood.model.free_RVs]
        return log_likelihood_from(self._evaluate, posterior[names], self.records)

    def _evaluate(self, posterior):
        # perhaps long after the fit
        self._check_data()
        with rewriting.nothing_written():
            return self._log_likelihood(posterior).values

    def predict(self, fit, *, releases, random_seed=None):
        """Draw synthetic databases from the model's predictive distribution.

        Parameters
        ----------
        fit : xarray.DataTree
            A fit of this synthesizer.
        releases : int
            Number of databases, each from another draw of the parameters while these last.
        random_seed : int, SeedSequence or Generator, optional
            Source of randomness.

        Returns
        -------
        xarray.DataArray or xarray.Dataset
            One response: an array (release, record) or, of a multivariate response, (release,
            record, …). Several responses: a dataset with such an array for each. Every entry is
            drawn, also the ones that were missing. Predictors and coordinates of the records are
            not synthetic and left out.

        Raises
        ------
        ValueError
            If ``releases`` is not a whole number of at least 1, or the data of ``model`` were
            changed.
        """
        self._check_data()
        releases = check_count("releases", releases)
        rng = generator(random_seed)
        posterior = fit["posterior"].to_dataset()[self._parameters]
        chain, draw = choose_draws(posterior, releases, rng)
        picked = posterior.drop_vars(["chain", "draw"], errors="ignore").isel(
            chain=xr.DataArray(chain, dims="draw"), draw=xr.DataArray(draw, dims="draw")
        )
        picked = picked.expand_dims("chain").assign_coords(chain=[0], draw=np.arange(releases))
        seed = int.from_bytes(rng.bytes(16))
        predictive = _predict(self.model, picked, self.responses, seed)
        arrays = {}
        for name in self.responses:
            array = predictive[name].isel(chain=0, drop=True)
            array = array.rename({array.dims[0]: "release", array.dims[1]: "record"})
            # the records' own coordinates may name them
            arrays[name] = array.drop_vars(["release", "record"], errors="ignore")
        return arrays[name] if len(arrays) == 1 else xr.Dataset(arrays)


def _check_sampler(nuts_sampler, model):
    """Return the name of a sampler that is installed and can move what the model has."""
    if nuts_sampler not in ("pymc", "nutpie"):
        raise ValueError(f"nuts_sampler must be 'pymc' or 'nutpie'; got {shown(nuts_sampler)}")
    if nuts_sampler == "nutpie":
        from ppm.synthesizers import pymc_nutpie  # noqa: F401

        discrete = ", ".join(
            sorted(v.name for v in model.discrete_value_vars)
        )
        if discrete:
            raise ValueError(
                f"nuts_sampler='nutpie' moves no discrete parameters ({discrete}): take 'pymc', or "
                "sum them out"
            )
    return nuts_sampler


def _sample(model, *, draws, chains, warmup, target_accept, random_seed, progress):
    """PyMC's own NUTS, one chain after another."""
    with model, rewriting.nothing_written():
        return pm.sample(
            draws,
            tune=warmup,
            chains=chains,
            # in this process: forking one that has threads can deadlock
            cores=1,
            random_seed=random_seed,
            nuts_sampler="pymc",
            target_accept=target_accept,
            progressbar=progress,
            quiet=not progress,
            compute_convergence_checks=progress,
        )


def _predict(model, posterior, names, seed):
    """Posterior predictive draws of some variables, quietly."""
    logger = logging.getLogger("pymc.sampling.forward")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with rewriting.nothing_written(), warnings.catch_warnings():
            # potentials shaped the posterior; given its draws they have no further say
            warnings.filterwarnings("ignore", message="The effect of Potentials")
            trace = pm.sample_posterior_predictive(
                xr.DataTree.from_dict({"posterior": posterior}),
                model=model,
                var_names=list(names),
                freeze_vars=list(posterior.data_vars),
                random_seed=seed,
                progressbar=False,
            )
    finally:
        logger.setLevel(level)
    return trace["posterior_predictive"].to_dataset()
