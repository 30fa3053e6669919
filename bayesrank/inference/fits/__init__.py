"""Estimates without PyMC: maximum likelihood and posterior modes by Newton's method, batched.

One module per model, each with a function that builds the objective and a ``fit_*`` function that
returns a :class:`~bayesrank.inference.fits.fit.Fit`:

- ``pairs``: every likelihood of comparisons, stated pointwise, and ``pair_counts``, which fits all;
- ``vote_likelihoods``: those of votes, ``pair_rows``, which adds them up vote by vote, and
  ``vote_fits``, which fits them; in states (``pair_states``, ``state_tree``) and with judges
  (``raters``, ``rated_rows``);
- winner sets: ``luce``, with the sums of ``winner_sets``;
- items, as rows of ``two_sided``: ``rasch``, ``published_irt`` (2PL and 3PL), ``item_models`` (the
  defaults), ``mirt`` (one table); ``like_questions`` are fitted as one; ``mml`` (marginal
  likelihood);
- ``standardized_accuracy``.

Nothing is imported here: a fit of pairs should not wait for what items need.
"""
