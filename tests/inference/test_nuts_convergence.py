"""Every factory samples: no divergences, R-hat below 1.01, an effective sample size above 400.

The check runs through ``rank`` with its defaults, over every free parameter. ``docs/sampling.csv``
is the table of the slow part.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arviz_stats.sampling_diagnostics import ess, rhat

from bayesrank import METHODS, Responses, rank
from bayesrank.datasets import load_olympiad
from bayesrank.errors import CalibrationWarning
from bayesrank.inference.backends.nuts import LARGEST_RHAT
from bayesrank.inference.run import Run

SMALLEST_ESS = 400
TIMES = {"assume_time_axis": True}

# Options where the defaults of the factory are not what the name alone means: published
# configurations of the same name, and variants that are models of their own.
VARIANTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "rao_kupper": {"rao_kupper": {"tie_strength": None}},
    "rasch_mml": {"rasch_mml": {"ability_mean": None, "ability_sd": None}},
    "dynamic_irt": {
        "linear": {"variant": "linear"},
        "growth": {"variant": "growth", **TIMES},
        "state_space": {"variant": "state_space", **TIMES},
    },
}
CONFIGURATIONS = {
    label: (name, options)
    for name, row in METHODS.items()
    if "nuts" in row.backends
    for label, options in VARIANTS.get(name, {name: {}}).items()
}


def free_parameters(method: str, data: Responses, options: Mapping[str, Any]) -> list[str]:
    row = METHODS[method]
    run = Run(
        method=row,
        data=data,
        backend="nuts",
        target="benchmark",
        prior=row.default_prior,
        draws=1,
        seed=np.random.SeedSequence(0),
        options=options,
    )
    return [v.name for v in run.build_model().free_RVs]


def check_sampling(data: Responses, label: str) -> None:
    method, options = CONFIGURATIONS[label]
    with warnings.catch_warnings():
        # What few questions say of other questions is another matter.
        warnings.simplefilter("ignore", CalibrationWarning)
        tree = rank(data, method, backend="nuts", random_seed=0, **options)
    names = free_parameters(method, data, options)
    posterior = tree["posterior"].to_dataset()[names]
    assert dict(posterior.sizes)["chain"] == 4
    assert dict(posterior.sizes)["draw"] == 1000
    assert not tree["sample_stats"]["diverging"].any()
    largest, least = rhat(posterior).max(), ess(posterior, method="bulk").min()
    for name in names:
        assert largest[name] < LARGEST_RHAT, name
        assert least[name] > SMALLEST_ESS, name


def load_npz(path: Path) -> Responses:
    with np.load(path, allow_pickle=False) as stored:
        return Responses(
            stored["R"], systems=stored["models"].tolist(), questions=stored["questions"].tolist()
        )


@pytest.mark.parametrize("label", ["bradley_terry", "davidson", "rasch", "irt_2pl"])
def test_the_bundled_example_samples(label: str) -> None:
    check_sampling(load_olympiad("HMMT'25"), label)


@pytest.mark.slow
@pytest.mark.parametrize("label", CONFIGURATIONS)
def test_the_whole_bundled_example_samples(label: str) -> None:
    check_sampling(load_olympiad(), label)


@pytest.mark.slow
@pytest.mark.parametrize("label", CONFIGURATIONS)
@pytest.mark.parametrize("name", ["misguided_attention", "evalperf"])
def test_real_evaluations_sample(shared: Path, name: str, label: str) -> None:
    check_sampling(load_npz(shared / "data" / f"{name}.npz"), label)
