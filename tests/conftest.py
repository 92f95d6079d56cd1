"""Data that several test modules share."""

import shutil

import hypothesis
import numpy as np
import pytest
import scipy.linalg  # noqa: F401 - has a BLAS of its own, which must be loaded to be limited
from threadpoolctl import threadpool_limits

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")
threadpool_limits(1)  # the test runner has a process per core already

rng_of = np.random.default_rng


def _plain():
    return rng_of(0).normal(size=(400, 3))


def _shifted():
    return _plain() + 1e6


def _wild_row():
    X = _plain()
    X[17] = 1e7
    return X


def _wild_pair():
    X = _plain()
    X[[17, 300]] = 1e7
    X[300, 0] += 0.5
    return X


def _lognormal():
    return np.exp(3.0 * rng_of(1).normal(size=(400, 3)))


def _duplicated():
    return np.repeat(_plain()[:40], 10, axis=0)


def _tiny():
    return 1e-30 * _plain()


HARD = {
    f.__name__.strip("_"): f
    for f in (_plain, _shifted, _wild_row, _wild_pair, _lognormal, _duplicated, _tiny)
}


@pytest.fixture(params=HARD)
def hard_rows(request):
    """Rows on which a careless squared distance goes wrong."""
    return HARD[request.param]()


@pytest.fixture
def separated():
    """400 positives and 1000 unlabeled rows, 300 of them positive; the classes hardly touch."""
    rng = rng_of(7)
    positive, negative = rng.normal(0, 1, (700, 2)), rng.normal(4, 1, (700, 2))
    return positive[:400], rng.permutation(np.vstack([positive[400:], negative]))


@pytest.fixture
def labeled(separated):
    """Stack the two samples into X and y."""
    X_positive, X_unlabeled = separated
    return np.vstack([X_positive, X_unlabeled]), np.repeat([1, 0], [400, 1000])


@pytest.fixture(scope="module")
def chromium():
    """Start the system's Chromium; Playwright's own would have to be downloaded."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no Chromium is installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()
