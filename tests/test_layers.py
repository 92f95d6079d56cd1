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
    {"app"},
    {"report"},
    {"plotting"},
    {"estimate"},
    {"estimation", "sensitivity", "_scored"},
    {"engines", "saving", "_judging", "_reviewing"},
    {"review"},
    {"classifier"},
    {"priors"},
    {"density_ratio"},
    {"_scores", "theory", "metrics"},
    {"result"},
    {"_base"},
    {"_html"},
    {"_headline"},
    {"_samples"},
    {"_files"},
    {"_tables"},
    {"_core", "divergences", "datasets", "__init__"},
]
ROOMS = [name for rooms in ORDER for name in sorted(rooms)]
MODULES = sorted(ROOT.rglob("*.py"))
SCRIPTS = ["examples", "experiments", "benchmarks"]
each_room = pytest.mark.parametrize("room", ROOMS)


def room_of(path):
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


IMPORTED = {path: list(imported(path)) for path in MODULES}
OWN = {
    path: [name.split(".")[1:] for name in names if name.startswith("classprior.")]
    for path, names in IMPORTED.items()
}


def test_every_module_has_a_room():
    assert {room_of(path) for path in MODULES} == set(ROOMS)


@each_room
def test_imports_go_down(room):
    for path in (path for path in MODULES if room_of(path) == room):
        for name, *_ in OWN[path]:
            if name not in {"__version__", room} and name in ROOMS:
                assert depth(name) > depth(room), f"{path} imports {name}"


def test_no_module_of_a_folder_imports_itself_in_a_circle():
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in MODULES}
    edges = {
        name: {
            other
            for parts in OWN[path]
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


def test_the_mathematics_knows_no_scikit_learn():
    heavy = {"sklearn", "pandas", "rich", "html"}
    for path in (path for path in MODULES if room_of(path) == "_core"):
        assert not heavy & {name.split(".")[0] for name in IMPORTED[path]}, path


@each_room
def test_no_package_imports_a_private_name_of_another(room):
    for path in (path for path in MODULES if room_of(path) == room):
        for name, *rest in OWN[path]:
            is_private = len(rest) > 1 and rest[-1].startswith("_")
            assert name == room or not is_private, f"{path} imports {'.'.join([name, *rest])}"


@pytest.mark.parametrize("folder", SCRIPTS)
def test_scripts_use_public_names_only(folder):
    scripts = list((Path(__file__).parents[1] / folder).glob("*.py"))
    assert scripts
    for path in scripts:
        names = [name for name in imported(path) if name.split(".")[0] == "classprior"]
        assert not [name for name in names if "._" in name], path


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("classprior.plotting", "matplotlib"),
        ("classprior.cli", "sklearn"),
        ("classprior.app._pages", "numpy"),
    ],
)
def test_what_is_imported_late(module, heavy):
    code = f"import sys, {module}; sys.exit('{heavy}' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_public_names_are_few_and_there():
    assert len(classprior.__all__) <= 22
    assert all(hasattr(classprior, name) for name in classprior.__all__)
