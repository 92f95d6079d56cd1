"""Which rows are positive: a model of data frames, and the file that keeps it."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn
from sklearn.pipeline import Pipeline

from classprior import __version__
from classprior._basis import Doubles
from classprior._classifier import PUClassifier
from classprior._frames import EncodedSamples
from classprior._messages import listed, warn
from classprior._threads import single_threaded
from classprior._views import default_classifiers, seeded, with_labels
from classprior._writing import whole_file

if TYPE_CHECKING:
    from classprior.estimate import PriorEstimate

_FORMAT = 1
_ABOUT = "classprior.json"
#: What a model consists of beside scikit-learn's estimators and arrays; anything else is refused.
_TRUSTED = (
    "classprior._classifier.PUClassifier",
    "classprior._frames.ColumnTreatment",
    "classprior._frames.FrameEncoder",
    "numpy.dtype",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
)

#: What skops raises where an archive is not what it expects.
_BROKEN = (AttributeError, ImportError, KeyError, TypeError, ValueError, zipfile.BadZipFile)


def fit_row_model(
    encoded: EncodedSamples, estimate: PriorEstimate, seed: int
) -> tuple[Pipeline, Doubles]:
    """Fit what tells positive from negative rows of data frames.

    Prior times density ratio, like ``PUClassifier``. The ratio comes from the classifier behind the
    estimate that best foresees, by its log-loss, which rows it has not seen are labelled:
    Gaussians around rows see little in many columns.

    Parameters
    ----------
    encoded : EncodedSamples
        Two data frames as numbers.
    estimate : PriorEstimate
        What was estimated from them.
    seed : int
        Of the classifier.

    Returns
    -------
    model : Pipeline
        From a data frame to probabilities, fitted to all rows.
    probabilities : array of shape (n_unlabeled,)
        Of being positive, of the unlabeled rows, each from classifiers that have not seen the row:
        those that have remember that it was not labelled.
    """
    X, labels = with_labels(encoded.X_positive, encoded.X_unlabeled)
    classifiers = default_classifiers(X, len(X))
    assert estimate.evidence is not None
    scores = {name: estimate.evidence.scores[name] for name in classifiers}
    best = min(scores, key=lambda name: _log_loss(*scores[name]))
    classifier = PUClassifier(prior=estimate.prior, ratio=seeded(classifiers[best], seed))
    with single_threaded():
        classifier.fit(X, labels)
    model = Pipeline([("columns", encoded.encoder), ("classifier", classifier)])
    odds = np.exp(scores[best][1]) * estimate.n_unlabeled / estimate.n_positive
    return model, np.minimum(1.0, estimate.prior * odds)


def _log_loss(positive: Doubles, unlabeled: Doubles) -> float:
    """Return the log-loss of log-odds of being labelled."""
    return float(np.logaddexp(0.0, -positive).sum() + np.logaddexp(0.0, unlabeled).sum())


def save_model(path: Path, model: Pipeline, estimate: PriorEstimate) -> None:
    """Write a model with skops, whole or not at all.

    Parameters
    ----------
    path : Path
        The file.
    model : Pipeline
        Of ``fit_row_model``.
    estimate : PriorEstimate
        The share it rests on.
    """
    from skops import io as skops_io

    about = {
        "format": _FORMAT,
        "classprior": __version__,
        "scikit-learn": sklearn.__version__,
        "prior": estimate.prior,
        "method": estimate.method,
    }
    packed = io.BytesIO(skops_io.dumps(model, compression=zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr(_ABOUT, json.dumps(about))
    with whole_file(path) as file:
        file.write(packed.getvalue())


def load_model(path: Path) -> Pipeline:
    """Read a model, if it consists of nothing but what a model of ours consists of.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    model : Pipeline
        From a data frame to probabilities.
    """
    from skops import io as skops_io

    data = path.read_bytes()
    about = _about(data, path)
    try:
        foreign = sorted(set(skops_io.get_untrusted_types(data=data)) - set(_TRUSTED))
    except _BROKEN as error:
        raise ValueError(_unreadable(path, about, error)) from error
    if foreign:
        raise ValueError(
            f"Expected a model that classify --save-model wrote, but {str(path)!r} holds "
            f"{listed(foreign)}, which no such model does. It was not opened: do not trust it."
        )
    if about["scikit-learn"] != sklearn.__version__:
        warn(
            f"The model was saved with scikit-learn {about['scikit-learn']}, this is "
            f"{sklearn.__version__}. If predictions look odd, fit it again."
        )
    try:
        model = skops_io.loads(data, trusted=list(_TRUSTED))
    except _BROKEN as error:
        raise ValueError(_unreadable(path, about, error)) from error
    if not isinstance(model, Pipeline) or not isinstance(model[-1], PUClassifier):
        raise ValueError(f"Expected a model in {str(path)!r}, found a {type(model).__name__}.")
    return model


def _unreadable(path: Path, about: dict[str, Any], error: Exception) -> str:
    return (
        f"Expected a model of this version, could not open {str(path)!r}, saved by classprior "
        f"{about['classprior']} with scikit-learn {about['scikit-learn']}: {error}. Fit it again."
    )


def _about(data: bytes, path: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            about = json.loads(archive.read(_ABOUT))
        known = about["format"] == _FORMAT
        about = {name: str(about[name]) for name in ("classprior", "scikit-learn", "format")}
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"Expected a model that classify --save-model wrote, got {str(path)!r}, which is "
            "something else or broken."
        ) from error
    if not known:
        raise ValueError(
            f"Expected a model in format {_FORMAT}, got format {about['format']} of classprior "
            f"{about['classprior']} in {str(path)!r}. Install that version, or fit it again."
        )
    return about
