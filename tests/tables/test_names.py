"""Names of columns: suggestions for those that are not there, and names that are data."""

import pytest

from classprior._files.dialect import is_like_data
from classprior._tables.tables import check_columns


@pytest.mark.parametrize(
    ("wanted", "known", "suggested"),
    [
        ("review", ["id", "Review outcome"], "'Review outcome'?"),
        ("review_outcome", ["Review", "Review outcome"], "'Review outcome'?"),
        ("AMOUNT", ["amount", "amount_eur"], "'amount'?"),
        ("amuont", ["id", "Amount"], "'Amount'?"),
        ("the amount", ["amount", "id"], "'amount'?"),
        ("date", ["entry date", "dates", "id", "date of birth", "update"], "'date of birth'?"),
        ("x", ["extra", "y"], "It has 'extra', 'y'."),
    ],
)
def test_a_missing_column_suggests_similar_ones(wanted, known, suggested):
    with pytest.raises(ValueError, match=wanted) as error:
        check_columns([wanted], known, "the table")
    assert str(error.value).endswith(suggested)


@pytest.mark.parametrize(
    ("names", "are_data"),
    [
        (["3.1", "amount"], True),
        (["-4"], True),
        (["5", "120"], True),
        (["007"], True),
        (["2024", "2025", "2026"], False),
        (["2026", "2025"], False),
        (["0", "1", "2"], False),
        (["7"], False),
        (["amount", "x1"], False),
        ([], False),
    ],
)
def test_names_that_are_data(names, are_data):
    assert is_like_data(names) == are_data
