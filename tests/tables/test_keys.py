"""Hashes of keys: one for each value, however it is stored."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from classprior._core.keys import copies_before
from classprior._tables import keys as keys_module
from classprior._tables.keys import (
    content_hashes,
    hashed_column,
    hashed_columns,
    keys_of_contents,
)
from reference import key_hash

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
NUMBERS = st.integers(-(10**21), 10**21).map(str)
WITH_ZEROS = st.builds("{}.{}".format, st.integers(-99, 99), st.sampled_from(["0", "00", "5", ""]))


@given(st.lists(TEXTS | NUMBERS | WITH_ZEROS | NUMBERS.map(" {} ".format), max_size=20))
def test_texts_are_hashed_as_one_by_one(texts):
    hashes, is_missing = hashed_column(pa.array(texts, pa.string()))
    assert hashes.tolist() == [key_hash(text) for text in texts]
    assert is_missing.tolist() == [text.strip(" ") == "" for text in texts]
    again, _ = hashed_column(pa.chunked_array([texts[:3], texts[3:]], pa.string()))
    assert_array_equal(again, hashes)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.lists(st.integers(0, 2**64 - 1)))
def test_numbers_are_hashed_as_their_digits(signed, unsigned):
    for values, kind in ((signed, np.int64), (unsigned, np.uint64)):
        hashes, _ = hashed_column(np.array(values, dtype=kind))
        assert hashes.tolist() == [key_hash(str(value)) for value in values]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_floats_are_hashed_as_they_are_written(values):
    hashes, _ = hashed_column(np.array(values, dtype=float))
    texts = [str(int(v)) if v.is_integer() else str(v) for v in values]
    assert hashes.tolist() == [key_hash(text) for text in texts]


ONES = [
    np.array([1, 2, 30], np.int8),
    np.array([1.0, 2.0, 30.0]),
    np.array(["1", "2", "30"]),
    np.array([b"1", b"2", b"30"]),
    [1, "2", 30.0],
    [Decimal("1.00"), 2, " 30"],
    pd.Series([1, 2, 30], dtype="Int64"),
    pd.Series(["1", "2.0", "30"]),
    pd.Series(["1", "2", "30"], dtype="category"),
    pl.Series(["1", "2", "30"]),
    pl.Series([1, 2, 30], dtype=pl.UInt64),
    pa.array([Decimal("1.00"), Decimal("2.00"), Decimal("30.00")]),
    pa.array(["1", "2", "30"]).dictionary_encode(),
    pa.array([b"1", b"2", b"30"]),
    pa.chunked_array([["0", "1"], ["2.0", "30 "]]).slice(1),
    np.ma.array([1, 2, 30]),
]


@pytest.mark.parametrize("column", ONES, ids=lambda c: f"{type(c).__name__}")
@pytest.mark.parametrize("has_arrow", [True, False])
def test_a_value_has_one_hash_in_every_table(column, has_arrow, monkeypatch):
    if not has_arrow and not hasattr(column, "to_arrow") and not hasattr(column, "buffers"):
        monkeypatch.setattr(
            keys_module, "_of_objects", lambda values: keys_module._of_any(list(values))
        )
    hashes, is_missing = hashed_column(column)
    assert hashes.tolist() == [key_hash(text) for text in ("1", "2", "30")]
    assert not is_missing.any()


def test_zero_has_no_sign_and_leading_zeros_count():
    zeros, _ = hashed_column(["0", "-0", "0.0", 0, -0.0])
    assert len(set(zeros)) == 1
    others, _ = hashed_column(["7", "007", "7a", "+7"])
    assert len(set(others)) == 4


MOMENTS = ["2026-01-31", "2026-01-31 09:30:00", "2026-01-31 09:30:01.25"]
TIMES = pd.Series(pd.to_datetime(MOMENTS, format="ISO8601"))


@pytest.mark.parametrize(
    "column",
    [
        TIMES,
        TIMES.astype("datetime64[us]"),
        TIMES.dt.tz_localize("UTC").dt.tz_convert("Asia/Kolkata"),
        TIMES.dt.tz_localize("UTC").dt.tz_convert("Asia/Kolkata").astype(object),
        TIMES.to_numpy(),
        pl.from_pandas(TIMES),
        pa.array(TIMES),
        list(TIMES),
        [dt.date(2026, 1, 31), *TIMES[1:].dt.to_pydatetime()],
    ],
    ids=lambda c: type(c).__name__,
)
def test_times_are_hashed_as_text_in_utc(column):
    assert hashed_column(column)[0].tolist() == [key_hash(text) for text in MOMENTS]


@pytest.mark.parametrize(
    "column",
    [
        [None, "a", np.nan, pd.NA, "", "  ", pd.NaT],
        pd.Series([np.nan, 1.0]),
        pa.array([None, 1]),
        pl.Series([None, "a"]),
        pd.Series([pd.NaT, pd.Timestamp("2026-01-31")]),
        np.ma.array([1, 2], mask=[True, False]),
        pd.Series([None, "a"], dtype="category"),
        pa.array([None, "a"]).dictionary_encode(),
    ],
    ids=lambda c: type(c).__name__,
)
def test_missing_values_are_found(column):
    _, is_missing = hashed_column(column)
    assert is_missing[0]
    assert not is_missing[1]
    assert is_missing[2:].all()


def test_the_columns_of_a_key_are_told_apart():
    ab, ba = (hashed_columns(columns)[0] for columns in ((["a"], ["b"]), (["b"], ["a"])))
    assert ab != ba
    _, is_missing = hashed_columns([["a", "a"], ["b", None]])
    assert is_missing.tolist() == [False, True]


def test_contents_are_hashed_by_name_and_copies_numbered():
    frame = pd.DataFrame({"x": [1.5, -0.0, 1.5, np.nan, 1.5], "y": ["a", "b", "a", None, "c"]})
    hashes = content_hashes(frame)
    assert copies_before(hashes).tolist() == [0, 0, 1, 0, 0]
    for table in (frame[["y", "x"]], pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert_array_equal(content_hashes(table), hashes)
    swapped = frame.rename(columns={"x": "y", "y": "x"})
    assert not set(content_hashes(swapped)) & set(hashes[:3])
    assert len(set(keys_of_contents(frame))) == len(frame)
    shuffled = frame.sample(frac=1, random_state=0)
    assert set(keys_of_contents(shuffled)) == set(keys_of_contents(frame))
