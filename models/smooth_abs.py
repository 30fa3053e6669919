"""A smooth absolute value, for log-densities such as the Laplace distribution's."""

# PyTensor does not declare what it exports.
# pyright: reportPrivateImportUsage=false

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt

# Beyond 1e-4 the smooth value is exactly the absolute value.
SHARP = 1e-12
SMOOTHING_WIDTH: Any = pytensor.shared(np.float64(SHARP), name="smoothing_width")

# An optimiser follows the optimum from a smooth density to a sharp one: from a distance, Newton's
# method oscillates across the kink.
WIDTHS = (1.0, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, SHARP)


def smooth_abs(z: Any) -> Any:
    """Return the absolute value, smoothed around zero over :data:`SMOOTHING_WIDTH`.

    `z` is in units of the scale of the density. Away from zero the result equals ``abs(z)`` in
    floating point; the slope at zero is zero.
    """
    return pt.sqrt(z**2 + SMOOTHING_WIDTH**2)
