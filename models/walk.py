r"""Gaussian random walks in coordinates in which the posterior is nearly spherical.

A walk over N times has N - 1 increments per system. With little information in the data, scaled
increments are independent of the scale of the walk; with much information, the increments
themselves are. The transform here suits both cases and all cases between. It turns increments into
the principal components of the path, in which prior and information are both diagonal. It subtracts
the approximate posterior mean :math:`v_k g_k` of each component and divides by the standard
deviation :math:`\sqrt{v_k}`: :math:`v_k = (\tau^{-2} + w \lambda_k)^{-1}` with the scale
:math:`\tau` of the walk, the information :math:`w` per time, the share :math:`\lambda_k` of the
component, and the slope :math:`g_k` of the log-likelihood along it. So the means follow the scale,
and the coordinates do not have to. Only coordinates change: densities, draws and
modes are those of the walk.
"""

# PyTensor generates most of its functions, with annotations that say None.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.logprob.transforms import Transform

from bayesrank.models.observations import as_data

Array = NDArray[np.float64]


def path_matrix(n_times: int) -> Array:
    """Return the matrix that turns increments into deviations from the mean of the path.

    Examples
    --------
    >>> path_matrix(3)
    array([[-0.66666667, -0.33333333],
           [ 0.33333333, -0.33333333],
           [ 0.33333333,  0.66666667]])
    """
    sums = np.tri(n_times, n_times - 1, k=-1)
    return sums - sums.mean(axis=0)


def walk_increments(
    name: str,
    scale: Any,
    durations: Array,
    information: Array,
    slopes: Array,
    *,
    dims: tuple[str, str],
) -> Any:
    r"""State independent normal increments of walks, with variance :math:`\tau^2 \Delta t`.

    `scale` is :math:`\tau`, the standard deviation of a walk over a unit of time, and `durations`,
    (step,), are :math:`\Delta t`. `information`, (system,), is roughly that of the data on each
    state, as an inverse variance, and `slopes`, (system, time), are those of the log-likelihood by
    each state, at a constant path: both change only the efficiency of sampling.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model(coords={"system": ["a"], "step": [1, 2]}):
    ...     steps = walk_increments(
    ...         "steps", 0.5, np.ones(2), np.ones(1), np.zeros((1, 3)), dims=("system", "step")
    ...     )
    >>> pm.draw(steps, random_seed=1).shape
    (1, 2)
    """
    roots = np.sqrt(durations)
    paths = path_matrix(len(durations) + 1) * roots
    shares, components = np.linalg.eigh(paths.T @ paths)
    # They are parameters of the distribution because a transform has no other inputs.
    return pm.CustomDist(
        name,
        as_data(f"{name}_scale", scale, None),
        pm.Data(f"{name}_root_duration", roots, dims=dims[1]),
        pm.Data(f"{name}_information", information, dims=dims[0]),
        pm.Data(f"{name}_slope", slopes @ paths @ components),
        pm.Data(f"{name}_share", shares),
        pm.Data(f"{name}_component", components),
        logp=_logp,
        dist=_dist,
        support_point=_at_zero,
        signature="(),(s),(),(k),(k),(s,k)->(s)",
        transform=_Whitened(),
        class_name="WalkIncrements",
        dims=dims,
    )


class _Whitened(Transform):
    """Turn increments into standardised components of the path."""

    name = "whitened"
    ndim_supp = 1

    def forward(self, value: Any, *inputs: Any) -> Any:
        roots, components, middle, spread = self._parts(inputs)
        return ((value / roots) @ components - middle) / spread

    def backward(self, value: Any, *inputs: Any) -> Any:
        roots, components, middle, spread = self._parts(inputs)
        return ((value * spread + middle) @ components.T) * roots

    def log_jac_det(self, value: Any, *inputs: Any) -> Any:
        roots, _, _, spread = self._parts(inputs)
        return pt.log(spread).sum(-1) + pt.log(roots).sum()

    @staticmethod
    def _parts(inputs: tuple[Any, ...]) -> tuple[Any, Any, Any, Any]:
        # PyMC passes the size before the parameters and the random generator after them.
        _, scale, roots, information, slopes, shares, components, _ = inputs
        variance = 1.0 / (scale ** (-2) + information[..., np.newaxis] * shares)
        return roots, components, variance * slopes, pt.sqrt(variance)


def _logp(
    value: Any, scale: Any, roots: Any, information: Any, slopes: Any, shares: Any, components: Any
) -> Any:
    sd = scale[..., np.newaxis] * roots
    return (-0.5 * (value / sd) ** 2 - pt.log(sd)).sum(-1) - 0.5 * np.log(2 * np.pi) * (
        value.shape[-1]
    )


def _dist(
    scale: Any, roots: Any, information: Any, slopes: Any, shares: Any, components: Any, size: Any
) -> Any:
    shape = pt.concatenate([information.shape, roots.shape])
    return scale * roots * pm.Normal.dist(size=shape)


def _at_zero(_rv: Any, _size: Any, _scale: Any, roots: Any, information: Any, *_: Any) -> Any:
    # Without use of the variable, whose operation has a different class in every model.
    return pt.zeros(pt.concatenate([information.shape, roots.shape]))
