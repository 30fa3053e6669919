"""Studies of methods on your own data: stability, convergence, priors, greedy runs.

Every study returns an :class:`xarray.Dataset` with labelled dims, and :func:`plot` draws it.
"""

from bayesrank.results.same_rankings import collapse
from bayesrank.studies import simulate
from bayesrank.studies.adaptive import adaptive_greedy, power_prior
from bayesrank.studies.alignment import alignment
from bayesrank.studies.battle_stability import battle_stability
from bayesrank.studies.categorical import categorical
from bayesrank.studies.commensurate import commensurate_prior
from bayesrank.studies.consensus import consensus
from bayesrank.studies.convergence import convergence
from bayesrank.studies.figures import plot
from bayesrank.studies.greedy import greedy_alignment, greedy_effect, prior_data_conflict
from bayesrank.studies.perturbation import difficulty_leave_one_out, perturbation
from bayesrank.studies.pools import model_pools
from bayesrank.studies.rankllm import bounded_2pl, damping_sensitivity, difficulty_levels
from bayesrank.studies.sensitivity import prior_sensitivity
from bayesrank.studies.stability import stability
from bayesrank.studies.tables import published_tables, write_tables
from bayesrank.studies.transfer import prior_transfer

__all__ = [
    "adaptive_greedy",
    "alignment",
    "battle_stability",
    "bounded_2pl",
    "categorical",
    "collapse",
    "commensurate_prior",
    "consensus",
    "convergence",
    "damping_sensitivity",
    "difficulty_leave_one_out",
    "difficulty_levels",
    "greedy_alignment",
    "greedy_effect",
    "model_pools",
    "perturbation",
    "plot",
    "power_prior",
    "prior_data_conflict",
    "prior_sensitivity",
    "prior_transfer",
    "published_tables",
    "simulate",
    "stability",
    "write_tables",
]
