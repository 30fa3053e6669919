"""PyMC model factories, imported as ``bayesrank.models``: one function per likelihood.

Each takes data and keyword-only options and returns a complete :class:`pymc.Model`.
The names are those of the factories in the catalog. The first access to a factory imports PyMC.
"""

if __name__ == "models":
    raise ImportError("import the factories as bayesrank.models, not as models")

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers; a test holds these names to the catalog
    from bayesrank.models.categorical import dirichlet_multinomial as dirichlet_multinomial
    from bayesrank.models.dynamic import dynamic_irt as dynamic_irt
    from bayesrank.models.hierarchical import hierarchical_binomial as hierarchical_binomial
    from bayesrank.models.items import irt_2pl as irt_2pl
    from bayesrank.models.items import irt_3pl as irt_3pl
    from bayesrank.models.items import rasch as rasch
    from bayesrank.models.luce import bradley_terry_luce as bradley_terry_luce
    from bayesrank.models.luce import davidson_luce as davidson_luce
    from bayesrank.models.luce import plackett_luce as plackett_luce
    from bayesrank.models.marginal import irt_2pl_mml as irt_2pl_mml
    from bayesrank.models.marginal import rasch_mml as rasch_mml
    from bayesrank.models.multidimensional import mirt as mirt
    from bayesrank.models.paired import bradley_terry as bradley_terry
    from bayesrank.models.paired import davidson as davidson
    from bayesrank.models.paired import rao_kupper as rao_kupper
    from bayesrank.models.paired import thurstone_mosteller as thurstone_mosteller
    from bayesrank.models.paired_states import dynamic_comparisons as dynamic_comparisons
    from bayesrank.models.paired_states import hierarchical_comparisons as hierarchical_comparisons
    from bayesrank.models.standardized import standardized_accuracy as standardized_accuracy
    from bayesrank.models.votes import cumulative_logit as cumulative_logit
    from bayesrank.models.votes import davidson_outside as davidson_outside
else:

    def __getattr__(name: str) -> Any:
        from bayesrank.method import load_function

        factories = _factories()
        if name not in factories:
            raise AttributeError(f"module 'bayesrank.models' has no factory {name!r}")
        return load_function(factories[name])


def _factories() -> dict[str, str]:
    """Return ``module:function`` of each factory in the catalog, by name of the function."""
    from bayesrank.catalog import METHODS  # data that factories take are defined beside it

    paths = {row.factory_path for row in METHODS.values()}
    return {path.split(":")[1]: path for path in paths if path.startswith(f"{__name__}.")}


def __dir__() -> list[str]:
    return sorted([*globals(), *_factories()])
