"""Compile the functions of a model's structure once per process; machine code is kept on disk.

What depends on the data alone (binomial coefficients, bounds checks, sums) is computed once per
data set and passed in, since an optimiser or a sampler evaluates a density thousands of times.
"""

# PyTensor does not declare what it exports.
# pyright: reportPrivateImportUsage=false

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, cast

import pytensor
import pytensor.tensor as pt
from numba import njit
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Variable
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import toposort
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.type import TensorType

from bayesrank.inference.graph.flat_model import FlatInputs, FlatModel, rebuild
from bayesrank.inference.graph.logistic_op import with_logistic

Backend = Literal["python", "numba"]

# Each function holds machine code and a graph, about a megabyte; the least recently used go first.
LARGEST_CACHE = 128

# The third entry turns PyMC's parameter checks into minus infinity, as Model.compile_logp does.
REWRITES = ("canonicalize", "stabilize", "local_check_parameter_to_ninf_switch")


class FunctionCache:
    """A bounded map from structure to compiled function, safe to use from several threads.

    Attributes
    ----------
    compilations : int
        Functions compiled since the process started.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.RLock()
        self.compilations = 0

    def get[T](self, key: Hashable, compile_function: Callable[[], T]) -> T:
        """Return what is stored under a key, compiling it when it is missing.

        PyTensor's compilation is not safe under threads, so it happens under the lock.
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


@dataclass(frozen=True)
class Objective:
    """The log-probability of one structure, rewritten once for every linker.

    Attributes
    ----------
    logp, gradient : pytensor.tensor.TensorVariable
        The log-probability and its gradient.
    arguments : tuple of pytensor.graph.basic.Variable
        x, the shapes, the data, and the terms that depend on the data alone.
    data_terms : callable
        Computes those terms from the data.
    """

    logp: Any
    gradient: Any
    arguments: tuple[Variable, ...]
    data_terms: Any


def build_objective(flat: FlatModel) -> Objective:
    """Rewrite a model's log-probability into one that any model of its structure can use."""
    inputs = FlatInputs.of(flat.parameters, flat.structure.sources)
    graph = rewrite_graph(inputs.substitute([flat.logp])[0], include=REWRITES)
    logp, names, terms = split_data_terms(cast("Variable", graph), inputs.x, inputs.data)
    # They are computed once per data set, which is never worth machine code.
    data_terms = compile_graph(inputs.data, terms)
    arguments = (inputs.x, *inputs.shapes, *inputs.data, *names)
    # A flat density does not depend on x at all: its gradient is zero, not an error.
    gradient = pt.grad(cast("Any", logp), inputs.x, disconnected_inputs="ignore")
    return Objective(logp, gradient, arguments, data_terms)


def split_data_terms(
    output: Variable, x: Variable, data: Sequence[Variable]
) -> tuple[Variable, list[Variable], list[Variable]]:
    """Split a graph into what moves with the parameters and terms that depend on the data alone.

    Parameters
    ----------
    output : pytensor.graph.basic.Variable
        The graph, simplified, so that terms of the data stand by themselves.
    x : pytensor.graph.basic.Variable
        The parameters.
    data : sequence of pytensor.graph.basic.Variable
        The inputs that are fixed by the data set.

    Returns
    -------
    output : pytensor.graph.basic.Variable
        The graph that remains.
    inputs : list of pytensor.graph.basic.Variable
        Its new inputs.
    terms : list of pytensor.graph.basic.Variable
        What computes them from the data.
    """
    moving = {x}
    # Arithmetic on scalars and shapes is cheaper to repeat than to pass as one more argument, so
    # only what reads the elements of a data array is worth splitting off.
    reading = {v for v in data if isinstance(v.type, TensorType) and v.type.ndim > 0}
    computed: set[Variable] = set()
    border: dict[Variable, Variable] = {}
    for node in toposort([output]):
        if any(v in moving for v in node.inputs):
            moving.update(node.outputs)
            border.update(
                (v, v.type()) for v in node.inputs if v in reading and v.owner is not None
            )
        elif not isinstance(node.op, Shape | Shape_i) and any(v in reading for v in node.inputs):
            reading.update(node.outputs)
            computed.update(node.outputs)
    if output in computed:
        border[output] = output.type()
    (rest,) = rebuild([output], border)
    return rest, list(border.values()), list(border)


def compile_objective(objective: Objective, backend: Backend) -> Any:
    """Compile the log-probability and its gradient."""
    return compile_graph(objective.arguments, [objective.logp, objective.gradient], backend)


def compile_check(objective: Objective) -> Any:
    """Compile the log-probability alone for Python's linker, which checks shapes and indices."""
    return compile_graph(objective.arguments, objective.logp)


def compile_curvature(objective: Objective) -> Any:
    """Compile products of the matrix of second derivatives with rows of directions.

    Machine code for them takes longer to compile than all the evaluations of a fit together (14 s
    against 0.2 s for Bradley-Terry).
    """
    direction, directions = pt.dvector("direction"), pt.dmatrix("directions")
    slope = pt.dot(objective.gradient, direction)
    # The second derivatives of a linear density are zero.
    product: Any = pt.grad(slope, objective.arguments[0], disconnected_inputs="ignore")
    products = vectorize_graph(product, replace={direction: directions})
    return compile_graph([directions, *objective.arguments], products)


def compile_named(graphs: Sequence[Any], flat: FlatModel, sources: Sequence[Variable]) -> Any:
    """Compile graphs of a model's parameters as functions of many points at a time."""
    inputs = FlatInputs.of(flat.parameters, sources)
    points = pt.dmatrix("points")
    batched = vectorize_graph(inputs.substitute(graphs), replace={inputs.x: points})
    return compile_graph([points, *inputs.shapes, *inputs.data], batched)


def compile_start(flat: FlatModel, sources: Sequence[Variable]) -> Any:
    """Compile a model's starting point as a function of its data."""
    inputs = FlatInputs.of((), sources)
    return compile_graph(inputs.data, inputs.substitute(flat.start))


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


def compile_graph(
    inputs: Sequence[Variable], outputs: Any, backend: Backend = "python"
) -> Callable[..., Any]:
    """Compile a graph to machine code, or link it in Python, which takes a tenth of a second.

    Parameters
    ----------
    inputs : sequence of pytensor.graph.basic.Variable
        The arguments; some may be unused.
    outputs : pytensor.graph.basic.Variable or list of them
        What to compute.
    backend : {"python", "numba"}, default "python"
        Python, or machine code.

    Returns
    -------
    callable
        Safe to call from several threads. It does not check its arguments.
    """
    if backend == "numba":
        function = _function(inputs, outputs, with_logistic(get_mode("NUMBA")))
        # The jitted code beneath has no storage, and saves two microseconds a call.
        return getattr(function.vm, "jit_fn", None) or OneAtATime(function)
    # Without this the Python linker still calls the C++ compiler, for seconds, on operations that
    # are graphs themselves, such as a softmax.
    with pytensor.config.change_flags(cxx=""):
        return OneAtATime(_function(inputs, outputs, Mode(linker="py", optimizer="fast_compile")))


def release_interpreter(function: Callable[..., Any]) -> Callable[..., Any]:
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
def quiet_numba() -> Iterator[None]:
    """Silence what PyTensor warns about while it compiles an operation that Numba does not know.

    Such an operation runs in Python inside the compiled function: slower, and right. Nobody who
    ranks systems can act on it.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*object mode", category=UserWarning)
        warnings.filterwarnings("ignore", message=".*will not be cached", category=UserWarning)
        yield


def _function(inputs: Sequence[Variable], outputs: Any, mode: Mode) -> Any:
    return pytensor.function(
        list(inputs), outputs, mode=mode, on_unused_input="ignore", trust_input=True
    )
