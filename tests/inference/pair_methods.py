"""The methods whose likelihood is stated once, pointwise in pairs, as the catalog has them."""

from inspect import signature

from bayesrank import METHODS
from bayesrank.inference.fits.pairs import PairLikelihood
from bayesrank.method import load_function

_FILE = "bayesrank.inference.fits.pairs:"
# Plackett-Luce of comparisons is Bradley-Terry, without its options.
METHODS_OF_PAIRS = tuple(
    name
    for name, row in METHODS.items()
    if (row.gradient or "").startswith(_FILE) and "formula" in row.options
)


def pair_likelihoods(tie_strength: float = 1.4) -> dict[str, PairLikelihood]:
    """Return all likelihoods of pairs: those of the defaults, of half ties and of a fixed tie."""
    found = {}
    for name in METHODS_OF_PAIRS:
        state = load_function(METHODS[name].gradient or "")
        variants = {"": {}, "_half": {"ties": "half"}, "_fixed": {"tie_strength": tie_strength}}
        for ending, options in variants.items():
            if set(options) <= set(signature(state).parameters):
                found[name + ending] = state(**options)
    return found
