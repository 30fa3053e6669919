"""Priors on the latent scores of the likelihood-based rankers.

Parameters are PyMC's. Scores of paired-comparison and Luce models are centred, so a location shared
by all systems has no effect on them. Importing this module does not import PyMC.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.errors import DataError
from bayesrank.validation import numeric

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

    from bayesrank.responses import Responses

# The hierarchical prior of questions, see :mod:`bayesrank.models.pooled_priors`: what it is called.
HIERARCHICAL = "hierarchical"
# With two degrees of freedom the scale is known within a factor of 12 (95 % from 0.52 s to 6.3 s),
# so that a handful of questions is enough to learn it.
POOLED_DF = 2.0
# Standard deviation of the mean easiness of all questions, in logits: mean accuracies from 0.7 % to
# 99.3 % are within two of them.
LEVEL_SD = 2.5


class NormalPrior(NamedTuple):
    """A normal prior as the kernels take it: means, and a precision, 0 for a flat prior."""

    mean: NDArray[np.float64] | float = 0.0
    precision: Any = 0.0

    def gradient(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the gradient of the log-density, of the shape of `x`."""
        return self.precision * (self.mean - x)


FLAT = NormalPrior()


@dataclass(frozen=True)
class Prior:
    """The interface of priors for the factories and the kernels.

    Its text is the form that :func:`parse_prior` reads, where there is one.
    """

    def quadratic(self) -> NormalPrior | None:
        """Return mean and precision of a normal prior, or None for any other shape."""
        return None

    def kinds(self, n_systems: int) -> NDArray[np.float64]:
        """Return a number for each system, equal if the prior does not tell systems apart."""
        normal = self.quadratic()
        return np.broadcast_to(0.0 if normal is None else normal.mean, n_systems)

    def resolve(self, data: Any) -> "Prior":
        """Return the prior with its data-dependent values filled in."""
        return self

    def _check_finite(self, name: str) -> None:
        value = getattr(self, name)
        if not np.isfinite(value):
            raise ValueError(f"{name} must be finite; got {value!r}")

    def _check_positive(self, name: str) -> None:
        value = getattr(self, name)
        if not value > 0 or not np.isfinite(value):
            raise ValueError(f"{name} must be positive and finite; got {value!r}")


@dataclass(frozen=True)
class Normal(Prior):
    """Normal prior.

    Parameters
    ----------
    mu : float, default 0
        Mean, in logits. Only differences of scores that sum to zero are
        identified, so it has no effect on them.
    sigma : float, default 1
        Standard deviation, in logits.

    Raises
    ------
    ValueError
        If `sigma` is not positive.

    Examples
    --------
    >>> str(Normal(0, 2))
    'normal(0, 2)'
    """

    mu: float = 0.0
    sigma: float = 1.0

    def __post_init__(self) -> None:
        self._check_finite("mu")
        self._check_positive("sigma")

    def __str__(self) -> str:
        return f"normal({_shortest(self.mu)}, {_shortest(self.sigma)})"

    def quadratic(self) -> NormalPrior:
        """Return mean and precision."""
        return NormalPrior(np.asarray(self.mu, dtype=np.float64), self.sigma**-2)


@dataclass(frozen=True)
class Laplace(Prior):
    """Laplace prior, whose MAP is a lasso-like fit.

    Parameters
    ----------
    mu : float, default 0
        Location, in logits. Only differences of scores that sum to zero are
        identified, so it has no effect on them.
    b : float, default 1
        Scale, in logits.

    Raises
    ------
    ValueError
        If `b` is not positive.
    """

    mu: float = 0.0
    b: float = 1.0

    def __post_init__(self) -> None:
        self._check_finite("mu")
        self._check_positive("b")

    def __str__(self) -> str:
        return f"laplace({_shortest(self.mu)}, {_shortest(self.b)})"


@dataclass(frozen=True)
class Cauchy(Prior):
    """Cauchy prior, for a few systems far from the rest.

    Parameters
    ----------
    alpha : float, default 0
        Location, in logits. Only differences of scores that sum to zero are
        identified, so it has no effect on them.
    beta : float, default 1
        Scale, in logits.

    Raises
    ------
    ValueError
        If `beta` is not positive.
    """

    alpha: float = 0.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        self._check_finite("alpha")
        self._check_positive("beta")

    def __str__(self) -> str:
        return f"cauchy({_shortest(self.alpha)}, {_shortest(self.beta)})"


@dataclass(frozen=True)
class Flat(Prior):
    """Improper uniform prior; prior predictive draws under it raise."""

    def __str__(self) -> str:
        return "flat"

    def quadratic(self) -> NormalPrior:
        """Return a zero mean with a zero precision."""
        return NormalPrior(np.zeros(()))


@dataclass(frozen=True, eq=False)
class Empirical(Prior):
    """Normal prior centred on earlier outcomes, such as greedy decodings.

    The mean of each system is the centred logit of its accuracy in the earlier outcomes, clipped to
    [eps, 1 - eps].

    Parameters
    ----------
    prior_outcomes : array_like of shape (system, question, d) or (system, question), optional
        Earlier outcomes 0 or 1, -1 or NaN for missing. Those of the data by default; where all
        systems share them, no system is expected to be better.
    sigma : float, default 1
        Standard deviation around the mean, in logits.
    eps : float, default 0.01
        Accuracies are clipped to [eps, 1 - eps].

    Raises
    ------
    ValueError
        If `sigma` is not positive or `eps` is not in (0, 1/2).
    DataError
        If `prior_outcomes` has another shape, other values, or nothing observed.

    Examples
    --------
    >>> str(Empirical()), str(Empirical([[1, 0], [0, 0]]))
    ('empirical(1, 0.01)', 'empirical(1, 0.01, outcomes 41e57a81)')
    """

    prior_outcomes: ArrayLike | None = None
    sigma: float = 1.0
    eps: float = 0.01

    def __post_init__(self) -> None:
        self._check_positive("sigma")
        if not 0 < self.eps < 0.5:
            raise ValueError(f"eps must be in (0, 0.5); got {self.eps!r}")
        if self.prior_outcomes is not None:
            _check_prior_outcomes(self.prior_outcomes)

    def __str__(self) -> str:
        numbers = f"{_shortest(self.sigma)}, {_shortest(self.eps)}"
        if self.prior_outcomes is None:
            return f"empirical({numbers})"
        # Text cannot hold the outcomes, but tells priors with different ones apart.
        own = np.ascontiguousarray(self.prior_outcomes, dtype=np.float64)
        return f"empirical({numbers}, outcomes {hashlib.sha256(own.tobytes()).hexdigest()[:8]})"

    def __eq__(self, other: object) -> bool:
        # Arrays do not compare to one truth value.
        if not isinstance(other, Empirical):
            return NotImplemented
        numbers = (self.sigma, self.eps) == (other.sigma, other.eps)
        return numbers and np.array_equal(
            np.asarray(self.prior_outcomes, dtype=np.float64),  # None is NaN
            np.asarray(other.prior_outcomes, dtype=np.float64),
            equal_nan=True,
        )

    def __hash__(self) -> int:
        return hash((Empirical, self.sigma, self.eps))

    def resolve(self, data: "Responses") -> Prior:
        """Return this prior with the earlier outcomes of the data, if it has none of its own.

        Parameters
        ----------
        data : Responses
            What is ranked.

        Returns
        -------
        Prior

        Raises
        ------
        DataError
            If neither has earlier outcomes, or those of this prior are of other numbers of systems.
        """
        if self.prior_outcomes is not None:
            n_systems = len(np.asarray(self.prior_outcomes))
            if n_systems != len(data.systems):
                raise DataError(
                    f"prior_outcomes must have one row per system, {len(data.systems)}; got "
                    f"{n_systems}"
                )
            return self
        outcomes = getattr(data, "prior_sets", None)
        if outcomes is None:
            raise DataError(
                "prior_outcomes must be given, with the data or the prior, for an empirical prior; "
                "got None"
            )
        own = np.broadcast_to(outcomes, (len(data.systems), *outcomes.shape[1:]))
        return Empirical(own, self.sigma, self.eps)

    def quadratic(self) -> NormalPrior:
        """Return the centred logits of the clipped accuracies, and the precision."""
        if self.prior_outcomes is None:
            raise DataError("prior_outcomes must be given for an empirical prior; got None")
        outcomes = np.asarray(self.prior_outcomes)
        outcomes = outcomes.reshape(len(outcomes), -1)
        right = np.count_nonzero(outcomes == 1, axis=1)
        seen = np.count_nonzero(outcomes >= 0, axis=1)
        accuracy = np.clip(right / np.maximum(seen, 1), self.eps, 1 - self.eps)
        logit = np.where(seen > 0, np.log(accuracy) - np.log1p(-accuracy), np.nan)
        # A system without earlier outcomes gets the mean of the others.
        return NormalPrior(np.nan_to_num(logit - np.nanmean(logit)), self.sigma**-2)


@dataclass(frozen=True)
class Dirichlet(Prior):
    """Dirichlet prior of the outcome categories of a question, for ``bayes``.

    Parameters
    ----------
    counts : float or sequence of float, default 1
        Pseudo-trials: one number for all categories, or one for each. 1 is the uniform prior, 0.5
        that of Jeffreys.

    Raises
    ------
    ValueError
        If a count is not positive and finite.

    Examples
    --------
    >>> str(Dirichlet((2, 1)))
    'dirichlet(2, 1)'
    """

    counts: float | Sequence[float] = 1.0

    def __post_init__(self) -> None:
        try:
            given = np.atleast_1d(np.asarray(self.counts, dtype=np.float64))
        except (TypeError, ValueError):
            given = np.zeros(0)
        if given.ndim != 1 or not given.size or not ((given > 0) & (given < np.inf)).all():
            raise ValueError(
                f"counts of a Dirichlet prior must be positive finite numbers; got {self.counts!r}"
            )
        object.__setattr__(self, "counts", tuple(given.tolist()))

    def __str__(self) -> str:
        return f"dirichlet({', '.join(map(_shortest, cast('tuple[float, ...]', self.counts)))})"

    def of_categories(self, n_categories: int) -> NDArray[np.float64]:
        """Return the count of each category.

        Parameters
        ----------
        n_categories : int
            Number of categories.

        Returns
        -------
        numpy.ndarray of shape (category,)

        Raises
        ------
        ValueError
            If there is not one number, or one for each category.
        """
        counts = np.array(self.counts)
        if counts.size not in (1, n_categories):
            raise ValueError(
                f"prior must have one count, or one for each of {n_categories} categories; got "
                f"{self}"
            )
        return np.broadcast_to(counts, n_categories)

    def mean(self, weights: NDArray[np.float64]) -> float:
        """Return the prior mean of the worth of an answer, by weights of shape (category,)."""
        return float(np.average(weights, weights=self.of_categories(len(weights))))


@dataclass(frozen=True)
class Custom(Prior):
    """Prior by its log-density.

    Parameters
    ----------
    logp : callable
        Takes the PyTensor vector of scores, of shape (system,), and returns their log-density up to
        a constant: a scalar, or one number for each score, which are added. A penalty is minus a
        log-density. Prior predictive draws under it raise.

    Raises
    ------
    ValueError
        If `logp` is not callable; and, where a model is built with it, if it rises without bound as
        a penalty does.

    Examples
    --------
    >>> str(Custom(lambda score: -(score**4)))
    'custom(<lambda>)'
    """

    logp: "Callable[[TensorVariable], TensorVariable]"

    def __post_init__(self) -> None:
        if not callable(self.logp):
            raise ValueError(
                f"logp must be a function from scores to their log-density; got {self.logp!r}"
            )

    def kinds(self, n_systems: int) -> NDArray[np.float64]:
        """Return the log-density where one score differs from the others, for each system."""
        from pytensor import tensor as pt
        from pytensor.compile.maker import function

        score: Any = pt.dvector("score")
        density = function([score], pt.sum(self.logp(score)), mode="FAST_COMPILE")
        # Sums in another order differ by rounding.
        return np.array([density(0.3 + one) for one in np.eye(n_systems)]).round(9)

    def __str__(self) -> str:
        return f"custom({getattr(self.logp, '__name__', 'logp')})"


def _shortest(number: float) -> str:
    """Write a number so that it reads back as itself."""
    text = f"{number:g}"
    return text if float(text) == number else repr(float(number))


def _check_prior_outcomes(prior_outcomes: ArrayLike) -> None:
    outcomes = numeric(prior_outcomes, "prior_outcomes")
    if outcomes.ndim not in (2, 3):
        raise DataError(
            "prior_outcomes must have shape (system, question, d) or (system, question); got "
            f"{outcomes.shape}"
        )
    valid = np.isin(outcomes, (-1, 0, 1)) | np.isnan(outcomes)
    if not valid.all():
        raise DataError(
            "prior_outcomes must be 0 or 1, or -1 for missing, for an empirical prior; got "
            f"{outcomes[~valid][0]:g}"
        )
    if not (outcomes >= 0).any():
        raise DataError("prior_outcomes must have at least one observed outcome; got none")


type PriorLike = Prior | float | str
type DirichletLike = PriorLike | Sequence[float]

# Name in text: constructor and how many numbers it takes.
_NAMED: dict[str, tuple[Callable[..., Prior], float]] = {
    "normal": (Normal, 2),
    "laplace": (Laplace, 2),
    "cauchy": (Cauchy, 2),
    "flat": (Flat, 0),
    "empirical": (lambda *numbers: Empirical(None, *numbers), 2),
    "dirichlet": (lambda *numbers: Dirichlet(numbers or 1.0), np.inf),
}


@lru_cache(maxsize=64)
def parse_prior(text: str) -> Prior:
    """Read a prior from text.

    Parameters
    ----------
    text : str
        ``normal(mu, sigma)``, ``laplace(mu, b)``, ``cauchy(alpha, beta)``, ``flat``,
        ``empirical(sigma, eps)``, ``dirichlet(count, ...)``, or one number, the standard deviation
        of a normal. Parameters may be left out at the end; case does not matter.

    Returns
    -------
    Prior

    Raises
    ------
    ValueError
        If the text has another form.

    Examples
    --------
    >>> parse_prior("laplace(0, 2)")
    Laplace(mu=0.0, b=2.0)
    """
    text = text.lower()
    number = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
    if re.fullmatch(rf"\s*{number}\s*", text):
        return Normal(0.0, float(text))
    match = re.fullmatch(r"\s*([a-z]+)\s*(?:\(\s*([^()]*?)\s*\))?\s*", text)
    inside = match[2] if match else None
    parts = [part.strip() for part in inside.split(",")] if inside else []
    if (
        match is None
        or match[1] not in _NAMED
        or not all(re.fullmatch(number, part) for part in parts)
        or len(parts) > _NAMED[match[1]][1]
    ):
        raise ValueError(
            f"prior must be a number or one of {', '.join(_NAMED)} with its numbers in "
            f"parentheses; got {text!r}"
        )
    return _NAMED[match[1]][0](*map(float, parts))


def as_prior(prior: PriorLike, name: str = "prior") -> Prior:
    """Return a prior on scores: a number is the standard deviation of a normal, text is parsed.

    Parameters
    ----------
    prior : prior, float or str
        What was given.
    name : str, default "prior"
        The argument that it was given as, for messages.

    Returns
    -------
    Prior

    Raises
    ------
    ValueError
        If it is neither a prior, a number nor text of one.

    Examples
    --------
    >>> as_prior(2.0)
    Normal(mu=0.0, sigma=2.0)
    """
    try:
        if isinstance(prior, str):
            prior = parse_prior(prior)
        if isinstance(prior, Real) and not isinstance(prior, bool):
            return Normal(0.0, float(prior))
    except ValueError as error:
        reason = str(error)
        if reason.startswith("prior "):
            raise ValueError(name + reason.removeprefix("prior")) from error
        raise ValueError(f"{name} must have other numbers; got {prior!r}: {reason}") from error
    if isinstance(prior, Dirichlet):
        raise ValueError(f"{name} must be a prior on scores; got {prior}, which is for bayes")
    if isinstance(prior, Prior):
        return prior
    raise ValueError(f"{name} must be a prior of bayesrank.priors, a number or text; got {prior!r}")


def as_dirichlet(prior: DirichletLike) -> Dirichlet:
    """Return a Dirichlet prior: numbers are its counts, text is parsed.

    Parameters
    ----------
    prior : Dirichlet, float, sequence of float or str
        What was given.

    Returns
    -------
    Dirichlet

    Raises
    ------
    ValueError
        If it is neither a Dirichlet prior, numbers nor text of one.

    Examples
    --------
    >>> as_dirichlet("dirichlet(2, 1)") == as_dirichlet([2, 1])
    True
    """
    if isinstance(prior, str):
        # One number in text is a count here, and no standard deviation. Results of version 0.1.0
        # say that they have no prior, which was one of each category.
        given = Dirichlet(1.0) if prior == "none" else parse_prior(prior)
        prior = given.sigma if isinstance(given, Normal) and "n" not in prior.lower() else given
    if isinstance(prior, Dirichlet):
        return prior
    if isinstance(prior, Prior | bool) or callable(prior):
        raise ValueError(f"prior must be Dirichlet counts for bayes; got {prior!s}")
    return Dirichlet(prior)
