"""Agreement of difficulties with judgements."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesrank import studies
from bayesrank.errors import DataError

DIFFICULTY = {"p": 4.0, "q": 3.0, "r": 2.0, "s": 1.0}


def table(rows):
    return pd.DataFrame(rows, columns=["rater", "first", "second", "harder"])


@pytest.fixture
def judged() -> pd.DataFrame:
    return table(
        [
            ("ann", "p", "q", "first"),
            ("ann", "r", "q", "second"),
            ("ann", "s", "r", "first"),
            ("ann", "p", "s", "skip"),
            ("bob", "q", "p", "second"),
            ("bob", "q", "r", "second"),
            ("bob", "r", "s", "first"),
            ("cat", "p", "q", "skip"),
            ("cat", "q", "r", "first"),
        ]
    )


def test_shares_and_counts_by_hand(judged):
    study = studies.alignment(DIFFICULTY, judged)
    assert study["rater"].values.tolist() == ["ann", "bob", "cat"]
    np.testing.assert_allclose(study["agreement"], [2 / 3, 2 / 3, 1.0])
    assert study["n_judged"].values.tolist() == [3, 3, 1]
    assert study["n_skipped"].values.tolist() == [1, 0, 1]


def test_the_majority_leaves_out_pairs_without_one(judged):
    study = studies.alignment(DIFFICULTY, judged)
    # p > q (two votes), q > r (two of three); r and s are one against one, p and s skipped.
    assert int(study["n_consensus"]) == 2
    assert int(study["n_without_consensus"]) == 2
    assert float(study["consensus_agreement"]) == 1.0


def test_kappa_by_hand():
    pairs = [(f"a{i}", f"b{i}") for i in range(10)]
    levels = {name: 1.0 for a, _ in pairs for name in [a]} | {b: 0.0 for _, b in pairs}
    for b in ("b7", "b8", "b9"):
        levels[b] = 2.0
    # The estimate says first for seven; the rater says first for six of these and one other.
    said = ["first"] * 6 + ["second", "first", "second", "second"]
    judged = table([("x", a, b, s) for (a, b), s in zip(pairs, said, strict=True)])
    study = studies.alignment(levels, judged)
    assert float(study["agreement"][0]) == pytest.approx(0.8)
    # Each pair in both orders: by chance half of them agree.
    assert float(study["kappa"][0]) == pytest.approx((0.8 - 0.5) / (1 - 0.5))


def test_names_of_questions_change_no_kappa(judged):
    turned = dict(zip("pqrs", "xbya", strict=True))  # other orders within pairs
    renamed = judged.replace({"first": turned, "second": turned})
    levels = {turned[name]: level for name, level in DIFFICULTY.items()}
    assert studies.alignment(levels, renamed).identical(studies.alignment(DIFFICULTY, judged))


def test_kappa_between_raters_uses_the_pairs_of_both(judged):
    kappa = studies.alignment(DIFFICULTY, judged)["rater_kappa"]
    np.testing.assert_allclose(kappa, kappa.values.T)
    assert float(kappa.sel(rater="ann", other_rater="ann")) == 1.0
    # Ann: p > q, q > r, s > r. Bob: p > q, r > q, r > s.
    found = float(kappa.sel(rater="ann", other_rater="bob"))
    assert found == pytest.approx((1 / 3 - 0.5) / (1 - 0.5))


def test_difficulties_may_be_an_array(judged):
    array = xr.DataArray(list(DIFFICULTY.values()), {"question": list(DIFFICULTY)}, "question")
    assert studies.alignment(array, judged).identical(studies.alignment(DIFFICULTY, judged))


@pytest.mark.parametrize(
    ("first", "second"),
    [(1.0, 1.0), (0.3, 0.1 + 0.2), (np.inf, np.inf), (-np.inf, -np.inf)],
    ids=["equal", "rounding", "nobody-right", "everybody-right"],
)
def test_equal_difficulties_count_half(first, second):
    study = studies.alignment({"p": first, "q": second}, table([("a", "p", "q", "first")]))
    assert float(study["agreement"][0]) == 0.5


def test_a_difficulty_that_is_not_a_number_is_an_error():
    with pytest.raises(DataError, match="given for every question; got none for 'q'"):
        studies.alignment({"p": 1.0, "q": np.nan}, table([("a", "p", "q", "first")]))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "judgements must have rows"),
        ([("a", "p", "q", "both")], "harder must be one of first, second, skip; got 'both'"),
        ([("a", "p", "q", "first"), ("a", "q", "p", "skip")], "judgements must be one per rater"),
        ([("a", "p", "z", "first")], "difficulty must be given for every question; got none"),
    ],
)
def test_tables_are_checked(rows, message):
    with pytest.raises(DataError, match=message):
        studies.alignment(DIFFICULTY, table(rows))
