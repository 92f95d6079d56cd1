"""Saved models: the same predictions, and no harm from any file."""

import copy
import hashlib
import json
import pickle
import re
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from numpy.testing import assert_array_equal
from safetensors import safe_open
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import classprior
from classprior import AutoPrior, DensityRatio, PUClassifier, TableEncoder
from classprior.saving import load_model, save_model

LEVELS = [*"abcd", *(f"rare {i}" for i in range(9))]
ABOUT = "classprior"
TREES = "classifier.ratio.0."
RATIOS = {
    "linear": make_pipeline(StandardScaler(), LogisticRegression()),
    "kernel": make_pipeline(
        StandardScaler(with_std=False), Nystroem(n_components=20), LogisticRegression()
    ),
    "trees": HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=8),
    "deep": HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=None, min_samples_leaf=1),
    "density": DensityRatio(n_centers=20),
    "calibrated": None,
}


def make_table(n=400):
    rng = np.random.default_rng(0)
    is_positive = np.arange(n) < n // 2
    table = pd.DataFrame(
        {
            "amount": rng.normal(np.where(is_positive, 3.0, 0.0)),
            "kind": rng.choice(LEVELS, n, p=[0.24] * 4 + [0.04 / 9] * 9),
            "name": [f"name {i // 2}" for i in range(n)],
            "new": rng.uniform(size=n) < 0.5,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 999, n), "h"),
        }
    )
    table.loc[::9, "amount"] = np.nan
    table.loc[::11, "kind"] = None
    return table, np.arange(n) < n // 3


def fitted(ratio, encoder=None, labels=(False, True), columns=None):
    table, is_known = make_table()
    table = table[columns or list(table)]
    classifier = PUClassifier(prior=0.3, ratio=ratio, pos_label=labels[1], random_state=0)
    if ratio is None:
        names = ("linear", "trees")
        quick = AutoPrior(classifiers={k: RATIOS[k] for k in names}, n_repeats=1, n_resamples=20)
        classifier.set_params(prior=quick)
    model = make_pipeline(encoder or TableEncoder(), classifier)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No unlabeled row")
        return model.fit(table, np.array(labels)[is_known.astype(int)])


@pytest.fixture(scope="module", params=RATIOS)
def model(request):
    return fitted(RATIOS[request.param])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the JSON and the arrays of a saved model, for each ratio."""
    path = tmp_path_factory.mktemp("saved") / "model"

    def contents(name):
        save_model(path, fitted(RATIOS[name]), method="auto")
        return read(path)

    return {name: contents(name) for name in RATIOS}


def read(path):
    """Read a file with the library whose format it has."""
    with safe_open(path, "numpy") as file:
        about = json.loads(file.metadata()[ABOUT])
        return about, {name: file.get_tensor(name).copy() for name in file.keys()}  # noqa: SIM118


def write(path, about, arrays):
    """Write a file whose digest is right."""
    plain = safetensors.numpy.save(arrays)
    data = plain[8 + int.from_bytes(plain[:8], "little") :]
    path.write_bytes(safetensors.numpy.save(arrays, metadata_of(json.dumps(about), data)))


def metadata_of(text, data=b""):
    return {ABOUT: text, "sha256": hashlib.sha256(text.encode() + data).hexdigest()}


def write_raw(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def assert_refused(path, facts=""):
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        load_model(path)
    message = str(caught.value)
    assert facts in message
    assert message.endswith("The file was not loaded.")
    return message


# --- the same model ----------------------------------------------------------------------------


def test_a_loaded_model_predicts_the_same(model, tmp_path):
    save_model(
        tmp_path / "model", model, method="penl1", warnings=["one"], answer="Yes.", meaning="leak"
    )
    loaded = load_model(tmp_path / "model")
    rows, _ = make_table()
    rows.loc[3, "kind"] = "never seen"
    with pytest.warns(UserWarning, match="never seen"):
        before = model.predict_proba(rows)
    with pytest.warns(UserWarning, match="never seen"):
        after = loaded.model.predict_proba(rows)
    assert_array_equal(before, after)
    assert_array_equal(model[:-1].transform(rows[4:]), loaded.model[:-1].transform(rows[4:]))
    assert loaded.method == "penl1"
    assert loaded.warnings == ("one",)
    assert (loaded.answer, loaded.meaning) == ("Yes.", "leak")
    for name in ("n_features_in_", "kinds_", "sources_", "treatments_", "keep", "scale"):
        assert getattr(loaded.model[0], name) == getattr(model[0], name)
    for step in (loaded.model[0], model[0]):
        assert_array_equal(step.feature_names_in_, rows.columns)
    names = [step.get_feature_names_out() for step in (loaded.model[0], model[0])]
    assert_array_equal(*names)


@pytest.mark.parametrize(
    "options",
    [
        {"encoder": TableEncoder(scale=False)},
        {"encoder": TableEncoder(keep=("name",))},  # all its levels are rare
        {"columns": ["amount"]},
        {"columns": ["kind"]},
    ],
    ids=["unscaled", "all rare", "numbers", "categories"],
)
def test_encoders(options, tmp_path):
    model = fitted(LogisticRegression(), **options)
    save_model(tmp_path / "model", model, method="auto")
    loaded = load_model(tmp_path / "model").model
    rows, _ = make_table()
    assert ("name" in model[0].sources_) == ("name" in model[0].keep)
    assert_array_equal(model.predict_proba(rows), loaded.predict_proba(rows))


@pytest.mark.parametrize("labels", [(0, 1), (1, -1), ("no", "yes"), ("yes", "no"), (0.0, 2.0)])
def test_labels(labels, tmp_path):
    model = fitted(RATIOS["linear"], labels=labels)
    save_model(tmp_path / "model", model, method="auto")
    loaded = load_model(tmp_path / "model").model
    rows, _ = make_table()
    assert_array_equal(loaded.predict(rows), model.predict(rows))
    assert loaded[-1].pos_label_ == labels[1]


def test_equal_models_give_equal_files(tmp_path):
    for name in "ab":
        save_model(tmp_path / name, fitted(RATIOS["trees"]), method="auto")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_only_public_paths_are_saved(saved):
    found = set()
    for about, _ in saved.values():
        found |= set(re.findall(r'"((?:classprior|sklearn)\.[\w.]+)"', json.dumps(about)))
    ours = {path.removeprefix("classprior.") for path in found if path.startswith("classprior")}
    assert ours == {"TableEncoder", "PUClassifier", "DensityRatio"}
    assert ours <= set(classprior.__all__)
    assert not [path for path in found if "._" in path]


def test_children_come_after_their_parents_in_trees_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 4))
    X[rng.uniform(size=X.shape) < 0.2] = np.nan
    y = np.nansum(X**2, axis=1) + rng.normal(size=1000) > 4.0
    for options in ({}, {"max_leaf_nodes": None, "min_samples_leaf": 1}, {"max_depth": 2}):
        model = HistGradientBoostingClassifier(max_iter=10, **options).fit(X, y)
        for (tree,) in model._predictors:
            inner = np.flatnonzero(tree.nodes["is_leaf"] == 0)
            for side in ("left", "right"):
                child = tree.nodes[side][inner]
                assert (child > inner).all()
                assert (child < len(tree.nodes)).all()
                depths = tree.nodes["depth"]
                assert_array_equal(depths[child], depths[inner] + 1)


# --- models that cannot be saved ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "facts"),
    [
        (RandomForestClassifier(5), "RandomForestClassifier"),
        (make_pipeline(Nystroem("cosine", n_components=5), LogisticRegression()), "'cosine'"),
        (HistGradientBoostingClassifier(max_iter=2, categorical_features=[0]), "categorical"),
    ],
    ids=["forest", "cosine", "categorical"],
)
def test_unsupported_classifiers_are_not_saved(ratio, facts, tmp_path):
    model = fitted(ratio, TableEncoder(scale=False), columns=["new", "kind"])
    with pytest.raises(TypeError, match=facts):
        save_model(tmp_path / "model", model, method="auto")
    assert not list(tmp_path.iterdir())


def test_a_model_that_would_not_load_is_not_saved(tmp_path):
    model = copy.deepcopy(fitted(RATIOS["linear"]))
    model[-1].ratio_[-1].coef_[0, 0] = np.inf
    with pytest.raises(ValueError, match="coef"):
        save_model(tmp_path / "model", model, method="auto")
    with pytest.raises(TypeError, match="TableEncoder"):
        save_model(tmp_path / "model", make_pipeline(LogisticRegression()), method="auto")
    assert not list(tmp_path.iterdir())


# --- files that are refused --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("left", 10**6),
        ("right", -1),
        ("left", 0),  # a cycle
        ("feature_idx", 10**9),
        ("feature_idx", -1),
        ("value", np.nan),
        ("value", np.inf),
        ("num_threshold", np.nan),
        ("is_leaf", 2),
        ("missing_go_to_left", 7),
        ("depth", 3),
    ],
)
def test_crafted_trees(field, value, saved, tmp_path):
    about, arrays = copy.deepcopy(saved["trees"])
    arrays[f"{TREES}{field}"][0] = value
    write(tmp_path / "model", about, arrays)
    assert_refused(tmp_path / "model", f"{TREES}{field}")


@pytest.mark.parametrize(
    ("sizes", "facts"), [([1], "sizes"), ([2**62] * 5, "sizes"), ([-1, 2], "sizes"), ([], "sizes")]
)
def test_crafted_sizes_of_trees(sizes, facts, saved, tmp_path):
    about, arrays = copy.deepcopy(saved["trees"])
    arrays[f"{TREES}sizes"] = np.array(sizes, dtype=np.int64)
    write(tmp_path / "model", about, arrays)
    assert_refused(tmp_path / "model", TREES)


def test_a_tree_that_takes_forever(saved, tmp_path):
    """A chain of a million nodes is a valid tree."""
    about, arrays = copy.deepcopy(saved["trees"])
    n = 1_000_001
    place = np.arange(n)
    fields = {
        "sizes": np.array([n]),
        "left": place + 1,
        "right": place + 2,
        "is_leaf": (place >= n - 2).astype(int),
        "depth": (place + 1) // 2,
        "feature_idx": np.zeros(n, dtype=int),
        "missing_go_to_left": np.zeros(n, dtype=int),
        "value": np.zeros(n),
        "num_threshold": np.full(n, np.inf),
    }
    inner = place[::2]
    fields["left"][inner], fields["right"][inner] = inner + 1, inner + 2
    fields["is_leaf"][1::2] = fields["is_leaf"][-1] = 1
    for side in ("left", "right"):
        fields[side][fields["is_leaf"] == 1] = 0
    arrays |= {f"{TREES}{name}": array for name, array in fields.items()}
    write(tmp_path / "model", about, arrays)
    assert_refused(tmp_path / "model", "500000")


@pytest.mark.parametrize(
    ("ratio", "member", "value"),
    [
        ("linear", "encoder.medians", np.inf),
        ("linear", "encoder.is_flagged", 2),
        ("linear", "encoder.scaler.scale", 0.0),
        ("linear", "encoder.scaler.mean", np.nan),
        ("linear", "classifier.ratio.1.coef", np.nan),
        ("linear", "classifier.ratio.1.intercept", -np.inf),
        ("kernel", "classifier.ratio.1.components", np.nan),
        ("kernel", "classifier.ratio.1.normalization", np.inf),
        ("density", "classifier.ratio.0.centers", np.inf),
        ("density", "classifier.ratio.0.coef", -1.0),
        ("calibrated", "classifier.classifiers.0.steps.1.coef", np.nan),
    ],
)
def test_crafted_numbers(ratio, member, value, saved, tmp_path):
    about, arrays = copy.deepcopy(saved[ratio])
    arrays[f"{member}"].flat[0] = value
    write(tmp_path / "model", about, arrays)
    assert_refused(tmp_path / "model", member)


@pytest.mark.parametrize("ratio", RATIOS)
def test_crafted_shapes_and_types_of_arrays(ratio, saved, tmp_path):
    about, arrays = saved[ratio]
    path = tmp_path / "model"
    for name, array in arrays.items():
        for other in (
            np.concatenate([array, array]),
            array[:0],
            array[..., None],
            array.astype("f4"),
            array.astype("i4"),
            array.astype("u8"),
        ):
            write(path, about, {**arrays, name: other})
            assert_refused(path)
        write(path, about, {key: value for key, value in arrays.items() if key != name})
        assert_refused(path, name)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("classifier.prior", 5),
        ("classifier.prior", -0.1),
        ("classifier.prior", float("nan")),
        ("classifier.prior", True),
        ("classifier.odds", 0.0),
        ("classifier.odds", -1.0),
        pytest.param("classifier.odds", 10**400, id="huge"),
        ("classifier.classes", [0]),
        ("classifier.classes", [0, [1]]),
        ("classifier.pos_label", 2),
        ("classifier.type", "os.system"),
        ("classifier.ratio.0.type", "os.system"),
        ("classifier.ratio.1.type", "sklearn.preprocessing.StandardScaler"),
        ("classifier.ratio.0.type", "sklearn.linear_model.LogisticRegression"),
        ("classifier.ratio", []),
        ("classifier.calibration.prior", 1.0),
        ("classifier.calibration.slope_below", -1.0),
        ("classifier.calibration.pseudo_share", 1.0),
        ("classifier.classifiers", []),
        ("classifier.classifiers.0.name", 3),
        ("classifier.classifiers.0.steps.1.type", "classprior.DensityRatio"),
        ("encoder.type", "builtins.eval"),
        ("encoder.kinds", {}),
        ("encoder.kinds", {"amount": "code"}),
        ("encoder.kinds", {str(i): "number" for i in range(30_000)}),
        ("encoder.frequent", [["a", "a"]]),
        ("encoder.frequent", [[str(i) for i in range(1000)]]),
        ("encoder.frequent", []),
        ("encoder.treatments", [["a"]]),
        ("warnings", ["x"] * 1000),
        ("warnings", "x"),
        ("meaning", "certain"),
        ("answer", ["x"]),
    ],
)
def test_crafted_values(where, value, saved, tmp_path):
    calibrated = where.startswith(("classifier.calibration", "classifier.classifiers"))
    about, arrays = copy.deepcopy(saved["calibrated" if calibrated else "linear"])
    *parents, name = (int(key) if key.isdigit() else key for key in where.split("."))
    node = about
    for parent in parents:
        node = node[parent]
    node[name] = value
    write(tmp_path / "model", about, arrays)
    message = assert_refused(tmp_path / "model")
    assert "predicted" not in message  # refused before it was used
    assert len(message) < 1500
    del node[name]
    write(tmp_path / "model", about, arrays)
    assert_refused(tmp_path / "model")


def leaves(node, path=()):
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for name, value in items:
        yield (*path, name)
        if isinstance(value, dict | list):
            yield from leaves(value, (*path, name))


@pytest.mark.parametrize(
    ("ratio", "part"),
    [
        ("kernel", ""),
        ("trees", "classifier"),
        ("density", "classifier"),
        ("calibrated", "classifier"),
    ],
)
def test_any_junk_in_any_place(ratio, part, saved, tmp_path):
    """Each value in turn is replaced; the file loads or is refused, and nothing else happens."""
    about, arrays = saved[ratio]
    path, n_refused = tmp_path / "model", 0
    for place in [place for place in leaves(about) if place[0].startswith(part)]:
        for junk in (None, -1, 1e308, "x", [], {}, [[]], ["x"]):
            changed = copy.deepcopy(about)
            node = changed
            for parent in place[:-1]:
                node = node[parent]
            node[place[-1]] = junk
            write(path, changed, arrays)
            try:
                load_model(path)
            except ValueError as error:
                assert str(error).endswith("The file was not loaded.")  # noqa: PT017
                n_refused += 1
    assert n_refused > 50


def test_any_damage_to_the_bytes(saved, tmp_path):
    path = tmp_path / "model"
    write(path, *saved["trees"])
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for n_bytes in (0, 1, 21, 22, 41, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:n_bytes])
        assert_refused(path)
    for place in rng.integers(0, len(whole), 300):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        assert_refused(path)


class Executed:
    def __reduce__(self):
        return exec, ("raise SystemExit('code in a model file was executed')",)


def test_no_code_is_executed(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(pickle.dumps(Executed()))
    assert_refused(path)


def test_large_files_and_headers_are_not_read(tmp_path):
    path = tmp_path / "model"
    tracemalloc.start()
    for n_bytes in (9 * 2**20, 2**63):  # a header that is there, and one that claims to be
        with path.open("wb") as file:
            file.write(n_bytes.to_bytes(8, "little"))
            file.truncate(20 * 2**20)
        assert_refused(path, "header")
    with path.open("wb") as file:
        file.truncate(151 * 2**20)
    assert_refused(path, "151 MB")
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


@pytest.mark.parametrize(
    "header",
    [
        *(b"[" * 100_000, b"{", b"[]", b"NaN", b"1", b"\xff", b'{"a": NaN}'),
        *({}, {"__metadata__": 1}, {"__metadata__": {}}, {"__metadata__": {ABOUT: 1}}),
        {"__metadata__": {ABOUT: "{}", "sha256": 1}},
        *({"__metadata__": metadata_of(text)} for text in ("", "[", "[]", "NaN", "{}")),
    ],
    ids=lambda header: repr(header)[:40],
)
def test_crafted_headers(header, tmp_path):
    write_raw(tmp_path / "model", header)
    assert_refused(tmp_path / "model")


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [1, 10**12]},
        {"shape": [1, 10**12], "data_offsets": [0, 8 * 10**12]},
        *({"shape": shape} for shape in ([], [-1, -1], [True, 2], ["1", 2], "x", [1.0, 2.0])),
        *({"dtype": dtype} for dtype in ("I64", "F32", "x" * 10**6, 1, None)),
        *({"data_offsets": o} for o in ([], [0], [0, 1], [-8, 0], ["0", "8"], [10**30, 10**30])),
        None,
        [],
    ],
    ids=lambda changes: repr(changes)[:60],
)
def test_arrays_that_are_not_what_they_claim(changes, saved, tmp_path):
    path, name = tmp_path / "model", "classifier.ratio.1.coef"
    write(path, *saved["linear"])
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    header[name] = {**header[name], **changes} if changes else changes
    write_raw(path, header, whole[8 + length :])
    message = assert_refused(path, name)
    assert len(message) < 1500
    if not changes:
        del header[name]
        write_raw(path, header, whole[8 + length :])
        assert_refused(path, name)


def test_other_files(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"not a model, although it is long enough to have a directory at its end")
    assert_refused(path)
    path.unlink()
    path.mkdir()
    assert_refused(path)
    write(tmp_path / "old", {"format": 2, "classprior": "0.0.1"}, {})
    assert "0.0.1" in assert_refused(tmp_path / "old", "format 2")


def test_a_model_that_predicts_something_else(saved, tmp_path):
    """For example, because scikit-learn stores trees in another way."""
    about, arrays = copy.deepcopy(saved["trees"])
    arrays["classifier.probed"][3] += 0.01
    write(tmp_path / "model", about, arrays)
    assert_refused(tmp_path / "model", "scikit-learn")
