"""Feed damaged, contradictory and hostile files to the readers.

    python tests/fuzz/fuzz_files.py [--seconds 60] [--seed 0] [--family NAME] [--keep FOLDER]

The cases of each family in ``families`` are written and read in turn, each in a process with
limited memory and time. A case is refused with an error that names a file, or accepted with the
right answer. Exits with 1 after a crash, an unforeseen error or a wrong answer; ``--keep`` saves
the files that caused them.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from itertools import cycle
from pathlib import Path

from families import FAMILIES
from worker import ACCEPTED, REFUSED, Worker

PROBLEM = "problems"


def main() -> None:
    """Read files until the time is up."""
    parser = argparse.ArgumentParser(description="Feed damaged files to the readers.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=sorted(FAMILIES), help="only this family")
    parser.add_argument("--keep", type=Path, help="folder for files that caused a problem")
    options = parser.parse_args()
    names = [options.family] if options.family else list(FAMILIES)
    rngs = {name: random.Random(f"{name} {options.seed}") for name in names}
    counts = {name: Counter[str]() for name in names}
    problems: list[str] = []
    worker = Worker()
    end = time.monotonic() + options.seconds
    for name in cycle(names):
        if time.monotonic() >= end:
            break
        with tempfile.TemporaryDirectory() as folder:
            outcome = worker.run(FAMILIES[name], rngs[name], Path(folder))
            is_right = outcome in (ACCEPTED, REFUSED)
            counts[name][outcome if is_right else PROBLEM] += 1
            if not is_right:
                problems.append(f"{name}: {outcome}")
                if options.keep:
                    shutil.copytree(folder, options.keep / f"{name}-{len(problems)}")
    print(f"{'family':20}" + "".join(f"{kind:>10}" for kind in (ACCEPTED, REFUSED, PROBLEM)))
    for name, found in counts.items():
        row = (found[kind] for kind in (ACCEPTED, REFUSED, PROBLEM))
        print(f"{name:20}" + "".join(f"{number:10}" for number in row))
    print(f"{sum(map(Counter.total, counts.values()))} cases, {len(problems)} problems")
    for problem in problems[:20]:
        print(f"  {problem[:200]}")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
