"""Likelihood presets as a whole: they converge, recover what made the data, and say when not."""

import warnings

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import pearsonr, spearmanr

from bayesrank import PRESETS, Responses, point_estimate, rank
from bayesrank.errors import NoFiniteEstimate

PRESETS_BY_BACKEND = {
    backend: [name for name, preset in PRESETS.items() if preset.backend == backend]
    for backend in ("mle", "map", "mml")
}
FITTED = [name for names in PRESETS_BY_BACKEND.values() for name in names]
# Methods that are no presets.
FURTHER = {
    "davidson_luce": {"backend": "mle"},
    "davidson_luce (map)": {"backend": "map", "prior": 1.0},
    "irt_2pl_mml": {},
    "dynamic_irt_growth (mean)": {"score_target": "mean"},
    "dynamic_irt": {
        "backend": "mle",
        "variant": "state_space",
        "assume_time_axis": True,
        "score_target": "mean",
    },
}
# Smallest correlation with the true abilities over ten tensors.
PEARSON = {
    "rasch": 0.99,
    "rasch_map": 0.99,
    "rasch_mml": 0.99,
    "rasch_2pl": 0.99,
    "rasch_2pl_map": 0.99,
    "dynamic_irt_linear": 0.99,
    # The preset's score is the ability at the first trial, which is half as well known.
    "dynamic_irt_growth": 0.98,
    "dynamic_irt_growth (mean)": 0.99,
    "irt_2pl_mml": 0.99,
    "dynamic_irt": 0.99,
}
SPEARMAN = {"rasch_3pl": 0.98, "rasch_3pl_map": 0.98}


def simulate(
    shape: tuple[int, int, int] = (20, 30, 80), seed: int = 0
) -> tuple[Responses, NDArray[np.float64]]:
    """Draw outcomes of a Rasch model, and return them with the abilities."""
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=shape[0]), rng.normal(size=shape[1])
    chance = 1 / (1 + np.exp(difficulty - ability[:, np.newaxis]))
    outcomes = rng.random(shape) < chance[..., np.newaxis]
    return Responses(outcomes.astype(np.int8)), ability


@pytest.mark.parametrize("seed", range(10))
def test_every_preset_converges_and_recovers_abilities(seed):
    data, ability = simulate(seed=seed)
    for name in FITTED + list(FURTHER):
        result = rank(data, name.split(" ")[0], draws=0, **FURTHER.get(name, {}))
        assert result["sample_stats"]["converged"], name
        score = result["ranking"]["score"].values
        assert np.isfinite(score).all(), name
        if name in PEARSON:
            assert pearsonr(score, ability)[0] > PEARSON[name], name
        # 3PL puts systems that guess far away, so that their order counts alone.
        if name in SPEARMAN:
            assert spearmanr(score, ability)[0] > SPEARMAN[name], name


def test_recovery_is_asked_of_presets_that_exist():
    assert set(PEARSON) | set(SPEARMAN) <= set(FITTED) | set(FURTHER)


def separated(case: str) -> Responses:
    """Return data of which a joint maximum-likelihood estimate does not exist."""
    outcomes = simulate((5, 6, 6), seed=1)[0].outcomes.copy()
    if case == "always right":
        outcomes[2] = 1
    elif case == "always wrong":
        outcomes[2] = 0
    else:  # a and b are right wherever anybody else is, and alone on the last two questions
        outcomes[:2, :4], outcomes[2:, 4:] = 1, 0
    return Responses(outcomes, systems=list("abcde"), questions=list("pqrstu"))


# The penalty on the steps of its walk holds the abilities of perfect systems.
HELD_BY_A_PENALTY = "dynamic_irt_state_space"
WITHOUT_TIES = [
    name
    for name in PRESETS_BY_BACKEND["mle"]
    if PRESETS[name].method not in ("davidson", "rao_kupper") and name != HELD_BY_A_PENALTY
]


@pytest.mark.parametrize("name", WITHOUT_TIES)
@pytest.mark.parametrize("case", ["always right", "always wrong", "groups"])
def test_estimates_that_do_not_exist_name_who_is_to_blame(name, case):
    to_blame = r"'a', 'b'" if case == "groups" else r"'c'"
    with pytest.raises(NoFiniteEstimate, match=rf"{to_blame}.*use backend=\"map\""):
        point_estimate(separated(case), name)


@pytest.mark.parametrize("name", ["bradley_terry_davidson", "rao_kupper"])
def test_ties_hold_everybody_but_a_system_that_has_none(name):
    data = Responses([[0, 0], [1, 1], [0, 0], [0, 0]], systems=list("abcd"))
    with pytest.raises(NoFiniteEstimate, match=r"'b' never lost to .*use backend=\"map\""):
        point_estimate(data, name)
    assert np.argmax(point_estimate(data, f"{name}_map")) == 1


@pytest.mark.parametrize(
    "name", [*PRESETS_BY_BACKEND["map"], *PRESETS_BY_BACKEND["mml"], HELD_BY_A_PENALTY]
)
@pytest.mark.parametrize("case", ["always right", "always wrong", "groups"])
def test_modes_always_exist(name, case):
    data = separated(case)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = rank(data, name, draws=0)
    assert result["sample_stats"]["converged"]
    score = result["ranking"]["score"].sel(system=list("abcde")).values
    assert np.isfinite(score).all()
    if case == "always right":
        assert result["ranking"]["rank"].sel(system="c") == 1
    elif case == "always wrong":
        assert result["ranking"]["rank"].sel(system="c") == 5
    else:
        assert score[:2].min() > score[2:].max()


@pytest.mark.parametrize("name", [name for name in FITTED if name != "rasch_3pl"])
@pytest.mark.filterwarnings("ignore::bayesrank.errors.ConvergenceWarning")
def test_single_trials_are_ranked_over_questions(name):
    data, _ = simulate((8, 60, 1), seed=3)
    draws = rank(data, name, draws=20, random_seed=0)["posterior"]["score"].values
    assert draws.shape == (4, 20, 8)
    assert np.isfinite(draws).all()
    assert (draws.std(axis=(0, 1)) > 0.0).all()


@pytest.mark.filterwarnings("ignore::bayesrank.errors.ConvergenceWarning")
def test_single_trials_that_leave_a_model_open_say_so():
    data, _ = simulate((8, 60, 1), seed=3)
    with pytest.raises(NoFiniteEstimate, match="model must be identified at the optimum"):
        rank(data, "rasch_3pl", draws=20, random_seed=0)
    assert np.isfinite(rank(data, "rasch_3pl", draws=0)["ranking"]["score"]).all()
