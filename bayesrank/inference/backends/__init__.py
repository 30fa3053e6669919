"""Back ends: exact, bootstrap, optimum (mle and map), mml and nuts."""
