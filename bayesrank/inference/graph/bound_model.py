"""A compiled model bound to one data set: functions of the flat parameter vector alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.graph.cache import FUNCTIONS
from bayesrank.inference.graph.compile import (
    Backend,
    Objective,
    build_objective,
    compile_check,
    compile_curvature,
    compile_named,
    compile_objective,
    compile_start,
    quiet_numba,
    release_interpreter,
)
from bayesrank.inference.graph.flat_model import FlatModel
from bayesrank.inference.graph.structure import abstract
from bayesrank.models.smooth_abs import KINK_WIDTH

Array = NDArray[np.float64]

# Elements of the largest temporary array of a Hessian: 2**23 doubles are 64 MB.
LARGEST_BLOCK = 2**23

# Just below 32 MB, the most that the GNU C library takes as a sign that large blocks come and go.
_KEPT_BYTES = 2**25 - 2**20


@dataclass(frozen=True)
class BoundModel:
    """A compiled model with one data set: functions of the flat vector alone.

    All of them may be called from several threads.

    Attributes
    ----------
    flat : FlatModel
        The model.
    backend : {"python", "numba"}
        What evaluates the log-probability.
    start : numpy.ndarray of shape (parameter,)
        The model's starting point on the unconstrained scale.
    shapes : tuple of tuple of int
        The unconstrained shape of each free variable.
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
        """Return the log-probability and its gradient at an unconstrained point.

        Parameters
        ----------
        x : numpy.ndarray of shape (parameter,)
            In C order and of float64; :meth:`checked` makes it so. It is not checked here, where
            a sampler spends its time.

        Returns
        -------
        tuple of float and numpy.ndarray of shape (parameter,)
            The value, minus infinity for impossible parameters, and the gradient.
        """
        value, gradient = self._function(x, *self._arguments)
        return float(value), gradient

    def hessian(self, x: Array) -> Array:
        """Return the second derivatives of the log-probability at an unconstrained point.

        Parameters
        ----------
        x : numpy.ndarray of shape (parameter,)
            The point.

        Returns
        -------
        numpy.ndarray of shape (parameter, parameter)
            Exact and symmetric; computed in blocks of rows that bound the memory.
        """
        x = self.checked(x)
        key = (self.flat.structure.key, "curvature")
        with quiet_numba():
            products = FUNCTIONS.get(key, lambda: compile_curvature(self._objective))
        # Parameters that meet crosswise make arrays of up to the square of their number.
        largest = max([self.size**2, *(np.size(a) for a in self._arguments)])
        rows = max(1, LARGEST_BLOCK // largest)
        basis = np.eye(self.size)
        blocks = [
            products(np.ascontiguousarray(basis[i : i + rows]), x, *self._arguments)
            for i in range(0, self.size, rows)
        ]
        hessian = np.concatenate(blocks)
        return (hessian + hessian.T) / 2.0

    def named(
        self, points: Array, var_names: Sequence[str] | None = None
    ) -> dict[str, NDArray[Any]]:
        """Return free variables and deterministics at many points.

        Parameters
        ----------
        points : numpy.ndarray of shape (point, parameter)
            Unconstrained points.
        var_names : sequence of str, optional
            The variables wanted; all by default.

        Returns
        -------
        dict of str to numpy.ndarray
            Constrained values of shape (point, ...), by name.
        """
        graphs, structure = self.flat.named, self.flat.named_structure
        if var_names is not None:
            unknown = sorted(set(var_names).difference(graphs))
            if unknown:
                raise ValueError(f"var_names must be among {sorted(graphs)}; got {unknown}")
            graphs = {name: graph for name, graph in graphs.items() if name in set(var_names)}
            structure = abstract(list(graphs.values()), self.flat.parameters)
        function = FUNCTIONS.get(
            (structure.key, "named"),
            lambda: compile_named(list(graphs.values()), self.flat, structure.sources),
        )
        points = np.array(points, dtype=np.float64, order="C")
        values = function(points, *_shape_arguments(self.shapes), *structure.values())
        # A variable that no parameter moves comes without the leading axis.
        return {
            name: np.broadcast_to(value, (len(points), *value.shape))
            if value.ndim == graph.type.ndim
            else value
            for (name, graph), value in zip(graphs.items(), values, strict=True)
        }

    @property
    def has_kinks(self) -> bool:
        """Whether the density has a kink that :meth:`with_kink_width` rounds."""
        return KINK_WIDTH in self.flat.structure.sources

    def with_kink_width(self, width: float) -> "BoundModel":
        """Return the model with the kinks of its density rounded over a width."""
        if not self.has_kinks:
            return self
        at = self.flat.structure.sources.index(KINK_WIDTH) + len(_shape_arguments(self.shapes))
        arguments = list(self._arguments)
        arguments[at] = np.array(width)
        return replace(self, _arguments=arguments)

    def in_parallel(self) -> "BoundModel":
        """Return the model with code that lets threads evaluate it at the same time."""
        key = (self.flat.structure.key, self.backend, "in parallel")
        function = FUNCTIONS.get(key, lambda: release_interpreter(self._function))
        return replace(self, _function=function)

    def slices(self) -> dict[str, slice]:
        """Return where each free variable lies in the flat vector, by name."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes]).tolist()
        names = [str(v.name) for v in self.flat.free_rvs]
        return {n: slice(a, b) for n, a, b in zip(names, [0, *ends], ends, strict=False)}

    def name_of(self, index: int) -> str:
        """Return the name of the free variable that an element of the flat vector belongs to."""
        return next(n for n, where in self.slices().items() if where.start <= index < where.stop)

    def checked(self, x: Array) -> Array:
        """Return an unconstrained point as the compiled code takes it.

        Raises
        ------
        ValueError
            If its shape is not (parameter,).
        """
        x = np.array(x, dtype=np.float64, order="C")
        if x.shape != self.start.shape:
            raise ValueError(f"x must have shape {self.start.shape}; got {x.shape}")
        return x


def bind(flat: FlatModel, backend: Backend) -> BoundModel:
    """Compile a model's functions, or find them compiled, and bind them to its data.

    Parameters
    ----------
    flat : FlatModel
        The model.
    backend : {"python", "numba"}
        What evaluates the log-probability.

    Returns
    -------
    BoundModel
        Functions of the flat vector.

    Raises
    ------
    ValueError
        If the shapes or the indices in the data contradict one another.
    """
    key = flat.structure.key
    with quiet_numba():
        objective = FUNCTIONS.get((key, "objective"), lambda: build_objective(flat))
        function = FUNCTIONS.get((key, backend), lambda: compile_objective(objective, backend))
        check = FUNCTIONS.get((key, "check"), lambda: compile_check(objective))
        start = _start(flat)
        shapes = tuple(np.shape(part) for part in start)
        x0 = np.concatenate([np.ravel(part) for part in start]).astype(np.float64)
        data = flat.structure.values()
        try:
            prepared = [np.array(part, order="C") for part in objective.prepare(*data)]
            arguments = [*_shape_arguments(shapes), *data, *prepared]
            check(x0, *arguments)
        except (IndexError, ValueError) as error:
            # Machine code would read past the end of an array and return any number, or crash.
            reason = str(error).splitlines()[0]
            raise ValueError(f"model must have data of matching shapes; got {reason}") from error
        bound = BoundModel(flat, backend, x0, shapes, objective, function, arguments)
        # Numba compiles on the first call, which belongs here, under the same filters.
        bound.logp_and_gradient(x0)
    _keep_freed_memory()
    return bound


def _keep_freed_memory() -> None:
    """Keep the memory of temporary arrays for the next evaluation.

    The GNU C library returns freed blocks to the system until it has seen a large one freed, and
    new pages for the arrays of a large model cost more than its arithmetic: 1.8 of 3.4 ms for
    200,000 cells. Other libraries do as they please.
    """
    np.empty(_KEPT_BYTES, dtype=np.uint8)


def _start(flat: FlatModel) -> list[NDArray[Any]]:
    """Evaluate the starting point, whose parts also give the parameters their shapes."""
    structure = abstract(flat.start, ())
    function = FUNCTIONS.get(
        (structure.key, "start"), lambda: compile_start(flat, structure.sources)
    )
    return function(*structure.values())


def _shape_arguments(shapes: Sequence[tuple[int, ...]]) -> list[NDArray[np.int64]]:
    """Return what FlatInputs asks for: the shape of every array, unless one vector is all."""
    if len(shapes) == 1 and len(shapes[0]) == 1:
        return []
    return [np.array(s, dtype=np.int64) for s in shapes if s]
