"""PyMC model factories, imported as ``bayesrank.models``: one function per likelihood.

Each takes data and keyword-only options and returns a :class:`pymc.Model` that stands on its own.
PyMC is imported with the first factory that is looked up here.
"""

if __name__ == "models":
    raise ImportError("import the factories as bayesrank.models, not as models")

from importlib import import_module
from typing import Any

_FACTORIES = {
    "bradley_terry": "paired",
    "davidson": "paired",
    "rao_kupper": "paired",
    "dirichlet_multinomial": "categorical",
    "hierarchical_binomial": "hierarchical",
    "mirt": "multidimensional",
    "irt_2pl_mml": "marginal",
    "rasch_mml": "marginal",
    "dynamic_irt": "dynamic",
    "irt_3pl": "items",
    "irt_2pl": "items",
    "rasch": "items",
    "standardized_accuracy": "standardized",
    "davidson_luce": "luce",
    "bradley_terry_luce": "luce",
    "plackett_luce": "luce",
}


def __getattr__(name: str) -> Any:
    if name not in _FACTORIES:
        raise AttributeError(f"module 'bayesrank.models' has no factory {name!r}")
    return getattr(import_module(f"bayesrank.models.{_FACTORIES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_FACTORIES])
