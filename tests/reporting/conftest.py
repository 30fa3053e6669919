"""Results whose numbers are known, for figures, tables and pages."""

import json
from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from bayesrank.results.ranks import separated_from_next
from bayesrank.results.summary import letter_groups

MakeResult = Callable[..., xr.DataTree]


@pytest.fixture(scope="session")
def make_result() -> MakeResult:
    """Return a function that makes a result with given scores, intervals 0.1 to each side."""
    return known_result


def known_result(
    score: list[float], names: list[str], *, draws: bool = True, method: str = "bayes"
) -> xr.DataTree:
    """Make a result; systems at least 0.15 apart are resolved."""
    values = np.array(score)
    n_systems = len(values)
    rank = (values[:, None] < values).sum(axis=1) + 1
    variables = {"score": ("system", values), "rank": ("system", rank)}
    coords = {"system": names}
    if draws:
        better = 1 / (1 + np.exp(-20 * (values[:, None] - values)))
        resolved = values[:, None] - values >= 0.15
        probability = np.full((n_systems, n_systems), 0.2 / n_systems)
        probability[np.arange(n_systems), rank - 1] += 0.8
        lower, upper = np.maximum(rank - 1, 1), np.minimum(rank + 1, n_systems)
        variables |= {
            "score_lower": ("system", values - 0.1),
            "score_upper": ("system", values + 0.1),
            "lcb": ("system", values - 0.08),
            "lcb_rank": ("system", rank),
            "rank_lower": ("system", rank),
            "rank_upper": ("system", upper),
            "joint_rank_lower": ("system", lower),
            "joint_rank_upper": ("system", upper),
            "prob_best": ("system", probability[:, 0]),
            "expected_rank": ("system", rank.astype(float)),
            "resolved": (("system", "opponent"), resolved),
            "group": ("system", np.array(letter_groups(values, resolved))),
            "separated_from_next": ("system", separated_from_next(values, resolved)),
            "superiority": (("system", "opponent"), better),
            "rank_probability": (("system", "position"), probability),
        }
        coords |= {"opponent": names, "position": np.arange(1, n_systems + 1)}
    ranking = xr.Dataset(variables, coords, attrs={"ci_prob": 0.95, "lcb": 0.05})
    posterior = xr.Dataset({"score": (("chain", "draw", "system"), values[None, None])})
    run = {
        "method": method,
        "preset": "none",
        "backend": "exact",
        "options": "{}",
        "prior": "none",
        "target": "benchmark",
        "calibration": "none",
        "random_seed": "1",
        "versions": json.dumps({"bayesrank": "0.1.0"}),
        "fingerprint": "f" * 64,
        "created_at": "2026-01-02T03:04:05+00:00",
    }
    return xr.DataTree.from_dict(
        {"/": xr.Dataset(attrs=run), "ranking": ranking, "posterior": posterior}
    )


@pytest.fixture
def three(make_result: MakeResult) -> xr.DataTree:
    """Return a result of three systems: high in group a, the others in group b."""
    return make_result([0.4, 0.9, 0.5], ["low", "high", "middle"])
