r"""Operations of a graph that a Numba function computes: logistic functions, products of matrices.

Softplus :math:`\log(1 + e^x)` and its slope, the logistic function, take most of the time of a
likelihood of right and wrong answers. Default machine code calls the mathematical library three
times for each element. The function here computes both from one exponential, by polynomials that
the compiler turns into vector instructions: ten times as fast, to 1e-15.

PyTensor compiles each product of matrices of a graph anew, for ten to twenty seconds. The function
here calls NumPy's product; it is compiled once and kept on disk.
"""

# PyTensor generates its functions, with annotations that say None.
# pyright: reportPrivateImportUsage=false

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import pytensor.tensor as pt
from numba import njit
from numpy.typing import NDArray
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import in2out, node_rewriter
from pytensor.link.numba.dispatch.basic import register_funcify_default_op_cache_key
from pytensor.scalar.math import Sigmoid, Softplus
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import Dot

Array = NDArray[np.float64]

# Must change with the Numba functions of the operations, so that PyTensor does not use compiled
# code of earlier versions on disk.
CODE_VERSION = 2

# Sums may be reordered, which allows the compiler to vectorise them; infinities and NaN are kept.
REORDER_SUMS = {"reassoc", "contract"}

# Elements per round: their temporary arrays stay in the fastest cache.
_BLOCK = 512
# Below, the exponential is negligible in a sum with 1; above, it is a normal number.
_LOWEST = -700.0
_LOG2_E = 1.4426950408889634
# The logarithm of 2 in two parts; the first has enough zeros for exact multiples.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_EXPONENT_BIAS, _EXPONENT_SHIFT = 1023, 52

# Coefficients of the Taylor series, the highest power first.
_EXP = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))
_ARTANH = tuple(1.0 / n for n in range(33, 0, -2))

# The stage after PyTensor's stabilising rewrites and before the fusion into loops.
_POSITION = 10


class ArrayOp(Op):
    """An operation on arrays that a Numba function computes.

    The `function`, compiled by Numba, takes arrays in C order, cast to the `dtypes`, and returns an
    array, or a tuple of arrays if there are several outputs. `gufunc_signature` has the names of
    the dims of inputs and outputs; every dim of an output is one of an input.
    """

    __props__ = ()
    function: ClassVar[Callable[..., Any]]
    gufunc_signature: ClassVar[str]
    dtypes: ClassVar[Sequence[str]]

    def make_node(self, *inputs: Any) -> Apply:
        """Cast the inputs and declare the outputs: arrays of float64."""
        cast = [pt.cast(pt.as_tensor(v), d) for v, d in zip(inputs, self.dtypes, strict=True)]
        shapes = self._output_shapes([v.type.shape for v in cast])
        return Apply(self, cast, [pt.tensor(shape=shape) for shape in shapes])

    def infer_shape(self, node: Apply, input_shapes: list[Any]) -> list[Any]:
        """Return the shapes of the outputs."""
        return self._output_shapes(input_shapes)

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Compute the outputs."""
        # One layout, so that Numba compiles the function once.
        results = type(self).function(*(np.require(v, requirements=["C", "W"]) for v in inputs))
        if len(output_storage) == 1:
            results = (results,)
        for storage, result in zip(output_storage, results, strict=True):
            storage[0] = result

    def _output_shapes(self, input_shapes: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the shapes of the outputs, of whatever kind the lengths of the inputs are."""
        inputs, outputs = self._dims()
        lengths = {
            dim: length
            for dims, shape in zip(inputs, input_shapes, strict=True)
            for dim, length in zip(dims, shape, strict=True)
        }
        return [tuple(lengths[dim] for dim in dims) for dims in outputs]

    def _dims(self) -> tuple[list[list[str]], list[list[str]]]:
        """Return the names of the dims of the inputs and of the outputs."""
        sides = self.gufunc_signature.split("->")
        parts = [side.strip("()").split("),(") for side in sides]
        inputs, outputs = ([[d for d in p.split(",") if d] for p in side] for side in parts)
        return inputs, outputs


@register_funcify_default_op_cache_key(ArrayOp)
def _use_function(op: ArrayOp, **_: Any) -> Any:
    return type(op).function, CODE_VERSION


@njit(cache=True, fastmath=REORDER_SUMS, error_model="numpy")
def logistic_arrays(x: Array) -> tuple[Array, Array]:  # pragma: no cover - compiled
    """Return softplus and logistic function of every element."""
    softplus, sigmoid = np.empty(len(x)), np.empty(len(x))
    part, rest, bits = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK, np.int64)
    power = bits.view(np.float64)
    for start in range(0, len(x), _BLOCK):
        n = min(_BLOCK, len(x) - start)
        # Vector instructions need contiguous memory, which the types of a graph do not express.
        part[:n] = x[start : start + n]
        above, slope = softplus[start : start + n], sigmoid[start : start + n]
        # exp(-|x|) = 2^k exp(r) with |r| < 0.35
        for i in range(n):
            y = max(-abs(part[i]), _LOWEST)
            k = np.floor(y * _LOG2_E + 0.5)
            rest[i] = (y - k * _LN2_HIGH) - k * _LN2_LOW
            bits[i] = np.int64(np.int32(k) + np.int32(_EXPONENT_BIAS)) << _EXPONENT_SHIFT
        for i in range(n):
            z = power[i] * _exp(rest[i])
            inverse = 1.0 / ((1.0 + z) * (2.0 + z))
            above[i] = max(part[i], 0.0) + _log1p(z * (1.0 + z) * inverse)
            upper = (2.0 + z) * inverse
            slope[i] = upper if part[i] >= 0.0 else z * upper
    return softplus, sigmoid


@njit(cache=True, fastmath=REORDER_SUMS, inline="always")
def _exp(r: float) -> float:  # pragma: no cover - compiled
    """Return the exponential of a number below 0.35 by its Taylor series."""
    p = 0.0
    for coefficient in _EXP:
        p = p * r + coefficient
    return p


@njit(cache=True, fastmath=REORDER_SUMS, inline="always")
def _log1p(w: float) -> float:  # pragma: no cover - compiled
    """Return log(1 + z) = 2 artanh(w) for w = z / (2 + z) up to 1/3, by its Taylor series."""
    v, p = w * w, 0.0
    for coefficient in _ARTANH:
        p = p * v + coefficient
    return 2.0 * w * p


class _Logistic(ArrayOp):
    """Softplus and logistic function of a vector."""

    function = logistic_arrays
    gufunc_signature = "(n)->(n),(n)"
    dtypes = ("float64",)


@njit(cache=True)
def _matrix_product(x: Array, y: Array) -> Array:  # pragma: no cover - compiled
    """Return the product of two matrices."""
    return np.dot(np.ascontiguousarray(x), np.ascontiguousarray(y))


class _MatrixProduct(ArrayOp):
    """Product of two matrices."""

    function = _matrix_product
    gufunc_signature = "(a,b),(b,c)->(a,c)"
    dtypes = ("float64", "float64")


@node_rewriter([Dot])
def _use_product(_: Any, node: Any) -> Any:
    """Replace a product of two matrices of float64."""
    if any(v.type.dtype != "float64" for v in node.inputs):
        return None
    return [_MatrixProduct()(*node.inputs)]


@node_rewriter([Elemwise])
def _use_logistic(_: Any, node: Any) -> Any:
    """Replace softplus and logistic function of a vector of unknown length."""
    if not isinstance(node.op.scalar_op, Softplus | Sigmoid):
        return None
    (x,) = node.inputs
    if x.type.ndim != 1 or x.type.dtype != "float64" or x.type.shape[0] is not None:
        return None
    both: Any = _Logistic()(x)
    return [both[0 if isinstance(node.op.scalar_op, Softplus) else 1]]


def with_array_ops(mode: Mode) -> Mode:
    """Return a compilation mode that computes logistic functions and products of matrices this way.

    The mode compiles with Numba, functions whose gradients have been taken already.

    Examples
    --------
    >>> import pytensor
    >>> import pytensor.tensor as pt
    >>> from pytensor.compile.mode import get_mode
    >>> x = pt.dvector("x")
    >>> function = pytensor.function([x], pt.softplus(x), mode=with_array_ops(get_mode("NUMBA")))
    >>> function(np.array([0.0, 50.0])).round(4)
    array([ 0.6931, 50.    ])
    """
    rewrites = in2out(_use_logistic, _use_product, name="use_array_ops")
    return mode.register((rewrites, _POSITION))


@node_rewriter([Elemwise])
def _use_ufuncs(_: Any, node: Any) -> Any:
    """Replace softplus, of which PyTensor's Python code computes one element at a time."""
    (x, *_others) = node.inputs
    if not isinstance(node.op.scalar_op, Softplus) or x.type.dtype != "float64":
        return None
    return [pt.maximum(x, 0.0) + pt.log1p(pt.exp(-pt.abs(x)))]


def with_ufuncs(mode: Mode) -> Mode:
    """Return a compilation mode that computes softplus by functions of NumPy.

    The mode links in Python.

    Examples
    --------
    >>> import pytensor
    >>> import pytensor.tensor as pt
    >>> x = pt.dvector("x")
    >>> mode = with_ufuncs(Mode(linker="py", optimizer="merge"))
    >>> pytensor.function([x], pt.softplus(x), mode=mode)(np.array([0.0, 50.0])).round(4)
    array([ 0.6931, 50.    ])
    """
    return mode.register((in2out(_use_ufuncs, name="use_ufuncs"), _POSITION))
