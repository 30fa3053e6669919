"""The functions compiled for one model structure: value, gradient, curvature, named variables."""

# PyTensor does not declare what it exports.
# pyright: reportPrivateImportUsage=false

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import pytensor
import pytensor.tensor as pt
from numba import njit
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Variable
from pytensor.graph.replace import vectorize_graph

from bayesrank.inference.graph.data_only_parts import hoist, simplify
from bayesrank.inference.graph.flat_model import FlatInputs, FlatModel, substitute
from bayesrank.inference.graph.logistic_op import with_logistic

Backend = Literal["python", "numba"]


class OneAtATime:
    """A PyTensor function that several threads may call.

    Such a function keeps its inputs in storage of its own, so that two threads inside it return
    wrong numbers. Python runs one of them at a time anyway, so that a lock costs nothing.

    Parameters
    ----------
    function : pytensor.compile.executor.Function
        The function.
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


def _function(inputs: Sequence[Variable], outputs: Any, mode: Mode) -> Any:
    return pytensor.function(
        list(inputs), outputs, mode=mode, on_unused_input="ignore", trust_input=True
    )


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


@dataclass(frozen=True)
class Objective:
    """The log-probability of one structure, rewritten once for every back end.

    Attributes
    ----------
    logp, gradient : pytensor.tensor.TensorVariable
        The log-probability and its gradient.
    arguments : tuple of pytensor.graph.basic.Variable
        x, the shapes, the data, and the arrays prepared from the data.
    prepare : callable
        Computes the prepared arrays from the data.
    """

    logp: Any
    gradient: Any
    arguments: tuple[Variable, ...]
    prepare: Any


def build_objective(flat: FlatModel) -> Objective:
    """Rewrite a model's log-probability into one that any model of its structure can use."""
    inputs = FlatInputs.of(flat.parameters, flat.structure.sources)
    (graph,) = substitute([flat.logp], inputs)
    hoisted = hoist(simplify(graph), [inputs.x], inputs.data)
    # The preparation runs once per data set, so it is never worth machine code.
    prepare = compile_graph(inputs.data, list(hoisted.parts))
    arguments = (inputs.x, *inputs.shapes, *inputs.data, *hoisted.inputs)
    # A flat density does not depend on x at all: its gradient is zero, not an error.
    gradient = pt.grad(hoisted.output, inputs.x, disconnected_inputs="ignore")
    return Objective(hoisted.output, gradient, arguments, prepare)


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
    batched = vectorize_graph(substitute(graphs, inputs), replace={inputs.x: points})
    return compile_graph([points, *inputs.shapes, *inputs.data], batched)


def compile_start(flat: FlatModel, sources: Sequence[Variable]) -> Any:
    """Compile a model's starting point as a function of its data."""
    inputs = FlatInputs.of((), sources)
    return compile_graph(inputs.data, substitute(flat.start, inputs))
