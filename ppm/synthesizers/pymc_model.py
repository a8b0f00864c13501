"""Any PyMC model as a synthesizer, fitted by NUTS: the only module that touches PyMC.

PyMC 6 compiles with Numba by default, so that no C compiler is needed, and its own NUTS does: for
these small models nutpie was no faster, and it failed on the LKJ prior.

Compiled functions hold the records as constants, so everything here compiles within
:func:`_nothing_written`.
"""

import contextlib
import functools
import logging
import threading
import warnings
import weakref

import numpy as np
import pymc as pm
import pytensor
import pytensor.link.numba.cache
import pytensor.link.utils
import pytensor.tensor as pt
import xarray as xr
from pymc.data import MinibatchOp
from pymc.distributions.distribution import PartialObservedRV, SymbolicRandomVariable
from pymc.logprob.abstract import _logprob
from pymc.model.core import FrozenModel
from pymc.model.fgraph import (
    clone_model,
    fgraph_from_model,
    model_from_fgraph,
    model_named,
    model_observed_rv,
)
from pymc.model.transform.conditioning import remove_value_transforms
from pymc.model.transform.optimization import freeze_model
from pymc.pytensorf import toposort_replace
from pymc.step_methods.hmc.quadpotential import QuadPotentialDiagAdapt
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.compile import SharedVariable
from pytensor.gradient import NullTypeGradError, disconnected_type
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.graph.traversal import ancestors
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc, Join
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.rewriting.basic import register_specialize
from pytensor.tensor.subtensor import Subtensor

from ppm._random import generator
from ppm._validation import check_count, check_counts, check_number, check_weights, shown
from ppm.synthesizers.base import choose_draws
from ppm.synthesizers.gamma_poisson import GammaPoisson
from ppm.synthesizers.mixture.model import FiniteMixture, check_prior, check_regression
from ppm.synthesizers.mixture.numerics import LOG_2PI
from ppm.synthesizers.mixture.positions import check_initial, mixture_positions

_SUFFIX = "_log_likelihood"


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
        Names of potentials that hold an array with one row a record and yet nothing confidential,
        such as a map's neighbourhoods: see the notes.

    Attributes
    ----------
    model : pymc.Model
        The rewritten copy, with the weights of the latest fit.
    weights_name : str
        Name of its weights, ``record_weights``; ``pymc.set_data`` changes them. Other data must
        stay as they are: the bounds would not follow, so that :meth:`fit` and :meth:`predict`
        refuse.
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
        PyMC cannot separate; if a potential holds what may be a part of the likelihood; if NUTS
        has no parameter to move, because all are discrete or the density has no gradient; if a
        response cannot be drawn, as a ``CustomDist`` without ``random``; if it is the inner one of
        nested models; if an argument is out of range.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3: :math:`\prod_i p(x_i \mid \theta)^{\alpha_i}`
    takes the place of the likelihood. What a potential says of the records would be neither
    weighted nor bounded. A model is therefore refused if a potential depends on a response, or on
    any array of which one dimension is as long as there are records, unless ``public_potentials``
    names it. Nothing else can be seen: a total of the records worked out beforehand, or the values
    of some of them, is a number like any other. Nor is a record's value weighted or bounded where
    the model uses it as a plain number, such as last month's value in the mean of this month's. The
    missing entries of a masked response belong to the parameters, a record counts with what was
    observed of it, and a record of which nothing was has log-likelihood 0.

    A record with weight exactly 0 contributes nothing, not even where its log-likelihood is -inf.

    Discrete parameters beside continuous ones are moved by PyMC's own steps for them, which easily
    stick: sum them out where you can.

    What is compiled here stays in memory. A ``pm.sample`` of your own model leaves its observed
    values in files: see :func:`ppm.disclosure.output_table`.

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
        self, model, *, chains=2, warmup=1000, target_accept=0.9, public_potentials=()
    ):
        if not isinstance(model, pm.Model):
            raise TypeError(f"model must be a pymc.Model; got {type(model).__name__}")
        self.chains = check_count("chains", chains)
        self.warmup = check_count("warmup", warmup, at_least=0)
        self.target_accept = check_number("target_accept", target_accept, above=0)
        if self.target_accept >= 1:
            raise ValueError(f"target_accept must be below 1; got {shown(target_accept)}")
        with _nothing_written():
            plain = _copy(model)
            # in the user's order, which copying does not keep
            terms = _find_terms(plain, [plain[v.name] for v in model.observed_RVs])
            _check_potentials(plain, terms, public_potentials)
            _check_random(terms, plain.free_RVs)
            _check_gradient(plain)
            self._log_likelihood = _ByRecord(plain, terms)
            self.model, self.weights_name = _weighted_copy(model, plain, terms)
        self._terms = terms
        self.records = terms[0].records
        self.responses = tuple(term.response for term in terms)
        imputed = {term.imputed for term in terms}
        self._parameters = [v.name for v in plain.free_RVs if v.name not in imputed]
        self._data = _shared_data(self.model, self.weights_name)

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        """Draw from the pseudo posterior by NUTS.

        Parameters
        ----------
        weights : array_like, shape (records,), optional
            Weights α in [0, 1]; all 1 by default. The model is compiled at the first fit only.
        draws : int, default 1000
            Kept draws a chain.
        random_seed : int, SeedSequence or Generator, optional
            Source of randomness.
        progress : bool, default False
            Whether PyMC shows its progress bar and messages.

        Returns
        -------
        xarray.DataTree
            Groups ``posterior``, ``log_likelihood`` (unweighted, by record) and ``sample_stats``.

        Raises
        ------
        ValueError
            If an argument is out of range, the data of ``model`` were changed, or a record with
            a weight above 0 is impossible where the chains start.
        """
        self._check_data()
        draws = check_count("draws", draws)
        weights = np.ones(self.records) if weights is None else weights
        weights = check_weights(weights, self.records)
        with self.model:
            pm.set_data({self.weights_name: weights})
        try:
            trace = _sample(
                self.model,
                draws=draws,
                chains=self.chains,
                warmup=self.warmup,
                target_accept=self.target_accept,
                random_seed=random_seed,
                progress=progress,
            )
        except pm.exceptions.SamplingError:
            # PyMC's message names no record, but log-densities that one record may determine
            self._name_impossible_record()
            raise
        posterior = trace["posterior"].to_dataset()
        log_lik = self.log_likelihood_at(posterior)
        return xr.DataTree.from_dict(
            {
                "posterior": posterior,
                "log_likelihood": log_lik.to_dataset(name="_and_".join(self.responses)),
                "sample_stats": trace["sample_stats"].to_dataset(),
            }
        )

    def _check_data(self):
        for variable, value in self._data.items():
            if not np.array_equal(variable.get_value(borrow=True), value):
                raise ValueError(
                    f"{variable.name or 'data'} of the rewritten model was changed since the "
                    "synthesizer was made, and the bounds do not follow: change your own model "
                    "and make a new PyMCSynthesizer of it"
                )

    def _name_impossible_record(self):
        with _nothing_written():
            for term in self._terms:
                variable = self.model[term.variable.name]
                (log_lik,) = self.model.logp(vars=[variable], sum=False)
                finite = np.isfinite(_at_start(self.model, log_lik))
                wrong = np.flatnonzero(~finite.reshape(len(finite), -1).all(axis=1))
                if wrong.size:
                    record = wrong[0] if term.rows is None else term.rows[wrong[0]]
                    raise ValueError(
                        f"record {record} of {term.response} is impossible at the model's initial "
                        "values: correct it or the model, set initval=, or give it weight 0"
                    ) from None

    def log_likelihood(self, fit):
        """Log-likelihood of every record at every draw of a fit, an array (chain, draw, record)."""
        return fit["log_likelihood"]["_and_".join(self.responses)]

    def log_likelihood_at(self, posterior):
        """Log-likelihood of every record at draws of θ: see :class:`ppm.Synthesizer`."""
        with _nothing_written():
            return self._log_likelihood(posterior)

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
        predictive = _predict(self.model, picked, self.responses, int(rng.integers(2**31)))
        arrays = {}
        for name in self.responses:
            array = predictive[name].isel(chain=0, drop=True)
            array = array.rename({array.dims[0]: "release", array.dims[1]: "record"})
            # the records' own coordinates may name them
            arrays[name] = array.drop_vars(["release", "record"], errors="ignore")
        return arrays[name] if len(arrays) == 1 else xr.Dataset(arrays)


# ---- rewriting a model ------------------------------------------------------------------------


class _Term:
    """One observed variable: which records its entries belong to.

    ``rows`` is None where entry i of the first dimension is record i; of a masked response it is
    the record of every observed entry.
    """

    def __init__(self, variable, response, imputed, records, rows):
        self.variable, self.response, self.imputed = variable, response, imputed
        self.records, self.rows = records, rows


class _WeightedVariable(SymbolicRandomVariable):
    """An observed variable and its records' weights: the same draws, another log-density.

    PyMC finds the log-density below by this type, wherever it needs one.
    """


def _weighted(variable, weights):
    dummy, dummy_weights = variable.type(), weights.type()
    ndim_supp = getattr(variable.owner.op, "ndim_supp", 0)
    op = _WeightedVariable([dummy, dummy_weights], [dummy.copy()], ndim_supp=ndim_supp)
    return op(variable, weights)


@_logprob.register(_WeightedVariable)
def _weighted_log_density(op, values, variable, weights, **kwargs):
    log_lik = pm.logp(variable, values[0], **kwargs)
    log_lik = _without_gradient(log_lik, weights > 0)
    return _weigh(log_lik, pt.shape_padright(weights, log_lik.ndim - 1))


def _weigh(log_lik, weights):
    # a product alone would make NaN of weight 0 and log-likelihood -inf
    return pt.switch(weights > 0, weights * log_lik, 0.0)


class _OnlyGradientOf(Op):
    """Pass rows on as they are, and back only the gradients of some of them.

    An ordinary switch between two copies of the same thing would be simplified away.
    """

    __props__ = ()
    view_map = {0: [0]}

    def make_node(self, rows, takes_part):
        return Apply(self, [rows, takes_part], [rows.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0]

    def infer_shape(self, node, shapes):
        return [shapes[0]]

    def pullback(self, inputs, outputs, cotangents):
        rows, takes_part = inputs
        mask = pt.shape_padright(takes_part, rows.ndim - 1)
        return [pt.switch(mask, cotangents[0], 0.0), disconnected_type()]

    def connection_pattern(self, node):
        return [[True], [False]]


_only_gradient_of = _OnlyGradientOf()


@register_specialize
@node_rewriter([_OnlyGradientOf])
def _forget_after_differentiation(fgraph, node):
    return [node.inputs[0]]


def _without_gradient(log_lik, takes_part):
    """Same values, but records that take no part send no gradient to the parameters.

    A switch of the log-likelihood is not enough: its gradient 0 is multiplied by derivatives that
    may be infinite. PyTensor moves the switch behind most of them, but not behind a mixture's
    log-sum-exp. So the gradient is cut once more where parameters and predictors are turned into
    by-record quantities (a dot product, an index, a scalar shared by all), upstream of every
    operation that works record by record.
    """
    done, records = {}, log_lik.shape[0]

    def rewrite(variable):
        if variable not in done:
            done[variable] = rewritten(variable)
        return done[variable]

    def rewritten(variable):
        if isinstance(variable, (Constant, SharedVariable)) or variable.dtype == "bool":
            return variable
        node = variable.owner
        along = _record_inputs(variable) if node is not None else 0
        if along == 0:
            if variable.type.shape[0] == 1:
                # shared by all records: one copy for each, whose gradients are summed later
                others = [variable.shape[axis] for axis in range(1, variable.ndim)]
                variable = pt.alloc(variable, records, *others)
            return _only_gradient_of(variable, takes_part)
        inputs = node.inputs[:along]
        if type(node.op).__name__ in _ELEMENTWISE:
            inputs = [pt.shape_padleft(x, variable.ndim - x.ndim) for x in inputs]
        inputs = [rewrite(x) for x in inputs]
        new = node.op.make_node(*inputs, *node.inputs[along:])
        return new.outputs[node.outputs.index(variable)]

    return rewrite(log_lik)


# by name, since PyTensor has added and moved these from version to version
_ELEMENTWISE = ("XLogY", "XLog1PY", "LogAddExp")
_ALONG_AN_AXIS = ("Softmax", "LogSoftmax", "LogSumExp")


def _record_inputs(variable):
    """How many inputs, from the first on, hold one row a record if the output does; 0: unknown."""
    node, op = variable.owner, variable.owner.op
    name = type(op).__name__
    everything = len(node.inputs)
    if isinstance(op, Elemwise) or name in _ELEMENTWISE:
        return everything
    if isinstance(op, Blockwise):
        return everything if op.batch_ndim(node) > 0 else 0
    if isinstance(op, Join):
        return everything if op.axis not in (0, -variable.ndim) else 0
    if isinstance(op, CheckAndRaise):
        return 1
    if isinstance(op, Alloc):
        return int(node.inputs[0].ndim == variable.ndim)
    if isinstance(op, DimShuffle):
        return int(op.new_order[:1] == (0,))
    if isinstance(op, Subtensor):
        return int(op.idx_list[:1] == (slice(None),))
    if isinstance(op, CAReduce) or name in _ALONG_AN_AXIS:
        axes = np.atleast_1d(0 if op.axis is None else op.axis)
        return int(np.all(axes % node.inputs[0].ndim != 0))
    return 0


_settings, _guard = contextlib.ExitStack(), threading.Lock()
_compiling = 0


@contextlib.contextmanager
def _nothing_written(*, keep=False):
    """Compile in memory, without a trace of the records on any disk, and without a C compiler.

    PyTensor would keep the compiled functions in its folder under the user's home, with all records
    among their constants, and leave their generated source in the temporary folder, with the first
    and last values of every array in its comments. Both stay when the process has ended.

    ``keep`` is for models whose records are shared variables: what is compiled does not hold these,
    and PyTensor may keep it. A few small functions would go through a C compiler if there is one,
    and warn about a missing BLAS.

    PyTensor's settings hold for the whole process: the last thread to leave restores them.
    """
    global _compiling
    config = pytensor.config
    with _guard:
        if not _compiling:
            _settings.enter_context(config.change_flags(cxx="", numba__cache=config.numba__cache))
            for module in (pytensor.link.utils, pytensor.link.numba.cache):
                _settings.callback(
                    setattr, module, "write_generated_src", module.write_generated_src
                )
                module.write_generated_src = _not_written
        # once more for every thread, as one may have changed them in the meantime
        config.cxx = ""
        if not keep:
            config.numba__cache = False
        _compiling += 1
    try:
        yield
    finally:
        with _guard:
            _compiling -= 1
            if not _compiling:
                _settings.close()


def _not_written(source):
    """Name in the place of a file's, for tracebacks."""
    return "<generated by PyTensor>"


def _copy(model):
    """Copy of a model without its initial values, which PyMC's conversion refuses."""
    if model.parent is not None:
        raise ValueError("model is nested in another model: hand over the outer one")
    saved = dict(model.rvs_to_initial_values)
    try:
        model.rvs_to_initial_values.update(dict.fromkeys(saved))
        copy = clone_model(model)
    finally:
        model.rvs_to_initial_values.update(saved)
    copy.check_bounds = model.check_bounds
    return copy


def _find_terms(model, observed):
    """Observed variables of a model, with their records."""
    if not observed:
        if model.potentials:
            raise ValueError(
                "model has no observed variable, only potentials: write the likelihood as a "
                "distribution with observed=, for example pm.CustomDist"
            )
        raise ValueError("model has no observed variable: give its response observed=data")
    terms = [_find_term(model, variable) for variable in observed]
    lengths = {term.response: term.records for term in terms}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(
            f"responses have different lengths ({listed}): every observed variable must have one "
            "row a record; put known constants in as plain numbers, not as observed variables"
        )
    return terms


def _find_term(model, variable):
    name, value = variable.name, model.rvs_to_values[variable]
    node = variable.owner
    sources = [x.owner.op for x in ancestors([value]) if x.owner is not None]
    if isinstance(node.op, MinibatchRandomVariable) or any(
        isinstance(op, MinibatchOp) for op in sources
    ):
        raise ValueError(f"{name} is a minibatch or has total_size: give it all records instead")
    if isinstance(node.op, PartialObservedRV):
        raise ValueError(
            f"{name.removesuffix('_observed')} has missing values that PyMC cannot separate from "
            "the observed ones: leave those records out, or model each column by its own response"
        )
    data = value.eval(mode="FAST_COMPILE") if not isinstance(value, Constant) else value.data
    if getattr(data, "ndim", 0) == 0 or data.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be observed as an array of numbers with one row a record; "
            f"got {type(data).__name__} of shape {np.shape(data)} and type {data.dtype}"
        )
    if data.size == 0:
        raise ValueError(f"{name} is empty: observe one row a record")
    missing = np.flatnonzero(np.isnan(data).reshape(len(data), -1).any(axis=1))
    if missing.size:
        raise ValueError(
            f"{name} holds NaN (first in record {missing[0]}): observe a masked array instead, or "
            "leave those records out"
        )
    full = _masked_response(model, variable)
    if full is None:
        term = _Term(variable, name, None, len(data), None)
    else:
        observed = clone_replace(
            full, {variable: pt.ones(data.shape, variable.dtype), **_zeros(model, full)}
        ).eval(mode="FAST_COMPILE")
        # a mask of whole rows leaves whole rows of the response
        observed = observed[(...,) + (0,) * (data.ndim - 1)] > 0
        term = _Term(variable, full.name, f"{full.name}_unobserved", len(observed), None)
        term.rows = np.nonzero(observed)[0]
    (log_lik,) = model.logp(vars=[variable], sum=False, jacobian=False)
    length = log_lik.type.shape[0] if log_lik.ndim else 0
    if length is None:
        length = len(_at_start(model, log_lik))
    if length != len(data):
        raise ValueError(
            f"{name} has one density for all its {len(data)} rows together, as a random walk or "
            "one multivariate normal over the records has: write it with one term a record, "
            "independent given the parameters"
        )
    return term


def _masked_response(model, variable):
    """Full response of which PyMC made ``variable`` the observed part, if it did."""
    name = variable.name.removesuffix("_observed")
    full, imputed = model.named_vars.get(name), model.named_vars.get(f"{name}_unobserved")
    if name == variable.name or full is None or imputed is None:
        return None
    return full if variable in ancestors([full]) else None


def _zeros(model, full):
    imputed = model[f"{full.name}_unobserved"]
    return {imputed: pt.zeros(imputed.shape, imputed.dtype)}


def _at_start(model, graph):
    """Value of a graph at the model's initial point."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        return model.compile_fn(
            graph, inputs=model.value_vars, on_unused_input="ignore"
        )(model.initial_point())


def _check_potentials(model, terms, public):
    """Refuse potentials that may hold a part of the likelihood."""
    names = {variable.name for variable in model.potentials}
    if isinstance(public, str) or not {*public} <= names:
        raise ValueError(
            f"public_potentials must be a list of potentials of the model; got {shown(public)}; "
            f"accepted: {', '.join(sorted(names)) or 'none, the model has no potential'}"
        )
    records = terms[0].records
    values = [model.rvs_to_values[variable] for variable in model.observed_RVs]
    values = {*values, *(v for v in ancestors(values) if isinstance(v, SharedVariable))}
    for potential in model.potentials:
        # parameters may well depend on predictors, one row a record
        found = set(ancestors([potential], blockers=model.free_RVs))
        responses = [v.name for v in model.observed_RVs if v in found]
        if responses or values & found:
            raise ValueError(
                f"potential {potential.name} depends on {', '.join(responses) or 'a response'}, "
                "where the records would be neither weighted nor bounded: write it as a "
                "distribution with observed=, for example pm.CustomDist"
            )
        if potential.name not in public and any(_has_row_a_record(v, records) for v in found):
            raise ValueError(
                f"potential {potential.name} holds an array as long as the {records} records, "
                "which would be neither weighted nor bounded: write a likelihood as a distribution "
                f'with observed=, or say public_potentials=["{potential.name}"] to '
                "ppm.PyMCSynthesizer if nothing in it is confidential"
            )


def _has_row_a_record(variable, records):
    if isinstance(variable, Constant):
        return records in np.shape(getattr(variable, "data", None))
    if isinstance(variable, SharedVariable):
        return records in np.shape(variable.get_value(borrow=True))
    return False


def _check_random(terms, parameters):
    """Refuse responses that cannot be drawn: there would be nothing to release."""
    imputed = {term.imputed for term in terms}
    known = [v for v in parameters if v.name not in imputed]
    for term in terms:
        for variable in ancestors([term.variable], blockers=known):
            op = variable.owner.op if variable.owner is not None else None
            random = getattr(op, "_random_fn", None)
            # PyMC puts a function that only raises where the user gave none
            if getattr(random, "__qualname__", "").startswith("default_not_implemented"):
                raise ValueError(
                    f"{term.response} rests on a CustomDist that cannot be drawn from, so that "
                    "nothing could be released: give it random= or dist="
                )


def _check_gradient(model):
    """Refuse models without a single parameter that NUTS can move."""
    if not model.free_RVs:
        raise ValueError("model has no parameter: there is nothing to draw")
    if not model.continuous_value_vars:
        discrete = ", ".join(sorted(v.name for v in model.free_RVs))
        raise ValueError(
            f"model has discrete parameters only ({discrete}), which NUTS cannot move: sum them "
            "out, for example with pm.Mixture"
        )
    density = model.logp()
    for value in model.continuous_value_vars:
        try:
            pytensor.grad(density, value)
        except (NotImplementedError, NullTypeGradError):
            continue
        return
    raise ValueError(
        "model has a log-density without a gradient, which NUTS cannot do without: write it in "
        "PyTensor's operations, or give your own the method pullback"
    )


def _shared_data(model, weights_name):
    """Values of all data of a model that somebody could change, but for the weights."""
    parts = [*model.basic_RVs, *model.potentials, *model.deterministics]
    parts += [model.rvs_to_values[variable] for variable in model.observed_RVs]
    return {
        variable: variable.get_value()
        for variable in ancestors(parts)
        if isinstance(variable, SharedVariable)
        and isinstance(variable.type, pt.TensorType)
        and variable.name != weights_name
    }


def _weighted_copy(model, plain, terms):
    """Copy of a model with weighted responses and its initial values, and the weights' name."""
    name = "record_weights"
    while name in plain.named_vars or name in plain.coords:
        name = f"_{name}"
    records = terms[0].records
    # the known length spares compiling a check of it
    weights = model_named(pytensor.shared(np.ones(records), name=name, shape=(records,)), name)
    graph, memo = fgraph_from_model(plain)
    replacements = []
    for term in terms:
        old = memo[term.variable]
        variable, value = old.owner.inputs
        by_entry = weights if term.rows is None else weights[term.rows]
        new = _weighted(variable, by_entry)
        op = old.owner.op
        replacements.append((old, model_observed_rv(new, value, op.name, *op.dims)))
    graph.add_output(weights, import_missing=True)
    toposort_replace(graph, replacements)
    copy = model_from_fgraph(graph, mutate_fgraph=True)
    for variable, start in model.rvs_to_initial_values.items():
        if isinstance(start, Variable):
            if set(model.basic_RVs) & set(ancestors([start])):
                raise ValueError(
                    f"initial value of {variable.name} depends on other variables, which PyMC no "
                    "longer supports: give numbers"
                )
            start = start.eval(mode="FAST_COMPILE")
        copy.set_initval(copy[variable.name], start)
    copy.check_bounds = model.check_bounds
    if copy[name] in ancestors(copy.free_RVs):
        # a parameter whose prior holds a response: freezing would make the weights constant
        copy.__class__ = _Unfrozen
        return copy, name
    frozen = freeze_model(copy)
    frozen.__class__ = _Rewritten
    frozen.check_bounds = model.check_bounds
    return frozen, name


class _InMemory:
    """A model that compiles in memory only, whoever asks it to."""

    def _logp_dlogp_function(self, *args, **kwargs):
        with _nothing_written():
            return super()._logp_dlogp_function(*args, **kwargs)

    def compile_fn(self, *args, **kwargs):
        with _nothing_written():
            return super().compile_fn(*args, **kwargs)


class _Unfrozen(_InMemory, pm.Model):
    """A rewritten model that compiles for every fit."""


class _Rewritten(_InMemory, FrozenModel):
    """A rewritten model that compiles everything once."""

    def _logp_dlogp_function(self, *args, **kwargs):
        # PyMC would hand out copies, which compile again; a synthesizer makes one fit at a time,
        # and every fit sets what the function remembers
        with _nothing_written():
            return self._cached_logp_dlogp_function(*args, **kwargs)

    @functools.cached_property
    def unobserved_value_vars(self):
        # the same graphs every time, so that what is traced compiles once too
        return super().unobserved_value_vars


class _ByRecord:
    """Unweighted log-likelihood of every record, compiled at the first use."""

    def __init__(self, model, terms):
        self.model, self.terms, self.function = remove_value_transforms(model), terms, None
        self.model.check_bounds = model.check_bounds

    def __call__(self, posterior):
        if self.function is None:
            self.function = self.compile()
        values = {v.name: posterior[v.name].values for v in self.model.free_RVs}
        shape = (posterior.sizes["chain"], posterior.sizes["draw"])
        # draw by draw into the result: nothing else grows with the number of draws
        log_lik = np.empty((*shape, self.terms[0].records))
        for index in np.ndindex(shape):
            log_lik[index] = self.function({name: value[index] for name, value in values.items()})
        coords = {name: posterior[name] for name in ("chain", "draw") if name in posterior.coords}
        return xr.DataArray(log_lik, dims=("chain", "draw", "record"), coords=coords)

    def compile(self):
        observed = [self.model[term.variable.name] for term in self.terms]
        total = 0.0
        parts = self.model.logp(vars=observed, sum=False, jacobian=False)
        for term, part in zip(self.terms, parts, strict=True):
            part = part.astype("float64").sum(axis=tuple(range(1, part.ndim)))
            if term.rows is not None:
                part = pt.zeros(term.records)[term.rows].inc(part)
            total = total + part
        return self.model.compile_fn(
            total, inputs=self.model.value_vars, on_unused_input="ignore"
        )


# ---- sampling ---------------------------------------------------------------------------------


def _sample(
    model, *, draws, chains, warmup, target_accept, random_seed, progress, positions=None
):
    """PyMC's own NUTS, one chain after another.

    ``positions`` are values of all free variables, each (chain, draw, …): chains start at the last
    draws, with the variances of all as the first mass matrix.
    """
    seeds = generator(random_seed).integers(2**31, size=chains).tolist()
    with model, _nothing_written(keep=model in _with_shared_records):
        start = {"target_accept": target_accept}
        if positions is not None:
            start = {
                "step": _step(model, positions, target_accept),
                "initvals": [
                    {name: v[chain % len(v), -1] for name, v in positions.items()}
                    for chain in range(chains)
                ],
            }
        return pm.sample(
            draws,
            tune=warmup,
            chains=chains,
            # in this process: forking one that has threads can deadlock
            cores=1,
            random_seed=seeds,
            nuts_sampler="pymc",
            **start,
            progressbar=progress,
            quiet=not progress,
            compute_convergence_checks=progress,
        )


def _step(model, positions, target_accept):
    """NUTS whose mass matrix begins with the variances of some positions."""
    draws = []
    for variable in model.free_RVs:
        values, transform = positions[variable.name], model.rvs_to_transforms[variable]
        if transform is not None:
            constrained = variable.type()
            forward = pytensor.function(
                [constrained],
                transform.forward(constrained, *variable.owner.inputs),
                mode="FAST_COMPILE",
            )
            values = np.array([[forward(value) for value in chain] for chain in values])
        draws.append(values.reshape(*values.shape[:2], -1))
    # in the order of the model's values, as NUTS strings them together
    draws = np.concatenate(draws, axis=-1)
    count = draws.shape[0] * draws.shape[1]
    # within chains; a little towards a small number, as Stan does, for few draws
    variances = (count * draws.var(axis=1).mean(axis=0) + 5e-3) / (count + 5.0)
    potential = QuadPotentialDiagAdapt(
        variances.size, draws.mean(axis=(0, 1)), variances, min(count, 100)
    )
    return pm.NUTS(potential=potential, target_accept=target_accept)


def _predict(model, posterior, names, seed):
    """Posterior predictive draws of some variables, quietly."""
    logger = logging.getLogger("pymc.sampling.forward")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with _nothing_written(), warnings.catch_warnings():
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


# ---- the book's synthesizers as PyMC models ----------------------------------------------------


def gamma_poisson_model(counts, *, shape=0.001, rate=0.001, weights=None):
    r"""Pseudo posterior of Poisson counts with a Gamma prior for their mean, as a PyMC model.

    Parameters
    ----------
    counts : array_like of int, shape (records,)
        The confidential counts, whole numbers >= 0.
    shape, rate : float, default 0.001
        Gamma prior of the mean μ, both above 0.
    weights : array_like, shape (records,), optional
        Weights α in [0, 1]; all 1 by default. They are the model's data ``weights``, which
        ``pymc.set_data`` can change.

    Returns
    -------
    pymc.Model
        With the free variable ``mu`` and the by-record ``counts_log_likelihood``.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    The model of Savitsky, Williams and Hu (2022), section 4; in closed form it is
    :class:`ppm.GammaPoisson`.
    """
    counts = check_counts("counts", counts)
    shape = check_number("shape", shape, above=0)
    rate = check_number("rate", rate, above=0)
    with pm.Model(coords={"record": np.arange(counts.size)}) as model:
        mu = pm.Gamma("mu", alpha=shape, beta=rate)
        counts = pm.Data("counts", counts, dims="record")
        _pseudo_likelihood("counts", pm.logp(pm.Poisson.dist(mu), counts), weights)
    return model


def finite_mixture_model(
    response,
    predictors,
    *,
    components=10,
    weights=None,
    correlation="lkj",
    centred=False,
    concentration_prior=(1.0, 1.0),
    coefficient_df=3.0,
    coefficient_scale=1.0,
    residual_df=3.0,
    residual_scale=1.0,
):
    r"""Pseudo posterior of the finite mixture of regressions, as a PyMC model without labels.

    Parameters
    ----------
    response, predictors, components
        As for :class:`ppm.FiniteMixture`.
    weights : array_like, shape (records,), optional
        Weights α in [0, 1]; all 1 by default. They are the model's data ``weights``, which
        ``pymc.set_data`` can change.
    correlation : {"lkj", "huang-wand"}
        Prior of the correlation matrix of the coefficients: the paper's uniform LKJ(1), or exactly
        the prior of :class:`ppm.FiniteMixture`.
    centred : bool, default False
        In which variables NUTS moves, which does not change the posterior: standard normals that
        are turned into the coefficients, or the coefficients themselves. The first suits few
        records. With hundreds of records in a component the second took far shorter paths.
    concentration_prior, coefficient_df, coefficient_scale, residual_df, residual_scale
        As for :class:`ppm.FiniteMixture`.

    Returns
    -------
    pymc.Model
        With ``pi``, ``beta``, ``sigma``, ``concentration``, ``coefficient_scale`` and the by-record
        ``response_log_likelihood``, the labels summed out.

    Raises
    ------
    ValueError
        If an argument has the wrong shape or is out of range.

    Notes
    -----
    Savitsky, Williams and Hu (2022), appendix B. NUTS explores this posterior well on tens of
    records and two or three components. On thousands of records and ten components its chains were
    seen to stick for hundreds of draws: use :class:`ppm.FiniteMixture` there.
    """
    response, predictors = check_regression(response, predictors)
    components = check_count("components", components)
    records, size = predictors.shape
    prior = check_prior(
        size,
        concentration_prior=concentration_prior,
        coefficient_df=coefficient_df,
        coefficient_scale=coefficient_scale,
        residual_df=residual_df,
        residual_scale=residual_scale,
    )
    if correlation not in ("lkj", "huang-wand"):
        raise ValueError(f"correlation must be 'lkj' or 'huang-wand'; got {shown(correlation)}")
    coords = {
        "component": np.arange(components),
        "predictor": np.arange(size),
        "record": np.arange(records),
    }
    with pm.Model(coords=coords) as model:
        log_pi = _sparse_dirichlet(components, prior)
        root, inverse = (_lkj_root if correlation == "lkj" else _huang_wand_root)(size, prior)
        dims = ("component", "predictor")
        if centred:
            beta = pm.Flat("beta", dims=dims)
            log_density = -0.5 * ((beta @ inverse) ** 2).sum()
            log_determinant = pt.log(pt.diag(inverse)).sum()
            pm.Potential("beta_prior", log_density + components * log_determinant)
        else:
            # on few records NUTS met a funnel in the coefficients themselves
            standard = pm.Normal("beta_standard", dims=dims)
            beta = pm.Deterministic("beta", standard @ root.T, dims=dims)
        pm.Deterministic("coefficient_scale", pt.sqrt((root**2).sum(axis=1)), dims="predictor")
        sigma = pm.HalfStudentT(
            "sigma", nu=prior.residual_df, sigma=prior.residual_scale, dims="component"
        )
        response = pm.Data("response", response, dims="record")
        predictors = pm.Data("predictors", predictors, dims=("record", "predictor"))
        residual = (response - beta @ predictors.T) / sigma[:, None]
        log_density = -0.5 * residual**2 - pt.log(sigma)[:, None] - 0.5 * LOG_2PI
        mixture = pt.logsumexp(log_pi[:, None] + log_density, axis=0)
        _pseudo_likelihood("response", mixture, weights)
    return model


def _pseudo_likelihood(name, log_likelihood, weights):
    """Add by-record log-likelihood, weights and their weighted sum to the model in context."""
    records = len(pm.modelcontext(None).coords["record"])
    weights = np.ones(records) if weights is None else check_weights(weights, records)
    weights = pm.Data("weights", weights, dims="record")
    log_likelihood = pm.Deterministic(name + _SUFFIX, log_likelihood, dims="record")
    pm.Potential("pseudo_likelihood", _weigh(log_likelihood, weights).sum())
    _with_shared_records.add(pm.modelcontext(None))


# models all of whose records are shared variables, which compiled functions do not hold
_with_shared_records = weakref.WeakSet()


def _sparse_dirichlet(components, prior):
    """Log of Dirichlet(a/K, …) weights with a ~ Gamma.

    A Gamma(a/K) variable is Gamma(a/K + 1) times a power of a uniform one. In logs that neither
    underflows nor bends the space as Dirichlet coordinates do near its corners.
    """
    concentration = pm.Gamma(
        "concentration", alpha=prior.concentration_shape, beta=prior.concentration_rate
    )
    each = concentration / components
    gamma = pm.Gamma("pi_gamma", alpha=each + 1.0, beta=1.0, dims="component")
    exponential = pm.Exponential("pi_exponential", 1.0, dims="component")
    log_gamma = pt.log(gamma) - exponential / each
    log_pi = log_gamma - pt.logsumexp(log_gamma)
    pm.Deterministic("pi", pt.exp(log_pi), dims="component")
    return log_pi


def _lkj_root(size, prior):
    """Square root C of a covariance C C' with half-t scales and a uniform correlation matrix.

    With it comes the inverse of C'.
    """
    scale = pm.HalfStudentT.dist(nu=prior.coefficient_df, sigma=prior.coefficient_scale, size=size)
    if size == 1:
        scale = pm.HalfStudentT(
            "coefficient_sd", nu=prior.coefficient_df, sigma=prior.coefficient_scale, shape=1
        )
        return scale[:, None], 1.0 / scale[:, None]
    root, _, _ = pm.LKJCholeskyCov(
        "coefficient_covariance", eta=1.0, n=size, sd_dist=scale, compute_corr=True
    )
    return root, pt.linalg.solve_triangular(root, pt.eye(size), lower=True).T


def _huang_wand_root(size, prior):
    """Square root of a covariance from the scale mixture of inverse Wishart distributions.

    The precision is D A A' D: A of Bartlett's decomposition with ν + R - 1 degrees of freedom,
    D² = auxiliaries / (2ν). With the root C comes the inverse of C', which is D A.
    """
    df = prior.coefficient_df
    aux = pm.InverseGamma("coefficient_aux", alpha=0.5, beta=prior.coefficient_scale**-2.0)
    squares = pm.ChiSquared("bartlett_squares", df + size - 1.0 - np.arange(size))
    bartlett = pt.diag(pt.sqrt(squares))
    if size > 1:
        below = pm.Normal("bartlett_below", shape=size * (size - 1) // 2)
        bartlett = bartlett[np.tril_indices(size, -1)].set(below)
    inverse = pt.sqrt(aux / (2.0 * df))[:, None] * bartlett
    return pt.linalg.solve_triangular(inverse, pt.eye(size), lower=True).T, inverse


def fit_pymc(
    model,
    *,
    draws=1000,
    chains=2,
    warmup=1000,
    random_seed=None,
    progress=False,
    positions=None,
):
    """Fit a model of this module by NUTS.

    Parameters
    ----------
    model : pymc.Model
        A model with one by-record deterministic variable whose name ends in ``_log_likelihood``.
    draws : int, default 1000
        Kept draws a chain.
    chains : int, default 2
        Number of chains, run one after another.
    warmup : int, default 1000
        Tuning steps of each chain, thrown away.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.
    progress : bool, default False
        Whether PyMC shows its progress bar and messages.
    positions : dict of array_like, shape (chain, draw, …), optional
        Draws of all free variables. Chains start at the last ones, and the mass matrix begins with
        the variances within their chains. By default PyMC's own start.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior``, ``log_likelihood`` (unweighted, by record) and ``sample_stats``.

    Raises
    ------
    ValueError
        If the model has no such variable, or a number is out of range.
    """
    draws = check_count("draws", draws)
    chains = check_count("chains", chains)
    warmup = check_count("warmup", warmup, at_least=0)
    names = [v.name for v in model.deterministics if v.name.endswith(_SUFFIX)]
    if len(names) != 1:
        raise ValueError(
            "model must have one by-record deterministic variable with a name ending in "
            f"{_SUFFIX!r}; it has {len(names)}"
        )
    trace = _sample(
        model,
        draws=draws,
        chains=chains,
        warmup=warmup,
        # smaller steps than PyMC's 0.8: the mixture's posterior has narrow places
        target_accept=0.95,
        random_seed=random_seed,
        progress=progress,
        positions=positions,
    )
    posterior = trace["posterior"].to_dataset()
    log_lik = posterior[names[0]].rename(names[0].removesuffix(_SUFFIX))
    return xr.DataTree.from_dict(
        {
            "posterior": posterior.drop_vars(names[0]),
            "log_likelihood": log_lik.to_dataset(),
            "sample_stats": trace["sample_stats"].to_dataset(),
        }
    )


class PyMCGammaPoisson:
    """Gamma-Poisson synthesizer fitted by NUTS: the same pseudo posterior as the closed form.

    Parameters
    ----------
    counts, shape, rate
        As for :func:`gamma_poisson_model`.
    chains, warmup : int, default 2 and 1000
        As for :func:`fit_pymc`.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """

    def __init__(self, counts, *, shape=0.001, rate=0.001, chains=2, warmup=1000):
        self._closed_form = GammaPoisson(counts, shape=shape, rate=rate)
        self.chains = check_count("chains", chains)
        self.warmup = check_count("warmup", warmup, at_least=0)

    @property
    def records(self):
        """Number of records n."""
        return self._closed_form.records

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        """Draw from the pseudo posterior: see :func:`fit_pymc`."""
        same = self._closed_form
        model = gamma_poisson_model(same.counts, shape=same.shape, rate=same.rate, weights=weights)
        return fit_pymc(
            model,
            draws=draws,
            chains=self.chains,
            warmup=self.warmup,
            random_seed=random_seed,
            progress=progress,
        )

    def log_likelihood(self, fit):
        """Log-likelihood of every record at every draw of a fit, an array (chain, draw, record)."""
        return self._closed_form.log_likelihood(fit)

    def log_likelihood_at(self, posterior):
        """Log-likelihood of every record at draws of μ: see :class:`ppm.Synthesizer`."""
        return self._closed_form.log_likelihood_at(posterior)

    def predict(self, fit, *, releases, random_seed=None):
        """Draw synthetic databases of counts: see :meth:`ppm.GammaPoisson.predict`."""
        return self._closed_form.predict(fit, releases=releases, random_seed=random_seed)


class PyMCFiniteMixture:
    """Finite mixture of regressions fitted by NUTS, for tens of records and few components.

    Parameters
    ----------
    response, predictors, components, correlation, centred
        As for :func:`finite_mixture_model`.
    chains, warmup : int, default 2 and 1000
        As for :func:`fit_pymc`.
    **prior
        The prior settings of :func:`finite_mixture_model`.

    Raises
    ------
    ValueError
        If an argument has the wrong shape or is out of range.
    """

    def __init__(
        self,
        response,
        predictors,
        *,
        components=10,
        correlation="lkj",
        centred=False,
        chains=2,
        warmup=1000,
        **prior,
    ):
        self.response, self.predictors = check_regression(response, predictors)
        self.chains = check_count("chains", chains)
        self.warmup = check_count("warmup", warmup, at_least=0)
        self._model_settings = {
            "components": components,
            "correlation": correlation,
            "centred": centred,
            **prior,
        }
        # built once here for its checks: errors come before long work
        self._model()
        # the same model elsewhere: its prior and its predictive draws are this one's
        self._gibbs = FiniteMixture(response, predictors, components=components, **prior)

    def _model(self, weights=None):
        return finite_mixture_model(
            self.response, self.predictors, weights=weights, **self._model_settings
        )

    @property
    def records(self):
        """Number of records n."""
        return self.response.size

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False, initial=None):
        """Draw from the pseudo posterior: see :func:`fit_pymc`.

        Parameters
        ----------
        weights, draws, random_seed, progress
            As for :func:`fit_pymc` and :func:`finite_mixture_model`.
        initial : xarray.DataTree, optional
            A fit of :class:`ppm.FiniteMixture`, or of this class, with the same components and
            predictors. Chains start where its chains ended, and the mass matrix begins with the
            variances of its draws.

        Returns
        -------
        xarray.DataTree
            As from :func:`fit_pymc`.

        Raises
        ------
        ValueError
            If an argument is out of range, or ``initial`` does not fit the model.
        """
        rng, positions = generator(random_seed), None
        if initial is not None:
            settings = self._model_settings
            check_initial(initial, settings["components"], self.predictors.shape[1])
            positions = mixture_positions(
                initial,
                self._gibbs.prior,
                correlation=settings["correlation"],
                centred=settings["centred"],
                random_seed=rng,
            )
        return fit_pymc(
            self._model(weights),
            draws=draws,
            chains=self.chains,
            warmup=self.warmup,
            random_seed=rng,
            progress=progress,
            positions=positions,
        )

    def log_likelihood(self, fit):
        """Log-likelihood of every record at every draw of a fit, an array (chain, draw, record)."""
        return fit["log_likelihood"]["response"]

    def log_likelihood_at(self, posterior):
        """Log-likelihood of every record at draws of θ: see :class:`ppm.Synthesizer`."""
        return self._gibbs.log_likelihood_at(posterior)

    def predict(self, fit, *, releases, random_seed=None, labels="prior"):
        """Draw synthetic responses: see :meth:`ppm.FiniteMixture.predict`."""
        return self._gibbs.predict(
            fit, releases=releases, random_seed=random_seed, labels=labels
        )
