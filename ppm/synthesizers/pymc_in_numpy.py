"""Which by-record log-likelihoods NumPy computes sooner than numba has compiled them.

Numba takes seconds to compile a function, most of them for a product of matrices. NumPy needs some
0.1 ms a draw where numba's function takes 0.01, which over thousands of draws of a few thousand
records is less. What is done is decided by the graph, so that a model has the same numbers always.
"""

import math

import pytensor.tensor as pt
from pytensor.compile.mode import Mode, optdb
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.scalar.basic import Add, Cast, Mul
from pytensor.tensor.basic import Alloc, Join, MakeVector
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor, Subtensor

# those whose implementation in NumPy works on whole arrays
_ARRAY_OPS = (
    Alloc, CAReduce, Dot, DimShuffle, Join, MakeVector, Reshape,
    AdvancedIncSubtensor, AdvancedSubtensor, Subtensor,
)  # fmt: skip
# numbers computed for one draw, up to which thousands of draws take NumPy about half a second
FEW_NUMBERS = 40_000


@node_rewriter([pt.softplus])
def _softplus_of_arrays(fgraph, node):
    (x,) = node.inputs
    return [pt.maximum(x, 0.0) + pt.log1p(pt.exp(-pt.abs(x)))]


optdb.register(
    # after all that makes a softplus, before what is done in place
    "ppm_softplus_of_arrays", dfs_rewriter(_softplus_of_arrays), "ppm_arrays", position=48,
)  # fmt: skip

# the rewrites that make numba's functions stable, without the fusion of loops
IN_NUMPY = Mode(
    "py",
    RewriteDatabaseQuery(include=["fast_run", "ppm_arrays"], exclude=["fusion", "BlasOpt"]),
)


def is_cheap(function, records):
    """Whether a function compiled in that mode computes few numbers, and all of them in arrays."""
    numbers = 0
    for node in function.maker.fgraph.toposort():
        if not (_is_ufunc(node) if isinstance(node.op, Elemwise) else _is_array_op(node)):
            return False
        numbers += math.prod(records if n is None else n for n in node.outputs[0].type.shape)
    return numbers <= FEW_NUMBERS


def _is_array_op(node):
    return isinstance(node.op, _ARRAY_OPS)


def _is_ufunc(node):
    """Whether PyTensor has a ufunc for it; of the others it calls Python for every number."""
    spec, scalar = node.op.nfunc_spec, node.op.scalar_op
    if isinstance(scalar, Add | Cast | Mul):
        return True
    return spec is not None and spec[1] == len(node.inputs)
