"""The recipe for Spark runs, where pyspark and Java are there."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from classprior import PenalizedL1Prior
from classprior.engines import Block, fit_blocks

EXAMPLE = Path(__file__).parents[2] / "examples" / "spark_rows.py"
ESTIMATOR = PenalizedL1Prior(n_centers=50, random_state=0)


@pytest.mark.skipif(
    find_spec("pyspark") is None or shutil.which("java") is None, reason="needs pyspark and Java"
)
def test_spark_gives_the_share_of_memory():
    run = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    on_spark, in_memory = (float(word.strip(",")) for word in run.stdout.split() if "0." in word)
    assert abs(on_spark - in_memory) < 1.5e-3
    assert abs(on_spark - 0.3) < 0.05


class Elsewhere:
    """Rows of which the engine knows their number and where to send work."""

    columns = 3

    def __init__(self, X):
        self.X = X
        self.n_rows = len(X)

    def map_blocks(self, function):
        starts = range(0, len(self.X), 400)
        return [
            function(Block(f"part {s}", part, len(part), s))
            for s in starts
            for part in [self.X[s : s + 400]]
        ]


def test_rows_of_another_engine(samples, tmp_path):
    expected = fit_blocks(ESTIMATOR, *samples)
    fitted = fit_blocks(ESTIMATOR, samples[0], Elsewhere(samples[1]))
    assert_allclose(fitted.objective_, expected.objective_, rtol=1e-5, atol=1e-5)
    X = samples[1].copy()
    X[500] = np.nan
    with pytest.raises(ValueError, match=r"column 0 of X_unlabeled, part 400 \(first in row 500\)"):
        fit_blocks(ESTIMATOR, samples[0], Elsewhere(X))
