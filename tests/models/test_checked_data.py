"""What factories say of data that they cannot read."""

import inspect

import numpy as np
import pytest

from bayesrank import METHODS, Responses, models
from bayesrank.errors import DataError
from bayesrank.method import LIKELIHOOD_BACKENDS, load_function

FACTORIES = [row for row in METHODS.values() if LIKELIHOOD_BACKENDS.intersection(row.backends)]


@pytest.mark.parametrize("row", FACTORIES, ids=lambda row: row.name)
def test_a_factory_given_an_array_says_what_it_needs(row):
    factory = load_function(row.factory_path)
    name = next(iter(inspect.signature(factory).parameters))
    outcomes = np.random.default_rng(0).integers(0, 2, (3, 4, 2))
    known = "(Responses|Comparisons)"
    message = rf"{name} must be {known}.* for {factory.__name__}; got ndarray: build them with Resp"
    with pytest.raises(DataError, match=message):
        factory(outcomes)
    with pytest.raises(DataError, match="got list"):
        factory(**{name: outcomes.tolist()})


def test_data_may_be_given_by_name():
    data = Responses([[[1, 0], [0, 0]], [[1, 1], [1, 0]]])
    assert models.rasch(responses=data).coords["system"] == data.systems
