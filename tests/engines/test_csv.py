"""CSV files as people write them are the same rows in blocks as in memory."""

import numpy as np
import pyarrow as pa
import pytest

from classprior._csv_files import arrow_format_of, read_csv
from classprior.engines._files import open_dataset
from classprior.engines._sources import as_blocks


def opened(path):
    return open_dataset([str(path)], "csv", "X", arrow_format_of(path, "X", None, True))


def in_blocks(path, columns=None):
    blocks = as_blocks(opened(path), "X", columns=columns)
    return pa.concat_tables([table for block in blocks for table in block.tables()])


def test_local_dates_and_lines_in_quotation_marks(tmp_path):
    """Longer than a megabyte, which pyarrow reads at a time unless told otherwise."""
    rng = np.random.default_rng(0)
    lines = [
        f'{number / 7:.3f};{day}.0{1 + day % 9}.2024;"two\nlines {"z" * 100}; {number}"'
        for number, day in enumerate(rng.integers(1, 28, 15_000))
    ]
    path = tmp_path / "rows.csv"
    path.write_text("x;day;note\n" + "\n".join(lines))
    expected, _, _ = read_csv(path, "X", None, True, False)
    found = in_blocks(path)
    assert found.num_rows == 15_000
    assert pa.types.is_temporal(found["day"].type)
    assert found["day"].cast(pa.timestamp("s")).equals(expected["day"].cast(pa.timestamp("s")))
    assert found.drop(["day"]).equals(expected.drop(["day"]))


@pytest.mark.parametrize(
    ("amount", "delimiter"), [("1,234.50", ";"), ("1.234,50", ";"), ('"1,234.50"', ",")]
)
def test_grouped_thousands_are_never_categories(tmp_path, amount, delimiter):
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["x d amount"] + [f"1 a {amount}"] * 9).replace(" ", delimiter))
    message = (
        r"rows\.csv .* invalid value '1.234.50'\. Write numbers like 1234\.5 .* leave that col"
    )
    with pytest.raises(ValueError, match=message):
        in_blocks(path)
    assert in_blocks(path, ["x", "d"])["d"].to_pylist() == ["a"] * 9
