"""What two models must share to share compiled code: their graphs without their data.

A model's graph mixes structure (operations, types, small constants) with data (shared variables
such as ``pm.Data`` and the lengths of dims, and array constants). :func:`abstract` separates the
two: it returns a hashable key of the structure, and the data in an order that depends on the
structure alone, so that code compiled for one model runs on the data of every other model with an
equal key.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.type import TensorType

# An array constant with more elements is data (counts, indices written straight into a factory);
# a smaller one may be structure (an axis, a shape, a set of quadrature weights) and stays.
LARGEST_STRUCTURAL_CONSTANT = 16


@dataclass(frozen=True)
class Abstraction:
    """The structure of a graph and the data taken out of it.

    Attributes
    ----------
    key : Hashable
        Equal for graphs that the same compiled code computes.
    sources : tuple of pytensor.graph.basic.Variable
        Shared variables and array constants in the order in which the graph first uses them.
    """

    key: Hashable
    sources: tuple[Variable, ...]

    @property
    def is_random(self) -> bool:
        """Whether the graph mentions a random generator."""
        return any(isinstance(source.type, RandomType) for source in self.sources)

    def values(self) -> list[Any]:
        """Return the data as arrays of the graph's dtypes, in C order and writeable.

        PyTensor compiles anew, silently and for seconds, for a read-only or a strided input.
        """
        return [_source_value(source) for source in self.sources]


def abstract(outputs: Sequence[Variable], arguments: Sequence[Variable]) -> Abstraction:
    """Separate the structure of a graph from its data.

    Parameters
    ----------
    outputs : sequence of pytensor.graph.basic.Variable
        What the graph computes.
    arguments : sequence of pytensor.graph.basic.Variable
        The variables that it is a function of; their order is part of the structure.

    Returns
    -------
    Abstraction
        The key and the data.

    Raises
    ------
    ValueError
        If the graph depends on a variable that is neither an argument nor data.
    """
    number: dict[Variable, int] = {v: i for i, v in enumerate(arguments)}
    parts: list[Hashable] = [tuple(v.type for v in arguments)]
    sources: list[Variable] = []
    for item in _post_order(outputs, stop=number):
        if isinstance(item, Apply):
            inputs = tuple(number[v] for v in item.inputs)
            # Ops compare by their properties and inner graphs, so the key holds them as they are.
            parts.append((item.op, inputs, tuple(v.type for v in item.outputs)))
            for variable in item.outputs:
                number[variable] = len(number)
            continue
        if is_source(item):
            parts.append(("source", item.type))
            sources.append(item)
        elif isinstance(item, Constant):
            parts.append(("constant", item.type, _constant_key(item)))
        else:
            raise ValueError(
                f"model must depend on its free variables and data only; got {item.name or item!s} "
                f"of type {item.type}"
            )
        number[item] = len(number)
    parts.append(tuple(number[v] for v in outputs))
    return Abstraction(tuple(parts), tuple(sources))


def rebuild(outputs: Sequence[Variable], replacements: Mapping[Variable, Variable]) -> list[Any]:
    """Return the graph with variables replaced, letting types and shapes follow.

    Parameters
    ----------
    outputs : sequence of pytensor.graph.basic.Variable
        What the graph computes.
    replacements : mapping of Variable to Variable
        What to put in the place of what.

    Returns
    -------
    list of pytensor.graph.basic.Variable
        The new outputs; the given graph is left as it is.
    """
    new: dict[Variable, Variable] = dict(replacements)
    for item in _post_order(outputs, stop=new):
        if not isinstance(item, Apply):
            new[item] = item
            continue
        inputs = [new[v] for v in item.inputs]
        if all(a is b for a, b in zip(inputs, item.inputs, strict=True)):
            clones = item.outputs
        else:
            clones = item.clone_with_new_inputs(inputs, strict=False).outputs
        # A replacement made for one output of a node with several must survive the node.
        new.update((a, b) for a, b in zip(item.outputs, clones, strict=True) if a not in new)
    return [new[v] for v in outputs]


def is_source(variable: Variable) -> bool:
    """Tell whether a variable without an owner carries data."""
    if isinstance(variable, SharedVariable):
        return isinstance(variable.type, TensorType | RandomType)
    return (
        isinstance(variable, Constant)
        and isinstance(variable.type, TensorType)
        and np.size(variable.data) > LARGEST_STRUCTURAL_CONSTANT
    )


def placeholder(source: Variable) -> Variable:
    """Return the input that stands for a piece of data: of any shape for a shared variable.

    A constant keeps its static shape, because the graph around it was built for that shape.
    """
    if isinstance(source.type, RandomType):
        return source.type()
    shape = source.type.shape if isinstance(source, Constant) else (None,) * source.type.ndim
    return pt.TensorType(source.type.dtype, shape)(source.name)


def _source_value(source: Variable) -> Any:
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


def _post_order(
    outputs: Sequence[Variable], stop: Mapping[Variable, Any]
) -> Iterator[Variable | Apply]:
    """Yield every node after what it needs, in an order given by the structure alone."""
    seen: set[Variable | Apply] = set()
    stack: list[tuple[Variable | Apply, bool]] = [(v, False) for v in reversed(outputs)]
    while stack:
        item, ready = stack.pop()
        if ready:
            yield item
            continue
        if isinstance(item, Variable):
            if item in stop or item in seen:
                continue
            if item.owner is not None:
                stack.append((item.owner, False))
                continue
            seen.add(item)
            yield item
            continue
        if item in seen:
            continue
        seen.add(item)
        stack.append((item, True))
        stack.extend((v, False) for v in reversed(item.inputs))
