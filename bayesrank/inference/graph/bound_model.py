"""A compiled model bound to one data set: functions of the flat parameter vector alone.

A factory called with another data set builds another model, and PyMC would compile it anew: for
seconds. Here the data, the lengths of dims and the shapes of the parameters are inputs of the
compiled code, which serves every data set of every shape.

Examples
--------
>>> import numpy as np
>>> import pymc as pm
>>> from bayesrank.inference.graph.bound_model import bind_model
>>> with pm.Model() as model:
...     mu = pm.Normal("mu")
...     y = pm.Normal("y", mu, observed=pm.Data("values", [4.0, 5.0, 6.0]))
>>> logp, gradient = bind_model(model, "map").logp_and_gradient(np.zeros(1))
>>> gradient.tolist()
[15.0]
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from bayesrank.inference.graph.compile import (
    FUNCTIONS,
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
from bayesrank.inference.graph.flat_model import FlatModel, Kind, abstract, shape_arguments
from bayesrank.models.smooth_abs import SMOOTHING_WIDTH
from bayesrank.validation import check_choice

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
            In C order and of float64. It is not checked here, where a sampler spends its time.

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

        Raises
        ------
        ValueError
            If the shape of `x` is not (parameter,).
        """
        x = np.array(x, dtype=np.float64, order="C")
        if x.shape != self.start.shape:
            raise ValueError(f"x must have shape {self.start.shape}; got {x.shape}")
        key = (self.flat.structure.key, "curvature")
        with quiet_numba():
            products = FUNCTIONS.get(key, lambda: compile_curvature(self._objective))
        # Parameters that meet crosswise make arrays of up to the square of their number.
        largest = max([1, self.size**2, *(np.size(a) for a in self._arguments)])
        rows = max(1, LARGEST_BLOCK // largest)
        basis = np.eye(self.size)
        blocks = [
            products(np.ascontiguousarray(basis[i : i + rows]), x, *self._arguments)
            for i in range(0, self.size, rows)
        ]
        hessian = np.concatenate([basis[:0], *blocks])
        return (hessian + hessian.T) / 2.0

    def named(self, points: Array) -> dict[str, NDArray[Any]]:
        """Return free variables and deterministics at many points.

        Parameters
        ----------
        points : numpy.ndarray of shape (point, parameter)
            Unconstrained points.

        Returns
        -------
        dict of str to numpy.ndarray
            Constrained values of shape (point, ...), by name.
        """
        graphs, structure = list(self.flat.named.values()), self.flat.named_structure
        function = FUNCTIONS.get(
            (structure.key, "named"),
            lambda: compile_named(graphs, self.flat, structure.sources),
        )
        points = np.array(points, dtype=np.float64, order="C")
        values = function(points, *shape_arguments(self.shapes), *structure.values())
        # A variable that no parameter moves comes without the leading axis.
        return {
            name: np.broadcast_to(value, (len(points), *value.shape))
            if value.ndim == graph.type.ndim
            else value
            for (name, graph), value in zip(self.flat.named.items(), values, strict=True)
        }

    @property
    def is_smoothed(self) -> bool:
        """Whether the density has an absolute value, which :meth:`smoothed` rounds off."""
        return SMOOTHING_WIDTH in self.flat.structure.sources

    def smoothed(self, width: float) -> "BoundModel":
        """Return the model with absolute values in its density rounded off over a width."""
        if not self.is_smoothed:
            return self
        at = self.flat.structure.sources.index(SMOOTHING_WIDTH) + len(shape_arguments(self.shapes))
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


def bind_model(model: pm.Model, kind: Kind, *, backend: Backend | None = None) -> BoundModel:
    """Compile a model, or find it compiled, and bind it to its own data.

    Parameters
    ----------
    model : pymc.Model
        Any model whose free variables are continuous.
    kind : {"mle", "map", "nuts"}
        The likelihood alone; likelihood and priors; or both with the Jacobians of the transforms.
    backend : {"python", "numba"}, optional
        Machine code takes seconds to compile the first time and evaluates 50 times faster than
        PyTensor's Python linker, which is ready in 0.2 s. By default machine code for NUTS, and
        Python for the some ten evaluations of an optimisation.

    Returns
    -------
    BoundModel
        Value, gradient and Hessian as functions of the flat parameter vector.

    Raises
    ------
    ValueError
        If the model has discrete variables or none, or the shapes or the indices in its data
        contradict one another.
    """
    if backend is None:
        backend = "numba" if kind == "nuts" else "python"
    check_choice("backend", backend, Backend)
    return bind(FlatModel(model, kind), backend)


def bind(flat: FlatModel, backend: Backend) -> BoundModel:
    """Do what :func:`bind_model` does for a model that has been flattened."""
    key = flat.structure.key
    with quiet_numba():
        objective = FUNCTIONS.get((key, "objective"), lambda: build_objective(flat))
        function = FUNCTIONS.get((key, backend), lambda: compile_objective(objective, backend))
        check = FUNCTIONS.get((key, "check"), lambda: compile_check(objective))
        # The parts of the starting point also give the parameters their shapes.
        structure = abstract(flat.start, ())
        begin = FUNCTIONS.get(
            (structure.key, "start"), lambda: compile_start(flat, structure.sources)
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
            # Machine code would read past the end of an array and return any number, or crash.
            reason = str(error).splitlines()[0]
            raise ValueError(f"model must have data of matching shapes; got {reason}") from error
        bound = BoundModel(flat, backend, x0, shapes, objective, function, arguments)
        # Numba compiles on the first call, which belongs here, under the same filters.
        bound.logp_and_gradient(x0)
    # The GNU C library returns freed blocks to the system until it has seen a large one freed, and
    # new pages for the arrays of a large model cost more than its arithmetic: 1.8 of 3.4 ms for
    # 200,000 cells. Other libraries do as they please.
    np.empty(_KEPT_BYTES, dtype=np.uint8)
    return bound
