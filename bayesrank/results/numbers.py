"""Text of numbers in tables and in figures."""

import re
from string import ascii_lowercase


def probability_text(value: float) -> str:
    """Round a probability to two digits, but never to 0 or 1, which draws cannot show.

    Examples
    --------
    >>> [probability_text(each) for each in (0.001, 0.504, 1.0)]
    ['<0.01', '0.50', '>0.99']
    """
    if value < 0.005:
        return "<0.01"
    return ">0.99" if value > 0.995 else f"{value:.2f}"


def split_letters(letters: str) -> list[tuple[str, int]]:
    """Split the letters of a system into its groups, each with its number from 0.

    They are those of :func:`bayesrank.results.summary.letter_groups`.

    Examples
    --------
    >>> split_letters("aza2")
    [('a', 0), ('z', 25), ('a2', 26)]
    """
    found = re.findall(r"([a-z])(\d*)", letters)
    size = len(ascii_lowercase)
    return [
        (letter + turn, ascii_lowercase.index(letter) + size * (int(turn or 1) - 1))
        for letter, turn in found
    ]


def short_letters(letters: str) -> str:
    """Shorten the letters of groups: a run of five letters or more becomes its ends.

    Examples
    --------
    >>> [short_letters(each) for each in ("abcd", "acdefgh", "xyza2b2c2")]
    ['abcd', 'ac-h', 'x-c2']
    """
    runs: list[list[str]] = []
    previous = -2
    for letter, number in split_letters(letters):
        if number == previous + 1:
            runs[-1].append(letter)
        else:
            runs.append([letter])
        previous = number
    return "".join(f"{run[0]}-{run[-1]}" if len(run) > 4 else "".join(run) for run in runs)
