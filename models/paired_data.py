"""The observations of models of paired comparisons: pairs, or single battles with covariates."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from bayesrank.battles import with_covariates
from bayesrank.errors import DataError
from bayesrank.formula import Design
from bayesrank.models.score_priors import free_variable
from bayesrank.priors import PriorLike, as_prior
from bayesrank.views import Comparisons
from bayesrank.vote_rows import VoteRows

Array = NDArray[np.float64]
# Returns the number of the result of each vote.
Places = Callable[[VoteRows], NDArray[np.integer[Any]]]


def by_winner(votes: VoteRows) -> NDArray[np.integer[Any]]:
    """Return 0 for a win of the first system, 1 for a loss and 2 for a tie, for each vote."""
    return np.minimum(votes.results, 2)


@dataclass(frozen=True)
class Observed:
    """Results of pairs, or of battles.

    `results`, (pair, result), are wins, losses and ties of the `first` system; or votes by their
    results. `design` has the covariates, only of battles.
    """

    systems: tuple[str, ...]
    first: NDArray[np.integer[Any]]
    second: NDArray[np.integer[Any]]
    results: Array
    design: Design

    @classmethod
    def of(
        cls,
        comparisons: Comparisons,
        formula: str | None,
        places: Places = by_winner,
        n_results: int = 3,
    ) -> "Observed":
        """Group votes by their results: one row per pair, or with covariates one per battle.

        `places` returns the number of the result of each vote, of `n_results` different ones; by
        default wins, losses and ties. DataError if there are covariates, but only counts.
        """
        design = None if formula is None else with_covariates(comparisons).design(formula)
        return cls.of_votes(VoteRows.of(comparisons), design, places, n_results)

    @classmethod
    def of_votes(
        cls, votes: VoteRows, design: Design | None, places: Places = by_winner, n_results: int = 3
    ) -> "Observed":
        """Return one row per vote with a design, or without a design one row per pair."""
        if design is None:
            votes = votes.merged()
        is_result = places(votes)[:, np.newaxis] == np.arange(n_results)
        results = votes.weight[:, np.newaxis] * is_result
        if design is not None:
            return cls(votes.systems, votes.first, votes.second, results, design)
        cell = votes.first.astype(np.int64) * len(votes.systems) + votes.second
        pairs, number = np.unique(cell, return_inverse=True)
        counts = np.zeros((len(pairs), n_results))
        np.add.at(counts, number, results)
        sides = np.divmod(pairs, len(votes.systems))
        return cls(votes.systems, *sides, counts, Design.empty(len(pairs)))

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the covariates; none for pairs."""
        return self.design.terms

    def some(self) -> "Observed":
        """Return the same data, or raise DataError if there is nothing to compare."""
        if not self.results.any():
            raise DataError(
                "comparisons must hold one at least; got none: no two systems share a question, or "
                "no battle has a weight"
            )
        return self

    @property
    def dim(self) -> str:
        """The kind of rows."""
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
        """Return the difference of scores, covariates included, inside a model."""
        left = pm.Data("first", self.first, dims=self.dim)
        right = pm.Data("second", self.second, dims=self.dim)
        gap = score[left] - score[right]
        if not self.terms:
            return gap
        prior = as_prior(covariate_prior, "covariate_prior")
        effect = free_variable("effect", prior, dims="covariate")
        design = pm.Data("design", np.asarray(self.design), dims=("battle", "covariate"))
        # Not a dot product: Numba compiles products of matrices for half a minute each.
        return gap + (design * effect).sum(axis=-1)

    def level(self, score: Any) -> Any:
        """Return the mean score of both systems, inside a model in which `ahead` was called."""
        model = pm.modelcontext(None)
        return (score[model["first"]] + score[model["second"]]) / 2
