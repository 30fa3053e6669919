"""Metrics by name, and the parser of their text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.catalog import DEFAULT_METHOD, METHODS
from bayesrank.method import Method, read_call, split_calls
from bayesrank.methods.thresholds import is_posterior_mean

# Metrics that are mean worths; all others are functionals of probabilities.
WORTH_METRICS = tuple(dict.fromkeys(("bayes", "avg", DEFAULT_METHOD)))
# Metrics that are the mean grade, also of scores; bayes has its published posterior.
_GRADED = frozenset(WORTH_METRICS) - {"bayes"}


@dataclass(frozen=True)
class Metric:
    """A metric with its options.

    Attributes
    ----------
    label : str
        The text that named it.
    name : str
        A mean worth (`WORTH_METRICS`), or a method of the catalog that is a functional of
        probabilities.
    options : mapping
        Options of the method; for a mean worth only ``weights``, the worth of each category if it
        differs from that in the data.
    """

    label: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def method(self) -> Method:
        """Row of the catalog."""
        return METHODS[self.name]

    @property
    def graded(self) -> bool:
        """Whether it is a mean grade, which needs no categories."""
        return self.name in _GRADED

    @property
    def ranked(self) -> bool:
        """Whether its posterior is that of :func:`bayesrank.rank` by the method of its name.

        The posterior of a posterior mean needs no draws.
        """
        if self.method.functional is None:
            return self.graded
        return not is_posterior_mean(self.options.get("estimator", "unbiased"))

    @property
    def functional_options(self) -> dict[str, Any]:
        """Options of the functional of the method."""
        return self.method.functional_options(self.options)

    def category_weights(self, default: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        """Return the worth of each category: that of the metric, or else that of the data."""
        own = self.options.get("weights") if self.name in WORTH_METRICS else None
        return default if own is None else np.asarray(own, dtype=np.float64)


def metric_names() -> tuple[str, ...]:
    """Return the names of all metrics that have a posterior."""
    return WORTH_METRICS + tuple(name for name, row in METHODS.items() if row.functional)


def parse_metrics(metrics: str | Sequence[str]) -> tuple[Metric, ...]:
    """Parse metrics such as ``bayes`` and ``pass_at_k(k=4)``.

    Raises
    ------
    ValueError
        If there is none, if one is unknown or repeated, or if its options are not those of the
        method.

    Examples
    --------
    >>> parse_metrics(["avg", "pass_at_k(k=4)"])[1].options
    {'k': 4}
    """
    return tuple(_parse(text) for text in metric_labels(metrics))


def metric_labels(metrics: str | Sequence[str]) -> list[str]:
    """Split texts such as ``"avg, pass_at_k(k=4)"`` into one label per metric.

    Raises
    ------
    ValueError
        If there is none, or one is repeated or no text.
    """
    texts = [metrics] if isinstance(metrics, str) else metrics
    known = isinstance(texts, Sequence) and all(isinstance(text, str) for text in texts)
    labels = [label for text in texts for label in split_calls(text)] if known else []
    if not labels or len(set(labels)) != len(labels):
        raise ValueError(f"metrics must be one or more different names; got {metrics!r}")
    return labels


def _parse(text: str) -> Metric:
    name, options = read_call(text, "metrics")
    if name not in metric_names():
        raise ValueError(f"metrics must be among {', '.join(metric_names())}; got {text!r}")
    if name not in WORTH_METRICS:
        METHODS[name].check_options(options)
    elif unknown := set(options) - {"weights"}:
        raise ValueError(f"options of {name} must be among: weights; got {sorted(unknown)[0]!r}")
    return Metric(text, name, options)
