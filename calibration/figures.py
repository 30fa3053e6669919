"""The coverage table as a figure."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Where the coverage of a nominal 95 % interval is to lie, in percent.
_WINDOW = (93.5, 96.5)

# One colour for what is promised, one for what is not; both readable in print.
_COLOURS = {"promised": "#0b5fa5", "contrast": "#c4501b"}


def draw_coverage(records: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the coverage of 95 % intervals of scores, one line per method and one dot per cell.

    Naive posteriors of composite likelihoods and exact posteriors at fixed truths, to which no
    promise applies, have a colour of their own.

    Parameters
    ----------
    records : sequence of mapping
        Records of the table.
    path : pathlib.Path
        An SVG file to write.
    """
    import matplotlib  # only the tables are needed to simulate

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    chosen = [
        record for record in records if record["quantity"] == "score" and record["nominal"] == 0.95
    ]
    names = list(dict.fromkeys(str(record["method"]) for record in chosen))
    figure = Figure(figsize=(7.0, 1.2 + 0.2 * max(len(names), 1)), layout="constrained")
    axes = figure.add_subplot()
    axes.axvspan(*_WINDOW, color="0.88", zorder=0)
    axes.axvline(95.0, color="0.5", linewidth=0.8, zorder=1)
    labels = {
        "promised": "held to 95 %",
        "contrast": "no target: naive, or at a fixed truth",
    }
    for kind, colour in _COLOURS.items():
        dots = [one for one in chosen if (one["pass"] == "") == (kind == "contrast")]
        shift = 0.14 if kind == "contrast" else -0.14
        rows = [names.index(str(one["method"])) + shift for one in dots]
        coverage = [100 * one["coverage"] for one in dots]
        spread = [
            [100 * (one["coverage"] - one["interval_lower"]) for one in dots],
            [100 * (one["interval_upper"] - one["coverage"]) for one in dots],
        ]
        axes.errorbar(
            coverage,
            rows,
            xerr=spread,
            fmt="o",
            markersize=2.5,
            color=colour,
            ecolor=colour,
            elinewidth=0.4,
            alpha=0.7,
            label=labels[kind],
        )
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0.0, 100.5)
    axes.set_xlabel("coverage of 95 % intervals of scores, in percent")
    axes.legend(fontsize=7, loc="lower left")
    _save(figure, path)


def draw_rank_statistics(ranks: Mapping[tuple[str, str], Any], n_draws: int, path: Path) -> None:
    """Draw how far the distribution of rank statistics is from the uniform one.

    One area spans the elements of the score, the other those of everything else. The band is the
    simultaneous one, at 99 % over the elements of the largest variable.

    Parameters
    ----------
    ranks : mapping of (str, str) to array_like of shape (simulation, element)
        Ranks of the truth among draws, by method and variable.
    n_draws : int
        Number of draws.
    path : pathlib.Path
        An SVG file to write.
    """
    import matplotlib  # only the tables are needed to simulate

    matplotlib.use("Agg")
    import numpy as np
    from matplotlib.figure import Figure

    from calibration.uniformity import band

    methods = list(dict.fromkeys(method for method, _ in ranks))
    n_columns = 4
    n_rows = max(-(-len(methods) // n_columns), 1)
    figure = Figure(figsize=(8.0, 1.8 * n_rows), layout="constrained")
    grid = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True, sharey=True)
    points = np.arange(n_draws)
    uniform = (points + 1) / (n_draws + 1)
    for axes in grid.ravel()[len(methods) :]:
        axes.set_axis_off()
    for axes, method in zip(grid.ravel(), methods, strict=False):
        tables = {
            variable: np.asarray(v) for (name, variable), v in ranks.items() if name == method
        }
        # What is drawn last is seen best.
        for colour, some in (
            ("contrast", [table for name, table in tables.items() if name != "score"]),
            ("promised", [table for name, table in tables.items() if name == "score"]),
        ):
            if not some:
                continue
            below = np.stack(
                [
                    (element[:, np.newaxis] <= points).mean(axis=0)
                    for table in some
                    for element in table.T
                ]
            )
            ends = below.min(axis=0) - uniform, below.max(axis=0) - uniform
            style = {"facecolor": _COLOURS[colour], "edgecolor": _COLOURS[colour], "linewidth": 0.4}
            axes.fill_between(uniform, *ends, alpha=0.4, **style)
        n_elements = max(table.shape[1] for table in tables.values())
        n_simulations = min(len(table) for table in tables.values())
        for end in band(n_simulations, n_draws, 0.01 / n_elements):
            axes.plot(uniform, end - uniform, color="0.4", linewidth=0.8)
        axes.set_title(method, fontsize=7)
        axes.tick_params(labelsize=6)
    figure.supxlabel("rank of the truth among the draws, as a share", fontsize=8)
    figure.supylabel("distribution function less uniform", fontsize=8)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    """Write a figure under a temporary name, the same bytes every time, and rename it."""
    import matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part.svg")
    with matplotlib.rc_context({"svg.hashsalt": "calibration"}):
        figure.savefig(draft, format="svg", metadata={"Date": None})
    os.replace(draft, path)
