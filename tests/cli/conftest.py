"""Samples in files; the command, in this process or installed."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior
from classprior.cli import main

#: To save time, the command uses one classifier and one round of cross-fitting.
EVIDENCE = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1, n_resamples=50)
COMMAND = Path(sys.executable).with_name("classprior")


def make_frames(n=60, m=150, seed=0):
    """Numbers, a category, gaps and an identifier; 30% of the unlabeled rows are positive."""
    rng = np.random.default_rng(seed)
    is_positive = np.arange(n + m) < n + round(0.3 * m)
    frame = pd.DataFrame(
        {
            "id": [f"row-{i}" for i in rng.permutation(n + m)],
            "amount": rng.normal(np.where(is_positive, 0.0, 4.0), 1.0).round(3),
            "hours": rng.normal(np.where(is_positive, 0.0, 4.0), 1.0).round(3),
            "color": np.where(rng.uniform(size=n + m) < 0.5, "red", "blue"),
        }
    )
    frame.loc[::7, "amount"] = np.nan
    frame.loc[::9, "color"] = None
    return frame[:n], frame[n:].sample(frac=1, random_state=seed)


@pytest.fixture(scope="session")
def frames():
    return make_frames()


@pytest.fixture
def folder(tmp_path, monkeypatch, frames):
    """Change to a folder with the samples: two CSV files, and one parquet file with labels."""
    monkeypatch.chdir(tmp_path)
    positive, unlabeled = frames
    positive.to_csv("positive.csv", index=False)
    unlabeled.to_csv("unlabeled.csv", index=False)
    marked = pd.concat([positive.assign(known="yes"), unlabeled.assign(known=None)])
    marked.to_parquet("marked.parquet", index=False)
    return tmp_path


@pytest.fixture
def run():
    """Run the command in this process; the result has exit_code, stdout and stderr."""

    def run_main(*arguments, code=0, stdin=None, evidence=EVIDENCE):
        arguments = [str(a) for a in arguments]
        answer = CliRunner().invoke(main, arguments, input=stdin, obj=evidence)
        assert answer.exit_code == code, answer.output
        assert "Traceback" not in answer.stderr or "--debug" in arguments
        return answer

    return run_main


@pytest.fixture
def installed():
    """Run the installed command."""

    def run_installed(*arguments, **options):
        return subprocess.run(
            [str(COMMAND), *map(str, arguments)],
            **{"capture_output": True, "check": False, "env": environment(), **options},
        )

    return run_installed


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
