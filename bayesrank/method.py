"""The fields of a row of the catalog.

Other facts come from the function of the method: options are its keyword-only parameters, the title
is the first line of its docstring. Functions are read as source text, so listing them imports
neither PyMC nor other slow packages.
"""

import ast
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from bayesrank.priors import Prior, parse_prior

DataKind = Literal[
    "grades",
    "grouped grades",
    "binary",
    "counts",
    "evidence",
    "pairs",
    "stream",
    "log",
    "responses",
    "comparisons",
]

ScoreKind = Literal["smooth", "share", "sum", "majority", "rating"]

ScoreRange = Literal[
    "",
    "grades",
    "shares",
    "levels",
    "rounds",
    "balance",
    "points",
    "losses",
    "payoffs",
    "unit vector",
    "potentials",
]

# Keyword-only parameters that rank() takes itself, so they are not options of a method.
_RUN_PARAMETERS = frozenset({"prior", "random_seed"})

# A comma that is not inside parentheses.
_BETWEEN_CALLS = re.compile(r"\s*,\s*(?![^()]*\))")

# Back ends of the PyMC factories.
LIKELIHOOD_BACKENDS = frozenset({"mle", "map", "nuts", "mml"})


@dataclass(frozen=True)
class Method:
    """One row of the table of methods.

    Attributes
    ----------
    name : str
        What :func:`bayesrank.rank` is given.
    family : str
        Group of methods that work alike.
    function : str
        ``module:function`` of the NumPy ranker, or of the PyMC factory of a likelihood. Its
        keyword-only parameters are the options of the method.
    data : str
        What the function takes: see :mod:`bayesrank.inference.resample.arguments`.
    backends : tuple of str
        Back ends that can run it; the first is the default.
    citations : tuple of str
        Keys of ``references.bib``.
    use : str
        When to use it, as one sentence.
    absent : mapping of str to str
        Why the method cannot have a back end that others of its kind have, by back end.
    factory : str, optional
        ``module:function`` of the PyMC factory, where `function` is a NumPy ranker.
    kernel : str, optional
        ``module:function`` of the Newton kernel for point estimates.
    exact : str, optional
        ``module:function`` that draws scores from the closed-form posterior.
    functional : str, optional
        ``module:function`` from probabilities (..., system, question) of a right answer, or
        (..., system, question, category) of each category, to the scores that the function
        estimates: without bias from whole counts, or by the posterior mean under uniform priors
        with the option ``estimator="posterior_mean"``.
    gradient : str, optional
        ``module:function`` that returns the likelihood for sandwich calibration: pointwise, see
        :mod:`bayesrank.inference.fits.pairs`, where the data are comparisons; by unit of variation,
        see :mod:`bayesrank.inference.calibrate.unit_likelihoods`, where they are responses.
    spread : str, optional
        ``module:function`` that draws scores inside their range from their sampling distribution,
        for whichever back end estimated them: the calibration of a method without `gradient`.
    composite : bool
        Whether the likelihood is a composite one, whose draws need calibration.
    empirical : bool
        Whether the factory takes a part of the prior from the data, whose draws need it as well.
    correlated : bool
        Whether the posterior is so correlated that NUTS should adapt to its correlations.
    existence : str, optional
        ``module:function`` that raises where the maximum-likelihood estimate does not exist.
    example : mapping
        Options for examples and common tests, where the method has required ones.
    kind : {"smooth", "share", "sum", "majority", "rating"}
        How the score depends on the data: as a smooth function, so that weights may be fractions,
        or as such a function in percent of the largest; as a sum over questions of discontinuous
        terms; by majorities, which one question may turn; or by the order of the answers. The least
        smooth of those among which options choose.
    although : str
        Why a discontinuous score is resampled as a smooth one all the same.
    step : float or str
        Step between two values of a score that counts points, majorities or levels; 0 for scores
        that take any value. Or ``module:function`` to it from the options and the numbers of
        systems and of questions (0 for battles).
    range : str
        What the score of a ranker is, which says between which ends it lies whatever the data:
        a mean grade, a share of 1, a level from 1 to the number of systems, rounds that it survives
        or opponents beaten less opponents lost to, points of every question from every opponent,
        losses of questions, a payoff, a place on a vector of norm one, or a potential of flows of
        at most 1. Empty if it has no such range.
    weighs_questions : bool
        Whether the answers to a question decide how much it counts, so that few may decide.
    graded : bool
        Whether the score is a mean grade, so that it has the units of the outcomes.
    shrunk : bool
        Whether a Dirichlet prior on the categories of an outcome pulls the score towards its mean,
        so that it is not the observed mean.
    battles : Method, optional
        The form of the method that ranks battles, where it is another function.
    """

    name: str
    family: str
    function: str
    data: DataKind
    backends: tuple[str, ...]
    citations: tuple[str, ...]
    use: str = ""
    absent: Mapping[str, str] = field(default_factory=dict)
    factory: str | None = None
    kernel: str | None = None
    exact: str | None = None
    functional: str | None = None
    gradient: str | None = None
    spread: str | None = None
    composite: bool = False
    empirical: bool = False
    correlated: bool = False
    existence: str | None = None
    example: Mapping[str, Any] = field(default_factory=dict)
    kind: ScoreKind = "smooth"
    although: str = ""
    step: float | str = 0.0
    range: ScoreRange = ""
    weighs_questions: bool = False
    graded: bool = False
    shrunk: bool = False
    battles: "Method | None" = None

    def __getstate__(self) -> dict[str, Any]:
        # What was read from the source cannot all be pickled, and is read again where it is needed.
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def forms(self) -> "tuple[Method, ...]":
        """The method as it ranks responses, and as it ranks battles where that is another way."""
        return (self,) if self.battles is None else (self, self.battles)

    @cached_property
    def all_options(self) -> Mapping[str, Parameter]:
        """Options of the method in all its forms."""
        return MappingProxyType(
            {n: each for form in self.forms[::-1] for n, each in form.options.items()}
        )

    @property
    def smooth(self) -> bool:
        """Whether weights of questions and trials may be fractions."""
        return self.kind in ("smooth", "share")

    @property
    def is_calibrated(self) -> bool:
        """Whether the draws are calibrated by default, whatever the target."""
        return self.composite or self.empirical or self.spread is not None

    @property
    def can_be_calibrated(self) -> bool:
        """Whether draws can be given the spread over the units of the target."""
        return self.gradient is not None or self.spread is not None

    @property
    def docstring(self) -> str:
        """Docstring of the function."""
        return ast.get_docstring(_source(self.function)) or ""

    @property
    def title(self) -> str:
        """First line of the docstring of the function, without the full stop."""
        return self.docstring.split("\n")[0].rstrip(".")

    @property
    def description(self) -> str:
        """Docstring of the function between the title and the first section: the model."""
        body = self.docstring.partition("\n")[2]
        return re.split(r"\n[A-Z]\w+( \w+)?\n-{3,}\n", body, maxsplit=1)[0].strip()

    @cached_property
    def options(self) -> Mapping[str, Parameter]:
        """Options by name, with default and annotation (as text)."""
        arguments = _source(self.function).args
        options = {}
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if argument.arg not in _RUN_PARAMETERS:
                options[argument.arg] = Parameter(
                    argument.arg,
                    Parameter.KEYWORD_ONLY,
                    default=Parameter.empty if default is None else ast.literal_eval(default),
                    annotation=ast.unparse(argument.annotation) if argument.annotation else "Any",
                )
        return MappingProxyType(options)

    def functional_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return those options of the method that its functional takes."""
        known = {argument.arg for argument in _source(self.functional or "").args.kwonlyargs}
        return {name: value for name, value in options.items() if name in known}

    @cached_property
    def is_random(self) -> bool:
        """Whether the function draws random numbers, so that it takes a seed."""
        return any(
            argument.arg == "random_seed" for argument in _source(self.function).args.kwonlyargs
        )

    @property
    def factory_path(self) -> str:
        """``module:function`` of the PyMC factory."""
        return self.function if self.factory is None else self.factory

    @cached_property
    def accepts(self) -> frozenset[str]:
        """Names of the types that the factory of a likelihood, or the ranker, takes as data."""
        annotation = _source(self.factory_path).args.args[0].annotation
        names = ast.walk(annotation) if annotation else ()
        return frozenset(node.id for node in names if isinstance(node, ast.Name))

    @cached_property
    def default_prior(self) -> Prior | None:
        """Prior on the scores by default; None for methods without one."""
        if not LIKELIHOOD_BACKENDS.intersection(self.backends):
            return None
        arguments = _source(self.factory_path).args
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if argument.arg == "prior" and default is not None:
                return parse_prior(ast.unparse(default).lower())
        return None

    @cached_property
    def priors(self) -> frozenset[str]:
        """Options that are priors."""
        return frozenset(n for n, each in self.options.items() if "PriorLike" in each.annotation)

    def check_options(self, options: Mapping[str, Any], more: Iterable[str] = ()) -> None:
        """Raise ValueError for an option that the method does not have or that it lacks.

        The message lists the options of the method and `more`, those of the back end.
        """
        known = ", ".join([*self.options, *more]) or "none"
        for name in options:
            if name not in self.options:
                raise ValueError(f"options of {self.name} must be among: {known}; got {name!r}")
        for name, parameter in self.options.items():
            if parameter.default is Parameter.empty and name not in options:
                raise ValueError(f"{name} must be given for {self.name}; got none")


@dataclass(frozen=True)
class Preset:
    """A published configuration: a method with its back end, prior and options fixed.

    Attributes
    ----------
    name : str
        The published name.
    method : str
        Row of `METHODS`.
    backend : str
        Back end of the publication.
    prior : str or None
        Prior as text for :func:`bayesrank.priors.parse_prior`; None for methods without one.
    options : mapping
        Options of the method that differ from its defaults.
    """

    name: str
    method: str
    backend: str
    prior: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def read_call(text: str, argument: str) -> tuple[str, dict[str, Any]]:
    """Split ``name(option=value, ...)`` into the name and the options.

    Values are literals, and words, which need no quotes.

    Parameters
    ----------
    text : str
        A name, with options in parentheses where there are some.
    argument : str
        What the text was passed as, for the message.

    Returns
    -------
    name : str
    options : dict

    Raises
    ------
    ValueError
        If the text has another form.

    Examples
    --------
    >>> read_call("g_pass_at_k_tau(k=8, tau=0.5)", "methods")
    ('g_pass_at_k_tau', {'k': 8, 'tau': 0.5})
    >>> read_call("pass_at_k(estimator=posterior_mean)", "methods")
    ('pass_at_k', {'estimator': 'posterior_mean'})
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
        if isinstance(node, ast.Name):
            return node.id, {}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
            options = {k.arg: _literal(k.value) for k in node.keywords if k.arg}
            if len(options) == len(node.keywords):  # no **
                return node.func.id, options
    except (AttributeError, SyntaxError, ValueError):
        pass  # the error below says what is accepted
    raise ValueError(f"{argument} must have the form name or name(option=value); got {text!r}")


def _literal(node: ast.expr) -> Any:
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)


def split_calls(text: str) -> list[str]:
    """Split a list of names with options at the commas between them.

    Examples
    --------
    >>> split_calls("avg, g_pass_at_k_tau(k=8, tau=0.5)")
    ['avg', 'g_pass_at_k_tau(k=8, tau=0.5)']
    """
    return _BETWEEN_CALLS.split(text.strip())


def load_function(path: str) -> Any:
    """Return the function that ``module:function`` names."""
    module, _, name = path.partition(":")
    # Importing a module that is already loaded takes as long as a step of Newton's method.
    return getattr(sys.modules.get(module) or import_module(module), name)


@cache
def _source(path: str) -> ast.FunctionDef:
    """Return the syntax tree of the function that ``module:function`` names."""
    module, _, name = path.partition(":")
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise LookupError(f"function must name a module that Python finds; got {path!r}")
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise LookupError(f"function must exist in its module; got {path!r}")
