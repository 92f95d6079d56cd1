"""Two samples with a known share, small enough to be fitted in every way there is."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def samples():
    """600 positives and 1,500 unlabeled rows, 30% of them positive."""
    rng = np.random.default_rng(5)
    X_unlabeled = rng.normal(size=(1500, 3))
    X_unlabeled[rng.random(1500) > 0.3] += 2.5
    return rng.normal(size=(600, 3)), X_unlabeled
