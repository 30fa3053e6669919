"""Log-densities with a kink, such as the Laplace distribution's, for optimisers."""

# PyTensor does not declare what it exports.
# pyright: reportPrivateImportUsage=false

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt

# Half-width of the rounded tip. Beyond 1e-4 the rounded value is the absolute one to the last bit.
SHARP = 1e-12
KINK_WIDTH: Any = pytensor.shared(np.float64(SHARP), name="kink_width")

# An optimiser follows the optimum from a round tip to a sharp one: Newton's method from afar
# jumps to and fro across a kink.
WIDTHS = (1.0, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, SHARP)


def rounded_abs(z: Any) -> Any:
    """Return the absolute value with its tip rounded over :data:`KINK_WIDTH`.

    Parameters
    ----------
    z : tensor
        In units of the density's own scale.

    Returns
    -------
    tensor
        Equal to ``abs(z)`` in floating point away from zero, with slope zero at zero.
    """
    return pt.sqrt(z**2 + KINK_WIDTH**2)
