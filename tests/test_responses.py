"""Responses: what is kept as it is, and the statistics counted by hand."""

import copy
import pickle

import numpy as np
import pytest
import xarray as xr

from bayesrank import Comparisons, Responses
from bayesrank.errors import DataError
from bayesrank.studies.subsets import select, with_outcomes

# Two systems, two questions, three trials; -1 is a missing trial.
RAGGED = np.array([[[0, 2, -1], [1, 1, 2]], [[2, 0, 1], [-1, -1, -1]]])
BINARY_RAGGED = np.minimum(RAGGED, 1)


@pytest.fixture
def binary() -> Responses:
    return Responses(
        [[[1, 1, 0], [0, 0, 0]], [[0, 1, 0], [1, 0, 1]]],
        systems=["ada", "bob"],
        questions=["p", "q"],
    )


@pytest.fixture
def graded() -> Responses:
    """Categories 0, 1, 2 worth 0, 1/2 and 1."""
    return Responses(RAGGED, systems=["ada", "bob"], weights=[0.0, 0.5, 1.0])


@pytest.fixture
def fractional() -> Responses:
    return Responses([[[0.25, 0.75], [np.nan, 0.5]], [[1.0, 0.0], [np.nan, np.nan]]])


# What is kept


def test_labels_are_numbered_by_default():
    data = Responses([[0, 1], [1, 0]])
    assert data.systems == ("system 1", "system 2")
    assert data.questions == ("question 1", "question 2")
    assert data.groups is None
    assert data.prior_outcomes is None
    assert data.paired is True


def test_labels_become_text():
    data = Responses([[0, 1]], systems=[7], questions=["é", 2.5], groups=[1, 1])
    assert data.systems == ("7",)
    assert data.questions == ("é", "2.5")
    assert data.groups == ("1", "1")


def test_two_dimensions_are_one_trial():
    data = Responses([[0, 1], [1, 0]])
    assert data.shape == (2, 2, 1)
    np.testing.assert_array_equal(data.outcomes[..., 0], [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    "outcomes",
    [
        [[True, False]],
        np.array([[1, 0]], dtype=np.uint64),
        np.array([[1.0, 0.0]], dtype=np.float16),
        np.array([[1, 0]], dtype=object),
    ],
)
def test_binary_outcomes_of_any_type(outcomes):
    data = Responses(outcomes)
    assert data.outcomes.dtype == np.int8
    np.testing.assert_array_equal(data.outcomes[..., 0], [[1, 0]])
    assert data.is_binary


def test_nan_and_none_are_missing_trials():
    for missing in (np.nan, None):
        data = Responses([[[1, missing], [0, 2]]], weights=[0, 1, 2])
        np.testing.assert_array_equal(data.outcomes, [[[1, -1], [0, 2]]])
        assert data.n_missing == 1


def test_prior_outcomes_are_shared_or_one_set_each():
    outcomes = [[0, 1, 1], [1, 0, 0]]
    shared = Responses(outcomes, prior_outcomes=[[1], [np.nan], [-1]]).prior_outcomes
    own = Responses(outcomes, prior_outcomes=np.ones((2, 3, 4))).prior_outcomes
    assert shared is not None
    assert own is not None
    np.testing.assert_array_equal(shared, [[1], [-1], [-1]])
    assert shared.dtype == own.dtype == np.int8
    assert own.shape == (2, 3, 4)


def test_prior_outcomes_of_one_trial_need_no_third_axis():
    outcomes, earlier = [[0, 1, 1], [1, 0, 0]], np.array([[1, 0, 1], [0, np.nan, -1]])
    data = Responses(outcomes, prior_outcomes=earlier)
    whole = Responses(outcomes, prior_outcomes=earlier[..., np.newaxis])
    assert data.prior_outcomes.shape == (2, 3, 1)
    assert data.fingerprint == whole.fingerprint


def test_a_set_of_prior_outcomes_that_systems_share_may_say_so():
    outcomes, shared = np.eye(3, dtype=int), np.arange(9).reshape(3, 3) % 2
    data = Responses(outcomes, prior_outcomes=shared[np.newaxis])
    np.testing.assert_array_equal(data.prior_outcomes, shared)
    np.testing.assert_array_equal(data.prior_sets, shared[np.newaxis])
    # Every copy of the data keeps them.
    np.testing.assert_array_equal(select(data, questions=[2, 0]).prior_outcomes, shared[[2, 0]])
    kept = [with_outcomes(data, data.values), Responses.from_long(data.to_long())]
    assert [each.fingerprint for each in kept] == [data.fingerprint] * 2
    for own in (shared[..., np.newaxis], shared[:, :, np.newaxis].tolist()):
        assert Responses(outcomes, prior_outcomes=own).prior_outcomes.shape == (3, 3, 1)
    with pytest.raises(DataError, match=r"of shape \(3, 3\) must have a third axis"):
        Responses(outcomes, prior_outcomes=shared)


def test_prior_outcomes_may_reach_the_last_category_with_a_weight():
    data = Responses([[0, 1]], weights=[0, 0.5, 1], prior_outcomes=[[2], [0]])
    np.testing.assert_array_equal(data.prior_outcomes, [[2], [0]])


def test_input_is_copied_and_left_alone():
    outcomes = np.array([[[0, 1], [1, -1]]], dtype=np.int8)
    weights, earlier = np.array([0.0, 2.0]), np.array([[1], [0]], dtype=np.int8)
    before = [part.copy() for part in (outcomes, weights, earlier)]
    data = Responses(outcomes, weights=weights, prior_outcomes=earlier)
    for part, old in zip((outcomes, weights, earlier), before, strict=True):
        np.testing.assert_array_equal(part, old)
        assert part.flags.writeable
        part[...] = 0
    np.testing.assert_array_equal(data.outcomes, before[0])
    np.testing.assert_array_equal(data.weights, before[1])
    np.testing.assert_array_equal(data.prior_outcomes, before[2])


def test_fractional_input_is_copied():
    scores = np.array([[[0.25, 0.5]]])
    data = Responses(scores)
    scores[...] = 0.0
    np.testing.assert_array_equal(data.scores, [[[0.25, 0.5]]])


def test_nothing_can_be_set(binary):
    with pytest.raises(AttributeError, match="Responses is immutable; systems cannot be set"):
        binary.systems = ("x", "y")
    with pytest.raises(AttributeError, match="immutable"):
        binary.anything = 1


def test_all_arrays_are_read_only(graded, fractional):
    own = Responses([[0, 1], [1, 0]], prior_outcomes=[[1], [0]])
    arrays = [own.outcomes, own.weights, own.prior_outcomes, *own.binary_counts, own.stream]
    arrays += [own.comparisons.wins, own.comparisons.ties, own.comparisons.totals]
    arrays += [own.events.right, own.events.wrong, own.events.multiplicity, own.ballots.grades]
    arrays += [graded.counts, graded.levels, graded.grades, graded.trials, graded.observed]
    arrays += [fractional.scores, fractional.grades, fractional.trials, graded.category_weights]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_copies_and_pickles_are_equal(graded):
    for twin in (copy.copy(graded), copy.deepcopy(graded), pickle.loads(pickle.dumps(graded))):  # noqa: S301
        assert twin.fingerprint == graded.fingerprint
        np.testing.assert_array_equal(twin.counts, graded.counts)


@pytest.mark.parametrize(
    ("outcomes", "text"),
    [
        ([[1]], "Responses(1 system, 1 question, 1 trial)"),
        (BINARY_RAGGED, "Responses(2 systems, 2 questions, 3 trials, 4 outcomes missing)"),
        ([[0.5, np.nan]], "Responses(1 system, 2 questions, 1 trial, 1 outcome missing)"),
    ],
)
def test_repr_gives_the_sizes(outcomes, text):
    assert repr(Responses(outcomes)) == text


def test_repr_gives_the_scale():
    text = "Responses(1 system, 2 questions, 1 trial, scores from 1 to 10)"
    assert repr(Responses([[3, 10]], scale=(1, 10))) == text


# Statistics, counted by hand


def test_counts_grades_and_trials_of_binary_outcomes(binary):
    np.testing.assert_array_equal(binary.counts, [[[1, 2], [3, 0]], [[2, 1], [1, 2]]])
    np.testing.assert_array_equal(binary.trials, [[3, 3], [3, 3]])
    np.testing.assert_allclose(binary.grades, [[2 / 3, 0], [1 / 3, 2 / 3]], rtol=1e-15)
    right, trials = binary.binary_counts
    np.testing.assert_array_equal(right, [[2, 0], [1, 2]])
    np.testing.assert_array_equal(trials, [[3, 3], [3, 3]])
    assert binary.n_categories == 2
    assert binary.is_binary


def test_counts_grades_and_trials_of_ragged_categories(graded):
    np.testing.assert_array_equal(graded.counts, [[[1, 0, 1], [0, 2, 1]], [[1, 1, 1], [0, 0, 0]]])
    np.testing.assert_array_equal(graded.trials, [[2, 3], [3, 0]])
    np.testing.assert_allclose(graded.grades, [[0.5, 2 / 3], [0.5, np.nan]], rtol=1e-15)
    assert graded.n_missing == 4
    assert graded.n_categories == 3
    assert not graded.is_binary
    np.testing.assert_array_equal(graded.levels, RAGGED)


def test_levels_follow_the_worth_and_not_the_category():
    data = Responses(RAGGED, weights=[1.0, 0.0, 0.5])
    np.testing.assert_array_equal(data.category_levels, [2, 0, 1])
    np.testing.assert_array_equal(data.levels, [[[2, 1, -1], [0, 0, 1]], [[1, 2, 0], [-1, -1, -1]]])
    assert data.levels.dtype == np.int8


def test_categories_of_equal_worth_share_a_level():
    data = Responses(RAGGED, weights=[0.0, 1.0, 1.0])
    np.testing.assert_array_equal(data.levels, [[[0, 1, -1], [1, 1, 1]], [[1, 0, 1], [-1, -1, -1]]])
    # Trials of question 1: 0 against 2 (a loss) and 2 against 0 (a win).
    np.testing.assert_array_equal(data.comparisons.wins, [[0, 1], [1, 0]])


def test_reversed_weights_turn_wins_into_losses():
    outcomes = np.random.default_rng(1).integers(0, 3, (3, 4, 5))
    upwards = Responses(outcomes, weights=[0, 1, 2]).comparisons
    downwards = Responses(outcomes, weights=[2, 1, 0]).comparisons
    np.testing.assert_array_equal(upwards.wins, downwards.wins.T)
    np.testing.assert_array_equal(upwards.ties, downwards.ties)


def test_a_binary_worth_other_than_0_and_1_is_not_binary():
    data = Responses([[0, 1]], weights=[1.0, 0.0])
    assert not data.is_binary
    with pytest.raises(DataError, match=r"outcomes must be right or wrong .* \[1.0, 0.0\]"):
        _ = data.binary_counts


def test_categories_without_weights_are_levels_without_a_worth():
    data = Responses(RAGGED, categories=3)
    assert data.weights is None
    np.testing.assert_array_equal(data.levels, RAGGED)
    np.testing.assert_array_equal(data.category_levels, [0, 1, 2])
    message = "weights must be given for outcomes with more than two categories; got None for 3"
    with pytest.raises(DataError, match=message):
        _ = data.category_weights
    with pytest.raises(DataError, match=message):
        _ = data.grades
    for view in ("events", "stream", "binary_counts"):
        with pytest.raises(DataError, match=r"outcomes must be right or wrong .* 3 categories"):
            getattr(data, view)


def test_the_stream_is_in_the_order_of_play(binary):
    np.testing.assert_array_equal(
        binary.stream, [[[1, 0], [0, 1]], [[1, 1], [0, 0]], [[0, 0], [0, 1]]]
    )
    assert binary.stream.flags.c_contiguous


def test_ballots_hold_the_grades(binary):
    np.testing.assert_array_equal(binary.ballots.grades, binary.grades)
    assert binary.ballots.systems == ("ada", "bob")


def test_paired_and_cross_trial_comparisons(binary):
    # Same trials: question p is 1-0 in trial 1, question q is 0-1 in trials 1 and 3.
    paired = binary.compare("paired")
    np.testing.assert_array_equal(paired.wins, [[0, 1], [2, 0]])
    np.testing.assert_array_equal(paired.ties, [[0, 3], [3, 0]])
    # All pairs of trials: p has 2 x 2 of 9 for ada and 1 x 1 of 9 for bob, q has 2 x 3 for bob.
    crossed = binary.compare("all")
    np.testing.assert_allclose(crossed.wins, [[0, 4 / 3], [7 / 3, 0]], rtol=1e-14)
    np.testing.assert_allclose(crossed.ties, [[0, 7 / 3], [7 / 3, 0]], rtol=1e-14)
    assert paired.systems == crossed.systems == ("ada", "bob")


def test_paired_says_which_comparisons_are_counted(binary):
    unpaired = Responses(binary.outcomes, paired=False)
    np.testing.assert_array_equal(binary.comparisons.wins, binary.compare("paired").wins)
    np.testing.assert_array_equal(unpaired.comparisons.wins, binary.compare("all").wins)
    assert isinstance(binary.comparisons, Comparisons)


def test_an_unknown_pairing_is_refused(binary):
    with pytest.raises(DataError, match="pairing must be 'paired' or 'all'; got 'each'"):
        binary.compare("each")


# Fractional scores


def test_fractional_scores_are_kept(fractional):
    assert fractional.scores is not None
    np.testing.assert_array_equal(
        fractional.scores, [[[0.25, 0.75], [np.nan, 0.5]], [[1, 0], [np.nan, np.nan]]]
    )
    np.testing.assert_array_equal(fractional.trials, [[2, 1], [2, 0]])
    np.testing.assert_array_equal(fractional.grades, [[0.5, 0.5], [0.5, np.nan]])
    assert fractional.n_missing == 3
    assert not fractional.is_binary
    assert Responses([[0, 1]]).scores is None


@pytest.mark.parametrize(
    "view",
    [
        "outcomes",
        "counts",
        "n_categories",
        "levels",
        "category_levels",
        "comparisons",
        "events",
        "stream",
        "binary_counts",
    ],
)
def test_views_of_categories_name_the_remedy_for_fractional_scores(fractional, view):
    with pytest.raises(DataError, match=r"got scores from 0 to 1: .*categorize\(edges=\.\.\.\)"):
        getattr(fractional, view)


def test_categorize_at_one_edge_is_right_or_wrong(fractional):
    binary = fractional.categorize(0.5)
    np.testing.assert_array_equal(binary.outcomes, [[[0, 1], [-1, 1]], [[1, 0], [-1, -1]]])
    assert binary.is_binary


def test_categorize_keeps_everything_else():
    data = Responses(
        [[0.2, 0.5, 1.0], [0.0, 0.75, 0.5]],
        systems=["a", "b"],
        questions=["p", "q", "r"],
        groups=["g", "g", "h"],
        prior_outcomes=[[1, 0], [-1, 1], [0, 0]],
        paired=False,
    )
    cut = data.categorize([0.25, 0.75], weights=[0.0, 0.5, 1.0])
    np.testing.assert_array_equal(cut.outcomes[..., 0], [[0, 1, 2], [0, 2, 1]])
    np.testing.assert_array_equal(cut.prior_outcomes, [[2, 0], [-1, 2], [0, 0]])
    np.testing.assert_array_equal(cut.weights, [0, 0.5, 1])
    assert (cut.systems, cut.questions, cut.groups) == (data.systems, data.questions, data.groups)
    assert cut.paired is False


def test_two_edges_without_weights_have_no_worth(fractional):
    assert fractional.categorize([0.3, 0.6]).weights is None


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([0.6, 0.3], r"edges must increase; got \[0.6, 0.3\]"),
        ([0.3, 0.3], "edges must increase"),
        ([], "edges must be one or more finite numbers"),
        ([np.nan], "edges must be one or more finite numbers"),
        ([[0.3], [0.6]], "edges must be one or more finite numbers"),
        (["low"], "edges must be numbers"),
    ],
)
def test_edges_of_another_form_are_refused(fractional, edges, message):
    with pytest.raises(DataError, match=message):
        fractional.categorize(edges)


def test_categories_cannot_be_categorized(binary):
    with pytest.raises(DataError, match="edges must be None for categories"):
        binary.categorize([0.5])


# Labelled arrays


@pytest.mark.parametrize(
    "dims", [("system", "question", "trial"), ("trial", "question", "system"), None]
)
def test_from_dataarray_in_any_order(dims):
    array = xr.DataArray(
        RAGGED,
        dims=("system", "question", "trial"),
        coords={"system": ["ada", "bob"], "question": ["p", "q"]},
    )
    given = array if dims is None else array.transpose(*dims)
    data = Responses.from_dataarray(given, categories=3)
    np.testing.assert_array_equal(data.outcomes, RAGGED)
    assert data.systems == ("ada", "bob")
    assert data.questions == ("p", "q")


def test_from_dataarray_without_trials_and_labels():
    data = Responses.from_dataarray(
        xr.DataArray([[1, 0], [0, 1], [1, 1]], dims=("question", "system")), systems=["x", "y"]
    )
    np.testing.assert_array_equal(data.outcomes[..., 0], [[1, 0, 1], [0, 1, 1]])
    assert data.systems == ("x", "y")
    assert data.questions == ("question 1", "question 2", "question 3")


@pytest.mark.parametrize(
    "dims", [("model", "question"), ("system", "trial"), ("system", "question", "run")]
)
def test_from_dataarray_refuses_other_dims(dims):
    array = xr.DataArray(np.zeros((2,) * len(dims)), dims=dims)
    with pytest.raises(DataError, match="data must have dims system, question and optionally"):
        Responses.from_dataarray(array)


def test_from_dataarray_refuses_other_types():
    with pytest.raises(DataError, match=r"data must be an xarray\.DataArray; got ndarray"):
        Responses.from_dataarray(np.zeros((2, 2)))


# Fingerprints

OUTCOMES = np.array([[[0, 1], [1, 1]], [[1, 0], [0, 0]]])


def test_equal_data_have_equal_fingerprints():
    assert Responses(OUTCOMES).fingerprint == Responses(OUTCOMES.astype(float)).fingerprint
    assert len(Responses(OUTCOMES).fingerprint) == 64


@pytest.mark.parametrize(
    "changes",
    [
        {"outcomes": 1 - OUTCOMES},
        {"outcomes": np.where(OUTCOMES == 0, 0.5, OUTCOMES)},
        {"outcomes": OUTCOMES[..., :1]},
        {"systems": ["x", "y"]},
        {"questions": ["x", "y"]},
        {"weights": [0.0, 2.0]},
        {"weights": [0.0, 1.0, 2.0]},
        {"groups": ["g", "g"]},
        {"prior_outcomes": [[1], [0]]},
        {"prior_outcomes": [[[1], [0]], [[1], [0]]]},
        {"paired": False},
    ],
)
def test_every_change_shows_in_the_fingerprint(changes):
    arguments = {"outcomes": OUTCOMES} | changes
    assert Responses(**arguments).fingerprint != Responses(OUTCOMES).fingerprint


def test_a_moved_row_shows_in_the_fingerprint():
    swapped = Responses(OUTCOMES[::-1], systems=["system 2", "system 1"])
    assert swapped.fingerprint != Responses(OUTCOMES).fingerprint


def test_a_long_table_and_back_loses_nothing():
    data = Responses(
        [[[1, 2], [0, -1]], [[0, 0], [-1, -1]]],
        systems=["b", "a"],
        questions=["q", "p"],
        groups=["g", "h"],
        weights=[0, 0.4, 1],
        prior_outcomes=[[1], [2]],
    )
    assert Responses.from_long(data.to_long()).fingerprint == data.fingerprint
    assert not Responses.from_long(data.to_long(), paired=False).paired
