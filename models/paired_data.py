"""What the models of paired comparisons observe: pairs, or single battles with covariates."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from bayesrank.battles import with_covariates
from bayesrank.errors import DataError
from bayesrank.formula import Design
from bayesrank.models.score_priors import free_variable
from bayesrank.priors import PriorLike, as_prior
from bayesrank.views import Comparisons
from bayesrank.vote_rows import VoteRows

Array = NDArray[np.float64]


# Why there is nothing to compare.
NONE = (
    "comparisons must hold one at least; got none: no two systems share a question, or no battle "
    "has a weight"
)


@dataclass(frozen=True)
class Observed:
    """Results of pairs, or of battles.

    Attributes
    ----------
    systems : tuple of str
        Labels.
    first, second : numpy.ndarray of int and shape (pair,)
        The systems.
    results : numpy.ndarray of shape (pair, result)
        Wins, losses and ties of the first; or votes by their results.
    design : Design
        Covariates, of battles alone.
    """

    systems: tuple[str, ...]
    first: NDArray[np.integer[Any]]
    second: NDArray[np.integer[Any]]
    results: Array
    design: Design

    @classmethod
    def of(cls, comparisons: Comparisons, formula: str | None) -> "Observed":
        """Take the pairs that met, or where there are covariates every battle.

        Raises
        ------
        DataError
            If there are covariates, but the comparisons are counts.
        """
        if formula is None:
            first, second = comparisons.pairs
            wins, ties = comparisons.wins, comparisons.ties
            sides = wins[first, second], wins[second, first], ties[first, second]
            none = Design.empty(len(first))
            return cls(comparisons.systems, first, second, np.stack(sides, axis=-1), none)
        battles = with_covariates(comparisons)
        signs = np.sign(battles.outcome)[:, np.newaxis] == np.array([1, -1, 0])
        results = signs * (1.0 if battles.weight is None else battles.weight[:, np.newaxis])
        design = battles.design(formula)
        sides = battles.first, battles.second
        return cls(battles.systems, *sides, results, design)

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the covariates; none for pairs."""
        return self.design.terms

    @classmethod
    def of_votes(
        cls,
        comparisons: Comparisons,
        formula: str | None,
        places: Callable[[VoteRows], tuple[NDArray[np.integer[Any]], int]],
    ) -> "Observed":
        """Take votes by their results: those of pairs, or with covariates every battle.

        Parameters
        ----------
        comparisons : Comparisons
            Battles, or counts.
        formula : str or None
            Covariates of battles.
        places : callable
            Returns the number of the result of each vote, and how many results there are.

        Raises
        ------
        DataError
            If there are no votes; or covariates, but the comparisons are counts.
        """
        votes = VoteRows.of(comparisons)
        if formula is None:
            votes = votes.merged()
        result, n_results = places(votes)
        if not votes.weight.any():
            raise DataError(NONE)
        results = np.zeros((len(result), n_results))
        results[np.arange(len(result)), result] = votes.weight
        if formula is not None:
            design = with_covariates(comparisons).design(formula)
            return cls(votes.systems, votes.first, votes.second, results, design)
        cell = votes.first.astype(np.int64) * len(votes.systems) + votes.second
        pairs, number = np.unique(cell, return_inverse=True)
        counts = np.zeros((len(pairs), n_results))
        np.add.at(counts, number, results)
        sides = np.divmod(pairs, len(votes.systems))
        return cls(votes.systems, *sides, counts, Design.empty(len(pairs)))

    @property
    def dim(self) -> str:
        """What a row is."""
        return "battle" if self.terms else "pair"

    @property
    def coords(self) -> dict[str, Any]:
        """Labels of the rows, of the systems and of the covariates."""
        names = self.systems
        if self.terms:
            rows: Any = np.arange(1, len(self.first) + 1)
            return {"system": list(names), "battle": rows, "covariate": list(self.terms)}
        pairs = zip(self.first, self.second, strict=True)
        return {"system": list(names), "pair": [f"{names[i]} | {names[j]}" for i, j in pairs]}

    def keep(self, rows: NDArray[np.bool_]) -> "Observed":
        """Return some of the rows."""
        return replace(
            self,
            first=self.first[rows],
            second=self.second[rows],
            results=self.results[rows],
            design=self.design.keep(rows),
        )

    def ahead(self, score: Any, covariate_prior: PriorLike) -> Any:
        """Return how far the first systems are ahead, covariates included, inside a model."""
        left = pm.Data("first", self.first, dims=self.dim)
        right = pm.Data("second", self.second, dims=self.dim)
        gap = score[left] - score[right]
        if not self.terms:
            return gap
        prior = as_prior(covariate_prior, "covariate_prior")
        effect = free_variable("effect", prior, dims="covariate")
        design = pm.Data("design", np.asarray(self.design), dims=("battle", "covariate"))
        return gap + pt.dot(design, effect)

    def level(self, score: Any) -> Any:
        """Return the mean score of both systems, inside a model in which `ahead` was called."""
        model = pm.modelcontext(None)
        return (score[model["first"]] + score[model["second"]]) / 2
