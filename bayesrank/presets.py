"""The 72 configurations of "Ranking reasoning LLMs under test-time scaling", and three more.

A preset fixes the model, prior, penalties, options and back end that were published; options given
to :func:`bayesrank.rank` override its own. Every fit is solved to convergence and every integral to
numerical accuracy, without the limits of the publication. https://doi.org/10.48550/arXiv.2603.10960
The three are in the library of the same authors; `bayesrank.studies` does not compare them.
"""

from collections.abc import Mapping
from types import MappingProxyType

from bayesrank.method import Preset

_ROWS = (
    Preset("avg", "avg", "bootstrap"),
    Preset("bayes", "bayes", "exact"),
    Preset("bayes_greedy", "bayes", "exact", options={"use_prior_outcomes": True}),
    Preset("bayes_ci", "bayes", "exact", options={"quantile": 0.05}),
    Preset("pass_at_k_2", "pass_at_k", "exact", options={"k": 2}),
    Preset("pass_hat_k_2", "pass_hat_k", "exact", options={"k": 2}),
    Preset("mg_pass_at_k_2", "mg_pass_at_k", "exact", options={"k": 2}),
    Preset(
        "inverse_difficulty",
        "inverse_difficulty",
        "bootstrap",
        options={"clip_low": 0.01, "clip_high": 0.99},
    ),
    Preset("thompson", "thompson", "exact", options={"alpha": 1.0, "beta": 1.0}),
    Preset(
        "elo_tie_skip",
        "elo",
        "bootstrap",
        options={"K": 0.05, "initial_rating": 1500.0, "tie_policy": "skip"},
    ),
    Preset(
        "elo_tie_draw",
        "elo",
        "bootstrap",
        options={"K": 0.05, "initial_rating": 1500.0, "tie_policy": "draw"},
    ),
    Preset(
        "elo_tie_correct_draw_only",
        "elo",
        "bootstrap",
        options={"K": 0.05, "initial_rating": 1500.0, "tie_policy": "correct_draw_only"},
    ),
    Preset(
        "glicko_tie_skip",
        "glicko",
        "bootstrap",
        options={"c": 0.0, "rd_max": 350.0, "tie_policy": "skip"},
    ),
    Preset(
        "glicko_tie_draw",
        "glicko",
        "bootstrap",
        options={"c": 0.0, "rd_max": 350.0, "tie_policy": "draw"},
    ),
    Preset(
        "glicko_tie_correct_draw_only",
        "glicko",
        "bootstrap",
        options={"c": 0.0, "rd_max": 350.0, "tie_policy": "correct_draw_only"},
    ),
    Preset("trueskill", "trueskill", "bootstrap", options={"tau": 0.00333333333}),
    Preset("borda", "borda", "bootstrap"),
    Preset("copeland", "copeland", "bootstrap"),
    Preset("win_rate", "win_rate", "bootstrap"),
    Preset(
        "minimax_variant_margin_tie_ignore",
        "minimax",
        "bootstrap",
        options={"variant": "margin", "tie_policy": "ignore"},
    ),
    Preset(
        "minimax_variant_margin_tie_half",
        "minimax",
        "bootstrap",
        options={"variant": "margin", "tie_policy": "half"},
    ),
    Preset(
        "minimax_variant_winning_votes_tie_ignore",
        "minimax",
        "bootstrap",
        options={"variant": "winning_votes", "tie_policy": "ignore"},
    ),
    Preset(
        "minimax_variant_winning_votes_tie_half",
        "minimax",
        "bootstrap",
        options={"variant": "winning_votes", "tie_policy": "half"},
    ),
    Preset("schulze_tie_ignore", "schulze", "bootstrap", options={"tie_policy": "ignore"}),
    Preset("schulze_tie_half", "schulze", "bootstrap", options={"tie_policy": "half"}),
    Preset(
        "ranked_pairs_strength_margin_tie_ignore",
        "ranked_pairs",
        "bootstrap",
        options={"strength": "margin", "tie_policy": "ignore"},
    ),
    Preset(
        "ranked_pairs_strength_margin_tie_half",
        "ranked_pairs",
        "bootstrap",
        options={"strength": "margin", "tie_policy": "half"},
    ),
    Preset(
        "ranked_pairs_strength_winning_votes_tie_ignore",
        "ranked_pairs",
        "bootstrap",
        options={"strength": "winning_votes", "tie_policy": "ignore"},
    ),
    Preset(
        "ranked_pairs_strength_winning_votes_tie_half",
        "ranked_pairs",
        "bootstrap",
        options={"strength": "winning_votes", "tie_policy": "half"},
    ),
    Preset(
        "kemeny_young_tie_ignore", "kemeny_young", "bootstrap", options={"tie_policy": "ignore"}
    ),
    Preset("kemeny_young_tie_half", "kemeny_young", "bootstrap", options={"tie_policy": "half"}),
    Preset("nanson_rank_ties_average", "nanson", "bootstrap", options={"rank_ties": "average"}),
    Preset("nanson_rank_ties_max", "nanson", "bootstrap", options={"rank_ties": "max"}),
    Preset("baldwin_rank_ties_average", "baldwin", "bootstrap", options={"rank_ties": "average"}),
    Preset("baldwin_rank_ties_max", "baldwin", "bootstrap", options={"rank_ties": "max"}),
    Preset("majority_judgment", "majority_judgment", "bootstrap"),
    Preset("pagerank", "pagerank", "bootstrap", options={"damping": 0.85}),
    Preset("spectral", "spectral", "bootstrap"),
    Preset("alpharank", "alpharank", "bootstrap", options={"alpha": 1.0, "population_size": 50}),
    Preset("nash_vs_equilibrium", "nash", "bootstrap", options={"score_type": "vs_equilibrium"}),
    Preset(
        "nash_advantage_vs_equilibrium",
        "nash",
        "bootstrap",
        options={"score_type": "advantage_vs_equilibrium"},
    ),
    Preset(
        "rank_centrality_tie_ignore",
        "rank_centrality",
        "bootstrap",
        options={"tie_policy": "ignore"},
    ),
    Preset(
        "rank_centrality_tie_half", "rank_centrality", "bootstrap", options={"tie_policy": "half"}
    ),
    Preset(
        "serial_rank_prob_diff", "serial_rank", "bootstrap", options={"comparison": "prob_diff"}
    ),
    Preset("serial_rank_sign", "serial_rank", "bootstrap", options={"comparison": "sign"}),
    Preset(
        "hodge_rank_binary_total",
        "hodge_rank",
        "bootstrap",
        options={"pairwise_stat": "binary", "weights": "total"},
    ),
    Preset(
        "hodge_rank_binary_decisive",
        "hodge_rank",
        "bootstrap",
        options={"pairwise_stat": "binary", "weights": "decisive"},
    ),
    Preset(
        "hodge_rank_binary_uniform",
        "hodge_rank",
        "bootstrap",
        options={"pairwise_stat": "binary", "weights": "uniform"},
    ),
    Preset(
        "hodge_rank_log_odds_total",
        "hodge_rank",
        "bootstrap",
        options={"pairwise_stat": "log_odds", "weights": "total"},
    ),
    Preset(
        "hodge_rank_log_odds_decisive",
        "hodge_rank",
        "bootstrap",
        options={"pairwise_stat": "log_odds", "weights": "decisive"},
    ),
    Preset(
        "hodge_rank_log_odds_uniform",
        "hodge_rank",
        "bootstrap",
        options={"pairwise_stat": "log_odds", "weights": "uniform"},
    ),
    Preset("bradley_terry", "bradley_terry", "mle"),
    Preset("bradley_terry_map", "bradley_terry", "map", prior="normal(0, 1)"),
    Preset("bradley_terry_davidson", "davidson", "mle"),
    Preset(
        "bradley_terry_davidson_map",
        "davidson",
        "map",
        prior="normal(0, 1)",
        options={"tie_prior": "flat"},
    ),
    Preset("rao_kupper", "rao_kupper", "mle", options={"tie_strength": 1.1}),
    Preset(
        "rao_kupper_map",
        "rao_kupper",
        "map",
        prior="normal(0, 1)",
        options={"tie_strength": 1.1},
    ),
    Preset("plackett_luce", "plackett_luce", "mle"),
    Preset("plackett_luce_map", "plackett_luce", "map", prior="normal(0, 1)"),
    Preset("bradley_terry_luce", "bradley_terry_luce", "mle"),
    Preset("bradley_terry_luce_map", "bradley_terry_luce", "map", prior="normal(0, 1)"),
    Preset("davidson_luce", "davidson_luce", "mle"),
    Preset("davidson_luce_map", "davidson_luce", "map", prior="normal(0, 1)"),
    Preset(
        "bayesian_mcmc", "bradley_terry", "nuts", prior="normal(0, 1)", options={"centred": False}
    ),
    Preset("rasch", "rasch", "mle"),
    Preset("rasch_map", "rasch", "map", prior="normal(0, 1)", options={"difficulty_prior": "flat"}),
    Preset("rasch_2pl", "irt_2pl", "mle", options={"centred": False}),
    Preset(
        "rasch_2pl_map",
        "irt_2pl",
        "map",
        prior="normal(0, 1)",
        options={"centred": False, "difficulty_prior": "flat", "discrimination_prior": "flat"},
    ),
    Preset("rasch_3pl", "irt_3pl", "mle", options={"centred": False}),
    Preset(
        "rasch_3pl_map",
        "irt_3pl",
        "map",
        prior="normal(0, 1)",
        options={
            "centred": False,
            "difficulty_prior": "flat",
            "discrimination_prior": "flat",
            "guessing_prior": "flat",
        },
    ),
    Preset("rasch_mml", "rasch_mml", "mml", options={"ability_mean": 0.0, "ability_sd": 1.0}),
    Preset(
        "rasch_mml_credible",
        "rasch_mml",
        "mml",
        options={"ability_mean": 0.0, "ability_sd": 1.0, "quantile": 0.05},
    ),
    Preset("dynamic_irt_linear", "dynamic_irt", "mle", options={"variant": "linear"}),
    Preset(
        "dynamic_irt_growth",
        "dynamic_irt",
        "mle",
        options={"variant": "growth", "assume_time_axis": True, "score_target": "initial"},
    ),
    Preset(
        "dynamic_irt_state_space",
        "dynamic_irt",
        "mle",
        options={"variant": "state_space", "assume_time_axis": True},
    ),
)

PRESETS: Mapping[str, Preset] = MappingProxyType({row.name: row for row in _ROWS})
