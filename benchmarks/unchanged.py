"""Hold the estimates of every likelihood to those of another checkout, on random data.

    python benchmarks/unchanged.py --write before.pkl     # in the one checkout
    python benchmarks/unchanged.py --against before.pkl   # in the other

Point estimates, parameters, ties and seeded draws of all configurations that a kernel fits, for
both targets, or the errors raised. Data are complete, with trials or whole cells missing, scored,
separated, of one question, of more systems than questions, and with equal totals.
"""

import single_thread  # noqa: F401

# isort: split

import argparse
import pickle
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from configurations import is_likelihood
from measuring import ignore_warnings
from numpy.typing import NDArray

from bayesrank import METHODS, PRESETS, Responses, rank
from bayesrank.inference.run import Run
from bayesrank.method import LIKELIHOOD_BACKENDS
from bayesrank.ranking import draw_scores

Found = dict[str, Any]

# Per chain.
DRAWS = 5

TIMES = {"assume_time_axis": True}
FORMS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    **{
        name: (name, {})
        for name, preset in PRESETS.items()
        if is_likelihood(preset) and preset.backend != "nuts"
    },
    **{
        f"{name} by {backend}": (name, {"backend": backend} | dict(row.example or {}))
        for name, row in METHODS.items()
        if row.kernel
        for backend in row.backends
        if backend in (*LIKELIHOOD_BACKENDS, "mml") and backend != "nuts"
    },
    "dynamic_irt_growth": ("dynamic_irt", {"backend": "mle", "score_target": "initial", **TIMES}),
    "dynamic_irt_state_space": (
        "dynamic_irt",
        {"backend": "mle", "variant": "state_space", **TIMES},
    ),
    "gains of growth": ("dynamic_irt", {"backend": "map", "score_target": "gain", **TIMES}),
    "walk with a prior": (
        "dynamic_irt",
        {
            "backend": "map",
            "variant": "state_space",
            "difficulty_prior": "flat",
            "walk_prior": "flat",
            **TIMES,
        },
    ),
    "3pl centred": ("irt_3pl", {"backend": "map"}),
    "3pl of known guessing": ("irt_3pl", {"backend": "map", "guessing": 0.2}),
    "published 3pl of known guessing": (
        "irt_3pl",
        {"backend": "mle", "centred": False, "guessing": 0.2},
    ),
    "mirt by norm": ("mirt", {"score": "norm", "n_factors": 1}),
}
COLUMNS = ("estimates", "parameters", "draws", "ties differ", "errors differ", "fits")
WIDTHS = (34, 12, 12, 12, 13, 14, 6)


class NoKernelError(Exception):
    """Raised where the compiled graph of a factory would fit the data."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", type=Path, metavar="FILE", help="store what this checkout finds")
    mode.add_argument("--against", type=Path, metavar="FILE", help="compare with what is stored")
    parser.add_argument("--tensors", type=int, default=100, help="random data sets (default 100)")
    parser.add_argument("--forms", default="", help="separated by commas (default: all)")
    parser.add_argument("--worst", type=int, default=0, help="cases to name for each form")
    options = parser.parse_args(arguments)
    ignore_warnings()
    forms = options.forms.split(",") if options.forms else list(FORMS)
    stored = {}
    if options.against:
        stored = pickle.loads(options.against.read_bytes())  # noqa: S301 - a file of one's own
        forms = [form for form in forms if (0, form) in stored]  # some are younger than the file
    with mock.patch.object(Run, "build_model", _refuse):
        found = {
            (number, form): estimate(form, data)
            for number, data in enumerate(tensors(options.tensors))
            for form in forms
        }
    if options.write:
        options.write.write_bytes(pickle.dumps(found))
        print(f"{len(found)} fits of {len(forms)} forms")
    else:
        compare(stored, found, options.worst)


def _refuse(*_: Any) -> Any:
    raise NoKernelError("no kernel")


def tensors(number: int) -> Iterator[Responses]:
    """Yield random data sets, of a dozen kinds in turn."""
    for seed in range(number):
        rng, kind = np.random.default_rng(seed), seed % 12
        shape = tuple(rng.integers((2, 2, 1), (8, 10, 6)))
        if kind == 3:
            shape = (shape[0], 1, shape[2] + 1)
        if kind == 4:
            shape = (shape[1] + 3, 3, shape[2])
        if kind == 5:
            shape = (3, 12, 3)
        lean = rng.normal(size=(shape[0], 1, 1)) - rng.normal(size=(1, shape[1], 1))
        outcomes = (rng.random(shape) < 1.0 / (1.0 + np.exp(-lean))).astype(np.int8)
        if kind in (1, 9):  # ragged
            outcomes[np.arange(shape[2]) >= rng.integers(1, shape[2] + 1, (*shape[:2], 1))] = -1
        if kind in (2, 9):  # whole cells
            outcomes[rng.random(shape[:2]) < 0.2] = -1
            outcomes[np.arange(shape[0]), np.arange(shape[0]) % shape[1]] = 1
        if kind == 6:  # separated
            outcomes[0], outcomes[-1], outcomes[:, 0] = 1, 0, 1
        if kind == 7:
            outcomes[:, 0], outcomes[:, -1] = 0, 1
        if kind == 8:  # equal totals
            outcomes = np.stack([rng.permuted(outcomes[0].ravel()) for _ in outcomes])
            outcomes = outcomes.reshape(shape)
        if kind == 10:  # scores of three levels
            outcomes += (rng.random(shape) < 0.3).astype(np.int8)
            yield Responses(outcomes, weights=[0.0, 0.3, 1.0])
        elif kind == 11:
            yield Responses(outcomes, paired=False)
        else:
            yield Responses(outcomes)


def estimate(form: str, data: Responses) -> Found:
    """Return scores, parameters, ties and draws for both targets, or the errors that are raised."""
    name, options = FORMS[form]
    found: Found = {}
    try:
        tree = rank(data, name, draws=0, **options)
    except Exception as error:  # it is what is compared
        return {"error": f"{type(error).__name__}: {error}"}
    score = tree["ranking"].to_dataset()["score"].values
    found |= {"score": score, "ties": score[:, np.newaxis] == score}
    found["converged"] = tree["sample_stats"].to_dataset()["converged"].values
    parameters = tree["point_estimate"].data_vars if "point_estimate" in tree else {}
    for key, value in parameters.items():
        found[f"parameter {key}"] = np.asarray(value.values)
    for target in ("benchmark", "population"):
        try:
            drawn = draw_scores(data, name, target=target, draws=DRAWS, random_seed=1, **options)
            found[f"draws {target}"] = drawn
        except Exception as error:  # as above
            found[f"error {target}"] = f"{type(error).__name__}: {error}"
    return found


def compare(before: Mapping[Any, Found], after: Mapping[Any, Found], worst: int) -> None:
    """Print, for every form, the largest differences and the number of other ties and errors."""
    rows: dict[str, list[float]] = defaultdict(lambda: [0.0] * 6)
    cases: dict[str, list[tuple[float, Any]]] = defaultdict(list)
    for (number, form), new in after.items():
        old, row = before[number, form], rows[form]
        row[5] += 1
        for name in sorted(set(old) | set(new)):
            if name == "converged":
                continue
            one, other = old.get(name), new.get(name)
            if name.startswith("error"):
                gap = np.inf if one != other else 0.0
                row[4] += one != other
            elif one is None or other is None:
                continue  # an error tells of it
            elif name == "ties":
                gap = float((one != other).any())
                row[3] += gap
            else:
                column = 0 if name == "score" else 1 if name.startswith("parameter") else 2
                gap = _difference(one, other)
                row[column] = max(row[column], gap)
            told = (name, one, other) if name.startswith("error") and gap else (name,)
            states = old.get("converged"), new.get("converged")
            cases[form].append((gap, (number, *told, *states)))
    print("".join(f"{text:<{width}}" for text, width in zip(("", *COLUMNS), WIDTHS, strict=True)))
    for form, row in rows.items():
        texts = [form, *(f"{gap:.1e}" for gap in row[:3]), *(f"{int(count)}" for count in row[3:])]
        print("".join(f"{text:<{width}}" for text, width in zip(texts, WIDTHS, strict=True)))
        for gap, case in sorted(cases[form], key=lambda pair: -pair[0])[:worst]:
            print(f"    {gap:.1e} {case}")


def _difference(old: NDArray[np.float64], new: NDArray[np.float64]) -> float:
    """Return the largest difference, over the size where that is above 1; 0 where both are lost."""
    with np.errstate(invalid="ignore"):
        gaps = np.abs(old - new) / np.maximum(np.abs(old), 1.0)
    gaps = np.where((old == new) | (np.isnan(old) & np.isnan(new)), 0.0, gaps)
    return float(np.nan_to_num(gaps, nan=np.inf).max(initial=0.0))


if __name__ == "__main__":
    main()
