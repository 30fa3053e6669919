"""Priors of :mod:`bayesrank.priors` as PyMC random variables."""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.logprob.transforms import Transform
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import graph_inputs

from bayesrank.models.latent_priors import laplace, zero_sum
from bayesrank.priors import Cauchy, Custom, Empirical, Flat, Laplace, Normal, Prior


def zero_sum_score(name: str, prior: Prior, *, dims: str = "system") -> Any:
    """Give scores that sum to zero a prior, whose common location has no effect.

    ValueError if the prior is of an unknown kind.
    """
    match prior:
        case Normal(sigma=sigma):
            return pm.ZeroSumNormal(name, sigma=sigma, dims=dims)
        case Empirical(sigma=sigma):
            return zero_sum(name, "normal", dims=dims, scale=sigma, location=prior.quadratic()[0])
        case Laplace(b=b):
            return zero_sum(name, "laplace", dims=dims, scale=b)
        case Cauchy(beta=beta):
            return zero_sum(name, "cauchy", dims=dims, scale=beta)
        case Flat():
            return zero_sum(name, "flat", dims=dims)
        case Custom(logp=logp):
            _check_sign(name, logp, dims)
            return zero_sum(name, "custom", dims=dims, log_density=logp)
    raise ValueError(f"prior must be one of bayesrank.priors; got {prior!r}")


def free_variable(name: str, prior: Prior, *, dims: str | None = None) -> Any:
    """Give an unconstrained parameter, or independent ones along `dims`, any prior.

    ValueError if the prior is of an unknown kind.
    """
    match prior:
        case Normal(mu=mu, sigma=sigma):
            return pm.Normal(name, mu, sigma, dims=dims)
        case Empirical(sigma=sigma):
            return pm.Normal(name, prior.quadratic()[0], sigma, dims=dims)
        case Laplace(mu=mu, b=b):
            return laplace(name, location=mu, scale=b, dims=dims)
        case Cauchy(alpha=alpha, beta=beta):
            return pm.Cauchy(name, alpha, beta, dims=dims)
        case Flat():
            return pm.Flat(name, dims=dims)
        case Custom():
            return custom_variable(name, prior, dims=dims)
    raise ValueError(f"prior must be one of bayesrank.priors; got {prior!r}")


def custom_variable(
    name: str, prior: Custom, *, dims: str | None = None, location: Any = None
) -> Any:
    """Give a parameter, or all of them along `dims`, a log-density of distances from a location.

    The location, (dims,), is zero by default. Prior draws raise NotImplementedError.
    """
    if location is None:
        lengths = () if dims is None else (pm.modelcontext(None).dim_lengths[dims],)
        location = pt.zeros(lengths)
    _check_sign(name, prior.logp, dims)

    def logp(value: Any, location: Any) -> Any:
        return pt.as_tensor(prior.logp(value - location)).sum()

    # Without use of the variable, whose operation has a different class in every model, so that all
    # models have the same structure for the compiler.
    def at_zero(_variable: Any, _size: Any, location: Any) -> Any:
        return pt.zeros_like(location)

    def refuse(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(
            f"{name} has a custom prior, which has no draws: prior predictive draws need a proper "
            "prior such as a normal"
        )

    return pm.CustomDist(
        name,
        location,
        logp=logp,
        random=refuse,
        support_point=at_zero,
        signature="()->()" if dims is None else "(l)->(l)",
        class_name="Custom",
        dims=dims,
    )


class _Softplus(Transform):
    """Map a positive variable to its inverse softplus v, in units of the scale of its prior.

    Near 0 this is its logarithm, far out the variable itself. There the half-normal density of
    a logarithm falls like exp(-exp(2 v)), too steeply for step sizes that suit the middle.
    """

    name = "softplus"
    ndim_supp = 0

    def forward(self, value: Any, *inputs: Any) -> Any:
        ratio = value / inputs[-1]
        return ratio + pt.log(-pt.expm1(-ratio))

    def backward(self, value: Any, *inputs: Any) -> Any:
        return inputs[-1] * pt.softplus(value)

    def log_jac_det(self, value: Any, *inputs: Any) -> Any:
        return pt.log(inputs[-1]) - pt.softplus(-value)


def positive_variable(
    name: str, prior: Prior, *, dims: str | None = None, softplus: bool = False
) -> Any:
    """Give a positive parameter, or independent ones along `dims`, the positive half of a prior.

    With `softplus` the sampled coordinate of a half-normal or exponential parameter is its inverse
    softplus, which suits scales that may be near 0, instead of its logarithm. ValueError if the
    location is not 0, or the kind of prior has no positive half.
    """
    seen = {"default_transform": _Softplus()} if softplus else {}
    match prior:
        case Normal(mu=0.0, sigma=sigma):
            return pm.HalfNormal(name, sigma, dims=dims, **seen)
        case Laplace(mu=0.0, b=b):
            return pm.Exponential(name, scale=b, dims=dims, **seen)
        case Cauchy(alpha=0.0, beta=beta):
            return pm.HalfCauchy(name, beta, dims=dims)
        case Flat():
            return pm.HalfFlat(name, dims=dims)
        case Custom(logp=logp):
            _check_sign(name, logp, None, sides=(1.0,))
            variable = pm.HalfFlat(name, dims=dims)
            pm.Potential(f"{name}_log_density", logp(variable).sum())
            return variable
    raise ValueError(f"prior of {name} must be flat, custom or have its location at 0; got {prior}")


def _check_sign(
    name: str, logp: Any, dims: str | None, *, sides: tuple[float, ...] = (-1.0, 1.0)
) -> None:
    """Raise ValueError if a log-density increases far out on all sides, as a penalty does.

    A log-density with its own variables is not checked.
    """
    if dims is None:
        direction = np.ones(())
    else:
        # Any direction with different entries and the sum zero.
        length: Any = pm.modelcontext(None).dim_lengths[dims]
        direction = np.cos(1.0 + np.arange(int(length.eval())))
        direction = direction - direction.mean()
    points = [side * far * direction for side in sides for far in (1e2, 1e3)]
    densities: Any = pt.stack([pt.as_tensor(logp(pt.constant(point))).sum() for point in points])
    if not all(isinstance(each, Constant) for each in graph_inputs([densities])):
        return
    near, far = densities.eval(mode=Mode(linker="py", optimizer="fast_compile")).reshape(-1, 2).T
    if (far > near).all():
        raise ValueError(
            f"prior of {name} must be a log-density, which falls far from its mode; got "
            f"{far.min():.3g} where scores are ten times as large as where it is {near.min():.3g}: "
            "return minus the penalty"
        )
