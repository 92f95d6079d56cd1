"""Estimate the share of positives in a Spark data frame, computing sums on its partitions.

    python examples/spark_rows.py

Needs pyspark and Java.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from classprior import AutoPrior, PenalizedL1Prior
from classprior.engines import Block, fit_blocks


class SparkRows:
    """Rows of a Spark data frame with a column of row numbers 0, 1, 2, ...

    Each partition must contain consecutive rows, as it does after ``zipWithIndex`` or after sorting
    by the row numbers, because the role of a row depends on its number.
    """

    def __init__(self, frame: Any, number: str) -> None:
        self.frame = frame.persist()  # read twice
        self.number = number
        self.n_rows = self.frame.count()
        self.columns = [name for name in frame.columns if name != number]

    def map_blocks(self, function: Callable[[Block], Any]) -> list[Any]:
        """Call the function with each Arrow batch, on the executors."""
        number = self.number

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                table = pa.Table.from_batches([batch])
                rows = table[number].to_numpy()
                if not len(rows):
                    continue
                start = int(rows[0])
                assert np.array_equal(rows, np.arange(start, start + len(rows))), "not consecutive"
                block = Block(f"rows from {start}", table.drop([number]), len(rows), start)
                result = pickle.dumps(function(block))
                yield pa.RecordBatch.from_pydict({"start": [start], "result": [result]})

        parts = self.frame.mapInArrow(work, "start long, result binary").collect()
        return [pickle.loads(part.result) for part in sorted(parts, key=lambda p: p.start)]


def main() -> None:
    """Estimate a known share, 0.3, on Spark and in memory."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # where classprior is installed
    rng = np.random.default_rng(0)
    positives = rng.normal(size=(2000, 2))
    X = rng.normal(size=(10_000, 2)) + 4.0 * (rng.random((10_000, 1)) > 0.3)
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    numbered = spark.sparkContext.parallelize(X.tolist(), 4).zipWithIndex()
    frame = numbered.map(lambda pair: (pair[1], *pair[0])).toDF(["number", "a", "b"])
    rows = SparkRows(frame, "number")
    # The default method fits its classifiers to at most max_rows rows, here, and scores all rows
    # on the executors.
    for estimator in (
        AutoPrior(max_rows=2000, random_state=0),
        PenalizedL1Prior(n_centers=200, random_state=0),
    ):
        on_spark = fit_blocks(estimator, positives, rows).prior_
        in_memory = fit_blocks(estimator, positives, X).prior_
        name = type(estimator).__name__
        print(f"{name}: on Spark {on_spark:.3f}, in memory {in_memory:.3f}")
    spark.stop()


if __name__ == "__main__":
    main()
