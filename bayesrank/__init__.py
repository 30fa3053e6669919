"""Rank systems from repeated, noisy evaluation runs, with a posterior for every ranking."""

from typing import TYPE_CHECKING, Any

from bayesrank import datasets, models, priors, studies
from bayesrank.battles import Battles
from bayesrank.catalog import METHODS, PRESETS
from bayesrank.checking import check, compare
from bayesrank.display import show_results
from bayesrank.evaluation import evaluate
from bayesrank.ranking import point_estimate, rank
from bayesrank.readers import read_battles, read_data, read_responses
from bayesrank.responses import Responses
from bayesrank.results.leaderboard import leaderboard, superiority
from bayesrank.results.rating_scale import rescale
from bayesrank.views import Ballots, Comparisons

__all__ = [
    "METHODS",
    "PRESETS",
    "Ballots",
    "Battles",
    "Comparisons",
    "Responses",
    "check",
    "compare",
    "datasets",
    "evaluate",
    "leaderboard",
    "models",
    "point_estimate",
    "priors",
    "rank",
    "read_battles",
    "read_data",
    "read_responses",
    "rescale",
    "studies",
    "superiority",
]


show_results()


if TYPE_CHECKING:  # what __getattr__ imports, for editors and type checkers
    from bayesrank.reporting.figures import *  # noqa: F403
    from bayesrank.reporting.interactive import explore as explore
    from bayesrank.reporting.page import report as report

    __version__: str
else:

    def __getattr__(name: str) -> Any:
        """Import reports and figures when they are first used: Matplotlib takes half a second."""
        if name == "report":
            from bayesrank.reporting.page import report

            return report
        if name == "explore":
            from bayesrank.reporting.interactive import explore

            return explore
        if name.startswith("plot_") or name == "save_figure":
            from bayesrank.reporting import figures

            if name in figures.__all__:
                return getattr(figures, name)
        if name == "__version__":
            from importlib.metadata import version

            return version("bayesrank")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name reports and figures too, for who completes names by a key."""
    from bayesrank.reporting import figures

    return sorted([*globals(), "__version__", "explore", "report", *figures.__all__])
