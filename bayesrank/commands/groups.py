"""Options of ``bayesrank rank`` for groups of questions."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from bayesrank.commands.console import note, say
from bayesrank.printable import listing

if TYPE_CHECKING:
    import xarray as xr

    from bayesrank.by_group import GroupWeights

# Groups that are named.
_SHOWN = 10


def group_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for weights of groups, and for rankings by group."""
    command = click.option(
        "--group-weights",
        metavar="equal|size|NAME=W,...",
        callback=_parse,
        help="Rank by the weighted mean of the scores on groups of questions.  "
        "[default: equal weights of questions]",
    )(command)
    return click.option(
        "--by-group",
        is_flag=True,
        help="Also print a leaderboard of each group of questions or battles.",
    )(command)


def weighed_part(data: Any, weights: "GroupWeights | None") -> Any:
    """Print the weights of groups, if there are several, and return the data that have weights."""
    from bayesrank.by_group import group_shares

    sizes: Counter[str] = Counter(getattr(data, "groups", None) or ())
    if weights is None or not sizes:
        if len(sizes) > 1:
            listed = _listed({name: f"{size:,}" for name, size in sizes.items()})
            note(f"Groups: {listed}; all questions have equal weights (--group-weights).")
        return data
    shares = group_shares(data, weights)
    note(f"Weights of groups: {_listed({name: f'{share:.3g}' for name, share in shares.items()})}.")
    return data.select(groups=list(shares))


def rank_or_weigh(
    data: Any, weights: "GroupWeights | None", settings: dict[str, Any]
) -> "xr.DataTree":
    """Rank, by the weighted mean over groups if they have weights."""
    from bayesrank.by_group import rank_weighted
    from bayesrank.ranking import rank

    if weights is None:
        return rank(data, **settings)
    return rank_weighted(data, group_weights=weights, **settings)


def print_groups(
    data: Any, tree: "xr.DataTree", show: Callable[[Any], None], settings: dict[str, Any]
) -> None:
    """Print the leaderboard of each group, of battles from the posterior of all if it has them."""
    from bayesrank.by_group import rank_by_group

    for name, board in rank_by_group(data, result=tree, **settings).items():
        click.echo()
        say(f"Group {name}:")
        show(board)


def _listed(values: Mapping[str, object]) -> str:
    return listing((f"{name} {value}" for name, value in values.items()), _SHOWN)


def _parse(ctx: click.Context, param: click.Parameter, value: str | None) -> "GroupWeights | None":
    """Return a word, or numbers by group."""
    if value is None or "=" not in value:
        return value
    weights = {}
    for part in value.split(","):
        name, _, number = part.rpartition("=")
        try:
            weights[name.strip()] = float(number)
        except ValueError as error:
            raise click.BadParameter(f"must be equal, size or NAME=W,...; got {part!r}") from error
    return weights
