r"""The penalised log-likelihood of paired comparisons vote by vote, with covariates, and its fit.

A vote on i and j with covariates x has a likelihood
(:mod:`bayesrank.inference.fits.vote_likelihoods`) at

.. math:: d = \theta_i - \theta_j + x^\top \beta

and perhaps at the mean level :math:`m = (\theta_i + \theta_j) / 2`. One pass over the rows gives
its derivatives; sums over pairs give those of the scores. Scores may differ between states in a
tree: those of a state are those of its parent plus independent normal steps. Groups are the
children of one root, and periods are a chain. The information has a block for each state, multiples
of the identity between a state and its parent, and a border of parameters that all share.
Elimination from the leaves to the root, and then of the border, takes the time of one dense solve
per state [1]_. Each judge is a root of its own.

References
----------
.. [1] H. Rue and L. Held. Gaussian Markov Random Fields: Theory and Applications. Chapman and Hall
   (2005). https://doi.org/10.1201/9780203492024
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.formula import Design
from bayesrank.inference.fits.existence import no_estimate_of_votes
from bayesrank.inference.fits.fit import Fit, ZeroSumScores, anchored, merge_noise, zero_sum
from bayesrank.inference.fits.newton import Array, Optimum, Remembered
from bayesrank.inference.fits.pairs import PairLikelihood, displace
from bayesrank.inference.fits.vote_likelihoods import Rows, Terms, VoteLikelihood, VoteModel, bind
from bayesrank.priors import FLAT, NormalPrior
from bayesrank.views import Comparisons
from bayesrank.vote_rows import VoteRows

# A pivot below this share of the largest entry is rounding.
_LEAST_PIVOT = 1e-14
# Rows whose derivatives are held at once, in a core's own cache.
_BLOCK = 1 << 15
# How a score of the first and of the second system moves d and m.
_MOVES = np.array([[1.0, 0.5], [-1.0, 0.5]])
# A step this short is taken without a check of its gain.
_SHORT = 0.1
_MOST_HALVINGS = 40
# Shares of the mean curvature that are added, one after another, until all curvature is positive.
_DAMPING = (0.0, *(10.0**power for power in range(-8, 4)))


@dataclass(frozen=True)
class StateTree:
    """The tree of states along which scores take steps.

    `parent`, (state,), is the parent of each state, with a lower number; -1 for a root.
    """

    parent: NDArray[np.intp]

    @classmethod
    def star(cls, n_leaves: int) -> Self:
        """Return a tree of one root and its children."""
        return cls(np.append(-1, np.zeros(n_leaves, dtype=np.intp)))

    @classmethod
    def chain(cls, n_states: int) -> Self:
        """Return a chain, each state the child of the previous one."""
        return cls(np.arange(-1, n_states - 1))

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.parent)

    @cached_property
    def levels(self) -> list[NDArray[np.intp]]:
        """The states by their depth in the tree, the roots first."""
        found, level = list[NDArray[np.intp]](), np.flatnonzero(self.parent < 0)
        while len(level):
            found.append(level)
            level = np.flatnonzero(np.isin(self.parent, level))
        return found

    def matrix(self, precisions: Array) -> Array:
        """Return the precision matrix of the states of one system, of shape (state, state)."""
        found = np.diag(precisions)
        for state in range(1, self.n_states):
            before, precision = self.parent[state], precisions[state]
            found[before, before] += precision
            found[before, state] = found[state, before] = -precision
        return found


@dataclass(frozen=True)
class BlockTree:
    """A positive definite block matrix along a tree with a border, after block elimination.

    The coupling of a state and its parent is minus the precision of its step, `steps`, (state,).
    The eliminated blocks have the Cholesky factors `root` and the inverses `inverse`, of shape
    (state, k, k), and the border is `border`, (state, k, shared). `schur` is the Schur complement
    of the corner, (shared, shared), and `held`, (shared, held), are its constraints.
    """

    tree: StateTree
    steps: Array
    inverse: Array
    root: Array
    border: Array
    schur: Array
    held: Array

    @classmethod
    def factor(
        cls, tree: StateTree, steps: Array, blocks: Array, border: Array, corner: Array, held: Array
    ) -> Self:
        """Eliminate the blocks of a matrix; LinAlgError if one is not positive definite."""
        blocks, border = blocks.copy(), border.copy()
        inverse, root = np.empty_like(blocks), np.empty_like(blocks)
        for level in reversed(tree.levels):
            root[level] = _root(blocks[level], np.einsum("sii->si", blocks[level]))
            inverse[level] = np.linalg.inv(blocks[level])
            for state in level[tree.parent[level] >= 0]:
                before, step = tree.parent[state], steps[state]
                blocks[before] -= step**2 * inverse[state]
                border[before] += step * (inverse[state] @ border[state])
        schur = corner - np.tensordot(border, inverse @ border, ((0, 1), (0, 1)))
        return cls(tree, steps, inverse, root, border, schur, held)

    @cached_property
    def solved(self) -> Array:
        """The inverses of the blocks times the border, of shape (state, k, shared)."""
        return self.inverse @ self.border

    @cached_property
    def corner(self) -> Array:
        """The Schur complement of the corner, made regular along the constraints."""
        return anchored(self.schur, self.held)

    @cached_property
    def corner_root(self) -> Array:
        """The Cholesky factor of :attr:`corner`; LinAlgError if it is not positive definite."""
        taken = np.einsum("skm,skm->m", self.border, self.solved)
        return _root(self.corner, np.diag(self.schur) + taken)

    def solve(self, gradients: Array) -> Array:
        """Solve for gradients of shape (step, p): those of blocks, then the shared ones."""
        (n_states, k, _), columns = self.border.shape, gradients.T
        own, shared = columns[: n_states * k].reshape(n_states, k, -1), columns[n_states * k :]
        own = own.copy()
        for level in reversed(self.tree.levels):
            own[level] = self.inverse[level] @ own[level]
            for state in level[self.tree.parent[level] >= 0]:
                own[self.tree.parent[state]] += self.steps[state] * own[state]
        shared = shared - np.tensordot(self.border, own, ((0, 1), (0, 1)))
        return self._from_root(own, np.linalg.solve(self.corner_root, shared))

    def _from_root(self, own: Array, normals: Array) -> Array:
        """Back-substitute from the shared parameters to the blocks, and join both."""
        shared = np.linalg.solve(self.corner_root.T, normals)
        own = self.given(own, shared)
        return np.concatenate([own.reshape(-1, own.shape[-1]), shared]).T

    def given(self, own: Array, shared: Array) -> Array:
        """Add to blocks, (state, k, step), the terms of shared parameters and of their parents."""
        found = own - self.solved @ shared
        for level in self.tree.levels[1:]:
            before = self.steps[level, np.newaxis, np.newaxis] * found[self.tree.parent[level]]
            found[level] += self.inverse[level] @ before
        return found

    def draw(self, n_draws: int, rng: np.random.Generator) -> Array:
        """Draw from the Gaussian with this precision, of shape (draw, p)."""
        shared = rng.standard_normal((len(self.schur), n_draws))
        own = rng.standard_normal((*self.border.shape[:2], n_draws))
        return self._from_root(np.linalg.solve(self.root.swapaxes(1, 2), own), shared)

    @property
    def log_determinant(self) -> float:
        """The log-determinant of the matrix."""
        roots = *np.einsum("sii->si", self.root), np.diag(self.corner_root)
        return float(2.0 * sum(np.log(each).sum() for each in roots))


def _root(matrix: Array, diagonal: Array) -> Array:
    """Return the Cholesky factor; LinAlgError if a pivot is a rounding error of the diagonal."""
    root = np.linalg.cholesky(matrix)
    least = _LEAST_PIVOT * diagonal.max(axis=-1, keepdims=True, initial=0.0)
    if (np.einsum("...ii->...i", root) ** 2 <= least).any():
        raise np.linalg.LinAlgError("matrix is singular")
    return root


ONE_STATE = StateTree.star(0)


class Sums(NamedTuple):
    """Sums over votes at a point: the gradient, and the information in its parts.

    `diagonal`, (score,), is the information of each score; `pairs`, (score * width,), that across
    the scores of first and second systems, only in this order; `cross`, (score, other), that across
    scores and others, and `corner` that of the others.
    """

    gradient: Array
    diagonal: Array
    pairs: Array
    cross: Array
    corner: Array


@dataclass(frozen=True)
class PairRows(ZeroSumScores):
    """The penalised log-likelihood of votes with covariates: one resample.

    Free coordinates: the scores, the coefficients of the covariates, then the parameters that all
    votes share. The score of system i of n in state s has the number s n + i, and so do the systems
    of a vote.

    `mean` and `precision`, (other,), are normal priors on the coordinates other than scores;
    `prior` is on the scores of the root of the `tree`, whose steps have the scale `step_sd`,
    infinite without a prior on them.
    """

    likelihood: VoteLikelihood
    design: Design
    mean: Array
    precision: Array
    tree: StateTree = ONE_STATE
    step_sd: float = np.inf

    @property
    def votes(self) -> VoteRows:
        """The votes."""
        return self.likelihood.votes

    @property
    def cells(self) -> int:
        """Cells per resample."""
        return max(len(self.votes.first), 1)

    @property
    def blocks(self) -> list[slice]:
        """The blocks of votes."""
        n_votes = len(self.votes.first)
        return list(batches(n_votes, 1, _BLOCK))

    @property
    def n_shared(self) -> int:
        """Number of parameters that all votes share."""
        return len(self.likelihood.positive)

    @property
    def width(self) -> int:
        """Number of systems."""
        return self.size // self.tree.n_states

    @property
    def states(self) -> list[slice]:
        """Where the scores of each state are, which sum to zero."""
        return [slice(at, at + self.width) for at in range(0, self.size, self.width)]

    @cached_property
    def step_precision(self) -> Array:
        """Precision of each step, of shape (state,), and first that of the scores of the root."""
        steps = np.full(self.tree.n_states - 1, 1.0 / self.step_sd**2)
        return np.append(self.prior.precision, steps)

    @cached_property
    def state_precision(self) -> Array:
        """The prior precision matrix of the states of one system, of shape (state, state)."""
        return self.tree.matrix(self.step_precision)

    def scale(self, point: Array) -> Array:
        """Return the largest number of votes on a score, plus the precision of its steps."""
        sides = np.concatenate([self.votes.first, self.votes.second])
        counts = np.bincount(sides, np.tile(self.votes.weight, 2), self.size)
        return np.array([counts.max() + self.state_precision.max()])

    def split(self, point: Array) -> tuple[Array, Array, Array]:
        """Split points of shape (..., p) into scores, coefficients and shared parameters."""
        first = self.size + self.design.shape[1]
        last = first + self.n_shared
        return point[..., : self.size], point[..., self.size : first], point[..., first:last]

    def predictors(self, point: Array, some: Rows) -> tuple[Array, Array, Array]:
        """Return d and m of a block of votes, and the shared parameters."""
        score, effects, shared = self.split(point)
        one, other = score[self.votes.first[some]], score[self.votes.second[some]]
        level = 0.5 * (one + other) if self.likelihood.has_level else np.zeros(1)
        return one - other + self.design[some] @ effects, level, shared

    def terms(self, point: Array, some: Rows) -> Terms:
        """Return the derivatives of a block of votes at a point of shape (p,)."""
        return self.likelihood.terms(some, *self.predictors(point, some))

    def slope(self, point: Array, some: Rows) -> Array:
        """Return the first derivatives of a block of votes, as in :class:`Terms`."""
        return self.likelihood.slope(some, *self.predictors(point, some))

    def slopes(self, point: Array, some: Rows) -> tuple[Array, Array]:
        """Return derivatives of votes in the scores of both sides, and in the other coordinates."""
        slope = self.slope(point, some)
        n = len(slope) - self.n_shared
        others = np.column_stack([slope[0][:, np.newaxis] * self.design[some], slope[n:].T])
        return _MOVES[:, :n] @ slope[:n], others

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        values = (
            self.likelihood.value(some, *self.predictors(point[0], some)) for some in self.blocks
        )
        return np.array([sum(each.sum() for each in values)])

    def value(self, point: Array) -> float:
        """Return the objective at one point, of shape (1, p)."""
        return float(self.loglik(point)[0]) + self._priors(point[0])[0]

    def _held(self, point: Array) -> NDArray[np.bool_]:
        """Return which coordinates other than scores are held, of shape (other,)."""
        _, effects, shared = self.split(point)
        return np.append(np.zeros(len(effects), dtype=bool), self.likelihood.held(shared))

    def _priors(self, point: Array) -> tuple[float, Array]:
        """Return the log-density of the priors, up to a constant, and its gradient, (p,)."""
        scores, *others = self.split(point)
        states = (scores - self.prior.mean).reshape(-1, self.width)
        gaps = np.where(self._held(point), 0.0, np.concatenate(others) - self.mean)
        slopes = np.append(self.state_precision @ states, self.precision * gaps)
        return -0.5 * float(slopes @ np.append(states, gaps)), -slopes

    def expand(self, point: Array) -> tuple[Array, Callable[[], Array]]:
        """Return the gradient of the objective, and a function for its negative Hessian."""
        gradient, size = self.told(point[0]).gradient.copy(), self.size
        if self.likelihood.has_level:  # scores sum to zero, whatever the level would gain
            gradient[:size] -= gradient[:size].mean()
        gradient += self._priors(point[0])[1]

        def information() -> Array:
            blocks, cross, corner = self.parts(point[0])
            scores = np.kron(self.state_precision, np.eye(self.width))
            for state, block in zip(self.states, blocks, strict=True):
                scores[state, state] += block
            return np.block([[scores, cross], [cross.T, corner]])[np.newaxis]

        return gradient[np.newaxis], information

    def parts(self, point: Array) -> tuple[Array, Array, Array]:
        """Return the information of votes on the scores of each state, (state, system, system).

        Then that across scores and others, (score, other), and that of others with their priors.
        """
        told, held = self.told(point), self._held(point)
        pairs = told.pairs.reshape(-1, self.width, self.width)
        blocks = pairs + pairs.swapaxes(1, 2)
        np.einsum("sii->si", blocks)[...] += told.diagonal.reshape(-1, self.width)
        return blocks, told.cross, told.corner + np.diag(np.where(held, 1.0, self.precision))

    def told(self, point: Array) -> Sums:
        """Return the sums over votes, computed once for the last point."""
        return self._last.at(point, self._sums)

    @cached_property
    def _last(self) -> Remembered[Sums]:
        return Remembered()

    def _sums(self, point: Array) -> Sums:
        """Compute the sums over votes."""
        size, k = self.size, len(self.mean)
        shapes = size + k, size, size * self.width, (size, k), (k, k)
        sums = Sums(*(np.zeros(shape) for shape in shapes))
        for some in self.blocks:
            terms = self.terms(point, some)
            sums.gradient[:] += self.summed(terms.slope, some)
            self._add(terms, some, sums)
        return sums

    def summed(self, slope: Array, some: Rows) -> Array:
        """Sum first derivatives of a block of votes to a gradient, of shape (p,)."""
        n = len(slope) - self.n_shared
        first, second = _MOVES[:, :n] @ slope[:n]
        scores = np.bincount(self.votes.first[some], first, self.size)
        scores += np.bincount(self.votes.second[some], second, self.size)
        return np.concatenate([scores, self.design[some].T @ slope[0], slope[n:].sum(axis=1)])

    def _add(self, terms: Terms, some: Rows, sums: Sums) -> None:
        """Add the information of a block of votes."""
        (slope, bend), size, x = terms, self.size, self.design[some].T
        k, n = len(x), len(slope) - self.n_shared  # covariates; predictors: d, and perhaps m
        moves = _MOVES[:, :n]
        sides = [side[some].astype(np.intp) for side in (self.votes.first, self.votes.second)]
        both = np.tensordot(moves, bend[:n], 1)
        for side, mixed, move in zip(sides, both, moves, strict=True):
            for column, each in enumerate((*(mixed[0] * x), *mixed[n:])):
                sums.cross[:, column] += np.bincount(side, each, size)
            sums.diagonal[:] += np.bincount(side, move @ mixed[:n], size)
        cells = sides[0] * self.width + sides[1] % self.width
        np.add.at(sums.pairs, cells, moves[0] @ both[1, :n])
        sums.corner[:k, :k] += (bend[0, 0] * x) @ x.T
        across = x @ bend[0, n:].T
        sums.corner[:k, k:] += across
        sums.corner[k:, :k] += across.T
        sums.corner[k:, k:] += bend[n:, n:].sum(axis=2)

    def newton(self, point: Array) -> Array:
        """Return the Newton step, damped to go upwards and halved until the objective rises."""
        for damping in _DAMPING:
            with suppress(np.linalg.LinAlgError):
                return self.shortened(point, self.damped_step(point, damping))
        return np.zeros(point.shape)

    def damped_step(self, point: Array, damping: float) -> Array:
        """Return a Newton step, (1, p), damped by a share; LinAlgError if it is not upwards."""
        return self.factored(point, damping).solve(self.gradient(point))

    def factored(self, point: Array, damping: float = 0.0) -> BlockTree:
        """Return the factored negative Hessian, made regular along the sums of scores."""
        blocks, cross, corner = self.parts(point[0])
        border = cross.reshape(*blocks.shape[:2], -1)
        if self.likelihood.has_level:  # information on the sums, which are fixed
            for axis in (1, 2):
                blocks -= blocks.mean(axis=axis, keepdims=True)
            border -= border.mean(axis=1, keepdims=True)
        diagonals = np.einsum("sii->si", blocks), np.einsum("ii->i", corner)
        diagonals[0][...] += np.diag(self.state_precision)[:, np.newaxis]
        size = np.concatenate([each.ravel() for each in diagonals]).mean()
        for each in diagonals:
            each += damping * size
        blocks = anchored(blocks, np.ones((self.width, 1)))
        free = np.zeros((len(corner), 0))
        return BlockTree.factor(self.tree, self.step_precision, blocks, border, corner, free)

    def shortened(self, point: Array, step: Array) -> Array:
        """Return a step, of shape (1, p), halved until the objective rises."""
        shared, change = self.split(point[0])[2], self.split(step[0])[2]
        falling = self.likelihood.positive & (change < 0.0)
        step = step * (0.5 * shared[falling] / -change[falling]).min(initial=1.0)
        if not np.abs(step).max() > _SHORT:
            return step
        now = self.value(point)
        for _ in range(_MOST_HALVINGS):
            if self.value(point + step) > now:  # false for NaN
                break
            step *= 0.5
        return step

    def reach(self, point: Array, step: Array) -> Array:
        """Return nothing: steps are safe already."""
        return np.zeros(len(step))

    def without_priors(self) -> "PairRows":
        """Return the log-likelihood by itself."""
        flat = NormalPrior(np.zeros(self.size), 0.0)
        none = np.zeros_like(self.precision)
        found = replace(self, prior=flat, precision=none, step_sd=np.inf)
        vars(found)["_last"] = self._last  # of the same votes
        return found

    def fit_at(self, optimum: Optimum, kind: type[Fit] = Fit, **others: Any) -> Fit:
        """Describe an optimum; scores that differ by its noise become equal, and zeros positive."""
        optimum.point[:, : self.size] = merge_noise(optimum.point[:, : self.size]) + 0.0
        self.require_estimate(optimum)
        moved = partial(displace, positive=self.likelihood.positive)
        return kind.at(self, optimum, (), **({"unpack": self.unpack, "displace": moved} | others))

    def require_estimate(self, optimum: Optimum) -> None:
        """Raise NoFiniteEstimate if the likelihood without priors increases without end."""
        if self.prior.precision:
            return
        if not optimum.converged.all() or self.is_flat(optimum.point).any():
            raise no_estimate_of_votes()

    def unpack(self, free: Array) -> dict[str, Array]:
        """Name the scores, coefficients of covariates, and what shared parameters stand for."""
        score, effect, shared = self.split(free)
        named = {"score": score, "effect": effect} if effect.shape[-1] else {"score": score}
        return named | self.likelihood.names(score, shared)


def pair_rows(
    likelihood: PairLikelihood | VoteModel,
    data: Comparisons | VoteRows,
    design: Design,
    *,
    tree: StateTree = ONE_STATE,
    prior: NormalPrior = FLAT,
    effect_prior: NormalPrior = FLAT,
    shared_prior: NormalPrior = FLAT,
    kind: Callable[..., PairRows] = PairRows,
) -> PairRows:
    """Build the log-posterior of votes with covariates, of which there may be none.

    Priors are on the scores of the root, on coefficients of covariates, and on shared parameters.
    """
    votes = data if isinstance(data, VoteRows) else VoteRows.of(data)
    n_systems = len(votes.systems) // tree.n_states
    scores = zero_sum(prior, n_systems)
    scores = scores._replace(mean=np.tile(scores.mean, tree.n_states))
    bound = bind(likelihood, votes)
    sizes = design.shape[1], len(bound.positive)
    mean, precision = (
        np.concatenate([np.broadcast_to(each, n) for each, n in zip(both, sizes, strict=True)])
        for both in zip(effect_prior, shared_prior, strict=True)
    )
    return kind(scores, bound, design, mean, precision, tree)
