"""Draws whose covariance is that of the estimate over the units that vary."""
