"""Bad input is answered: what was expected, what came, what to try."""

from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.model_selection import KFold

from classprior import PenalizedL1Prior, estimate_prior


def penalized_l1(*samples, **options):
    return PenalizedL1Prior(**options).fit_samples(*samples)


X = np.random.default_rng(0).normal(size=(60, 3))
Y = (np.arange(60) < 20).astype(int)
FRAME = pd.DataFrame(X, columns=["age", "height", "weight"])


def spoiled(value):
    bad = X.copy()
    bad[7, 1] = value
    return bad


def text_frame():
    return FRAME.assign(color="red")


FIT_ERRORS = {
    "no positives": (X, np.zeros(60), ValueError, r"1 class: 0\.0"),
    "no unlabeled": (X, np.ones(60), ValueError, r"1 class: 1\.0"),
    "three labels": (X, np.arange(60) % 3, ValueError, "3 classes: 0, 1, 2"),
    "many labels": (X, np.arange(60), ValueError, r"60 classes: 0, 1, 2, 3, 4, 5, \.\.\."),
    "continuous y": (X, X[:, 0], ValueError, r"continuous.*60"),
    "no y": (X, None, ValueError, "requires y to be passed"),
    "NaN in y": (X, np.where(Y, 1.0, np.nan), ValueError, "y contains NaN"),
    "None in y": (
        X,
        np.where(Y, "yes", None),
        ValueError,
        "NoneType and str",
    ),
    "one row": (X[:1], [1], ValueError, "1 class"),
    "one positive": (X, np.arange(60) == 3, ValueError, "positives"),
    "one unlabeled": (X, np.arange(60) != 3, ValueError, "unlabeled"),
    "zero rows": (X[:0], Y[:0], ValueError, r"0 sample\(s\).*minimum of 1"),
    "zero columns": (X[:, :0], Y, ValueError, r"0 feature\(s\).*minimum of 1"),
    "unequal lengths": (X, Y[:40], ValueError, r"inconsistent numbers of samples: \[60, 40\]"),
    "one dimension": (X[:, 0], Y, ValueError, r"one dimension \(60 values\)"),
    "a series": (FRAME["age"], Y, ValueError, r"X.*one dimension"),
    "a polars series": (pl.Series(X[:, 0]), Y, ValueError, r"X.*one dimension"),
    "an empty list": ([], Y, ValueError, r"one dimension \(0 values\)"),
    "a dict": ({"age": [1.0]}, Y, TypeError, r"X.*dict"),
    "columns alike": (FRAME.set_axis(list("aba"), axis=1), Y, ValueError, "'a'"),
    "identical rows": (np.ones((60, 2)), Y, ValueError, "identical"),
    "NaN": (
        spoiled(np.nan),
        Y,
        ValueError,
        r"NaN in column 1 of X .*row 7",
    ),
    "infinity": (spoiled(np.inf), Y, ValueError, r"inf.*column 1 of X"),
    "minus infinity": (spoiled(-np.inf), Y, ValueError, r"infinity .* column 1 of X .*row 7"),
    "NaN, named": (
        pd.DataFrame(spoiled(np.nan), columns=FRAME.columns),
        Y,
        ValueError,
        r"got NaN in column 'height' of X \(first in row 7\)",
    ),
    "NaN, numbered": (pd.DataFrame(spoiled(np.nan)), Y, ValueError, "NaN in column 1 of X"),
    "NaN, sparse": (
        sparse.csr_array(spoiled(np.nan)),
        Y,
        ValueError,
        r"NaN in column 1 of X .*row 7",
    ),
    "null, polars": (
        pl.DataFrame({"age": [None, *range(59)], "height": range(60)}),
        Y,
        ValueError,
        "NaN in column 'age' of X",
    ),
    "null, pandas": (
        pd.DataFrame({"age": pd.array([None, *range(59)], dtype="Int64")}),
        Y,
        ValueError,
        "NaN in column 'age' of X",
    ),
    "overflow": (spoiled(1e200), Y, ValueError, r"1e\+200 in column 1 of X"),
    "text": (np.full((60, 2), "a"), Y, ValueError, "X: could not convert string"),
    "text, pandas": (text_frame(), Y, ValueError, "column 'color' of X"),
    "text, polars": (pl.from_pandas(text_frame()), Y, ValueError, "column 'color' of X"),
    "text, pyarrow": (pa.Table.from_pandas(text_frame()), Y, ValueError, "column 'color' of X"),
    "dates": (
        FRAME.assign(when=pd.Timestamp("2020-01-01")),
        Y,
        TypeError,
        r"datetime64\[.*\] in column 'when' of X",
    ),
    "dates, polars": (
        pl.from_pandas(FRAME.assign(when=pd.Timestamp("2020-01-01"))),
        Y,
        TypeError,
        r"datetime.* in column 'when' of X",
    ),
    "dates, numpy": (
        np.full((60, 1), np.datetime64("2020")),
        Y,
        TypeError,
        r"datetime64.* in X",
    ),
    "date objects": (
        FRAME.assign(when=pd.Series([date(2020, 1, 1)] * 60, dtype=object)),
        Y,
        TypeError,
        "column 'when' of X",
    ),
    "NA objects": (
        FRAME.assign(gap=pd.Series([pd.NA, *range(59)], dtype=object)),
        Y,
        TypeError,
        "column 'gap' of X",
    ),
    "too small": (1e-170 * X, Y, ValueError, "distance"),
    "small": (1e-158 * X, Y, ValueError, "distance"),
    "complex": (X + 1j, Y, ValueError, "Complex data not supported"),
    "nothing": (None, Y, TypeError, r"X.*None"),
    "a path": (Path("rows.csv"), Y, TypeError, r"rows\.csv"),
    "a lazy frame": (pl.LazyFrame(X), Y, TypeError, r"LazyFrame.*X\.collect\(\)"),
}


@pytest.mark.parametrize("case", FIT_ERRORS)
def test_bad_data_is_answered(case):
    data, y, error, message = FIT_ERRORS[case]
    with pytest.raises(error, match=message):
        PenalizedL1Prior(random_state=0).fit(data, y)


def test_dask_is_not_pulled_into_memory():
    class Collection:
        def __dask_graph__(self):
            raise AssertionError

        __array__ = __len__ = __dask_graph__

    with pytest.raises(TypeError, match=r"Collection.*X\.compute\(\)"):
        PenalizedL1Prior().fit(Collection(), Y)


SAMPLE_ERRORS = {
    "no positives": (X[:0], X, r"X_positive.*0 samples"),
    "no unlabeled": (X, X[:0], r"X_unlabeled.*0 samples"),
    "widths": (X, X[:, :2], r"3 columns in X_positive.*2 columns in X_unlabeled"),
    "names": (FRAME, FRAME.rename(columns={"age": "years"}), r"'years' only in X_unlabeled"),
    "NaN": (X, spoiled(np.nan), r"NaN in column 1 of X_unlabeled.*row 7"),
    "text": (text_frame(), text_frame(), r"column 'color' of X_positive"),
}


@pytest.mark.parametrize("case", SAMPLE_ERRORS)
def test_bad_samples_are_answered(case):
    X_positive, X_unlabeled, message = SAMPLE_ERRORS[case]
    with pytest.raises(ValueError, match=message):
        penalized_l1(X_positive, X_unlabeled)


PARAMETER_ERRORS = {
    "sigma zero": (
        {"sigmas": [1.0, 0.0]},
        ValueError,
        r"sigmas.* 0",
    ),
    "sigma negative": ({"sigmas": -1.0}, ValueError, r"sigmas.* -1"),
    "sigma infinite": ({"sigmas": np.inf}, ValueError, r"sigmas.*inf"),
    "sigma NaN": ({"sigmas": np.nan}, ValueError, r"sigmas.*nan"),
    "sigmas far apart": ({"sigmas": [1e-60, 1e60]}, ValueError, r"sigmas.*1e-60 and 1e\+60"),
    "sigma text": ({"sigmas": "wide"}, TypeError, r"sigmas.*'wide'"),
    "no sigmas": ({"sigmas": []}, ValueError, r"sigmas.*\(0,\)"),
    "flat": ({"sigmas": [[1.0]]}, ValueError, r"sigmas.*\(1, 1\)"),
    "lambda zero": ({"lams": 0}, ValueError, r"lams.* 0"),
    "no lambdas": ({"lams": ()}, ValueError, "lams"),
    "theta outside": ({"thetas": [0.5, 1.5]}, ValueError, r"thetas.*1\.5"),
    "thetas falling": ({"thetas": [0.5, 0.4]}, ValueError, "increasing thetas"),
    "no thetas": ({"thetas": []}, ValueError, "thetas"),
    "centers": ({"n_centers": 1}, ValueError, r"n_centers.* 1"),
    "centers, part": ({"n_centers": 2.5}, ValueError, r"n_centers.*2\.5"),
    "one fold": ({"cv": 1}, ValueError, "cv=1"),
    "splits that overlap": (
        {"cv": [(np.arange(60), np.arange(40)), (np.arange(60), np.arange(20, 60))]},
        ValueError,
        r"60 rows.*2 test sets",
    ),
    "splitter": ({"cv": KFold(5)}, TypeError, r"cv.*KFold"),
    "fold text": ({"cv": "five"}, TypeError, r"cv.*'five'"),
    "folds short": ({"cv": np.zeros(9, int)}, ValueError, r"60 rows.*\(9,\)"),
    "folds not whole": (
        {"cv": np.linspace(0, 1, 60)},
        ValueError,
        r"cv.*float64",
    ),
    "folds alike": ({"cv": np.zeros(60, int)}, ValueError, r"cv.* 0"),
    "folds empty": ({"cv": Y}, ValueError, r"positives.*cv.* 0"),
    "leave one out": ({"leave_one_out": "yes"}, TypeError, "leave_one_out must be an instance"),
    "pos_label, list": ({"pos_label": [1]}, ValueError, r"pos_label.*\[1\]"),
    "sigma tiny": ({"sigmas": 1e-200}, ValueError, r"sigmas.*1e-200"),
    "pos_label": ({"pos_label": 7}, ValueError, r"pos_label.*7"),
}


@pytest.mark.parametrize("case", PARAMETER_ERRORS)
def test_bad_parameters_are_answered(case):
    parameters, error, message = PARAMETER_ERRORS[case]
    with pytest.raises(error, match=message):
        PenalizedL1Prior(random_state=0, **parameters).fit(X, Y)


def test_fewer_rows_than_folds_are_said():
    with pytest.warns(UserWarning, match=r"3 in the known positives.*cv=5.*3 folds"):
        curve = penalized_l1(X[:3], X[3:], random_state=0)
    assert 0.0 <= curve.prior_ <= 1.0


def test_a_column_may_be_called_column_names():
    renamed = FRAME.rename(columns={"age": "column_names"})
    expected = PenalizedL1Prior(random_state=0).fit(FRAME, Y).prior_
    assert PenalizedL1Prior(random_state=0).fit(renamed, Y).prior_ == expected


def test_folds_may_have_names():
    ids = np.arange(60) % 3
    named = np.array(["north", "east", "west"])[ids]
    fits = (PenalizedL1Prior(cv=cv, random_state=0).fit(X, Y) for cv in (ids, named))
    np.testing.assert_allclose(*(fit.objective_ for fit in fits), rtol=1e-9)


def test_warnings_reach_code_without_a_name():
    with pytest.warns(UserWarning, match="greater label"):
        exec("fit(X, y)", {"fit": PenalizedL1Prior(random_state=0).fit, "X": X, "y": Y + 1})


def test_failure_leaves_the_users_data_alone():
    bad, before = spoiled(np.nan), spoiled(np.nan)
    with pytest.raises(ValueError, match="NaN"):
        penalized_l1(X, bad)
    np.testing.assert_array_equal(bad, before)


def test_fit_leaves_the_users_data_alone():
    mine, y = X.copy(), Y.copy()
    PenalizedL1Prior(random_state=0).fit(mine, y)
    np.testing.assert_array_equal(mine, X)
    np.testing.assert_array_equal(y, Y)


def test_frames_of_two_kinds_may_meet():
    expected = penalized_l1(X[:20], X[20:], random_state=0).prior_
    mixed = penalized_l1(FRAME[:20], pl.from_pandas(FRAME[20:]), random_state=0).prior_
    half_sparse = penalized_l1(sparse.csr_array(X[:20]), X[20:], random_state=0).prior_
    assert mixed == expected
    assert abs(half_sparse - expected) <= 0.001


@pytest.mark.parametrize("shape", [(60,), (60, 1)])
def test_structured_arrays_are_named(shape):
    rows = np.zeros(60, dtype=[("amount", float), ("hour", int)]).reshape(shape)
    for array in (rows, rows.view(np.recarray)):
        with pytest.raises(TypeError, match=r"X_positive.*'amount', 'hour'.*DataFrame"):
            estimate_prior(array, array)


def test_missing_values_in_sparse_rows_are_not_sent_elsewhere():
    rows = sparse.csr_array(np.eye(60)[:, :4] + 1.0)
    rows.data[3] = np.nan
    with pytest.raises(ValueError, match="NaN in column 3") as caught:
        estimate_prior(rows, rows)
    assert "estimate_prior" not in str(caught.value)
