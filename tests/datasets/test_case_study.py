"""The case study of RankLLM: its published counts and scores, and that nothing else has them."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from bayesrank import datasets, studies
from bayesrank.methods.bipartite import rankllm

PAGE = Path(__file__).parents[2] / "docs" / "rankllm.md"
# Solved of 70 easy, 21 medium and 9 hard questions.
SOLVED = np.array([[70, 10, 5], [70, 11, 4], [47, 13, 0], [46, 15, 0], [47, 14, 0]])
LEVELS = {"easy": 70, "medium": 21, "hard": 9}
PUBLISHED = [100, 95.50, 56.88, 59.85, 58.21]
PUBLISHED_2PL = [100, 84.1, 19.7, 0, 19.3]
PAIRS = list(combinations(range(5), 2))


@pytest.fixture(scope="module")
def grades() -> np.ndarray:
    return datasets.load_rankllm_case_study().grades


def table_rows() -> dict[str, list[str]]:
    """Return the rows of the tables of the page by their first cell."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return {first.strip("`"): rest for first, *rest in rows}


def order(score: np.ndarray) -> str:
    return " > ".join(f"M{system + 1}" for system in np.argsort(-score))


def failing_pairs(fails: tuple[int, ...], first: int = 0) -> Iterator[tuple[int, ...]]:
    """Yield how many questions each pair of systems fails, given how many each system fails."""
    if first == len(PAIRS):
        if not any(fails):
            yield ()
        return
    a, b = PAIRS[first]
    for count in range(min(fails[a], fails[b]) + 1):
        left = tuple(n - count * (system in (a, b)) for system, n in enumerate(fails))
        if all(left[done] == 0 for done in range(a)):
            for others in failing_pairs(left, first + 1):
                yield count, *others


def test_the_counts_are_the_published_ones(grades):
    data = datasets.load_rankllm_case_study()
    levels = np.array(data.groups)
    assert {level: (levels == level).sum() for level in LEVELS} == LEVELS
    for column, level in enumerate(LEVELS):
        solved = grades[:, levels == level].sum(axis=1)
        assert solved.tolist() == SOLVED[:, column].tolist()
    for system, counts in enumerate(SOLVED):
        row = [float(cell) for cell in table_rows()[f"M{system + 1}"]]
        assert row == [*counts, counts.sum() / 100]


def test_all_published_scores_follow(grades):
    score = rankllm(grades).score
    assert score.round(2).tolist() == PUBLISHED
    rows = table_rows()
    for name in ("published", "rankllm(case.grades)"):
        *printed, printed_order = rows[name]
        assert [float(cell) for cell in printed] == PUBLISHED
        assert printed_order == order(score)


def test_no_other_medium_questions_have_the_published_scores(grades):
    counts = np.array(list(failing_pairs(tuple(21 - SOLVED[:, 1]))))
    assert counts.shape == (1548, len(PAIRS))
    columns = [
        *(np.isin(range(5), failed, invert=True) for failed in ([2], [3], [4])),
        *(np.isin(range(5), failed, invert=True) for failed in PAIRS),
        *(np.isin(range(5), solving) for solving in ([0], [1])),
    ]
    determined = np.tile([23, 24, 23, 5, 4], (len(counts), 1))
    weights = np.concatenate([determined[:, :3], counts, determined[:, 3:]], axis=1)
    score = rankllm(np.array(columns, dtype=float).T, weights).score
    found = (np.abs(score - PUBLISHED) < 0.005).all(axis=1)
    assert found.sum() == 1
    patterns, copies = np.unique(grades, axis=1, return_counts=True)
    used = weights[found][0] > 0
    kept, order_of_kept = np.unique(np.array(columns)[used].T, axis=1, return_index=True)
    np.testing.assert_array_equal(patterns, kept)
    np.testing.assert_array_equal(copies, weights[found][0][used][order_of_kept])


@pytest.mark.parametrize("seed", [0, 3])
def test_the_2pl_within_bounds_is_near_the_published_baseline(seed: int):
    data = datasets.load_rankllm_case_study()
    score = studies.bounded_2pl(data, random_seed=seed)["score"].values
    np.testing.assert_allclose(score, PUBLISHED_2PL, atol=1.0)
    rows = table_rows()
    *printed, printed_order = rows["studies.bounded_2pl(case)"]
    np.testing.assert_allclose([float(cell) for cell in printed], score, atol=0.1)
    assert printed_order == order(score)
    *printed, printed_order = rows["2PL, published (appendix H.4)"]
    assert [float(cell) for cell in printed] == PUBLISHED_2PL
    assert printed_order == order(np.array(PUBLISHED_2PL))
    narrow = studies.bounded_2pl(data, discrimination=(0.5, 2.0), random_seed=seed)
    np.testing.assert_allclose(narrow["score"], [100, 82, 38, 0, 39], atol=0.6)


def test_at_random_mostly_has_another_order():
    rng = np.random.default_rng(0)

    def drawn() -> np.ndarray:
        table = [np.zeros((5, size)) for size in LEVELS.values()]
        for level, size in enumerate(LEVELS.values()):
            for system in range(5):
                table[level][system, rng.permutation(size)[: SOLVED[system, level]]] = 1.0
        return np.concatenate(table, axis=1)

    scores = rankllm(np.stack([drawn() for _ in range(2_000)])).score
    *printed, _ = table_rows()["at random, mean of 2,000"]
    assert printed == [f"{value:.2f}" for value in scores.mean(axis=0)]
    published = (np.argsort(-scores, axis=1) == [0, 1, 3, 4, 2]).all(axis=1)
    assert round(100 * published.mean()) == 28
    assert round(100 * (scores[:, 0] > scores[:, 1]).mean()) == 90
