"""Formatting of values in messages."""

import pytest

from classprior._core.messages import percent


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0.0%"),
        (1.0, "100.0%"),
        (0.1234, "12.3%"),
        (0.01, "1.0%"),
        (0.00456, "0.46%"),
        (0.0000456, "0.0046%"),
        (3e-40, "0.0%"),  # not forty zeros
    ],
)
def test_percent(share, text):
    assert percent(share) == text
