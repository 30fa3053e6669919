"""PyMC models as compiled functions: optimum, Gaussian draws and NUTS."""
