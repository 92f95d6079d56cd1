from datetime import date, time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from classprior import estimate_prior
from classprior._columns import kind_of, plain
from classprior._frames import ColumnTreatment, FrameEncoder, as_numbers, stack_frames

rng = np.random.default_rng(0)
N = 100
AGES = rng.normal(40.0, 10.0, N)


def frame(**columns):
    return pd.DataFrame(columns)


def treatment(column, name="x", **options):
    """Say what becomes of one column that stands beside an ordinary one."""
    encoder = FrameEncoder(**options).fit(frame(**{name: column, "age": AGES}))
    return encoder.treatments_[0]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "number"),
        ([1.5, None], "number"),
        ([Decimal("1.5"), None], "number"),
        (pd.array([1, None], dtype="Int64"), "number"),
        (pd.to_timedelta([1, 2], unit="s"), "number"),
        ([time(12, 30), None], "number"),
        ([True, False], "yes/no"),
        ([True, None], "yes/no"),
        (pd.array([True, None], dtype="boolean"), "yes/no"),
        (pd.to_datetime(["2026-01-01", None]), "date"),
        ([date(2026, 1, 1), None], "date"),
        (["a", None], "category"),
        ([1, "a"], "category"),
        ([[1, 2], [3]], "category"),
        (pd.Categorical([1, 2]), "category"),
        ([None, None], "empty"),
        ([np.nan, np.nan], "empty"),
    ],
)
def test_what_a_column_holds(values, kind):
    column = pd.Series(values)
    assert kind_of(column) == kind
    assert kind_of(plain(column, kind)) == kind
    assert_array_equal(plain(column, kind).isna(), column.isna())


def test_encoding_agrees_with_pandas():
    age = pd.Series(AGES).mask(np.arange(N) % 7 == 0)
    town = pd.Series(rng.choice(["Graz", "Linz"], N))
    encoded = FrameEncoder().fit_transform(frame(age=age, town=town))
    filled = age.fillna(age.median())
    assert_allclose(encoded[:, 0], (filled - filled.mean()) / filled.std(ddof=0))
    assert_allclose(np.unique(encoded[:, 1] > 0, return_counts=True)[1], [85, 15])
    assert_array_equal(encoded[:, 2:], pd.get_dummies(town, dtype=float))


def test_sources_name_the_column_of_every_number():
    table = frame(
        town=rng.choice(["a", "b", "c"], N), age=np.where(np.arange(N) % 7, AGES, np.nan), hot=AGES
    )
    encoder = FrameEncoder().fit(table)
    assert encoder.sources_ == ["age", "hot", "age", "town", "town", "town"]
    assert encoder.transform(table).shape == (N, 6)


def test_rare_levels_share_a_column():
    town = np.repeat(["Graz", "Linz"], N // 2).astype(object)
    town[:2] = ["Ybbs", "Enns"]
    town[5] = None
    town[6:9] = None
    encoder = FrameEncoder().fit(frame(town=town))
    assert encoder.treatments_ == (
        ColumnTreatment(
            "town",
            "category",
            "one column for each of 3 levels, 2 rare ones pooled, 4 gaps being a level",
        ),
    )
    with pytest.warns(UserWarning, match=r"'town' has values .* such as 'Wels', in 1 of 3 rows"):
        new = encoder.transform(frame(town=["Wels", "Ybbs", None]))
    assert_array_equal(new[0], new[1])
    assert_array_equal(new[2], encoder.transform(frame(town=town))[5])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("code", [f"c{i}" for i in range(N)]),
        ("customer_id", rng.permutation(10**6)[:N]),
        ("customerId", rng.permutation(10**6)[:N]),
        ("x", rng.permutation(N)),
        ("x", np.concatenate([np.sort(rng.permutation(10**6)[:50]) for _ in range(2)])),
        ("x", 2**60 + np.arange(N)),
        ("x", np.arange(float(N))),
    ],
)
def test_identifiers_are_left_out(name, values):
    found = treatment(values, name)
    assert found.kind == "identifier"
    assert found.is_left_out
    assert not treatment(values, name, keep=[name]).is_left_out


@pytest.mark.parametrize(
    "values",
    [
        rng.permutation(10**6)[:N],  # amounts that happen to differ
        AGES,
        np.sort(AGES),
        np.repeat(np.arange(50), 2),
        rng.choice(["a", "b"], N),
        [True, False, None, True] * 25,
        pd.date_range("2026-01-01", periods=N),
    ],
)
def test_what_describes_the_rows_is_kept(values):
    assert not treatment(values).is_left_out


def test_columns_that_say_nothing_are_left_out():
    assert treatment([None] * N).kind == "empty"
    assert treatment(["same"] * N).kind == "constant"
    with pytest.raises(ValueError, match="'a' is left out: all values are the same"):
        FrameEncoder().fit(frame(a=[1] * 30))


def test_text_that_hardly_repeats_is_left_out():
    names = [f"name {i // 2}" for i in range(3 * N)]
    encoder = FrameEncoder().fit(frame(name=names, age=np.tile(AGES, 3)))
    assert encoder.treatments_[0].kind == "text"


def test_new_rows_may_come_in_other_types_and_order():
    table = frame(age=AGES, day=pd.date_range("2026-01-01", periods=N), zip=["8010", "4020"] * 50)
    encoder = FrameEncoder().fit(table)
    as_read = frame(
        zip=[8010.0, 4020.0] * 50,
        extra=["?"] * N,
        day=table["day"].astype(str),
        age=[repr(float(a)) for a in AGES],
    )
    assert_allclose(encoder.transform(as_read), encoder.transform(table))
    for convert in (pl.from_pandas, pa.Table.from_pandas):
        assert_allclose(encoder.transform(convert(table)), encoder.transform(table))


def test_new_rows_that_do_not_fit_are_refused_by_name():
    encoder = FrameEncoder().fit(frame(age=AGES, height=AGES[::-1]))
    with pytest.raises(ValueError, match=r"without 'age'; it has 'height'"):
        encoder.transform(frame(height=AGES))
    with pytest.raises(
        ValueError, match=r"'age' to hold a number, .* got a category such as 'old'"
    ):
        encoder.transform(frame(age=["old", "young"], height=[1, 2]))
    with pytest.raises(ValueError, match=r"'age' to hold a number, .* got a date"):
        encoder.transform(frame(age=pd.to_datetime(["2026-01-01"]), height=[1.0]))
    with pytest.raises(ValueError, match=r"below 1e\+140 in column 'age', got inf"):
        encoder.transform(frame(age=[1.0, np.inf], height=[1, 2]))


@pytest.mark.parametrize("name", ["paid", "grid", "amount"])
def test_a_word_that_ends_in_id_is_no_identifier(name):
    assert not treatment(rng.permutation(10**6)[:N], name).is_left_out


def test_samples_of_different_kinds_are_refused_by_name():
    positive, unlabeled = frame(age=AGES, t=AGES), frame(age=["12", "n/a"] * 50, t=AGES)
    with pytest.raises(ValueError, match=r"column 'age' \(number and category\)"):
        as_numbers(positive, unlabeled)


def test_an_empty_or_boolean_column_goes_with_numbers():
    both = stack_frames(frame(a=[None, None], b=[True, False]), frame(a=[1, 2], b=[0.5, 2.0]))
    assert_array_equal(both, [[np.nan, 1], [np.nan, 0], [1, 0.5], [2, 2]])


def test_names_must_differ_as_text():
    with pytest.raises(ValueError, match="distinct column names, got '1' twice"):
        FrameEncoder().fit(pd.DataFrame(np.ones((3, 2)), columns=[1, "1"]))


def test_anything_but_frames_passes_through():
    X = np.ones((3, 2))
    lazy = pl.DataFrame(X).lazy()
    assert as_numbers(X, X)[:2] == (X, X)
    assert as_numbers(lazy, lazy).X_positive is lazy


def test_an_estimate_names_what_was_left_out_and_what_leaks(separated):
    tables = [pd.DataFrame(X, columns=["a", "b"]) for X in separated]
    for table, source in zip(tables, ("clinic", "register"), strict=True):
        table["source"] = source
        table["id"] = [f"{source}-{i}" for i in range(len(table))]
    estimate = estimate_prior(*tables, random_state=0, n_repeats=1, n_resamples=50)
    assert [column.name for column in estimate.columns] == ["a", "b", "source", "id"]
    assert "Columns left out: 'id' (no value occurs twice)." in str(estimate)
    leaks = [w for w in estimate.warnings if "alone tells" in w]
    assert len(leaks) == 1
    assert leaks[0].startswith("Column 'source' alone")
    assert estimate.to_dict()["columns"][0] == {
        "name": "a",
        "kind": "number",
        "treatment": "scaled",
    }
