"""BinCounts as numbers: what each column holds, and what becomes of it."""

import pickle
from datetime import date, datetime, time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, TableEncoder, estimate_prior
from classprior._tables.checks import RowError
from classprior._tables.columns import common_kind, is_gap, kind_of, plain, text_of, texts_of

rng = np.random.default_rng(0)
N = 100
AGES = rng.normal(40.0, 10.0, N)


def frame(**columns):
    return pd.DataFrame(columns)


def treatment(column, name="x", **options):
    """Say what becomes of one column that stands beside an ordinary one."""
    encoder = TableEncoder(**options).fit(frame(**{name: column, "age": AGES}))
    return encoder.treatments_[0]


def assert_close(got, expected):
    assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


# --- one column ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, 2], "number", [1, 2]),
        ([1.5, None], "number", [1.5, np.nan]),
        ([Decimal("1.5"), None], "number", [1.5, np.nan]),
        (pd.array([1, None], dtype="Int64"), "number", [1, np.nan]),
        (pd.to_timedelta([1, 90], unit="s"), "number", [1, 90]),
        ([time(12, 30), None], "number", [45_000, np.nan]),
        ([True, False], "yes/no", [1, 0]),
        ([True, None], "yes/no", [1, np.nan]),
        (pd.array([True, None], dtype="boolean"), "yes/no", [1, np.nan]),
        (pd.to_datetime(["1970-01-02", None]), "date", [86_400, np.nan]),
        (pd.to_datetime(["1970-01-02 02:00+02:00"]), "date", [86_400]),
        ([date(1970, 1, 2), None], "date", [86_400, np.nan]),
        ([datetime(1970, 1, 2), None], "date", [86_400, np.nan]),
        (["a", None], "category", ["a", None]),
        ([1, "a", 2.0], "category", ["1", "a", "2"]),
        ([[1, 2], [3]], "category", ["[1, 2]", "[3]"]),
        (pd.Categorical([1, 2]), "category", ["1", "2"]),
        ([None, None], "empty", [None, None]),
        ([np.nan, np.nan], "empty", [None, None]),
        (np.array([np.nan, np.nan]), "empty", [np.nan, np.nan]),
        (np.array([np.nan, 2.0]), "number", [np.nan, 2.0]),
    ],
)
def test_what_a_column_holds(values, kind, expected):
    column = values if isinstance(values, np.ndarray) else pd.Series(values)
    assert kind_of(column) == kind
    assert_array_equal(plain(column, kind), expected)


@pytest.mark.parametrize(
    ("kinds", "common"),
    [
        ({"number"}, "number"),
        ({"number", "yes/no"}, "number"),
        ({"number", "empty"}, "number"),
        ({"empty"}, "empty"),
        ({"empty", "category"}, "category"),
        ({"number", "category"}, None),
        ({"number", "date"}, None),
    ],
)
def test_the_kind_of_a_column_in_several_tables(kinds, common):
    assert common_kind(kinds) == common


def test_text_of_values():
    """The same category, whether it was read as a number with gaps or without."""
    assert [text_of(v) for v in (1, 1.0, np.float32(1.0), "1", 1.5, True)] == [
        *("1", "1", "1", "1"),
        *("1.5", "True"),
    ]
    texts = texts_of(pa.chunked_array([[1.0, None]]))
    assert_array_equal(texts, ["1", None])
    assert_array_equal(is_gap(texts), [False, True])


# --- tables as numbers ---------------------------------------------------------------------------


def test_encoding_agrees_with_pandas():
    age = pd.Series(AGES).mask(np.arange(N) % 7 == 0)
    town = pd.Series(rng.choice(["Graz", "Linz"], N))
    encoded = TableEncoder().fit_transform(frame(age=age, town=town))
    filled = age.fillna(age.median())
    assert_allclose(encoded[:, 0], (filled - filled.mean()) / filled.std(ddof=0))
    assert_allclose(np.unique(encoded[:, 1] > 0, return_counts=True)[1], [85, 15])
    assert_array_equal(encoded[:, 2:], pd.get_dummies(town, dtype=float))


def test_numbers_stay_as_they_are_where_nothing_is_scaled():
    age = np.where(np.arange(N) % 7, AGES, np.nan)
    encoder = TableEncoder(scale=False).fit(frame(age=age))
    filled = np.where(np.isnan(age), np.nanmedian(age), age)
    assert_array_equal(encoder.transform(frame(age=age)), np.c_[filled, np.isnan(age)])
    assert encoder.treatments_[0].treatment.startswith("unchanged")


def test_arrays_are_encoded_like_frames():
    X = np.column_stack([AGES, np.where(np.arange(N) % 7, AGES[::-1], np.nan), np.ones(N)])
    table = pd.DataFrame(X, columns=["0", "1", "2"])
    of_array, of_frame = TableEncoder().fit(X), TableEncoder().fit(table)
    assert of_array.treatments_ == of_frame.treatments_
    assert [t.kind for t in of_array.treatments_] == ["number", "number", "constant"]
    assert_array_equal(of_array.transform(X), of_frame.transform(table))
    assert_array_equal(of_frame.transform(X), of_frame.transform(table))
    X[:, 2] = np.nan
    assert TableEncoder().fit(X).treatments_[2].kind == "empty"
    with pytest.raises(ValueError, match=r"2 features.*3 features.*'0', '1', '2'"):
        of_frame.transform(X[:, :2])


def test_sparse_rows_are_scaled_and_no_more():
    X = sparse.csr_array(rng.uniform(size=(N, 5)) * (rng.uniform(size=(N, 5)) < 0.3))
    encoder = TableEncoder().fit(X)
    got = encoder.transform(X)
    assert sparse.issparse(got)
    assert_allclose(got.toarray(), X.toarray() / X.toarray().std(axis=0))
    assert (encoder.treatments_, encoder.sources_) == ((), None)
    assert_array_equal(TableEncoder(scale=False).fit_transform(X).toarray(), X.toarray())


def test_sources_name_the_column_of_every_number():
    table = frame(
        town=rng.choice(["a", "b", "c"], N), age=np.where(np.arange(N) % 7, AGES, np.nan), hot=AGES
    )
    encoder = TableEncoder().fit(table)
    assert encoder.sources_ == ["age", "hot", "age", "town", "town", "town"]
    assert encoder.transform(table).shape == (N, 6)


def table_of_all_kinds():
    town = np.repeat(["Graz", "Linz", None], [50, 45, 5]).astype(object)
    town[:2] = ["Ybbs", "Enns"]
    return frame(
        town=town,
        age=np.where(np.arange(N) % 7, AGES, np.nan),
        day=pd.date_range("2026-01-01", periods=N),
        hot=[True, False] * 50,
        code=[f"c{i}" for i in range(N)],
    )


NAMES_OUT = ["age", "day", "hot", "age (missing)", "town=(missing)", "town=Graz", "town=Linz"]
NAMES_OUT.append("town=(rare)")


@pytest.mark.parametrize(
    ("convert", "container"), [(pd.DataFrame, "pandas"), (pl.from_pandas, "polars")]
)
def test_names_of_the_encoded_columns(convert, container):
    """Each name says which rows its column marks."""
    table = table_of_all_kinds()
    encoder = TableEncoder(scale=False).fit(table)
    assert list(encoder.get_feature_names_out()) == NAMES_OUT
    assert [name.split("=")[0].split(" ")[0] for name in NAMES_OUT] == encoder.sources_
    plain_rows = encoder.transform(table)
    named = encoder.set_output(transform=container).transform(convert(table))
    assert list(named.columns) == NAMES_OUT
    assert_array_equal(named.to_numpy(), plain_rows)
    town = table["town"]
    assert_array_equal(named["town=(rare)"], town.isin(["Ybbs", "Enns"]))
    assert_array_equal(named["town=(missing)"], town.isna())
    assert_array_equal(named["town=Linz"], town == "Linz")
    assert_array_equal(named["age (missing)"], table["age"].isna())


def test_names_of_columns_that_had_none():
    X = np.column_stack([AGES, np.where(np.arange(N) % 7, AGES[::-1], np.nan), np.ones(N)])
    encoder = TableEncoder().fit(X)
    assert list(encoder.get_feature_names_out()) == ["0", "1", "1 (missing)"]
    assert list(encoder.get_feature_names_out(["a", "b", "c"])) == ["a", "b", "b (missing)"]
    with pytest.raises(ValueError, match=r"'0', '1', '2', got 'a'"):
        encoder.get_feature_names_out(["a"])
    with pytest.raises(ValueError, match=r"'age', got 'b'"):
        TableEncoder().fit(frame(age=AGES)).get_feature_names_out(["b"])
    assert list(TableEncoder().fit(sparse.csr_array(X[:, :1])).get_feature_names_out()) == ["0"]


def test_a_refit_knows_only_its_own_columns():
    encoder = TableEncoder().fit(frame(age=AGES))
    assert list(encoder.feature_names_in_) == ["age"]
    encoder.fit(np.column_stack([AGES, AGES[::-1]]))
    assert (encoder.n_features_in_, hasattr(encoder, "feature_names_in_")) == (2, False)


def test_rare_levels_share_a_column():
    town = np.repeat(["Graz", "Linz"], N // 2).astype(object)
    town[:2] = ["Ybbs", "Enns"]
    town[5:9] = None
    encoder = TableEncoder().fit(frame(town=town))
    (found,) = encoder.treatments_
    assert (found.name, found.kind, found.is_left_out) == ("town", "category", False)
    for fact in ("3 levels", "2 rare", "4 missing"):
        assert fact in found.treatment
    with pytest.warns(UserWarning, match=r"'town' .*'Wels', in 1 of 3 rows"):
        new = encoder.transform(frame(town=["Wels", "Ybbs", None]))
    assert_array_equal(new[0], new[1])
    assert_array_equal(new[2], encoder.transform(frame(town=town))[5])


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
def test_other_tables_are_encoded_like_those_of_pandas(convert):
    table = frame(
        age=np.where(np.arange(N) % 7, AGES, np.nan),
        day=pd.date_range("2026-01-01", periods=N),
        hot=[True, False, None, True] * 25,
        town=["Graz", "Linz", None, "Graz"] * 25,
    )
    expected = TableEncoder().fit(table)
    got = TableEncoder().fit(convert(table))
    assert got.treatments_ == expected.treatments_
    assert_close(got.transform(convert(table)), expected.transform(table))
    assert_close(expected.transform(convert(table)), expected.transform(table))


def test_a_table_may_come_in_blocks():
    """A block may hold nothing but gaps, or whole numbers only; it is encoded like the rest."""
    size = N // 4
    table = frame(
        age=np.r_[np.full(size, np.nan), np.arange(size), AGES[2 * size :]],
        hot=[None] * size + [True] * size + [True, False] * size,
        town=[None] * size + ["8010"] * size + ["Graz", "Linz"] * size,
        day=[None] * size + [date(2026, 1, 1 + i) for i in range(size)] + [date(2025, 1, 1)] * 50,
    )
    encoder = TableEncoder().fit(table)
    parts = [table[start : start + size].infer_objects() for start in range(0, N, size)]
    assert kind_of(parts[0]["town"]) == "empty"
    whole = encoder.transform(table)
    assert_close(np.vstack([encoder.transform(part) for part in parts]), whole)
    arrow = [pa.Table.from_pandas(part, preserve_index=False) for part in parts]
    assert_close(np.vstack([encoder.transform(part) for part in arrow]), whole)


# --- which columns are used ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("code", [f"c{i}" for i in range(N)]),
        ("customer_id", rng.permutation(10**6)[:N]),
        ("customerId", rng.permutation(10**6)[:N]),
        ("x", rng.permutation(N)),
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
def test_what_describes_the_rows_is_active(values):
    assert not treatment(values).is_left_out


def test_columns_that_say_nothing_are_left_out():
    assert treatment([None] * N).kind == "empty"
    assert treatment(["same"] * N).kind == "constant"
    assert treatment(["same"] * N, keep=["x"]).kind == "constant"
    with pytest.raises(ValueError, match=r"'a' .*the same"):
        TableEncoder().fit(frame(a=[1] * 30))


def test_text_that_hardly_repeats_is_left_out():
    names = [f"name {i // 2}" for i in range(3 * N)]
    encoder = TableEncoder().fit(frame(name=names, age=np.tile(AGES, 3)))
    assert encoder.treatments_[0].kind == "text"
    encoder = TableEncoder(keep=["name"]).fit(frame(name=names, age=np.tile(AGES, 3)))
    assert encoder.treatments_[0].kind == "category"


# --- new rows ------------------------------------------------------------------------------------


def test_new_rows_may_come_in_other_types_and_order():
    table = frame(age=AGES, day=pd.date_range("2026-01-01", periods=N), zip=["8010", "4020"] * 50)
    encoder = TableEncoder().fit(table)
    as_read = frame(
        zip=[8010.0, 4020.0] * 50,
        extra=["?"] * N,
        day=table["day"].astype(str),
        age=[repr(float(a)) for a in AGES],
    )
    assert_close(encoder.transform(as_read), encoder.transform(table))


def test_yes_or_no_may_become_a_number():
    encoder = TableEncoder().fit(frame(hot=[True, False] * 50, age=AGES))
    as_numbers = encoder.transform(frame(hot=[1, 0, 0.5], age=AGES[:3]))
    as_words = encoder.transform(frame(hot=[True, False, True], age=AGES[:3]))
    assert_close(as_numbers[:2], as_words[:2])
    assert_close(as_numbers[2, 0], as_numbers[:2, 0].mean())


def test_new_rows_that_do_not_fit_are_refused_by_name():
    encoder = TableEncoder().fit(frame(age=AGES, height=AGES[::-1]))
    with pytest.raises(ValueError, match=r"'age'.*'height'"):
        encoder.transform(frame(height=AGES))
    with pytest.raises(ValueError, match=r"'old'.*'age' .*row 0.*number"):
        encoder.transform(frame(age=["old", "young"], height=[1, 2]))
    with pytest.raises(ValueError, match=r"'age' .*number.* date .*2026"):
        encoder.transform(frame(age=pd.to_datetime(["2026-01-01"]), height=[1.0]))
    with pytest.raises(ValueError, match=r"inf .*'age' .*row 1"):
        encoder.transform(frame(age=[1.0, np.inf], height=[1, 2]))
    encoder = TableEncoder().fit(frame(day=pd.date_range("2026-01-01", periods=N), age=AGES))
    with pytest.raises(ValueError, match=r"'day' .*date.* number .*7\.0"):
        encoder.transform(np.array([[7.0, 1.0]]))


# --- two samples ---------------------------------------------------------------------------------


def test_values_too_large_are_named_with_their_row():
    tables = frame(age=AGES), frame(age=np.r_[AGES[:3], 1e150])
    with pytest.raises(ValueError, match=r"1e\+150 .*'age' .*row 3\b"):
        TableEncoder().fit_tables(tables)
    with pytest.raises(ValueError, match=r"1e\+150 .*'age' .*table 1, line 11\b"):
        TableEncoder().fit_tables(tables, lambda table, row: f"table {table}, line {8 + row}")


def test_samples_of_different_kinds_are_refused_by_name():
    positive, unlabeled = frame(age=AGES, t=AGES), frame(age=["12", "n/a"] * 50, t=AGES)
    with pytest.raises(ValueError, match=r"'age' \(number and category\)"):
        TableEncoder().fit_tables([positive, unlabeled])


def test_an_empty_or_boolean_column_goes_with_numbers():
    tables = frame(a=[None, None], b=[True, False]), frame(a=[1, 2], b=[0.5, 2.0])
    positive, unlabeled = TableEncoder(scale=False).fit_tables(tables)
    assert_array_equal(positive, [[1.5, 1, 1], [1.5, 0, 1]])  # the median, and a mark of the gap
    assert_array_equal(unlabeled, [[1, 0.5, 0], [2, 2, 0]])


def test_names_must_differ_as_text():
    with pytest.raises(ValueError, match="'1'"):
        TableEncoder().fit(pd.DataFrame(np.ones((3, 2)), columns=[1, "1"]))


def test_an_estimate_names_what_was_left_out_and_what_leaks(separated):
    tables = [pd.DataFrame(X, columns=["a", "b"]) for X in separated]
    for table, source in zip(tables, ("clinic", "register"), strict=True):
        table["source"] = source
        table["id"] = [f"{source}-{i}" for i in range(len(table))]
    quick = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1)
    estimate = estimate_prior(*tables, random_state=0, evidence=quick, n_resamples=50)
    assert [column.name for column in estimate.columns] == ["a", "b", "source", "id"]
    assert [column.name for column in estimate.columns if column.is_left_out] == ["id"]
    assert "'id'" in str(estimate)
    (leak,) = [warning for warning in estimate.warnings if "alone" in warning]
    assert "'source'" in leak
    assert estimate.to_dict()["columns"][0] == {
        "name": "a",
        "kind": "number",
        "treatment": "scaled",
    }


def test_dates_as_text_are_parsed_only_if_unmistakable():
    """06/08/2026 may be in June or in August, whatever was seen in fit."""
    days = pd.Series(pd.date_range("2026-01-01", periods=30))
    encoder = TableEncoder(scale=False).fit(pd.DataFrame({"day": days, "x": np.arange(30) % 7}))
    same = encoder.transform(pd.DataFrame({"day": days.astype(str), "x": np.arange(30) % 7}))
    assert same[3, 0] == days[3].timestamp()
    other = pd.DataFrame({"day": days.dt.strftime("%m/%d/%Y"), "x": np.arange(30) % 7})
    with pytest.raises(ValueError, match=r"01/01/2026.*'day'.*row 0.*date"):
        encoder.transform(other)


def test_a_fault_in_a_row_comes_back_from_another_process():
    error = pickle.loads(pickle.dumps(RowError("Value 1e300 in column 'a'", 3, "is too large.")))
    assert (error.row, str(error)) == (
        3,
        "Value 1e300 in column 'a' (first in row 3) is too large.",
    )
    assert error.at("X") == "Value 1e300 in column 'a' of X is too large."
