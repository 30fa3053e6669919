"""A PyMC model as a function of one flat vector, its structure apart from its data.

A model's graph mixes structure (operations, types, small constants) with data (shared variables
such as ``pm.Data`` and the lengths of dims, and array constants). :func:`abstract` separates the
two: it returns a hashable key of the structure, and the data in an order that depends only on the
structure, so that code compiled for one model runs on the data of every other model with an
equal key.
"""

# PyTensor does not declare what it exports.
# pyright: reportPrivateImportUsage=false

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from arviz_base import dict_to_dataset
from numpy.typing import NDArray
from pymc.initial_point import make_initial_point_expression
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import graph_inputs, toposort
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.type import TensorType

Kind = Literal["mle", "map", "nuts"]

# An array constant with more elements is data (counts, indices written straight into a factory);
# a smaller one may be structure (an axis, a shape, a set of quadrature weights) and stays.
LARGEST_STRUCTURAL_CONSTANT = 16


class FlatModel:
    """The log-probability, starting point and named variables of a model as graphs.

    `parameters` are the value variables that `logp` depends on, in the model's order: under "mle" a
    prior's own hyperparameters are not among them.
    """

    def __init__(self, model: pm.Model, kind: Kind) -> None:
        discrete = [v.name for v in model.free_RVs if v.dtype.startswith(("int", "uint", "bool"))]
        if discrete:
            raise ValueError(
                f"model must have continuous free variables only; got discrete {discrete}. "
                "Sum them out of the likelihood, or sample with nuts_sampler='pymc'"
            )
        logp: Any
        if kind == "mle":
            observed = [*model.observed_RVs, *model.potentials]
            if not observed:
                raise ValueError("model must have an observed variable or a potential; got neither")
            logp = model.logp(vars=observed, jacobian=False)
        else:
            logp = model.logp(jacobian=kind == "nuts")
        used = set(graph_inputs([logp]))
        self.model, self.kind, self.logp = model, kind, logp
        self.parameters = tuple(v for v in model.value_vars if v in used)
        if not self.parameters:
            raise ValueError("model must have free variables; got none")
        self.structure = abstract([logp], self.parameters)
        if any(isinstance(source.type, RandomType) for source in self.structure.sources):
            raise ValueError(
                "model must have a deterministic log-probability (no minibatches); "
                "got one that draws random numbers"
            )

    @property
    def free_rvs(self) -> list[Any]:
        """The random variables of the parameters, in their order."""
        return [self.model.values_to_rvs[v] for v in self.parameters]

    @cached_property
    def start(self) -> list[Any]:
        """The starting value of each parameter as a graph of the data."""
        expressions = make_initial_point_expression(
            free_rvs=self.model.free_RVs,
            rvs_to_transforms=self.model.rvs_to_transforms,
            initval_strategies=self.model.rvs_to_initial_values,
            return_transformed=True,
        )
        where = {rv: i for i, rv in enumerate(self.model.free_RVs)}
        return [expressions[where[rv]] for rv in self.free_rvs]

    @cached_property
    def named(self) -> dict[str, Any]:
        """Free variables and deterministics as graphs of the parameters, by name.

        A deterministic of a variable that is not among the parameters is left out.
        """
        variables = [*self.free_rvs, *self.model.deterministics]
        graphs = self.model.replace_rvs_by_values(variables)
        missing = set(self.model.value_vars) - set(self.parameters)
        return {
            v.name: graph
            for v, graph in zip(variables, graphs, strict=True)
            if missing.isdisjoint(graph_inputs([graph]))
        }

    @cached_property
    def named_structure(self) -> "Abstraction":
        """Structure and data of the graphs of `named`."""
        return abstract(list(self.named.values()), self.parameters)


@dataclass(frozen=True)
class FlatInputs:
    """The inputs that stand for a model's parameters and data in compiled code.

    `x` holds all free parameters on the unconstrained scale, `shapes` the shape of each array
    parameter, `data` one input per piece of data.
    `replacements` maps each variable of the graph of the model to its replacement.
    """

    x: pt.TensorVariable
    shapes: tuple[pt.TensorVariable, ...]
    data: tuple[Variable, ...]
    replacements: dict[Variable, Variable]

    @classmethod
    def of(cls, parameters: Sequence[Variable], sources: Sequence[Variable]) -> "FlatInputs":
        """Lay the parameters out in one vector and give every source its input."""
        x: Any = pt.dvector("x")
        shapes: list[pt.TensorVariable] = []
        replacements: dict[Variable, Variable] = {}
        offset: Any = 0
        for v in parameters:
            part: Any
            if v.type.ndim == 0:
                part, offset = x[offset], offset + 1
            else:
                shape: Any = pt.TensorType("int64", (v.type.ndim,))(f"{v.name}_shape")
                shapes.append(shape)
                size = shape[0] if v.type.ndim == 1 else pt.prod(shape)
                part, offset = x[offset : offset + size], offset + size
                if v.type.ndim > 1:
                    part = part.reshape(shape, ndim=v.type.ndim)
            replacements[v] = v.type.filter_variable(part.astype(v.type.dtype), allow_convert=True)
        data = tuple(_input_of(source) for source in sources)
        replacements.update(zip(sources, data, strict=True))
        return cls(x, tuple(shapes), data, replacements)

    def substitute(self, outputs: Sequence[Variable]) -> list[Any]:
        """Return graphs of a model as graphs of these inputs."""
        return clone_replace(outputs, self.replacements, rebuild_strict=False)


def shape_arguments(shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Return the values of the inputs `shapes` for parameters of these shapes."""
    return [np.array(s, dtype=np.int64) for s in shapes if s]


@dataclass(frozen=True)
class Abstraction:
    """The structure of a graph and the data taken out of it.

    The key is equal for graphs that the same compiled code computes; the sources are shared
    variables and array constants in the order in which the graph first uses them.
    """

    key: Hashable
    sources: tuple[Variable, ...]

    def values(self) -> list[Any]:
        """Return the data as arrays of the graph's dtypes, in C order and writeable.

        For a read-only or a strided input PyTensor would silently compile again, for seconds.
        """
        return [_value_of(source) for source in self.sources]


def abstract(outputs: Sequence[Variable], arguments: Sequence[Variable]) -> Abstraction:
    """Separate the structure of a graph, a function of arguments in this order, from its data.

    ValueError if it depends on a variable that is neither an argument nor data.
    """
    number: dict[Variable, int] = {v: i for i, v in enumerate(arguments)}
    parts: list[Hashable] = [tuple(v.type for v in arguments)]
    sources: list[Variable] = []

    def number_of(variable: Variable) -> int:
        if variable not in number:
            number[variable] = len(number)
            if _is_source(variable):
                parts.append(("source", variable.type))
                sources.append(variable)
            elif isinstance(variable, Constant):
                parts.append(("constant", variable.type, _constant_key(variable)))
            else:
                raise ValueError(
                    "model must depend on its free variables and data only; got "
                    f"{variable.name or variable!s} of type {variable.type}"
                )
        return number[variable]

    for node in toposort(outputs, blockers=arguments):
        # Ops compare by their properties and inner graphs, so the key holds them as they are.
        inputs = tuple(number_of(v) for v in node.inputs)
        parts.append((node.op, inputs, tuple(v.type for v in node.outputs)))
        for variable in node.outputs:
            number.setdefault(variable, len(number))
    parts.append(tuple(number_of(v) for v in outputs))
    return Abstraction(tuple(parts), tuple(sources))


def split_data_terms(
    output: Any, x: Variable, data: Sequence[Variable]
) -> tuple[Any, list[Variable], list[Variable]]:
    """Split a simplified graph into a part that depends on x and terms of only the data.

    Returns the graph that remains, its new inputs, and the graphs that compute them from the data.
    """
    moving = {x}
    # Arithmetic on scalars and shapes is cheaper to repeat than to pass as one more argument, so
    # only terms that read the elements of a data array are split off.
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
    (rest,) = clone_replace([output], border, rebuild_strict=False)
    return rest, list(border.values()), list(border)


def _is_source(variable: Variable) -> bool:
    """Tell whether a variable without an owner carries data."""
    if isinstance(variable, SharedVariable):
        return isinstance(variable.type, TensorType | RandomType)
    return (
        isinstance(variable, Constant)
        and isinstance(variable.type, TensorType)
        and np.size(variable.data) > LARGEST_STRUCTURAL_CONSTANT
    )


def _input_of(source: Variable) -> Variable:
    """Return the input that stands for a piece of data: of any shape for a shared variable.

    A constant keeps its static shape, because the graph around it was built for that shape.
    """
    if isinstance(source.type, RandomType):
        return source.type()
    shape = source.type.shape if isinstance(source, Constant) else (None,) * source.type.ndim
    return pt.TensorType(source.type.dtype, shape)(source.name)


def _value_of(source: Variable) -> Any:
    if isinstance(source.type, RandomType):
        # The same generator every time, so that a starting point drawn from the prior repeats.
        return np.random.default_rng(0)
    shared: Any = source
    value = source.data if isinstance(source, Constant) else shared.get_value(borrow=True)
    return np.array(value, dtype=source.type.dtype, order="C", copy=True)


def _constant_key(constant: Constant) -> Hashable:
    data = constant.data
    if isinstance(data, np.ndarray | np.generic):
        return (data.shape, data.tobytes())
    return data if isinstance(data, Hashable) else constant.signature()


def label(
    model: pm.Model, values: Mapping[str, NDArray[Any]], sample_dims: Sequence[str]
) -> xr.Dataset:
    """Put a model's dims and coords on the values of its variables, behind those of samples."""
    return dict_to_dataset(
        values,
        dims=model.named_vars_to_dims,
        coords={dim: list(names) for dim, names in model.coords.items() if names is not None},
        sample_dims=sample_dims,
        check_conventions=False,  # there may be fewer draws than chains
        skip_event_dims=True,  # densities have none
    ).drop_attrs()
