"""Formatting of values in messages."""

import pytest

from classprior._core.messages import p_text, percent


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


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (1.0, "p = 1"),
        (0.9999, "p = 1"),
        (0.9994, "p = .999"),
        (0.4, "p = .4"),
        (0.0496, "p = .05"),
        (0.03, "p = .03"),
        (0.0124, "p = .012"),
        (0.001, "p = .001"),
        (0.00099, "p < .001"),
        (0.0, "p < .001"),
    ],
)
def test_p_values(p, text):
    assert p_text(p) == text
