"""Threads over blocks, and the limit on those of linear algebra meanwhile."""

import threading
import time
from contextlib import contextmanager

import pytest

from classprior._samples import sources as _blocks
from classprior._tables.tables import Block


def test_the_limit_outlasts_the_work_after_an_error(monkeypatch):
    """Work sets limits of its own; ended later than ours, they would bring ours back for good."""
    at_work, done, done_at_the_end = threading.Event(), threading.Event(), []

    @contextmanager
    def limit():
        try:
            yield
        finally:
            done_at_the_end.append(done.is_set())

    def work(block):
        if block.start == 0:
            at_work.wait(10)
            raise OSError("the share is gone")
        at_work.set()
        time.sleep(0.1)
        done.set()

    monkeypatch.setattr(_blocks, "single_threaded", limit)
    blocks = [Block("first", None, 1, 0), Block("second", None, 1, 1)]
    with pytest.raises(OSError, match="the share is gone"):
        list(_blocks._threaded_map(work, blocks, 2))
    assert done_at_the_end == [True]
