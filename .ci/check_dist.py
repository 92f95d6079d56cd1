"""Check sdist and wheel: what they contain, their size, and that the wheel works when installed.

    python .ci/check_dist.py dist [--oldest PYTHON] [--newest PYTHON] [--contents-only]

The wheel is installed in two new environments, one with the minimum versions of all dependencies
and one with the newest, and answers there what README says.
"""

import argparse
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

CI = Path(__file__).parent
MOST_BYTES = {".whl": 1_000_000, ".gz": 8_000_000}
#: What a wheel may contain besides code: templates and files of the browser page, marker, skill.
SUFFIXES = {".py", ".typed", ".html", ".css", ".js", ".svg", ".md", ".txt", ".ico"}
NEEDED = (
    "classprior/__init__.py",
    "classprior/py.typed",
    "classprior/SKILL.md",
    "classprior/report/templates",
    "classprior/app/static",
)
IN_SDIST = ("src", "tests", "docs", "README.md", "LICENSE", "CHANGELOG.md", "Makefile")
SMOKE = """
import classprior
from classprior.datasets import make_transactions
frauds, transactions = make_transactions(random_state=0)
answer = classprior.estimate_prior(frauds, transactions, random_state=0)
assert 0.06 < answer.prior < 0.1 and answer.low < 0.08 < answer.high, answer
assert "site-packages" in classprior.__file__, classprior.__file__
print(classprior.__version__, round(answer.prior, 3))
"""


def contents_of(path: Path) -> list[str]:
    """Return the names of the files in a wheel or an sdist."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.namelist()
    with tarfile.open(path) as sdist:
        return [name.split("/", 1)[1] for name in sdist.getnames() if "/" in name]


def problems_of(path: Path) -> list[str]:
    """Return what is wrong with a distribution."""
    names, found = contents_of(path), []
    if path.stat().st_size > MOST_BYTES[path.suffix]:
        found.append(f"{path.name} has {path.stat().st_size:,} bytes")
    if path.suffix == ".whl":
        code = [name for name in names if ".dist-info/" not in name]
        foreign = [name for name in code if not name.startswith("classprior/")]
        data = [name for name in code if PurePosixPath(name).suffix not in SUFFIXES]
        found += [f"{name} does not belong in the wheel" for name in {*foreign, *data}]
        needed = [part for part in NEEDED if not any(name.startswith(part) for name in names)]
    else:
        needed = [part for part in IN_SDIST if not any(name.startswith(part) for name in names)]
    return [*found, *(f"{part} is missing in {path.name}" for part in needed)]


def run(*command: str | Path, cwd: str | None = None) -> str:
    """Run a command and return what it prints; stop with its output if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def try_wheel(wheel: Path, python: str, is_oldest: bool) -> None:
    """Install the wheel in a new environment and ask it for an answer, outside the repository."""
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "venv", folder)
        scripts = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin")
        limits = []
        if is_oldest:
            constraints = Path(folder) / "constraints.txt"
            constraints.write_text(run(sys.executable, CI / "minimum_versions.py"))
            limits = ["--constraint", constraints]
        install = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet")
        run(scripts / "python", *install, f"{wheel.resolve()}[cli]", *limits)
        answer = run(scripts / "python", "-c", SMOKE, cwd=folder).strip()
        print(f"{'oldest' if is_oldest else 'newest'} dependencies: version and answer {answer}")
        run(scripts / "classprior", "demo", "--out", "example", cwd=folder)


def main() -> None:
    """Check all distributions in a folder."""
    parser = argparse.ArgumentParser(description="Check sdist and wheel.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--oldest", default="python3.11", help="Python for the minimum versions")
    parser.add_argument("--newest", default=sys.executable, help="Python for the newest versions")
    parser.add_argument("--contents-only", action="store_true", help="install nothing")
    options = parser.parse_args()
    (wheel,), (sdist,) = options.folder.glob("*.whl"), options.folder.glob("*.tar.gz")
    if problems := [*problems_of(wheel), *problems_of(sdist)]:
        sys.exit("\n".join(problems))
    for path in (wheel, sdist):
        print(f"{path.name}: {len(contents_of(path))} files, {path.stat().st_size:,} bytes")
    if not options.contents_only:
        try_wheel(wheel, options.oldest, is_oldest=True)
        try_wheel(wheel, options.newest, is_oldest=False)


if __name__ == "__main__":
    main()
