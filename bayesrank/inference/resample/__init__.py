"""Units, their weights, and data sets drawn anew from them."""
