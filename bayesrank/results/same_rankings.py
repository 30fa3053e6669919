"""Methods of a study whose rankings are the same."""

import xarray as xr

from bayesrank.results.arguments import require_study


def collapse(study: xr.Dataset) -> xr.Dataset:
    """Keep one method of each group whose rankings are the same.

    Parameters
    ----------
    study : xarray.Dataset
        What :func:`bayesrank.studies.stability` or :func:`bayesrank.studies.consensus` returned.

    Returns
    -------
    xarray.Dataset
        The first method of each group, with ``members``, the names of all, and ``size``.

    Examples
    --------
    >>> from bayesrank import Responses
    >>> from bayesrank.studies import simulate, stability
    >>> data = Responses(simulate.biased_coins([0.9, 0.6, 0.3], n_trials=10)["outcomes"])
    >>> study = stability(data, ["avg", "bayes", "borda"], draws=5)
    >>> collapse(study)["members"].values.tolist()
    ['avg, bayes, borda']
    """
    require_study(study, "stability or studies.consensus", "method", "group")
    members = group_members(study)
    kept = list(members)
    collapsed = study.sel({"method": kept})  # a keyword would be its way of matching
    if "other_method" in study.dims:
        collapsed = collapsed.sel({"other_method": kept})
    return collapsed.assign(
        members=("method", [", ".join(members[name]) for name in kept]),
        size=("method", [len(members[name]) for name in kept]),
    )


def group_members(study: xr.Dataset) -> dict[str, list[str]]:
    """Return the methods of each group whose rankings are the same, by the first one's name."""
    members: dict[str, list[str]] = {}
    for name, group in zip(study["method"].values, study["group"].values, strict=True):
        members.setdefault(str(group), []).append(str(name))
    return members
