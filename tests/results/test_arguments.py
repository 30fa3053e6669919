"""What takes a result says what it was given instead."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import bayesrank as br
from bayesrank.results.decisions import pairwise_decisions, prob_top_k
from bayesrank.results.state_boards import history_table
from bayesrank.results.win_rates import average_win_rates, expected_win_rates

OF_A_RESULT: dict[str, Callable[[Any], object]] = {
    "check": br.check,
    "explore": br.explore,
    "leaderboard": br.leaderboard,
    "rescale": br.rescale,
    "superiority": br.superiority,
    "report": lambda result: br.report(result, path=Path("never written.html")),
    "prob_top_k": lambda result: prob_top_k(result, 1),
    "pairwise_decisions": pairwise_decisions,
    "history_table": history_table,
    "expected_win_rates": expected_win_rates,
    "average_win_rates": average_win_rates,
}
DATA = br.Responses([[[1, 1, 0]], [[0, 1, 0]]])


@pytest.mark.parametrize("name", OF_A_RESULT)
@pytest.mark.parametrize("wrong", [None, "result.nc", DATA, 3], ids=type)
def test_what_is_no_result_is_named(name, wrong):
    message = rf"result must be what rank\(\) returned; got {type(wrong).__name__}"
    with pytest.raises(ValueError, match=message):
        OF_A_RESULT[name](wrong)


@pytest.mark.parametrize("name", OF_A_RESULT)
def test_a_tree_without_a_ranking_says_which_groups_it_has(name):
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset()})
    with pytest.raises(ValueError, match="must have a group 'ranking'; got groups posterior"):
        OF_A_RESULT[name](tree)


def test_one_result_is_no_mapping_of_results():
    with pytest.raises(ValueError, match="results must be a mapping of names; got DataTree"):
        br.compare(br.rank(DATA, "avg", target="benchmark", draws=0))


def test_an_explorer_needs_draws():
    with pytest.raises(ValueError, match="result must have draws for decisions"):
        br.explore(br.rank(DATA, "avg", target="benchmark", draws=0))
