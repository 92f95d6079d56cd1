"""One answer, wherever the rows are: the sums and the estimate of every engine."""

from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import check_random_state

from classprior import PenalizedL1Prior, penalized_l1
from classprior._basis import bandwidth_ladder, stacked
from classprior._samples import MemorySamples
from classprior.engines import fit_blocks
from classprior.engines._roles import BANDWIDTHS, CENTERS, Roles

ESTIMATOR = PenalizedL1Prior(n_centers=80, random_state=3)
SEED = int(check_random_state(3).randint(2**31))


class SameRoles(MemorySamples):
    """Rows in memory, whose roles are those that blocks would give them."""

    def __init__(self, samples):
        self.roles = Roles(SEED)
        folds = [self.roles.folds(s, 0, len(X), 5) for s, X in enumerate(samples)]
        super().__init__(*samples, tuple(folds))

    def draw_centers(self, n_centers):
        self._center_rows = tuple(
            self.roles.choose(CENTERS, s, size, n_centers // 2) for s, size in enumerate(self.sizes)
        )
        return stacked(*(X[rows] for X, rows in zip(self._rows, self._center_rows, strict=True)))

    def bandwidths(self, centers):
        rows = self.roles.choose(BANDWIDTHS, 1, self.sizes[1], 300)
        return bandwidth_ladder(self._rows[1][rows], centers, np.random.RandomState(SEED))


def in_blocks(X, path, small_blocks):
    yield X


def in_one_block(X, path, small_blocks):
    small_blocks(10_000)
    yield X


def in_blocks_of_37(X, path, small_blocks):
    small_blocks(37)
    yield X


def in_a_memory_map(X, path, small_blocks):
    np.save(path / "rows.npy", X)
    yield np.load(path / "rows.npy", mmap_mode="r")


def in_parquet(X, path, small_blocks):
    for number, part in enumerate(np.array_split(X, 3)):
        table = pa.table(dict(zip("abc", part.T, strict=True)))
        pq.write_table(table, path / f"{number}.parquet", row_group_size=111)
    yield path


def in_uneven_blocks(X, path, small_blocks):
    yield [X[:1], X[1:700], X[700:700], X[700:]]


ENGINES = [
    in_blocks,
    in_one_block,
    in_blocks_of_37,
    in_a_memory_map,
    in_parquet,
    in_uneven_blocks,
]


def on_dask(n_workers, n_partitions, container):
    def engine(X, path, small_blocks):
        import dask.array as da
        import dask.dataframe as dd
        import pandas as pd
        from distributed import Client

        if container == "array":
            lazy = da.from_array(X, chunks=(-(-len(X) // n_partitions), 2))
        else:
            lazy = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=n_partitions)
        if n_workers == 0:  # no cluster: dask's own threads
            yield lazy
            return
        with Client(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=False,
            dashboard_address="127.0.0.1:0",  # any free port: others may test here as well
            worker_dashboard_address=None,
        ):
            yield lazy

    engine.__name__ = f"on_dask_{n_workers}_workers_{n_partitions}_partitions_{container}"
    return engine


DASK = [
    on_dask(0, 4, "array"),
    on_dask(1, 3, "frame"),
    on_dask(2, 11, "array"),
    on_dask(4, 7, "frame"),
]


@pytest.mark.parametrize("engine", ENGINES + DASK, ids=lambda engine: engine.__name__)
def test_every_engine_gives_the_estimate_of_memory(engine, samples, tmp_path, small_blocks):
    expected = ESTIMATOR._match(SameRoles(samples))
    with contextmanager(engine)(samples[1], tmp_path, small_blocks) as X_unlabeled:
        fitted = fit_blocks(ESTIMATOR, samples[0], X_unlabeled)
    assert_array_equal(fitted.centers_, expected.centers)
    assert_array_equal(fitted.sigma_, expected.sigma)
    # The objective divides by lam, 0.0003 here, which is how far rounding goes.
    assert_allclose(fitted.objective_, expected.objective, rtol=1e-5, atol=1e-5)
    assert abs(fitted.prior_ - expected.prior) < 1.5e-3  # a step of theta is 0.001
    assert fitted.label_frequency_ == pytest.approx(expected.label_frequency)
    assert 0.2 < fitted.prior_ < 0.4


def test_with_all_rows_as_centres_it_is_the_ordinary_fit(samples, small_blocks):
    X_positive, X_unlabeled = samples[0][:150], samples[1][:400]
    folds = [Roles(SEED).folds(s, 0, n, 4) for s, n in enumerate((150, 400))]
    options = {"sigmas": [0.4, 0.8, 1.6], "n_centers": 550, "random_state": 3}
    expected = penalized_l1(X_positive, X_unlabeled, cv=folds, **options)
    fitted = fit_blocks(PenalizedL1Prior(cv=4, **options), X_positive, X_unlabeled)
    assert_array_equal(fitted.centers_, expected.centers)
    assert_allclose(fitted.objective_, expected.objective, rtol=1e-5, atol=1e-5)
    assert fitted.prior_ == expected.prior


def test_threads_do_not_matter_at_all(samples, small_blocks):
    one, three = (fit_blocks(ESTIMATOR, *samples, n_jobs=n).objective_ for n in (1, 3))
    assert_array_equal(one, three)


def test_processes_of_ones_own(samples, tmp_path, small_blocks):
    """An engine is anything with a map: here the executor of the standard library."""
    (path,) = in_parquet(samples[1], tmp_path, small_blocks)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        fitted = fit_blocks(ESTIMATOR, samples[0], path, map=pool.map).objective_
    assert_array_equal(fitted, fit_blocks(ESTIMATOR, samples[0], path).objective_)
