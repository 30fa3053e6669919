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

    One sentence per complaint, none when R-hat is below 1.01, the bulk effective sample size at
    least 100 per chain, and no transition of `sample_stats` diverged. Elements that never change,
    and variables that are not in `var_names`, where given, are passed over.

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
    from arviz_base import dataset_to_dataarray
    from arviz_stats.sampling_diagnostics import ess, rhat

    sample_dims = ["chain", "draw"]
    draws = posterior if var_names is None else posterior[list(var_names)]
    draws = draws.transpose(*draws.dims)  # labels would be wrong where their orders differ
    elements = dataset_to_dataarray(draws, sample_dims=sample_dims, add_coords=False)
    elements = elements[..., (elements.max(sample_dims) > elements.min(sample_dims)).values]
    n_chains = posterior.sizes["chain"]
    sentences: list[str] = []
    if sample_stats is not None and "diverging" in sample_stats:
        diverging = int(sample_stats["diverging"].sum())
        if diverging:
            sentences.append(
                f"{diverging} of {sample_stats['diverging'].size} transitions diverged: the draws "
                "miss a part of the posterior; reparametrise, or raise target_accept."
            )
    if not elements.sizes["label"]:
        return sentences
    if n_chains > 1:
        values = rhat(elements)
        worst = values[values.argmax("label")]
        if worst >= LARGEST_RHAT:
            sentences.append(
                f"R-hat of {worst['label'].item()} is {worst.item():.4g}, above {LARGEST_RHAT}: "
                "the chains have not mixed; draw more or simplify the model."
            )
    values = ess(elements[..., _slowest(elements.values)], method="bulk")
    worst = values[values.argmin("label")]
    needed = SMALLEST_ESS_PER_CHAIN * n_chains
    if worst < needed:
        sentences.append(
            f"The bulk effective sample size of {worst['label'].item()} is {worst.item():.0f}, "
            f"below {needed}: draw more."
        )
    return sentences


def _slowest(draws: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the elements, the last axis, with the highest autocorrelation at a lag of one draw.

    It is taken around the mean of all chains, so that chains apart from one another count too.
    """
    deviation = draws - draws.mean(axis=(0, 1))
    product = (deviation[:, 1:] * deviation[:, :-1]).sum(axis=(0, 1))
    return np.argsort(-product / (deviation**2).sum(axis=(0, 1)))[:EXAMINED]
