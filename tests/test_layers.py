"""Imports go downward only: edges, estimators, checks, cross-validation, maths."""

import ast
from pathlib import Path

import pytest

import classprior

ROOT = Path(classprior.__file__).parent
LAYERS = [
    {
        "estimate",
        "_frames",
        "_columns",
        "_files",
        "_csv_files",
        "_writing",
        "_models",
        "_diagnostics",
        "_share_bar",
        "_inline_svg",
        "_pictures",
        "engines",
        "report",
        "plotting",
        "sensitivity",
        "cli",
        "__main__",
        "__init__",
    },
    {
        "priors",
        "_density_ratio",
        "_least_squares_classifier",
        "_classifier",
        "_samples",
        "_uncertainty",
        "_views",
    },
    {"_validation", "_parameters", "_messages"},
    {"_cross_validation"},
    {
        "_solvers",
        "_finite_slope",
        "_smooth",
        "_moments",
        "_gram",
        "_threads",
        "_tails",
        "_basis",
        "divergences",
        "theory",
    },
]
APART = {"datasets", "metrics"}
MODULES = sorted(ROOT.rglob("*.py"))
ROOMS = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in MODULES}


def room(path):
    """Name of the module or package directly below classprior."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def layer(name):
    return next(depth for depth, names in enumerate(LAYERS) if name in names)


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path):
    own = [name.split(".")[1] for name in imported(path) if name.startswith("classprior.")]
    own = [name for name in own if name in ROOMS]
    if room(path) in APART:
        assert not own
    else:
        assert all(layer(name) >= layer(room(path)) for name in own if name not in APART)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_maths_knows_no_scikit_learn(path):
    if room(path) in LAYERS[3] | LAYERS[4]:
        assert not [name for name in imported(path) if name.split(".")[0] == "sklearn"]


@pytest.mark.parametrize("folder", ["examples", "experiments", "benchmarks"])
def test_scripts_use_public_names_only(folder):
    scripts = list((Path(__file__).parents[1] / folder).glob("*.py"))
    assert scripts
    for path in scripts:
        own = [name for name in imported(path) if name.split(".")[0] == "classprior"]
        assert not [name for name in own if "._" in name], path


def test_importing_the_library_does_not_import_matplotlib():
    import subprocess
    import sys

    code = "import sys, classprior.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
