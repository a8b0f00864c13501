"""Rewriting a PyMC model so that its records have weights: all contact with PyMC's internals.

A model is copied, its responses are found and checked, and each is replaced by one whose
log-density is weighted record by record. Compiled functions hold the records as constants, so
everything compiles within :func:`nothing_written`.
"""

import contextlib
import functools
import threading

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

from ppm._validation import shown
from ppm.synthesizers import pymc_in_numpy


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
def nothing_written():
    """Compile in memory, without a trace of the records on any disk, and without a C compiler.

    PyTensor would keep the compiled functions in its folder under the user's home, with all records
    among their constants, and leave their generated source in the temporary folder, with the first
    and last values of every array in its comments. Both stay when the process has ended.

    A few small functions would go through a C compiler if there is one, and warn about a missing
    BLAS.

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


def copied(model):
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


def find_terms(model, observed):
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
        length = len(at_start(model, log_lik))
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


def at_start(model, graph):
    """Value of a graph at the model's initial point."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        return model.compile_fn(
            graph, inputs=model.value_vars, on_unused_input="ignore"
        )(model.initial_point())


def check_potentials(model, terms, public):
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


def check_random(terms, parameters):
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


def check_gradient(model):
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


def shared_data(model, weights_name):
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


def weighted_copy(model, plain, terms):
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
        with nothing_written():
            return super()._logp_dlogp_function(*args, **kwargs)

    def compile_fn(self, *args, **kwargs):
        with nothing_written():
            return super().compile_fn(*args, **kwargs)


class _Unfrozen(_InMemory, pm.Model):
    """A rewritten model that compiles for every fit."""


class _Rewritten(_InMemory, FrozenModel):
    """A rewritten model that compiles everything once."""

    def _logp_dlogp_function(self, *args, **kwargs):
        # PyMC would hand out copies, which compile again; a synthesizer makes one fit at a time,
        # and every fit sets what the function remembers
        with nothing_written():
            return self._cached_logp_dlogp_function(*args, **kwargs)

    @functools.cached_property
    def unobserved_value_vars(self):
        # the same graphs every time, so that what is traced compiles once too
        return super().unobserved_value_vars


class _Limited:
    """A rewritten model whose log-density takes every record's term between two limits."""

    def logp(self, vars=None, jacobian=True, sum=True):
        if vars is not None:
            return super().logp(vars, jacobian, sum)
        # the same graph every time, so that it compiles once
        if jacobian not in self._limited:
            self._limited[jacobian] = self._parts(jacobian)
        parts = self._limited[jacobian]
        return pt.sum([part.sum() for part in parts]) if sum else parts

    def _parts(self, jacobian):
        """Terms of the records, then what does not belong to any of them."""
        observed = [self[term.variable.name] for term in self._terms]
        others = [*self.free_RVs, *self.potentials]
        parts = super().logp([*observed, *others], jacobian, False)
        weighted = 0.0
        for term, part in zip(self._terms, parts, strict=False):
            # where the term is at its limit it has no slope, but 0 times infinity would be none
            possible = pt.neq(_by_entry(part), -np.inf)
            weighted = weighted + _by_record(term, _without_gradient(part, possible))
        return [self._censor.term(weighted, pt), *parts[len(observed) :]]


class _LimitedUnfrozen(_Limited, _Unfrozen):
    pass


class _LimitedRewritten(_Limited, _Rewritten):
    pass


def limited(model, terms, censor):
    """The same rewritten model, weights included, with censored terms.

    Parameters
    ----------
    model : pymc.Model
        What :func:`weighted_copy` made.
    terms : list
        What :func:`find_terms` found.
    censor : ppm.Censoring
        The limits.

    Raises
    ------
    ValueError
        If a prior is improper: censored terms leave it so.
    """
    for variable in model.free_RVs:
        if type(variable.owner.op).__name__ in ("FlatRV", "HalfFlatRV"):
            raise ValueError(
                f"the prior of {variable.name} is improper, which censored terms cannot change: "
                "give it a prior with total probability 1"
            )
    kind = _LimitedRewritten if isinstance(model, _Rewritten) else _LimitedUnfrozen
    # variables and weights are shared, what was compiled for the other log-density is not
    twin = object.__new__(kind)
    twin.__dict__.update({k: v for k, v in model.__dict__.items() if k != "_cache"})
    twin._terms, twin._censor, twin._limited = terms, censor, {}
    return twin


def _by_entry(part):
    return part.sum(axis=tuple(range(1, part.ndim)))


def _by_record(term, part):
    """Log-density of the entries of one response, added up for each of all records."""
    part = _by_entry(part.astype("float64"))
    return part if term.rows is None else pt.zeros(term.records)[term.rows].inc(part)


class ByRecord:
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
        # -inf and NaN are values here, as they are to numba
        with np.errstate(all="ignore"):
            for index in np.ndindex(shape):
                log_lik[index] = self.function({name: v[index] for name, v in values.items()})
        coords = {name: posterior[name] for name in ("chain", "draw") if name in posterior.coords}
        return xr.DataArray(log_lik, dims=("chain", "draw", "record"), coords=coords)

    def compile(self):
        observed = [self.model[term.variable.name] for term in self.terms]
        total = 0.0
        parts = self.model.logp(vars=observed, sum=False, jacobian=False)
        for term, part in zip(self.terms, parts, strict=True):
            total = total + _by_record(term, part)
        settings = {"inputs": self.model.value_vars, "on_unused_input": "ignore"}
        function = self.model.compile_fn(total, mode=pymc_in_numpy.IN_NUMPY, **settings)
        if pymc_in_numpy.is_cheap(function.f, self.terms[0].records):
            return function
        return self.model.compile_fn(total, **settings)
