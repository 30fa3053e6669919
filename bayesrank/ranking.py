"""rank(): data, a method and options to a result tree. The only orchestrator."""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

import numpy as np

from bayesrank.battles import Battles
from bayesrank.catalog import METHODS, default_method, find_method
from bayesrank.design import (
    UnitLike,
    announce_change,
    choose_target,
    choose_unit,
    part_with_outcomes,
    with_outcomes,
)
from bayesrank.entrance import as_data
from bayesrank.errors import DataError
from bayesrank.inference.backends.bootstrap import bootstrap
from bayesrank.inference.backends.exact import exact
from bayesrank.inference.backends.mml import mml
from bayesrank.inference.backends.nuts import nuts
from bayesrank.inference.backends.optimum import optimize
from bayesrank.inference.run import Data, Estimate, Run
from bayesrank.method import LIKELIHOOD_BACKENDS, Method, Preset, load_function
from bayesrank.priors import (
    Dirichlet,
    DirichletLike,
    Flat,
    Prior,
    PriorLike,
    as_dirichlet,
    as_prior,
)
from bayesrank.responses import Responses
from bayesrank.results.tree import build_tree, mark_left_out
from bayesrank.validation import check_between_0_and_1, check_options, checked_seed, seed_sequence
from bayesrank.views import Ballots, Comparisons

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import ArrayLike, NDArray

    from bayesrank.validation import BackendOptions

Target = Literal["benchmark", "population", "battles"]

BACKENDS: Mapping[str, Callable[..., Estimate]] = {
    "bootstrap": bootstrap,
    "exact": exact,
    "mle": optimize,
    "map": optimize,
    "mml": mml,
    "nuts": nuts,
}


# What the methods read that rank battles.
_PAIRED = ("pairs", "comparisons")

# For point estimates: few are random, and a new sequence takes as long as some estimates.
_ANY_SEED = np.random.SeedSequence(0)


def rank(
    data: "Data | xr.DataArray | ArrayLike",
    method: str | Method | None = None,
    *,
    backend: str | None = None,
    prior: DirichletLike | None = None,
    target: Target | None = None,
    unit: UnitLike | None = None,
    draws: int | None = None,
    random_seed: int | None = None,
    ci_prob: float = 0.95,
    lcb: float = 0.05,
    **options: "Unpack[BackendOptions]",
) -> "xr.DataTree":
    """Rank systems, with posterior draws of scores and ranks.

    Parameters
    ----------
    data : Responses, Battles, Comparisons, Ballots, xarray.DataArray or array_like
        Outcomes of shape (system, question, trial), or what :class:`Responses` can be built from;
        or votes between two systems, or counts of their wins and ties; or rankings of some of the
        systems each. A pandas.DataFrame is a table of outcomes, or of battles.
    method : str or Method, optional
        A published configuration of `PRESETS`, or else a method of `METHODS`; or a
        :class:`~bayesrank.method.Method` of your own. By default ``standardized_accuracy``, the
        accuracy (mean grade) of each system on all questions: on complete data the observed mean;
        for battles ``davidson`` where there are ties, else ``bradley_terry_map``.
    backend : str, optional
        One of the back ends of the method; by default that of the preset, or the first one.
    prior : prior, float, str or sequence of float, optional
        Prior on the scores of a likelihood-based method; a float is the standard deviation of a
        normal. By default that of the preset or of the method. Not for ``backend="mle"``. For
        ``bayes``, counts of the Dirichlet prior of the categories: one number, or one for each.
    target : {"benchmark", "population", "battles"}, optional
        What varies: the trials on these questions, or the questions too. By default "benchmark"
        where most observed cells have two trials or more, else "population"; always "battles" for
        comparisons and ballots. Likelihoods that cannot be calibrated describe only the benchmark.
    unit : str or sequence of str, optional
        The independent units. By default each trial. With "run" all answers of trial t of a system
        may fail together: intervals are wider where totals of runs vary more than those of
        independent trials. With "run,question" questions vary too, as with ``target="population"``.
        Both are for ``standardized_accuracy`` and likelihoods that can be calibrated; "run" is for
        resampled scores too, but not for Elo and other ratings, which follow the order of play. For
        battles "battle", "prompt", "judge" (user) or "prompt,judge": by default the judges and the
        prompts for likelihoods that can be calibrated, for others the kind with the fewest units;
        of each at least five.
    draws : int, optional
        Draws per chain, of four chains: 1000 by default for nuts (4000 in all), else 500 (2000 in
        all). 0 gives only the point estimate, without intervals and probabilities.
    random_seed : int, optional
        Same seed, same result. By default a seed that the data determine, so that all functions
        and commands draw alike from the same data.
    ci_prob : float, default 0.95
        Probability of the equal-tailed credible intervals.
    lcb : float, default 0.05
        Quantile of the lower credible bound, by which ``lcb_rank`` ranks. Like an interval, a bound
        is extended to an estimate that is outside it.
    **options
        Options of the method (see ``METHODS[method].options``) and of the back end, such as
        ``chains`` and ``tune`` of nuts (see :mod:`bayesrank.inference.backends`).

    Returns
    -------
    xarray.DataTree
        Follows ArviZ's InferenceData schema; see :mod:`bayesrank.results.tree` for its groups.
        A system without any outcome is unranked: it is in the attribute ``unranked`` and in the
        last rows of the leaderboard, and does not affect the others. Nor does a question without
        any outcome, which is in the attribute ``unasked`` and has no parameters.

    Raises
    ------
    ValueError
        If a name, an option or a number is invalid; the message lists the valid ones.
    DataError
        If the data do not have what the method needs.
    NoFiniteEstimate
        If a maximum-likelihood estimate does not exist.

    Warns
    -----
    TargetWarning
        If the default target has changed since the same data had fewer trials.

    Examples
    --------
    >>> result = rank([[[1, 1, 0], [1, 1, 1]], [[0, 1, 0], [0, 0, 1]]], random_seed=1)
    >>> result["ranking"]["score"].values.round(3)
    array([0.833, 0.333])
    """
    data = as_data(data)
    ranked = part_with_outcomes(data)
    tree = rank_all(
        ranked,
        method,
        backend=backend,
        prior=prior,
        target=target,
        unit=unit,
        draws=draws,
        random_seed=random_seed,
        ci_prob=ci_prob,
        lcb=lcb,
        **options,
    )
    return tree if ranked is data else mark_left_out(tree, data)


def rank_all(
    data: Data,
    method: str | Method | None = None,
    *,
    backend: str | None = None,
    prior: DirichletLike | None = None,
    target: Target | None = None,
    unit: UnitLike | None = None,
    draws: int | None = None,
    random_seed: int | None = None,
    ci_prob: float = 0.95,
    lcb: float = 0.05,
    **options: "Unpack[BackendOptions]",
) -> "xr.DataTree":
    """Rank systems; those without an outcome are ranked only if a prior determines their scores.

    For plans of what to observe next. Parameters and errors are those of :func:`rank`; DataError
    too if nothing places a system.
    """
    for name, value in {"ci_prob": ci_prob, "lcb": lcb}.items():
        check_between_0_and_1(value, name)
    seed = seed_sequence(random_seed, data.fingerprint)
    run, preset = _plan(data, method, backend, prior, target, unit, draws, seed, options)
    if target is None and unit is None and run.draws and isinstance(run.data, Responses):
        announce_change(run.data, run.target)
    estimate = BACKENDS[run.backend](run, **run.backend_options)
    return build_tree(
        run, estimate, preset=preset.name if preset else "none", ci_prob=ci_prob, lcb=lcb
    )


def point_estimate(
    data: "Data | xr.DataArray | ArrayLike",
    method: str | Method | None = None,
    *,
    backend: str | None = None,
    prior: DirichletLike | None = None,
    random_seed: int | None = None,
    **options: "Unpack[BackendOptions]",
) -> "NDArray[np.float64]":
    """Score systems, without the result tree.

    It is faster, for loops over many data sets. The scores are those of :func:`rank` with
    ``draws=0``.

    Parameters
    ----------
    data, method, backend, prior, **options
        As in :func:`rank`; not for ``backend="nuts"``, which has no estimate without draws.
    random_seed : int, optional
        For methods that score by drawing; the same draws in every call by default.

    Returns
    -------
    numpy.ndarray of shape (system,)
        Higher is better, in the order of the data; NaN for a system without any outcome.

    Raises
    ------
    ValueError, DataError, NoFiniteEstimate
        As in :func:`rank`.

    Examples
    --------
    >>> point_estimate([[[1, 1, 0], [1, 1, 1]], [[0, 1, 0], [0, 0, 1]]], "avg").round(3)
    array([0.833, 0.333])
    """
    return estimate_point(
        data, method, backend=backend, prior=prior, random_seed=random_seed, **options
    )[0]


def estimate_point(
    data: "Data | xr.DataArray | ArrayLike",
    method: str | Method | None = None,
    *,
    backend: str | None = None,
    prior: PriorLike | DirichletLike | None = None,
    random_seed: int | None = None,
    **options: "Unpack[BackendOptions]",
) -> "tuple[NDArray[np.float64], Mapping[str, NDArray[np.float64]]]":
    """Return the scores of :func:`point_estimate` and the method's own parameters by name.

    Such as ``difficulty`` of shape (question,).
    """
    data = as_data(data)
    # Without draws the unit is irrelevant, and finding it takes as long as a small fit.
    target = "benchmark" if isinstance(data, Responses) else None
    seeded = random_seed is not None
    seed = np.random.SeedSequence(checked_seed(random_seed)) if seeded else _ANY_SEED
    ranked = part_with_outcomes(data)
    run, _ = _plan(ranked, method, backend, prior, target, None, 0, seed, options)
    estimate = BACKENDS[run.backend](run, **run.backend_options)
    parameters = {str(name): np.asarray(values) for name, values in estimate.point.items()}
    score = run.in_units(estimate.score)
    return (score if ranked is data else _among_all(score, data)), parameters


def draw_scores(
    data: Data,
    method: str | Method | None = None,
    *,
    backend: str | None = None,
    target: Target | None = None,
    unit: UnitLike | None = None,
    draws: int | None = None,
    random_seed: int | None = None,
    **options: "Unpack[BackendOptions]",
) -> "NDArray[np.float64]":
    """Draw scores, without the result tree, of shape (chain, draw, system).

    For simulations over many data sets. The draws, at least one, are those of :func:`rank` with the
    same seed; NaN for a system without any outcome.
    """
    if draws == 0:
        raise ValueError("draws must be an integer of at least 1; got 0: use point_estimate")
    data = as_data(data)
    ranked = part_with_outcomes(data)
    seed = seed_sequence(random_seed, ranked.fingerprint)
    run, _ = _plan(ranked, method, backend, None, target, unit, draws, seed, options)
    backend_options = dict(run.backend_options)
    if run.backend == "nuts":
        backend_options.setdefault("log_likelihood", False)
    # They are None only without draws.
    scores = cast("NDArray[np.float64]", BACKENDS[run.backend](run, **backend_options).draws)
    return run.in_units(scores) if ranked is data else _among_all(run.in_units(scores), data)


def _among_all(scores: "NDArray[np.float64]", data: Data) -> "NDArray[np.float64]":
    """Return scores (..., system) of the systems with outcomes, NaN for the others."""
    seen = with_outcomes(data)
    among = np.full((*scores.shape[:-1], len(seen)), np.nan)
    among[..., seen] = scores
    return among


def _plan(
    data: Any,
    method: str | Method | None,
    backend: str | None,
    prior: DirichletLike | None,
    target: str | None,
    unit: UnitLike | None,
    draws: int | None,
    seed: np.random.SeedSequence,
    options: Mapping[str, Any],
) -> tuple[Run, Preset | None]:
    """Check the arguments, fill in the defaults and return the run."""
    ranked = as_data(data)
    method = default_method(ranked) if method is None else method
    row, preset = (method, None) if isinstance(method, Method) else find_method(method)
    if isinstance(ranked, Comparisons):
        row = row.forms[-1]
    _check_data(row, ranked)
    backend = _choose_backend(row, backend or (preset.backend if preset else None))
    backend_options = [name for name in _backend_options(backend) if name not in row.options]
    asked = {name: v for name, v in options.items() if name not in backend_options}
    given = {name: v for name, v in options.items() if name in backend_options}
    chosen = (dict(preset.options) if preset else {}) | asked
    row.check_options(chosen, backend_options)
    check_options(load_function(row.kernel or row.function), asked)
    check_options(BACKENDS[backend], given)
    for name in row.priors.intersection(chosen):
        if chosen[name] != row.options[name].default:  # which may be a word of its own
            as_prior(chosen[name], name)
    if backend == "mle":
        chosen |= _flat_priors(row, chosen)
    _refuse_without_effect(row, options, chosen)
    if draws is None:
        draws = 1000 if backend == "nuts" else 500
    least = int(backend == "nuts")
    if draws == 0 < least:
        raise ValueError(
            "backend must not be 'nuts' for a point estimate, which NUTS computes from draws; got "
            f"{method if isinstance(method, str) else row.name}: use rank(..., draws=1000)"
            + (", or backend='map'" if "map" in row.backends else "")
        )
    if not isinstance(draws, Integral) or isinstance(draws, bool) or draws < least:
        raise ValueError(f"draws must be an integer of at least {least}; got {draws!r}")
    if prior is None and preset is not None and backend != "mle":
        prior = preset.prior
    unit, target = choose_unit(ranked, row, backend, target, unit)
    run = Run(
        method=row,
        data=ranked,
        backend=backend,
        target=choose_target(ranked, row, backend, target),
        unit=unit,
        prior=_choose_prior(row, backend, prior),
        draws=int(draws),
        seed=seed,
        options=chosen,
        backend_options=given,
    )
    return run, preset


def _check_data(row: Method, data: Data) -> None:
    """Raise if a method cannot rank the type of data, or needs comparisons and there are none."""
    if not _reads(row, data):
        kind = type(data).__name__.lower()
        known = ", ".join(name for name, each in METHODS.items() if _reads(each, data))
        taken = {"log": "responses or battles in order"}.get(row.data, "responses")
        taken = "responses or comparisons" if row.data in _PAIRED else taken
        raise DataError(
            f"data must be {taken} for {row.name}; got {kind}, which only {known} can rank"
        )
    if row.data == "comparisons" and len(data.systems) < 2:
        raise DataError(f"data must hold two systems or more for {row.name}; got one")


def _reads(row: Method, data: Data) -> bool:
    if isinstance(data, Ballots):  # as they are, or as the choices that they are made up of
        return bool({"Ballots", "Events"} & row.accepts)
    if isinstance(data, Battles):
        return row.forms[-1].data in (*_PAIRED, "log")
    return isinstance(data, Responses) or row.forms[-1].data in _PAIRED


def _choose_backend(row: Method, backend: str | None) -> str:
    if backend is None:
        return row.backends[0]
    if backend not in row.backends:
        reason = f": {row.absent[backend]}" if backend in row.absent else ""
        raise ValueError(
            f"backend of {row.name} must be one of {', '.join(row.backends)}; got {backend!r}"
            f"{reason}"
        )
    return backend


def _flat_priors(row: Method, options: Mapping[str, Any]) -> dict[str, str]:
    """Return flat priors on the other parameters, since mle maximises only the likelihood."""
    flat = {name: "flat" for name in row.options if name.endswith("_prior")}
    for name in flat:
        given = options.get(name, "flat")
        if given not in ("flat", Flat()):
            raise ValueError(
                f"{name} must be 'flat' for backend='mle', which has no priors; got {given!r}: "
                "use backend='map'"
            )
    return flat


def _refuse_without_effect(
    row: Method, given: Mapping[str, Any], chosen: Mapping[str, Any]
) -> None:
    """Refuse a prior of a known parameter, and a penalty of one that has a prior.

    The options of a parameter x are x (its known value), x_prior, x_upper and reg_x.
    """
    for name in row.options.keys() & given:
        parameter = name.removeprefix("reg_").removesuffix("_prior").removesuffix("_upper")
        if parameter == name or given[name] in (row.options[name].default, "flat", Flat()):
            continue
        values = {name: each.default for name, each in row.options.items()} | dict(chosen)
        if values.get(parameter) is not None:
            raise ValueError(
                f"{name} must be left out where {parameter} is known; got {given[name]!r}"
            )
        prior = f"{parameter}_prior"
        if name.startswith("reg_") and values.get(prior, "flat") not in ("flat", Flat()):
            raise ValueError(f"{name} must be left out unless {prior}='flat'; got {given[name]!r}")


@cache
def _backend_options(backend: str) -> tuple[str, ...]:
    """Return the keyword-only parameters of a back end."""
    parameters = inspect.signature(BACKENDS[backend]).parameters.values()
    return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


def _choose_prior(row: Method, backend: str, prior: DirichletLike | None) -> Prior | None:
    if isinstance(row.default_prior, Dirichlet):
        return row.default_prior if prior is None else as_dirichlet(prior)
    if backend not in LIKELIHOOD_BACKENDS or row.default_prior is None:
        if prior is not None:
            raise ValueError(
                f"prior must be None for {row.name} with backend {backend!r}; got {prior!r}"
            )
        return None
    if backend in ("mle", "mml"):
        if prior is not None:
            raise ValueError(
                f"prior must be None for backend={backend!r}, which has none; got {prior!r}: use "
                f"backend={'map' if 'map' in row.backends else 'nuts'!r}"
            )
        return None
    return row.default_prior if prior is None else as_prior(cast("PriorLike", prior))
