"""Columns that name or number the rows of a table instead of describing them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classprior._tables.columns import CATEGORY, NUMBER

_FEWEST_ROWS = 20  # with fewer rows, all values may differ by chance
_FEWEST_CONSECUTIVE = 15  # for each repeated value, and 15 more
_FEWEST_RISES = 0.98  # of all steps from one row to the next
_FROM_ZERO = 10  # row numbers start within as many average steps of 0
_STORED_INDEX = re.compile(r"__index_level_\d+__")  # as pandas stores it
_UNNAMED = re.compile(r"(Unnamed: \d+(\.\d+)*|column_\d+|level_\d+|\s*)")
_FIRST_UNNAMED = re.compile(r"(Unnamed: 0(\.\d+)*|column_1|level_0|\s*)")
_WORDS_OF_IDENTIFIERS = {
    *("id", "uuid", "guid", "key", "rowid", "row", "rownum", "seq", "serial"),
    *("#", "№", "nr", "no", "num", "number"),
}
_WORDS_OF_TIMES_AND_PLACES = {
    *("time", "timestamp", "datetime", "date", "day", "week", "month", "year", "epoch", "unix"),
    *("ts", "at", "utc", "zip", "zipcode", "postcode", "postal", "plz"),
}


def why_identifier(
    samples: Sequence[NDArray[Any]], kind: str, name: str, names: Iterable[str] = ()
) -> str | None:
    r"""Return why a column names or numbers the rows instead of describing them, or None.

    The column is given for each sample, because numbers may start again in each file. ``names``
    are all columns of the table. With 20 rows or more, these columns are identifiers:

    - text that does not repeat within a sample;
    - whole numbers under a name such as ``customer_id``, ``No.`` or ``row``, if nine in ten are
      distinct within a sample, or if they rise with almost every row;
    - whole numbers in an unnamed first column beside columns with names, as pandas and R write
      row labels, if half of them are distinct, or if they rise with almost every row;
    - whole numbers from 0 on, under any other name, that are often consecutive but hardly ever
      equal. If values are independent, and value :math:`i` has probability :math:`p_i`, two rows
      are equal with probability :math:`\sum p_i^2`, and consecutive with probability
      :math:`2 \sum p_i p_{i+1} \le 2 \sum p_i^2`. Row numbers are never equal, whether they are
      sorted, shuffled, or a random sample of the rows of a longer table. A column numbers the rows
      if the next integer follows for at least :math:`15 (1 + r)` of its values, where :math:`r`
      values repeat earlier ones. For independent values, the probability of this is below 0.001,
      whatever their distribution. Samples without a common value are counted as one.

    So amounts, ages, postcodes and times of events are kept, sorted or not: they repeat as soon as
    they are dense enough to be consecutive. Readings at regular times are kept, because they are
    more than 1 apart. Under the name of a time or a postcode, numbers are also kept if they do not
    start near 0, such as the seconds since 1970 in a table of one row per second.
    """
    if _STORED_INDEX.fullmatch(name):
        return "the row labels of a pandas data frame"
    if kind == CATEGORY and _are_distinct_texts(samples):
        return "all values are distinct"
    if kind != NUMBER:
        return None
    samples = [known for column in samples if len(known := column[~np.isnan(column)])]
    if sum(map(len, samples)) < _FEWEST_ROWS or any(np.any(s != np.floor(s)) for s in samples):
        return None
    if _FIRST_UNNAMED.fullmatch(name) and not all(map(_UNNAMED.fullmatch, names)):
        why, fewest_distinct = "row numbers in a column without a name", 0.5
    elif _names_identifier(name):
        why, fewest_distinct = "name and numbers of an identifier", 0.9
    else:
        is_numbering = _number_rows(samples, may_be_times=_names_time(name))
        return "row numbers: many are consecutive, hardly any repeats" if is_numbering else None
    return why if _rise(samples) or _share_distinct(samples) >= fewest_distinct else None


def _number_rows(samples: Sequence[NDArray[Any]], *, may_be_times: bool) -> bool:
    """Return whether whole numbers are often consecutive, but hardly ever equal."""
    n_rows = sum(map(len, samples))
    n_possible = sum(min(len(s), int(s.max()) - int(s.min()) + 1) for s in samples)
    if n_possible < n_rows / 2:  # most values repeat: do not sort them
        return False
    uniques = [np.unique(s) for s in samples]
    n_distinct = sum(map(len, uniques))
    together = np.unique(np.concatenate(uniques))
    if len(together) == n_distinct:
        uniques = [together]
    if together[0] < 0 or (may_be_times and not any(map(_starts_near_zero, uniques))):
        return False
    n_consecutive = sum(np.count_nonzero(np.diff(values) == 1) for values in uniques)
    return bool(n_consecutive >= _FEWEST_CONSECUTIVE * (1 + n_rows - n_distinct))


def _are_distinct_texts(samples: Sequence[NDArray[Any]]) -> bool:
    """Return whether no text repeats in both samples together, or within each of them."""
    n_rows, levels = list(map(len, samples)), [set(s) for s in samples]
    if len(set().union(*levels)) == sum(n_rows) >= _FEWEST_ROWS:
        return True
    return max(n_rows) >= _FEWEST_ROWS and list(map(len, levels)) == n_rows


def _share_distinct(samples: Sequence[NDArray[Any]]) -> float:
    """Return the share of distinct values within the samples."""
    return sum(len(np.unique(s)) for s in samples) / sum(map(len, samples))


def _rise(samples: Sequence[NDArray[Any]]) -> bool:
    """Return whether values rise with almost every row; they may start again in each file."""
    n_rises = sum(np.count_nonzero(s[1:] > s[:-1]) for s in samples)
    return bool(n_rises >= _FEWEST_RISES * sum(len(s) - 1 for s in samples))


def _starts_near_zero(values: NDArray[Any]) -> bool:
    """Return whether sorted values may be a random sample of 0, 1, 2 and so on."""
    first, last = int(values[0]), int(values[-1])
    return first <= _FROM_ZERO * (last - first) / len(values)


def _names_identifier(name: str) -> bool:
    words = _words(name)
    if not words or _names_time(name):
        return False
    is_index = words[-1] in ("index", "idx") and words[:-1] in ([], ["row"], ["original"])
    return words[0] == "id" or words[-1] in _WORDS_OF_IDENTIFIERS or is_index


def _names_time(name: str) -> bool:
    """Return whether a name is that of a time or a postcode."""
    return not _WORDS_OF_TIMES_AND_PLACES.isdisjoint(_words(name))


def _words(name: str) -> list[str]:
    """Return the words of a name such as customerID, customer_id or "Customer No."."""
    parted = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return [word for word in re.split(r"[^\w#№]|_", parted.lower()) if word]
