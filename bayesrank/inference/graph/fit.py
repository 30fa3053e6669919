"""Maximum likelihood and maximum a posteriori fits of any PyMC model, with Laplace draws.

Examples
--------
>>> import pymc as pm
>>> from bayesrank.inference.graph.fit import fit
>>> with pm.Model() as model:
...     p = pm.Beta("p", 2, 2)
...     y = pm.Binomial("y", n=10, p=p, observed=7)
>>> result = fit(model, "map")
>>> round(float(result.point["p"]), 6)
0.666667
>>> result.converged
True
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from bayesrank.errors import ConvergenceWarning
from bayesrank.inference.graph.bind import bind_model
from bayesrank.inference.graph.bound_model import BoundModel
from bayesrank.inference.graph.compile import Backend
from bayesrank.inference.graph.labelled import label
from bayesrank.inference.graph.newton import Minimum, minimize_newton, positive_definite_root
from bayesrank.models.smooth_abs import WIDTHS

Array = NDArray[np.float64]

# With more parameters a Hessian costs more than the some hundred gradients of L-BFGS.
LARGEST_NEWTON = 150


@dataclass(frozen=True)
class ModelFit:
    """The optimum of a model's log-probability.

    Attributes
    ----------
    model : pymc.Model
        What was fitted.
    kind : {"mle", "map"}
        The likelihood alone, or likelihood and priors.
    point : xarray.Dataset
        Free variables and deterministics at the optimum, constrained, with dims and coords.
    x : numpy.ndarray of shape (parameter,)
        The optimum on the unconstrained scale.
    hessian : numpy.ndarray of shape (parameter, parameter)
        Second derivatives of the log-probability there; negative definite at a proper optimum.
        Those of a density with a kink (Laplace) are taken over the scale of the density.
    logp : float
        The log-probability there: the log-likelihood, with the log-prior under "map".
    converged : bool
        Whether the curvature is negative definite and the next Newton step negligible (1e-9).
    iterations : int
        Steps taken.
    gradient_norm : float
        Largest absolute gradient on the unconstrained scale.
    bound : BoundModel
        The model's compiled functions.
    """

    model: pm.Model
    kind: Literal["mle", "map"]
    point: xr.Dataset
    x: Array
    hessian: Array
    logp: float
    converged: bool
    iterations: int
    gradient_norm: float
    bound: BoundModel = field(repr=False)

    @cached_property
    def log_likelihood(self) -> float:
        """The log-likelihood at the optimum, without the prior."""
        if self.kind == "mle":
            return self.logp
        likelihood = bind_model(self.model, "mle")
        where = self.bound.slices()
        x = np.concatenate([self.x[where[name]] for name in likelihood.slices()])
        return likelihood.logp_and_gradient(x)[0]

    @cached_property
    def covariance(self) -> Array:
        """Inverse of the curvature, of shape (parameter, parameter).

        Raises
        ------
        ValueError
            If the curvature is not positive definite: some direction is not identified.
        """
        root = self._inverse_root()
        return root @ root.T

    def draws(
        self,
        *,
        draws: int = 500,
        chains: int = 4,
        random_seed: int | None = None,
        var_names: list[str] | None = None,
    ) -> xr.Dataset:
        """Draw from the Laplace approximation at the optimum.

        Unconstrained parameters are normal around the optimum with the inverse of the exact
        Hessian as covariance; the draws are then mapped to the model's own variables.

        Parameters
        ----------
        draws : int, default 500
            Draws per chain.
        chains : int, default 4
            Chains, so that the shape is that of a sampler's draws; they are independent.
        random_seed : int, optional
            Same seed, same draws.
        var_names : list of str, optional
            The variables wanted; all free variables and deterministics by default.

        Returns
        -------
        xarray.Dataset
            With dims chain, draw and those of the model.

        Raises
        ------
        ValueError
            If the curvature is not positive definite: some direction is not identified.
        """
        rng = np.random.default_rng(random_seed)
        noise = rng.standard_normal((chains * draws, self.x.size))
        values = self.bound.named(self.x + noise @ self._inverse_root().T, var_names)
        return label(self.model, values, {"chain": chains, "draw": draws})

    def _inverse_root(self) -> Array:
        """Return A with A A' equal to the inverse of minus the Hessian."""
        if not np.isfinite(self.hessian).all():
            raise ValueError(
                "model must have a finite curvature at the optimum for Laplace draws; got a fit "
                f"with converged={self.converged}. Give it a proper prior, or use NUTS"
            )
        root = positive_definite_root(-self.hessian)
        if root is None:
            values, vectors = np.linalg.eigh(-self.hessian)
            worst = self.bound.name_of(int(np.abs(vectors[:, 0]).argmax()))
            raise ValueError(
                f"model must be identified at the optimum for Laplace draws; got curvature "
                f"{values[0]:.3g} along {worst}. Give it a proper prior, or use NUTS"
            )
        return solve_triangular(root, np.eye(self.x.size), lower=True).T


def fit(
    model: pm.Model,
    kind: Literal["mle", "map"] = "map",
    *,
    start: Array | None = None,
    backend: Backend | Literal["auto"] = "auto",
    max_iterations: int = 100,
) -> ModelFit:
    """Maximise the likelihood or the posterior density of a model.

    Small models take Newton steps with the exact Hessian from the start; larger ones go near the
    optimum with L-BFGS first. Both end with Newton steps until they move no parameter by more than
    1e-9, and one more.
    The posterior density is that of the variables as the model states them, without the Jacobians
    of the transforms.

    Parameters
    ----------
    model : pymc.Model
        Any model whose free variables are continuous.
    kind : {"map", "mle"}, default "map"
        Likelihood and priors, or the likelihood alone.
    start : numpy.ndarray of shape (parameter,), optional
        Unconstrained starting point, such as the `x` of a similar fit; the model's own by default.
    backend : {"auto", "python", "numba"}, default "auto"
        As in :func:`bayesrank.inference.graph.bind.compile_model`.
    max_iterations : int, default 100
        Newton steps after which to give up.

    Returns
    -------
    ModelFit
        The optimum, its curvature and how it was reached.

    Warns
    -----
    ConvergenceWarning
        If the steps did not vanish: the estimate may not exist, or not be unique.
    """
    if kind not in ("mle", "map"):
        raise ValueError(f"kind must be one of mle, map; got {kind!r}")
    bound = bind_model(model, kind, backend=backend)
    x = bound.start if start is None else bound.checked(start)
    value, _ = bound.logp_and_gradient(x)
    if not np.isfinite(value):
        raise ValueError(f"start must have a finite log-probability; got {value}")
    minimum, spent = _minimize(bound, x, max_iterations)
    result = ModelFit(
        model=model,
        kind=kind,
        point=label(model, bound.named(minimum.x[np.newaxis]), {}),
        x=minimum.x,
        # Right at a kink the curvature is infinite; over the density's own scale it is not.
        hessian=(
            bound.with_kink_width(WIDTHS[0]).hessian(minimum.x)
            if bound.has_kinks
            else -minimum.hessian
        ),
        logp=-minimum.value,
        converged=minimum.converged,
        iterations=spent + minimum.iterations,
        gradient_norm=float(np.abs(minimum.gradient).max()),
        bound=bound,
    )
    if not result.converged:
        warnings.warn(
            f"the {kind} fit did not converge: largest gradient {result.gradient_norm:.3g} after "
            f"{result.iterations} iterations. The estimate may not exist or not be unique; check "
            "the data, or give the model a proper prior",
            ConvergenceWarning,
            stacklevel=2,
        )
    return result


def _minimize(bound: BoundModel, x: Array, max_iterations: int) -> tuple[Minimum, int]:
    """Minimise minus the log-probability; also return the iterations spent before the last stage.

    A kink in the density is approached through rounder and rounder ones.
    """
    spent = 0
    if bound.size > LARGEST_NEWTON:
        x, spent = _go_near(bound.with_kink_width(WIDTHS[0]), x)
    if not bound.has_kinks:
        return _newton(bound, x, max_iterations), spent
    for width in WIDTHS[:-1]:
        minimum = _newton(bound.with_kink_width(width), x, max_iterations)
        x, spent = minimum.x, spent + minimum.iterations
    return _newton(bound, x, max_iterations), spent


def _newton(bound: BoundModel, x: Array, max_iterations: int) -> Minimum:
    def hessian(point: Array) -> Array:
        return -bound.hessian(point)

    return minimize_newton(_negated(bound, 1.0), hessian, x, max_iterations=max_iterations)


def _go_near(bound: BoundModel, x: Array) -> tuple[Array, int]:
    """Minimise roughly with L-BFGS."""
    from scipy.optimize import minimize  # half a second of start-up that small fits spare

    # The value of a likelihood of millions of trials would hide the last digits of the parameters
    # from a stopping rule on the value.
    scale = 1.0 / max(1.0, abs(bound.logp_and_gradient(x)[0]))
    found = minimize(
        _negated(bound, scale),
        x,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 1000, "maxcor": 20},
    )
    return found.x, int(found.nit)


def _negated(bound: BoundModel, scale: float) -> Callable[[Array], tuple[float, Array]]:
    def function(point: Array) -> tuple[float, Array]:
        value, gradient = bound.logp_and_gradient(point)
        return -scale * value, -scale * gradient

    return function
