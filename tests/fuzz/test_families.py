"""A few cases of each family of the fuzzer; ``make fuzz`` runs as many as fit in a minute."""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("needs processes that fork, with limited memory", allow_module_level=True)

from families import FAMILIES
from worker import ACCEPTED, REFUSED, Worker

CASES = 25


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_file_is_refused_by_name_or_gives_the_right_answer(name):
    rng = random.Random(f"{name} 0")
    worker = Worker()
    try:
        for _ in range(CASES):
            with tempfile.TemporaryDirectory() as folder:
                assert worker.run(FAMILIES[name], rng, Path(folder)) in (ACCEPTED, REFUSED)
    finally:
        worker.close()
