"""Log-likelihoods and log-priors of draws are those of PyMC."""

import numpy as np
import pytest
import xarray as xr
from pymc.stats import compute_log_likelihood, compute_log_prior
from pytensor.compile.mode import Mode

from bayesrank import Responses, models
from bayesrank.inference.graph import bound_model
from bayesrank.inference.graph.fit import log_densities
from bayesrank.models.array_ops import with_ufuncs

ANSWERS = Responses(np.random.default_rng(0).integers(0, 2, (4, 6, 3)))
BUILT = {
    "dirichlet_multinomial": lambda: models.dirichlet_multinomial(ANSWERS),
    "irt_3pl": lambda: models.irt_3pl(ANSWERS),
    "davidson": lambda: models.davidson(ANSWERS.comparisons),
    "plackett_luce": lambda: models.plackett_luce(ANSWERS.comparisons),
}


@pytest.mark.parametrize("name", BUILT)
@pytest.mark.parametrize("block", [bound_model.LARGEST_BLOCK, 1])
def test_densities_are_those_of_pymc(name, block, monkeypatch):
    monkeypatch.setattr(bound_model, "LARGEST_BLOCK", block)
    model = BUILT[name]()
    bound = bound_model.bind_model(model, "map")
    moves = np.random.default_rng(1).normal(size=(2, 5, bound.size))
    posterior = bound.labelled(bound.start + 0.1 * moves)
    found = log_densities(model, posterior)
    tree = xr.DataTree.from_dict({"posterior": posterior})
    mode = with_ufuncs(Mode(linker="py", optimizer="merge"))
    options = {"model": model, "progressbar": False, "compile_kwargs": {"mode": mode}}
    compute_log_likelihood(tree, **options)
    compute_log_prior(tree, **options)
    for group in ("log_likelihood", "log_prior"):
        expected = tree[group].to_dataset()
        assert set(found[group]) == set(expected)
        for variable, values in expected.items():
            xr.testing.assert_allclose(found[group][variable].drop_attrs(), values.drop_attrs())
