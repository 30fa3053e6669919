"""Likelihoods of graded votes and of votes for neither, against their values and other models."""

import numpy as np
import pytest

from bayesrank import Battles
from bayesrank.errors import NoFiniteEstimate
from bayesrank.inference.fits import pairs, vote_table
from bayesrank.inference.fits.pair_counts import fit_pairs
from bayesrank.inference.fits.pair_rows import pair_rows
from bayesrank.inference.fits.vote_likelihoods import CumulativeLogit, OutsideOption
from bayesrank.priors import Flat, Normal
from bayesrank.vote_rows import VoteRows, grade_name

NAMES = np.array(list("abcd"))
WORDS = ["A>>B", "A>B", "A=B", "B>A", "B>>A", "both_bad"]
FORMULA = "1 + length"
FLAT = {
    "cumulative_logit": {"threshold_prior": "flat"},
    "davidson_outside": {"tie_prior": "flat", "bar_prior": "flat", "slope_prior": "flat"},
}


def a_log(words, n=800, seed=0):
    """Return battles with the results that are among the words."""
    rng = np.random.default_rng(seed)
    first = rng.integers(4, size=n)
    second = (first + 1 + rng.integers(3, size=n)) % 4
    winner = rng.choice(words, size=n)
    return Battles(
        NAMES[first],
        NAMES[second],
        winner,
        systems=NAMES,
        weight=rng.choice([0.0, 1.0, 2.0], n),
        covariates={"length": rng.normal(size=n)},
    )


RESULTS = {
    "all": WORDS,
    "no ties": ["A>>B", "A>B", "B>A", "B>>A"],
    "no grades": ["A>B", "A=B", "B>A", "both_bad"],
    "one grade in two": ["A>>B", "A=B", "B>>A"],
    "wins alone": ["A>B", "B>A"],
    "neither or wins": ["A>B", "B>A", "both_bad"],
}


@pytest.mark.parametrize("words", RESULTS.values(), ids=RESULTS)
@pytest.mark.parametrize("bind", [CumulativeLogit.of, OutsideOption.of])
def test_derivatives_are_those_of_the_value(words, bind):
    data = a_log(words)
    problem = pair_rows(
        bind,
        data,
        data.design(FORMULA),
        prior_precision=1.0,
        effect_precision=2.0,
        effect_mean=0.1,
        shared_precision=0.5,
        shared_mean=0.2,
    )
    p = 6 + problem.n_shared
    point = 0.3 * np.random.default_rng(1).normal(size=(1, p))
    point[0, 6:] = np.array([0.5, 0.8, 1.2])[: problem.n_shared]
    along = np.eye(p)
    along[:4, :4] -= 0.25  # scores keep their sum
    steps = 1e-4 * along[:, np.newaxis]
    slopes = [(problem.value(point + s) - problem.value(point - s)) / 2e-4 for s in steps]
    np.testing.assert_allclose(along @ problem.gradient(point)[0], slopes, rtol=1e-5, atol=1e-3)
    bends = [(problem.gradient(point - s) - problem.gradient(point + s))[0] / 2e-4 for s in steps]
    information = along @ problem.information(point)[0] @ along
    np.testing.assert_allclose(information, np.array(bends) @ along, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    ("bind", "words", "k"),
    [
        (CumulativeLogit.of, ["A>>B", "A>B", "A=B", "B>A", "B>>A"], 2),
        (CumulativeLogit.of, ["A>>B", "A>B", "B>A", "B>>A"], 1),
        (CumulativeLogit.of, ["A>B", "both_bad", "B>A"], 1),
        (CumulativeLogit.of, ["A>B", "B>A"], 0),
        (OutsideOption.of, ["A>B", "A=B", "B>A", "both_bad"], 3),
        (OutsideOption.of, ["A>B", "B>>A", "both_bad"], 2),
        (OutsideOption.of, ["A>>B", "A=B", "B>A"], 1),
    ],
)
def test_chances_of_all_results_add_up_to_one(bind, words, k):
    n = len(words)
    bound = bind(VoteRows.of(Battles(["a"] * n, ["b"] * n, words)))
    assert len(bound.positive) == k
    shared = np.array([0.4, 0.9, 1.3])[:k]
    chances = np.exp(bound.value(slice(None), np.full(n, 0.7), np.full(n, -0.2), shared))
    assert chances.sum() == pytest.approx(1.0)


def test_equal_votes_are_merged():
    data = a_log(WORDS)
    votes, merged = VoteRows.of(data), VoteRows.of(data).merged()
    assert merged.weight.sum() == votes.weight.sum()
    assert (merged.first < merged.second).all()
    assert len(merged.first) <= 6 * len(WORDS)
    again = VoteRows.of(Battles(NAMES[[1]], NAMES[[0]], ["A>>B"], systems=NAMES)).merged()
    assert (again.first[0], again.second[0], again.outcome[0]) == (0, 1, -2)
    assert grade_name(int(again.outcome[0])) == "much worse"


@pytest.mark.parametrize("prior", [Normal(0.0, 0.8), Flat()])
def test_without_grades_cumulative_logits_are_rao_kupper(prior):
    data = a_log(["A>B", "A=B", "B>A", "both_bad"])
    flat = isinstance(prior, Flat)
    gap_prior = "flat" if flat else "normal(0, 2)"
    one = vote_table.cumulative_logit(data, prior, threshold_prior=gap_prior)
    precision = {} if flat else {"prior_precision": 0.8**-2, "tie_precision": 0.25}
    other = fit_pairs(pairs.rao_kupper(), data.wins, data.ties, **precision)
    assert one.converged
    np.testing.assert_allclose(one.score, other.score, atol=1e-9)
    kappa = np.exp(one.parameters["threshold"])
    np.testing.assert_allclose(kappa, [other.parameters["tie_strength"]], rtol=1e-9)
    np.testing.assert_allclose(one.information, other.information, rtol=1e-6, atol=1e-6)


def test_without_votes_for_neither_the_outside_option_is_davidson():
    data = a_log(["A>B", "A=B", "B>A"])
    one = vote_table.davidson_outside(data, Normal(0.0, 0.8))
    other = fit_pairs(
        pairs.davidson(), data.wins, data.ties, prior_precision=0.8**-2, tie_precision=0.25
    )
    np.testing.assert_allclose(one.score, other.score, atol=1e-9)
    np.testing.assert_allclose(one.free, other.free, atol=1e-9)


@pytest.mark.parametrize("method", FLAT)
def test_covariates_of_no_effect_change_nothing(method):
    data, fit = a_log(WORDS), getattr(vote_table, method)
    tight = {"formula": FORMULA, "covariate_prior": "normal(0, 0.00001)"}
    one, other = fit(data, Normal(0.0, 1.0), **tight), fit(data, Normal(0.0, 1.0))
    assert one.converged
    assert other.converged
    np.testing.assert_allclose(one.score, other.score, atol=1e-6)


def test_grades_keep_finite_what_wins_do_not():
    # b is much better than nobody, but a, which always wins, is never much better.
    data = Battles(["a"] * 6, ["b"] * 6, ["A>B"] * 5 + ["A>>B"])
    with pytest.raises(NoFiniteEstimate, match="raising 'a' above the other systems"):
        vote_table.require_cumulative_logit(data)
    sides = [["a"] * 4 + ["b"] * 3, ["b"] * 4 + ["c"] * 3]
    words = ["A>B", "A>B", "A>>B", "A>B", "A>B", "B>A", "A>>B"]
    data = Battles(*sides, words)
    vote_table.require_cumulative_logit(data)  # a was not always much better than b
    fit = vote_table.cumulative_logit(data, Flat(), threshold_prior="flat")
    assert fit.converged
    assert fit.score.argmax() == 0
    never = Battles(["a", "b"], ["b", "a"], ["tie", "tie"])
    with pytest.raises(NoFiniteEstimate):
        vote_table.require_cumulative_logit(never)


def test_a_bar_needs_three_systems_to_have_a_slope():
    data = Battles(["a", "b", "a", "a"], ["b", "a", "b", "b"], ["A>B", "A>B", "both_bad", "tie"])
    with pytest.raises(NoFiniteEstimate, match="three systems"):
        vote_table.require_davidson_outside(data)
    assert vote_table.davidson_outside(data, Normal(0.0, 1.0)).converged
