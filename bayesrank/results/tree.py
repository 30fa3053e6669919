"""The result tree: an xarray.DataTree that follows ArviZ's InferenceData schema.

========================== ========================================================================
group                      content
========================== ========================================================================
posterior                  ``score`` (chain, draw, system), higher is better, and the method's own
                           parameters
ranking                    point estimate, ranks, intervals, bounds, probabilities, observed means
                           and numbers of outcomes
point_estimate             the method's own parameters at the point estimate
sample_stats               statistics of the sampler or of the optimiser
observed_data              sufficient statistics
constant_data              all other data that a refit needs
log_likelihood, log_prior  by observation and by parameter, where there is a likelihood
========================== ========================================================================

All groups have the systems and the questions with an outcome; the attributes ``unranked`` and
``unasked``, if there are any, are JSON lists of the others. A parameter without a finite estimate,
such as the difficulty of a question that all systems answered alike, is NaN or infinite, and its
variable has the attribute ``dropped`` with the reason.
"""

import datetime
import json
from functools import cache
from importlib.metadata import version
from itertools import compress
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.design import asked_questions, with_outcomes
from bayesrank.inference.fits.symmetry import exchangeable_systems
from bayesrank.inference.resample.units import asked_clusters, clusters_of, freedom_of
from bayesrank.inference.run import Data, Estimate, Run, label_index, label_parameters
from bayesrank.method import LIKELIHOOD_BACKENDS
from bayesrank.responses import Responses, prior_counts
from bayesrank.results.ranks import tie_groups
from bayesrank.results.rating_scale import arena_rank
from bayesrank.results.storage import SCHEMA_VERSION
from bayesrank.results.summary import (
    summarize_draws,
    summarize_evidence,
    summarize_point,
    summarize_resolution,
)
from bayesrank.views import Ballots, Comparisons

# Variables in the units of the score.
_SCORES = ("score", "score_lower", "score_upper", "lcb")

Variables = dict[str, tuple[tuple[str, ...], Any]]

# The attribute "dropped" of variables with values that are not finite.
_DROPPED = (
    "NaN or infinite where the data give a parameter no finite estimate: that of a question "
    "answered alike by all, or of a number of winners that never occurred"
)

_VERSIONED = ("bayesrank", "numpy", "scipy", "xarray", "pymc", "pytensor", "arviz", "nutpie")


def build_tree(
    run: Run, estimate: Estimate, *, preset: str, ci_prob: float, lcb: float
) -> xr.DataTree:
    """Arrange an estimate as a result tree.

    Parameters
    ----------
    run : Run
        The run.
    estimate : Estimate
        Its estimate.
    preset : str
        The published configuration, or ``none``.
    ci_prob : float
        Probability of the intervals.
    lcb : float
        Quantile of the lower credible bound.

    Returns
    -------
    xarray.DataTree
    """
    systems, draws = run.data.systems, estimate.draws
    ranking = summarize_scores(
        estimate.score, draws, run.data, ci_prob=ci_prob, lcb=lcb, freedom=_freedom(run, estimate)
    )
    evidence = summarize_evidence(run.data, ci_prob=ci_prob)
    if draws is None:
        draws = estimate.score[np.newaxis, np.newaxis]
    # Ranks do not depend on units, so scores are converted last.
    in_units = {
        name: ("system", run.in_units(ranking[name].values)) for name in _SCORES if name in ranking
    }
    ranking = ranking.assign({**in_units, **evidence.data_vars}).assign_attrs(evidence.attrs)
    posterior = xr.Dataset(
        {"score": (("chain", "draw", "system"), run.in_units(draws))},
        coords={
            "chain": np.arange(draws.shape[0]),
            "draw": np.arange(draws.shape[1]),
            "system": label_index("system", systems),
        },
    )
    groups: dict[str, xr.Dataset] = {"posterior": posterior, "ranking": ranking}
    if estimate.parameters:
        groups["posterior"] = posterior.merge(estimate.parameters, compat="no_conflicts")
    point = estimate.point
    if point:
        labelled = isinstance(point, xr.Dataset)
        groups["point_estimate"] = (
            point if labelled else label_parameters(point, run.data, named=run.labels)
        )
    groups |= data_groups(run.data, run.method.data)
    for name, group in estimate.groups.items():
        further = group() if callable(group) else group
        groups[name] = further if isinstance(further, xr.Dataset) else xr.Dataset(further)
    for name in {"posterior", "point_estimate"}.intersection(groups):
        groups[name] = _mark_dropped(groups[name])
    tree = xr.DataTree.from_dict(groups)
    tree.attrs.update(_attributes(run, estimate, preset))
    return tree


def summarize_scores(
    score: NDArray[np.float64],
    draws: NDArray[np.float64] | None,
    data: Data,
    *,
    ci_prob: float,
    lcb: float,
    freedom: float = np.inf,
) -> xr.Dataset:
    """Rank systems by their scores, with the uncertainty of the ranks from draws.

    Parameters
    ----------
    score : numpy.ndarray of shape (system,)
        Estimates.
    draws : numpy.ndarray of shape (chain, draw, system), or None
        Draws of the scores.
    data : Responses, Comparisons or Ballots
        What was ranked.
    ci_prob, lcb
        As in :func:`build_tree`.
    freedom : float, default inf
        Degrees of freedom of the variances of the draws.

    Returns
    -------
    xarray.Dataset
        The group ``ranking`` of a result, without the summary of the data.
    """
    systems = data.systems
    ranking = summarize_point(score, systems)
    if draws is None:
        return ranking
    flat = draws.reshape(-1, len(systems))
    alike = _alike(score, data)
    summary = summarize_draws(flat, systems, ci_prob=ci_prob, lcb=lcb, score=score, alike=alike)
    resolution = summarize_resolution(
        score, flat, systems, ci_prob=ci_prob, freedom=freedom, alike=alike
    )
    ranking = xr.merge([ranking, summary, resolution], combine_attrs="no_conflicts")
    if isinstance(data, Comparisons):
        ends = ranking["score_lower"].values, ranking["score_upper"].values
        ranking["arena_rank"] = ("system", arena_rank(*ends))
    return ranking


def _alike(score: NDArray[np.float64], data: Data) -> NDArray[np.intp] | None:
    """Return the class of each system, of those with the same score and data; None if all differ.

    Draws of the members of a class differ by simulation error. Judges and prompts of battles, and
    earlier outcomes, tell systems with equal counts apart.
    """
    tied = tie_groups(score)
    if tied.max() == len(score) or (
        isinstance(data, Battles) and {"judge", "prompt"} & {*data.units}
    ):
        return None
    kinds = tied[:, np.newaxis]
    if isinstance(data, Responses) and data.prior_sets is not None:
        earlier = data.prior_sets.reshape(len(data.prior_sets), -1)
        kinds = np.hstack([kinds, np.broadcast_to(earlier, (len(score), earlier.shape[1]))])
    classes = exchangeable_systems(data, kinds)
    return classes if classes.max() + 1 < len(score) else None


def _freedom(run: Run, estimate: Estimate) -> float:
    """Return the degrees of freedom of variances over units, of the kind with the fewest.

    They are infinite for a posterior, and count as such for trials, which vary within many cells.
    """
    data = run.data
    if estimate.calibration == "none" and run.backend in LIKELIHOOD_BACKENDS:
        return np.inf
    found: list[float] = []
    if isinstance(data, Battles):
        found = [freedom_of(data.unit_sizes(kind)) for kind in run.unit.split(",")]
    elif isinstance(data, Responses):
        if run.target == "population":
            clusters = asked_clusters(data)
            found.append(freedom_of(np.bincount(clusters[clusters >= 0])))
        if run.unit == "run":
            found.append(float(data.observed.any(axis=1).sum(axis=1).min()) - 1.0)
    return max(min(found), 1.0) if found else np.inf


def _mark_dropped(parameters: xr.Dataset) -> xr.Dataset:
    """Mark the variables in which some parameters have no finite estimate, with the reason."""
    dropped = {
        name: values.assign_attrs(dropped=_DROPPED)
        for name, values in parameters.data_vars.items()
        if values.dtype.kind == "f" and not np.isfinite(values.values).all()
    }
    return parameters.assign(dropped) if dropped else parameters


def mark_left_out(tree: xr.DataTree, data: Data) -> xr.DataTree:
    """Turn a result of what has outcomes into a result of all systems and questions.

    Parameters
    ----------
    tree : xarray.DataTree
        What :func:`build_tree` returned.
    data : Responses, Comparisons or Ballots
        The data, with all systems and questions.

    Returns
    -------
    xarray.DataTree
        Its attributes ``unranked`` and ``unasked`` hold the other systems and the other questions,
        if there are any, as JSON.
    """
    left = {"unranked": list(compress(data.systems, ~with_outcomes(data)))}
    if isinstance(data, Responses):
        left["unasked"] = list(compress(data.questions, ~asked_questions(data)))
    marked = tree.copy()
    marked.attrs.update({name: json.dumps(labels) for name, labels in left.items() if labels})
    marked.attrs.update(fingerprint=data.fingerprint)
    return marked


def data_groups(data: Data, kind: str) -> dict[str, xr.Dataset]:
    """Return the sufficient statistics and labels as observed and constant data.

    Parameters
    ----------
    data : Responses, Comparisons or Ballots
        What was ranked.
    kind : str
        Kind of data of the method. Counts do not show which systems were right in the same trial,
        so for a method on pairs wins and ties are added.

    Returns
    -------
    dict of str to xarray.Dataset
    """
    if isinstance(data, Comparisons):
        observed, constant = _wins_and_ties(data), _ordered_wins(data)
    elif isinstance(data, Ballots):
        observed, constant = {"grades": (("system", "ballot"), data.grades)}, {}
    else:
        observed, constant = _counts(data), _trials(data)
        if kind in ("pairs", "comparisons"):
            observed |= _wins_and_ties(data.comparisons)
    named = {"observed_data": observed, "constant_data": constant}
    return {name: _dataset(variables, data) for name, variables in named.items() if variables}


def _dataset(variables: Variables, data: Data) -> xr.Dataset:
    """Label all variables in one call, since each intermediate dataset would cost as much again."""
    labels = {"system": data.systems, "opponent": data.systems}
    if isinstance(data, Responses):
        labels["question"] = data.questions
    sizes = {dim: n for dims, v in variables.values() for dim, n in zip(dims, v.shape, strict=True)}
    coords = {dim: label_index(dim, names) for dim, names in labels.items() if dim in sizes}
    numbered = {dim: np.arange(sizes[dim]) for dim in ("category", "ballot") if dim in sizes}
    coords |= numbered
    return xr.Dataset(variables, coords)


def _wins_and_ties(data: Comparisons) -> Variables:
    dims = ("system", "opponent")
    return {"wins": (dims, data.wins), "ties": (dims, data.ties)}


def _ordered_wins(data: Comparisons) -> Variables:
    dims = ("system", "opponent")
    if data.first_wins is None or data.second_wins is None:
        return {}
    ordered: Variables = {
        "first_wins": (dims, data.first_wins),
        "second_wins": (dims, data.second_wins),
    }
    if data.first_ties is not None:
        ordered["first_ties"] = (dims, data.first_ties)
    return ordered


def _counts(data: Responses) -> Variables:
    if data.scores is not None:
        return {"grades": (("system", "question"), data.in_units(data.grades))}
    return {"counts": (("system", "question", "category"), data.counts)}


def _trials(data: Responses) -> Variables:
    variables: Variables = {"trials": (("system", "question"), data.trials)}
    if data.groups is not None:
        variables["question_group"] = (("question",), np.array(data.groups))
    if data.scores is not None:
        return variables
    if data.weights is not None:
        variables["category_weights"] = (("category",), data.weights)
    earlier = prior_counts(data)
    if earlier is not None:
        shared = np.broadcast_to(earlier, data.counts.shape)
        variables["prior_counts"] = (("system", "question", "category"), shared)
    return variables


def _attributes(run: Run, estimate: Estimate, preset: str) -> dict[str, str | int | float]:
    entropy = run.seed.entropy
    return {
        "method": run.method.name,
        "preset": preset,
        "family": run.method.family,
        "backend": run.backend,
        "options": json.dumps(
            {**run.options, **run.backend_options}, default=_as_json, sort_keys=True
        ),
        "prior": "none" if run.prior is None else str(run.prior),
        "target": run.target,
        "unit": _unit(run),
        "scale": _scale(run.data),
        "shrunk": "yes" if run.method.shrunk else "no",
        "calibration": estimate.calibration,
        "random_seed": str(entropy),
        "versions": _versions(),
        "fingerprint": run.data.fingerprint,
        "schema_version": SCHEMA_VERSION,
        "created_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _unit(run: Run) -> str:
    """Return the independent unit of the intervals."""
    if not isinstance(run.data, Responses) or run.target == "benchmark":
        return run.unit
    clusters = clusters_of(run.data)
    kind = "question" if len(set(clusters)) == len(clusters) else "group of questions"
    return f"run,{kind}" if run.unit == "run" else kind


def _scale(data: Data) -> str:
    """Return the ends of a scale as JSON."""
    scale = data.scale if isinstance(data, Responses) else None
    return "none" if scale is None else json.dumps(scale)


@cache
def _versions() -> str:
    """Return versions as JSON; reading the metadata of eight packages takes milliseconds."""
    return json.dumps({name: version(name) for name in _VERSIONED})


def _as_json(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)
