"""Cells of the table: tensors simulated from a world, ranked, and held against the truth."""

import dataclasses
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrank import Responses
from bayesrank.ranking import draw_scores
from bayesrank.results.ranks import joint_rank_sets, rank_range, resolved_pairs
from calibration.configurations import Configuration
from calibration.sharing import shared_work
from calibration.truths import true_score
from calibration.worlds import Design, Generator, Prior, Target, World, derive_seed, draw_world

Array = NDArray[np.float64]

# Tensors of a chunk, all of one truth.
CHUNK = 20

# Draws per chain, of four chains; users have 500 by default. Those of a Markov chain are worth
# fewer.
DRAWS, NUTS_DRAWS = 100, 250

# Quantiles of n draws between which one more would fall with just the probability asked for, for
# any n. NumPy's own of 400 draws would be too narrow by 0.5 percentage points.
_QUANTILE = "weibull"

CI_PROB, LCB = 0.95, 0.05

# Tensors that the time of a posterior is the mean of, and those that may be tried: not all can be
# ranked.
_TIMED, _TRIED = 3, 10

# Interval ends are quantiles of sums, which differ from the truth by rounding where nothing varies.
_ROUNDING = 1e-9


class Setting(NamedTuple):
    """What tensors are simulated from.

    Attributes
    ----------
    design : Design
        Size of a tensor.
    target : {"benchmark", "population"}
        What varies.
    generator : {"rasch", "beta", "prior"}
        Where the chances come from.
    """

    design: Design
    target: Target
    generator: Generator


class Cell(NamedTuple):
    """What one row of the table is about.

    Attributes
    ----------
    configuration : Configuration
        The way of ranking.
    setting : Setting
        Where the tensors come from.
    """

    configuration: Configuration
    setting: Setting

    @property
    def key(self) -> tuple[str, ...]:
        """Configuration, design, target and generator as text."""
        return (self.configuration.name, *map(str, self.setting))

    @property
    def prior(self) -> Prior | None:
        """Where the truths come from, if it is the prior of the configuration."""
        return self.configuration.prior if self.setting.generator == "prior" else None


@dataclasses.dataclass
class _Tally:
    """What has been found in a chunk for one configuration."""

    shares: list[dict[str, float]] = dataclasses.field(default_factory=list)
    failures: list[str] = dataclasses.field(default_factory=list)
    seconds: list[float] = dataclasses.field(default_factory=list)
    given_up: bool = False


def measure(cells: Sequence[Cell], chunk: int, slowest: float) -> list[dict[str, Any]]:
    """Simulate a chunk of some cells of one setting.

    All are given the same truths, tensors and random draws, so that configurations can be compared
    and what they share is done once. All seeds come from the setting and the number of the chunk:
    what is found for a cell does not depend on the others.

    Parameters
    ----------
    cells : sequence of Cell
        What to simulate, all with the same setting and `Cell.prior`.
    chunk : int
        Number of the chunk; each has a truth of its own.
    slowest : float
        Seconds that a tensor may take; a cell that turns out slower is given up.

    Returns
    -------
    list of dict
        For each cell the key and the chunk; ``simulations`` that were ranked, ``undefined`` ones
        that could not be, with an example of the ``error``; processor ``seconds`` of a posterior
        alone, measured in the first chunk; and ``covered``: by quantity the sum over tensors of
        the share that is covered, and the sum of its squares. A cell that was given up has
        neither simulations nor undefined ones.
    """
    setting, prior = cells[0].setting, cells[0].prior
    seeds = [derive_seed(kind, *map(str, setting), chunk) for kind in ("data", "truth", "ranker")]
    rng, world_rng = (np.random.default_rng(seed) for seed in seeds[:2])
    truth_seed, *ranker_seeds = seeds[2].generate_state(1 + CHUNK).tolist()
    tallies = [_Tally() for _ in cells]
    world: World | None = None
    truths: dict[str, Any] = {}
    for seed in ranker_seeds:
        if world is None or setting.generator == "prior":
            world, truths = draw_world(*setting, world_rng, prior=prior), {}
        data = world.draw_responses(rng)
        # By what is estimated and whether its draws are naive: all else that draws depend on.
        done: dict[tuple[str, bool], tuple[Any, float]] = {}
        with shared_work() as shared_seconds:
            for cell, tally in zip(cells, tallies, strict=True):
                if tally.given_up:
                    continue
                one = cell.configuration
                if one.estimand not in truths:
                    truth_rng = np.random.default_rng(truth_seed)
                    truths[one.estimand] = undefined_or(true_score, one, world, truth_rng)
                truth = truths[one.estimand]
                if isinstance(truth, str):
                    tally.failures.append(truth)
                    continue
                if (one.estimand, one.naive) not in done:
                    before = time.process_time() - sum(shared_seconds)
                    found = undefined_or(_coverage, cell, data, truth, seed)
                    seconds = time.process_time() - sum(shared_seconds) - before
                    done[one.estimand, one.naive] = found, seconds
                found, seconds = done[one.estimand, one.naive]
                tally.seconds.append(seconds)
                if isinstance(found, str):
                    tally.failures.append(found)
                else:
                    tally.shares.append(found)
                # The first call imports and compiles.
                tally.given_up = len(tally.seconds) == 3 and min(tally.seconds[1:]) > slowest
    rows = [_row(cell, chunk, tally) for cell, tally in zip(cells, tallies, strict=True)]
    if chunk == 0:
        others = [
            draw_world(*setting, world_rng, prior=prior).draw_responses(rng) for _ in range(_TRIED)
        ]
        for cell, row in zip(cells, rows, strict=True):
            if row["simulations"]:
                times = filter(None, (posterior_seconds(cell, data) for data in others))
                found = list(islice(times, _TIMED))
                row["seconds"] = round(sum(found) / max(len(found), 1), 4)
    return rows


def posterior_seconds(cell: Cell, data: Responses) -> float:
    """Return the processor seconds that a posterior costs as users get it, with default draws.

    Parameters
    ----------
    cell : Cell
        One that has been measured, so that everything is imported and compiled.
    data : Responses
        A tensor of its setting.

    Returns
    -------
    float
        Zero where the tensor cannot be ranked.
    """
    started = time.process_time()
    found = undefined_or(_draw, cell, data, 0)
    return 0.0 if isinstance(found, str) else time.process_time() - started


def _row(cell: Cell, chunk: int, tally: _Tally) -> dict[str, Any]:
    """Return what was found for a cell, as it is stored."""
    shares: Collection[Mapping[str, float]] = [] if tally.given_up else tally.shares
    failures = [] if tally.given_up else tally.failures
    names = next(iter(shares), {})
    table = {name: np.array([share[name] for share in shares]) for name in names}
    return {
        "key": list(cell.key),
        "chunk": chunk,
        "simulations": len(shares),
        "undefined": len(failures),
        "error": failures[0] if failures else "",
        "seconds": 0.0,
        "covered": {name: [float(x.sum()), float((x**2).sum())] for name, x in table.items()},
    }


def undefined_or(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns, or the message of its ValueError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*arguments)
    except ValueError as error:  # no finite estimate, too few units
        return f"{type(error).__name__}: {error}"


def _coverage(cell: Cell, data: Responses, truth: Array, seed: int) -> dict[str, float]:
    """Rank one tensor and return the share of each quantity that is covered."""
    size = NUTS_DRAWS if cell.configuration.backend == "nuts" else DRAWS
    draws = _draw(cell, data, seed, draws=size).reshape(-1, len(truth))
    resolved = resolved_pairs(draws.mean(axis=0), draws, ci_prob=CI_PROB)
    lower, upper = joint_rank_sets(resolved)
    best, worst = rank_range(truth)
    slack = _ROUNDING * max(float(np.abs(truth).max()), 1.0)
    scores = np.ascontiguousarray(draws.T)
    first, second = np.triu_indices(len(truth), 1)
    gaps, gap = scores[first] - scores[second], truth[first] - truth[second]
    return {
        **_intervals("score", scores, truth, slack),
        **_intervals("difference", gaps, gap, slack),
        "lcb 95": float(_quantile_is(np.less_equal, scores, LCB, truth + slack).mean()),
        "joint ranks 95": float(((lower <= best) & (worst <= upper)).all()),
    }


def _draw(cell: Cell, data: Responses, seed: int, draws: int | None = None) -> Array:
    """Draw scores of shape (chain, draw, system), by default as many as users get."""
    configuration = cell.configuration
    return draw_scores(
        data,
        configuration.ranker,
        backend=configuration.backend,
        target=cell.setting.target,
        draws=draws,
        random_seed=seed,
        **configuration.options_for(cell.setting.target, cell.setting.generator),
    )


def _intervals(name: str, values: Array, truth: Array, slack: float) -> dict[str, float]:
    """Return the shares of equal-tailed 95 % and 50 % intervals that hold the truth."""
    found = {}
    for percent, tail in ((95, 0.025), (50, 0.25)):
        held = _quantile_is(np.less_equal, values, tail, truth + slack)
        held &= ~_quantile_is(np.less, values, 1.0 - tail, truth - slack)
        found[f"{name} {percent}"] = float(held.mean())
    return found


def _quantile_is(
    compare: np.ufunc, values: Array, probability: float, limit: Array
) -> NDArray[np.bool_]:
    """Say of each row whether a quantile is less than its limit, or at most that.

    To count values below the limit is five times as fast as to sort all, which tells more only
    where the limit lies between the two values that the quantile is between.
    """
    below = int(probability * (values.shape[1] + 1) - 1.0)
    n_less = np.count_nonzero(compare(values, limit[:, np.newaxis]), axis=1)
    found = n_less > below + 1
    between = np.flatnonzero(n_less == below + 1)
    if len(between):
        quantile = np.quantile(values[between], probability, axis=1, method=_QUANTILE)
        found[between] = compare(quantile, limit[between])
    return found
