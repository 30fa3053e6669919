"""The study of rubrics: draws, references, benchmarks."""

import numpy as np
import pandas as pd
import pytest

from bayesrank import Responses, point_estimate, studies
from bayesrank.errors import DataError
from bayesrank.results.agreement import kendall_tau_b
from bayesrank.results.ranks import rank_scores
from bayesrank.rubrics import SCHEMES, classify

SCHEME_NAMES = ["conservative", "verifier_only", "format_aware"]
N_TRIALS = 6


@pytest.fixture(scope="module")
def attempts() -> pd.DataFrame:
    """Attempts of five systems at eight questions of two benchmarks, greedy runs included."""
    rng = np.random.default_rng(11)
    cells = [
        (system, question, trial)
        for system in range(5)
        for question in range(8)
        for trial in range(N_TRIALS + 1)
    ]
    table = pd.DataFrame(cells, columns=["system", "question", "trial"])
    size = len(table)
    table["greedy"] = (table["trial"] == 0).astype(int)
    table["group"] = np.where(table["question"] < 4, "easy", "hard")
    chance = 0.9 - 0.15 * table["system"] - 0.03 * table["question"]
    table["is_correct"] = (rng.random(size) < chance).astype(int)
    table["has_box"] = (rng.random(size) < 0.3 + 0.15 * table["system"]).astype(int)
    table["repeated_pattern"] = (rng.random(size) < 0.1).astype(int)
    table["completion_bpt"] = rng.random(size)
    labels = rng.dirichlet([1, 1, 0.5], size)
    table[["compass_A", "compass_B", "compass_C"]] = labels
    return table


def arrange(categories: pd.Series) -> np.ndarray:
    """Arrange categories as (system, question, trial), the greedy run first."""
    return categories.to_numpy().reshape(5, 8, N_TRIALS + 1)


def ranks(values: np.ndarray, weights, greedy: np.ndarray | None = None) -> np.ndarray:
    """Rank systems by the posterior mean worth, stated directly."""
    worth = np.asarray(weights, dtype=float)
    if greedy is not None:
        values = np.concatenate([values, greedy], axis=-1)
    total = worth[values].sum(axis=-1) + worth.sum()
    return rank_scores((total / (values.shape[-1] + len(worth))).mean(axis=1))


def test_taus_are_those_of_rankings_stated_directly(attempts: pd.DataFrame):
    study = studies.categorical(attempts, SCHEME_NAMES, draws=N_TRIALS)
    right = arrange(attempts["is_correct"])
    parts = {"combined": slice(None), "easy": slice(0, 4), "hard": slice(4, 8)}
    assert study["benchmark"].values.tolist() == list(parts)
    for name in SCHEME_NAMES:
        weights = SCHEMES[name].weights
        # Percentiles are those of the attempts that are not greedy, as the study takes them.
        categories = arrange(classify(attempts, SCHEMES[name]))
        sampled = categories[..., 1:]
        for benchmark, part in parts.items():
            targets = {
                "gold": ranks(right[:, part, 1:], (0, 1)),
                "self": ranks(sampled[:, part], weights),
                "greedy": ranks(right[:, part, 1:], (0, 1), right[:, part, :1]),
            }
            for reference, target in targets.items():
                got = study["tau"].sel(scheme=name, benchmark=benchmark, reference=reference)
                # Six draws of one of six trials are all of them, in some order.
                expected = [
                    kendall_tau_b(ranks(sampled[:, part, t : t + 1], weights), target)
                    for t in range(N_TRIALS)
                ]
                np.testing.assert_allclose(np.sort(got.values), np.sort(expected), atol=1e-12)
                mean = study["tau_mean"].sel(scheme=name, benchmark=benchmark, reference=reference)
                assert float(mean) == pytest.approx(np.mean(expected))


def test_references_are_the_rankings_of_bayes(attempts: pd.DataFrame):
    """With all trials in every draw, tau compares the references with the scheme's own order."""
    study = studies.categorical(attempts, "conservative", n=N_TRIALS, draws=1)
    tau = study["tau"].sel(benchmark="combined", scheme="conservative").isel(draw=0)
    right = arrange(attempts["is_correct"])
    data = Responses(right[..., 1:], prior_outcomes=right[..., :1])
    categories = arrange(classify(attempts, SCHEMES["conservative"]))
    own = rank_scores(
        point_estimate(
            Responses(categories[..., 1:], weights=SCHEMES["conservative"].weights), "bayes"
        )
    )
    for reference, method in (("gold", "bayes"), ("greedy", "bayes_greedy")):
        expected = kendall_tau_b(own, rank_scores(point_estimate(data, method)))
        assert float(tau.sel(reference=reference)) == pytest.approx(float(expected))
    assert float(tau.sel(reference="self")) == 1.0


def test_draws_of_one_trial_use_each_trial_once(attempts: pd.DataFrame):
    several = [
        studies.categorical(attempts, SCHEME_NAMES, draws=N_TRIALS, random_seed=seed)
        for seed in (0, 1)
    ]
    np.testing.assert_allclose(several[0]["tau_mean"], several[1]["tau_mean"], atol=1e-12)


def test_cells_with_missing_trials_draw_their_own(attempts: pd.DataFrame):
    holes = attempts.drop(index=attempts.index[attempts["trial"] == 3][::2])
    study = studies.categorical(holes, SCHEME_NAMES, n=2, draws=4)
    assert study["tau"].notnull().all()
    again = studies.categorical(holes, SCHEME_NAMES, n=2, draws=4)
    assert study.identical(again)


def test_without_greedy_runs_and_groups_there_are_none_to_compare_with(attempts: pd.DataFrame):
    plain = attempts[attempts["greedy"] == 0].drop(columns=["greedy", "group"])
    study = studies.categorical(plain, "format_aware", draws=2)
    assert study["reference"].values.tolist() == ["gold", "self"]
    assert study["benchmark"].values.tolist() == ["combined"]


def test_a_study_goes_on_from_its_checkpoint(attempts: pd.DataFrame, tmp_path):
    options = {"draws": 5, "random_seed": 2}
    whole = studies.categorical(attempts, SCHEME_NAMES, **options)
    studies.categorical(attempts, SCHEME_NAMES, **options, checkpoint=tmp_path)
    for path in sorted(tmp_path.glob("task-*.npz"))[1:4]:
        path.unlink()
    resumed = studies.categorical(attempts, SCHEME_NAMES, **options, checkpoint=tmp_path, workers=2)
    assert resumed.identical(whole)
    with pytest.raises(ValueError, match="checkpoint must be"):
        studies.categorical(attempts, SCHEME_NAMES[:1], **options, checkpoint=tmp_path)


def test_weights_of_the_caller_are_used(attempts: pd.DataFrame):
    free = studies.categorical(attempts, "exact_match", draws=3, weights={"exact_match": (0, 0, 1)})
    assert free["scheme"].values.tolist() == ["exact_match"]
    with pytest.raises(DataError, match="weights must be given for the scheme exact_match"):
        studies.categorical(attempts, "exact_match")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 0}, "draws must be an integer of at least 1; got 0"),
        ({"n": 7}, "n must be integers from 1 to 6; got 7"),
        ({"schemes": "best"}, "schemes must be among"),
    ],
)
def test_arguments_are_checked(attempts: pd.DataFrame, options, message: str):
    with pytest.raises(ValueError, match=message):
        studies.categorical(attempts, **{"schemes": "conservative", **options})


def test_a_group_cannot_have_the_name_of_all(attempts: pd.DataFrame):
    with pytest.raises(DataError, match="groups must not be called 'combined'"):
        studies.categorical(attempts.assign(group="combined"), "conservative")
