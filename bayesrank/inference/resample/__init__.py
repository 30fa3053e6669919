"""Units, their weights and contributions, and resampled data sets."""
