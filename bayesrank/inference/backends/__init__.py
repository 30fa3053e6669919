"""Back ends: exact, bootstrap, optimum (mle and map), mml and nuts, one file each.

The keyword-only parameters of a back end are its options. Its docstring describes them, here and on
the command line: ``rank(data, "rasch", backend="nuts", tune=500)``, or
``bayesrank rank --method rasch --backend nuts --tune 500``, calls
:func:`~bayesrank.inference.backends.nuts.nuts` with ``tune=500``.
"""
