"""Records that rank(), the back ends and the result tree exchange, and names of dimensions."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from bayesrank.battle_states import groups_of, periods_of
from bayesrank.battles import Battles, with_covariates
from bayesrank.errors import DataError
from bayesrank.method import Method, load_function
from bayesrank.priors import Flat, Prior
from bayesrank.responses import Responses
from bayesrank.views import Ballots, Comparisons, Events
from bayesrank.vote_rows import VoteRows, raters_of

if TYPE_CHECKING:
    import pymc as pm

type Data = Responses | Comparisons | Ballots
type Group = xr.Dataset | Mapping[str, Any]

# Every back end gives this many chains, so that results of all methods have one shape.
N_CHAINS = 4

# Dims by name of a parameter, without its number where there are several. Parameters that are not
# in this table are scalars.
_DIMS = {
    "ability": ("system",),
    "above_bar": ("system",),
    "competency": ("system",),
    "contrast": ("system",),
    "coordinate": ("system",),
    "deviation": ("direction",),
    "difficulty": ("question",),
    "effect": ("covariate",),
    "gap": ("grade",),
    "threshold": ("grade",),
    "discrimination": ("question",),
    "guessing": ("question",),
    "guessing_logit": ("question",),
    "increment": ("system", "step"),
    "intercept": ("question",),
    "loading": ("question",),
    "log_reliability": ("rater",),
    "position_bias": ("rater",),
    "log_discrimination": ("question",),
    "rating_deviation": ("system",),
    "reliability": ("rater",),
    "slope": ("system",),
    "strength": ("system",),
    "trajectory": ("system", "trial"),
    "group_score": ("system", "group"),
    "history": ("system", "period"),
    "size_probability": ("size",),
    "tie_prevalence": ("size",),
}


@dataclass(frozen=True)
class Run:
    """One call of rank(), validated."""

    method: Method
    data: Data
    backend: str
    # ``benchmark``, ``population`` or ``battles``.
    target: str
    # On the scores, None for the method's default or where there is none.
    prior: Prior | None
    # Per chain; 0 for only the point estimate.
    draws: int
    # The source of all randomness of the run.
    seed: np.random.SeedSequence
    # Of the method, without those left at their default.
    options: Mapping[str, Any]
    # Independent unit: ``trial``, or ``run`` where the answers of one run of a system may fail
    # together; for battles ``battle``, ``prompt``, ``judge`` or ``judge,prompt``; for ballots
    # ``ballot``.
    unit: str = "trial"
    # Such as ``tune`` and ``nuts_sampler`` of nuts.
    backend_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of draws over all chains."""
        return self.draws * N_CHAINS

    @property
    def responses(self) -> Responses:
        """The data of a run over questions, runs or trials, which are responses."""
        return cast("Responses", self.data)

    @property
    def sampler_options(self) -> Mapping[str, Any]:
        """Options of the method, with its prior where it has one."""
        return self.options if self.prior is None else {**self.options, "prior": self.prior}

    @property
    def formula(self) -> str | None:
        """Covariates of battles for the method, including an order effect."""
        options = self.options
        in_order = options.get("order_effect") or options.get("raters")
        return options.get("formula") or ("1" if in_order else None)

    @cached_property
    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """Labels of the dims that come from battles and from options of the method."""
        found, options = {}, self.options
        formula = None if options.get("order_effect") else self.formula
        if formula is not None:
            found["covariate"] = with_covariates(self.data).design(formula).terms
        if self.raters is not None:
            found["rater"] = raters_of(self.data, self.raters).names
        if isinstance(self.data, Battles) and "group_sd" in self.method.options:
            found["group"] = groups_of(self.data).names
        if isinstance(self.data, Battles) and "walk_sd" in self.method.options:
            found["period"] = periods_of(self.data, options.get("period", "month")).names
        return found

    @property
    def raters(self) -> str | None:
        """Whether judges or prompts have random effects on votes; None for neither."""
        return self.options.get("raters")

    @property
    def ranker_options(self) -> Mapping[str, Any]:
        """Options of the NumPy ranker, with a seed of this run where it takes one."""
        if not self.method.is_random:
            return self.sampler_options
        return {**self.sampler_options, "random_seed": int(self.seed.generate_state(1)[0])}

    @property
    def quantile(self) -> float | None:
        """Quantile of the posterior that scores the systems, None for its mean."""
        return self.options.get("quantile")

    @cached_property
    def factory_data(self) -> Data | Events:
        """The data as the factory of the method takes them."""
        data, method = self.data, self.method
        if isinstance(data, Ballots):
            return data if "Ballots" in method.accepts else data.events
        if method.data == "comparisons" and isinstance(data, Responses):
            return data.comparisons
        if method.data == "responses" and isinstance(data, Comparisons):
            raise DataError(
                f"data must be responses for {method.name}; got comparisons, which only methods on "
                "pairs can rank"
            )
        return data

    @cached_property
    def factory_prior(self) -> Prior | None:
        """The prior for the factory, with its parts that come from the data; flat for mle."""
        if self.backend == "mle":
            return Flat()
        return None if self.prior is None else self.prior.resolve(self.data)

    def build_model(self, **options: Any) -> "pm.Model":
        """Call the factory of the method, with other options than those of the run if given."""
        if self.factory_prior is not None:
            options["prior"] = self.factory_prior
        return load_function(self.method.factory_path)(
            self.factory_data, **{**self.options, **options}
        )

    def build_single_model(self) -> "pm.Model":
        """Return the model with one row per observation, as leave-one-out needs.

        It is the model itself, unless its factory merges equal observations, which gives the same
        posterior faster.
        """
        return self.build_model(**({"rows": "event"} if "rows" in self.method.options else {}))

    def in_units(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scores of a back end in the units of the outcomes, if they are mean grades."""
        if self.method.graded and isinstance(self.data, Responses):
            return self.data.in_units(scores)
        return scores


@dataclass(frozen=True)
class Estimate:
    """What a back end returns."""

    # The point estimate that ranks the systems, of shape (system,).
    score: NDArray[np.float64]
    # Posterior draws of the score, (chain, draw, system); None for a point estimate only.
    draws: NDArray[np.float64] | None
    # Draws of the method's own parameters, with dims chain and draw.
    parameters: xr.Dataset | None = None
    # The same at the point estimate. Plain arrays get their labels in the result tree: labelling
    # takes longer than a small fit.
    point: xr.Dataset | Mapping[str, Any] = field(default_factory=dict)
    # Further groups of the result, such as ``sample_stats``. A callable returns a group when the
    # result tree is built, which loops over point estimates never do.
    groups: Mapping[str, Group | Callable[[], Group]] = field(default_factory=dict)
    # How the draws were calibrated; ``none`` if they were not.
    calibration: str = "none"


def draw_chains(
    seed: np.random.SeedSequence,
    draw_chain: Callable[[np.random.SeedSequence], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Draw the chains in threads, of shape (chain, ...), each with its own seed from `seed`.

    NumPy's generators and most of its arithmetic release the interpreter. The draws do not depend
    on the number of threads. The matrices are small: threads of BLAS within these threads would
    cost more than they save.
    """
    workers = min(N_CHAINS, os.cpu_count() or 1)
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(workers) as pool:
        return np.stack(list(pool.map(draw_chain, seed.spawn(N_CHAINS))))


def by_chain(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Split draws of shape (size, ...) into chains of shape (chain, draw, ...)."""
    return draws.reshape(N_CHAINS, len(draws) // N_CHAINS, *draws.shape[1:])


@lru_cache(maxsize=16)
def label_index(dim: str, labels: tuple[str, ...]) -> xr.IndexVariable:
    """Return labels as the coordinate of a dim; making an index takes longer than most datasets."""
    return xr.IndexVariable(dim, list(labels))


def label_parameters(
    values: Mapping[str, Any],
    data: Data,
    leading: tuple[str, ...] = (),
    *,
    named: Mapping[str, tuple[str, ...]] | None = None,
) -> xr.Dataset:
    """Label arrays of parameters, by name, with systems and questions of the data.

    `leading` are dims before those of a parameter, such as ``("chain", "draw")``; `named` are
    labels of further dims, such as ``covariate``.
    """
    if "tie_strength" in values:
        # The free variable of the factory. If it is missing, PyMC draws it from its prior for
        # predictions from a result.
        with np.errstate(divide="ignore"):  # a tie strength of zero
            values = {**values, "log_tie_strength": np.log(values["tie_strength"])}
    variables = {
        name: (_dims(name, np.ndim(v), leading), np.asarray(v)) for name, v in values.items()
    }
    sizes = {dim: n for dims, v in variables.values() for dim, n in zip(dims, v.shape, strict=True)}
    labels = {"system": data.systems, "question": getattr(data, "questions", ()), **(named or {})}
    coords: dict[str, Any] = {
        dim: label_index(dim, names) for dim, names in labels.items() if dim in sizes
    }
    if "size" in sizes and not isinstance(data, Comparisons):
        coords["size"] = np.unique(data.events.right.sum(axis=1))
    if "grade" in sizes and not isinstance(data, Ballots):
        votes = data if isinstance(data, Comparisons) else data.comparisons
        coords["grade"] = VoteRows.of(votes).coords["grade"]
    # Numbers begin at 1; step t leads to trial t.
    coords |= {
        dim: np.arange(first, first + sizes[dim])
        for dim, first in (("trial", 1), ("step", 2), ("factor", 1), ("direction", 1))
        if dim in sizes
    }
    coords |= {dim: np.arange(sizes[dim]) for dim in leading if dim in sizes}
    return xr.Dataset(variables, coords)


def _dims(name: str, ndim: int, leading: tuple[str, ...]) -> tuple[str, ...]:
    """Return the dims of a parameter, a last one for factors where there is one more axis."""
    dims = (*leading, *_DIMS.get(name.rstrip("_0123456789"), ()))
    return dims if len(dims) == ndim else (*dims, "factor")


def split_scores(result: Any) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Split what a NumPy ranker returned, an array or a named tuple, into scores and the rest.

    Scores are of shape (..., system); the others come by name.
    """
    if isinstance(result, np.ndarray):
        return result, {}
    score, *others = result
    return score, dict(zip(result._fields[1:], others, strict=True))
