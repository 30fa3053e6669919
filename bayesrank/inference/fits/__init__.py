"""Structured Newton kernels: maximum-likelihood and penalised fits in batched NumPy.

One module per model, each with a ``fit_*`` function that returns a
:class:`~bayesrank.inference.fits.fit.Fit` and a ``*_problem`` function that returns the
objective itself, with ``value``, ``gradient`` and ``information`` at points of shape (resample, p):

- ``pairs``: every likelihood of comparisons, stated pointwise, and ``fit_pairs`` for all of them;
- winner sets: ``bradley_terry_luce``, ``davidson_luce``;
- items: ``rasch``, ``irt`` (2PL and 3PL), ``mml`` (marginal likelihood), ``mirt`` (one table);
- ordered trials: ``growth``, ``state_space``.

Nothing is imported here: a fit of pairs should not wait for what items need.
"""
