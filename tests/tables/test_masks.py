"""A masked value is a missing value: accepted where missing values are, refused elsewhere."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from classprior import (
    DensityRatio,
    PearsonPrior,
    PenalizedL1Prior,
    PUClassifier,
    TableEncoder,
    estimate_prior,
    theory,
)
from classprior._tables.tables import unmasked
from classprior.datasets import sample_positive_unlabeled
from classprior.density_ratio import LeastSquaresClassifier
from classprior.engines import fit_blocks, predict_blocks
from classprior.metrics import pu_error_rate, pu_precision, pu_recall
from classprior.sensitivity import sensitivity_curve

rng = np.random.default_rng(0)
POSITIVE = rng.normal(0, 1, (100, 2))
UNLABELED = np.vstack([rng.normal(0, 1, (60, 2)), rng.normal(4, 1, (140, 2))])
X, Y = np.vstack([POSITIVE, UNLABELED]), np.repeat([1, 0], [100, 200])
WILD = 999.0  # stands under the mask; whoever loses the mask sees it


def masked(values, *places):
    """Mask places, with a wild value in the array below."""
    array = np.array(values)
    mask = np.zeros(array.shape, dtype=bool)
    for place in places:
        array[place], mask[place] = WILD, True
    return np.ma.array(array, mask=mask)


def with_nan(array):
    return np.asarray(array.astype(float).filled(np.nan))


ROWS = masked(X, (7, 1))
LABELS = masked(Y, 7)
U = masked(UNLABELED, (7, 1), (120, 0))
MODEL = PUClassifier(prior=0.3, ratio=DensityRatio(n_centers=20), random_state=0).fit(X, Y)
PLACE = r"NaN in column 1 of {}.*row 7.*masked"

REFUSED = {
    "fit": (lambda: PenalizedL1Prior().fit(ROWS, Y), PLACE.format("X")),
    "list": (lambda: PenalizedL1Prior().fit(list(ROWS), Y), PLACE.format("X")),
    "classifier": (lambda: LeastSquaresClassifier().fit(ROWS, Y), PLACE.format("X")),
    "ratio": (lambda: DensityRatio().fit(ROWS, Y), PLACE.format("X")),
    "predict": (lambda: MODEL.predict(ROWS), PLACE.format("X")),
    "ratio at": (lambda: MODEL.ratio_.predict(ROWS), PLACE.format("X")),
    "samples": (lambda: PearsonPrior().fit_samples(POSITIVE, U), PLACE.format("X_unlabeled")),
    "sample as a list": (
        lambda: PearsonPrior().fit_samples(POSITIVE, list(U)),
        PLACE.format("X_unlabeled"),
    ),
    "blocks": (
        lambda: fit_blocks(PenalizedL1Prior(), [POSITIVE], [UNLABELED, U]),
        r"NaN in column 1 of X_unlabeled.*block 1.*row 7\b",
    ),
    "sensitivity": (
        lambda: sensitivity_curve(
            PenalizedL1Prior(), POSITIVE, U, param_name="cv", param_range=[3]
        ),
        PLACE.format("X_unlabeled"),
    ),
    "truth": (
        lambda: sensitivity_curve(
            *(PenalizedL1Prior(), POSITIVE, UNLABELED),
            **{"param_name": "cv", "param_range": [3]},
            is_positive=np.ma.array(np.arange(200) < 60, mask=np.arange(200) == 7),
        ),
        "is_positive",
    ),
    "theory": (lambda: theory.feature_bound(ROWS, X[:3], 1.0), PLACE.format("X")),
    "labels": (lambda: PenalizedL1Prior().fit(X, LABELS), "y contains NaN|contains NaN"),
    "names": (
        lambda: PenalizedL1Prior().fit(X, masked(np.where(Y, "yes", "no").astype("U5"), 7)),
        "NoneType and str",
    ),
    "groups": (
        lambda: PenalizedL1Prior().fit(X, Y, groups=masked(np.arange(300), 7)),
        "group.*row 7.*missing",
    ),
    "folds": (lambda: PenalizedL1Prior(cv=masked(np.arange(300) % 3, 7)).fit(X, Y), "cv.*float"),
    "recall": (lambda: pu_recall(LABELS, Y), "y_true.*masked"),
    "precision": (lambda: pu_precision(Y, LABELS, prior=0.3), "y_pred.*masked"),
    "error rate": (lambda: pu_error_rate(Y, LABELS, prior=0.3), "y_pred.*masked"),
    "draws": (
        lambda: sample_positive_unlabeled(
            *(X, np.ma.array(Y == 1, mask=np.arange(300) == 7)),
            **{"prior": 0.3, "n_positive": 10, "n_unlabeled": 20},
        ),
        "is_positive.*masked",
    ),
}


@pytest.mark.parametrize("door", REFUSED)
def test_masked_values_are_refused(door):
    call, message = REFUSED[door]
    with pytest.raises(ValueError, match=message):
        call()


def test_predictions_in_blocks_refuse_them(tmp_path):
    with pytest.raises(ValueError, match=r"NaN in column 1 of X.*row 7"):
        predict_blocks(MODEL, U, tmp_path / "answers.csv")


QUICK = {"method": "pe", "n_resamples": 20, "random_state": 0}


@pytest.mark.parametrize("form", [lambda part: part, lambda part: [part[:150], part[150:]], list])
def test_one_call_takes_them_as_missing(form):
    found = estimate_prior(POSITIVE, form(U), **QUICK)
    expected = estimate_prior(POSITIVE, with_nan(U), **QUICK)
    assert found.prior == expected.prior
    assert found.columns == expected.columns
    assert "1 missing" in found.columns[1].treatment


@pytest.mark.parametrize("dtype", [float, np.float32, int, object])
def test_the_encoder_takes_them_as_missing(dtype):
    table = masked((10 * X).astype(dtype), (7, 1))
    encoder = TableEncoder().fit(table)
    filled = with_nan(table)
    assert_array_equal(encoder.transform(table), TableEncoder().fit_transform(filled))
    assert encoder.transform(table).shape[1] == 3  # two columns and a flag


def test_a_pipeline_in_blocks_takes_them_as_missing():
    pipeline = make_pipeline(SimpleImputer(), PearsonPrior(n_centers=20, random_state=0))
    blocks = [[part[:50], part[50:]] for part in (POSITIVE, U)]
    found = fit_blocks(pipeline, *blocks)[-1].prior_
    expected = fit_blocks(pipeline, POSITIVE, with_nan(U))[-1].prior_
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_mask_without_masked_values_is_nothing():
    whole = [np.ma.array(part) for part in (POSITIVE, UNLABELED)]
    options = {"n_centers": 20, "random_state": 0}
    expected = PearsonPrior(**options).fit_samples(POSITIVE, UNLABELED).prior_
    assert PearsonPrior(**options).fit_samples(*whole).prior_ == expected
    table, labels = np.ma.array(X), np.ma.array(Y)
    assert PearsonPrior(**options).fit(table, labels).prior_ == expected


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "?", "O", "U3", "M8[s]", "c16"])
def test_unmasked_is_missing_in_any_type(dtype):
    array = np.ma.array(np.ones(3).astype(dtype), mask=[False, True, False])
    plain = unmasked(array)
    assert type(plain) is np.ndarray
    assert_array_equal(pd.isna(plain), [False, True, False])
    assert plain.dtype == (dtype if dtype in ("f4", "f8", "O", "M8[s]", "c16") else plain.dtype)
    assert plain[0] == array[0]
    assert array.mask[1]  # the user's array is left alone
