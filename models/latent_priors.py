"""Priors of latent scores: conditioned on a sum of zero, or smooth enough for optimisers.

Strengths are identified up to a shift, so they are constrained to sum to zero.
:func:`zero_sum` gives them independent priors conditioned on that sum.
"""

# PyTensor generates most of its functions, with annotations that say None.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false
# pyright: reportOptionalMemberAccess=false

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.distributions.transforms import ZeroSumTransform
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_funcify

from bayesrank.models.observations import as_data
from bayesrank.models.smooth_abs import smooth_abs

ZeroSumKind = Literal["normal", "laplace", "cauchy", "flat", "custom"]


def zero_sum(
    name: str,
    kind: ZeroSumKind = "normal",
    *,
    dims: str | Sequence[str],
    scale: Any = 1.0,
    location: Any = None,
    log_density: Callable[[Any], Any] | None = None,
) -> Any:
    r"""Give parameters independent priors conditioned on a sum of zero, that of the last dim.

    The density is that of independent variables on the plane of zero sum, in orthonormal
    coordinates of that plane, and is normalised, so that `scale` may be a random variable itself:
    :math:`p(x) = \prod_l f(x_l) / (\sqrt{L}\, f_S(0))` with :math:`f_S` the density of the sum.
    Prior draws are exact: the normal mixtures that make the Laplace and the Cauchy are drawn
    given the sum. (Centring independent draws, which is the same for a normal, is not for these.)
    Flat and custom priors have no draws.

    The `location` counts up to a common shift; `log_density`, only for "custom", maps the tensor of
    shape (..., last dim) to its log-density, summed over the last axis or not, and normalised or
    not. ValueError if `kind` is unknown, or `log_density` does not go with it.

    Examples
    --------
    >>> import pymc as pm
    >>> from bayesrank.models.latent_priors import zero_sum
    >>> with pm.Model(coords={"system": ["a", "b", "c"]}) as model:
    ...     score = zero_sum("score", "laplace", dims="system", scale=0.5)
    >>> draw = pm.draw(score, random_seed=1)
    >>> bool(abs(draw.sum()) < 1e-12)
    True
    """
    if kind not in get_args(ZeroSumKind):
        raise ValueError(f"kind must be one of {', '.join(get_args(ZeroSumKind))}; got {kind!r}")
    if (log_density is None) == (kind == "custom"):
        given = "none" if log_density is None else "one"
        raise ValueError(
            f"log_density must be given for kind custom and for no other; got {given} for {kind}"
        )
    dims = (dims,) if isinstance(dims, str) else tuple(dims)
    length = pm.modelcontext(None).dim_lengths[dims[-1]]
    if location is None:
        centre = pt.zeros((length,))
    else:
        # A common shift has no effect on the plane of zero sum.
        centre = pt.as_tensor(as_data(f"{name}_location", location, dims[-np.ndim(location) :]))
        centre = centre - centre.mean(-1, keepdims=True)
    options: dict[str, Any] = {
        "signature": "(l),()->(l)",
        "support_point": _at_location,
        "transform": ZeroSumTransform([-1]),
        "dims": dims,
    }
    if kind in ("flat", "custom"):
        return pm.CustomDist(
            name,
            centre,
            scale,
            logp=_unnormalised(log_density),
            dist=_no_draws(name, kind),
            class_name=f"ZeroSum{kind.title()}",
            **options,
        )
    logp, dist = _ZERO_SUM[kind]
    return pm.CustomDist(
        name, centre, scale, logp=logp, dist=dist, class_name=f"ZeroSum{kind.title()}", **options
    )


def laplace(
    name: str,
    *,
    location: Any = 0.0,
    scale: Any = 1.0,
    dims: str | Sequence[str] | None = None,
    **kwargs: Any,
) -> Any:
    """Give parameters independent Laplace priors whose mode an optimiser can find.

    The density is exactly that of ``pm.Laplace`` except within 1e-4 scales of the kink,
    which :mod:`bayesrank.models.smooth_abs` smooths.
    """

    def logp(value: Any, location: Any, scale: Any) -> Any:
        return -smooth_abs((value - location) / scale) - pt.log(2.0 * scale)

    def dist(location: Any, scale: Any, size: Any) -> Any:
        return pm.Laplace.dist(location, scale, size=size)

    return pm.CustomDist(
        name,
        location,
        scale,
        logp=logp,
        dist=dist,
        signature="(),()->()",
        class_name="Laplace",
        dims=dims,
        **kwargs,
    )


def _degrees_of_freedom(value: Any) -> Any:
    return value.shape[-1].astype("float64") - 1.0


def _normal_logp(value: Any, location: Any, scale: Any) -> Any:
    z = (value - location) / scale[..., np.newaxis]
    log_unit = pt.log(scale) + 0.5 * np.log(2.0 * np.pi)
    return -0.5 * (z**2).sum(-1) - _degrees_of_freedom(value) * log_unit


def _laplace_logp(value: Any, location: Any, scale: Any) -> Any:
    z = (value - location) / scale[..., np.newaxis]
    n = value.shape[-1].astype("float64")
    # The sum of n unit Laplace variables is the difference of two gamma variables of shape n, with
    # density gamma(2n - 1) / (2**(2n - 1) gamma(n)**2) at zero.
    log_sum_density = pt.gammaln(2.0 * n - 1.0) - 2.0 * pt.gammaln(n) - (2.0 * n - 1.0) * np.log(2)
    log_constant = n * np.log(2.0) + 0.5 * pt.log(n) + log_sum_density
    return -smooth_abs(z).sum(-1) - log_constant - (n - 1.0) * pt.log(scale)


def _cauchy_logp(value: Any, location: Any, scale: Any) -> Any:
    z = (value - location) / scale[..., np.newaxis]
    n = value.shape[-1].astype("float64")
    # The sum of n unit Cauchy variables is a Cauchy variable of scale n.
    log_constant = n * np.log(np.pi) - np.log(np.pi) - 0.5 * pt.log(n)
    return -pt.log1p(z**2).sum(-1) - log_constant - (n - 1.0) * pt.log(scale)


def _normal_dist(location: Any, scale: Any, size: Any) -> Any:
    noise = pm.Normal.dist(size=_full_shape(location, scale, size))
    return location + scale[..., np.newaxis] * (noise - noise.mean(-1, keepdims=True))


def _laplace_dist(location: Any, scale: Any, size: Any) -> Any:
    # A Laplace variable is normal with exponential variance of mean 2. A total variance of zero-sum
    # variables has density t**(-1/2) times that of n free ones; the shares are uniform either way.
    shape = _full_shape(location, scale, size)
    parts = pm.Exponential.dist(lam=1.0, size=shape)
    shares = parts / parts.sum(-1, keepdims=True)
    total = pm.Gamma.dist(alpha=shape[-1] - 0.5, beta=0.5, size=shape[:-1])
    return location + scale[..., np.newaxis] * _normal_given_sum(total[..., np.newaxis] * shares)


def _cauchy_dist(location: Any, scale: Any, size: Any) -> Any:
    # A Cauchy variable is normal with Levy variance. Conditioning on the sum tilts the Levy
    # density to an inverse Gaussian one with mean 1 / r, r exponential with rate n.
    shape = _full_shape(location, scale, size)
    rate = pm.Exponential.dist(lam=shape[-1].astype("float64"), size=shape[:-1])
    variances = _inverse_gaussian(1.0 / rate[..., np.newaxis], shape)
    return location + scale[..., np.newaxis] * _normal_given_sum(variances)


def _inverse_gaussian(mean: Any, shape: Any) -> Any:
    """Draw inverse Gaussian variables of unit shape parameter.

    PyTensor has no compiled ``pm.Wald``. See J. R. Michael, W. R. Schucany and R. W. Haas, The
    American Statistician 30 (1976), https://doi.org/10.1080/00031305.1976.10479147, here with the
    smaller root of their quadratic written without cancellation.
    """
    half = 0.5 * mean * pm.Normal.dist(size=shape) ** 2
    smaller = mean / (1.0 + half + pt.sqrt(half * (half + 2.0)))
    keep = pm.Uniform.dist(size=shape) * (mean + smaller) <= mean
    return pt.switch(keep, smaller, mean * (mean / smaller))


def _normal_given_sum(variances: Any) -> Any:
    """Draw independent normals of given variances, conditioned on a sum of zero."""
    noise = pt.sqrt(variances) * pm.Normal.dist(size=variances.shape)
    shares = variances / variances.sum(-1, keepdims=True)
    draw = noise - shares * noise.sum(-1, keepdims=True)
    # With heavy tails the sum is zero only up to rounding of the largest element; the transform
    # needs an exact zero.
    return draw - draw.mean(-1, keepdims=True)


def _full_shape(location: Any, scale: Any, size: Any) -> Any:
    """Return the shape of a draw: the size and the zero-sum axis."""
    if rv_size_is_none(size):
        return pt.stack(pt.broadcast_shape(location, scale[..., np.newaxis]))
    return pt.concatenate([size, location.shape[-1:]])


def _at_location(rv: Any, size: Any, location: Any, scale: Any) -> Any:
    # Without use of rv, whose operation has a different class in every model, so that all models
    # have the same structure for the compiler.
    return pt.zeros(_full_shape(location, scale, size)) + location


def _unnormalised(log_density: Callable[[Any], Any] | None) -> Callable[[Any, Any, Any], Any]:
    def logp(value: Any, location: Any, scale: Any) -> Any:
        if log_density is None:
            return pt.zeros_like(value).sum(-1)
        density = pt.as_tensor(log_density(value))
        return density.sum(-1) if density.type.ndim == value.type.ndim else density

    return logp


class _NoDraws(Op):
    """Placeholder for the draws of a prior without draws: its shape is known, computing raises."""

    __props__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def make_node(self, *inputs: Any) -> Apply:
        return Apply(self, list(inputs), [inputs[0].type()])

    def infer_shape(self, node: Apply, input_shapes: list[Any]) -> list[Any]:
        return input_shapes

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        raise NotImplementedError(self.message)


@numba_funcify.register(_NoDraws)
def _refuse_to_compile(op: _NoDraws, **_: Any) -> Any:
    raise NotImplementedError(op.message)


def _no_draws(name: str, kind: str) -> Callable[..., Any]:
    op = _NoDraws(
        f"{name} has a {kind} prior, which has no draws: prior predictive draws need a proper "
        "prior such as a normal"
    )

    def dist(location: Any, scale: Any, size: Any) -> Any:
        return op(pt.zeros(_full_shape(location, scale, size)) + location)

    return dist


_ZERO_SUM: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "normal": (_normal_logp, _normal_dist),
    "laplace": (_laplace_logp, _laplace_dist),
    "cauchy": (_cauchy_logp, _cauchy_dist),
}
