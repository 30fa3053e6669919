"""Leaderboards as arenas print them."""

import numpy as np
import pytest

from bayesrank import Comparisons, Responses, leaderboard, rank, rescale
from bayesrank.reporting.tables import frame_columns
from bayesrank.results.rating_scale import mark_preliminary
from bayesrank.results.win_rates import expected_win_rates

DATA = Comparisons(
    [[0, 30, 40], [10, 0, 22], [4, 18, 0]],
    [[0, 5, 5], [5, 0, 5], [5, 5, 0]],
    systems=["a", "b", "c"],
)


@pytest.fixture(scope="module")
def result():
    return rank(DATA, random_seed=1)


def test_a_difference_of_400_is_odds_of_ten_to_one(result):
    elo = rescale(result, "elo")
    one, other = (tree["ranking"]["score"].values for tree in (result, elo))
    np.testing.assert_allclose(10 ** (np.diff(other) / 400), np.exp(np.diff(one)))
    assert other.mean() == pytest.approx(1000)
    draws = elo["posterior"]["score"].values
    np.testing.assert_allclose(
        np.quantile(draws.reshape(-1, 3), 0.025, axis=0), elo["ranking"]["score_lower"]
    )
    for name in ("rank", "prob_best", "resolved", "group", "arena_rank"):
        np.testing.assert_array_equal(elo["ranking"][name], result["ranking"][name])
    assert float(result["ranking"]["score"][0]) < 5  # the result itself is as it was


def test_an_anchor_has_its_score_and_keeps_its_interval(result):
    table = leaderboard(rescale(result, "elo", anchor=("b", 1200))).set_index("system")
    assert table.loc["b", "score"] == pytest.approx(1200)
    assert table.loc["b", "score_lower"] < 1190 < 1210 < table.loc["b", "score_upper"]
    anchored = rescale(rank(DATA, "pagerank", draws=50), anchor=("a", 1))
    assert anchored.attrs["score_scale"] == "anchored"
    shifted = leaderboard(anchored)
    assert shifted["score"][0] == 1


@pytest.mark.parametrize(
    ("scale", "anchor", "message"),
    [
        ("logit", None, "scale must be 'elo' or None; got 'logit'"),
        ("elo", ("z", 1000), "anchor must be one of the systems; got 'z'"),
        ("elo", ("a", np.inf), "anchor must have a finite score"),
        ("elo", ("a", "x"), "anchor must be a system and its score"),
        ("elo", "a=1000", "anchor must be a system and its score"),
    ],
)
def test_other_scales_and_anchors_are_refused(result, scale, anchor, message):
    with pytest.raises(ValueError, match=message):
        rescale(result, scale, anchor=anchor)


def test_scores_that_are_no_logits_have_no_elo(result):
    for method in ("thurstone_mosteller", "pagerank"):
        with pytest.raises(ValueError, match="whose scores are no logits"):
            rescale(rank(DATA, method, draws=0), "elo")
    with pytest.raises(ValueError, match="result must be as rank"):
        rescale(rescale(result, "elo"), "elo")
    with pytest.raises(ValueError, match="on the scale of its model"):
        expected_win_rates(rescale(result, "elo"))


def test_arena_ranks_count_the_systems_above(result):
    table = leaderboard(result).set_index("system")
    for name, row in table.iterrows():
        above = (table["score_lower"] > row["score_upper"]).sum()
        assert row["arena_rank"] == 1 + above, name
    assert "arena_rank" not in leaderboard(rank(Responses([[1, 1, 0], [0, 1, 0]]), "avg"))


def test_few_votes_are_preliminary(result):
    table = leaderboard(mark_preliminary(result, 95)).set_index("system")
    votes = {"a": 94, "b": 90, "c": 94}
    assert table["n_outcomes"].to_dict() == votes
    assert table["preliminary"].all()
    assert not leaderboard(mark_preliminary(result, 90))["preliminary"].any()
    assert "preliminary" not in leaderboard(result)
    for votes in (-1, "many"):
        with pytest.raises(ValueError, match="min_votes must be an integer of at least 0; got"):
            mark_preliminary(result, votes)


def test_commands_print_on_the_scale(run, tmp_path):
    path = tmp_path / "wins.csv"
    path.write_text("model_a,model_b,wins_a,wins_b\na,b,60,40\nb,c,9,1\n")
    options = ["--scale", "elo", "--anchor", "b=1000", "--min-votes", "50"]
    saved = tmp_path / "result.nc"
    printed = run("rank", path, *options, "-o", saved).stdout
    assert "10 preliminary" in printed
    assert "preliminary: fewer than 50 battles." in printed
    assert "arena rank" in printed
    assert run("show", saved, *options).stdout == printed
    assert "anchor must be NAME=SCORE; got 'b'" in run("rank", path, "--anchor", "b", code=2).stderr


def test_win_shares_keep_their_digits_beside_elo_points() -> None:
    table = leaderboard(rescale(rank(DATA, random_seed=0), "elo"))
    columns = {column.header: column.cells for column in frame_columns(table)}
    assert all("." not in cell for cell in columns["score"])
    shares = [f"{share:.2f}" for share in table["observed_mean"]]
    assert columns["observed"] == shares
