import math

import pytest

from bayesrank.errors import DataError
from bayesrank.outcomes import outcome_number


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("C", 1.0),
        ("P", 0.5),
        ("I", 0.0),
        ("N", 0.0),
        (True, 1.0),
        (False, 0.0),
        (1, 1.0),
        (0.25, 0.25),
        ("0.25", 0.25),
        ("yes", 1.0),
        ("No", 0.0),
        ("TRUE", 1.0),
        (" false ", 0.0),
        ("pass", 1.0),
        ("Failed", 0.0),
        ("correct", 1.0),
        ("incorrect", 0.0),
        ("t", 1.0),
        ("✗", 0.0),
        ("87.5%", 0.875),
    ],
)
def test_value_is_a_number(value, number):
    assert outcome_number(value, "a test") == number


@pytest.mark.parametrize("value", [None, float("nan"), "", "NaN", "NA", "null", "None"])
def test_blank_is_missing(value):
    assert math.isnan(outcome_number(value, "a test"))


@pytest.mark.parametrize("value", ["c", "maybe", [1], {"a": 1}, 10**400])
def test_unknown_value_is_named(value):
    with pytest.raises(
        DataError, match=r"outcomes must be numbers.* for sample 7: leave"
    ) as caught:
        outcome_number(value, "sample 7")
    assert repr(value)[:70] in str(caught.value)
    assert len(str(caught.value)) < 320
