"""Processor time and memory of an estimate on the page, relative to the command line.

The same table is given to both, which write the report, the scored rows and the model. The page
is measured from the click to the last file, in the process that does the work; the server itself
and the look at the columns before come on top and are printed.

    python benchmarks/speed_app.py TABLE [--label COLUMN --positive VALUE] [--known 2000]

TABLE is a CSV or parquet file with labels; so many of its positives are known, and the other
rows are unlabeled. Without it, card payments are made up.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple

import httpx
import pandas as pd

from classprior.datasets import make_transactions

LIMIT = 1.2
#: Threads that wait for each other use processor time, too, the more so on a busy machine.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
PROGRAM = str(Path(sys.executable).with_name("classprior"))


def write_samples(folder: Path, arguments: argparse.Namespace) -> None:
    """Write known positives and unlabeled rows."""
    if arguments.table is None:
        known, others = make_transactions(n_positive=2_000, n_unlabeled=50_000, random_state=0)
    else:
        read = pd.read_parquet if arguments.table.suffix == ".parquet" else pd.read_csv
        table = read(arguments.table)
        is_positive = table.pop(arguments.label).astype(str) == arguments.positive
        known = table[is_positive].sample(arguments.known, random_state=0)
        others = table.drop(known.index)
    known.to_csv(folder / "known.csv", index=False)
    others.to_csv(folder / "unlabeled.csv", index=False)
    print(f"{len(known):,} known positives, {len(others):,} unlabeled rows")


class Use(NamedTuple):
    """What a process has used so far: processor time, and memory at its peak."""

    seconds: float
    megabytes: float


def used(process: int) -> dict[int, Use]:
    """Return what a process and its children have used so far."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    found = {}
    for pid in [process, *(pid for pid, parent in pairs if parent == process)]:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
            times = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        except OSError:
            continue
        if peak := re.search(r"VmHWM:\s+(\d+) kB", status):
            found[pid] = Use(sum(map(int, times)) / os.sysconf("SC_CLK_TCK"), int(peak[1]) / 1000)
    return found


def of_command(folder: Path) -> Use:
    """Return what the command uses."""
    outputs = ["--out", "s.csv", "--report", "r.html", "--save-model", "m", "--force"]
    command = [PROGRAM, "classify", "known.csv", "unlabeled.csv", *outputs]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    seen: dict[int, Use] = {}
    while process.poll() is None:
        seen |= used(process.pid)
        sleep(0.05)
    assert process.returncode == 0
    return seen[process.pid]


def of_page(folder: Path) -> Use:
    """Return what the same on the page uses."""
    command = [PROGRAM, "app", "--no-browser"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        assert server.stderr is not None
        address = server.stderr.readline().split()[-1]
        base = address.split("/?")[0]
        headers = {"origin": base}
        with httpx.Client(base_url=base, headers=headers, follow_redirects=True) as client:
            client.get(address)
            with (folder / "known.csv").open("rb") as a, (folder / "unlabeled.csv").open("rb") as b:
                page = client.post("/data", files={"known": a, "unlabeled": b})
            looked = wait(client, page, server.pid)
            del looked[server.pid]
            run = client.post(f"{page.url.path}/runs", data={"title": ""})
            seen = wait(client, run, server.pid)
            assert client.get(f"{run.url.path}/download/model").status_code == 200
            own = seen.pop(server.pid)
            print(f"  the look at the columns: {max(looked.values()).seconds:.1f} s")
            print(f"  the server itself: {own.seconds:.1f} s, {own.megabytes:.0f} MB")
            return max(seen.values())
    finally:
        server.terminate()
        server.wait()


def wait(client: httpx.Client, page: Any, server: int) -> dict[int, Use]:
    """Wait until work has ended; return what the processes have used."""
    seen: dict[int, Use] = {}
    while client.get(f"{page.url.path}/progress").json()["state"] in ("waiting", "running"):
        seen |= used(server)
        sleep(0.05)
    return seen


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description="Time and memory of the page.")
    parser.add_argument("table", type=Path, nargs="?")
    parser.add_argument("--label", default="target")
    parser.add_argument("--positive", default="1")
    parser.add_argument("--known", type=int, default=2_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_samples(folder, arguments)
        ours, theirs = of_page(folder), of_command(folder)
    for what, unit, page, command in zip(
        ("processor time", "memory"), ("s", "MB"), ours, theirs, strict=True
    ):
        verdict = "within" if page <= LIMIT * command else "BEYOND"
        print(
            f"{what:14} {page:6.1f} {unit} on the page, {command:6.1f} {unit} by the command: "
            f"{page / command:.2f} times, {verdict} the limit of {LIMIT}"
        )


if __name__ == "__main__":
    main()
