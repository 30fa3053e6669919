"""Move what depends on the data alone out of a graph, to be computed once per data set."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pytensor.graph.basic import Variable
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import toposort
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.type import TensorType

from bayesrank.inference.graph.structure import rebuild

# The third entry turns PyMC's parameter checks into minus infinity, as Model.compile_logp does.
REWRITES = ("canonicalize", "stabilize", "local_check_parameter_to_ninf_switch")


@dataclass(frozen=True)
class Hoisted:
    """A graph whose data-only parts have become inputs.

    Attributes
    ----------
    output : pytensor.graph.basic.Variable
        The graph that remains.
    inputs : tuple of pytensor.graph.basic.Variable
        The new inputs of that graph.
    parts : tuple of pytensor.graph.basic.Variable
        What computes them from the data, in the same order.
    """

    output: Variable
    inputs: tuple[Variable, ...]
    parts: tuple[Variable, ...]


def simplify(output: Variable) -> Variable:
    """Return the graph simplified and stabilised, in PyMC's meaning of bad parameters."""
    return cast(Variable, rewrite_graph(output, include=REWRITES))


def hoist(output: Variable, moving: Sequence[Variable], data: Sequence[Variable]) -> Hoisted:
    """Cut a graph along the border between what moves with the parameters and what does not.

    Binomial coefficients, bounds checks and sums over the data cost more than the likelihood
    itself in an observed model, and an optimiser or a sampler evaluates it thousands of times.

    Parameters
    ----------
    output : pytensor.graph.basic.Variable
        The graph, simplified, so that data-only terms stand by themselves.
    moving : sequence of pytensor.graph.basic.Variable
        The inputs that change between evaluations.
    data : sequence of pytensor.graph.basic.Variable
        The inputs that are fixed by the data set.

    Returns
    -------
    Hoisted
        The graph that remains, its new inputs, and the parts that were moved out.
    """
    dynamic: set[Variable] = set(moving)
    # Arithmetic on scalars and shapes is cheaper to repeat than to pass as one more argument, so
    # only what reads the elements of a data array is worth moving.
    reading = {v for v in data if isinstance(v.type, TensorType) and v.type.ndim > 0}
    order = list(toposort([output]))
    border: dict[Variable, None] = {}
    for node in order:
        if any(v in dynamic for v in node.inputs):
            dynamic.update(node.outputs)
            border.update((v, None) for v in node.inputs if v in reading and v.owner is not None)
        elif not isinstance(node.op, Shape | Shape_i) and any(v in reading for v in node.inputs):
            reading.update(node.outputs)
    if output in reading and output.owner is not None:
        border[output] = None
    parts = tuple(border)
    inputs = tuple(v.type() for v in parts)
    (rest,) = rebuild([output], dict(zip(parts, inputs, strict=True)))
    return Hoisted(rest, inputs, parts)
