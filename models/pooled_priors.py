r"""Effects that share an unknown scale, integrated out: partial pooling without a funnel.

Exchangeable effects with :math:`x_i \sim N(0, \sigma^2)` and a scaled inverse chi-squared prior on
:math:`\sigma^2` (:math:`\nu` degrees of freedom, scale :math:`s`) are jointly a multivariate
Student t. In this form :math:`\sigma` is not in the model, so that there is no funnel. The
posterior density has a mode; the joint density of effects and scale has none (it is unbounded
where both vanish).
"""

# PyTensor generates most of its functions, with annotations that say None.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.distributions.transforms import ZeroSumTransform
from pytensor.graph.basic import Variable

from bayesrank.models.score_priors import free_variable, zero_sum_score
from bayesrank.priors import (
    HIERARCHICAL,
    LEVEL_SD,
    POOLED_DF,
    Cauchy,
    Custom,
    Flat,
    Laplace,
    Normal,
    Prior,
    PriorLike,
    as_prior,
)


def pooled_zero_sum(name: str, *, dims: str | Sequence[str], scale: float = 1.0) -> Any:
    """Give effects that sum to zero along every dim, one or two, a common, integrated-out scale.

    `scale` is the typical size :math:`s` of an effect, in logits.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model(coords={"question": list("abc")}):
    ...     difficulty = pooled_zero_sum("difficulty", dims="question")
    >>> bool(abs(pm.draw(difficulty, random_seed=1).sum()) < 1e-12)
    True
    """
    dims = (dims,) if isinstance(dims, str) else tuple(dims)
    axes = "lg"[: len(dims)]
    core = ",".join(axes)
    lengths = pm.modelcontext(None).dim_lengths
    return pm.CustomDist(
        name,
        pt.zeros([lengths[dim] for dim in dims]),
        _real(scale),
        logp=_pooled_logp_of(len(dims), centred=True),
        dist=_pooled_dist_of(len(dims), centred=True),
        support_point=_at_zero,
        signature=f"({core}),()->({core})",
        transform=ZeroSumTransform(list(range(-len(dims), 0))),
        class_name="PooledZeroSum",
        dims=dims,
    )


def pooled(
    name: str, *, dims: str, scale: float = 1.0, level: tuple[Any, Any] = (0.0, LEVEL_SD)
) -> Any:
    """Give effects around an unknown mean a common, integrated-out scale.

    The mean is normal, with the mean and standard deviation `level`; the deviations from it, of
    typical size `scale`, are those of :func:`pooled_zero_sum`.
    """
    length = pm.modelcontext(None).dim_lengths[dims]
    return pm.CustomDist(
        name,
        pt.zeros((length,)),
        _real(scale),
        *(_real(part) for part in level),
        logp=_pooled_logp,
        dist=_pooled_dist,
        support_point=_at_zero,
        signature="(l),(),(),()->(l)",
        class_name="Pooled",
        dims=dims,
    )


def pooled_around_zero(name: str, *, dims: str, scale: float = 1.0) -> Any:
    """Give normal effects around 0 a common, integrated-out scale: a sample of a population.

    Unlike those of :func:`pooled_zero_sum` they do not sum to zero, their expectation is 0.
    """
    length = pm.modelcontext(None).dim_lengths[dims]
    return pm.CustomDist(
        name,
        pt.zeros((length,)),
        _real(scale),
        logp=_pooled_logp_of(1, centred=False),
        dist=_pooled_dist_of(1, centred=False),
        support_point=_at_zero,
        signature="(l),()->(l)",
        class_name="PooledAroundZero",
        dims=dims,
    )


def pooled_within(name: str, members: Any, *, dims: str, scale: float = 1.0) -> Any:
    """Give effects around unknown means of groups a common, integrated-out scale.

    The means of the groups are those of :func:`pooled`, the deviations of effects from the mean of
    their group those of :func:`pooled_zero_sum` (within every group). `members`, (effect, group),
    is 1 where the effect belongs to the group, else 0; no group is empty.
    """
    return pm.CustomDist(
        name,
        pt.as_tensor(members),
        _real(scale),
        logp=_within_logp,
        dist=_within_dist,
        support_point=lambda _rv, _size, members, _scale: pt.zeros_like(members[:, 0]),
        signature="(l,g),()->(l)",
        class_name="PooledWithin",
        dims=dims,
    )


def is_flat(prior: PriorLike) -> bool:
    """Return whether the prior on an effect of questions, "hierarchical" or any other, is flat."""
    return prior != HIERARCHICAL and isinstance(as_prior(prior), Flat)


def zero_sum_effect(name: str, prior: PriorLike, *, dims: str) -> Any:
    """Give effects that sum to zero a prior; "hierarchical" is :func:`pooled_zero_sum`."""
    if prior == HIERARCHICAL:
        return pooled_zero_sum(name, dims=dims)
    return zero_sum_score(name, as_prior(prior), dims=dims)


def effect(name: str, prior: PriorLike, *, dims: str, negative: bool = False) -> Any:
    """Give effects that need not sum to zero a prior; "hierarchical" is :func:`pooled`.

    If `negative`, any other prior is that of minus the effects.
    """
    if prior == HIERARCHICAL:
        return pooled(name, dims=dims)
    given = as_prior(prior)
    return free_variable(name, _mirrored(given) if negative else given, dims=dims)


def _mirrored(prior: Prior) -> Prior:
    """Return the prior of minus a variable that has this prior."""
    match prior:
        case Normal(mu=mu, sigma=sigma):
            return Normal(-mu, sigma)
        case Laplace(mu=mu, b=b):
            return Laplace(-mu, b)
        case Cauchy(alpha=alpha, beta=beta):
            return Cauchy(-alpha, beta)
        case Custom(logp=logp):
            return Custom(lambda value: logp(-value))
    return prior


def _real(number: Any) -> Any:
    """Return a number as a tensor in double precision, since PyTensor uses smaller types."""
    return number if isinstance(number, Variable) else pt.constant(np.float64(number))


def _student_logp(squares: Any, dimension: Any, scale: Any) -> Any:
    """Log-density of a spherical multivariate t at a point with this sum of squares."""
    total = POOLED_DF + dimension
    constant = pt.gammaln(0.5 * total) - pt.gammaln(0.5 * POOLED_DF)
    unit = POOLED_DF * scale**2
    return (
        constant - 0.5 * dimension * pt.log(np.pi * unit) - 0.5 * total * pt.log1p(squares / unit)
    )


def _pooled_logp_of(n_axes: int, *, centred: bool) -> Any:
    def logp(value: Any, shape_giver: Any, scale: Any) -> Any:
        axes = tuple(range(-n_axes, 0))
        dimension = 1.0
        for axis in axes:
            dimension = dimension * (value.shape[axis].astype("float64") - float(centred))
        return _student_logp((value**2).sum(axes), dimension, scale)

    return logp


def _pooled_logp(value: Any, shape_giver: Any, scale: Any, level: Any, level_sd: Any) -> Any:
    n = value.shape[-1].astype("float64")
    mean = value.mean(-1)
    squares = ((value - mean[..., np.newaxis]) ** 2).sum(-1)
    # The mean is 1 / sqrt(n) of an orthonormal coordinate.
    log_unit = pt.log(level_sd) + 0.5 * np.log(2.0 * np.pi) + 0.5 * pt.log(n)
    of_mean = -0.5 * ((mean - level) / level_sd) ** 2 - log_unit
    return of_mean + _student_logp(squares, n - 1.0, scale)


def _pooled_dist_of(n_axes: int, *, centred: bool) -> Any:
    def dist(shape_giver: Any, scale: Any, size: Any) -> Any:
        noise = pm.Normal.dist(size=_full_shape(shape_giver, size))
        for axis in range(-n_axes, 0) if centred else ():
            noise = noise - noise.mean(axis, keepdims=True)
        return noise * _common_scale(noise, n_axes, scale)

    return dist


def _pooled_dist(shape_giver: Any, scale: Any, level: Any, level_sd: Any, size: Any) -> Any:
    noise = pm.Normal.dist(size=_full_shape(shape_giver, size))
    noise = noise - noise.mean(-1, keepdims=True)
    mean = level + level_sd * pm.Normal.dist(size=noise.shape[:-1])
    return mean[..., np.newaxis] + noise * _common_scale(noise, 1, scale)


def _within_logp(value: Any, members: Any, scale: Any) -> Any:
    sizes = members.sum(-2)
    means = (value[..., np.newaxis, :] @ members)[..., 0, :] / sizes
    squares = ((value - (members @ means[..., np.newaxis])[..., 0]) ** 2).sum(-1)
    n_groups = members.shape[-1].astype("float64")
    within = _student_logp(squares, value.shape[-1].astype("float64") - n_groups, scale)
    between = _pooled_logp(means, None, scale, _real(0.0), _real(LEVEL_SD))
    # Every mean is 1 / sqrt(size) of an orthonormal coordinate.
    return within + between - 0.5 * pt.log(sizes).sum(-1)


def _within_dist(members: Any, scale: Any, size: Any) -> Any:
    first = members[..., 0]
    noise = pm.Normal.dist(size=_full_shape(first, size))
    of_groups = (noise[..., np.newaxis, :] @ members)[..., 0, :] / members.sum(-2)
    noise = noise - (members @ of_groups[..., np.newaxis])[..., 0]
    level, level_sd = _real(0.0), _real(LEVEL_SD)
    means = _pooled_dist(members[0], scale, level, level_sd, size)
    return (members @ means[..., np.newaxis])[..., 0] + noise * _common_scale(noise, 1, scale)


def _common_scale(noise: Any, n_axes: int, scale: Any) -> Any:
    """Draw one scale per set of effects."""
    chi_squared = pm.ChiSquared.dist(POOLED_DF, size=noise.shape[:-n_axes])
    common = scale * pt.sqrt(POOLED_DF / chi_squared)
    return common[(..., *(np.newaxis,) * n_axes)]


def _full_shape(shape_giver: Any, size: Any) -> Any:
    if rv_size_is_none(size):
        return shape_giver.shape
    return pt.concatenate([size, shape_giver.shape])


def _at_zero(_rv: Any, _size: Any, of_each: Any, *_: Any) -> Any:
    # Without use of the variable, whose operation has a different class in every model, so that the
    # starting point is compiled once for all models.
    return pt.zeros_like(of_each)
