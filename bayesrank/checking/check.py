"""Check whether a result can be trusted, and report the findings."""

import xarray as xr

from bayesrank.checking.calibration import check_calibration
from bayesrank.checking.design import design_of
from bayesrank.checking.evidence import check_evidence
from bayesrank.checking.fit import check_fit
from bayesrank.checking.identification import check_identification
from bayesrank.checking.sampling import check_sampling
from bayesrank.checking.verdicts import Finding, Report
from bayesrank.design import part_with_outcomes
from bayesrank.entrance import as_data
from bayesrank.responses import Responses
from bayesrank.results.leaderboard import require_counts, require_result
from bayesrank.results.rating_scale import unscaled
from bayesrank.results.tree import data_groups
from bayesrank.views import Ballots, Comparisons


def check(
    result: xr.DataTree,
    data: Responses | Comparisons | Ballots | None = None,
    *,
    random_seed: int | None = 0,
) -> Report:
    """Check a result: sampling, data, identification, fit and calibration.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned, or one read from a file.
    data : Responses, Comparisons or Ballots, optional
        The ranked data. A result holds counts, which are enough for most checks, but no single
        trials: checks of runs, of win matrices and of models of single trials need the data.
    random_seed : int or None, default 0
        Seed of replicated data and of permutations; None for a new seed at every call.

    Returns
    -------
    Report
        One or more findings per topic, each with a verdict (good, does not apply, not measured,
        doubtful, bad), a sentence, and the numbers behind the verdict. ``print`` shows them,
        ``summary`` is one line.

    Raises
    ------
    ValueError
        If `result` is no result of :func:`bayesrank.rank`, or `data` are not the ranked data.

    Examples
    --------
    >>> from bayesrank import rank
    >>> outcomes = [[[1, 1, 0], [1, 1, 1]], [[0, 1, 0], [0, 0, 1]]]
    >>> report = check(rank(outcomes, "avg", random_seed=1))
    >>> report.verdict("sampling")
    'good'
    """
    require_result(result)
    require_counts(result)
    result = unscaled(result)
    data = None if data is None else as_data(data)
    if data is not None and data.fingerprint != result.attrs["fingerprint"]:
        raise ValueError("data must be those that were ranked; got others")
    data = None if data is None else part_with_outcomes(data)
    design = design_of(
        result["observed_data"].to_dataset(),
        result["constant_data"].to_dataset() if "constant_data" in result else xr.Dataset(),
    )
    evidence = tuple(
        check_evidence(
            design,
            data,
            ci_prob=float(result["ranking"].attrs.get("ci_prob", 0.95)),
            unit=result.attrs.get("unit", "trial"),
            random_seed=random_seed,
        )
    )
    identification = tuple(check_identification(result, design, data))
    return Report(
        (
            *check_sampling(result),
            *evidence,
            *identification,
            *check_fit(result, data, random_seed=random_seed),
            *check_calibration(
                result,
                design,
                data,
                dependent=_warned(evidence, "runs"),
                pulled=_warned(identification, "prior"),
            ),
        )
    )


def check_data(data: Responses | Comparisons | Ballots, *, random_seed: int | None = 0) -> Report:
    """Check data before a ranking: which systems were asked which questions, and the runs.

    Parameters
    ----------
    data : Responses, Comparisons or Ballots
        The data to be ranked.
    random_seed : int or None, default 0
        Seed of the permutations; None for a new seed at every call.

    Returns
    -------
    Report
        With the topic "data" only.

    Examples
    --------
    >>> data = Responses([[1, 1, 0], [0, 1, -1]], systems=["a", "b"])
    >>> check_data(data).about("different questions")[0].numbers["smallest_share"].__round__(2)
    0.67
    """
    data = as_data(data)
    groups = data_groups(data, "grades")
    design = design_of(groups["observed_data"], groups.get("constant_data", xr.Dataset()))
    return Report(tuple(check_evidence(design, data, random_seed=random_seed)))


def _warned(findings: tuple[Finding, ...], name: str) -> bool:
    return any(one.name == name for one in Report(findings).warnings)
