"""Startup time of the command line, relative to bare Python.

Both are started in turn; the median difference is the cost of the imports.

    python benchmarks/speed_cli.py [--repetitions 15]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

LIMIT = 0.150


def seconds(*command: str) -> float:
    """Return the run time of a command."""
    start = perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return perf_counter() - start


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description="Startup time of the command line.")
    parser.add_argument("--repetitions", type=int, default=15)
    repetitions = parser.parse_args().repetitions
    program = str(Path(sys.executable).with_name("classprior"))
    for arguments in (["--help"], ["estimate", "--help"], ["--version"]):
        pairs = [
            (seconds(sys.executable, "-c", "pass"), seconds(program, *arguments))
            for _ in range(repetitions)
        ]
        more = median(ours - bare for bare, ours in pairs)
        verdict = "within" if more < LIMIT else "BEYOND"
        print(
            f"classprior {' '.join(arguments):16} {1000 * more:4.0f} ms more than bare Python, "
            f"{verdict} the limit of {1000 * LIMIT:.0f} ms"
        )


if __name__ == "__main__":
    main()
