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
from classprior._scores.by_segment import equality_p_value, shrunk
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
    assert part.raw == pytest.approx(whole.prior, rel=1e-12)
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
    for name, part in without.segments.items():  # folds differ
        assert found.segments[name].raw == pytest.approx(part.raw, abs=0.04)


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
    """Two segments, first of equal and then of unequal variances."""
    shares, whole, v = np.array([0.2, 0.5]), 0.3, 0.01
    # Q = (0.01 + 0.04)/v = 5; Q - 1 = 4; spread = 2/v - (2/v^2)/(2/v) = 1/v; tau^2 = 0.04
    expected = whole + 0.04 / (0.04 + v) * (shares - whole)
    assert_allclose(shrunk(shares, np.full(2, v), whole), expected, rtol=1e-12)
    # With unequal variances: 1/v = (100, 25), Q = 1 + 1 = 2, spread = 125 - 10625/125 = 40
    expected = whole + 0.025 / (0.025 + np.array([0.01, 0.04])) * (shares - whole)
    assert_allclose(shrunk(shares, np.array([0.01, 0.04]), whole), expected, rtol=1e-12)


def test_limits_of_shrinkage():
    shares = np.array([0.1, 0.3, 0.8])
    assert_allclose(shrunk(shares, np.full(3, 1e-9), 0.3), shares, atol=1e-6)  # no noise
    assert_allclose(shrunk(shares, np.full(3, 10.0), 0.3), 0.3)  # only noise
    assert_allclose(shrunk(np.full(3, 0.3), np.full(3, 0.01), 0.3), 0.3)
    assert_allclose(shrunk(np.array([0.4]), np.array([0.01]), 0.3), 0.3)
    noisy = shrunk(shares, np.array([1e-6, 0.02, 0.02]), 0.4)
    assert noisy[0] == pytest.approx(0.1, abs=1e-3)
    assert np.all(np.abs(noisy - 0.4) <= np.abs(shares - 0.4) + 1e-12)


# --- differences -----------------------------------------------------------------------------


def simulated(rng, shares, sizes, n_resamples=400):
    """Return binomial shares, and resamples of them."""
    found = rng.binomial(sizes, shares) / sizes
    return found, rng.binomial(sizes, found, (n_resamples, len(sizes))) / sizes


def test_p_value_is_uniform_if_shares_are_equal():
    rng = np.random.default_rng(0)
    sizes = np.array([400, 800, 1600, 3000])
    p = [equality_p_value(*simulated(rng, np.full(4, 0.3), sizes)) for _ in range(400)]
    assert stats.kstest(p, "uniform").pvalue > 0.01
    different = np.array([0.3, 0.3, 0.3, 0.36])
    p = [equality_p_value(*simulated(rng, different, sizes)) for _ in range(100)]
    assert np.mean(np.array(p) < 0.05) > 0.8


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
