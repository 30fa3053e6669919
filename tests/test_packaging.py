"""The wheel and the sdist hold the package, whole and once.

Continuous integration names the distributions that it has built in ``BAYESRANK_DIST`` and runs this
against the installed wheel; elsewhere they are built here, without a network.
"""

import importlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections import Counter
from pathlib import Path

import pytest

import bayesrank

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
BUILT = os.environ.get("BAYESRANK_DIST")
NOT_SOURCE = shutil.ignore_patterns(
    "*.egg-info", "*.pyc", "__pycache__", ".*", "build", "dist", "bayesrank-demo"
)


def build(source: Path, folder: Path, *kinds: str) -> None:
    """Run ``python -m build`` with the setuptools that is installed."""
    command = [sys.executable, "-m", "build", "--no-isolation", *kinds, "--outdir", folder, source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(f"the build failed:\n{done.stdout}\n{done.stderr}")
    # What setuptools says of files whose place in the wheel it doubts.
    assert "would be ignored" not in done.stdout + done.stderr


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository, so that building leaves nothing behind in it."""
    if BUILT:
        pytest.skip("the distributions were built before")
    copy = tmp_path_factory.mktemp("source") / "bayesrank"
    return Path(shutil.copytree(ROOT, copy, symlinks=True, ignore=NOT_SOURCE))


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Return a folder with an sdist and the wheel built from it."""
    if BUILT:
        return Path(BUILT)
    folder = tmp_path_factory.mktemp("dist")
    build(request.getfixturevalue("source"), folder)
    return folder


def wheel_files(folder: Path) -> list[str]:
    """Return the names in the one wheel of a folder."""
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def importable_folders() -> set[str]:
    """Return the folders of the repository that hold modules of the package, by import name."""
    modules = [*ROOT.glob("bayesrank/**/*.py"), *ROOT.glob("models/**/*.py")]
    parents = {path.relative_to(ROOT).parent.as_posix().replace("/", ".") for path in modules}
    return {name if name.startswith("bayesrank") else f"bayesrank.{name}" for name in parents}


def test_every_package_folder_is_listed() -> None:
    """A folder that pyproject.toml does not name would be missing from the wheel, silently."""
    if not (ROOT / "models").is_dir():
        pytest.skip("the sources are not beside the tests")
    assert importable_folders() == set(PROJECT["tool"]["setuptools"]["packages"])


@pytest.mark.parametrize("package", PROJECT["tool"]["setuptools"]["packages"])
def test_wheel_holds_every_package(dist: Path, package: str) -> None:
    assert f"{package.replace('.', '/')}/__init__.py" in wheel_files(dist)


def test_wheel_holds_every_module_and_data_file_once(dist: Path) -> None:
    names = Counter(wheel_files(dist))
    assert max(names.values()) == 1
    installed = Path(bayesrank.__file__).parent
    wanted = {
        f"bayesrank/{path.relative_to(installed).as_posix()}"
        for pattern in ("*.py", "*.typed", "*.bib", "*.csv", "*.html", "*.css", "*.js")
        # pathlib does not follow links, so the models are listed apart.
        for folder in (installed, installed / "models")
        for path in folder.rglob(pattern)
    }
    assert "bayesrank/py.typed" in wanted
    assert wanted <= set(names)


def test_wheel_holds_nothing_else(dist: Path) -> None:
    tops = {name.split("/")[0] for name in wheel_files(dist)}
    version = PROJECT["project"]["version"]
    assert tops == {"bayesrank", f"bayesrank-{version}.dist-info"}


def test_sdist_holds_models_once(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        factories = [name for name in archive.getnames() if name.endswith("/models/__init__.py")]
    assert factories == [f"{sdist.name.removesuffix('.tar.gz')}/models/__init__.py"]


def test_sdist_builds_the_wheel_that_the_sources_build(
    dist: Path, source: Path, tmp_path: Path
) -> None:
    build(source, tmp_path, "--wheel")
    contents = []
    for folder in (dist, tmp_path):
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            contents.append({name: archive.read(name) for name in archive.namelist()})
    assert contents[0] == contents[1]


def test_models_cannot_be_imported_by_the_name_of_its_folder() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import models"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    here = (ROOT / "models").is_dir()
    reason = "import the factories as bayesrank.models" if here else "No module named 'models'"
    assert reason in done.stderr


def test_models_have_one_identity() -> None:
    """No factory module is loaded twice, under two names, from one file."""
    folder = Path(importlib.import_module("bayesrank.models").__file__ or "").parent
    for path in folder.glob("*.py"):
        importlib.import_module(f"bayesrank.models.{path.stem}".removesuffix(".__init__"))
    loaded = [
        Path(module.__file__).resolve()
        for module in list(sys.modules.values())
        if getattr(module, "__file__", None) and "models" in Path(module.__file__).parts
    ]
    factories = [path for path in loaded if path.parent == folder.resolve()]
    assert len(factories) == len(set(factories)) == len(list(folder.glob("*.py")))


@pytest.mark.skipif(not BUILT, reason="the package under test is the repository itself")
def test_the_wheel_is_what_is_tested() -> None:
    assert Path(bayesrank.__file__).is_relative_to(sys.prefix)


def test_command_is_installed() -> None:
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="bayesrank")
    assert command.value == "bayesrank.commands.cli:main"
    assert callable(command.load())


def test_version_is_that_of_the_project() -> None:
    assert importlib.metadata.version("bayesrank") == PROJECT["project"]["version"]
    assert bayesrank.__version__ == PROJECT["project"]["version"]


def test_names_that_are_imported_late_are_completed() -> None:
    late = {"explore", "report", "plot_leaderboard", "plot_group_scores", "save_figure"}
    assert late <= set(dir(bayesrank))
    assert all(hasattr(bayesrank, name) for name in dir(bayesrank))
