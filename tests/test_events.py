"""Events, against a loop that collects one trial at a time."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bayesrank import Responses
from bayesrank.events import deduplicate_events

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
BINARY = SHAPES.flatmap(lambda shape: arrays(np.int8, shape, elements=st.integers(-1, 1)))


@given(BINARY)
@settings(max_examples=50)
def test_events_are_those_of_the_loop(outcomes):
    expected = {}
    for m, t in np.ndindex(outcomes.shape[1:]):
        column = tuple(outcomes[:, m, t].tolist())
        if 1 in column and 0 in column:
            expected[column] = expected.get(column, 0) + 1
    events = deduplicate_events(outcomes, tuple("abcd"[: len(outcomes)]))
    found = {
        tuple(np.where(right, 1, np.where(wrong, 0, -1)).tolist()): n
        for right, wrong, n in zip(events.right, events.wrong, events.multiplicity, strict=True)
    }
    assert found == expected
    assert len(events.multiplicity) == len(expected)
    assert not (events.right & events.wrong).any()


def test_events_of_responses():
    events = Responses([[[1, 1, 1], [0, 1, -1]], [[0, 0, 1], [1, 0, 0]]]).events
    np.testing.assert_array_equal(events.right, [[False, True], [True, False]])
    np.testing.assert_array_equal(events.wrong, [[True, False], [False, True]])
    np.testing.assert_array_equal(events.multiplicity, [1, 3])
    assert events.systems == ("system 1", "system 2")


def test_trials_on_which_all_agree_are_no_events():
    events = Responses([[[1, 0]], [[1, -1]]]).events
    assert events.right.shape == events.wrong.shape == (0, 2)
    assert events.multiplicity.shape == (0,)
