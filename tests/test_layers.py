"""Imports go downward only: one line for each folder or module of the house."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import classprior

ROOT = Path(classprior.__file__).parent
ORDER = [
    {"__main__"},
    {"cli"},
    {"report"},
    {"plotting"},
    {"estimate", "sensitivity"},
    {"engines", "saving"},
    {"classifier"},
    {"priors"},
    {"density_ratio"},
    {"_scores", "theory", "metrics"},
    {"_data"},
    {"_core", "divergences", "datasets", "__init__"},
]
MODULES = sorted(ROOT.rglob("*.py"))
SCRIPTS = ["examples", "experiments", "benchmarks"]
each_module = pytest.mark.parametrize(
    "path", MODULES, ids=[str(path.relative_to(ROOT)) for path in MODULES]
)


def room(path):
    """Name of the module or package directly below classprior."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def depth(name):
    return next(number for number, rooms in enumerate(ORDER) if name in rooms)


def imported(path):
    """Yield what a file imports, inside functions too, but not for type checkers only."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def own(path):
    return [name.split(".")[1:] for name in imported(path) if name.startswith("classprior.")]


@each_module
def test_imports_go_down(path):
    here = room(path)
    for name, *_ in own(path):
        if name in {"__version__", here}:
            continue
        if (ROOT / name).is_dir() or (ROOT / f"{name}.py").is_file():
            assert depth(name) > depth(here), f"{here} imports {name}"


def test_no_module_of_a_folder_imports_itself_in_a_circle():
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in MODULES}
    edges = {
        name: {
            other
            for parts in own(path)
            for other in modules
            if parts[: other.count(".") + 1] == other.split(".")
        }
        - {name}
        for name, path in modules.items()
    }
    done = set()
    while len(done) < len(edges):
        free = {name for name, others in edges.items() if name not in done and others <= done}
        assert free, f"a circle among {sorted(set(edges) - done)}"
        done |= free


@each_module
def test_the_mathematics_knows_no_scikit_learn(path):
    if room(path) == "_core":
        assert not [name for name in imported(path) if name.split(".")[0] in ("sklearn", "pandas")]


@each_module
def test_no_package_imports_a_private_name_of_another(path):
    for name, *rest in own(path):
        assert name == room(path) or not rest or not rest[-1].startswith("_") or len(rest) == 1


@pytest.mark.parametrize("folder", SCRIPTS)
def test_scripts_use_public_names_only(folder):
    scripts = list((Path(__file__).parents[1] / folder).glob("*.py"))
    assert scripts
    for path in scripts:
        names = [name for name in imported(path) if name.split(".")[0] == "classprior"]
        assert not [name for name in names if "._" in name], path


@pytest.mark.parametrize(
    ("module", "heavy"), [("classprior.plotting", "matplotlib"), ("classprior.cli", "sklearn")]
)
def test_what_is_imported_late(module, heavy):
    code = f"import sys, {module}; sys.exit('{heavy}' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_public_names_are_few_and_there():
    assert len(classprior.__all__) <= 20
    assert all(hasattr(classprior, name) for name in classprior.__all__)
