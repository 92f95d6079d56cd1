"""The kinds of columns that a model was fitted to decide how new rows are read, in any batch."""

import json
from datetime import date, datetime
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import xlsxwriter
from click.testing import CliRunner
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from classprior import PUClassifier, TableEncoder
from classprior.cli import main
from classprior.engines import fit_blocks, predict_blocks
from classprior.saving import load_model, save_model

N = 240
#: Levels of a category, of which the last shows that the others are no numbers, dates and so on.
LEVELS = {
    "codes": ["01", "02", "X9"],
    "numbers": ["1", "2.50", "none given"],
    "decimals": ["1,5", "2,25", "open"],
    "dates": ["2026-01-01", "2026-02-01", "open"],
    "local dates": ["01.02.2026", "02.02.2026", "open"],
    "times": ["2026-01-01T10:00:00+01:00", "2026-07-01T10:00:00+02:00", "open"],
    "booleans": ["true", "false", "maybe"],
}


def table(levels, n=N):
    """Return a table with a category whose last level is in every third row."""
    rng = np.random.default_rng(0)
    codes = np.arange(n) % 3
    return pd.DataFrame(
        {"code": np.array(levels)[codes], "x": (rng.normal(size=n) + codes).round(3)}
    )


def fitted(rows):
    """Fit a model to a table of which some rows are known to be positive."""
    is_known = rows["x"].rank(pct=True) > 0.7
    model = make_pipeline(TableEncoder(), PUClassifier(prior=0.9, ratio=LogisticRegression()))
    return model.fit(rows, is_known)


def written(rows, path, *, delimiter=";"):
    """Write a table to a file by the suffix of its name."""
    if path.suffix == ".csv":
        rows.to_csv(path, index=False, sep=delimiter)
    elif path.suffix == ".jsonl":
        lines = [json.dumps(row) for row in rows.to_dict("records")]
        path.write_text("\n".join(lines) + "\n")
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), path)
    elif path.suffix == ".feather":
        pa.feather.write_feather(rows, path)
    else:
        book = xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd"})
        sheet = book.add_worksheet()
        for place, row in enumerate([list(rows), *rows.to_numpy(dtype=object).tolist()]):
            for column, value in enumerate(row):
                if isinstance(value, str):
                    sheet.write_string(place, column, value)
                elif value is not None and value == value:
                    sheet.write(place, column, value)
        book.close()
    return path


def by_blocks(model, path, folder):
    predict_blocks(model, path, folder / "answers.parquet")
    return pq.read_table(folder / "answers.parquet")["probability"].to_numpy()


def by_command(model, path, folder):
    save_model(folder / "a.model", model, method="auto")
    out = folder / "answers" / "a.parquet"
    command = ["predict", str(folder / "a.model"), str(path), "--out", str(out), "--force"]
    ran = CliRunner().invoke(main, command, catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return pq.read_table(out)["probability"].to_numpy()


def by_loading(model, path, folder):
    save_model(folder / "a.model", model, method="auto")
    return by_blocks(load_model(folder / "a.model").model, path, folder)


DOORS = {"blocks": by_blocks, "command": by_command, "loaded": by_loading}


@pytest.mark.parametrize(
    ("end", "door"),
    [
        *product((".csv", ".xlsx"), DOORS),
        *product((".jsonl", ".parquet", ".feather"), ["blocks"]),
    ],
)
@pytest.mark.parametrize("levels", LEVELS)
def test_a_row_has_one_probability_in_any_batch(levels, end, door, tmp_path):
    """A batch without the last level looks like numbers or dates, but the model knows better."""
    rows = table(LEVELS[levels])
    model = fitted(rows)
    batch = rows[rows["code"] != LEVELS[levels][-1]]
    found = DOORS[door](model, written(batch, tmp_path / f"batch{end}"), tmp_path)
    assert_allclose(found, model.predict_proba(batch)[:, 1], atol=1e-6)


@pytest.mark.parametrize("end", [".csv", ".jsonl", ".xlsx"])
def test_some_files_of_a_folder_may_lack_a_level(end, tmp_path):
    rows = table(LEVELS["dates"])
    model = fitted(rows)
    folder = tmp_path / "batches"
    folder.mkdir()
    parts = rows[rows["code"] != "open"][:60], rows[60:100], rows[rows["code"] == "open"][:5]
    for number, part in enumerate(parts):
        written(part, folder / f"{number}{end}")
    found = by_blocks(model, folder, tmp_path)
    assert_allclose(found, model.predict_proba(pd.concat(parts))[:, 1], atol=1e-6)


def test_cells_of_a_sheet_are_text_where_the_model_has_text(tmp_path):
    """Numbers, dates and booleans are written as in a sheet that has text in the same column."""
    values = [1, 2.5, True, date(2026, 1, 1), datetime(2026, 1, 1, 10), "open"]
    rows = pd.DataFrame({"x": np.arange(N) % 7, "code": [values[i % 6] for i in range(N)]})
    known = written(rows[: N // 4], tmp_path / "known.xlsx")
    model = make_pipeline(TableEncoder(), PUClassifier(prior=0.9, ratio=LogisticRegression()))
    everything = written(rows, tmp_path / "all.xlsx")
    fit_blocks(model, known, everything)
    whole = by_blocks(model, everything, tmp_path)
    for kept in ([0], [1], [0, 1], [2], [3], [4], [3, 4]):
        places = np.flatnonzero(np.isin(np.arange(N) % 6, kept))
        batch = written(rows.iloc[places], tmp_path / "batch.xlsx")
        assert_allclose(by_blocks(model, batch, tmp_path), whole[places], atol=1e-12)


@pytest.mark.parametrize("convert", [pa.Table.from_pandas, lambda frame: frame])
def test_numbers_in_a_frame_are_the_levels_with_that_text(convert):
    rows = table(["1", "2", "X9"])
    model = fitted(rows)
    batch = rows[rows["code"] != "X9"]
    as_numbers = [batch.assign(code=batch["code"].astype(kind)) for kind in ("int64", float)]
    for other in as_numbers:
        assert_allclose(model.predict_proba(convert(other)), model.predict_proba(batch))


def test_a_number_without_the_zero_of_its_level_is_named_as_new():
    model = fitted(table(["01", "02", "X9"]))
    with pytest.warns(UserWarning, match=r"'code'.*'1'"):
        model.predict_proba(pd.DataFrame({"code": [1, 2], "x": [0.0, 1.0]}))


def test_impossible_dates_in_a_small_batch_are_missing(tmp_path):
    days = pd.date_range("2026-01-01", periods=N)
    rows = pd.DataFrame({"day": days, "x": np.arange(N) % 7})
    rows.loc[::10, "day"] = pd.NaT
    model = fitted(rows)
    (tmp_path / "b.csv").write_text("day;x\n31.02.2026;1\n02.01.2026;2\n")
    with pytest.warns(UserWarning, match=r"'day'.*b\.csv.*31\.02\.2026"):
        found = by_blocks(model, tmp_path / "b.csv", tmp_path)
    same = pd.DataFrame({"day": [pd.NaT, days[1]], "x": [1, 2]})
    assert_allclose(found, model.predict_proba(same)[:, 1])


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        ("day,x\n2026-01-01,1\nsoon,2\n", r"'soon'.*'day'.*b\.csv.*row 3\b.*date"),
        ("day,x\n2026-01-01,1\n2026-01-02,many\n", r"'many'.*'x'.*b\.csv.*row 3\b.*number"),
        ("day;x\n2026-01-01;2.817\n2026-01-02;3.104\n", r"'x'.*2\.817.*b\.csv"),
    ],
)
def test_values_that_do_not_fit_the_model_are_named(content, facts, tmp_path):
    model = fitted(
        pd.DataFrame({"day": pd.date_range("2026-01-01", periods=N), "x": np.arange(N) % 7})
    )
    (tmp_path / "b.csv").write_text(content)
    with pytest.raises(ValueError, match=facts):
        by_blocks(model, tmp_path / "b.csv", tmp_path)


@pytest.mark.parametrize("is_gappy", [True, False])
@pytest.mark.parametrize("end", [".csv", ".jsonl", ".xlsx"])
def test_a_column_without_values_is_named(end, is_gappy, tmp_path):
    rows = table(LEVELS["codes"])
    if is_gappy:
        rows.loc[::9, "x"] = np.nan
    model = fitted(rows)
    batch = rows[:30].assign(x=None)
    with pytest.warns(UserWarning, match=r"'x'.*no values") as caught:
        by_blocks(model, written(batch, tmp_path / f"b{end}"), tmp_path)
    assert len(caught) == 1
