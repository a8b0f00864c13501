"""Rewriting a PyMC model so that its records have weights: all contact with PyMC's internals.

A model is copied, its responses are found and checked, and each is replaced by one whose
log-density is weighted record by record. Compiled functions hold the records as constants, so
everything compiles within :func:`nothing_written`.
"""

import contextlib
import functools
import threading

import numpy as np
import pytensor
import pytensor.link.numba.cache
import pytensor.link.utils
import pytensor.tensor as pt
import xarray as xr
from pymc.data import MinibatchOp
from pymc.distributions.distribution import PartialObservedRV
from pymc.logprob.utils import CheckParameterValue
from pymc.model.core import FrozenModel
from pymc.model.fgraph import clone_model
from pymc.model.transform.conditioning import remove_value_transforms
from pymc.model.transform.optimization import freeze_model
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.compile import SharedVariable
from pytensor.gradient import NullTypeGradError
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.graph.traversal import ancestors, toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc, Join, MakeVector, ScalarFromTensor, Split
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import All
from pytensor.tensor.rewriting.basic import register_specialize
from pytensor.tensor.shape import Reshape, Shape, Shape_i
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from ppm._validation import shown
from ppm.censoring import limited
from ppm.synthesizers import pymc_in_numpy


class _Term:
    """One observed variable: which records its entries belong to.

    ``rows`` is None where entry i of the first dimension is record i; of a masked response it is
    the record of every observed entry.
    """

    def __init__(self, variable, response, imputed, records, rows):
        self.variable, self.response, self.imputed = variable, response, imputed
        self.records, self.rows = records, rows


class _FiniteGradient(Op):
    """Pass values on as they are, and back only gradients that are finite numbers."""

    __props__ = ()
    view_map = {0: [0]}

    def make_node(self, values):
        return Apply(self, [values], [values.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0]

    def infer_shape(self, node, shapes):
        return shapes

    def pullback(self, inputs, outputs, cotangents):
        return [pt.switch(pt.abs(cotangents[0]) < np.inf, cotangents[0], 0.0)]


_finite_gradient = _FiniteGradient()


@register_specialize
@node_rewriter([_FiniteGradient])
def _forget_after_differentiation(fgraph, node):
    return [node.inputs[0]]


def _apart(model, log_lik):
    """Same values, but what is no number in one record has no effect on those of the others.

    A switch of the log-likelihood is not enough to leave out a record or to keep it between limits:
    the gradient 0 is multiplied by derivatives that may be infinite. So gradients that are no
    numbers are dropped where parameters and predictors are turned into by-record quantities (a dot
    product, an index, a scalar shared by all), upstream of every operation that works record by
    record. And PyMC checks the parameters of all records together: a single one that is out of
    range would make all others impossible.
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
            return _finite_gradient(variable)
        inputs = node.inputs[:along]
        if type(node.op).__name__ in _ELEMENTWISE:
            inputs = [pt.shape_padleft(x, variable.ndim - x.ndim) for x in inputs]
        inputs = [rewrite(x) for x in inputs]
        if isinstance(node.op, CheckParameterValue):
            return checked(node.op, *inputs, *_conditions(node.inputs[along]))
        new = node.op.make_node(*inputs, *node.inputs[along:])
        return new.outputs[node.outputs.index(variable)]

    def checked(op, value, *conditions):
        shared = [c for c in conditions if not (0 < value.ndim <= c.ndim and has_row_a_record(c))]
        for own in [c for c in conditions if c not in shared] if model.check_bounds else []:
            own = own.all(axis=tuple(range(value.ndim, own.ndim)))
            value = pt.switch(own, value, -np.inf)
        return op(value, pt.all([pt.all(c) for c in shared])) if shared else value

    def has_row_a_record(condition):
        length = condition.type.shape[0]
        return (len(at_start(model, condition)) if length is None else length) == length_of_all

    length_of_all = log_lik.type.shape[0] or len(at_start(model, log_lik))
    return rewrite(log_lik)


def _conditions(check):
    """What a check of parameters asks of them, before PyMC takes all of it together."""
    if check.owner is not None and isinstance(check.owner.op, (All, MakeVector, ScalarFromTensor)):
        return [found for part in check.owner.inputs for found in _conditions(part)]
    return [check]


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
    if isinstance(op, (Join, Split)) and op.axis in (0, -variable.ndim):
        return 0
    if isinstance(op, Join):
        return everything
    if isinstance(op, (CheckAndRaise, Split, _FiniteGradient)):
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


def check_potentials(model, public):
    """Refuse potentials that hold records, and those of which nobody has said what they hold."""
    names = [variable.name for variable in model.potentials]
    if isinstance(public, str) or not {*public} <= {*names}:
        raise ValueError(
            f"public_potentials must be a list of potentials of the model; got {shown(public)}; "
            f"accepted: {', '.join(sorted(names)) or 'none, the model has no potential'}"
        )
    observed = model.observed_RVs
    reached = _reached(model.potentials, [*observed, *_observed_data(model, observed)])
    for potential in model.potentials:
        if potential in reached:
            raise ValueError(
                f"potential {potential.name} depends on a response, where the records would be "
                "neither weighted nor bounded: write it as a distribution with observed=, for "
                "example pm.CustomDist"
            )
        if potential.name not in public:
            raise ValueError(
                f"potential {potential.name} may hold records, which would be neither weighted nor "
                "bounded, or make a prior improper: write it as a distribution, or say "
                f'public_potentials=["{potential.name}"] to ppm.PyMCSynthesizer if it does neither'
            )


def _observed_data(model, observed):
    """Arrays that hold what a model has observed, or that it is computed from."""
    values = [model.rvs_to_values[variable] for variable in observed]
    return {x for x in ancestors(values) if x.owner is None and getattr(x.type, "ndim", 0)}


def _reached(outputs, sources):
    """Variables of a graph that depend on the sources, not on their shapes alone."""
    found, selected = {*sources}, set()
    for node in toposort(outputs):
        met = found.intersection(node.inputs)
        chosen = selected.intersection(node.inputs)
        if not met or not chosen and isinstance(node.op, (Shape, Shape_i)):
            continue
        found.update(node.outputs)
        # the shape of a selection tells of the values that it was selected by
        by = met.intersection(node.inputs[1:])
        sliced = by and isinstance(node.op, (Subtensor, Reshape))
        masked = isinstance(node.op, AdvancedSubtensor) and any(x.dtype == "bool" for x in by)
        if chosen or sliced or masked or type(node.op).__name__ in _SIZED:
            selected.update(node.outputs)
    return found


_SIZED = ("Nonzero", "ARange", "Unique", "Repeat")


def check_random(terms, parameters):
    """Refuse responses that cannot be drawn: there would be nothing to release."""
    imputed = {term.imputed for term in terms}
    known = [v for v in parameters if v.name not in imputed]
    for term in terms:
        if _has_no_random(_inside(term.variable, known)):
            raise ValueError(
                f"{term.response} rests on a CustomDist that cannot be drawn from, so that "
                "nothing could be released: give it random= or dist="
            )


def _inside(variable, known):
    return set(ancestors([variable], blockers=known)) - {*known}


def _has_no_random(variables):
    """Whether there is a distribution among variables of a graph that PyMC cannot draw from."""
    for op in [variable.owner.op for variable in variables if variable.owner is not None]:
        random = getattr(op, "_random_fn", None)
        # PyMC puts a function that only raises where the user gave none
        if getattr(random, "__qualname__", "").startswith("default_not_implemented"):
            return True
        if type(op).__name__ in _IMPROPER or _has_no_random(
            ancestors(getattr(op, "inner_outputs", []))
        ):
            return True
    return False


_IMPROPER = ("FlatRV", "HalfFlatRV", "ICARRV")


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


def shared_data(model, names):
    """Values of all data of a model that somebody could change, but for those of some names."""
    parts = [*model.basic_RVs, *model.potentials, *model.deterministics]
    parts += [model.rvs_to_values[variable] for variable in model.observed_RVs]
    return {
        variable: variable.get_value()
        for variable in ancestors(parts)
        if isinstance(variable, SharedVariable)
        and isinstance(variable.type, pt.TensorType)
        and variable.name not in names
    }


def weighted(model, plain, terms):
    """Copies of a model whose records have weights and hard limits, or smooth ones.

    Parameters
    ----------
    model : pymc.Model
        The user's model, for its initial values.
    plain : pymc.Model
        What :func:`copied` made of it; it is changed.
    terms : list
        What :func:`find_terms` found.

    Returns
    -------
    hard, smooth : pymc.Model
        The copies, which share weights and limits. Without limits they are hard and infinite.
    names : list of str
        Names of weights and limits, as data of both.
    """
    names = []
    for name, start in (
        ("record_weights", np.ones(terms[0].records)),
        ("record_limits", np.array([-np.inf, np.inf])),
    ):
        while name in plain.named_vars or name in plain.coords:
            name = f"_{name}"
        # the known length spares compiling a check of it
        plain.register_data_var(pytensor.shared(start, name=name, shape=start.shape))
        names.append(name)
    for variable, start in model.rvs_to_initial_values.items():
        if isinstance(start, Variable):
            if set(model.basic_RVs) & set(ancestors([start])):
                raise ValueError(
                    f"initial value of {variable.name} depends on other variables, which PyMC no "
                    "longer supports: give numbers"
                )
            start = start.eval(mode="FAST_COMPILE")
        plain.set_initval(plain[variable.name], start)
    hard = freeze_model(plain)
    hard.check_bounds = model.check_bounds
    hard.__class__ = _Weighted
    hard.terms, hard.own_names, hard.smooth, hard.graphs = terms, names, False, {}
    # what was compiled for the other log-density is not shared
    smooth = object.__new__(_Weighted)
    smooth.__dict__.update({k: v for k, v in hard.__dict__.items() if k != "_cache"})
    smooth.smooth, smooth.graphs = True, {}
    return hard, smooth, names


class _Weighted(FrozenModel):
    """A model with one term a record, h(α log p), in its log-density; it compiles once, in memory.

    Its draws are those of the model without weights and limits.
    """

    def logp(self, vars=None, jacobian=True, sum=True):
        if vars is not None:
            return super().logp(vars, jacobian, sum)
        # the same graph every time, so that it compiles once
        if jacobian not in self.graphs:
            self.graphs[jacobian] = self._parts(jacobian)
        parts = self.graphs[jacobian]
        return pt.sum([part.sum() for part in parts]) if sum else parts

    def _parts(self, jacobian):
        """Terms of the records, then what does not belong to any of them."""
        others = [*self.free_RVs, *self.potentials]
        by_response, others = log_densities(self, self.terms, others, jacobian)
        weights, limits = (self[name] for name in self.own_names)
        # a product alone would make NaN of weight 0 and log-likelihood -inf
        log_lik = _added(self.terms, by_response)
        by_record = pt.switch(weights > 0, weights * log_lik, 0.0)
        return [limited(by_record, limits[0], limits[1], self.smooth, pt), *others]

    def _logp_dlogp_function(self, *args, **kwargs):
        # PyMC would hand out copies, which compile again; a synthesizer makes one fit at a time,
        # and every fit sets what the function remembers
        with nothing_written():
            return self._cached_logp_dlogp_function(*args, **kwargs)

    def compile_fn(self, *args, **kwargs):
        with nothing_written():
            return super().compile_fn(*args, **kwargs)

    @functools.cached_property
    def unobserved_value_vars(self):
        # the same graphs every time, so that what is traced compiles once too
        return super().unobserved_value_vars


def check_strict(model, terms):
    """Refuse a model whose prior is improper, or where a record does more than its own term.

    Raises
    ------
    ValueError
        If a prior is improper: censored terms leave it so. If observed values reach a prior, a
        response's distribution, from which releases are drawn, or the term of another record.
    """
    free, responses = model.free_RVs, [model[term.variable.name] for term in terms]
    by_response, priors = log_densities(model, terms, free, jacobian=True)
    by_term = [_observed_data(model, [response]) for response in responses]
    data = set().union(*by_term)
    for variable, prior in zip(free, priors, strict=True):
        if _has_no_random(_inside(variable, {*free} - {variable})):
            raise ValueError(
                f"the prior of {variable.name} is improper, which censored terms cannot change, or "
                "cannot be drawn from: give it a prior with total probability 1"
            )
        if {variable, prior} & _reached([variable, prior], {*data, *responses}):
            raise ValueError(f"the prior of {variable.name} depends on observed values: {_ALONE}")
    for response, term, part in zip(responses, terms, by_response, strict=True):
        if response in _reached([response], data):
            raise ValueError(
                f"{response.name} is drawn with observed values, which a release would hold: "
                f"{_ALONE}"
            )
        aligned = [
            found for found, other in zip(by_term, terms, strict=True)
            if np.array_equal(other.rows, term.rows)
        ]
        if not _keeps_to_rows(part, data, set().union(*aligned)):
            raise ValueError(
                f"a record's term of {response.name} holds observed values of other records, or "
                f"in a way that cannot be told from it: {_ALONE}"
            )


_ALONE = "with censor, a record must act through its own term only"


def _keeps_to_rows(part, data, aligned):
    """Whether row i of a log-density is seen to hold observed data of rows i alone."""
    reached, seen, left = _reached([part], data), set(), [part]
    while left:
        variable = left.pop()
        if variable in seen or variable not in reached:
            continue
        seen.add(variable)
        if variable in data:
            if variable not in aligned:
                return False
            continue
        node = variable.owner
        along = _record_inputs(variable)
        own, shared = node.inputs[:along], node.inputs[along:]
        if isinstance(node.op, AdvancedSubtensor) and node.op.idx_list[0] != slice(None):
            # a table of parameters, looked up by the rows
            own, shared = node.inputs[1:], node.inputs[:1]
            width = max(index.ndim for index in own)
            shared += [index for index in own if index.ndim < width or index.dtype == "bool"]
        if reached.intersection(shared):
            return False
        left += own
    return True


def log_densities(model, terms, others=(), jacobian=False):
    """Log-densities of the responses, with nothing of one record in another, and of others."""
    observed = [model[term.variable.name] for term in terms]
    parts = model.logp([*observed, *others], jacobian, False)
    return [_apart(model, part) for part in parts[: len(terms)]], parts[len(terms) :]


def _added(terms, parts):
    """Log-densities of the responses' entries, added up for every record."""
    total = 0.0
    for term, part in zip(terms, parts, strict=True):
        part = part.sum(axis=tuple(range(1, part.ndim))).astype("float64")
        part = part if term.rows is None else pt.zeros(term.records)[term.rows].inc(part)
        total = total + part
    return total


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
        total = _added(self.terms, log_densities(self.model, self.terms)[0])
        settings = {"inputs": self.model.value_vars, "on_unused_input": "ignore"}
        function = self.model.compile_fn(total, mode=pymc_in_numpy.IN_NUMPY, **settings)
        if pymc_in_numpy.is_cheap(function.f, self.terms[0].records):
            return function
        return self.model.compile_fn(total, **settings)
