r"""Gaussian random walks in coordinates in which the posterior is nearly spherical.

A walk over N times has N - 1 increments per system. Where the data say little about them, scaled
increments are independent of the scale of the walk; where the data say much, the increments
themselves are. The transform here serves both ends and everything between: it turns increments into
the principal components of the path, in which prior and information are both diagonal, takes off
from each the mean :math:`v_k g_k` and divides by the standard deviation :math:`\sqrt{v_k}` that
prior and data leave it: :math:`v_k = (\tau^{-2} + w \lambda_k)^{-1}` with the scale :math:`\tau` of
the walk, the information :math:`w` per time, the component's share :math:`\lambda_k`, and
:math:`g_k`, how steeply the log-likelihood rises along it. The means move with the scale; had the
coordinates to do so, all of them would hold it back. Only coordinates change: densities, draws and
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

from bayesrank.models.checked_data import as_data

Array = NDArray[np.float64]


def path_matrix(n_times: int) -> Array:
    """Return the matrix that turns increments into deviations from the mean of the path.

    Parameters
    ----------
    n_times : int
        Number of times.

    Returns
    -------
    numpy.ndarray of shape (n_times, n_times - 1)

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

    Parameters
    ----------
    name : str
        Name of the random variable.
    scale : tensor of shape ()
        :math:`\tau`, the standard deviation of a walk over a unit of time.
    durations : numpy.ndarray of shape (step,)
        :math:`\Delta t`, positive.
    information : numpy.ndarray of shape (system,)
        About how much the data say on the state of each system at one time, as an inverse variance.
    slopes : numpy.ndarray of shape (system, time)
        About how steeply the log-likelihood rises with each state of a path that stands still. Like
        the information it changes how well the walk is sampled, not what is sampled.
    dims : tuple of str
        Names of the dims of systems and steps.

    Returns
    -------
    pytensor.tensor.TensorVariable
        The random variable, of shape (system, step).

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
    # They are parameters of the distribution because a transform sees nothing else.
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
    """Turn increments into components of the path, less their means, over standard deviations."""

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
    # Without mention of the variable, whose operation is of a class of its own in every model.
    return pt.zeros(pt.concatenate([information.shape, roots.shape]))
