"""Formulas and roles of docstrings as text that a terminal can show."""

# ruff: noqa: RUF001 (Greek letters are meant)

import re

# Commands without an argument; a command that no table here contains is shown by its name.
_SYMBOLS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "theta": "θ",
    "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "pi": "π", "rho": "ρ", "sigma": "σ",
    "tau": "τ", "phi": "φ", "omega": "ω", "Phi": "Φ", "sum": "Σ", "prod": "Π", "int": "∫",
    "sqrt": "√", "le": "≤", "ge": "≥", "ne": "≠", "sim": "~", "approx": "≈", "mid": "|",
    "to": "→", "leftarrow": "←", "succ": "≻", "cdot": "·", "times": "×", "dots": "...",
    "infty": "∞", "top": "T", "lceil": "⌈", "rceil": "⌉", "quad": " ", "qquad": " ", "in": "∈",
}  # fmt: skip
# Sizes and spaces, which text does not have.
_IGNORED = re.compile(r"\\(?:[bB]igg?[lrm]?|left|right|textstyle|displaystyle|[,;:!])(?![a-zA-Z])")
_ACCENTS = {"bar": "\u0304", "hat": "\u0302", "tilde": "\u0303"}
_FONTS = ("operatorname", "text", "mathrm", "mathbf", "mathbb", "mathcal")
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|\s+|.", re.DOTALL)


def plain_text(text: str) -> str:
    r"""Remove the markup of reStructuredText: formulas, literals, roles and citations.

    Examples
    --------
    >>> plain_text(r"The option `k` of :func:`rank` is :math:`\theta_i \ge 0` [1]_.")
    'The option k of rank is θ_i ≥ 0.'
    """
    text = re.sub(r":math:`([^`]*)`", lambda found: plain_formula(found[1]), text)
    text = re.sub(r"\s*\[\d+\]_", "", text)
    return re.sub(r"(?::\w+:)?`+~?([^`]+)`+", r"\1", text)


def plain_formula(latex: str) -> str:
    r"""Return a formula of LaTeX in Unicode, on one line.

    Examples
    --------
    >>> plain_formula(r"\frac{\pi_i}{\pi_i + \kappa \pi_j}")
    'π_i/(π_i + κ π_j)'
    >>> plain_formula(r"\operatorname{logit}^{-1}(\theta_l - b_m)")
    'logit^-1(θ_l - b_m)'
    """
    tokens = _TOKEN.findall(_IGNORED.sub("", latex))
    return re.sub(r"\s+", " ", _read(tokens[::-1], to="")).strip()


def _read(tokens: list[str], *, to: str) -> str:
    """Read tokens, the next one last, up to a closing one."""
    parts = []
    while tokens and tokens[-1] != to:
        parts.append(_part(tokens))
    if tokens:
        tokens.pop()
    return "".join(parts)


def _part(tokens: list[str]) -> str:
    """Read a symbol, a group, or a command with its arguments."""
    first = tokens.pop()
    if first == "{":
        return _read(tokens, to="}")
    if first in ("_", "^"):
        return first + _enclosed(_argument(tokens))
    name = first.removeprefix("\\")
    if name == first:
        return first
    if name == "frac":
        return f"{_enclosed(_argument(tokens))}/{_enclosed(_argument(tokens))}"
    if name == "binom":
        return f"C({_argument(tokens)}, {_argument(tokens)})"
    if name in _ACCENTS:
        return _argument(tokens) + _ACCENTS[name]
    if name in _FONTS:
        return _argument(tokens)
    # A space separates the name of a function from the letter that follows it.
    apart = " " if name.isalpha() and tokens and tokens[-1].startswith("\\") else ""
    return _SYMBOLS.get(name, name + apart)


def _argument(tokens: list[str]) -> str:
    while tokens and tokens[-1].isspace():
        tokens.pop()
    return _part(tokens) if tokens else ""


def _enclosed(text: str) -> str:
    """Put text longer than a name or a number in parentheses."""
    return text if re.fullmatch(r"-?[\w.']*|\w_\w+", text.strip()) else f"({text.strip()})"
