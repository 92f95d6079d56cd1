"""Saved models in which bytes or values are changed, also with a digest that is right again."""

from __future__ import annotations

import hashlib
import json
import random
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from classprior import PUClassifier, TableEncoder
from classprior.saving import load_model, save_model
from families.base import Family
from families.damaged import damaged

_VALUES = (
    *("null", "true", "0", "-1", "9223372036854775808", "1e308", '"x"', '""', "[]", "{}", "[[]]"),
    *('[1, "a"]', '{"a": 1}', '"\\ud800"', "[null]", "2.5"),
)


@cache
def saved() -> bytes:
    """Return the contents of a small model."""
    rows = pd.DataFrame({"x": [i % 7 for i in range(60)], "c": [f"v{i % 3}" for i in range(60)]})
    model = make_pipeline(TableEncoder(), PUClassifier(prior=0.9, ratio=LogisticRegression()))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save_model(Path(folder) / "m", model.fit(rows, rows["x"] > 4), method="auto")
        return (Path(folder) / "m").read_bytes()


def changed(rng: random.Random, node: Any) -> None:
    """Replace or delete a value somewhere in nested dicts and lists."""
    while True:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        key = rng.choice(list(keys))
        below = node[key]
        if not isinstance(below, dict | list) or not below or rng.random() < 0.2:
            break
        node = below
    if rng.random() < 0.3:
        del node[key]
    else:
        node[key] = json.loads(rng.choice(_VALUES))


def write(rng: random.Random, folder: Path) -> None:
    """Write a changed model."""
    content = saved()
    if rng.random() < 0.3:
        (folder / "mutant.model").write_bytes(damaged(rng, content))
        return
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    about = json.loads(header["__metadata__"]["classprior"])
    if rng.random() < 0.3:
        data = damaged(rng, data)
    changed(
        rng, rng.choice([about, about, {k: v for k, v in header.items() if k[0] != "_"} or about])
    )
    values = json.dumps(about)
    digest = hashlib.sha256(values.encode() + data).hexdigest()
    header["__metadata__"] = {"classprior": values, "sha256": digest}
    text = json.dumps(header).encode()
    (folder / "mutant.model").write_bytes(len(text).to_bytes(8, "little") + text + data)


def read(folder: Path) -> str:
    """Load the model, and predict with what is accepted."""
    model = load_model(folder / "mutant.model").model
    try:
        found = model.predict_proba(pd.DataFrame({"x": [1.0, 2.0], "c": ["v0", "v1"]}))
    except ValueError:  # it may have other columns
        return ""
    return "" if ((found >= 0.0) & (found <= 1.0)).all() else f"probabilities {found.tolist()}"


MODELS = Family("models", write, read)
