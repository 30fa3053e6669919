"""Work that the rankers of one tensor have in common, done once.

While it is shared, functions that draw, resample, count and fit first look whether the same was
done before. What a ranker gets is the same as without.
"""

import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference import run as chains
from bayesrank.inference.backends import bootstrap, optimum
from bayesrank.inference.graph import fit as sampling
from bayesrank.inference.graph.fit import sample
from bayesrank.inference.resample import weights
from bayesrank.inference.resample.weights import draw_cells, draw_trial_weights, resample
from bayesrank.inference.run import Run
from bayesrank.method import load_function
from bayesrank.methods import bayes, condorcet, elimination, kemeny, preferences, voting
from bayesrank.methods.bayes import draw_worths
from bayesrank.methods.condorcet import score_compiled
from bayesrank.methods.partial_orders import score_by_component
from bayesrank.methods.preferences import preference_counts

Array = NDArray[np.float64]


@contextmanager
def shared_work() -> Iterator[list[float]]:
    """Let rankers of one tensor share draws, resamples, what they count in them, and fits.

    Yields
    ------
    list of float
        Processor seconds of each piece of shared work, which grows.
    """
    work = _Work()
    with ExitStack() as replaced:
        # A module that takes one of these by its name is to be here, or imported only afterwards
        # it would keep the stand-in, and all work with it.
        for module, name, function in (
            # What runs the chunks has limited the threads; to look for libraries again takes long.
            (chains, "threadpool_limits", lambda *_, **__: nullcontext()),
            (bootstrap, "resample", work.of_kind(resample)),
            (weights, "draw_cells", work.of_data(draw_cells)),
            (weights, "draw_trial_weights", work.of_data(draw_trial_weights)),
            (bayes, "draw_worths", work.worths),
            (condorcet, "score_by_component", work.orders),
            (condorcet, "score_compiled", work.locked),
            (elimination, "preference_counts", work.counts),
            (kemeny, "preference_counts", work.counts),
            (preferences, "preference_counts", work.counts),
            (voting, "preference_counts", work.counts),
            (optimum, "load_function", work.fitted),
            (sampling, "sample", work.sampled),
        ):
            replaced.enter_context(patch.object(module, name, function))
        yield work.seconds


class _Work:
    """Pieces of work that were done, and stand-ins for the functions that do them."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._done: dict[tuple[Any, ...], Any] = {}

    def _share(self, key: tuple[Any, ...], work: Callable[[], Any]) -> Any:
        if key not in self._done:
            started = time.thread_time()
            self._done[key] = work()
            self.seconds.append(time.thread_time() - started)
        return self._done[key]

    def _share_draws(
        self, key: tuple[Any, ...], rng: np.random.Generator, work: Callable[[], Any]
    ) -> Any:
        # Chains differ by the state that their generators start in.
        state = rng.bit_generator.state["state"]["state"]
        found, rng.bit_generator.state = self._share(
            (*key, state), lambda: (work(), rng.bit_generator.state)
        )
        return found

    def of_kind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Share batches of resamples of a kind."""

        def drawn(data: Any, kind: str, *, rng: np.random.Generator, **plan: Any) -> list[Any]:
            key = (function, kind, *sorted(plan.items()))
            return self._share_draws(key, rng, lambda: list(function(data, kind, rng=rng, **plan)))

        return drawn

    def of_data(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Share draws that depend on the data alone."""

        def drawn(data: Any, size: int, rng: np.random.Generator) -> Any:
            return self._share_draws((function, size), rng, lambda: function(data, size, rng))

        return drawn

    def worths(self, shapes: Array, weights: Array, size: int, rng: np.random.Generator) -> Array:
        key = ("worths", shapes.tobytes(), weights.tobytes(), size)
        return self._share_draws(key, rng, lambda: draw_worths(shapes, weights, size, rng))

    def counts(self, *grades: Any) -> Array:
        # The grades are kept with what is counted, so that no others can be in their place.
        key = ("counts", *map(id, grades))
        return self._share(key, lambda: (preference_counts(*grades), grades))[0]

    def orders(self, strength: Array, solve: Any) -> Array:
        # Which victories are locked depends on their order, which most rules for ties agree on.
        order = np.unique(strength, return_inverse=True)[1]
        key = (solve, order.astype(np.int32).tobytes())
        return self._share(key, lambda: score_by_component(strength, solve))

    def locked(self, strength: Array) -> Array:
        # To find the order of so many takes longer than to lock them.
        key = ("locked", strength.tobytes())
        return self._share(key, lambda: score_compiled(strength))

    def fitted(self, path: str) -> Callable[..., Any]:
        """Load a function of data, prior and options: a kernel, or a factory."""
        function = load_function(path)

        def of(data: Any, *prior: Any, **options: Any) -> Any:
            if isinstance(data, Run):  # the draws of a fit, which no other ranker wants
                return function(data, *prior, **options)
            # The data are kept with what was made of them, as the grades above.
            key = (path, id(data), pickle.dumps((prior, options)))
            return self._share(key, lambda: (function(data, *prior, **options), data))[0]

        return of

    def sampled(self, model: Any, **plan: Any) -> dict[str, Any]:
        key = ("sampled", id(model), *sorted(plan.items()))
        # What receives the groups takes some of them out.
        return dict(self._share(key, lambda: (sample(model, **plan), model))[0])
