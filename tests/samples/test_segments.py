"""Segments: their names and periods, and the estimate for each."""

import copy
import json
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, estimate_prior
from classprior._samples.segments import (
    Coded,
    in_periods,
    matched_segments,
    period_numbers,
    segments_of,
)
from classprior._scores.same_share import (
    Dispersion,
    SegmentTail,
    dispersion,
    equality_p_value,
    purest_tail,
)
from classprior._scores.shrinkage import adding_up, shrunk
from classprior._scores.tails import count_scores, tail_thresholds
from classprior._tables.columns import MISSING
from classprior.result import SegmentEstimate, SegmentEstimates, label_of

LINEAR = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1, n_resamples=60)
quick = partial(estimate_prior, evidence=LINEAR, random_state=0)
SHARES = {"north": 0.1, "south": 0.4, "west": 0.7}


def draw(seed=0, n=300, m=1500, shares=SHARES):
    """Return positives, unlabeled rows, their segments and which of them are positive."""
    rng = np.random.default_rng(seed)
    names = np.array([*shares])
    segments = rng.choice(names, m, p=0.5 ** np.r_[1 : len(names), len(names) - 1])
    hidden = rng.random(m) < np.array([shares[name] for name in segments])
    unlabeled = rng.normal(np.where(hidden, 0.0, 4.0)[:, None], 1.0, (m, 2))
    return rng.normal(size=(n, 2)), unlabeled, segments, hidden


@pytest.fixture(scope="module")
def estimate():
    positive, unlabeled, segments, _ = draw()
    return quick(positive, unlabeled, segments=(None, segments))


# --- names and periods -----------------------------------------------------------------------


DAYS = ["2024-02-29", "2024-03-03", "2024-03-04", "2023-12-31"]
PERIODS = {
    "day": DAYS,
    "week": ["2024-02-26", "2024-02-26", "2024-03-04", "2023-12-25"],  # Mondays
    "month": ["2024-02", "2024-03", "2024-03", "2023-12"],
    "quarter": ["2024-Q1", "2024-Q1", "2024-Q1", "2023-Q4"],
    "year": ["2024", "2024", "2024", "2023"],
}


@pytest.mark.parametrize("every", PERIODS)
@pytest.mark.parametrize(
    "dates",
    [
        np.array([*DAYS, "NaT"]),
        np.array([*DAYS, ""]),
        np.array([*DAYS, None], dtype=object),
        np.array([*(f"{day} 23:59:59" for day in DAYS), None], dtype=object),
        np.array([*(f"{day}T00:10:00+02:00" for day in DAYS), "nan"]),
        np.array([*DAYS, "NaT"], dtype="datetime64[D]"),
        np.array([*(f"{day}T23:59" for day in DAYS), "NaT"], dtype="datetime64[ns]"),
        np.array([*map(pd.Timestamp, DAYS), pd.NaT], dtype=object),
        np.array([*(pd.Timestamp(day).date() for day in DAYS), None], dtype=object),
        pd.Series(pd.to_datetime([*DAYS, None])).dt.tz_localize("Asia/Tokyo").to_numpy(),
    ],
    ids=["iso", "empty", "none", "times", "zones", "days", "ns", "stamps", "dates", "tokyo"],
)
def test_periods(dates, every):
    assert in_periods(dates, every).tolist() == [*PERIODS[every], MISSING]


def test_weeks_begin_on_monday_also_before_1970():
    days = np.arange("1969-12-01", "1970-03-01", dtype="datetime64[D]")
    weeks = in_periods(days, "week").astype("datetime64[D]")
    assert {day.item().weekday() for day in weeks} == {0}
    assert ((days - weeks).astype(int) == [day.item().weekday() for day in days]).all()


@pytest.mark.parametrize(
    ("values", "fact"),
    [
        (np.array(["2024-01-01", "CA"]), "'CA'"),
        (np.array([20240101, 20240201]), "'20240101'"),
        (np.array(["20240101"]), "'20240101'"),
        (np.array(["31.12.2026"]), "31.12.2026"),
    ],
)
def test_what_is_not_a_date(values, fact):
    with pytest.raises(ValueError, match="2024-03-31") as caught:
        in_periods(values, "month")
    assert fact in str(caught.value)


def test_unknown_period():
    with pytest.raises(ValueError, match="'decade'"):
        in_periods(np.array(["2024-01-01"]), "decade")
    assert in_periods(np.array(["x"]), None) == ["x"]


@pytest.mark.parametrize("every", PERIODS)
def test_places_of_periods_keep_gaps(every):
    days = np.arange("2022-12-20", "2024-02-10", dtype="datetime64[D]")
    names = [*dict.fromkeys(in_periods(days, every).tolist())]
    assert_array_equal(period_numbers(names, every), np.arange(len(names)))
    some = [names[0], names[-1], MISSING]
    assert_array_equal(period_numbers(some, every), [0, len(names) - 1, len(names) + 1])
    assert_array_equal(period_numbers([MISSING], every), [2])


def test_values_keep_their_type_or_become_text():
    assert Coded.of(np.array([3, 1, 3])).names == [1, 3]
    assert Coded.of(np.array([True, False])).names == [False, True]
    assert Coded.of(np.array(["b", "a"])).names == ["a", "b"]
    floats = Coded.of(np.array([1.0, 0.5, np.nan]))
    assert sorted(floats.names) == sorted(["1", "0.5", MISSING])
    short = Coded.of(np.array(["ab", None], dtype=object))  # nothing is cut to three letters
    assert set(short.names) == {"ab", MISSING}
    assert Coded.of(np.array([], dtype=float)).codes.shape == (0,)


def test_days_are_named_alike_however_they_are_stored():
    days = np.array([*DAYS, "NaT"], dtype="datetime64[ns]")
    expected = [*DAYS, MISSING]
    objects = np.array([*map(pd.Timestamp, DAYS), None], dtype=object)
    texts = np.array([*DAYS, None], dtype=object)
    for values in (days, objects, texts):
        coded = Coded.of(values)
        assert [coded.names[code] for code in coded.codes] == expected
    assert Coded.of(np.array(["2024-02-29T10:30"], dtype="datetime64[s]")).names == [
        "2024-02-29T10:30:00"
    ]


def test_blocks_of_different_types_are_one_column():
    """A block of integers with a gap is a block of floats."""
    parts = [Coded.of(np.array([2, 10])), Coded.of(np.array([])), Coded.of(np.array([2.0, np.nan]))]
    joined = Coded.joined(parts)
    assert [joined.names[code] for code in joined.codes] == ["2", "10", "2", MISSING]
    assert joined.names[-1] == MISSING
    assert Coded.joined([]).names == []


def test_several_columns_are_crossed():
    columns = [np.array(["a", "b", "a", "a"]), np.array([1, 1, 2, 1])]
    crossed = Coded.crossed([Coded.of(column) for column in columns])
    assert [crossed.names[code] for code in crossed.codes] == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
        ("a", 1),
    ]


def test_segments_are_numbered_alike_in_both_samples():
    found = segments_of(([1.0, np.nan, 7.0], [3, 1]), (3, 2))
    assert [found.names[code] for code in found.positive] == ["1", MISSING, "7"]
    assert [found.names[code] for code in found.unlabeled] == ["3", "1"]
    of_rows = found.take((np.array([2]), np.array([1])))
    assert [found.names[code] for code in (*of_rows.positive, *of_rows.unlabeled)] == ["7", "1"]


def test_labels_are_short_and_can_be_printed():
    assert label_of(("a", 1)) == "a, 1"
    assert len(label_of("W" * 50)) == 20
    assert len(label_of("日" * 50)) < 12
    assert label_of("\0\x1b[31m").isprintable()


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "facts"),
    [
        ({"segments": (None, np.arange(1500))}, ValueError, ["1,500", "200"]),
        ({"segments": (None, np.zeros(7))}, ValueError, ["1500 unlabeled rows", "7"]),
        ({"segments": (np.zeros(5), np.zeros(1500))}, ValueError, ["300 known positives", "5"]),
        ({"segments": (np.zeros(300), None)}, ValueError, ["unlabeled"]),
        ({"segments": (np.zeros((300, 2)), np.zeros(1500))}, ValueError, ["1", "2"]),
        ({"segments": (None, np.zeros((2, 2, 2)))}, ValueError, ["(2, 2, 2)"]),
        ({"segments": np.zeros(1500)}, TypeError, ["column name", "pair"]),
        ({"segments": "region"}, ValueError, ["'region'"]),
        ({"segments": (None, np.zeros(1500)), "method": "penl1"}, ValueError, ["'penl1'"]),
        ({"segment_positives": "mine"}, ValueError, ["'mine'"]),
        (
            {"segments": (None, np.zeros(1500)), "segment_positives": "own"},
            ValueError,
            ["'0'", "no known positives"],
        ),
    ],
)
def test_what_cannot_be_segments(options, error, facts):
    positive, unlabeled, *_ = draw()
    with pytest.raises(error) as caught:
        quick(positive, unlabeled, **options)
    assert all(fact in str(caught.value) for fact in facts)


def test_a_copy_is_equal(estimate):
    """Of an estimate and of its segments, however copied; the fitted estimators do not count."""
    for again in (
        pickle.loads(pickle.dumps(estimate)),
        copy.deepcopy(estimate),
        copy.copy(estimate),
    ):
        assert again == estimate
        assert hash(again) == hash(estimate)
        assert again.segments == estimate.segments
    assert replace(estimate, estimator=None, evidence=None) == estimate
    changed = copy.deepcopy(estimate)
    changed.segments.p_value /= 2.0
    others = [
        replace(estimate, prior=estimate.prior / 2.0),
        replace(estimate, warnings=("Few rows.",)),
        replace(estimate, segments=None),
        changed,
    ]
    for other in others:
        assert other != estimate
    assert changed.segments != estimate.segments
    assert estimate.segments == dict(estimate.segments)  # still a dict
    assert estimate != estimate.to_dict()


def test_positives_of_weight_zero_are_not_own_positives():
    positive, unlabeled, segments, _ = draw()
    of_positives = np.where(np.arange(300) < 20, "north", "south")
    options = {
        "segments": (of_positives, np.where(segments == "north", "north", "south")),
        "segment_positives": "own",
    }
    assert quick(positive, unlabeled, **options).segments["north"].n_positive == 20
    weights = (of_positives == "south").astype(float), np.ones(1500)
    with pytest.raises(ValueError, match="'north'"):
        quick(positive, unlabeled, weights=weights, **options)


# --- the same by every door ------------------------------------------------------------------


NUMBERS = ("prior", "raw", "low", "high", "upper_bound", "count", "n_positive", "n_unlabeled")


def assert_same(found, expected, names=str):
    assert [names(name) for name in found] == [names(name) for name in expected]
    for one, other in zip(found.values(), expected.values(), strict=True):
        for number in NUMBERS:
            assert getattr(one, number) == pytest.approx(getattr(other, number), abs=1e-9)
    assert found.p_value == pytest.approx(expected.p_value, rel=1e-6, abs=1e-12)


@pytest.fixture(scope="module")
def frames():
    """Return both samples with a region and a day, each missing in some rows."""
    positive, unlabeled, segments, _ = draw(m=900)
    rng = np.random.default_rng(1)
    both = [pd.DataFrame(X, columns=["x", "y"]) for X in (positive, unlabeled)]
    days = np.arange("2024-01-01", "2024-07-01", dtype="datetime64[D]").astype(str)
    for frame, regions in zip(both, (rng.choice([*SHARES], 300), segments), strict=True):
        frame["region"] = regions
        frame["day"] = rng.choice(days, len(frame))
        frame.loc[rng.random(len(frame)) < 0.02, ["region", "day"]] = None
        frame["number"] = rng.choice([2.0, 10.0], len(frame))
        frame.loc[len(frame) - 1, "number"] = np.nan  # only the last block has a gap
    return both


FEATURES = ["x", "y"]
BY = {
    "region": {},
    "day": {"every": "quarter"},
    "number": {},
}


@pytest.mark.parametrize("by", [["region"], ["day"], ["number"], ["region", "number"]])
def test_frames_files_arrays_and_blocks_agree(frames, by, tmp_path):
    options = BY[by[0]]
    arrays = [frame[FEATURES].to_numpy() for frame in frames]
    expected = quick(*arrays, segments=[frame[by].to_numpy() for frame in frames], **options)
    assert expected.segments.columns == ()
    drop = [name for name in ("region", "day", "number") if name not in by]
    for number, frame in enumerate(frames):
        frame.to_csv(tmp_path / f"{number}.csv", index=False)
        table = pa.Table.from_pandas(frame, preserve_index=False)
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=97)
    doors = [
        frames,
        [str(tmp_path / f"{number}.csv") for number in (0, 1)],
        [ds.dataset(tmp_path / f"{number}.parquet") for number in (0, 1)],
        [[frame[:77], frame[77:]] for frame in frames],
    ]
    for door in doors:
        found = quick(*door, segments=by, drop=drop, **options)
        assert_same(found.segments, expected.segments, label_of)
        assert found.prior == pytest.approx(expected.prior, abs=1e-12)
        assert found.segments.columns == tuple(by)
        assert [column.name for column in found.columns] == FEATURES
    assert MISSING in str(list(found.segments)[-1])


def test_segments_of_the_positives_may_be_unknown(frames):
    known = quick(*frames, segments="region", drop=["day", "number"])
    positive, unlabeled = frames
    unknown = quick(positive[FEATURES], unlabeled[[*FEATURES, "region"]], segments="region")
    assert {part.n_positive for part in unknown.segments.values()} == {None}
    assert sum(part.n_positive for part in known.segments.values()) == 300
    assert sum(part.n_unlabeled for part in known.segments.values()) == 900
    for name, part in known.segments.items():
        assert unknown.segments[name].raw == pytest.approx(part.raw, abs=1e-12)
    arrays = quick(positive[FEATURES], unlabeled[FEATURES], segments=(None, unlabeled["region"]))
    assert_same(arrays.segments, unknown.segments)


# --- what is estimated -----------------------------------------------------------------------


def test_shares_of_segments(estimate):
    *_, segments, hidden = draw()
    for name, part in estimate.segments.items():
        truth = hidden[segments == name].mean()
        assert part.prior == pytest.approx(truth, abs=0.08)
        assert part.low <= SHARES[name] <= part.high
        assert SHARES[name] <= part.upper_bound
        assert part.low_count <= hidden[segments == name].sum() <= part.high_count
        assert part.low <= part.prior <= part.high
    assert estimate.segments.p_value < 1e-6


def test_one_segment_is_the_whole():
    """All rows in one segment; only merged thresholds may differ."""
    positive, unlabeled, *_ = draw(n=55)  # fewer positives than thresholds of a segment
    whole = quick(positive, unlabeled, segments=(None, np.zeros(1500, dtype=int)))
    part = whole.segments[0]
    assert part.raw == pytest.approx(whole.prior, rel=0.01)
    assert part.prior == pytest.approx(whole.prior, rel=1e-12)
    assert (part.low, part.high) == pytest.approx((whole.low, whole.high), rel=1e-12)
    assert part.upper_bound == pytest.approx(whole.upper_bound, rel=1e-12)
    assert (part.low_count, part.high_count) == (whole.low_count, whole.high_count)
    assert whole.segments.p_value == 1.0


def test_a_segment_of_one_row_says_nothing():
    positive, unlabeled, segments, _ = draw()
    segments = segments.astype("U9")
    segments[0] = "alone"
    alone = quick(positive, unlabeled, segments=(None, segments)).segments["alone"]
    assert (alone.low, alone.high, alone.upper_bound) == (0.0, 1.0, 1.0)
    assert (alone.low_count, alone.high_count) == (0.0, 1.0)
    assert 0.0 <= alone.prior <= 1.0


def test_rows_of_weight_zero_and_their_segments_are_left_out():
    positive, unlabeled, segments, _ = draw()
    weights = np.where(segments == "west", 0.0, 1.0)
    told = (None, segments)
    found = quick(positive, unlabeled, segments=told, weights=(np.ones(300), weights))
    assert list(found.segments) == ["north", "south"]
    keep = weights > 0.0
    without = quick(positive, unlabeled[keep], segments=(None, segments[keep]))
    assert found.segments.p_value == without.segments.p_value
    assert dict(found.segments) == dict(without.segments)


def test_own_positives_where_positives_differ_between_segments():
    """Positives of one segment look like the negatives of the other."""
    rng = np.random.default_rng(0)
    centers = {"a": (0.0, 5.0), "b": (5.0, 10.0)}  # of positives and negatives
    share = {"a": 0.2, "b": 0.6}
    P, U, of_p, of_u = [], [], [], []
    for name, (yes, no) in centers.items():
        n_yes = round(600 * share[name])
        P.append(rng.normal(yes, 1.0, (150, 1)))
        U += [rng.normal(yes, 1.0, (n_yes, 1)), rng.normal(no, 1.0, (600 - n_yes, 1))]
        of_p += [name] * 150
        of_u += [name] * 600
    rows = np.vstack(P), np.vstack(U)
    given = np.array(of_p), np.array(of_u)
    trees = AutoPrior(n_repeats=1, n_resamples=60)  # a line cannot tell the classes apart
    # The score sees the segment, as positives must be told from negatives within it.
    X = [np.column_stack([x, g == "b"]) for x, g in zip(rows, given, strict=True)]
    ask = partial(estimate_prior, *X, segments=given, evidence=trees, random_state=0)
    own, together = ask(segment_positives="own").segments, ask().segments
    for name in share:
        assert own[name].raw == pytest.approx(share[name], abs=0.06)
        assert own[name].low <= share[name] <= own[name].high
        assert share[name] <= own[name].upper_bound
    assert max(abs(together[name].raw - share[name]) for name in share) > 0.1
    assert own.own_positives
    assert not together.own_positives


# --- shrinkage -------------------------------------------------------------------------------


def test_shrinkage_by_hand():
    """Two segments of equal variance, and three of which two are alike."""
    v = 0.01
    # (0.15^2 + 0.15^2) / (tau^2 + v) = 1; tau^2 = 0.035
    expected = 0.35 + 0.035 / 0.045 * np.array([-0.15, 0.15])
    assert_allclose(shrunk(np.array([0.2, 0.5]), np.full(2, v)), expected, rtol=1e-9)
    # Variances 0.01, 0.01 and 0.04, shares 0.2, 0.2 and 0.8, mean w 0.8 + (1 - w) 0.2.
    shares, v = np.array([0.2, 0.2, 0.8]), np.array([0.01, 0.01, 0.04])

    def excess(tau):
        w = 1.0 / (tau + v)
        center = np.sum(w * shares) / np.sum(w)
        return np.sum(w * (shares - center) ** 2) - 2.0

    grid = np.linspace(0.0, 0.5, 5_001)
    tau = grid[np.argmin(np.abs([excess(t) for t in grid]))]
    w = 1.0 / (tau + v)
    center = np.sum(w * shares) / np.sum(w)
    expected = center + tau / (tau + v) * (shares - center)
    assert_allclose(shrunk(shares, v), expected, atol=1e-3)


def test_limits_of_shrinkage():
    shares = np.array([0.1, 0.3, 0.8])
    assert_allclose(shrunk(shares, np.full(3, 1e-9)), shares, atol=1e-4)  # no noise
    assert_allclose(shrunk(shares, np.full(3, 10.0)), 0.4)  # only noise
    assert_allclose(shrunk(np.full(3, 0.3), np.full(3, 0.01)), 0.3)
    assert_allclose(shrunk(np.array([0.4]), np.array([0.01])), 0.4)
    odd = np.array([*np.full(20, 0.1), 0.6])  # one small segment that differs from all others
    assert shrunk(odd, np.array([*np.full(20, 1e-4), 0.04]))[-1] == pytest.approx(0.4)


def test_counts_add_up():
    rng = np.random.default_rng(0)
    shares, sizes = rng.random(7), rng.random(7)
    found = adding_up(shares, sizes, 0.3)
    assert sizes @ found / sizes.sum() == pytest.approx(0.3, rel=1e-12)
    factors = found / (1.0 - found) * (1.0 - shares) / shares  # of the odds
    assert_allclose(factors, factors[0])
    for whole in (0.0, 1.0):
        assert_allclose(adding_up(shares, sizes, whole), whole)
    assert_allclose(adding_up(np.zeros(3), np.ones(3), 0.02), 0.02)
    assert_allclose(
        adding_up(np.array([0.0, 1.0]), np.array([3.0, 1.0]), 0.25), [0.0, 1.0], atol=1e-8
    )


def test_small_segments():
    """A small segment that differs stands out, and two rows are not worth more than they say."""
    truth, sizes = np.array([0.6, *np.full(8, 0.1)]), np.array([30, *np.full(8, 500)])
    priors = []
    for seed in range(5):
        estimate = of_scores(seed, sizes, truth)
        parts = estimate.segments.values()
        assert sum(part.count for part in parts) == pytest.approx(estimate.count, rel=1e-9)
        priors.append([(part.raw, part.prior) for part in parts])
    bias = np.mean(priors, axis=0) - truth[:, None]
    assert np.all(np.abs(bias[0]) < 0.2)  # 0.05 and 0.1; the old method: 0.35
    assert np.all(np.abs(bias[1:]) < 0.03)
    tiny = of_scores(0, np.full(150, 2), np.full(150, 0.33))
    for kind in ("raw", "prior"):
        shares = [getattr(part, kind) for part in tiny.segments.values()]
        assert np.mean(shares) == pytest.approx(tiny.prior, rel=0.25)


# --- differences -----------------------------------------------------------------------------


def of_scores(seed, sizes, shares, distances=4.0, n=300, **options):
    """Return the estimate from normal scores; negatives are so far below the positives."""
    rng = np.random.default_rng(seed)
    segments = np.repeat(np.arange(len(sizes)), sizes)
    hidden = rng.random(len(segments)) < np.asarray(shares)[segments]
    distances = np.broadcast_to(distances, len(sizes))[segments]
    scores = rng.normal(np.where(hidden, 0.0, -distances))
    known = rng.integers(len(sizes), size=n)
    return estimate_prior(
        rng.normal(size=n),
        scores,
        segments=(known, segments),
        random_state=seed,
        n_resamples=40,
        **options,
    )


def p_value_of_scores(seed, sizes, shares, distances=4.0, n=300):
    """Return the p-value alone, which is much faster."""
    rng = np.random.default_rng(seed)
    segments = np.repeat(np.arange(len(sizes)), sizes)
    hidden = rng.random(len(segments)) < shares[segments]
    distances = np.broadcast_to(distances, len(sizes))[segments]
    positive, scores = rng.normal(size=n), rng.normal(np.where(hidden, 0.0, -distances))
    thresholds = tail_thresholds(positive)
    known = count_scores(thresholds, positive, np.zeros(n, dtype=int), 1)
    counts = count_scores(thresholds, scores, segments, len(sizes))
    pairs = [(known, part[None]) for part in counts]
    tail, spread = purest_tail([[pairs]], own_positives=False, rows_are_alike=True)
    return equality_p_value(tail, rng, spread=spread)


def tail_of(U, m, P=None, n=None):
    """Return a tail of segments; by default with half of very many positives."""
    U, m = np.asarray(U, dtype=float), np.asarray(m, dtype=float)
    P, n = (np.full(len(U), 5e8), np.full(len(U), 1e9)) if P is None else (P, n)
    return SegmentTail(U, m, np.asarray(P, dtype=float), np.asarray(n, dtype=float))


def test_p_value_is_that_of_a_contingency_table():
    rng = np.random.default_rng(0)
    U, m = np.array([40, 70, 90]), np.array([400, 800, 700])
    expected = stats.chi2_contingency([U, m - U], correction=False).pvalue
    assert equality_p_value(tail_of(U, m), rng) == pytest.approx(expected, rel=1e-6)
    # With small counts the distribution is simulated, in the oracle with fixed margins.
    U, m = np.array([1, 0, 4, 4]), np.array([3, 4, 300, 400])

    def statistic(U):
        expected = U.sum(axis=-1, keepdims=True) * m / m.sum()
        return np.sum((U - expected) ** 2 / expected, axis=-1)

    drawn = rng.multivariate_hypergeometric(m, U.sum(), 20_000, method="marginals")
    expected = np.mean(statistic(drawn) >= statistic(U))
    assert equality_p_value(tail_of(U, m), rng) == pytest.approx(expected, abs=0.02)
    assert equality_p_value(tail_of(0 * U, m), rng) == 1.0


def test_noise_of_own_positives_counts():
    """With many positives in each segment it vanishes; in a z-test by hand it does not."""
    rng = np.random.default_rng(0)
    U, m = np.array([300, 420]), np.array([2000, 2000])
    P, n = np.array([100, 120]), np.array([200, 200])
    many = equality_p_value(tail_of(U, m, 10**7 * P, 10**7 * n), rng, own_positives=True)
    S = P / n
    prior = np.sum(U / S) / m.sum()  # about the best weights
    V = m * prior * S * (1.0 - prior * S)
    z = (U[1] / S[1] - U[0] / S[0]) / m[0] / np.sqrt(np.sum(V / (m * S) ** 2))
    assert many == pytest.approx(2.0 * stats.norm.sf(abs(z)), rel=0.05)
    V = V + (prior * m) ** 2 * S * (1.0 - S) / n
    z = (U[1] / S[1] - U[0] / S[0]) / m[0] / np.sqrt(np.sum(V / (m * S) ** 2))
    few = equality_p_value(tail_of(U, m, P, n), rng, own_positives=True)
    assert few == pytest.approx(2.0 * stats.norm.sf(abs(z)), rel=0.05)
    simulated = equality_p_value(tail_of(U / 100, m / 100, P, n), rng, own_positives=True)
    assert simulated > 0.5


def test_dispersion_of_groups_and_weights():
    rng = np.random.default_rng(0)
    m = rng.integers(5, 30, (6, 100)).astype(float)
    U = rng.binomial(m.astype(int), 0.2).astype(float)
    assert dispersion(U, m).factor == pytest.approx(1.0, abs=0.15)
    assert dispersion(3.0 * U, 3.0 * m).factor == pytest.approx(3.0, abs=0.4)  # threefold rows
    assert dispersion(U, m).freedom == 594.0
    each = np.ones((2, 50))  # each row is a bin
    assert dispersion((rng.random((2, 50)) < 0.3).astype(float), each).factor == pytest.approx(1.0)
    one = dispersion(np.array([[3.0, 0.0], [0.0, 9.0]]), np.array([[10.0, 0.0], [0.0, 10.0]]))
    assert one.freedom == 0.0  # groups are segments: nothing can be told
    tail = tail_of([3, 9], [10, 10])
    assert equality_p_value(tail, rng, spread=one) == 1.0
    # Threefold rows must not count threefold.
    tail, counted = (
        tail_of(U.sum(axis=1), m.sum(axis=1)),
        tail_of(3 * U.sum(axis=1), 3 * m.sum(axis=1)),
    )
    expected = equality_p_value(tail, rng)
    spread = Dispersion(3.0, 594.0)
    assert equality_p_value(counted, rng, spread=spread) == pytest.approx(expected, abs=0.02)


CELLS = {
    "rare": (np.full(12, 100), 0.02, 4.0),
    "few": (np.full(50, 24), 0.3, 4.0),
    "other negatives": (np.full(12, 200), 0.2, np.resize([3.0, 5.0], 12)),
    "rare, other negatives": (np.full(12, 100), 0.02, np.resize([2.0, 4.0], 12)),
}


@pytest.mark.parametrize("cell", CELLS)
def test_p_value_of_equal_shares(cell):
    """Of 60 draws at 5%, eight or more are rejected with a probability of 1%."""
    sizes, share, distances = CELLS[cell]
    found = [
        p_value_of_scores(seed, sizes, np.full(len(sizes), share), distances) for seed in range(60)
    ]
    assert np.sum(np.array(found) <= 0.05) < 8
    assert np.mean(found) > 0.4


def test_power_of_the_p_value():
    shares = np.where(np.arange(12) < 4, 0.3, 0.2)
    found = [p_value_of_scores(seed, np.full(12, 200), shares) for seed in range(40)]
    assert np.mean(np.array(found) <= 0.05) > 0.3


def test_p_value_of_estimates():
    """Through the estimator: rarely small if segments are drawn at random, which it can fail."""
    small = 0
    for seed in range(20):
        positive, unlabeled, _, hidden = draw(seed, m=800)
        segments = np.random.default_rng(seed).choice(["a", "b"], 800)
        small += quick(positive, unlabeled, segments=(None, segments)).segments.p_value < 0.05
    assert small <= 4  # 20 draws at 5%: more with probability 0.003
    segments = np.where(hidden ^ (np.arange(800) % 5 == 0), "a", "b")
    assert quick(positive, unlabeled, segments=(None, segments)).segments.p_value < 1e-6


def test_ratio_covers(estimate):
    covered = 0
    for seed in range(30):
        positive, unlabeled, segments, _ = draw(seed, m=1000)
        found = quick(positive, unlabeled, segments=(None, segments)).segments
        ratio = found.ratio("south", "north")
        assert ratio.ratio == pytest.approx(found["south"].raw / found["north"].raw)
        assert ratio.low <= ratio.ratio <= ratio.high
        inverse = found.ratio("north", "south")
        assert_allclose([inverse.low, inverse.high], [1.0 / ratio.high, 1.0 / ratio.low])
        covered += ratio.low <= 4.0 <= ratio.high
    assert covered >= 26  # of 30 at 95%: fewer with probability 0.016
    same = estimate.segments.ratio("north", "north")
    assert (same.low, same.ratio, same.high) == pytest.approx((1.0, 1.0, 1.0))


def test_ratio_of_few_positives():
    """Two segments of 200 rows with 2% positives, of which one may seem to have none."""
    covered = 0
    for seed in range(40):
        ratio = of_scores(seed, [200, 200], [0.02, 0.02]).segments.ratio(0, 1)
        covered += ratio.low <= 1.0 <= ratio.high
    assert covered >= 36  # of 40 at 95%: fewer with probability 0.014
    found = of_scores(0, [200, 200, 200], [0.2, 0.0, 0.0], distances=9.0).segments
    assert found[1].raw == found[2].raw == 0.0
    assert found.ratio(0, 1).ratio == found.ratio(0, 1).high == np.inf
    assert found.ratio(0, 1).low > 2.0
    assert (found.ratio(1, 0).low, found.ratio(1, 0).ratio) == (0.0, 0.0)
    assert found.ratio(1, 0).high < 0.5
    assert np.isnan(found.ratio(1, 2).ratio)
    assert (found.ratio(1, 2).low, found.ratio(1, 2).high) == (0.0, np.inf)


# --- as text ---------------------------------------------------------------------------------


def no_ratios(one, other):
    raise NotImplementedError


def by_hand(n, p_value=0.2, **about):
    part = SegmentEstimate(
        prior=0.12,
        raw=0.1,
        low=0.05,
        high=0.3,
        low_count=5.0,
        high_count=31.0,
        upper_bound=0.4,
        n_positive=None,
        n_unlabeled=100,
    )
    names = ((f"<s{number}>", part) for number in range(n))
    return SegmentEstimates(names, p_value, 0.95, no_ratios, **about)


def test_text_html_and_dict_have_the_segments(estimate):
    values = estimate.to_dict()
    json.dumps(values)  # plain numbers only
    assert values["segments_p_value"] == estimate.segments.p_value
    assert [part["segment"] for part in values["segments"]] == ["north", "south", "west"]
    assert values["segments"][0]["raw"] == estimate.segments["north"].raw
    for text in (str(estimate), estimate.to_html()):
        for name, part in estimate.segments.items():
            assert name in text
            for share in (part.prior, part.low, part.high, part.upper_bound):
                assert f"{share:.1%}" in text
            assert f"{part.n_unlabeled:,}" in text
    assert "The shares differ between segments (p < .001)." in str(estimate)
    assert "all known positives" in str(estimate)
    frame = estimate.segments.to_frame()
    assert frame.loc["south", "prior"] == estimate.segments["south"].prior
    assert len(frame) == 3


def test_findings_in_words():
    assert "No evidence" in by_hand(2, 0.4).findings
    assert "(p = .4)" in by_hand(2, 0.4).findings
    assert "The shares differ between segments (p = .012)." in by_hand(2, 0.012).findings
    assert "(p" not in by_hand(1, 1.0).findings
    assert "its own known positives" in by_hand(2, own_positives=True).findings


def test_tables_are_short_and_safe():
    many = by_hand(60, columns=("<b>",))
    text, page = many.to_text(), many.to_html()
    assert "and 20 more" in text
    assert "and 20 more" in page
    assert "<s" not in page
    assert "<b>" not in page
    assert len({len(line) for line in many.lines[:-1]}) == 1
    assert many.title == "<b>"
    assert by_hand(1, every="month").title == "month"
    pairs = SegmentEstimates(
        [(("a", 1), by_hand(1)["<s0>"])], 1.0, 0.95, no_ratios, columns=("x", "y")
    )
    assert pairs.to_frame().index.names == ["x", "y"]
    assert pairs.to_list()[0]["segment"] == ["a", 1]
    assert "a, 1" in pairs.to_text()


def test_matched_segments_need_the_unlabeled_rows():
    with pytest.raises(ValueError, match="unlabeled"):
        matched_segments([Coded.of(np.array(["a"]))], None)
