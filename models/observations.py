"""The observations of factories: checked data, counts by cell, and distributions of counts.

Counts of comparisons are not always whole: an average over all cross-trial pairs, a tie counted as
half a win, a weighted battle. ``pm.Binomial`` and ``pm.Multinomial`` truncate such observations
silently; :class:`BinomialReal` and :class:`MultinomialReal` do not.
"""

# PyTensor generates most of its functions, with annotations that say None.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false
# pyright: reportOptionalMemberAccess=false, reportPrivateImportUsage=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import ArrayLike, NDArray
from pytensor.graph.basic import Variable

from bayesrank.errors import DataError
from bayesrank.responses import Responses
from bayesrank.validation import check_options


def checks_data[**P](factory: Callable[P, pm.Model]) -> Callable[P, pm.Model]:
    """Make a factory raise DataError if its first argument is not of the annotated type.

    Options are checked by :mod:`bayesrank.validation`.

    Examples
    --------
    >>> from bayesrank import Responses
    >>> @checks_data
    ... def empty(responses: Responses) -> pm.Model:
    ...     return pm.Model()
    >>> empty([[0, 1]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    bayesrank.errors.DataError: responses must be Responses for empty; got list: build them with ...
    """
    name, kinds = next(iter(factory.__annotations__.items()))
    known = " or ".join(kind.__name__ for kind in getattr(kinds, "__args__", (kinds,)))

    @wraps(factory)
    def checked(*args: P.args, **kwargs: P.kwargs) -> pm.Model:
        given = args[0] if args else kwargs.get(name)
        if not isinstance(given, kinds):
            whole = "Responses(outcomes)"
            remedy = whole if "Responses" in known else f"{whole}.comparisons"
            raise DataError(
                f"{name} must be {known} for {factory.__name__}; got {type(given).__name__}: "
                f"build them with {remedy}"
            )
        check_options(factory, kwargs)
        return factory(*args, **kwargs)

    return checked


def as_data(name: str, value: Any, dims: str | Sequence[str] | None) -> Any:
    """Register an array as named data, so that compiled code takes it as an input.

    Tensors and None are returned unchanged, a number becomes a constant. `dims` are ignored if the
    array has another number of dims.
    """
    if value is None or isinstance(value, Variable):
        return value
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 0:
        return pt.constant(array)
    dims = (dims,) if isinstance(dims, str) else dims
    return pm.Data(name, array, dims=dims if dims and len(dims) == array.ndim else None)


@dataclass(frozen=True)
class Cells:
    """Counts of right answers, one per system and question with a trial.

    `coords` are labels of the dims ``system``, ``question`` and ``cell``; `system` and `question`,
    (cell,), are positions.
    """

    coords: dict[str, list[str]]
    system: NDArray[np.intp]
    question: NDArray[np.intp]
    correct: NDArray[np.int64]
    trials: NDArray[np.int64]

    def tables(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return right answers and trials by system and question, 0 where a cell is missing."""
        tables = np.zeros((2, len(self.coords["system"]), len(self.coords["question"])))
        tables[:, self.system, self.question] = self.correct, self.trials
        return tables[0], tables[1]

    def indices(self) -> tuple[Any, Any]:
        """Register the positions of systems and questions as data of the current model."""
        return (
            pm.Data("cell_system", self.system, dims="cell"),
            pm.Data("cell_question", self.question, dims="cell"),
        )


def cells_of(responses: Responses, *, informative: bool = False) -> Cells:
    """Count right answers per system and question; DataError unless outcomes are binary.

    If `informative`, without the questions that every system answered right, or wrong, in every
    trial: they have no information on the order of the systems, and their difficulty is infinite
    without a proper prior. DataError if no question is left.

    Examples
    --------
    >>> from bayesrank import Responses
    >>> cells = cells_of(Responses([[1, 0, -1], [1, 1, 0]]), informative=True)
    >>> cells.coords["cell"]
    ['system 1 | question 2', 'system 2 | question 2']
    """
    correct, trials = responses.binary_counts
    kept = np.full(correct.shape[1], True)
    if informative:
        kept = informative_questions(correct, trials)
        if not kept.any():
            raise DataError(
                "outcomes must differ on one question at least for a flat difficulty_prior; got "
                "questions that are always right or always wrong"
            )
    correct, trials = correct[:, kept], trials[:, kept]
    systems = list(responses.systems)
    questions = [name for name, stays in zip(responses.questions, kept, strict=True) if stays]
    system, question = np.nonzero(trials)
    names = [f"{systems[i]} | {questions[m]}" for i, m in zip(system, question, strict=True)]
    coords = {"system": systems, "question": questions, "cell": names}
    return Cells(coords, system, question, correct[system, question], trials[system, question])


def informative_questions(
    correct: NDArray[np.int64], trials: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which questions of tables (system, question) have right and wrong answers."""
    return (correct.sum(axis=0) > 0) & ((trials - correct).sum(axis=0) > 0)


class BinomialReal:
    r"""Binomial log-probability of counts that need not be whole.

    .. math:: \log\binom{n}{k} + k \log p + (n - k) \log(1 - p)

    with the binomial coefficient continued by gamma functions. On whole counts it is
    ``pm.Binomial``; scaling n and k scales the likelihood's dependence on p.

    Parameters
    ----------
    name : str
        Name of the random variable.
    n : array_like or tensor of shape (...)
        Totals, not negative. An array becomes the named data ``<name>_n``.
    logit_p : array_like or tensor of shape (...)
        Logit of the success probability.
    observed : array_like or tensor of shape (...), optional
        Successes. An array becomes the named data ``<name>_observed``.
    dims : str or sequence of str, optional
        Names of the dims.

    Returns
    -------
    pytensor.tensor.TensorVariable
        The random variable. A draw of a fractional total rounds it up or down at random, with the
        total as its mean.

    Examples
    --------
    >>> import pymc as pm
    >>> from bayesrank.models.observations import BinomialReal
    >>> with pm.Model():
    ...     wins = BinomialReal("wins", n=[2.5, 4.0], logit_p=0.0, observed=[1.5, 2.0])
    """

    def __new__(  # noqa: D102 - a call makes a random variable, as everywhere in PyMC
        cls,
        name: str,
        *,
        n: Any,
        logit_p: Any,
        observed: Any = None,
        dims: str | Sequence[str] | None = None,
    ) -> Any:
        _check_counts(name, observed, n)
        return pm.CustomDist(
            name,
            as_data(f"{name}_n", n, dims),
            pt.as_tensor(logit_p),
            logp=_binomial_logp,
            dist=_binomial_dist,
            signature="(),()->()",
            class_name="BinomialReal",
            observed=as_data(f"{name}_observed", observed, dims),
            dims=dims,
        )


class MultinomialReal:
    r"""Multinomial log-probability of rows of counts that need not be whole.

    .. math:: \log\Gamma(n + 1) + \sum_c \bigl(k_c \log p_c - \log\Gamma(k_c + 1)\bigr)

    Parameters
    ----------
    name : str
        Name of the random variable.
    log_p : tensor of shape (row, outcome)
        Logarithms of the outcome probabilities, which must sum to one in every row. An outcome
        of probability zero (minus infinity) is allowed where its count is zero.
    observed : array_like or tensor of shape (row, outcome)
        Counts. An array becomes the named data ``<name>_observed``, and its totals ``<name>_n``.
    dims : sequence of str, optional
        Names of the dims.

    Returns
    -------
    pytensor.tensor.TensorVariable
        The random variable. A draw of a fractional total rounds it up or down at random, with the
        total as its mean.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from bayesrank.models.observations import MultinomialReal
    >>> with pm.Model():
    ...     log_p = np.log([[0.5, 0.25, 0.25]])
    ...     results = MultinomialReal("results", log_p=log_p, observed=[[1.5, 1.0, 0.5]])
    """

    def __new__(  # noqa: D102 - a call makes a random variable, as everywhere in PyMC
        cls,
        name: str,
        *,
        log_p: Any,
        observed: Any,
        dims: Sequence[str] | None = None,
    ) -> Any:
        n = observed.sum(-1) if isinstance(observed, Variable) else np.sum(observed, axis=-1)
        _check_counts(name, observed, np.inf)
        return pm.CustomDist(
            name,
            as_data(f"{name}_n", n, None if dims is None else dims[:-1]),
            pt.as_tensor(log_p),
            logp=_multinomial_logp,
            dist=_multinomial_dist,
            signature="(),(k)->(k)",
            class_name="MultinomialReal",
            observed=as_data(f"{name}_observed", observed, dims),
            dims=dims,
        )


def _check_counts(name: str, observed: Any, largest: Any) -> None:
    """Raise for impossible counts, if they are known already."""
    if observed is None or isinstance(observed, Variable) or isinstance(largest, Variable):
        return
    counts: ArrayLike = np.asarray(observed, dtype=np.float64)
    wrong = ~((counts >= 0.0) & (counts <= np.asarray(largest, dtype=np.float64)))
    if np.any(wrong):
        raise ValueError(
            f"observed must be between 0 and n; got {np.asarray(counts)[wrong].flat[0]} for {name}"
        )


def _log_coefficient(value: Any, n: Any) -> Any:
    """Return the log binomial coefficient, minus infinity for an impossible count."""
    possible = (value >= 0.0) & (value <= n)
    coefficient = pt.gammaln(n + 1.0) - pt.gammaln(value + 1.0) - pt.gammaln(n - value + 1.0)
    return pt.switch(possible, coefficient, -np.inf)


def _binomial_logp(value: Any, n: Any, logit_p: Any) -> Any:
    return _log_coefficient(value, n) + value * logit_p - n * pt.softplus(logit_p)


def _round_at_random(n: Any) -> Any:
    """Round up or down with the fraction as probability; whole numbers do not change."""
    return pt.floor(n + pm.Uniform.dist(size=n.shape)).astype("int64")


def _binomial_dist(n: Any, logit_p: Any, size: Any) -> Any:
    draw = pm.Binomial.dist(n=_round_at_random(n), logit_p=logit_p, size=size)
    return draw.astype("float64")


def _multinomial_logp(value: Any, n: Any, log_p: Any) -> Any:
    possible = pt.all(value >= 0.0, axis=-1) & pt.isclose(value.sum(-1), n)
    coefficient = pt.gammaln(n + 1.0) - pt.gammaln(value + 1.0).sum(-1)
    terms = pt.switch(value > 0.0, value * log_p, 0.0)
    return pt.switch(possible, coefficient, -np.inf) + terms.sum(-1)


def _multinomial_dist(n: Any, log_p: Any, size: Any) -> Any:
    p = pt.exp(log_p)
    draw = pm.Multinomial.dist(n=_round_at_random(n), p=p / p.sum(-1, keepdims=True), size=size)
    return draw.astype("float64")
