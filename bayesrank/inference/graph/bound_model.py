"""A compiled model bound to one data set: functions of the flat parameter vector only.

A factory called with another data set builds another model, and PyMC would compile it again, which
takes seconds. Here the data, the lengths of dims and the shapes of the parameters are inputs of the
compiled code. The code works for every data set of every shape and is made once per process;
machine code is kept on disk. Terms that depend only on the data (binomial coefficients, bounds
checks, sums) are computed once per data set, since an optimiser or a sampler evaluates a density
thousands of times.
"""

# PyTensor does not declare what it exports.
# pyright: reportPrivateImportUsage=false

import math
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import xarray as xr
from numba import njit
from numpy.typing import NDArray
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Variable
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.rewriting.utils import rewrite_graph

from bayesrank.batches import batches
from bayesrank.inference.graph.flat_model import (
    FlatInputs,
    FlatModel,
    Kind,
    abstract,
    label,
    shape_arguments,
    split_data_terms,
)
from bayesrank.models.array_ops import with_array_ops, with_ufuncs
from bayesrank.models.smooth_abs import SMOOTHING_WIDTH

Array = NDArray[np.float64]
Backend = Literal["python", "numba"]

# Each function holds machine code and a graph, about a megabyte; the least recently used go first.
LARGEST_CACHE = 128
# The third entry turns PyMC's parameter checks into minus infinity, as Model.compile_logp does.
REWRITES = ("canonicalize", "stabilize", "local_check_parameter_to_ninf_switch")
# Elements of the largest temporary array of a Hessian: 2**23 doubles are 64 MB.
LARGEST_BLOCK = 2**23
# Just below 32 MB, the largest block size to which the GNU C library adapts its threshold.
_KEPT_BYTES = 2**25 - 2**20


class FunctionCache:
    """A bounded map from structure to compiled function, safe to use from several threads.

    `compilations` counts the functions compiled since the process started.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.RLock()
        self.compilations = 0

    def get[T](self, key: Hashable, compile_function: Callable[[], T]) -> T:
        """Return what is stored under a key, compiled under the lock when it is missing.

        PyTensor's compilation is not safe under threads.
        """
        with self._lock:
            if key not in self._entries:
                self._entries[key] = compile_function()
                self.compilations += 1
                while len(self._entries) > LARGEST_CACHE:
                    self._entries.popitem(last=False)
            self._entries.move_to_end(key)
            return self._entries[key]


FUNCTIONS = FunctionCache()


class Objective(NamedTuple):
    """The log-probability of one structure and its gradient, rewritten once for every linker.

    Arguments are x, the shapes, the data, and the terms that `data_terms` computes from the data.
    """

    logp: Any
    gradient: Any
    arguments: tuple[Variable, ...]
    data_terms: Callable[..., Any]


@dataclass(frozen=True)
class BoundModel:
    """A compiled model with one data set: functions of only the flat vector.

    All of them may be called from several threads. The vector holds the parameters on their
    unconstrained scales, of shape (parameter,); `start` is the model's own, and `shapes` are those
    of each free variable there. `backend` is what evaluates the log-probability.
    """

    flat: FlatModel
    backend: Backend
    start: Array
    shapes: tuple[tuple[int, ...], ...]
    _objective: Objective = field(repr=False)
    _function: Callable[..., Any] = field(repr=False)
    _arguments: list[Any] = field(repr=False)

    @property
    def size(self) -> int:
        """The number of unconstrained parameters."""
        return self.start.size

    def logp_and_gradient(self, x: Array) -> tuple[float, Array]:
        """Return the log-probability, minus infinity where impossible, and its gradient.

        The point `x` is in C order and of float64; this is not checked, for speed.
        """
        value, gradient = self._function(x, *self._arguments)
        return float(value), gradient

    def hessian(self, x: Array) -> Array:
        """Return the exact second derivatives at a point, of shape (parameter, parameter)."""
        x = np.array(x, dtype=np.float64, order="C")
        key = (self.flat.structure.key, "curvature")
        with _quiet_numba():
            products = FUNCTIONS.get(key, lambda: _compile_curvature(self._objective))
        # Crossed parameters give arrays of up to the square of their number.
        largest = max([1, self.size**2, *(np.size(a) for a in self._arguments)])
        basis = np.eye(self.size)
        blocks = [
            products(np.ascontiguousarray(basis[rows]), x, *self._arguments)
            for rows in batches(self.size, largest, LARGEST_BLOCK)
        ]
        hessian = np.concatenate([basis[:0], *blocks])
        return (hessian + hessian.T) / 2.0

    def named(self, points: Array) -> dict[str, NDArray[Any]]:
        """Return free variables and deterministics at points of shape (point, parameter).

        By name, constrained, and of shape (point, ...).
        """
        structure = self.flat.named_structure
        function = FUNCTIONS.get((structure.key, "named"), lambda: _compile_named(self.flat))
        points = np.array(points, dtype=np.float64, order="C")
        values = function(points, *shape_arguments(self.shapes), *structure.values())
        # A variable that depends on no parameter has no leading axis.
        return {
            name: np.broadcast_to(value, (len(points), *value.shape))
            if value.ndim == graph.type.ndim
            else value
            for (name, graph), value in zip(self.flat.named.items(), values, strict=True)
        }

    def labelled(self, points: Array) -> xr.Dataset:
        """Return the variables of :meth:`named` with the dims and coords of the model.

        Points are of shape (parameter,), or (chain, draw, parameter).
        """
        leading = points.shape[:-1]
        named = self.named(points.reshape(math.prod(leading), points.shape[-1]))
        arrays = {
            name: value.reshape((*leading, *value.shape[1:])) for name, value in named.items()
        }
        return label(self.flat.model, arrays, ("chain", "draw")[: len(leading)])

    @property
    def is_smoothed(self) -> bool:
        """Whether the density has an absolute value, which :meth:`smoothed` rounds off."""
        return SMOOTHING_WIDTH in self.flat.structure.sources

    def smoothed(self, width: float) -> "BoundModel":
        """Return the model with absolute values in its density rounded off over a width."""
        if not self.is_smoothed:
            return self
        at = self.flat.structure.sources.index(SMOOTHING_WIDTH)
        arguments = list(self._arguments)
        arguments[at + len(shape_arguments(self.shapes))] = np.array(width)
        return replace(self, _arguments=arguments)

    def in_parallel(self) -> "BoundModel":
        """Return the model with code that lets threads evaluate it at the same time."""
        key = (self.flat.structure.key, self.backend, "in parallel")
        function = FUNCTIONS.get(key, lambda: _release_interpreter(self._function))
        return replace(self, _function=function)

    def slices(self) -> dict[str, slice]:
        """Return where each free variable lies in the flat vector, by name."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes]).tolist()
        names = [str(v.name) for v in self.flat.free_rvs]
        return {n: slice(a, b) for n, a, b in zip(names, [0, *ends], ends, strict=False)}


def bind_model(model: pm.Model, kind: Kind, *, backend: Backend | None = None) -> BoundModel:
    """Compile a model, or take its compiled code from the cache, and bind it to its own data.

    `kind` is "mle" for only the likelihood, "map" for likelihood and priors, "nuts" for both with
    the Jacobians of the transforms. Machine code, the default for NUTS, takes seconds to compile
    the first time and evaluates 50 times faster than PyTensor's Python linker, which is ready in
    0.2 s for the some ten evaluations of an optimisation. ValueError if the model has discrete
    variables or none, or the shapes or the indices in its data contradict one another.
    """
    if backend is None:
        backend = "numba" if kind == "nuts" else "python"
    return bind(FlatModel(model, kind), backend)


def bind(flat: FlatModel, backend: Backend) -> BoundModel:
    """Compile and bind a flattened model, as :func:`bind_model` does."""
    key = flat.structure.key
    with _quiet_numba():
        objective = FUNCTIONS.get((key, "objective"), lambda: build_objective(flat))
        values = [objective.logp, objective.gradient]
        function = FUNCTIONS.get(
            (key, backend), lambda: _compile(objective.arguments, values, backend)
        )
        # Python's linker checks shapes and indices.
        check = FUNCTIONS.get((key, "python"), lambda: _compile(objective.arguments, values))
        # The parts of the starting point also give the parameters their shapes.
        structure = abstract(flat.start, ())
        begin = FUNCTIONS.get(
            (structure.key, "start"), lambda: _compile_start(flat, structure.sources)
        )
        start = begin(*structure.values())
        shapes = tuple(np.shape(part) for part in start)
        x0 = np.concatenate([np.ravel(part) for part in start]).astype(np.float64)
        data = flat.structure.values()
        try:
            terms = [np.array(part, order="C") for part in objective.data_terms(*data)]
            arguments = [*shape_arguments(shapes), *data, *terms]
            check(x0, *arguments)
        except (IndexError, ValueError) as error:
            # Machine code would read past the end of an array: wrong numbers, or a crash.
            reason = str(error).splitlines()[0]
            raise ValueError(f"model must have data of matching shapes; got {reason}") from error
        bound = BoundModel(flat, backend, x0, shapes, objective, function, arguments)
        # Numba compiles on the first call, so that call is made here, under the same filters.
        bound.logp_and_gradient(x0)
    # The GNU C library returns freed blocks to the system until it has seen a large one freed. New
    # pages for the arrays of a large model cost more than its arithmetic: 1.8 of 3.4 ms for
    # 200,000 cells. Other libraries behave differently.
    np.empty(_KEPT_BYTES, dtype=np.uint8)
    return bound


def build_objective(flat: FlatModel) -> Objective:
    """Rewrite a model's log-probability into one that any model of its structure can use."""
    inputs = FlatInputs.of(flat.parameters, flat.structure.sources)
    graph = rewrite_graph(inputs.substitute([flat.logp])[0], include=REWRITES)
    logp, names, terms = split_data_terms(graph, inputs.x, inputs.data)
    # They are computed once per data set, which is never worth machine code.
    data_terms = _compile(inputs.data, terms)
    arguments = (inputs.x, *inputs.shapes, *inputs.data, *names)
    # A flat density does not depend on x at all: its gradient is zero, not an error.
    gradient = pt.grad(logp, inputs.x, disconnected_inputs="ignore")
    return Objective(logp, gradient, arguments, data_terms)


def _compile_curvature(objective: Objective) -> Any:
    """Compile products of the matrix of second derivatives with rows of directions.

    They are not machine code, which takes longer to compile than all evaluations of a fit (14 s
    against 0.2 s for Bradley-Terry).
    """
    direction, directions = pt.dvector("direction"), pt.dmatrix("directions")
    slope = pt.dot(objective.gradient, direction)
    # The second derivatives of a linear density are zero.
    product: Any = pt.grad(slope, objective.arguments[0], disconnected_inputs="ignore")
    products = vectorize_graph(product, replace={direction: directions})
    return _compile([directions, *objective.arguments], products)


def _compile_named(flat: FlatModel) -> Any:
    """Compile the named variables of a model as functions of many points at a time."""
    inputs = FlatInputs.of(flat.parameters, flat.named_structure.sources)
    points = pt.dmatrix("points")
    graphs = inputs.substitute(list(flat.named.values()))
    batched = vectorize_graph(graphs, replace={inputs.x: points})
    return _compile([points, *inputs.shapes, *inputs.data], batched)


def map_draws(
    inputs: Sequence[Variable], outputs: Sequence[Variable], draws: Sequence[NDArray[Any]]
) -> list[NDArray[Any]]:
    """Evaluate graphs of some inputs at their draws, of shape (chain, draw, ...).

    Machine code would take longer to compile than all evaluations.
    """
    batched: list[Any] = [v.type.clone(shape=(None, *v.type.shape))() for v in inputs]
    graphs: Any = vectorize_graph(outputs, replace=dict(zip(inputs, batched, strict=True)))
    function = _compile(batched, graphs)
    leading = draws[0].shape[:2]
    flat = [
        np.ascontiguousarray(each.reshape(-1, *each.shape[2:]), dtype=v.type.dtype)
        for each, v in zip(draws, inputs, strict=True)
    ]
    first = function(*(each[:1] for each in flat))
    n_draws, largest = len(flat[0]), max(value.size for value in first)
    parts = batches(n_draws, 8 * largest, LARGEST_BLOCK)
    blocks = [function(*(each[rows] for each in flat)) for rows in parts]
    values = (np.concatenate(each) for each in zip(*blocks, strict=True))
    return [value.reshape(*leading, *value.shape[1:]) for value in values]


def _compile_start(flat: FlatModel, sources: Sequence[Variable]) -> Any:
    """Compile a model's starting point as a function of its data."""
    inputs = FlatInputs.of((), sources)
    return _compile(inputs.data, inputs.substitute(flat.start))


class OneAtATime:
    """A PyTensor function that several threads may call.

    Such a function keeps its inputs in storage of its own, so that two threads inside it return
    wrong numbers. Python runs one of them at a time anyway, so that a lock costs nothing.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> Any:
        """Call the function, after any other thread has left it."""
        with self._lock:
            return self._function(*arguments)


def _compile(
    inputs: Sequence[Variable], outputs: Any, backend: Backend = "python"
) -> Callable[..., Any]:
    """Compile a graph to machine code, or link it in Python, which takes a tenth of a second.

    Some inputs may be unused. The function does not check its arguments, and several threads may
    call it.
    """
    options: Any = {"on_unused_input": "ignore", "trust_input": True}
    inputs = list(inputs)
    if backend == "numba":
        mode = with_array_ops(get_mode("NUMBA"))
        function = pytensor.function(inputs, outputs, mode=mode, **options)
        # The underlying jitted code has no storage, and saves two microseconds per call.
        return getattr(function.vm, "jit_fn", None) or OneAtATime(function)
    # Without this the Python linker still calls the C++ compiler, for seconds, on operations that
    # are graphs themselves, such as a softmax.
    with pytensor.config.change_flags(cxx=""):
        # Rewriting takes ten times as long and gains little: the Hessian of 600 parameters takes
        # half a second more without, and gradients as long.
        mode = with_ufuncs(Mode(linker="py", optimizer="merge"))
        return OneAtATime(pytensor.function(inputs, outputs, mode=mode, **options))


def _release_interpreter(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return machine code during which other threads may run Python, or the function as it is.

    Worth its seconds of compilation only where an evaluation takes long.
    """
    if isinstance(function, OneAtATime):
        return function

    @njit(nogil=True)
    def released(*arguments: Any) -> Any:  # pragma: no cover - compiled
        return function(*arguments)

    return released


@contextmanager
def _quiet_numba() -> Iterator[None]:
    """Silence the warnings of PyTensor about operations that Numba does not support.

    Such an operation runs in Python inside the compiled function: slower, but correct. Users cannot
    act on these warnings.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*object mode", category=UserWarning)
        warnings.filterwarnings("ignore", message=".*will not be cached", category=UserWarning)
        yield
