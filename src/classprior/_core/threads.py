"""Control of the threads of BLAS and OpenMP."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401 - its BLAS differs from NumPy's and must be loaded
from threadpoolctl import ThreadpoolController


def single_threaded() -> AbstractContextManager[Any]:
    """Return a context in which BLAS and OpenMP use one thread."""
    # The problems are small and many, so nested threads slow them down (an eigendecomposition of
    # 200 rows takes four times as long on two threads) and would override n_jobs.
    return _controller().limit(limits=1)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # cached, since it scans all loaded libraries
