"""What a sampler's draws say about themselves, in sentences."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

# Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), https://doi.org/10.1214/20-BA1221:
# R-hat below 1.01 and an effective sample size of at least 100 per chain.
LARGEST_RHAT = 1.01
SMALLEST_ESS_PER_CHAIN = 100

# An effective sample size takes milliseconds, which adds up to seconds for a thousand elements.
# Slow mixing shows in the autocorrelation, so that the slowest of this many is the slowest of all.
EXAMINED = 100


def diagnose(
    posterior: xr.Dataset,
    sample_stats: xr.Dataset | None = None,
    *,
    var_names: Sequence[str] | None = None,
) -> list[str]:
    """Say in words what is wrong with a sampler's draws.

    Parameters
    ----------
    posterior : xarray.Dataset
        Draws with dims chain and draw.
    sample_stats : xarray.Dataset, optional
        With a variable ``diverging``, to count divergent transitions.
    var_names : sequence of str, optional
        Variables to check; all by default. Elements that never change are passed over.

    Returns
    -------
    list of str
        One sentence per complaint; empty when R-hat is below 1.01, the bulk effective sample size
        at least 100 per chain, and no transition diverged.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from bayesrank.inference.graph.diagnostics import diagnose
    >>> noise = np.random.default_rng(0).normal(size=(4, 500))
    >>> diagnose(xr.Dataset({"mu": (("chain", "draw"), noise)}))
    []
    >>> stuck = noise + np.arange(4)[:, np.newaxis]
    >>> for sentence in diagnose(xr.Dataset({"mu": (("chain", "draw"), stuck)})):
    ...     print(sentence)
    R-hat of mu is 1.537, above 1.01: the chains have not mixed; draw more or simplify the model.
    The bulk effective sample size of mu is 7, below 400: draw more.
    """
    # A second of start-up, spent only when there are draws.
    from arviz_stats.sampling_diagnostics import ess, rhat

    chosen = _elements(posterior if var_names is None else posterior[list(var_names)])
    n_chains = posterior.sizes["chain"]
    sentences: list[str] = []
    if sample_stats is not None and "diverging" in sample_stats:
        diverging = int(sample_stats["diverging"].sum())
        if diverging:
            sentences.append(
                f"{diverging} of {sample_stats['diverging'].size} transitions diverged: the draws "
                "miss a part of the posterior; reparametrise, or raise target_accept."
            )
    if not chosen.sizes["element"]:
        return sentences
    if n_chains > 1:
        values = rhat(chosen)
        worst = values["draws"].argmax("element")
        if values["draws"][worst] >= LARGEST_RHAT:
            sentences.append(
                f"R-hat of {values['element'][worst].item()} is {values['draws'][worst].item():.4g}"
                f", above {LARGEST_RHAT}: the chains have not mixed; draw more or simplify the "
                "model."
            )
    values = ess(chosen.isel(element=_slowest(chosen["draws"].values)), method="bulk")
    worst = values["draws"].argmin("element")
    needed = SMALLEST_ESS_PER_CHAIN * n_chains
    if values["draws"][worst] < needed:
        sentences.append(
            f"The bulk effective sample size of {values['element'][worst].item()} is "
            f"{values['draws'][worst].item():.0f}, below {needed}: draw more."
        )
    return sentences


def _slowest(draws: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the elements, the last axis, with the highest autocorrelation at a lag of one draw.

    It is taken around the mean of all chains, so that chains apart from one another count too.
    """
    deviation = draws - draws.mean(axis=(0, 1))
    product = (deviation[:, 1:] * deviation[:, :-1]).sum(axis=(0, 1))
    return np.argsort(-product / (deviation**2).sum(axis=(0, 1)))[:EXAMINED]


def _elements(draws: xr.Dataset) -> xr.Dataset:
    """Lay out every element that varies along one dim, labelled as ``name[coordinates]``."""
    labels: list[str] = []
    columns: list[np.ndarray] = []
    for name, variable in draws.data_vars.items():
        values = variable.transpose("chain", "draw", ...)
        names = [values[dim].values for dim in values.dims[2:]]
        for index in np.ndindex(values.shape[2:]):
            column = values.values[(..., *index)].astype(np.float64)
            if column.max() > column.min():
                coords = ", ".join(str(name[i]) for name, i in zip(names, index, strict=True))
                labels.append(f"{name}[{coords}]" if coords else str(name))
                columns.append(column)
    shape = (draws.sizes["chain"], draws.sizes["draw"], len(columns))
    stacked = np.stack(columns, axis=-1) if columns else np.empty(shape)
    return xr.Dataset(
        {"draws": (("chain", "draw", "element"), stacked)}, coords={"element": labels}
    )
