"""Studies of trials and questions say that battles and arrays have none."""

import inspect

import numpy as np
import pytest

from bayesrank import Battles, planning, studies
from bayesrank.errors import DataError

# Those of a likelihood of comparisons, and the rule for stopping, are for battles, too.
OF_ALL_DATA = {"prior_sensitivity", "should_stop"}
OF_RESPONSES = {
    name: function
    for module in (studies, planning)
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if name in module.__all__
    and next(iter(inspect.signature(function).parameters)) == "data"
    and name not in OF_ALL_DATA
}
NEEDED = {"method": "rasch", "methods": ["avg"], "budget": 3, "width": 0.1}


@pytest.mark.parametrize("name", OF_RESPONSES)
@pytest.mark.parametrize("data", [Battles(["a"], ["b"], ["tie"]), np.ones((2, 3, 4))], ids=type)
def test_other_data_are_refused(name, data):
    parameters = inspect.signature(OF_RESPONSES[name]).parameters.values()
    needed = [each.name for each in parameters if each.default is each.empty][1:]
    options = {each: NEEDED[each] for each in needed if each in NEEDED}
    kind = type(data).__name__.lower()
    with pytest.raises(DataError, match=rf"data must be responses to .*; got {kind}"):
        OF_RESPONSES[name](data, **options)
