"""Check whether the data identify the scores, or only the prior does, or neither."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from bayesrank.checking.design import Design, count_parts
from bayesrank.checking.prior_share import LOG_ODDS, check_prior_share
from bayesrank.checking.verdicts import Finding
from bayesrank.method import LIKELIHOOD_BACKENDS
from bayesrank.priors import Flat
from bayesrank.responses import Responses
from bayesrank.views import Ballots, Comparisons

# Standard deviation of log-odds above which a score is vague: its interval is 40 logits wide.
_VAGUE = 10.0


def check_identification(
    result: xr.DataTree, design: Design, data: Responses | Comparisons | Ballots | None
) -> Iterator[Finding]:
    """Yield the findings on the identification of the scores."""
    yield from _check_convergence(result)
    yield from _check_connection(design)
    yield from _check_vagueness(result)
    yield from _check_questions(result)
    yield from check_prior_share(result, data)


def _check_convergence(result: xr.DataTree) -> Iterator[Finding]:
    if "sample_stats" not in result or "converged" not in result["sample_stats"]:
        return
    if not bool(result["sample_stats"]["converged"].all()):
        yield Finding(
            "identification",
            "bad",
            "The fit did not converge: the estimate may not exist or not be unique. Give the "
            "scores a proper prior: backend='map'.",
            name="convergence",
        )


def _check_connection(design: Design) -> Iterator[Finding]:
    n_parts = count_parts(design.met)
    if len(design.systems) > 1 and n_parts == 1:
        yield Finding(
            "identification",
            "good",
            f"The {design.unit}s connect all systems.",
            {"parts": 1},
            "connection",
        )
    together = {
        "outcome": "on the same questions",
        "battle": "in battles",
        "ballot": "on the same ballots",
    }
    if n_parts > 1:
        yield Finding(
            "identification",
            "bad",
            f"The systems fall into {n_parts} sets that were never compared with one another: the "
            "data do not identify the order between sets. Compare systems of different sets "
            f"{together[design.unit]}.",
            {"parts": n_parts},
            "connection",
        )


def _check_vagueness(result: xr.DataTree) -> Iterator[Finding]:
    attrs = result.attrs
    if attrs["backend"] not in LIKELIHOOD_BACKENDS or attrs["family"] not in LOG_ODDS:
        return
    if attrs["prior"] not in ("none", str(Flat())):
        return
    spread = result["posterior"].to_dataset()["score"].std(("chain", "draw"))
    worst = int(spread.values.argmax())
    name, width = str(spread["system"].values[worst]), float(spread.values[worst])
    if width > _VAGUE:
        yield Finding(
            "identification",
            "doubtful",
            f"The score of {name} is very uncertain (standard deviation {width:.2g} logits): "
            "gather more data, or give the scores a proper prior: backend='map'.",
            {"system": name, "sd": width, "limit": _VAGUE},
            "vague",
        )


def _check_questions(result: xr.DataTree) -> Iterator[Finding]:
    if "point_estimate" not in result or "difficulty" not in result["point_estimate"]:
        return
    difficulty = result["point_estimate"].to_dataset()["difficulty"].values
    n_left_out = int((~np.isfinite(difficulty)).sum())
    if 2 * n_left_out > difficulty.size:
        yield Finding(
            "identification",
            "doubtful",
            f"All systems answered {n_left_out} of {difficulty.size} questions alike, which gives "
            "no information on their order: the ranking depends on the other questions.",
            {"questions": n_left_out, "of": difficulty.size},
            "questions alike",
        )
