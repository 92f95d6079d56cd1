import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from classprior import AutoPrior, auto_prior

QUICK = {"n_repeats": 1, "n_resamples": 50, "random_state": 0}
LINEAR = {"linear": LogisticRegression()}


def normals(seed, prior=0.3, n=200, m=500, shift=3.0, n_features=2):
    rng = np.random.default_rng(seed)
    k = rng.binomial(m, prior)
    unlabeled = rng.normal(size=(m, n_features))
    unlabeled[k:, 0] += shift
    return rng.normal(size=(n, n_features)), rng.permutation(unlabeled)


def test_recovers_the_share(separated):
    result = auto_prior(*separated, random_state=0)
    assert abs(result.prior - 0.3) < 0.04
    assert result.low < 0.3 < result.high < result.upper_bound + 0.05
    assert result.low <= result.low_realised <= result.prior <= result.high_realised <= result.high
    assert set(result.views) == set(result.scores) == {"linear", "kernel", "trees", "together"}
    assert [len(part) for part in result.scores["trees"]] == [400, 1000]
    assert result.of_rounds.shape == (8,)


def test_finds_a_ring_that_a_line_cannot_see():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 700)
    ring = 5.0 * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(size=(700, 2))
    core = rng.normal(size=(500, 2))
    result = auto_prior(core[:200], np.vstack([core[200:], ring]), **QUICK)
    assert result.views["linear"] > 0.6
    assert abs(result.prior - 0.3) < 0.05


@pytest.mark.parametrize("prior", [0.05, 0.5, 0.95])
def test_interval_covers_the_population_share(prior):
    """Of 60 intervals at 80%, at least 40 cover: 48 less two and a half standard errors."""
    covered, too_high, too_low = 0, 0, 0
    for seed in range(60):
        samples = normals(seed, prior)
        result = auto_prior(*samples, classifiers=LINEAR, confidence=0.8, **QUICK)
        covered += result.low <= prior <= result.high
        too_high += result.low > prior
        too_low += result.high < prior
    assert covered >= 40
    assert max(too_high, too_low) <= 15


def test_more_confidence_is_a_wider_interval(separated):
    narrow, wide = (auto_prior(*separated, confidence=c, **QUICK) for c in (0.6, 0.99))
    assert narrow.prior == wide.prior
    assert wide.low < narrow.low < narrow.high < wide.high
    assert wide.upper_bound > narrow.upper_bound


def test_repeats_differ_and_are_averaged(separated):
    result = auto_prior(*normals(0), classifiers=LINEAR, n_repeats=4, random_state=0)
    assert len(set(result.of_rounds)) > 1
    assert result.prior == pytest.approx(result.of_rounds.mean(), rel=1e-12)


@pytest.mark.parametrize(("n_unlabeled", "n_rounds"), [(4900, 8), (4901, 3)])
def test_few_rows_get_more_rounds(n_unlabeled, n_rounds):
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(100, 1)), rng.normal(size=(n_unlabeled, 1))
    result = auto_prior(*samples, classifiers=LINEAR, n_resamples=20, random_state=0)
    assert len(result.of_rounds) == n_rounds


def test_one_seed_one_answer(separated):
    one, two = (auto_prior(*separated, n_jobs=n_jobs, **QUICK) for n_jobs in (1, 2))
    assert (one.prior, one.low, one.upper_bound) == (two.prior, two.low, two.upper_bound)
    other = auto_prior(*separated, **{**QUICK, "random_state": 1})
    assert other.prior != one.prior


def test_sparse_rows_have_the_views_that_take_them(separated):
    result = auto_prior(*map(sparse.csr_array, separated), **QUICK)
    assert set(result.views) == {"linear", "kernel", "together"}
    assert abs(result.prior - 0.3) < 0.06


def test_folds_keep_groups_together():
    """Copies of a row in one fold: a classifier cannot know them by heart."""
    positive, unlabeled = normals(0, n=60, m=120, n_features=20)
    copies = [np.repeat(X, 5, axis=0) for X in (positive, unlabeled)]
    groups = [np.arange(len(X)) // 5 % 5 for X in copies]
    apart = auto_prior(*copies, **QUICK)
    together = auto_prior(*copies, cv=tuple(groups), **QUICK)
    assert apart.prior < 0.1 < 0.2 < together.prior


def test_estimator_is_the_function(separated, labelled):
    X, y = labelled
    fitted = AutoPrior(**QUICK).fit(X, y)
    result = auto_prior(*separated, **QUICK)
    assert fitted.prior_ == result.prior
    assert (fitted.low_, fitted.high_, fitted.upper_bound_) == (
        result.low,
        result.high,
        result.upper_bound,
    )
    assert_array_equal(fitted.of_rounds_, result.of_rounds)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"confidence": 95}, ValueError, "Expected confidence from 0.5 to below 1, got 95"),
        ({"classifiers": LogisticRegression()}, TypeError, "a dictionary from names to class"),
        ({"classifiers": {"svm": LinearSVC()}}, TypeError, "predict_proba, got a LinearSVC as 's"),
        ({"n_repeats": 0}, ValueError, "n_repeats == 0, must be >= 1"),
    ],
)
def test_what_cannot_be_asked(options, error, message, separated):
    with pytest.raises(error, match=message):
        auto_prior(*separated, **options)


def test_a_progress_bar_on_standard_error(separated, capsys):
    auto_prior(*separated, classifiers=LINEAR, verbose=1, **QUICK)
    assert "Cross-fitting" in capsys.readouterr().err
