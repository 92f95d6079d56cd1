"""One version, the same requirements everywhere, and nothing foreign in a wheel."""

import importlib.util
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import classprior

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_version_is_the_same_wherever_it_is_written():
    version = classprior.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", version)
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/classprior/__init__.py"
    recipe = re.search(r'set version = "([^"]+)"', read("packaging/conda/meta.yaml"))
    assert recipe[1] == version
    assert re.search(r"^## (\S+)", read("CHANGELOG.md"), re.M)[1] == version
    assert re.search(r"^version: (\S+)", read("CITATION.cff"), re.M)[1] == version


def test_conda_recipe_has_the_requirements_of_the_command_line():
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["plot"], *extras["cli"]]
    wanted = {name for name in wanted if not name.startswith("classprior[")}
    wanted.add(f"python{project['requires-python']}")
    run = read("packaging/conda/meta.yaml").split("  run:\n")[1].split("\n\n")[0]
    found = {line.strip(" -").replace(" ", "") for line in run.splitlines()}
    assert {name.replace("matplotlib-base", "matplotlib") for name in found} == wanted


def test_all_supported_versions_of_python_are_tested():
    listed = re.findall(r"Python :: (3\.\d+)", "".join(PROJECT["project"]["classifiers"]))
    tested = re.search(r"python: \[(.*)\]", read(".github/workflows/tests.yml"))[1]
    assert re.findall(r"3\.\d+", tested) == listed
    assert PROJECT["project"]["requires-python"] == f">={listed[0]}"


def test_workflows_run_targets_that_exist():
    targets = set(re.findall(r"^([\w-]+):", read("Makefile"), re.M))
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        for line in re.findall(r"run: make ([\w -]+)$", path.read_text(), re.M):
            assert set(line.split()) <= targets, path.name


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("check_dist", ROOT / ".ci/check_dist.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_wheel(path, *names):
    with zipfile.ZipFile(path, "w") as wheel:
        for name in names:
            wheel.writestr(name, "x")
    return path


def test_a_wheel_with_foreign_files_is_refused(check, tmp_path):
    good = [name if "." in name else f"{name}/page.html" for name in check.NEEDED]
    assert check.problems_of(make_wheel(tmp_path / "a.whl", *good)) == []
    foreign = "tests/test_a.py", "classprior/rows.parquet"
    bad = check.problems_of(make_wheel(tmp_path / "b.whl", *good[1:], *foreign))
    assert len(bad) == 3
    assert all(any(name in line for line in bad) for name in (*foreign, good[0]))


def test_a_wheel_that_is_too_large_is_refused(check, tmp_path, monkeypatch):
    monkeypatch.setitem(check.MOST_BYTES, ".whl", 10)
    good = [name if "." in name else f"{name}/page.html" for name in check.NEEDED]
    (line,) = check.problems_of(make_wheel(tmp_path / "a.whl", *good))
    assert "bytes" in line


def test_an_sdist_without_its_tests_is_refused(check, tmp_path):
    path = tmp_path / "a-1.tar.gz"
    with tarfile.open(path, "w:gz") as sdist:
        for name in check.IN_SDIST:
            if name != "tests":
                sdist.add(ROOT / "LICENSE", f"a-1/{name}")
    assert check.problems_of(path) == [f"tests is missing in {path.name}"]
