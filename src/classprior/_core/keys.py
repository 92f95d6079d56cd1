"""Hashes of keys, which decide what row numbers decide where rows have a key.

All functions are pure, so that each block, thread and machine computes the same hashes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from classprior._core.types import Doubles, Ids, Ints, Keys

_DIGITS = 19  # that any 64-bit number can have; longer numbers are hashed as text
_ZERO, _MINUS, _BLANK = ord("0"), ord("-"), ord(" ")
_BYTES_AT_ONCE = 2**24
Bytes = NDArray[np.uint8]


def mixed(bits: Keys) -> Keys:
    """Return the bits mixed by the finalizer of SplitMix64 (Steele, Lea and Flood, 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def chances(keys: Keys, seed: int, purpose: int, sample: int) -> Keys:
    """Return a random 64-bit number for each key of a sample, other ones for each purpose."""
    sequence = np.random.SeedSequence(seed, spawn_key=(purpose, sample))
    first, second = sequence.generate_state(2, np.uint64)
    return mixed(mixed(keys ^ first) + second)


def as_uniform(numbers: Keys) -> Doubles:
    """Return random 64-bit numbers as fractions from 0 on, below 1."""
    return (numbers >> np.uint64(11)).astype(np.float64) / 2.0**53


def hashed_numbers(numbers: NDArray[np.int64] | NDArray[np.uint64]) -> Keys:
    """Return a hash of each integer of up to 19 digits, that of the text with its digits."""
    return mixed(mixed(numbers.astype(np.uint64, copy=False) + np.uint64(1)))


def hashed_texts(data: Bytes, starts: Ints, lengths: Ints) -> Keys:
    """Return a hash of each text, given the bytes of all; blanks around a text do not count.

    A text of digits has the hash of its number, also with zeros behind a decimal point.
    """
    hashes = np.empty(len(starts), dtype=np.uint64)
    n_at_once = max(1, _BYTES_AT_ONCE // max(8, int(lengths.max(initial=1))))
    for first in range(0, len(starts), n_at_once):
        some = slice(first, first + n_at_once)
        hashes[some] = _hashed(data, starts[some], lengths[some])
    return hashes


def combined(columns: list[Keys]) -> Keys:
    """Return a hash of several columns of hashes, in which their order counts."""
    if len(columns) == 1:
        return columns[0]
    of_columns = mixed(np.arange(1, len(columns) + 1, dtype=np.uint64))
    return mixed(np.sum([mixed(c ^ s) for c, s in zip(columns, of_columns, strict=True)], axis=0))


def numbered_copies(keys: Keys, copies: Ints) -> Keys:
    """Return another hash for each copy of a row, given how many equal rows come before it."""
    return mixed(keys + mixed(copies.astype(np.uint64)))


def copies_before(keys: Ids) -> Ints:
    """Return how many equal keys come before each."""
    order = np.argsort(keys, kind="stable")
    _, first, counts = np.unique(keys[order], return_index=True, return_counts=True)
    numbers = np.empty(len(keys), dtype=np.int64)
    numbers[order] = np.arange(len(keys)) - np.repeat(first, counts)
    return numbers


def repeated(keys: Keys) -> tuple[int, int] | None:
    """Return the places of two equal keys, the first of them if several are; None if none are."""
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if not len(again):
        return None
    second = int(order[again + 1].min())
    return int(np.flatnonzero(keys == keys[second])[0]), second


def places_in(known: Ids, wanted: Ids) -> Ints:
    """Return the place of each wanted value among known, increasing ones; -1 if it is not there."""
    if not len(known):
        return np.full(len(wanted), -1)
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[places] == wanted, places, -1)


def _hashed(data: Bytes, starts: Ints, lengths: Ints) -> Keys:
    starts, lengths = _trimmed(data, starts, lengths)
    letters = _as_table(data, starts, lengths)
    hashes = _hashed_words(letters, lengths)
    is_number, numbers = _parsed(letters, lengths)
    hashes[is_number] = hashed_numbers(numbers[is_number])
    return hashes


def _trimmed(data: Bytes, starts: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Leave out blanks around texts."""
    for is_end in (False, True):
        rows = np.flatnonzero(lengths > 0)
        while len(rows):
            at = starts[rows] + (lengths[rows] - 1 if is_end else 0)
            rows = rows[data[at] == _BLANK]
            if len(rows):
                starts, lengths = starts.copy(), lengths.copy()
                starts[rows] += not is_end
                lengths[rows] -= 1
                rows = rows[lengths[rows] > 0]
    return starts, lengths


def _as_table(data: Bytes, starts: Ints, lengths: Ints) -> Bytes:
    """Return the bytes of texts, one text per row, with zeros behind it."""
    width = 8 * max(1, -(-int(lengths.max(initial=1)) // 8))
    letters = np.zeros((len(starts), width), dtype=np.uint8)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        at = starts[rows]
        if len(rows) and at[-1] - at[0] == length * (len(rows) - 1):  # one behind the other
            part = data[at[0] : at[0] + length * len(rows)].reshape(len(rows), length)
        else:
            part = data[at[:, None] + np.arange(length)]
        letters[rows, :length] = part
    return letters


def _hashed_words(letters: Bytes, lengths: Ints) -> Keys:
    """Return the sum of hashes of the words of 8 bytes, mixed with the length."""
    words = letters.view("<u8").astype(np.uint64, copy=False)
    of_places = mixed(np.arange(1, words.shape[1] + 1, dtype=np.uint64))
    values = np.where(words == 0, np.uint64(0), mixed(words ^ of_places))
    return mixed(values.sum(axis=1, dtype=np.uint64) ^ mixed(~lengths.astype(np.uint64)))


def _parsed(letters: Bytes, lengths: Ints) -> tuple[NDArray[np.bool_], Keys]:
    """Return which texts are integers as they are usually written, and the integers."""
    is_number = np.zeros(len(lengths), dtype=bool)
    numbers = np.zeros(len(lengths), dtype=np.uint64)
    signs = (letters[:, 0] == _MINUS).astype(np.int64)
    n_digits = lengths - signs - _n_decimal_zeros(letters, lengths)
    for shape in np.unique(signs + 2 * n_digits):
        n, sign = divmod(int(shape), 2)
        if not 1 <= n <= _DIGITS - sign:
            continue
        rows = np.flatnonzero((n_digits == n) & (signs == sign))
        digits = letters[rows, sign : sign + n] - np.uint8(_ZERO)
        is_usual = (digits <= 9).all(axis=1) & ((digits[:, 0] > 0) | (n == 1))
        rows, digits = rows[is_usual], digits[is_usual]
        values = digits.astype(np.uint64) @ np.uint64(10) ** np.arange(n, dtype=np.uint64)[::-1]
        is_number[rows], numbers[rows] = True, np.uint64(0) - values if sign else values
    return is_number, numbers


def _n_decimal_zeros(letters: Bytes, lengths: Ints) -> Ints:
    """Return the length of a decimal point with only zeros behind it, at the end of each text."""
    found = np.zeros(len(lengths), dtype=np.int64)
    rows = np.flatnonzero((letters == ord(".")).any(axis=1))
    if len(rows):
        some, of_text = letters[rows], lengths[rows]
        point = np.argmax(some == ord("."), axis=1)
        places = np.arange(letters.shape[1])
        is_behind = (places > point[:, None]) & (places < of_text[:, None])
        are_zeros = ((some == _ZERO) | ~is_behind).all(axis=1) & (of_text > point + 1)
        found[rows] = np.where(are_zeros, of_text - point, 0)
    return found
