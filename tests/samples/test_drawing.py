"""Rows with keys: whatever depends on a row depends on its key, not on its place."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, Estimation, PUClassifier, estimate_prior
from classprior._core import bins as bins_module
from classprior._core.basis import GaussianBasis
from classprior._core.bins import BINS, CENTERS, KEPT, SUBSAMPLE, bins_by_hash
from classprior._core.keys import as_uniform, chances, hashed_numbers
from classprior._samples import drawing, samples
from classprior._samples.opening import open_samples
from classprior._samples.sums import draw_centers, moments_of
from classprior._samples.units import RowOptions
from classprior.engines import fit_blocks
from classprior.priors import ScorePrior
from reference import phi

N = 200_000
LINEAR = {"linear": LogisticRegression()}
QUICK = AutoPrior(classifiers=LINEAR, n_repeats=1, n_resamples=50, random_state=0)


def _frames():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(550, 2))
    X[270:] += 2.0
    table = pd.DataFrame(X, columns=["x", "y"])
    table["id"] = [f"row {i}" for i in range(len(table))]
    table["weight"] = rng.integers(0, 4, len(table))
    table["city"] = rng.choice(["Aix", "Bonn"], len(table))
    table["fold"] = np.arange(len(table)) % 4
    table["household"] = rng.integers(0, 200, len(table))
    return table[:150].reset_index(drop=True), table[150:].reset_index(drop=True)


FRAMES = _frames()
SHUFFLED = [f.sample(frac=1.0, random_state=1).reset_index(drop=True) for f in FRAMES]
USED = ["x", "y"]


@pytest.fixture
def by_hash(monkeypatch):
    """Let 200 rows be many: known positives are ranked, unlabeled rows are not."""
    for module in (bins_module, drawing):
        monkeypatch.setattr(module, "MOST_RANKED", 200)
    monkeypatch.setattr(samples, "SETTLED_BYTES", 0)


# --- chances ---------------------------------------------------------------------------------


def test_chances_are_uniform_and_independent():
    keys = hashed_numbers(np.arange(N))
    u = {p: as_uniform(chances(keys, 0, p, 0)) for p in (BINS, CENTERS, KEPT, SUBSAMPLE)}
    others = {"seed": chances(keys, 1, KEPT, 0), "sample": chances(keys, 0, KEPT, 1)}
    columns = np.array([*u.values(), *map(as_uniform, others.values()), np.arange(N) / N])
    assert np.all((columns >= 0.0) & (columns < 1.0))
    deciles = np.array([np.bincount((10 * c).astype(int), minlength=10) for c in columns])
    assert_allclose(deciles, N / 10, atol=5.0 * np.sqrt(N / 10))
    off_diagonal = np.corrcoef(columns)[~np.eye(len(columns), dtype=bool)]
    assert np.abs(off_diagonal).max() < 5.0 / np.sqrt(N)


def test_bins_by_hash_do_not_depend_on_what_is_drawn():
    keys = hashed_numbers(np.arange(N))
    bins = bins_by_hash(keys, 0, 1)
    drawn = np.argsort(chances(keys, 0, SUBSAMPLE, 1))[:20_000]
    assert_allclose(np.bincount(bins), N / 100, atol=5.0 * np.sqrt(N / 100))
    assert_allclose(np.bincount(bins[drawn]), 200.0, atol=5.0 * np.sqrt(200.0))


# --- samples ---------------------------------------------------------------------------------


def opened(frames, seed=0, **rows):
    options = RowOptions(key="id", **rows)
    return open_samples(*frames, options, seed=seed, columns=USED, block_rows=37)


def by_id(frame, values):
    return dict(zip(frame["id"], values, strict=True))


def test_few_rows_are_dealt_evenly():
    found = opened(FRAMES)
    for counts, size in zip(found.bins.n_rows, found.sizes, strict=True):
        assert len(counts) == 100
        assert counts.sum() == size
        assert counts.max() - counts.min() <= 1
    other = opened(FRAMES, seed=1)
    assert np.mean(found.bins_of_rows[1] == other.bins_of_rows[1]) < 0.1


@pytest.mark.parametrize("is_large", [False, True], ids=["few rows", "many rows"])
@pytest.mark.parametrize("weights", [None, "weight"])
def test_the_role_of_a_row_is_that_of_its_key(is_large, weights, request):
    if is_large:
        request.getfixturevalue("by_hash")
    both = [opened(frames, weights=weights) for frames in (FRAMES, SHUFFLED)]
    for sample in (0, 1):
        is_kept = [
            f[sample]["weight"] > 0 if weights else f[sample]["x"] < np.inf
            for f in (FRAMES, SHUFFLED)
        ]
        bins, chosen, kept = [], [], []
        for found, frames, counts in zip(both, (FRAMES, SHUFFLED), is_kept, strict=True):
            frame = frames[sample]
            pairs = zip(frame["id"][counts], found.bins_of_rows[sample][counts], strict=True)
            bins.append(dict(pairs))
            ids = found.choose(SUBSAMPLE, sample, 40)
            chosen.append(frame["id"][found.numbers_of(sample, ids)].tolist())
            rows = found.each[sample].gather(ids)
            assert_array_equal(rows, frame[USED].to_numpy()[found.numbers_of(sample, ids)])
            rows = np.arange(len(frame))
            kept.append(by_id(frame, found.draws(sample).chances(KEPT, rows)))
            assert counts[found.numbers_of(sample, ids)].all()
            counted = np.bincount(found.bins_of_rows[sample][counts], minlength=100)
            assert_array_equal(counted, found.bins.n_rows[sample])
        assert bins[0] == bins[1]
        assert chosen[0] == chosen[1]
        assert len(set(chosen[0])) == 40
        assert kept[0] == kept[1]
    assert both[0].bins.by_key is not None
    assert (both[0].bins.by_key[1] is None) == is_large


def test_draws_of_different_purposes_differ():
    found = opened(FRAMES)
    first, second = (set(found.choose(p, 1, 100)) for p in (SUBSAMPLE, CENTERS))
    assert 10 <= len(first & second) <= 40  # 25 expected


def test_given_folds_and_groups_in_any_order():
    for name in ("fold", "household"):
        found = []
        for frames in (FRAMES, SHUFFLED):
            columns = [frame[name].to_numpy() for frame in frames]
            rows = {"folds": columns} if name == "fold" else {"groups": columns}
            bins = opened(frames, **rows).bins_of_rows
            found.append(by_id(frames[1], bins[1]))
        assert found[0] == found[1]


# --- fits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, "weight"])
def test_many_rows_in_blocks_and_in_memory(by_hash, monkeypatch, weights):
    drop = {"columns": USED, "key": "id", "weights": weights}
    few = QUICK.__class__(**{**QUICK.get_params(), "max_rows": 100})
    blocks = [[frame[start : start + 77] for start in range(0, 400, 77)] for frame in SHUFFLED]
    in_blocks = fit_blocks(few, *blocks, **drop, n_jobs=1)
    got = [in_blocks.prior_, in_blocks.low_, in_blocks.high_, in_blocks.upper_bound_]
    monkeypatch.setattr(samples, "SETTLED_BYTES", 2**27)
    in_memory = fit_blocks(few, *FRAMES, **drop)
    expected = [in_memory.prior_, in_memory.low_, in_memory.high_, in_memory.upper_bound_]
    assert_allclose(got, expected, rtol=1e-9)
    assert in_memory.n_fitted_ == in_blocks.n_fitted_ == (100, 100)


def test_centers_leave_out_their_own_rows_in_blocks(by_hash):
    found = opened(SHUFFLED)
    centers = draw_centers(found, 40)
    moments = moments_of(found, 1, GaussianBasis(centers.X, np.array([0.1])), centers)
    X = FRAMES[1][USED].to_numpy()
    values = phi(X, centers.X, 0.1)
    values[np.all(X[:, None] == centers.X, axis=2)] = 0.0  # each center at its own row
    assert_allclose(moments.sums.sum(axis=0)[0], values.sum(axis=0), rtol=1e-3, atol=1e-4)


def test_answers_about_rows_come_back_in_their_order():
    how = {"key": "id", "columns": USED, "evidence": QUICK, "random_state": 0}
    one, other = Estimation.of(*FRAMES, **how), Estimation.of(*SHUFFLED, **how)
    ids = [frame["id"] for frame in (FRAMES[1], SHUFFLED[1])]
    for name in ("scores", "probabilities", "reasons"):
        first, second = (getattr(estimation, name)() for estimation in (one, other))
        assert dict(zip(ids[0], first, strict=True)) == dict(zip(ids[1], second, strict=True))
    is_high = FRAMES[1]["x"] + FRAMES[1]["y"] < 0.0
    assert one.scores()[is_high].mean() > one.scores()[~is_high].mean() + 1.0
    assert one.importances() == other.importances()
    plans = [estimation.plan_review(40) for estimation in (one, other)]
    assert set(ids[0][list(plans[0].rows)]) == set(ids[1][list(plans[1].rows)])


def test_more_rows_than_the_classifiers_see():
    few = QUICK.__class__(**{**QUICK.get_params(), "max_rows": 60})
    how = {"key": "id", "columns": USED, "evidence": few, "random_state": 0}
    first, second = (
        by_id(frames[1], Estimation.of(*frames, **how).scores()) for frames in (FRAMES, SHUFFLED)
    )
    assert_allclose([second[name] for name in first], list(first.values()), atol=1e-9)


def test_one_table_of_labels():
    answers = []
    for frames in (FRAMES, SHUFFLED):
        table = pd.concat(frames)
        y = np.repeat([1, 0], [len(frame) for frame in frames])
        order = np.random.default_rng(len(answers)).permutation(len(y))
        model = PUClassifier(prior=QUICK, random_state=0)
        model.fit(table[USED].iloc[order], y[order], key=table["id"].iloc[order])
        unlabeled = table["id"].to_numpy()[order][y[order] == 0]
        answers.append((model.prior_, dict(zip(unlabeled, model.oof_proba_, strict=True))))
    two = PUClassifier(prior=QUICK, random_state=0).fit_samples(
        *(frame[USED] for frame in FRAMES), key=[frame["id"] for frame in FRAMES]
    )
    assert answers[0] == answers[1]
    assert two.prior_ == answers[0][0]
    assert_array_equal(two.oof_rows_, np.arange(400))


def test_scores_and_rows_that_are_left_out():
    scores = [frame["x"] + frame["y"] for frame in FRAMES]
    ids = [frame["id"] for frame in FRAMES]
    shuffled = [frame["x"] + frame["y"] for frame in SHUFFLED]
    one = ScorePrior(random_state=0).fit_samples(-scores[0], -scores[1], key=ids)
    other = ScorePrior(random_state=0).fit_samples(
        *(-part for part in shuffled), key=[frame["id"] for frame in SHUFFLED]
    )
    assert (one.prior_, one.low_, one.upper_bound_) == (
        other.prior_,
        other.low_,
        other.upper_bound_,
    )
    # Of several equal unlabeled rows, those with the same keys are left out.
    copies = [frame.assign(x=frame["x"].round(), y=frame["y"].round()) for frame in FRAMES]
    again = [copies[0].iloc[::-1], copies[1].sample(frac=1.0, random_state=2)]
    how = {"key": "id", "columns": USED, "evidence": QUICK, "random_state": 0}
    answers = [
        estimate_prior(*frames, leave_out_known=True, **how).to_dict() for frames in (copies, again)
    ]
    assert answers[0] == answers[1]
    assert answers[0]["n_unlabeled"] < 400


# --- keys that do not tell rows apart --------------------------------------------------------


def repeated(frame):
    return pd.concat([frame, frame.iloc[[7]]], ignore_index=True)


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        (repeated, ["repeats", "rows 7 and 400", "'row 157'", "'id'", "groups"]),
        (lambda f: f.assign(id=f["id"].where(f.index != 3)), ["no value", "row 3", "'id'"]),
        (lambda f: f.assign(id=f["id"].where(f.index != 3, " ")), ["no value", "row 3", "'id'"]),
        (lambda f: f.drop(columns="id"), ["no column", "'id'"]),
    ],
    ids=["repeated", "missing", "blank", "no column"],
)
def test_keys_that_do_not_tell_rows_apart(change, facts):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the facts are below
        estimate_prior(FRAMES[0], change(FRAMES[1]), key="id", columns=USED, evidence=QUICK)
    assert not [fact for fact in facts if fact not in str(caught.value)]


def test_arrays_of_keys_that_do_not_tell_rows_apart():
    X = [frame[USED] for frame in FRAMES]
    ids = [frame["id"].to_numpy() for frame in FRAMES]
    for wrong, facts in (
        (np.where(np.arange(400) == 9, ids[1][2], ids[1]), ["rows 2 and 9", "'row 152'"]),
        (np.where(np.arange(400) == 9, None, ids[1]), ["row 9", "missing"]),
        (ids[1][:-1], ["400", "399"]),
    ):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            PUClassifier(prior=0.3, random_state=0).fit_samples(*X, key=(ids[0], wrong))
        assert not [fact for fact in facts if fact not in str(caught.value)]
    with pytest.raises(TypeError, match="key"):
        PUClassifier().fit(X[0], np.arange(150) % 2, key="id")


def test_repeated_keys_among_many_rows_are_found_if_there_are_many(by_hash):
    often = FRAMES[1].assign(id=[f"row {i // 2}" for i in range(400)])
    with pytest.raises(ValueError, match="repeats"):
        fit_blocks(QUICK, FRAMES[0], often, key="id", columns=USED)


def test_several_columns_may_be_the_key_together():
    frames = [
        frame.assign(street=np.arange(len(frame)) // 2, house=np.arange(len(frame)) % 2)
        for frame in FRAMES
    ]
    again = [frame.sample(frac=1.0, random_state=4) for frame in frames]
    how = {"columns": USED, "evidence": QUICK, "random_state": 0}
    one, other = (estimate_prior(*f, key=["street", "house"], **how) for f in (frames, again))
    assert one.to_dict() == other.to_dict()
    with pytest.raises(ValueError, match="'street'"):
        estimate_prior(*frames, key="street", **how)
