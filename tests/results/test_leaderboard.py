"""The tables that are read from a result."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesrank import leaderboard, rank, superiority
from bayesrank.results.leaderboard import COLUMNS, POINT_COLUMNS

# bob and dan are equal, cyd is best, ada is worst.
OUTCOMES = np.array(
    [
        [[0, 0, 0, 1], [0, 0, 0, 0]],
        [[1, 1, 0, 0], [0, 1, 0, 1]],
        [[1, 1, 1, 1], [1, 1, 1, 0]],
        [[0, 1, 1, 0], [1, 1, 0, 0]],
    ]
)
SYSTEMS = ["ada", "bob", "cyd", "dan"]


@pytest.fixture(scope="module")
def result() -> xr.DataTree:
    array = xr.DataArray(OUTCOMES, dims=("system", "question", "trial"), coords={"system": SYSTEMS})
    return rank(array, "avg", random_seed=1, draws=200)


def test_rows_are_best_first_and_equals_in_the_order_of_the_data(result):
    table = leaderboard(result)
    assert tuple(table.columns) == COLUMNS
    assert table["system"].tolist() == ["cyd", "bob", "dan", "ada"]
    assert table["rank"].tolist() == [1, 2, 2, 4]
    np.testing.assert_allclose(table["score"], [7 / 8, 1 / 2, 1 / 2, 1 / 8], rtol=1e-15)
    assert table.index.tolist() == [0, 1, 2, 3]


def test_every_column_is_that_of_the_ranking(result):
    table = leaderboard(result).set_index("system")
    for name in table.columns:
        for system in SYSTEMS:
            assert table.loc[system, name] == result["ranking"][name].sel(system=system).item()


def test_ranks_are_whole_numbers(result):
    types = leaderboard(result).dtypes
    for name in ("rank", "lcb_rank", "rank_lower", "rank_upper"):
        assert pd.api.types.is_integer_dtype(types[name])


def test_an_estimate_alone_has_no_intervals():
    table = leaderboard(rank(OUTCOMES, "avg", draws=0))
    assert tuple(table.columns) == POINT_COLUMNS
    assert table["system"].tolist() == ["system 3", "system 2", "system 4", "system 1"]


def test_a_table_is_a_copy(result):
    table = leaderboard(result)
    table["score"] = 0.0
    assert result["ranking"]["score"].max() > 0


def test_superiority_is_best_first(result):
    table = superiority(result)
    order = ["cyd", "bob", "dan", "ada"]
    assert table.index.tolist() == table.columns.tolist() == order
    assert (table.index.name, table.columns.name) == ("system", "opponent")
    expected = result["ranking"]["superiority"].sel(system=order, opponent=order)
    np.testing.assert_array_equal(table, expected)
    np.testing.assert_array_equal(np.diag(table), 0.5)
    assert table.loc["cyd", "ada"] > 0.95


def test_superiority_needs_draws():
    with pytest.raises(
        ValueError, match="result must have draws for superiority; got only a point est"
    ):
        superiority(rank(OUTCOMES, "avg", draws=0))


@pytest.mark.parametrize("read", [leaderboard, superiority])
def test_what_is_no_tree_is_refused(read):
    with pytest.raises(ValueError, match=r"result must be what rank\(\) returned; got str"):
        read("result.nc")


@pytest.mark.parametrize("read", [leaderboard, superiority])
def test_other_trees_are_refused(read):
    other = xr.DataTree.from_dict({"posterior": xr.Dataset(), "sample_stats": xr.Dataset()})
    message = "result must have a group 'ranking'; got groups posterior, sample_stats"
    with pytest.raises(ValueError, match=message):
        read(other)
    with pytest.raises(ValueError, match="got groups none"):
        read(xr.DataTree())
