"""Type aliases for arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Doubles: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]
Keys: TypeAlias = NDArray[np.uint64]  # hashes
Ids: TypeAlias = NDArray[Any]  # what tells rows apart, their indices or keys, in increasing order
Bools: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = Any  # a floating-point array or a CSR matrix, which have no common type
