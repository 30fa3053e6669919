"""Letters of groups and borders: counted cases, and properties over random data."""

import itertools

import numpy as np
import pytest
import xarray as xr

from bayesrank import Responses, leaderboard, rank
from bayesrank.reporting.wording import headline
from bayesrank.results.decisions import pairwise_decisions
from bayesrank.results.leaderboard import ranking_of
from bayesrank.results.numbers import split_letters
from bayesrank.results.ranks import resolved_pairs
from bayesrank.results.storage import load, save
from bayesrank.results.summary import borders, letter_groups

# Data sets of the properties.
N_SETS = 200


def relation(n_systems: int, *pairs: tuple[int, int]) -> np.ndarray:
    """Return which systems are resolved as better than which."""
    resolved = np.zeros((n_systems, n_systems), dtype=bool)
    for better, worse in pairs:
        resolved[better, worse] = True
    return resolved


def groups_of(letters: str) -> set[str]:
    return {letter for letter, _ in split_letters(letters)}


def share_a_letter(letters) -> np.ndarray:
    found = [groups_of(each) for each in letters]
    return np.array([[bool(one & other) for other in found] for one in found])


def random_draws(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return point estimates and draws with ties, common factors and unequal spreads."""
    rng = np.random.default_rng(seed)
    n_systems = int(rng.integers(1, 13))
    centre = rng.normal(size=n_systems).round(int(rng.integers(0, 3)))
    loadings = rng.normal(size=(3, n_systems)) * rng.choice([0.0, 0.3, 1.0])
    own = rng.gamma(1.0, rng.choice([0.05, 0.3, 1.0]), n_systems)
    draws = centre + rng.normal(size=(400, 3)) @ loadings + own * rng.normal(size=(400, n_systems))
    twin = rng.integers(0, n_systems, 2)
    draws[:, twin[0]] = draws[:, twin[1]]
    centre[twin[0]] = centre[twin[1]]
    return centre, draws


def test_nothing_resolved_is_one_group():
    assert letter_groups([3, 2, 1], relation(3)) == ("a", "a", "a")


def test_everything_resolved_is_a_group_each():
    resolved = relation(3, (0, 1), (0, 2), (1, 2))
    assert letter_groups([3, 2, 1], resolved) == ("a", "b", "c")


def test_groups_overlap_where_the_ends_of_a_chain_are_resolved():
    assert letter_groups([3, 2, 1], relation(3, (0, 2))) == ("a", "ab", "b")


def test_a_group_need_not_be_of_neighbours():
    # The second is known exactly, so that it is resolved from both of its uncertain neighbours.
    resolved = relation(3, (0, 1), (1, 2))
    assert letter_groups([3, 2, 1], resolved) == ("a", "b", "a")


def test_letters_follow_the_scores_whatever_the_labels():
    assert letter_groups([1, 3, 2], relation(3, (1, 0))) == ("b", "a", "ab")


def test_the_published_example_has_its_letters():
    # Figure 2 of Gramm et al. (2007), where 1-5, 2-3, 2-5 and 3-5 differ.
    resolved = relation(5, (0, 4), (1, 2), (1, 4), (2, 4))
    letters = letter_groups([5, 4, 3, 2, 1], resolved)
    assert letters == ("ab", "a", "b", "abc", "c")


def test_after_z_letters_have_numbers():
    n_systems = 60
    chain = np.subtract.outer(np.arange(n_systems), np.arange(n_systems)) <= -2
    letters = letter_groups(-np.arange(n_systems), chain)
    assert letters[0] == "a"
    assert letters[25:28] == ("yz", "za2", "a2b2")
    assert letters[-1] == "g3"
    assert split_letters("yza2g3") == [("y", 24), ("z", 25), ("a2", 26), ("g3", 58)]
    np.testing.assert_array_equal(share_a_letter(letters), ~(chain | chain.T))


def test_equal_scores_are_ordered_by_what_they_are_resolved_from():
    resolved = relation(4, (1, 3), (1, 2), (0, 3))
    letters = letter_groups([2.0, 2.0, 1.0, 0.5], resolved)
    swap = [1, 0, 2, 3]
    moved = letter_groups([2.0, 2.0, 1.0, 0.5], resolved[np.ix_(swap, swap)])
    assert [moved[i] for i in swap] == list(letters)
    assert letters[1] == "a"


def test_borders_stand_where_all_above_are_resolved_from_all_below():
    np.testing.assert_array_equal(borders(relation(3, (0, 1), (0, 2), (1, 2))), [1, 1, 0])
    # Neighbours are resolved, but the first is not from the last.
    np.testing.assert_array_equal(borders(relation(3, (0, 1), (1, 2))), [0, 0, 0])
    np.testing.assert_array_equal(borders(relation(1)), [0])


def test_the_fewest_letters_where_systems_are_equally_precise():
    """Intervals of one length: the maximal ones among consecutive systems are the least cover."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        score = np.sort(rng.random(12))[::-1]
        resolved = score[:, None] - score > rng.uniform(0.05, 0.5)
        last = (~resolved).sum(axis=1) - 1
        n_needed = len(set(last.tolist()))
        found = set().union(*map(groups_of, letter_groups(score, resolved)))
        assert len(found) == n_needed


@pytest.mark.parametrize("ci_prob", [0.8, 0.95])
def test_letters_say_what_is_resolved_over_random_draws(ci_prob):
    for seed in range(N_SETS):
        score, draws = random_draws(seed)
        resolved = resolved_pairs(score, draws, ci_prob=ci_prob)
        letters = letter_groups(score, resolved)
        apart = resolved | resolved.T
        np.testing.assert_array_equal(share_a_letter(letters), ~apart, err_msg=str(seed))
        # Each group is as large as it can be, and tells something.
        for letter in set().union(*map(groups_of, letters)):
            inside = np.array([letter in groups_of(each) for each in letters])
            assert apart[inside].any(axis=0)[~inside].all(), seed
        order = np.random.default_rng(seed).permutation(len(score))
        moved = letter_groups(score[order], resolved[np.ix_(order, order)])
        assert moved == tuple(letters[i] for i in order), seed


def random_data(seed: int) -> Responses:
    """Return data of some systems of random abilities, with holes in every third."""
    rng = np.random.default_rng(seed)
    n_systems, n_questions = int(rng.integers(2, 9)), int(rng.integers(4, 40))
    ability, difficulty = rng.normal(size=n_systems), rng.normal(size=n_questions)
    chance = 1 / (1 + np.exp(difficulty - 1.5 * ability[:, None]))
    outcomes = rng.random((n_systems, n_questions, int(rng.integers(1, 6)))) < chance[..., None]
    outcomes = outcomes.astype(int)
    if seed % 3 == 0:
        holes = rng.random(outcomes.shape) < 0.2
        holes[:, 0, 0] = False
        outcomes[holes] = -1
    return Responses(outcomes)


def assert_one_decision(result: xr.DataTree, seed: int) -> None:
    """Hold groups, joint ranks, separation, borders and tables of a result to its decisions."""
    ranking = ranking_of(result)
    resolved, score = ranking["resolved"].values, ranking["score"].values
    apart, n_systems = resolved | resolved.T, len(score)
    np.testing.assert_array_equal(share_a_letter(ranking["group"].values), ~apart)
    lower, upper = (ranking[f"joint_rank_{end}"].values for end in ("lower", "upper"))
    np.testing.assert_array_equal(lower, 1 + resolved.sum(axis=0), err_msg=str(seed))
    np.testing.assert_array_equal(upper, n_systems - resolved.sum(axis=1), err_msg=str(seed))
    assert (lower <= ranking["rank"].values).all()
    assert (ranking["rank"].values <= upper).all()
    assert (score[:, None] > score)[resolved].all()

    board = leaderboard(result)
    order = [ranking["system"].values.tolist().index(name) for name in board["system"]]
    in_order = apart[np.ix_(order, order)]
    for row in np.flatnonzero(borders(resolved[np.ix_(order, order)])):
        assert in_order[: row + 1, row + 1 :].all(), seed
    for row in np.flatnonzero(board["separated_from_next"].values[:-1]):
        assert in_order[row, row + 1], seed
    for pair in pairwise_decisions(result).itertuples():
        i, j = (ranking["system"].values.tolist().index(each) for each in pair[1:3])
        assert pair.resolved == resolved[i, j]
    won = n_systems > 1 and resolved[order[0]].sum() == n_systems - 1
    assert ("is resolved from every other" in headline(result)) == won


def test_all_that_a_result_says_follows_from_one_decision():
    for seed in range(N_SETS):
        result = rank(random_data(seed), "avg", draws=100, random_seed=seed)
        assert_one_decision(result, seed)


@pytest.mark.parametrize("method", ["bayes_ci", "borda", "bradley_terry_map", "rasch_map", "elo"])
def test_decisions_agree_whatever_the_method(method):
    for seed in range(8):
        assert_one_decision(rank(random_data(seed), method, draws=60, random_seed=seed), seed)


def test_labels_do_not_change_the_groups():
    data = random_data(4)
    result = rank(data, "avg", draws=200, random_seed=1)
    draws = result["posterior"]["score"].values.reshape(-1, len(data.systems))
    score = result["ranking"]["score"].values
    for order in itertools.islice(itertools.permutations(range(len(score))), 0, None, 97):
        some = list(order)
        resolved = resolved_pairs(score[some], draws[:, some], ci_prob=0.95)
        letters = letter_groups(score[some], resolved)
        assert list(letters) == result["ranking"]["group"].values[some].tolist()


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_groups_are_stored_and_read(tmp_path, suffix):
    result = rank(random_data(1), "avg", draws=50, random_seed=1)
    again = load(save(result, tmp_path / f"result{suffix}"))
    assert leaderboard(again).equals(leaderboard(result))
    assert ranking_of(again)["resolved"].equals(result["ranking"]["resolved"])


def test_results_stored_with_tiers_are_read_with_groups():
    result = rank(random_data(2), "avg", draws=100, random_seed=1)
    ranking = result["ranking"].to_dataset()
    old = ranking.drop_vars(["resolved", "group"]).assign(
        tier=("system", np.ones(ranking.sizes["system"], dtype=int)),
        joint_rank_upper=("system", np.ones(ranking.sizes["system"], dtype=int)),
    )
    stored = xr.DataTree.from_dict({"ranking": old, "posterior": result["posterior"].to_dataset()})
    assert leaderboard(stored).equals(leaderboard(result))
    assert ranking_of(stored)["joint_rank_upper"].equals(ranking["joint_rank_upper"])
    assert headline(stored) == headline(result)
