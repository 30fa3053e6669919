"""The case study of RankLLM: five systems on a hundred questions, reconstructed.

Published facts [1]_: the number of easy, medium and hard questions, how many of each every system
solves, and the scores of RankLLM to two decimals. Which system solves which question is not
published. It is taken here that all questions of a level are solved by equally many systems, as
the counts allow: four of five solve an easy question, three a medium one and one a hard one. Then
the easy and the hard questions are determined, and of the 1548 possible sets of medium questions
one alone has the published scores with the damping 0.85. Systems are numbered from 1 to 5.

References
----------
.. [1] Z. Zhang et al. RankLLM: weighted ranking of LLMs by quantifying question difficulty (2026).
   Section 4. https://doi.org/10.48550/arXiv.2602.12424
"""

import numpy as np

from bayesrank.responses import Responses

SYSTEMS = ("M1", "M2", "M3", "M4", "M5")

# By level: which systems fail, and how many questions.
_FAILED = {
    "easy": {(3,): 23, (4,): 24, (5,): 23},
    "medium": {(1, 3): 2, (1, 4): 3, (1, 5): 6, (2, 3): 6, (2, 4): 3, (2, 5): 1},
    "hard": {(2, 3, 4, 5): 5, (1, 3, 4, 5): 4},
}


def load_rankllm_case_study() -> Responses:
    """Return the simulated case study of RankLLM.

    The counts of right answers by level and the scores of RankLLM are the published ones; which
    system solves which question is reconstructed from them, see the source of this module.

    Returns
    -------
    Responses
        Five systems, 100 questions and one trial; the groups are the levels: 70 questions are
        ``"easy"``, 21 ``"medium"`` and 9 ``"hard"``.

    References
    ----------
    .. [1] Z. Zhang et al. RankLLM: weighted ranking of LLMs by quantifying question difficulty
       (2026). Section 4. https://doi.org/10.48550/arXiv.2602.12424

    Examples
    --------
    >>> from bayesrank.methods.bipartite import rankllm
    >>> data = load_rankllm_case_study()
    >>> data.grades.mean(axis=1)
    array([0.85, 0.85, 0.6 , 0.61, 0.61])
    >>> rankllm(data.grades).score.round(2)
    array([100.  ,  95.5 ,  56.88,  59.85,  58.21])
    """
    columns, levels = [], []
    for level, failed in _FAILED.items():
        for systems, count in failed.items():
            right = [number not in systems for number in range(1, len(SYSTEMS) + 1)]
            columns += [right] * count
            levels += [level] * count
    return Responses(
        np.array(columns, dtype=np.int8).T[..., np.newaxis], systems=SYSTEMS, groups=levels
    )
