"""The recipe for Spark runs, where pyspark and Java are there."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "spark_rows.py"


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("pyspark") is None or shutil.which("java") is None, reason="needs pyspark and Java"
)
def test_spark_gives_the_shares_of_memory():
    run = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    numbers = [float(word.strip(",")) for word in run.stdout.split() if "0." in word]
    default, default_in_memory, penl1, penl1_in_memory = numbers
    assert default == default_in_memory
    assert abs(penl1 - penl1_in_memory) < 1.5e-3
    assert abs(default - 0.3) < 0.05
    assert abs(penl1 - 0.3) < 0.05
