"""What is compared with what: every published configuration, and its name in the peer.

The peer is Scorio, the library of the papers; it is optional, and without it one side is measured
alone. https://pypi.org/project/scorio/
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import bayesrank
from bayesrank import PRESETS, Responses, rank
from bayesrank.method import LIKELIHOOD_BACKENDS, Preset

Outcomes = NDArray[np.int8]

# NUTS has no point estimate without draws; these are per chain.
NUTS_DRAWS = 1000


@dataclass(frozen=True)
class PeerCall:
    """A configuration in the peer.

    Attributes
    ----------
    function : str
        Name in ``scorio.rank``.
    options : mapping
        What differs from its defaults.
    log : bool
        Whether its scores are strengths, whose logarithm is the score here.
    earlier : bool
        Whether it takes the earlier outcomes.
    """

    function: str
    options: Mapping[str, Any] = field(default_factory=dict)
    log: bool = False
    earlier: bool = False


def _variants(
    prefix: str, function: str, keyword: str, values: tuple[str, ...], **options: Any
) -> dict[str, PeerCall]:
    """Return one configuration per value of an option, named after it."""
    return {
        f"{prefix}_{value}": PeerCall(function, {**options, keyword: value}) for value in values
    }


_ELO = {"K": 0.05, "initial_rating": 1500.0}
_RATING_TIES = ("skip", "draw", "correct_draw_only")
_TIES = ("ignore", "half")
_STRENGTHS = (
    "bradley_terry",
    "bradley_terry_davidson",
    "rao_kupper",
    "plackett_luce",
    "bradley_terry_luce",
    "davidson_luce",
)
_SAME_NAME = (
    "avg",
    "bayes",
    "inverse_difficulty",
    "thompson",
    "borda",
    "copeland",
    "win_rate",
    "majority_judgment",
    "pagerank",
    "spectral",
    "alpharank",
    "bayesian_mcmc",
    "rasch",
    "rasch_map",
    "rasch_2pl",
    "rasch_2pl_map",
    "rasch_3pl",
    "rasch_3pl_map",
    "rasch_mml",
    "rasch_mml_credible",
)

PEER_CALLS: Mapping[str, PeerCall] = {
    **{name: PeerCall(name) for name in _SAME_NAME},
    **{
        f"{name}{map_}": PeerCall(name + map_, log=True)
        for name in _STRENGTHS
        for map_ in ("", "_map")
    },
    "pass_at_k_2": PeerCall("pass_at_k", {"k": 2}),
    "pass_hat_k_2": PeerCall("pass_hat_k", {"k": 2}),
    "mg_pass_at_k_2": PeerCall("mg_pass_at_k", {"k": 2}),
    "bayes_greedy": PeerCall("bayes", earlier=True),
    "bayes_ci": PeerCall("bayes", {"quantile": 0.05}),
    **_variants("elo_tie", "elo", "tie_handling", _RATING_TIES, **_ELO),
    **_variants("glicko_tie", "glicko", "tie_handling", _RATING_TIES),
    "trueskill": PeerCall("trueskill", {"tau": 0.00333333333}),
    **_variants("minimax_variant_margin_tie", "minimax", "tie_policy", _TIES, variant="margin"),
    **_variants(
        "minimax_variant_winning_votes_tie",
        "minimax",
        "tie_policy",
        _TIES,
        variant="winning_votes",
    ),
    **_variants("schulze_tie", "schulze", "tie_policy", _TIES),
    **_variants(
        "ranked_pairs_strength_margin_tie", "ranked_pairs", "tie_policy", _TIES, strength="margin"
    ),
    **_variants(
        "ranked_pairs_strength_winning_votes_tie",
        "ranked_pairs",
        "tie_policy",
        _TIES,
        strength="winning_votes",
    ),
    **_variants("kemeny_young_tie", "kemeny_young", "tie_policy", _TIES),
    **_variants("nanson_rank_ties", "nanson", "rank_ties", ("average", "max")),
    **_variants("baldwin_rank_ties", "baldwin", "rank_ties", ("average", "max")),
    **_variants("nash", "nash", "score_type", ("vs_equilibrium", "advantage_vs_equilibrium")),
    **_variants("rank_centrality_tie", "rank_centrality", "tie_handling", _TIES),
    **_variants("serial_rank", "serial_rank", "comparison", ("prob_diff", "sign")),
    **{
        f"hodge_rank_{statistic}_{weights}": PeerCall(
            "hodge_rank", {"pairwise_stat": statistic, "weight_method": weights}
        )
        for statistic in ("binary", "log_odds")
        for weights in ("total", "decisive", "uniform")
    },
    "dynamic_irt_linear": PeerCall("dynamic_irt"),
    "dynamic_irt_growth": PeerCall(
        "dynamic_irt",
        {"variant": "growth", "score_target": "initial", "assume_time_axis": True},
    ),
    "dynamic_irt_state_space": PeerCall(
        "dynamic_irt", {"variant": "state_space", "assume_time_axis": True}
    ),
}


def is_likelihood(preset: Preset) -> bool:
    """Return whether a configuration fits a likelihood."""
    return preset.backend in LIKELIHOOD_BACKENDS or preset.backend == "mml"


def select(names: str, wanted: Callable[[Preset], bool]) -> list[str]:
    """Return the configurations that names separated by commas ask for, or all that are wanted."""
    if not names:
        return [name for name, preset in PRESETS.items() if wanted(preset)]
    chosen = names.split(",")
    for name in chosen:
        if name not in PRESETS:
            known = ", ".join(PRESETS)
            raise SystemExit(f"--presets must be among {known}; got {name!r}")
    return chosen


def has_peer() -> bool:
    """Return whether the peer is installed."""
    return find_spec("scorio") is not None


def point_estimate(
    preset: Preset, outcomes: Outcomes, earlier: Outcomes
) -> Callable[[], NDArray[np.float64]]:
    """Return a call from outcomes to scores: checks, sufficient statistics and the estimate.

    It is :func:`bayesrank.point_estimate`, which does what :func:`bayesrank.rank` does up to the
    result tree; or the posterior mean of draws, where there is no estimate without them.
    """
    if preset.backend == "nuts":
        drawn = ranking(preset, outcomes, earlier, draws=NUTS_DRAWS)
        return lambda: drawn()["ranking"].to_dataset()["score"].values
    return lambda: bayesrank.point_estimate(_responses(preset, outcomes, earlier), preset.name)


def _responses(preset: Preset, outcomes: Outcomes, earlier: Outcomes) -> Responses:
    """Return the data, with earlier outcomes where they are used."""
    used = preset.options.get("use_prior_outcomes", False)
    return Responses(outcomes, prior_outcomes=earlier if used else None)


def ranking(
    preset: Preset, outcomes: Outcomes, earlier: Outcomes, *, draws: int
) -> Callable[[], xr.DataTree]:
    """Return a call from outcomes to the result tree of :func:`bayesrank.rank`.

    `draws` are per chain, of four chains; 0 for the point estimate alone.
    """

    def call() -> xr.DataTree:
        data = _responses(preset, outcomes, earlier)
        return rank(data, preset.name, draws=draws, random_seed=1)

    return call


def peer_estimate(
    name: str, outcomes: Outcomes, earlier: Outcomes
) -> Callable[[], NDArray[np.float64]] | None:
    """Return the same call of the peer, with strengths as logarithms; None where it has none."""
    if not has_peer() or name not in PEER_CALLS:
        return None
    import scorio.rank  # pyright: ignore[reportMissingImports]

    entry = PEER_CALLS[name]
    function = getattr(scorio.rank, entry.function)
    options = {**entry.options, **({"R0": earlier} if entry.earlier else {})}

    def call() -> NDArray[np.float64]:
        scores = function(outcomes, return_scores=True, **options)[1]
        return np.log(scores) if entry.log else scores

    return call
