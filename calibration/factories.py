"""The models that simulation-based calibration examines, and the designs of their data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import numpy as np

from bayesrank import METHODS, Ballots, Battles, Comparisons, Responses
from bayesrank.method import load_function
from calibration.worlds import Design, derive_seed, draw_world

DESIGN = Design(8, 12, 4)

Kind = Literal[
    "responses",
    "groups",
    "categories",
    "comparisons",
    "battles",
    "graded",
    "votes",
    "arena",
    "rankings",
]


@dataclass(frozen=True, eq=False)
class Factory:
    """A factory with the options that make a model of its own.

    Attributes
    ----------
    name : str
        Name in the tables: that of the method, with the variant.
    kind : str
        Which data it gets, see :func:`template`.
    options : mapping
        Options of the factory; priors are the default ones.
    """

    name: str
    kind: Kind = "responses"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """Row of the catalog."""
        return self.name.split(" ")[0]

    @property
    def correlated(self) -> bool:
        """Whether NUTS adapts to correlations, as it does by default for the method."""
        return METHODS[self.method].correlated

    def build(self) -> Any:
        """Return the model of the template's design."""
        factory = load_function(METHODS[self.method].factory_path)
        return factory(template(self.kind), **self.options)


_TIME = {"assume_time_axis": True}

FACTORIES = {
    one.name: one
    for one in (
        Factory("bradley_terry", "comparisons"),
        Factory("bradley_terry (not centred)", "comparisons", {"centred": False}),
        Factory("bradley_terry (order effect)", "battles", {"order_effect": True}),
        Factory("davidson", "comparisons"),
        Factory("rao_kupper", "comparisons"),
        Factory("thurstone_mosteller", "comparisons"),
        *(
            Factory(f"{name} (covariates)", "votes", {"formula": "length"})
            for name in ("bradley_terry", "davidson", "rao_kupper", "thurstone_mosteller")
        ),
        Factory("cumulative_logit", "graded"),
        Factory("cumulative_logit (covariates)", "votes", {"formula": "length"}),
        Factory("cumulative_logit (raters)", "votes", {"raters": "judge"}),
        Factory("davidson_outside", "graded"),
        Factory("davidson_outside (covariates)", "votes", {"formula": "length"}),
        Factory("hierarchical_comparisons", "arena"),
        Factory("hierarchical_comparisons (covariates)", "arena", {"formula": "length"}),
        Factory("dynamic_comparisons", "arena", {"period": 30}),
        Factory("dynamic_comparisons (covariates)", "arena", {"period": 30, "formula": "length"}),
        Factory("plackett_luce", "comparisons"),
        Factory("plackett_luce (rankings)", "rankings"),
        Factory("bradley_terry_luce"),
        Factory("davidson_luce"),
        Factory("davidson_luce (events)", options={"rows": "event"}),
        Factory("rasch"),
        Factory("irt_2pl"),
        Factory("irt_2pl (not centred)", options={"centred": False}),
        Factory("irt_3pl"),
        Factory("irt_3pl (not centred)", options={"centred": False}),
        Factory("dynamic_irt", options=_TIME),
        Factory("dynamic_irt (state space)", options=_TIME | {"variant": "state_space"}),
        Factory("mirt"),
        Factory("hierarchical_binomial", "groups"),
        Factory("bayes"),
        Factory("bayes (categories)", "categories"),
        Factory("rasch_mml"),
        Factory("rasch_mml (mean given)", options={"ability_mean": 0.0}),
        Factory("irt_2pl_mml"),
        Factory("standardized_accuracy"),
    )
}


@cache
def template(kind: Kind) -> Any:
    """Return data of the design; simulations replace the outcomes and keep who met whom.

    Parameters
    ----------
    kind : str
        Right or wrong ``responses``, also with three ``groups`` of questions; outcomes of three
        ``categories``; all ``comparisons`` that the responses imply; as many ``battles`` as there
        are responses, with a system named first; as many ``rankings`` as there are events, of two
        systems or more; as many ``graded`` votes as there are responses, with ties and votes for
        neither, and 400 such ``votes`` of 20 judges with a covariate; 400 battles of an ``arena``
        with three groups, three periods of 30 days and a covariate.

    Returns
    -------
    Responses, Comparisons, Battles or Ballots
    """
    rng = np.random.default_rng(derive_seed("sbc", "template", kind))
    n_systems, n_questions, n_trials = DESIGN
    match kind:
        case "categories":
            return Responses(rng.integers(0, 3, DESIGN).astype(np.int8), weights=[0.0, 0.4, 1.0])
        case "graded" | "votes":
            n = int(np.prod(DESIGN)) if kind == "graded" else 400
            sides = np.array([rng.permutation(n_systems)[:2] for _ in range(n)])
            words = ["A>>B", "A>B", "A=B", "B>A", "B>>A", "both_bad"]
            more = {"judge": rng.integers(20, size=n), "covariates": {"length": rng.normal(size=n)}}
            more = more if kind == "votes" else {}
            return Battles(*sides.T, rng.choice(words, n), systems=range(n_systems), **more)
        case "arena":
            sides = np.array([rng.permutation(n_systems)[:2] for _ in range(400)])
            winners = rng.choice(["first", "second", "tie"], 400)
            group, time = np.arange(400) % 3, np.linspace(0.0, 89.0, 400) * 86_400
            more = {"group": group, "time": time, "covariates": {"length": rng.normal(size=400)}}
            return Battles(*sides.T, winners, systems=range(n_systems), **more)
        case "battles":
            sides = [rng.permutation(n_systems)[:2] for _ in range(np.prod(DESIGN))]
            winners = rng.choice(["first", "second"], len(sides)).tolist()
            first, second = np.transpose(sides).tolist()
            return Comparisons.from_battles(first, second, winners, systems=range(n_systems))
        case "rankings":
            sizes = rng.integers(2, n_systems + 1, n_questions * n_trials)
            rankings = [rng.permutation(n_systems)[:size].tolist() for size in sizes]
            return Ballots.from_rankings(rankings, systems=range(n_systems))
    world = draw_world(DESIGN, "benchmark", "rasch", rng)
    outcomes = world.draw_outcomes(rng, 1)[0]
    groups = [f"group {1 + 3 * m // n_questions}" for m in range(n_questions)]
    responses = Responses(outcomes, groups=groups if kind == "groups" else None)
    return responses.comparisons if kind == "comparisons" else responses
