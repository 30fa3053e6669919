"""A prior for likelihoods that weights greedy runs by their agreement with the trials."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.entrance import as_responses
from bayesrank.errors import DataError
from bayesrank.priors import Empirical, Normal, NormalPrior, Prior
from bayesrank.ranking import point_estimate, rank
from bayesrank.responses import Responses
from bayesrank.studies.adaptive import (
    condition_worths,
    greedy_outcomes,
    random_effects_weight,
    shrink,
    whole_answers,
)
from bayesrank.studies.configurations import find_row
from bayesrank.studies.subsets import with_outcomes

FloatArray = NDArray[np.float64]

# Prior for the fits of single conditions, which keeps scores of perfect systems finite.
_WIDE = Normal(0.0, 3.0)


@dataclass(frozen=True, eq=False)  # arrays do not compare to one truth value
class Commensurate(Empirical):
    """The prior of a method, updated by the weighted scores of greedy runs.

    :func:`commensurate_prior` makes it. Factories and kernels take it as an empirical prior.

    Parameters
    ----------
    mean : numpy.ndarray of shape (system,)
        Prior means of the scores.
    between_sd : float
        Estimated standard deviation between conditions, in units of the scores.
    weight : float
        Share of the greedy score in its weighted mean with the sampled score, between 0 and 1.
    """

    mean: FloatArray = field(default_factory=lambda: np.zeros(0))
    between_sd: float = 0.0
    weight: float = 0.0

    def __str__(self) -> str:
        return f"commensurate({self.sigma:.4g})"

    def resolve(self, data: Any) -> Prior:
        """Return this prior, if it has a mean for each of the systems."""
        if len(data.systems) != len(self.mean):
            raise DataError(
                f"prior must be for the {len(data.systems)} systems of the data; got one for "
                f"{len(self.mean)}"
            )
        return self

    def quadratic(self) -> NormalPrior:
        """Return means and precision."""
        return NormalPrior(self.mean, self.sigma**-2)


def commensurate_prior(
    data: Responses | ArrayLike, method: str, *, random_seed: int | None = 0, **options: Any
) -> Commensurate:
    r"""Build a commensurate prior from greedy runs.

    The same method is fitted to the greedy outcomes and to the sampled ones, which gives system l
    the scores :math:`m_l` and :math:`t_l`. Conditions differ by a common shift of all systems,
    which is subtracted, and by a shift of each system with variance :math:`\omega^2`, learned from

    .. math:: m_l - t_l \sim N(c, v + \omega^2), \qquad w = \frac{v}{v + \omega^2}

    as in :func:`adaptive_greedy`. The weight w of the greedy scores is integrated over the
    variance of the differences. The noise v of the trials is measured on the mean worths and
    converted to scores by the slope of scores on mean worths. So v is the noise of trials of the
    same questions, even if a likelihood takes the many comparisons of a trial as independent.

    The prior is the default prior of the method, times a normal density around the greedy scores.
    Its precision, relative to the curvature of the likelihood, gives them the weight w. Shifts of
    systems are rounded to whole right answers, the resolution of the data; fractions would break
    every tie if the conditions disagree. If all shifts round to zero, this is the default prior.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        Outcomes with greedy outcomes (`prior_outcomes`).
    method : str
        The method or published configuration for the prior; it must have a likelihood.
    random_seed : int or None, default 0
        Seed of the draws that measure the curvature; None for one that the data determine.
    **options
        Options of the method.

    Returns
    -------
    Commensurate
        For ``rank(data, method, backend="map" or "nuts", prior=...)``.

    Raises
    ------
    DataError
        If the data have no greedy outcomes.
    ValueError
        If the method has no prior on its scores.

    References
    ----------
    .. [1] B. P. Hobbs, B. P. Carlin, S. J. Mandrekar and D. J. Sargent. Hierarchical commensurate
       and power prior models for adaptive incorporation of historical information in clinical
       trials. Biometrics 67 (2011). https://doi.org/10.1111/j.1541-0420.2011.01564.x

    Examples
    --------
    >>> from bayesrank.datasets import load_olympiad
    >>> prior = commensurate_prior(load_olympiad("BrUMO'25"), "rasch")
    >>> prior.mean.shape
    (20,)
    """
    data = as_responses(data, "to study trials and questions")
    row, _, preset_options = find_row(method)
    own = None if row.default_prior is None else row.default_prior.quadratic()
    if "map" not in row.backends or own is None:
        raise ValueError(f"method must have a prior on its scores; got {method!r}")
    worths = condition_worths(data)
    earlier = with_outcomes(data, greedy_outcomes(data))
    settings: dict[str, Any] = {"backend": "map", "prior": _WIDE, **preset_options, **options}
    greedy = point_estimate(earlier, row.name, **settings)
    tree = rank(data, row.name, random_seed=random_seed, calibration="none", **settings)
    sampled = tree["ranking"].to_dataset()["score"].values
    variance = tree["posterior"].to_dataset()["score"].var(("chain", "draw")).values
    curvature = float((1.0 / variance).mean())

    shrunk = shrink(*worths)
    slope = _slope(shrunk.worth - shrunk.shift, sampled)
    # Without outcomes a score is that of the prior, and does not inform the weight.
    seen = ~np.isnan(worths[1]).all(axis=(1, 2))
    noise = np.asarray((slope * shrunk.noise_sd) ** 2)
    spread = np.asarray((greedy - sampled)[seen].var(ddof=1) if seen.sum() > 1 else np.inf)
    weight = float(random_effects_weight(noise, spread, max(int(seen.sum()), 2)))
    between_sd = float(np.sqrt(np.maximum(spread - noise, 0.0)))

    own_mean, own_precision = own
    precision = curvature * weight / (1.0 - weight)
    # Contribution of a right answer to the gradient of the log-likelihood: 1 if the number of right
    # answers is sufficient for the score, more if an answer enters many comparisons.
    items = row.family == "item response"
    answer = 1.0 if items else curvature * slope / data.trials.sum(axis=1).mean()
    pull = precision * np.where(seen, greedy - greedy[seen].mean(), 0.0)
    steps = whole_answers(pull / answer) if weight > 0 else np.zeros_like(pull)
    if not steps.any():
        mean = np.full(sampled.shape, own_mean)
        return Commensurate(
            sigma=own_precision**-0.5, mean=mean, between_sd=between_sd, weight=weight
        )
    total = own_precision + precision
    mean = (own_precision * own_mean + precision * sampled.mean() + answer * steps) / total
    return Commensurate(sigma=total**-0.5, mean=mean, between_sd=between_sd, weight=weight)


def _slope(worth: FloatArray, score: FloatArray) -> float:
    """Return the slope of scores on mean worths, 0 if these are all equal."""
    centred = worth - worth.mean()
    squares = float(centred @ centred)
    return max(float(centred @ score) / squares, 0.0) if squares > 0 else 0.0
