"""From data and a method to an estimate with its draws, by stage.

``backends`` answer a call; they take optima from ``fits`` (NumPy) or ``graph`` (PyMC), vary the
data by ``resample``, and give draws the covariance that the data show by ``calibrate``.
"""
