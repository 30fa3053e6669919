"""A PyMC model seen as functions of one flat vector, its data set apart."""

# PyTensor does not declare what it exports.
# pyright: reportPrivateImportUsage=false

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import pymc as pm
import pytensor.tensor as pt
from pymc.initial_point import make_initial_point_expression
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import graph_inputs

from bayesrank.inference.graph.structure import Abstraction, abstract, placeholder, rebuild

Kind = Literal["mle", "map", "nuts"]
KINDS: tuple[Kind, ...] = ("mle", "map", "nuts")


@dataclass(frozen=True)
class FlatInputs:
    """The inputs that stand for a model's parameters and data in compiled code.

    Attributes
    ----------
    x : pytensor.tensor.TensorVariable
        All free parameters on the unconstrained scale, one vector.
    shapes : tuple of pytensor.tensor.TensorVariable
        The shape of each array parameter; a parameter alone in the model needs none.
    data : tuple of pytensor.graph.basic.Variable
        One input per piece of data.
    replacements : dict
        What each variable of the model's graph becomes.
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
            if len(parameters) == 1 and v.type.ndim == 1:
                part: Any = x
            elif v.type.ndim == 0:
                part, offset = x[offset], offset + 1
            else:
                shape: Any = pt.TensorType("int64", (v.type.ndim,))(f"{v.name}_shape")
                shapes.append(shape)
                size = shape[0] if v.type.ndim == 1 else pt.prod(shape)
                part, offset = x[offset : offset + size], offset + size
                if v.type.ndim > 1:
                    part = part.reshape(shape, ndim=v.type.ndim)
            replacements[v] = v.type.filter_variable(part.astype(v.type.dtype), allow_convert=True)
        data = tuple(placeholder(s) for s in sources)
        replacements.update(zip(sources, data, strict=True))
        return cls(x, tuple(shapes), data, replacements)


class FlatModel:
    """The log-probability, starting point and named variables of a model as graphs.

    Parameters
    ----------
    model : pymc.Model
        Any model whose free variables are continuous.
    kind : {"mle", "map", "nuts"}
        The likelihood alone; likelihood and priors; or both with the Jacobians of the transforms.

    Attributes
    ----------
    parameters : tuple of pytensor.tensor.TensorVariable
        The value variables that the log-probability depends on, in the model's order. Under "mle"
        a prior's own hyperparameters are not among them: the likelihood does not see them.
    logp : pytensor.tensor.TensorVariable
        The log-probability, a scalar.
    structure : Abstraction
        Its structure and data.
    """

    def __init__(self, model: pm.Model, kind: Kind) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}")
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
        self.model = model
        self.kind = kind
        self.logp = logp
        self.parameters = tuple(v for v in model.value_vars if v in used)
        if not self.parameters:
            raise ValueError("model must have free variables; got none")
        self.structure = abstract([logp], self.parameters)
        if self.structure.is_random:
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
    def named_structure(self) -> Abstraction:
        """Structure and data of the graphs of `named`."""
        return abstract(list(self.named.values()), self.parameters)


def substitute(outputs: Sequence[Variable], inputs: FlatInputs) -> list[Any]:
    """Return graphs of a model as graphs of the flat inputs."""
    return rebuild(outputs, inputs.replacements)
