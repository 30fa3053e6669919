"""Fits of any PyMC model: maximum likelihood or a posteriori with Laplace draws, and NUTS.

For models and priors that no kernel of :mod:`bayesrank.inference.fits` covers.

Examples
--------
>>> import pymc as pm
>>> from bayesrank.inference.graph.fit import fit, sample
>>> with pm.Model() as model:
...     p = pm.Beta("p", 2, 2)
...     y = pm.Binomial("y", n=10, p=p, observed=7)
>>> result = fit(model, "map")
>>> round(float(result.point["p"]), 6)
0.666667
>>> result.converged
True
>>> groups = sample(model, draws=500, chains=4, random_seed=1)
>>> sorted(groups)
['posterior', 'sample_stats']
>>> round(float(groups["posterior"]["p"].mean()), 1)
0.6
"""

import hashlib
import os
import time
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pymc as pm
import xarray as xr
from pymc.model.transform.conditioning import remove_value_transforms
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize

from bayesrank.errors import ConvergenceWarning
from bayesrank.inference.fits.symmetry import is_higher
from bayesrank.inference.graph.bound_model import Array, BoundModel, bind_model, map_draws
from bayesrank.inference.graph.flat_model import label
from bayesrank.models.smooth_abs import WIDTHS
from bayesrank.progress import in_notebook
from bayesrank.validation import Count, NutsSampler, Probability, checked_seed, checks_options

OptimumKind = Literal["mle", "map"]

# With more parameters a Hessian costs more than the some hundred gradients of L-BFGS.
LARGEST_NEWTON = 150
MAX_ITERATIONS = 100
# From one start `irt_2pl` by mle ended at the lower of several maxima for 5 of 30 small data sets,
# with four more, each followed for some steps of L-BFGS, for 2.
MORE_STARTS = 4
ROUGH_STEPS = 100

# Converged when the next Newton step would move no parameter further than this, relative to the
# largest one (or 1). The step estimates the error itself. The gradient would also vanish if the
# estimate does not exist and the parameters go to infinity.
STEP_TOLERANCE = 1e-9
# Longest step in any one unconstrained parameter: logits and log scales move by a few units.
LONGEST_STEP = 5.0
# Required increase of a step, as a share of the prediction by the gradient (Armijo's rule).
SUFFICIENT_INCREASE = 1e-4
MOST_HALVINGS = 34
# Smallest share of a diagonal element after elimination; less is rounding error.
SMALLEST_PIVOT = 1e-14

# The statistics of ArviZ's schema that all samplers give: their type, and all their names; of
# several in one result the last counts.
STATISTICS: dict[str, tuple[type, tuple[str, ...]]] = {
    "acceptance_rate": (float, ("mean_tree_accept", "acceptance_rate")),
    "diverging": (bool, ("diverging",)),
    "energy": (float, ("energy",)),
    "lp": (float, ("logp", "lp")),
    "n_steps": (int, ("n_steps",)),
    "step_size": (float, ("step_size",)),
    "tree_depth": (int, ("depth", "tree_depth")),
}

# Starting points are tried until the log-probability is finite, as PyMC does.
LARGEST_NUMBER_OF_STARTS = 20

# Above this time per evaluation (seconds) parallel chains are faster, although chains that run in
# parallel wait for one another in Python, some 20 microseconds per evaluation.
LONG_EVALUATION = 1.2e-4

# Tuning draws of models with many parameters. They estimate the scales of all parameters. With
# nutpie's default of 400 the largest errors of scales raise R-hat: 1.010 for 1700 parameters,
# against 1.006 with 1000.
MANY_PARAMETERS, LONG_TUNING = 500, 1000


@dataclass(frozen=True)
class ModelFit:
    """The optimum of a model's log-probability.

    `x`, (parameter,), is the optimum on the unconstrained scale, and `hessian` has the second
    derivatives there, those of a density with an absolute value (Laplace) over the density's own
    scale. `converged` says whether the curvature is negative definite and the next Newton step
    negligible (1e-9), `gradient_norm` is the largest absolute gradient.
    """

    bound: BoundModel = field(repr=False)
    x: Array
    hessian: Array
    gradient_norm: float
    converged: bool
    iterations: int

    @cached_property
    def point(self) -> xr.Dataset:
        """Free variables and deterministics, constrained, with dims and coords."""
        return self.bound.labelled(self.x)

    def draws(
        self, *, draws: int = 500, chains: int = 4, random_seed: int | None = None
    ) -> xr.Dataset:
        """Draw from the Laplace approximation at the optimum, with dims chain, draw and the rest.

        Unconstrained parameters are normal around the optimum with the inverse of the exact Hessian
        as covariance; the draws are then mapped to the model's own variables. ValueError if some
        direction is not identified.
        """
        rng = np.random.default_rng(random_seed)
        noise = rng.standard_normal((chains, draws, self.x.size))
        return self.bound.labelled(self.x + noise @ self._inverse_root().T)

    def _inverse_root(self) -> Array:
        """Return A with A A' equal to the inverse of minus the Hessian."""
        if not np.isfinite(self.hessian).all():
            raise ValueError(
                "model must have a finite curvature at the optimum for Laplace draws; got a fit "
                f"with converged={self.converged}. Give it a proper prior, or use NUTS"
            )
        root = _root(-self.hessian)
        if root is None:
            values, vectors = np.linalg.eigh(-self.hessian)
            worst = int(np.abs(vectors[:, 0]).argmax())
            named = next(n for n, at in self.bound.slices().items() if at.start <= worst < at.stop)
            raise ValueError(
                f"model must be identified at the optimum for Laplace draws; got curvature "
                f"{values[0]:.3g} along {named}. Give it a proper prior, or use NUTS"
            )
        return solve_triangular(root, np.eye(self.x.size), lower=True).T


def fit(model: pm.Model, kind: OptimumKind = "map") -> ModelFit:
    """Maximise the likelihood ("mle") or the posterior density ("map") of a model.

    Small models take Newton steps with the exact Hessian from the start, and, where the density is
    not concave there, from some points around it, of which the highest maximum is kept; larger
    models first use L-BFGS. Both end with Newton steps until none moves a parameter by more than
    1e-9, and one more. The posterior density is that of the variables as the model states them,
    without the Jacobians of the transforms. Warns ConvergenceWarning if the steps did not vanish:
    the estimate may not exist, or not be unique.
    """
    bound = bind_model(model, kind)
    value, _ = bound.logp_and_gradient(bound.start)
    if not np.isfinite(value):
        raise ValueError(f"model must have a finite log-probability at its start; got {value}")
    result = _higher(bound, _maximize(bound, bound.start))
    if bound.is_smoothed:
        # At the kink of an absolute value the curvature is infinite; a difference over its scale is
        # finite.
        result = replace(result, hessian=bound.smoothed(WIDTHS[0]).hessian(result.x))
    if not result.converged:
        warnings.warn(
            f"the {kind} fit did not converge: largest gradient {result.gradient_norm:.3g} after "
            f"{result.iterations} iterations. The estimate may not exist or not be unique; check "
            "the data, or give the model a proper prior",
            ConvergenceWarning,
            stacklevel=2,
        )
    return result


def _higher(bound: BoundModel, found: ModelFit) -> ModelFit:
    """Return the fit, or one of a higher maximum, if there may be several.

    That is where the density is not concave at the start. It is tried only for small models: more
    data leave fewer maxima.
    """
    smooth = bound.smoothed(WIDTHS[0]) if bound.is_smoothed else bound
    hessian = smooth.hessian(bound.start)
    concave = np.isfinite(hessian).all() and _root(-hessian) is not None
    if concave or bound.size > LARGEST_NEWTON:
        return found
    around = np.random.default_rng(0).standard_normal((MORE_STARTS, bound.size))
    points = [_go_near(smooth, bound.start + each, ROUGH_STEPS)[0] for each in around]
    found_at = [bound.logp_and_gradient(x)[0] for x in (*points, found.x)]
    levels = np.where(np.isnan(found_at), -np.inf, found_at)
    best = int(levels[:-1].argmax())
    if not is_higher(levels[best], levels[-1]):
        return found
    other = _maximize(bound, points[best])
    return other if other.converged else found


def _maximize(bound: BoundModel, x: Array) -> ModelFit:
    """Maximise the log-probability, through smoother ones where it has an absolute value."""
    spent = 0
    if bound.size > LARGEST_NEWTON:
        x, spent = _go_near(bound.smoothed(WIDTHS[0]), x)
    for width in WIDTHS[:-1] if bound.is_smoothed else ():
        found = _newton(bound.smoothed(width), x)
        x, spent = found.x, spent + found.iterations
    found = _newton(bound, x)
    return replace(found, iterations=spent + found.iterations)


def _go_near(bound: BoundModel, x: Array, most: int = 1000) -> tuple[Array, int]:
    """Maximise roughly, with at most so many steps of L-BFGS."""
    # For a likelihood of millions of trials, a stopping rule on the value would stop before the
    # last digits of the parameters are reached.
    scale = 1.0 / max(1.0, abs(bound.logp_and_gradient(x)[0]))

    def negated(point: Array) -> tuple[float, Array]:
        value, gradient = bound.logp_and_gradient(point)
        return -scale * value, -scale * gradient

    found = minimize(
        negated, x, jac=True, method="L-BFGS-B", options={"maxiter": most, "maxcor": 20}
    )
    return found.x, int(found.nit)


def _newton(bound: BoundModel, x: Array) -> ModelFit:
    """Maximise by Newton steps with the exact Hessian, damped where the density is not concave."""
    value, gradient = bound.logp_and_gradient(x)
    hessian, converged = bound.hessian(x), False
    iteration = 0
    while iteration < MAX_ITERATIONS and np.isfinite(hessian).all():
        step, definite = _newton_step(hessian, gradient)
        converged = definite and _largest(step) <= STEP_TOLERANCE * max(1.0, _largest(x))
        moved = _line_search(bound, x, value, gradient, step)
        # Steps within the tolerance still double the correct digits, until rounding stops them.
        settled = converged and moved and _largest(moved[2]) >= 0.5 * _largest(gradient)
        if moved is None or settled:
            break
        x, value, gradient = moved
        hessian = bound.hessian(x)
        iteration += 1
    converged = converged and bool(np.isfinite(hessian).all())
    return ModelFit(bound, x, hessian, _largest(gradient), converged, iteration)


def _newton_step(hessian: Array, gradient: Array) -> tuple[Array, bool]:
    """Solve for the step, adding to the diagonal until the curvature is positive definite.

    Also return whether it was so from the start.
    """
    scale = max(1e-8, _largest(np.diagonal(hessian)))
    shift = 0.0
    while (root := _root(-hessian + shift * np.eye(len(gradient)))) is None:
        shift = max(10.0 * shift, 1e-10 * scale)
    step = cho_solve((root, True), gradient)
    return step * min(1.0, LONGEST_STEP / max(_largest(step), LONGEST_STEP)), shift == 0.0


def _line_search(
    bound: BoundModel, x: Array, value: float, gradient: Array, step: Array
) -> tuple[Array, float, Array] | None:
    """Shorten a step until the log-probability increases; None when it never does."""
    slope = float(gradient @ step)
    # Smaller changes of the value are rounding noise; then only the gradient judges a step.
    noise = 1e-13 * max(1.0, abs(value))
    for halvings in range(MOST_HALVINGS):
        length = 0.5**halvings
        candidate = x + length * step
        new_value, new_gradient = bound.logp_and_gradient(candidate)
        if not (np.isfinite(new_value) and np.isfinite(new_gradient).all()):
            continue
        increase = new_value - value
        if increase >= SUFFICIENT_INCREASE * length * slope or (
            increase >= -noise and _largest(new_gradient) < _largest(gradient)
        ):
            return candidate, new_value, new_gradient
    return None


def _root(matrix: Array) -> Array | None:
    """Return the lower Cholesky factor of a matrix, None if it is not positive definite.

    A matrix that is singular but for rounding counts as singular.
    """
    try:
        root = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    left = np.diagonal(root) ** 2
    return root if np.all(left > SMALLEST_PIVOT * np.diagonal(matrix)) else None


def _largest(values: Array) -> float:
    return float(np.abs(values).max(initial=0.0))


@checks_options
def sample(
    model: pm.Model,
    *,
    draws: Count = 1000,
    tune: Count | None = None,
    chains: Count = 4,
    random_seed: int | None = None,
    nuts_sampler: NutsSampler = "compiled",
    target_accept: Probability = 0.8,
    low_rank: bool = False,
    cores: Count | None = None,
    progressbar: bool | None = None,
) -> dict[str, xr.Dataset]:
    """Draw from the posterior of a model with NUTS.

    The default samples the engine's compiled code through nutpie, so that a second data set of the
    same structure needs no compilation; the free variables must be continuous. The other samplers
    are those of ``pm.sample``. All return the same groups, ``posterior`` (free variables and
    deterministics) and ``sample_stats``, with dims chain and draw. Options are those of
    :func:`bayesrank.inference.backends.nuts.nuts`.
    """
    checked_seed(random_seed)
    options: dict[str, Any] = {"draws": draws, "chains": chains, "target_accept": target_accept}
    if tune is not None:
        options["tune"] = tune
    if nuts_sampler == "compiled":
        if progressbar is None:
            progressbar = in_notebook()
        # nutpie wants a number where PyMC takes None for a new one every time.
        seed = int(np.random.default_rng().integers(2**31)) if random_seed is None else random_seed
        if low_rank:
            options["adaptation"] = "low_rank"
        posterior, statistics = _sample_compiled(model, options, seed, cores, progressbar)
    elif low_rank:
        raise ValueError(f"low_rank must be False for nuts_sampler {nuts_sampler!r}; got True")
    else:
        tree = pm.sample(
            model=model,
            random_seed=random_seed,
            cores=cores,
            progressbar=bool(progressbar),
            quiet=not progressbar,
            nuts_sampler=nuts_sampler,
            compute_convergence_checks=False,
            **options,
        )
        drawn, variables = tree["posterior"], [*model.free_RVs, *model.deterministics]
        values = {v.name: drawn[v.name].values for v in variables}
        posterior = label(model, values, ("chain", "draw"))
        statistics = tree["sample_stats"]
    groups = {"posterior": posterior, "sample_stats": _level_statistics(statistics.to_dataset())}
    groups["sample_stats"].attrs["sampler"] = nuts_sampler
    return groups


def _sample_compiled(
    model: pm.Model, options: dict[str, Any], seed: int, cores: int | None, progressbar: bool
) -> tuple[xr.Dataset, xr.DataTree]:
    import nutpie  # takes more than a second, which the other back ends avoid
    from nutpie.compiled_pyfunc import from_pyfunc

    bound = bind_model(model, "nuts")
    if "tune" not in options and bound.size > MANY_PARAMETERS:
        options = options | {"tune": LONG_TUNING}
    cores = cores or _choose_cores(bound, options["chains"])
    if cores > 1:
        bound = bound.in_parallel()
    sampler_model = from_pyfunc(
        bound.size,
        lambda: bound.logp_and_gradient,
        lambda *_: lambda x: {"x": x},
        [np.dtype(np.float64)],
        [(bound.size,)],
        ["x"],
        make_initial_point_fn=lambda seed: _jittered_start(bound, seed),
    )
    tree = nutpie.sample(
        sampler_model,
        seed=seed,
        cores=cores,
        progress_bar=progressbar,
        save_warmup=False,
        **options,
    )
    return bound.labelled(tree["posterior"]["x"].values), tree["sample_stats"]


def _choose_cores(bound: BoundModel, chains: int) -> int:
    """Return how many chains to run in parallel: one, or one per core if evaluations are slow."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        bound.logp_and_gradient(bound.start)
        seconds.append(time.perf_counter() - start)
    return min(chains, os.cpu_count() or 1) if min(seconds) > LONG_EVALUATION else 1


def _jittered_start(bound: BoundModel, seed: int) -> Array:
    """Return the model's starting point, moved by up to one unit, where the density is finite."""
    rng = np.random.default_rng(seed)
    for _ in range(LARGEST_NUMBER_OF_STARTS):
        x = bound.start + rng.uniform(-1.0, 1.0, bound.size)
        value, gradient = bound.logp_and_gradient(x)
        if np.isfinite(value) and np.isfinite(gradient).all():
            return x
    return bound.start


def _level_statistics(statistics: xr.Dataset) -> xr.Dataset:
    """Keep the statistics that all samplers share, under one name each."""
    found = {
        name: (("chain", "draw"), statistics[alias].values.astype(kind))
        for name, (kind, aliases) in STATISTICS.items()
        for alias in aliases
        if alias in statistics
    }
    return xr.Dataset(found, {dim: np.arange(statistics.sizes[dim]) for dim in ("chain", "draw")})


def log_densities(model: pm.Model, posterior: xr.Dataset) -> dict[str, xr.Dataset]:
    """Compute the log-likelihood of every observation and the log-prior of every parameter.

    The group ``log_likelihood`` has the attributes ``observed_shape`` and ``observed_sha256``, by
    which models of the same observations are known; the other group is ``log_prior``.
    """
    plain: Any = remove_value_transforms(model)  # the draws are constrained
    leading = ("chain", "draw")
    points = [posterior[each.name].transpose(*leading, ...).values for each in plain.free_RVs]
    groups = {}
    for name, variables in (("log_likelihood", plain.observed_RVs), ("log_prior", plain.free_RVs)):
        densities = plain.logp(vars=variables, sum=False)
        inputs = [plain.rvs_to_values[each] for each in plain.free_RVs]
        values = map_draws(inputs, densities, points)
        named = {each.name: value for each, value in zip(variables, values, strict=True)}
        groups[name] = label(plain, named, leading)
    for variable in model.observed_RVs:
        values = np.asarray(model.rvs_to_values[variable].eval(mode="FAST_COMPILE"), dtype=float)
        groups["log_likelihood"][variable.name].attrs |= {
            "observed_shape": " x ".join(str(size) for size in values.shape),
            "observed_sha256": hashlib.sha256(values.tobytes()).hexdigest(),
        }
    return groups
