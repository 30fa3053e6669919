"""Removal of systems and groups, and difficulties without a system."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import kendalltau, pearsonr, spearmanr

from bayesrank import Responses, rank, studies
from bayesrank.catalog import METHODS, PRESETS
from bayesrank.errors import DataError
from bayesrank.methods.bipartite import rankllm
from bayesrank.ranking import estimate_point
from bayesrank.studies.configurations import read_method


def test_removing_one_system_is_a_fit_without_it(six_systems):
    study = studies.perturbation(six_systems)
    assert study["removed"].values.tolist() == list("abcdef")
    before, after = rankllm(six_systems.grades), rankllm(six_systems.grades[1:])
    for measure, of_scipy in (
        ("spearman", spearmanr),
        ("pearson", pearsonr),
        ("kendall", kendalltau),
    ):
        row = study.isel(removal=0).sel(measure=measure)
        expected = of_scipy(before.score[1:], after.score).statistic
        assert float(row["competency"]) == pytest.approx(expected)
    expected = spearmanr(before.difficulty, after.difficulty).statistic
    assert float(study["difficulty"][0].sel(measure="spearman")) == pytest.approx(expected)


def test_groups_are_removed_with_their_questions(six_systems):
    thirds = Responses(six_systems.outcomes, groups=["x"] * 4 + ["y"] * 4 + ["z"] * 4)
    study = studies.perturbation(thirds, remove="groups")
    assert study["removed"].values.tolist() == ["x", "y", "z"]
    without_x = rankllm(thirds.grades[:, 4:])
    expected = spearmanr(rankllm(thirds.grades).difficulty[4:], without_x.difficulty).statistic
    assert float(study["difficulty"][0].sel(measure="spearman")) == pytest.approx(expected)


def test_groups_of_several_sizes_count_their_questions(six_systems):
    groups = ["x"] * 2 + ["y"] * 3 + ["z"] * 7
    study = studies.perturbation(Responses(six_systems.outcomes, groups=groups), remove="groups")
    assert study["questions_removed"].values.tolist() == [2, 3, 7]
    assert not studies.perturbation(six_systems)["questions_removed"].any()


def test_more_than_one_is_removed_at_random(six_systems):
    study = studies.perturbation(six_systems, k=3, draws=7)
    assert study.sizes["removal"] == 7
    assert all(len(names.split(", ")) == 3 for names in study["removed"].values)


def test_all_removals_are_made_where_there_are_few(six_systems):
    removed = studies.perturbation(six_systems, k=2, draws=15)["removed"].values
    assert len(set(removed)) == len(removed) == 15


def test_summaries_are_of_each_number_removed(six_systems):
    study = studies.perturbation(six_systems, k=[4, 1, 2], draws=9, random_seed=5)
    assert study["k"].values.tolist() == [1, 2, 4]
    assert study["n_removed"].values.tolist() == [4] * 9 + [1] * 6 + [2] * 9
    for k in (1, 2, 4):
        alone = studies.perturbation(six_systems, k=k, draws=9, random_seed=5)
        part = study.isel(removal=study["n_removed"].values == k)
        for name in ("competency", "difficulty"):
            values = part[name].values
            np.testing.assert_array_equal(values, alone[name].values)
            for ending, expected in (
                ("mean", values.mean(axis=0)),
                ("sd", values.std(axis=0, ddof=1)),
                ("max_drop", (1 - values).max(axis=0)),
            ):
                for each in (study, alone):
                    found = each[f"{name}_{ending}"].sel(k=k)
                    np.testing.assert_allclose(found, expected, atol=1e-12)
        assert study["n_compared"].sel(k=k) == len(part["removed"])


def test_one_removal_has_no_spread(six_systems):
    study = studies.perturbation(six_systems, k=3, draws=1)
    assert study["competency_sd"].isnull().all()
    assert study["competency_mean"].notnull().all()


WITH_DIFFICULTIES = [
    *("rankllm", "rankllm(damping=0.5)", "simple_rank", "standardized_accuracy"),
    *("rasch", "rasch_map", "rasch(backend='map', difficulty_prior='normal(0, 2)')"),
    *("rasch_mml", "rasch_2pl", "rasch_2pl_map", "irt_2pl(backend='map')", "irt_2pl_mml"),
    *("rasch_3pl", "irt_3pl(backend='map')", "dynamic_irt_growth(assume_time_axis=True)"),
    *("mirt", "hierarchical_binomial"),
]


@pytest.mark.parametrize("method", WITH_DIFFICULTIES)
def test_difficulties_of_every_method_are_compared(six_systems, method):
    study = studies.perturbation(six_systems, method)
    assert study["difficulty"].notnull().all()
    assert (study["difficulty"].sel(measure="spearman") > 0.4).all()
    left_out = studies.difficulty_leave_one_out(six_systems, method)
    errors = 1 - six_systems.grades.mean(axis=0)
    for difficulty in left_out["difficulty"].values:
        assert spearmanr(difficulty, errors).statistic > 0.6


def test_every_method_with_difficulties_is_known_to_the_tests(six_systems):
    named = {read_method(method)[0] for method in WITH_DIFFICULTIES}
    tested = {PRESETS[name].method if name in PRESETS else name for name in named}
    found = {
        name
        for name, row in METHODS.items()
        if {"difficulty", "loading"} & set(estimate_point(six_systems, name, **row.example)[1])
    }
    assert found == tested


@pytest.mark.parametrize("study", [studies.perturbation, studies.difficulty_leave_one_out])
def test_options_are_in_the_name_or_keywords(six_systems, study):
    named = study(six_systems, "dynamic_irt(assume_time_axis=True, variant='growth')")
    given = study(six_systems, "dynamic_irt", assume_time_axis=True, variant="growth")
    xr.testing.assert_equal(named, given)
    with pytest.raises(ValueError, match="assume_time_axis must be True"):
        study(six_systems, "dynamic_irt")
    for unknown in ("irt", "rankllm(0.5)", 3):
        with pytest.raises(ValueError, match="method must"):
            study(six_systems, unknown)
    with pytest.raises(ValueError, match="options of rankllm must be among: damping, tol"):
        study(six_systems, "rankllm", beta=2)


def test_difficulties_of_several_factors_are_distances_from_the_origin(six_systems):
    method = "mirt(n_factors=2)"
    found = studies.difficulty_leave_one_out(six_systems, method)["difficulty"].sel(system="a")
    without = Responses(six_systems.outcomes[1:])
    point = rank(without, "mirt", n_factors=2, draws=0)["point_estimate"]
    length = np.sqrt((point["loading"] ** 2).sum("factor"))
    np.testing.assert_allclose(found, -point["intercept"] / length, rtol=1e-6)


def test_what_has_no_finite_estimate_is_missing_and_counted():
    # Each beats the next one in a ring, and c beats a: what is left is a ring without d alone.
    outcomes = np.full((4, 6, 1), -1)
    for question, (winner, loser) in enumerate([(0, 1), (0, 1), (1, 2), (2, 3), (3, 0), (2, 0)]):
        outcomes[winner, question], outcomes[loser, question] = 1, 0
    data = Responses(outcomes, systems=list("abcd"))
    study = studies.perturbation(data, "bradley_terry")
    finite = study["competency"].sel(measure="spearman").notnull()
    assert study["removed"].values[finite].tolist() == ["d"]
    assert study["n_compared"].item() == 1
    np.testing.assert_array_equal(study["competency_mean"][0], study["competency"][3])


def test_questions_that_nobody_left_was_asked_are_left_out(six_systems):
    outcomes = six_systems.outcomes.copy()
    outcomes[1:, 0] = -1
    data = Responses(outcomes)
    study = studies.perturbation(data, "simple_rank")
    expected = kendalltau(
        (1 - np.nanmean(data.grades, axis=0))[1:], 1 - data.grades[1:, 1:].mean(axis=0)
    ).statistic
    assert float(study["difficulty"][0].sel(measure="kendall")) == pytest.approx(expected)


@pytest.mark.parametrize("method", ["borda", "bradley_terry_map", "bayes"])
def test_methods_without_difficulties_have_none(six_systems, method):
    study = studies.perturbation(six_systems, method)
    assert study["competency"].notnull().all()
    assert study["difficulty"].isnull().all()


def test_what_cannot_be_removed(six_systems):
    with pytest.raises(ValueError, match="k must be from 1 to 4 of 6; got 5"):
        studies.perturbation(six_systems, k=5)
    with pytest.raises(ValueError, match="k must be from 1 to 4 of 6; got True"):
        studies.perturbation(six_systems, k=True)
    with pytest.raises(ValueError, match=r"k must be one number or more, each once; got \[2, 2\]"):
        studies.perturbation(six_systems, k=[2, 2])
    with pytest.raises(ValueError, match="draws must be an integer of at least 1; got 0"):
        studies.perturbation(six_systems, k=2, draws=0)
    two = Responses(six_systems.outcomes[:2])
    with pytest.raises(ValueError, match="three systems or more to remove one; got 2"):
        studies.perturbation(two)
    with pytest.raises(ValueError, match="remove must be 'systems' or 'groups'"):
        studies.perturbation(six_systems, remove="trials")
    with pytest.raises(DataError, match="groups must be given"):
        studies.perturbation(Responses(six_systems.outcomes), remove="groups")


def test_difficulties_are_estimated_without_the_system(six_systems):
    study = studies.difficulty_leave_one_out(six_systems)
    without = rankllm(np.delete(six_systems.grades, 2, axis=0)).difficulty
    np.testing.assert_allclose(study["difficulty"].sel(system="c"), without)
    expected = spearmanr(-six_systems.grades[2], without).statistic
    found = study["prediction"].sel(system="c", measure="spearman")
    assert float(found) == pytest.approx(expected)


def test_leaving_out_needs_difficulties(six_systems):
    with pytest.raises(ValueError, match="method must estimate difficulties; got 'borda'"):
        studies.difficulty_leave_one_out(six_systems, "borda")
