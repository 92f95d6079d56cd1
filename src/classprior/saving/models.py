"""Save fitted models, and load them from files that need not be trusted.

A model file contains numbers and strings only. Loading checks each of them and builds new
estimators from them. Nothing in a file is executed, and no type is imported by name.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import sklearn
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from classprior import __version__
from classprior._core.types import Doubles, Ints
from classprior._files.writing import whole_file
from classprior._headline import Meaning
from classprior._scores.calibration import Calibration
from classprior._tables.checks import LARGEST
from classprior._tables.columns import CATEGORY, DATE, NUMBER, YES_NO, ColumnTreatment
from classprior._tables.encoder import TableEncoder
from classprior.classifier import PUClassifier
from classprior.density_ratio import DensityRatio
from classprior.saving._container import BROKEN, MOST_BYTES, Part, packed, unpacked

_FORMAT = 5
# Limits on a model, so that predicting with it takes little memory and time.
_MOST_COLUMNS = 10_000
_MOST_FREQUENT_LEVELS = 100  # TableEncoder pools levels in less than 2% of the rows
_MOST_STEPS = 10
_MOST_CLASSIFIERS = 10
_MOST_COMPONENTS = 1000
_MOST_TREES = 10_000
_MOST_DEPTH = 50_000  # of all trees together
_MOST_WARNINGS = 100
_PROBES = 20
_NODE_FIELDS = {
    "value": float,
    "num_threshold": float,
    **dict.fromkeys(("feature_idx", "left", "right", "depth", "missing_go_to_left"), int),
    "is_leaf": int,
}


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A model loaded from a file, with what is known about the estimate of its prior.

    Attributes
    ----------
    model : Pipeline
        A fitted ``TableEncoder`` followed by a fitted ``PUClassifier``.
    method : str
        Short name of the method that estimated the prior.
    warnings : tuple of str
        Warnings of the estimate.
    answer : str
        The estimate in one sentence.
    meaning : str
        What the estimate means, as in ``PriorEstimate``.
    """

    model: Pipeline
    method: str
    warnings: tuple[str, ...]
    answer: str
    meaning: Meaning


def save_model(
    path: str | os.PathLike[str],
    model: Pipeline,
    *,
    method: str,
    warnings: Sequence[str] = (),
    answer: str = "",
    meaning: str = Meaning.ABOUT,
) -> None:
    """Save what a fitted model needs to predict, atomically.

    Parameters
    ----------
    path : path
        Output file.
    model : Pipeline
        A ``TableEncoder`` fitted to a table, followed by a fitted ``PUClassifier``. Its ``ratio_``,
        or each of its ``classifiers_``, must be a ``DensityRatio``, a ``LogisticRegression`` or a
        ``HistGradientBoostingClassifier`` without categorical features, alone or in a ``Pipeline``
        after a ``StandardScaler`` or a ``Nystroem`` with the kernel "rbf".
    method : str
        Short name of the method that estimated the prior.
    warnings : sequence of str
        Warnings of the estimate.
    answer : str, optional
        The estimate in one sentence.
    meaning : str, default="about"
        What the estimate means, as in ``PriorEstimate``.

    Notes
    -----
    A loaded model makes the same predictions. Constructor parameters that do not affect
    predictions, ``oof_proba_``, ``oof_decision_`` and ``oof_rows_`` are not
    saved.
    """
    if [type(step) for _, step in model.steps] != [TableEncoder, PUClassifier]:
        raise TypeError("Expected a Pipeline of a TableEncoder and a PUClassifier.")
    encoder, classifier = model[0], model[-1]
    about = {
        "format": _FORMAT,
        "classprior": __version__,
        "scikit-learn": sklearn.__version__,
        "method": method,
        "warnings": [str(warning) for warning in warnings],
        "answer": answer,
        "meaning": str(meaning),
        "encoder": _encoder_values(encoder),
        "classifier": _classifier_values(classifier),
    }
    contents = packed(about)
    try:
        _loaded(io.BytesIO(contents))
    except ValueError as error:
        raise ValueError(f"The model cannot be saved: {error}.") from error
    with whole_file(Path(path)) as file:
        file.write(contents)


def load_model(path: str | os.PathLike[str]) -> SavedModel:
    """Load a saved model. The file need not be trusted.

    Parameters
    ----------
    path : path
        File written by ``save_model``.

    Returns
    -------
    saved : SavedModel
        The model, and the warnings of the estimate of its prior.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is not a regular file. The file was not loaded.")
    with path.open("rb") as file:
        try:
            return _loaded(file)
        except BROKEN as error:
            reason = str(error) or type(error).__name__
            raise ValueError(
                f"{str(path)!r} is not a valid model: {reason}. The file was not loaded."
            ) from error


def _loaded(file: IO[bytes]) -> SavedModel:
    """Check a file and return its model."""
    top = unpacked(file)
    if (found := top.number("format", 0)) != _FORMAT:
        raise ValueError(
            f"it has format {found:g}, saved by classprior {top.text('classprior')}, but this is "
            f"classprior {__version__} with format {_FORMAT}. Fit the model again"
        )
    encoder = _encoder(top.part("encoder"))
    classifier = _classifier(top.part("classifier"), len(encoder.sources_ or ()))
    return SavedModel(
        Pipeline([("columns", encoder), ("classifier", classifier)]),
        top.text("method"),
        tuple(top.texts("warnings", _MOST_WARNINGS)),
        top.text("answer"),
        Meaning(top.text("meaning")),
    )


# --- the encoder -----------------------------------------------------------------------------


def _encoder_values(encoder: TableEncoder) -> dict[str, Any]:
    if encoder.kinds_ is None:
        raise TypeError("A model fitted to sparse rows cannot be saved.")
    names = getattr(encoder, "feature_names_in_", None)
    values: dict[str, Any] = {
        "type": "classprior.TableEncoder",
        "keep": [str(name) for name in encoder.keep],
        "scale": bool(encoder.scale),
        "columns": None if names is None else list(names),
        "kinds": encoder.kinds_,
        "treatments": [list(treatment) for treatment in encoder.treatments_],
    }
    kinds = list(encoder.kinds_.values())
    if kinds.count(CATEGORY) < len(kinds):
        imputer = encoder.numbers_[0]
        values["medians"] = imputer.statistics_
        is_flagged = np.isin(np.arange(len(imputer.statistics_)), imputer.indicator_.features_)
        values["is_flagged"] = is_flagged
        if encoder.scale:
            values["scaler"] = _scaler_values(encoder.numbers_[1])
    if CATEGORY in kinds:
        frequent, rare = zip(*encoder._levels().values(), strict=True)
        values["frequent"], values["rare"] = list(frequent), list(rare)
    return values


def _encoder(part: Part) -> TableEncoder:
    _check_type(part, "classprior.TableEncoder")
    encoder = TableEncoder(keep=tuple(part.texts("keep")), scale=part.flag("scale"))
    columns = part.value("columns", list, type(None))
    encoder.kinds_ = part.value("kinds", dict)
    kinds = list(encoder.kinds_.values())
    if not set(map(str, kinds)) <= {NUMBER, YES_NO, DATE, CATEGORY} or not kinds:
        raise ValueError(f"{part.where}kinds has unknown kinds")
    treatments = part.lists("treatments")
    if any(len(treatment) != len(ColumnTreatment._fields) for treatment in treatments):
        raise ValueError(f"{part.where}treatments has an entry of another length")
    encoder.treatments_ = tuple(map(ColumnTreatment._make, treatments))
    encoder._remember(None if columns is None else part.texts("columns"), len(treatments))
    n_texts = kinds.count(CATEGORY)
    if len(kinds) > _MOST_COLUMNS:
        raise ValueError(f"it has {len(kinds)} columns, and the limit is {_MOST_COLUMNS}")
    if n_texts < len(kinds):
        encoder.numbers_ = make_pipeline(*_imputer_and_scaler(part, len(kinds) - n_texts))
    if n_texts:
        encoder.levels_ = _one_hot(part, n_texts)
    encoder.sources_ = [source for source, _ in encoder._outputs()]
    if len(encoder.sources_) > _MOST_COLUMNS:
        n = len(encoder.sources_)
        raise ValueError(f"it has {n} encoded columns, and the limit is {_MOST_COLUMNS}")
    return encoder


def _imputer_and_scaler(part: Part, n: int) -> list[Any]:
    """Return the steps for ``n`` columns of numbers: an imputer, and a scaler if scaled."""
    is_flagged = part.indices("is_flagged", (n,), 2) == 1
    rows = np.zeros((2, n))
    rows[1, is_flagged] = np.nan
    imputer = SimpleImputer(strategy="median", add_indicator=True).fit(rows)
    imputer.statistics_ = part.numbers("medians", (n,))
    if not part.flag("scale"):
        return [imputer]
    return [imputer, _scaler(part.part("scaler"), n + int(is_flagged.sum()))[0]]


def _one_hot(part: Part, n: int) -> OneHotEncoder:
    """Return the encoder of ``n`` categorical columns."""
    frequent, rare = part.lists("frequent", _MOST_FREQUENT_LEVELS), part.lists("rare")
    if len(frequent) != n or len(rare) != n:
        raise ValueError(f"{part.where}frequent and rare do not have {n} columns")
    both = [[*f, *r] for f, r in zip(frequent, rare, strict=True)]
    if any(len(set(column)) < max(1, len(column)) for column in both):
        raise ValueError(f"{part.where}frequent and rare have no or duplicate levels")
    levels = [np.array(sorted(column), dtype=object) for column in both]
    # With given categories, a level is rare if it does not occur in the rows passed to fit.
    n_rows = max(1, *map(len, frequent))
    rows = np.empty((n_rows, n), dtype=object)
    for j, some in enumerate(frequent):
        filler = some[0] if some else f"{max(levels[j], key=len)} and more"
        rows[:, j] = [*some, *[filler] * (n_rows - len(some))]
    return OneHotEncoder(
        categories=levels,
        min_frequency=1,
        handle_unknown="infrequent_if_exist",
        sparse_output=False,
    ).fit(rows)


# --- the classifier --------------------------------------------------------------------------


def _classifier_values(classifier: PUClassifier) -> dict[str, Any]:
    classes = classifier.classes_.tolist()
    if not all(isinstance(label, bool | int | float | str) for label in classes):
        raise TypeError(f"Expected labels that are numbers or strings, got {classes!r}.")
    calibration = classifier.calibration_
    if calibration is None:
        model = {"odds": float(classifier.odds_), "ratio": _model_values(classifier.ratio_)}
    else:
        model = {
            "calibration": asdict(calibration),
            "classifiers": [
                {"name": str(name), "steps": _model_values(model)}
                for name, model in classifier.classifiers_.items()
            ],
        }
    return {
        "type": "classprior.PUClassifier",
        "prior": float(classifier.prior_),
        "classes": classes,
        "pos_label": classes.index(classifier.pos_label_),
        **model,
        "probed": classifier.decision_function(_probes(classifier.n_features_in_)),
    }


def _classifier(part: Part, n: int) -> PUClassifier:
    _check_type(part, "classprior.PUClassifier")
    prior = part.number("prior", 0.0, 1.0)
    classifier = PUClassifier(prior=prior)
    classifier.prior_, classifier.n_features_in_ = prior, n
    classifier.oof_proba_ = classifier.oof_decision_ = classifier.oof_rows_ = None
    labels = part.value("classes", list)
    kinds = {type(label) for label in labels}
    if len(labels) != 2 or len(kinds) > 1 or not kinds <= {bool, int, float, str}:
        raise ValueError(f"{part.where}classes is not a pair of labels")
    classifier.classes_ = np.array(labels)
    classifier.pos_label_ = classifier.classes_[int(part.number("pos_label", 0, 1))]
    classifier.classifiers_ = classifier.calibration_ = classifier.ratio_ = classifier.odds_ = None
    if "calibration" in part.values:
        classifier.calibration_ = _calibration(part.part("calibration"))
        classifier.classifiers_ = {
            each.text("name"): _model(each, "steps", n, _CLASSIFIERS)
            for each in part.parts("classifiers", _MOST_CLASSIFIERS)
        }
    else:
        classifier.odds_ = part.number("odds", 1e-12, 1e12)
        classifier.ratio_ = _model(part, "ratio", n)
    with np.errstate(all="ignore"):
        found = classifier.decision_function(_probes(n))
    if not np.allclose(found, part.numbers("probed", (_PROBES,)), rtol=1e-6, atol=1e-9):
        raise ValueError(
            f"with scikit-learn {sklearn.__version__}, it does not predict what it predicted when "
            "it was saved"
        )
    return classifier


def _calibration(part: Part) -> Calibration:
    smallest = 1e-12
    return Calibration(
        prior=part.number("prior", smallest, 1.0 - smallest),
        center=part.number("center", -LARGEST),
        intercept=part.number("intercept", -LARGEST),
        slope_below=part.number("slope_below", 0.0),
        slope_above=part.number("slope_above", 0.0),
        pseudo_share=part.number("pseudo_share", 0.0, 0.5),
    )


def _model_values(model: Any) -> list[dict[str, Any]]:
    """Return the values of a model, or of the steps of a pipeline."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    values = []
    for estimator in steps:
        found = [item for item in _STEPS.items() if item[1].type is type(estimator)]
        if not found:
            raise TypeError(
                f"A {type(estimator).__name__} cannot be saved. A model may consist of "
                f"{', '.join(step.type.__name__ for step in _STEPS.values())}."
            )
        ((name, step),) = found
        values.append({"type": name, **step.values(estimator)})
    return values


def _model(part: Part, name: str, n: int, last: tuple[type, ...] | None = None) -> Any:
    """Return the model of ``n`` columns that was saved under a name."""
    steps, width = [], n
    for step in part.parts(name, _MOST_STEPS):
        if (kind := step.text("type")) not in _STEPS:
            raise ValueError(
                f"{step.where}type is {kind!r}, which does not belong in a saved model"
            )
        estimator, width = _STEPS[kind].load(step, width)
        steps.append(estimator)
    is_last = [type(step) in _LAST for step in steps]
    if is_last != [False] * (len(steps) - 1) + [True] or type(steps[-1]) not in (last or _LAST):
        raise ValueError(f"{part.where}{name} does not end in a classifier or a density ratio")
    return steps[0] if len(steps) == 1 else make_pipeline(*steps)


def _probes(n: int) -> Doubles:
    """Return rows that are the same everywhere, to compare predictions before and after."""
    return (np.arange(_PROBES * n) * 7919 % 1001 / 250.0 - 2.0).reshape(_PROBES, n)


def _scaler_values(scaler: StandardScaler) -> dict[str, Any]:
    return {
        "mean": scaler.mean_ if scaler.with_mean else None,
        "scale": scaler.scale_ if scaler.with_std else None,
    }


def _scaler(part: Part, n: int) -> tuple[StandardScaler, int]:
    mean, scale = (
        None if name in part.values else part.numbers(name, (n,), low)
        for name, low in (("mean", -LARGEST), ("scale", 1e-300))
    )
    scaler = StandardScaler(with_mean=mean is not None, with_std=scale is not None)
    scaler.mean_, scaler.scale_, scaler.n_features_in_ = mean, scale, n
    return scaler, n


def _nystroem_values(kernel: Nystroem) -> dict[str, Any]:
    if kernel.kernel != "rbf" or kernel.kernel_params:
        raise TypeError(f"A Nystroem with the kernel {kernel.kernel!r} cannot be saved; use 'rbf'.")
    gamma = 1.0 / kernel.n_features_in_ if kernel.gamma is None else float(kernel.gamma)
    arrays = {"components": kernel.components_, "normalization": kernel.normalization_}
    return {"gamma": gamma, **arrays}


def _nystroem(part: Part, n: int) -> tuple[Nystroem, int]:
    components = part.numbers("components", (None, n))
    k = len(components)
    if k > _MOST_COMPONENTS:
        raise ValueError(f"{part.where}components has {k} rows, the limit is {_MOST_COMPONENTS}")
    kernel = Nystroem(gamma=part.number("gamma", 0.0), n_components=k)
    kernel.components_, kernel.n_features_in_ = components, n
    kernel.normalization_ = part.numbers("normalization", (k, k))
    return kernel, k


def _logistic_values(model: LogisticRegression) -> dict[str, Any]:
    return {"coef": model.coef_, "intercept": model.intercept_}


def _logistic(part: Part, n: int) -> tuple[LogisticRegression, int]:
    model = LogisticRegression()
    model.coef_, model.intercept_ = part.numbers("coef", (1, n)), part.numbers("intercept", (1,))
    model.classes_, model.n_features_in_ = np.array([False, True]), n
    return model, 1


def _ratio_values(ratio: DensityRatio) -> dict[str, Any]:
    arrays = {"centers": ratio.centers_, "coef": ratio.coef_}
    return {"sigma": float(ratio.sigma_), "lam": float(ratio.lam_), **arrays}


def _ratio(part: Part, n: int) -> tuple[DensityRatio, int]:
    centers = part.numbers("centers", (None, n))
    ratio = DensityRatio()
    ratio.centers_, ratio.coef_ = centers, part.numbers("coef", (len(centers),), 0.0)
    ratio.sigma_, ratio.lam_ = part.number("sigma", 1.0 / LARGEST), part.number("lam", 0.0)
    ratio.classes_, ratio.pos_label_, ratio.n_features_in_ = np.array([0, 1]), 1, n
    return ratio, 1


def _trees_values(model: HistGradientBoostingClassifier) -> dict[str, Any]:
    if model.is_categorical_ is not None:
        raise TypeError(
            "A HistGradientBoostingClassifier with categorical features cannot be saved."
        )
    trees = [tree.nodes for (tree,) in model._predictors]
    nodes = np.concatenate(trees)
    return {
        "baseline": float(model._baseline_prediction[0, 0]),
        "sizes": np.array([len(tree) for tree in trees]),
        **{name: nodes[name] for name in _NODE_FIELDS},
    }


def _trees(part: Part, n: int) -> tuple[HistGradientBoostingClassifier, int]:
    """Put checked trees into a classifier fitted to two rows."""
    sizes = part.array("sizes", (None,), int)
    if len(sizes) > _MOST_TREES or (sizes < 1).any() or (sizes > MOST_BYTES).any():
        raise ValueError(f"{part.where}sizes has too many trees, or trees of an impossible size")
    n_nodes, starts = int(sizes.sum()), np.cumsum(sizes) - sizes
    nodes = {name: part.array(name, (n_nodes,), dtype) for name, dtype in _NODE_FIELDS.items()}
    _check_nodes(part.where, nodes, sizes, starts, n)
    model = HistGradientBoostingClassifier(max_iter=1, early_stopping=False)
    model.fit(np.zeros((2, n)), [False, True])
    ((stump,),) = model._predictors
    table = np.zeros(n_nodes, dtype=stump.nodes.dtype)
    for name, column in nodes.items():
        table[name] = column
    no_categories = stump.binned_left_cat_bitsets, stump.raw_left_cat_bitsets
    model._predictors = [
        [type(stump)(tree, *no_categories)] for tree in np.split(table, starts[1:])
    ]
    model._baseline_prediction = np.array([[part.number("baseline", -1e3, 1e3)]])
    return model, 1


def _check_nodes(where: str, nodes: dict[str, Any], sizes: Ints, starts: Ints, n: int) -> None:
    """Check that each tree is a tree: children come after their parents, so there are no cycles."""

    def check(name: str, is_valid: Any) -> None:
        if not np.all(is_valid):
            first = int(np.argmin(is_valid))
            raise ValueError(f"{where}{name} of node {first} is {nodes[name][first]}")

    is_leaf, depth = nodes["is_leaf"], nodes["depth"]
    start, size = np.repeat(starts, sizes), np.repeat(sizes, sizes)
    place = np.arange(len(start)) - start
    check("is_leaf", (is_leaf == 0) | (is_leaf == 1))
    check("missing_go_to_left", (nodes["missing_go_to_left"] | 1) == 1)
    check("value", np.abs(nodes["value"]) <= LARGEST)
    check("feature_idx", (nodes["feature_idx"] >= 0) & (nodes["feature_idx"] < n))
    check("depth", np.where(place == 0, depth == 0, (depth > 0) & (depth <= place)))
    for side in ("left", "right"):
        child = nodes[side]
        check(side, (child >= 0) & (child < size) & ((is_leaf == 1) | (child > place)))
        check("depth", np.where(is_leaf == 1, True, depth[start + child] == depth + 1))
    if (total := int(np.maximum.reduceat(depth, starts).sum())) > _MOST_DEPTH:
        raise ValueError(f"{where}depth is {total} in total, and the limit is {_MOST_DEPTH}")


@dataclass(frozen=True)
class _Step:
    """How a step of the ratio is saved, and loaded given its number of columns."""

    type: type
    values: Callable[[Any], dict[str, Any]]
    load: Callable[[Part, int], tuple[Any, int]]


_STEPS = {
    "sklearn.preprocessing.StandardScaler": _Step(StandardScaler, _scaler_values, _scaler),
    "sklearn.kernel_approximation.Nystroem": _Step(Nystroem, _nystroem_values, _nystroem),
    "sklearn.linear_model.LogisticRegression": _Step(
        LogisticRegression, _logistic_values, _logistic
    ),
    "sklearn.ensemble.HistGradientBoostingClassifier": _Step(
        HistGradientBoostingClassifier, _trees_values, _trees
    ),
    "classprior.DensityRatio": _Step(DensityRatio, _ratio_values, _ratio),
}
_CLASSIFIERS = (LogisticRegression, HistGradientBoostingClassifier)
_LAST = (*_CLASSIFIERS, DensityRatio)


def _check_type(part: Part, wanted: str) -> None:
    if (name := part.text("type")) != wanted:
        raise ValueError(f"{part.where}type is {name!r}, expected {wanted!r}")
