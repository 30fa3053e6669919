"""Published configurations without a likelihood against what the papers' own library stored.

`oracle/README.md` in the shared folder says which of its values may be compared. Every preset of
the NumPy layer is compared, in scores and ranks; what differs is listed here, with the reason.
Likelihood-based presets are compared with exact optima in the tests of their kernels.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from bayesrank import PRESETS, Responses, point_estimate
from bayesrank.errors import NoFiniteEstimate
from bayesrank.results.ranks import rank_scores

TOLERANCE = 1e-9
NUMPY_PRESETS = {
    name: preset for name, preset in PRESETS.items() if preset.backend in ("bootstrap", "exact")
}

# Under these options the stored definition is computed, where the preset has the papers'.
STORED_DEFINITIONS: dict[str, dict[str, Any]] = {
    # A system keeps what its wins leave over, instead of columns that are scaled to one.
    "pagerank": {"transition": "retained"},
    # A constant on the diagonal, and smoothed counts, instead of row sums.
    "spectral": {"diagonal": "constant", "smoothing": 1.0},
    # Eliminates at or below the mean, the preset strictly below.
    "nanson_rank_ties_average": {"at_or_below": True},
    "nanson_rank_ties_max": {"at_or_below": True},
}
# Stored configurations that are no presets: the method and its options.
FURTHER: dict[str, tuple[str, dict[str, Any]]] = {
    "mg_pass_at_k_3": ("mg_pass_at_k", {"k": 3}),
    "g_pass_at_k_tau_3_06": ("g_pass_at_k_tau", {"k": 3, "tau": 0.6}),
    "nash_equilibrium": ("nash", {"score_type": "equilibrium"}),
    "rank_centrality_tie_ignore_teleport": (
        "rank_centrality",
        {"tie_policy": "ignore", "teleport": 0.05},
    ),
    "rank_centrality_tie_ignore_smooth": (
        "rank_centrality",
        {"tie_policy": "ignore", "smoothing": 0.5},
    ),
    "elo_K32": ("elo", {"K": 32.0, "tie_policy": "correct_draw_only"}),
    # The preset is a method of the same name, with another drift.
    "trueskill_default": ("trueskill", {"tau": 0.08333333333333333}),
    "trueskill_draw": (
        "trueskill",
        {"tau": 0.08333333333333333, "tie_policy": "draw", "draw_margin": 0.74},
    ),
}
# Sampled with 10,000 draws, which are good to 0.03; its exact expected ranks have a test below.
NOT_COMPARED = {"thompson"}

# The stored order among victories of equal strength depends on labels. Here they are locked
# together, and in these cases that matters.
EQUAL_VICTORIES = {
    "edge_condorcet_cycle_l4_s1",
    "edge_condorcet_cycle_symmetric_s1",
    "rasch_20x30x80_s3",
    "rasch_20x30x80_s4",
    "rasch_20x30x80_s5",
}
NOBODY_WRONG_ALONE = {"edge_all_ones_s1"} | {f"edge_all_ties_s{seed}" for seed in range(1, 6)}
EVEN_PAIRS = {"edge_two_models_symmetric_s1", "rasch_2x5x3_s1", "rasch_2x5x3_s5"}
EQUAL_ACCURACY = (
    NOBODY_WRONG_ALONE
    | EVEN_PAIRS
    | {f"edge_equal_accuracy_s{seed}" for seed in range(1, 6)}
    | {"edge_condorcet_cycle_symmetric_s1"}
)
# Where no system is ahead of another, the stored scores are one number for all, the accuracy or
# 1 / L; a Fiedler vector and a potential have sum zero, so here they are zero.
ZERO_INSTEAD = {
    "serial_rank_prob_diff": EQUAL_ACCURACY,
    "serial_rank_sign": EQUAL_ACCURACY,
    "hodge_rank_binary_decisive": NOBODY_WRONG_ALONE | {"edge_all_zeros_s1"},
    "hodge_rank_log_odds_decisive": NOBODY_WRONG_ALONE | {"edge_all_zeros_s1"},
}
OTHER_SCORES = ZERO_INSTEAD | {
    "ranked_pairs_strength_margin_tie_ignore": EQUAL_VICTORIES,
    "ranked_pairs_strength_margin_tie_half": EQUAL_VICTORIES,
    "ranked_pairs_strength_winning_votes_tie_ignore": EQUAL_VICTORIES - {"rasch_20x30x80_s4"},
    "ranked_pairs_strength_winning_votes_tie_half": EQUAL_VICTORIES,
}
# Systems that share less than 1e-10 of the best one's probability have one rank by default.
TINY_PROBABILITIES = {"edge_large_gap_s2", "edge_large_gap_s3", "edge_large_gap_s4"}
OTHER_RANKS = {name: cases for name, cases in OTHER_SCORES.items() if "ranked_pairs" in name} | {
    # Of two systems of equal accuracy one is stored as better: which one depends on labels.
    "serial_rank_prob_diff": EVEN_PAIRS,
    "serial_rank_sign": EVEN_PAIRS,
    "alpharank": TINY_PROBABILITIES,
}
RANK_CENTRALITY = "rank_centrality_tie_ignore"
# One trial has no estimate for two.
ONE_TRIAL = {"pass_at_k_2", "pass_hat_k_2", "mg_pass_at_k_2", "mg_pass_at_k_3"}


class Case(NamedTuple):
    data: Responses
    results: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def cases(shared: Path) -> dict[str, Case]:
    """Load all 95 tensors and what is stored for them."""
    loaded = {}
    for path in sorted((shared / "oracle" / "cases").glob("*.npz")):
        with np.load(path, allow_pickle=False) as stored:
            shape = tuple(int(n) for n in stored["shape"])
            outcomes = np.unpackbits(stored["R"])[: np.prod(shape)].reshape(shape)
            earlier = np.unpackbits(stored["R0"])[: np.prod(shape[:2])].reshape(*shape[:2], 1)
        results = json.loads(path.with_suffix(".json").read_text())["results"]
        loaded[path.stem] = Case(Responses(outcomes, prior_outcomes=earlier), results)
    assert len(loaded) == 95
    return loaded


def scores_of(name: str, case: Case) -> np.ndarray:
    """Return scores by the stored definition."""
    if name in FURTHER:
        method, options = FURTHER[name]
        return point_estimate(case.data, method, **options)
    return point_estimate(case.data, name, **STORED_DEFINITIONS.get(name, {}))


def stored_scores(cases: dict[str, Case], name: str) -> Iterator[tuple[str, Case, dict[str, Any]]]:
    """Yield the cases in which the stored configuration has scores."""
    for key, case in cases.items():
        stored = case.results.get(name, {})
        if "scores" in stored:
            yield key, case, stored


def test_every_preset_is_compared_or_named():
    assert set(STORED_DEFINITIONS) | NOT_COMPARED | set(OTHER_SCORES) <= set(NUMPY_PRESETS)
    assert len(NUMPY_PRESETS) == 51


@pytest.mark.parametrize("name", [*sorted(set(NUMPY_PRESETS) - NOT_COMPARED), *FURTHER])
def test_scores_and_ranks_equal_the_stored_ones(cases: dict[str, Case], name: str):
    other_scores, other_ranks, compared = set(), set(), 0
    for key, case, stored in stored_scores(cases, name):
        scores = scores_of(name, case)
        compared += 1
        if not np.allclose(scores, stored["scores"], rtol=0.0, atol=TOLERANCE):
            other_scores.add(key)
            assert name not in ZERO_INSTEAD or not scores.any()
        if rank_scores(scores).tolist() != stored["ranks"]:
            other_ranks.add(key)
    assert compared >= 55
    assert other_scores == OTHER_SCORES.get(name, set())
    assert other_ranks == OTHER_RANKS.get(name, set())


@pytest.mark.parametrize("name", sorted(set(NUMPY_PRESETS) - {RANK_CENTRALITY}))
def test_only_one_trial_raises(cases: dict[str, Case], name: str):
    for case in cases.values():
        if name in ONE_TRIAL and case.data.shape[2] == 1:
            assert "scores" not in case.results[name]
            with pytest.raises(ValueError, match="k must be at most the number of trials"):
                point_estimate(case.data, name)
        else:
            assert np.isfinite(point_estimate(case.data, name)).all()


def test_rank_centrality_without_ties_raises_where_the_stored_one_does(cases: dict[str, Case]):
    raising = [case for case in cases.values() if "error" in case.results[RANK_CENTRALITY]]
    assert len(raising) == 40
    for case in raising:
        with pytest.raises(NoFiniteEstimate, match="set smoothing= or teleport="):
            point_estimate(case.data, RANK_CENTRALITY)


def test_nanson_elimination_strictly_below_differs_in_22_rankings(cases: dict[str, Case]):
    presets = [name for name in NUMPY_PRESETS if name.startswith("nanson")]
    changed = sum(
        rank_scores(point_estimate(case.data, name)).tolist() != stored["ranks"]
        for name in presets
        for _, case, stored in stored_scores(cases, name)
    )
    assert changed == 22


def test_tiny_probabilities_are_in_the_stored_order(cases: dict[str, Case]):
    for key in TINY_PROBABILITIES:
        scores = scores_of("alpharank", cases[key])
        stored = cases[key].results["alpharank"]["ranks"]
        assert rank_scores(scores, tol=1e-13).tolist() == stored


def test_kemeny_levels_do_not_contradict_the_stored_single_optimum(cases: dict[str, Case]):
    for case in cases.values():
        levels = point_estimate(case.data, "kemeny_young")
        if len(set(levels)) == len(levels):  # a unique optimum
            order = np.array(case.results["kemeny_young_total_order"]["scores"])
            one = point_estimate(case.data, "kemeny_young", tie_aware=False)
            assert (np.argsort(-one) == np.argsort(-order)).all()


def test_thompson_equals_the_stored_integrals(cases: dict[str, Case], shared: Path):
    # The stored integrals themselves are good to 5e-6 where a posterior touches 0 or 1, as exact
    # rational sums show; tests/methods/test_thompson.py compares with such sums to 1e-12.
    exact = json.loads((shared / "oracle" / "exact.json").read_text())
    for key, case in cases.items():
        scores = point_estimate(case.data, "thompson")
        np.testing.assert_allclose(scores, exact[key]["thompson"]["exact"], atol=1e-5, rtol=0.0)
        right = case.data.outcomes.sum(axis=(1, 2))
        same = right[:, None] == right[None, :]
        assert (same == (scores[:, None] == scores[None, :])).all()
        assert (np.argsort(-scores, kind="stable") == np.argsort(-right, kind="stable")).all()
