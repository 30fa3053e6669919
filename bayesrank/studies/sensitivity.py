"""How a ranking depends on the prior."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.checking.prior_share import SENSITIVE, scaling_sensitivity
from bayesrank.design import part_with_outcomes
from bayesrank.entrance import as_data, as_responses
from bayesrank.inference.run import Data
from bayesrank.method import Method
from bayesrank.methods.bayes import bayes
from bayesrank.priors import PriorLike, as_prior
from bayesrank.ranking import point_estimate, rank
from bayesrank.responses import Responses, prior_counts
from bayesrank.results.agreement import kendall_tau_b
from bayesrank.results.ranks import rank_scores, tie_groups
from bayesrank.studies.configurations import find_row

FloatArray = NDArray[np.float64]

_DEFAULT_PRIORS = (
    "normal(0, 0.5)",
    "normal(0, 1)",
    "normal(0, 2)",
    "normal(0, 5)",
    "laplace(0, 1)",
    "cauchy(0, 1)",
)
_EMPIRICAL_PRIORS = ("empirical(2)", "empirical(1)", "empirical(0.5)")
_DEFAULT_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Least shift of a score to report, in standard deviations of its posterior.
_LARGE_SHIFT = 1.0


def prior_sensitivity(
    data: Data,
    method: str,
    priors: Sequence[PriorLike] | Mapping[str, PriorLike] | None = None,
    *,
    backend: Literal["map", "nuts"] | None = None,
    power_scaling: bool = True,
    random_seed: int = 0,
    **options: Any,
) -> xr.Dataset:
    """Rank under several priors and report how much the prior matters.

    Parameters
    ----------
    data : Responses, Comparisons or Ballots
        Outcomes; with greedy outcomes (`prior_outcomes`) for empirical priors.
    method : str
        A method or published configuration with a likelihood; or ``bayes``, whose priors are
        weights of the greedy outcomes.
    priors : sequence or mapping of str, optional
        Priors as in :func:`bayesrank.rank`; for ``bayes``, weights of a greedy outcome in
        trials. A mapping gives them names, as two sets of greedy outcomes need. The others are
        compared with the first. By default several families and scales (and centres on the greedy
        outcomes, if there are any), or weights from 0 to 1.
    backend : {"map", "nuts"}, optional
        Whether scores are posterior modes, or the means of draws by NUTS under every prior, which
        takes longer; the mode by default, unless the default of the configuration is NUTS.
    power_scaling : bool, default True
        Whether to add the power-scaling diagnostics of ArviZ under the first prior. This imports
        PyMC; there are none for ``bayes``.
    random_seed : int, default 0
        Seed of the draws of this diagnostic and of the posterior that scales the shifts.
    **options
        Options of the method.

    Returns
    -------
    xarray.Dataset
        Over prior and system, of those with an outcome: ``score``, ``rank``, and ``shift``, the
        change of the centred score from the first prior, in standard deviations of its posterior.
        Over prior:
        ``tau`` with the ranking of the first, ``flips``, the number of pairs in another order
        (half for a tie that breaks or forms), and ``largest_shift``. Over system, with
        `power_scaling`: ``prior_sensitivity`` and ``likelihood_sensitivity``. The attribute
        ``verdict`` is a sentence or more.

    Raises
    ------
    ValueError
        If the method has no prior, fewer than two priors are given, or the back end is another.

    References
    ----------
    .. [1] N. Kallioinen, T. Paananen, P.-C. Buerkner and A. Vehtari. Detecting and diagnosing prior
       and likelihood sensitivity with power-scaling. Statistics and Computing 34 (2024).
       https://doi.org/10.1007/s11222-023-10366-5

    Examples
    --------
    >>> data = Responses([[[1, 1], [1, 1]], [[1, 0], [1, 0]], [[0, 0], [1, 0]]])
    >>> study = prior_sensitivity(data, "bradley_terry", [1.0, 1.1], power_scaling=False)
    >>> study.attrs["verdict"]
    'The prior does not change the ranking: all 2 priors give the same order.'
    """
    data = part_with_outcomes(as_data(data))
    row, preset_backend, preset_options = find_row(method)
    tree = None
    chosen_backend = _choose_backend(backend, preset_backend)
    if row.name == "bayes":
        if backend is not None:
            raise ValueError(f"backend must be None for bayes, which is exact; got {backend!r}")
        known = _labelled(
            _DEFAULT_WEIGHTS if priors is None else priors,
            lambda weight: f"weight {float(weight):g}",
        )
        data = as_responses(data, "for bayes")
        scores, sd = _weighted_scores(cast("Responses", data), list(known.values()))
    elif "map" in row.backends:
        known = _labelled(
            _default_priors(data, row) if priors is None else priors,
            lambda prior: str(as_prior(prior)),
        )
        scores, tree = _fits(
            data,
            row,
            list(known.values()),
            chosen_backend,
            log_likelihood=power_scaling,
            random_seed=random_seed,
            **{**preset_options, **options},
        )
        sd = tree["posterior"].to_dataset()["score"].std(("chain", "draw")).values
    else:
        raise ValueError(f"method must have a prior on its scores, or be bayes; got {method!r}")
    dataset = _compare(data, list(known), scores, sd)
    if power_scaling and tree is not None:
        sources: tuple[Literal["prior", "likelihood"], ...] = ("prior", "likelihood")
        for source in sources:
            # Scores do not depend on a prior that is the same everywhere.
            values = scaling_sensitivity(tree, source)
            found = np.zeros(dataset.sizes["system"]) if values is None else values
            dataset[f"{source}_sensitivity"] = ("system", found)
    return dataset.assign_attrs(study="prior_sensitivity", method=method, verdict=_verdict(dataset))


def _choose_backend(backend: str | None, of_preset: str) -> str:
    if backend not in (None, "map", "nuts"):
        raise ValueError(f"backend must be 'map' or 'nuts'; got {backend!r}")
    return backend or ("nuts" if of_preset == "nuts" else "map")


def _fits(
    data: Data,
    row: Method,
    priors: Sequence[PriorLike],
    backend: str,
    *,
    log_likelihood: bool,
    random_seed: int,
    **options: Any,
) -> tuple[FloatArray, xr.DataTree]:
    """Return the scores under every prior, and the posterior under the first."""
    sampled = {"random_seed": random_seed, "calibration": "none"}

    def posterior(prior: PriorLike, log_likelihood: bool) -> xr.DataTree:
        chosen = {"backend": backend, "prior": prior, "log_likelihood": log_likelihood}
        return rank(data, row.name, **chosen, **sampled, **options)

    first = posterior(priors[0], log_likelihood)
    if backend == "map":
        modes = [
            point_estimate(data, row.name, backend="map", prior=prior, **options)
            for prior in priors
        ]
        return np.stack(modes), first
    trees = [first, *(posterior(prior, False) for prior in priors[1:])]
    return np.stack([tree["ranking"].to_dataset()["score"].values for tree in trees]), first


def _default_priors(data: Data, row: Method) -> list[str]:
    """Return the default prior of the method and, after it, other families, scales and centres."""
    earlier = data.prior_outcomes if isinstance(data, Responses) else None
    greedy = earlier is not None and earlier.ndim == 3
    own = str(row.default_prior)
    others = _DEFAULT_PRIORS + _EMPIRICAL_PRIORS * greedy
    return [own, *(prior for prior in others if prior != own)]


def _labelled(
    priors: Sequence[Any] | Mapping[str, Any], label: Callable[[Any], str]
) -> Mapping[str, Any]:
    """Return two or more priors by name, by default that which `label` gives."""
    names = list(priors) if isinstance(priors, Mapping) else list(map(label, priors))
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(
            f"priors must be two or more, each once; got {names}: a mapping of names to priors "
            "distinguishes those of one description"
        )
    chosen = priors.values() if isinstance(priors, Mapping) else priors
    return dict(zip(names, chosen, strict=True))


def _weighted_scores(data: Responses, weights: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Score by Bayes@N with greedy outcomes of several weights, and the first posterior's sd."""
    for weight in weights:
        if not 0 <= weight < np.inf:
            raise ValueError(f"priors of bayes must be numbers of at least 0; got {weight!r}")
    earlier = prior_counts(data)
    if earlier is None:
        if any(weights):
            raise ValueError("priors of bayes must be 0 for data without prior_outcomes; got more")
        earlier = np.zeros(1)
    counts = [data.counts + weight * earlier for weight in weights]
    scores = [bayes(count, data.category_weights, None) for count in counts]
    lower = bayes(counts[0], data.category_weights, None, quantile=0.158655253931457)
    return np.stack(scores), scores[0] - lower


def _compare(data: Data, labels: Sequence[str], scores: FloatArray, sd: FloatArray) -> xr.Dataset:
    ranks = np.asarray(rank_scores(scores), dtype=np.float64)
    groups = tie_groups(scores)
    first, second = np.triu_indices(scores.shape[1], 1)
    signs = np.sign(groups[:, first] - groups[:, second])
    centred = scores - scores.mean(axis=1, keepdims=True)
    shift = (centred - centred[0]) / np.where(sd > 0, sd, np.nan)
    return xr.Dataset(
        {
            "score": (("prior", "system"), scores),
            "rank": (("prior", "system"), ranks),
            "shift": (("prior", "system"), shift),
            "tau": ("prior", kendall_tau_b(ranks, ranks[0])),
            "flips": ("prior", np.abs(signs - signs[0]).sum(axis=1) / 2.0),
            "largest_shift": ("prior", np.nanmax(np.abs(shift), axis=1, initial=0.0)),
        },
        coords={"prior": list(labels), "system": list(data.systems)},
    )


def _verdict(dataset: xr.Dataset) -> str:
    """Return the verdict in words."""
    flips, labels = dataset["flips"].values, dataset["prior"].values
    n_pairs = dataset.sizes["system"] * (dataset.sizes["system"] - 1) // 2
    if flips.max() == 0:
        words = [
            f"The prior does not change the ranking: all {len(labels)} priors give the same order."
        ]
    else:
        worst = int(flips.argmax())
        strength = "slightly" if flips.max() <= 0.05 * n_pairs else "substantially"
        words = [
            f"The prior changes the ranking {strength}: relative to {labels[0]}, {labels[worst]} "
            f"reverses {flips[worst]:g} of {n_pairs} pairs "
            f"(tau-b {float(dataset['tau'][worst]):.3f})."
        ]
        moved = (dataset["rank"] != dataset["rank"].isel(prior=0)).any("prior")
        words.append(f"{int(moved.sum())} of {dataset.sizes['system']} systems change their rank.")
    largest = float(dataset["largest_shift"].max())
    if largest >= _LARGE_SHIFT:
        words.append(f"Scores move by up to {largest:.1f} standard deviations of their posterior.")
    if "prior_sensitivity" in dataset:
        by_prior = (dataset["prior_sensitivity"] >= SENSITIVE).values
        by_data = (dataset["likelihood_sensitivity"] >= SENSITIVE).values
        conflict, weak = int((by_prior & by_data).sum()), int((by_prior & ~by_data).sum())
        if conflict:
            words.append(f"Prior and data conflict for {_systems(conflict)}.")
        if weak:
            words.append(f"The data hardly inform the scores of {_systems(weak)}.")
        if not conflict and not weak:
            words.append("Power-scaling finds no score that depends on the prior.")
    return " ".join(words)


def _systems(number: int) -> str:
    return f"{number} system{'s' * (number != 1)}"
