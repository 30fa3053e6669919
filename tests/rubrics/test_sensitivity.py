"""Ranks over regions of weights."""

import numpy as np
import pytest

from bayesrank import Responses
from bayesrank.errors import DataError
from bayesrank.rubrics import label_probabilities, order_stability, weight_sensitivity
from bayesrank.rubrics.sensitivity import plot_weight_sensitivity

# Category shares with the prior: (2, 1, 3) / 6, (1, 3, 2) / 6, (3, 2, 1) / 6.
DATA = Responses(
    [[[0, 2, 2]], [[1, 1, 2]], [[0, 0, 1]]],
    systems=["bold", "careful", "weak"],
    weights=(0, 0.4, 1),
)
BOX = ([0.0, 0.0, 1.0], [0.0, 1.0, 1.0])


def test_shares_of_a_box_by_hand():
    # bold - careful = (1 - 2 w) / 6: ahead exactly while the middle weight is below one half.
    table = weight_sensitivity(DATA, box=BOX, draws=20_000).set_index("system")
    assert table.loc["bold", "share_first"] == pytest.approx(0.5, abs=0.015)
    assert table["rank"].tolist() == [1, 2, 3]
    assert table["rank_worst"].tolist() == [2, 2, 3]
    assert table.loc["weak", "rank_best"] == 3


def test_extremes_of_differences_are_exact():
    pairs = order_stability(DATA, box=BOX)
    assert pairs["stable"].tolist() == [False, True, True]
    np.testing.assert_allclose(
        pairs[["difference_lowest", "difference_highest"]],
        [[-1 / 6, 1 / 6], [1 / 6, 1 / 3], [1 / 6, 1 / 3]],
        atol=1e-15,
    )
    with pytest.raises(TypeError, match="box"):  # without bounds every order can be reversed
        order_stability(DATA)


def test_the_order_of_the_questions_makes_no_pair_stable():
    rng = np.random.default_rng(90_003)
    outcomes = rng.integers(0, 3, (20, 30, 3))
    reordered = np.concatenate([outcomes, outcomes[:, rng.permutation(30)]])
    box = ([0.0, 0.5, 1.0], [0.0, 0.5, 1.0])
    names = [f"{order} {system}" for order in ("asked", "reordered") for system in range(20)]
    data = Responses(reordered, systems=names, categories=3)
    pairs = order_stability(data, box=box).set_index(["system", "opponent"])
    assert not any(pairs.loc[(f"asked {n}", f"reordered {n}"), "stable"] for n in range(20))


def test_simplex_draws_stay_within_the_exact_extremes():
    table = weight_sensitivity(DATA, draws=500)
    assert table["share_first"].sum() == pytest.approx(1.0)
    assert (table["rank_best"] <= table["rank_mean"]).all()
    assert (table["rank_mean"] <= table["rank_worst"]).all()


def test_figure_has_a_line_per_system():
    figure = plot_weight_sensitivity(weight_sensitivity(DATA, draws=50))
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert sorted(labels) == sorted(DATA.systems)


def test_a_box_of_another_form_is_refused():
    with pytest.raises(DataError, match="box must be two sequences of 3 weights"):
        weight_sensitivity(DATA, box=([0, 0], [1, 1]))
    with pytest.raises(DataError, match="box must be two sequences of 3 weights"):
        order_stability(DATA, box=([0, 1, 0], [0, 0, 1]))


def test_label_probabilities():
    np.testing.assert_allclose(label_probabilities([3.0, 3.0]), 0.5)
    np.testing.assert_allclose(label_probabilities([3.0, 1.0], bias=[2.0, 0.0]), 0.5)
    p = label_probabilities([[0.0, 2.0]], temperature=2.0)
    np.testing.assert_allclose(p[0, 1] / p[0, 0], np.e)
    with pytest.raises(ValueError, match="temperature must be a number above 0; got 0"):
        label_probabilities([0.0], temperature=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"draws": 0}, "draws must be an integer of at least 1; got 0"),
        ({"random_seed": -1}, "random_seed must be None or an integer"),
        ({"box": 3}, "box must be two sequences of 2 weights"),
        ({"box": ([0, 0], [1, np.inf])}, "box must be two sequences of 2 weights"),
        ({"box": (["a", "b"], [1, 1])}, "box must be numbers"),
    ],
)
def test_weight_sensitivity_names_the_argument(arguments, message):
    with pytest.raises(ValueError, match=message):
        weight_sensitivity(Responses([[1, 0], [0, 0]]), **arguments)


def test_systems_without_outcomes_have_no_place_in_the_order():
    counts = np.concatenate([DATA.values, np.full_like(DATA.values[:1], -1)])
    more = Responses(counts, weights=DATA.weights)
    assert weight_sensitivity(more, draws=9)["rank_worst"].max() <= len(DATA.systems)
    assert len(order_stability(more, box=BOX)) == len(order_stability(DATA, box=BOX))
