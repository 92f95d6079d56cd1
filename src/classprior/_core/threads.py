"""Threads of the libraries below NumPy, SciPy and scikit-learn."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401 - its BLAS is another library than NumPy's, and must be loaded
from threadpoolctl import ThreadpoolController


def single_threaded() -> AbstractContextManager[Any]:
    """Return a context in which linear algebra and OpenMP run on one thread.

    Ours is many small problems: threads of their own only make them wait for each other (an
    eigendecomposition of 200 rows takes four times as long on two), and would leave ``n_jobs``
    without a meaning.
    """
    return _controller().limit(limits=1)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, so only once
