"""What `bayesrank methods NAME` says: formulas that can be read on a terminal."""

import re

import pytest
from click.testing import CliRunner

from bayesrank.catalog import METHODS
from bayesrank.commands.cli import main


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_described_without_markup(name):
    shown = CliRunner().invoke(main, ["methods", name, "--quiet"]).stdout
    row = METHODS[name]
    assert row.title in shown
    assert row.use in " ".join(shown.split())
    left = re.findall(r"\\[a-zA-Z]+|:\w+:`|`{1,2}|\[\d+\]_|[{}]", shown)
    assert not left, shown
