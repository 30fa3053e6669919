"""The parts of the mechanism of docs/uncertainty.md, and the test that fails without each."""

import ast
import re
from pathlib import Path

import pytest

from bayesrank.battles import FEW_UNITS
from bayesrank.inference.backends.bootstrap import _OF_EACH
from bayesrank.inference.backends.standardized import _CI_PROB
from bayesrank.inference.resample.units import SOME_UNITS

ROOT = Path(__file__).parents[2]

# Each part was taken out once, and the test named beside it failed, or is made for it.
PARTS = {
    "one unit of the model": "variation::the_model_is_one_unit_beside_those_of_the_data",
    "noise of the model at least": "variation::few_units_vary_by_the_noise_of_the_model_at_least",
    "of few units alone": "variation::many_units_may_show_less_than_the_noise_of_the_model",
    "posterior of what no unit shows": (
        "variation::what_no_unit_shows_has_the_variance_of_the_posterior"
    ),
    "what the prior leaves open": "variation::shares_of_the_prior_are_those_of_the_information",
    "unit of published forms": (
        "calibration::the_unit_of_published_fits_does_not_turn_systems_round"
    ),
    "units of unequal size": (
        "jackknife::contributions_of_units_of_unequal_size_are_those_of_the_jackknife"
    ),
    "Student's t": "variation::units_have_the_variance_of_a_sum_and_the_tails_of_student",
    "crossed units count once": "variation::crossed_kinds_count_what_they_share_once",
    "no negative variance": "variation::crossed_kinds_have_no_negative_variance",
    "scaled means of questions": "variation::questions_take_their_parameters_with_them",
    "means over questions": "variation::scores_that_are_means_over_questions_vary_with_their_terms",
    "cells with one trial": "variation::cells_with_one_trial_have_the_noise_of_the_others",
    "questions bring parameters": (
        "influence::influences_are_how_the_scores_move_when_a_question_counts_more"
    ),
    "variance of cells": "influence::the_widened_over_trials_is_that_of_the_answers",
    "items of marginal fits": (
        "influence::the_marginal_2pl_varies_as_the_jackknife_and_its_prior_say"
    ),
    "symmetric root": "calibration::bradley_terry_has_the_godambe_covariance",
    "level of comparisons": "calibration::draws_of_a_sampler_get_the_sandwich_covariance",
    "bias": "bootstrap::accuracy_by_rare_answers_is_corrected",
    "leverage": "bootstrap::rank_widens_draws_where_few_questions_have_leverage",
    "leverage of judges": "battle_units::a_judge_of_half_of_the_votes_has_leverage",
    "leverage, exact": "exact::one_group_of_most_questions_has_leverage_over_a_population",
    "one more trial or question": "pseudo_unit::bounds_follow_the_rule_of_three",
    "one more battle": (
        "pseudo_unit::one_battle_more_comes_after_the_others_against_a_system_that_was_met"
    ),
    "steps of counts": "bootstrap::identical_systems_are_not_told_apart",
    "reflected level": "bootstrap::bounds_of_a_skewed_level_hold",
    "centre of ratings": "pseudo_unit::ratings_of_a_system_that_never_lost_are_not_certain",
    "winning votes": "bootstrap::expected_winning_votes_lie_between_a_victory_and_a_defeat",
    "prior unit of majorities": "bootstrap::majorities_that_all_questions_agree_on_may_be_turned",
    "range": "bootstrap::no_draw_leaves_the_range_of_the_score",
}


@pytest.mark.parametrize("part", PARTS)
def test_every_part_has_its_test(part):
    file, name = PARTS[part].split("::")
    source = Path(__file__).with_name(f"test_{file}.py").read_text(encoding="utf-8")
    assert re.search(rf"^def test_{name}\(", source, re.MULTILINE)


# Numbers that decide intervals, as the page names them.
ON_THE_PAGE = {
    "FEW_UNITS": f"{FEW_UNITS} units (`FEW_UNITS`)",
    "SOME_UNITS": f"{SOME_UNITS} units (`SOME_UNITS`)",
    "_OF_EACH": f"{_OF_EACH} data sets (`_OF_EACH`)",
    "_CI_PROB": f"{100 * _CI_PROB:g} % (`_CI_PROB`)",
}
FILES = (
    *("calibrate/*.py", "resample/*.py"),
    *(f"backends/{name}.py" for name in ("bootstrap", "exact", "standardized", "unbiased")),
)


def test_the_page_has_the_six_numbers_that_decide_intervals():
    page = (ROOT / "docs/uncertainty.md").read_text(encoding="utf-8")
    rows = page.split("## Numbers")[1].split("## References")[0].split("| --- | --- | --- |")[1]
    assert rows.count("\n| ") == 6
    assert [text for text in ON_THE_PAGE.values() if text not in rows] == []


def test_other_numbers_have_their_error_beside_them():
    bare = []
    for path in (one for kind in FILES for one in (ROOT / "bayesrank/inference").glob(kind)):
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines()
        for node in ast.parse(source).body:
            if not isinstance(node, ast.Assign):
                continue
            above = node.lineno - 2
            while lines[above] and not lines[above].startswith("#"):
                above -= 1  # another number under the same comment
            values = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
            numbers = [value for value in values if type(value) in (int, float)]
            name = ast.unparse(node.targets[0])
            if numbers and name not in ON_THE_PAGE and not lines[above]:
                bare.append(f"{path.name}: {name}")
    assert bare == []
