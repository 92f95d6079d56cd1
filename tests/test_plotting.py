import io
import sys
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from classprior import (
    AutoPrior,
    DensityRatio,
    ElkanNotoPrior,
    Estimation,
    Importance,
    PenalizedL1Prior,
    ScottBlanchardPrior,
    estimate_prior,
    plotting,
)
from classprior._scores.diagnostics import SIGNIFICANT
from classprior._scores.tails import WINDOW, ScoreTails, extrapolated_share
from classprior.plotting import (
    ImportanceDisplay,
    ObjectiveDisplay,
    RejectionDisplay,
    ScoreDisplay,
    SegmentDisplay,
    TailDisplay,
)
from classprior.review import evaluate_review
from classprior.sensitivity import SensitivityCurve

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

CLASSIFIERS = {"linear": LogisticRegression(), "ridge": LogisticRegression(C=0.01)}
AUTO = AutoPrior(classifiers=CLASSIFIERS, n_repeats=1, n_resamples=20, random_state=0)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def labeled(separated):
    """Stack both samples into X and y."""
    return np.vstack(separated), np.arange(1400) < 400


@pytest.fixture(scope="module")
def auto():
    """Return a fitted Pipeline that ends in an AutoPrior."""
    rng = np.random.default_rng(7)
    X = np.vstack([rng.normal(size=(700, 2)), rng.normal(4.0, 1.0, (700, 2))])
    return make_pipeline(StandardScaler(), AUTO).fit(X, np.arange(1400) < 400)


def test_draws_the_curve_and_its_minimum(labeled):
    estimator = PenalizedL1Prior(random_state=0).fit(*labeled)
    display = ObjectiveDisplay.from_estimator(estimator, truth=0.3)
    assert_array_equal(display.line_.get_xdata(), estimator.thetas_)
    assert_array_equal(display.line_.get_ydata(), estimator.objective_)
    assert display.minimum_.get_xdata() == [estimator.prior_]
    assert display.minimum_.get_ydata() == [estimator.objective_.min()]
    assert display.truth_.get_xdata() == [0.3, 0.3]
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["PenalizedL1Prior", f"estimate {estimator.prior_:.3f}", "truth 0.300"]
    low, high = display.ax_.get_ylim()
    assert low < estimator.objective_.min() < high


CURVE = SensitivityCurve(
    param_name="lams", param_range=(0.1, 1), priors=np.full((2, 2), 0.3), error_rates=None
)


def by_segment(segments, **options):
    """Return an estimate of 200 unlabeled rows by segment."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(80, 2)), rng.normal(np.repeat([0.0, 4.0], 100)[:, None], 1.0, (200, 2))
    settings = {"evidence": AUTO, "n_resamples": 20, "random_state": 0}
    return estimate_prior(*X, segments=(None, segments), **settings, **options)


METHODS = {
    "ObjectiveDisplay": ("penl1", {"n_centers": 20}),
    "RejectionDisplay": ("sb", {"n_centers": 20}),
    "ScoreDisplay": ("en", {}),
    "TailDisplay": ("auto", {}),
}


@pytest.mark.parametrize("name", plotting.__all__)
def test_every_display_takes_an_estimate_and_axes(separated, name):
    """Some plot something else than an estimator: a curve, columns, segments, checked rows."""
    display = getattr(plotting, name)
    figure, (other, ax) = plt.subplots(1, 2)
    if name == "SensitivityDisplay":
        drawn = display.from_curve(CURVE, ax=ax)
    elif name == "ImportanceDisplay":
        estimation = Estimation.of(*separated, evidence=AUTO, random_state=0)
        drawn = display.from_estimation(estimation, ax=ax)
    elif name == "SegmentDisplay":
        drawn = display.from_estimate(by_segment(np.arange(200) % 3), ax=ax)
    elif name in ("RecallDisplay", "ReliabilityDisplay"):
        estimation = Estimation.of(*separated, evidence=AUTO, random_state=0)
        plan = estimation.plan_review(40)
        drawn = display.from_estimate(evaluate_review(plan, np.arange(40) < 12), ax=ax)
    else:
        method, options = METHODS[name]
        samples = separated[0][:80], separated[1][:200]
        settings = {"evidence": AUTO, "n_resamples": 2, "random_state": 0}
        estimate = estimate_prior(*samples, method=method, **settings, **options)
        drawn = display.from_estimator(estimate, ax=ax)
    assert drawn.ax_ is ax
    assert drawn.figure_ is figure
    assert ax.has_data()
    assert not other.has_data()
    assert plt.get_fignums() == [figure.number]


def test_draws_where_and_how_it_is_told(separated):
    _, ax = plt.subplots()
    estimator = PenalizedL1Prior(random_state=0).fit_samples(*separated)
    display = ObjectiveDisplay.from_estimator(estimator, ax=ax, name="penL1", color="red")
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.line_.get_color() == display.minimum_.get_color() == "red"
    assert display.line_.get_label() == "penL1"
    assert display.truth_ is None


def test_takes_a_pipeline(labeled):
    pipeline = make_pipeline(StandardScaler(), PenalizedL1Prior(random_state=0)).fit(*labeled)
    display = ObjectiveDisplay.from_estimator(pipeline)
    assert display.prior == pipeline[-1].prior_


@pytest.mark.parametrize(
    ("display", "estimator"),
    [
        (ObjectiveDisplay, PenalizedL1Prior()),
        (ObjectiveDisplay, make_pipeline(StandardScaler(), PenalizedL1Prior())),
        (RejectionDisplay, ScottBlanchardPrior()),
        (TailDisplay, AutoPrior()),
        (ScoreDisplay, AutoPrior()),
    ],
)
def test_refuses_an_estimator_that_is_not_fitted(display, estimator):
    with pytest.raises(NotFittedError):
        display.from_estimator(estimator)


def test_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    display = ObjectiveDisplay(thetas=np.array([0.0, 1.0]), objective=[1.0, 0.0], prior=1.0)
    with pytest.raises(ImportError, match=r"pip install 'classprior\[plot\]'"):
        display.plot()


def test_draws_the_rejection_curve_and_its_line(labeled):
    estimator = ScottBlanchardPrior(n_centers=30, random_state=0)
    pipeline = make_pipeline(StandardScaler(), estimator).fit(*labeled)
    display = RejectionDisplay.from_estimator(pipeline, color="red")
    assert_array_equal(display.curve_.get_xdata(), pipeline[-1].rejected_)
    assert_array_equal(display.curve_.get_ydata(), pipeline[-1].accepted_)
    assert display.curve_.get_color() == "red"
    assert_array_equal(display.line_.get_ydata(), [pipeline[-1].prior_, 0.0])
    assert display.line_.get_label() == f"slope {pipeline[-1].prior_:.3f}"


def test_draws_the_tails(auto):
    display = TailDisplay.from_estimator(auto, truth=0.3)
    assert set(display.lines_) == {*CLASSIFIERS, "together"}
    assert display.truth_.get_ydata() == [0.3, 0.3]
    positive, unlabeled = auto[-1].scores_["ridge"]
    shares, ratios = display.lines_["ridge"].get_data()
    for share, ratio, threshold in zip(shares, ratios, np.unique(positive)[::-1], strict=True):
        assert_allclose(share, np.mean(positive >= threshold))
        assert_allclose(ratio, np.mean(unlabeled >= threshold) / share)
    assert TailDisplay.from_estimator(auto).truth_ is None


def test_the_extrapolating_line_ends_at_the_share_that_warnings_name(auto):
    display = TailDisplay.from_estimator(auto)
    shares, ratios = display.extrapolation_.get_data()
    assert list(shares) == [0.0, auto[-1].extrapolation_window_]
    assert ratios[0] == display.extrapolated == auto[-1].extrapolated_
    assert_array_equal(display.end_.get_xydata(), [[0.0, display.extrapolated]])
    assert display.extrapolation_.get_label() == f"extrapolated to {auto[-1].extrapolated_:.3f}"
    at_window = [np.interp(display.window, *line.get_data()) for line in display.lines_.values()]
    assert min(at_window) <= ratios[1] <= max(at_window)


def test_the_extrapolating_line_lies_on_a_linear_ratio():
    """Unlabeled rows whose density at the share w of positives is 0.2 + 0.5 w."""
    positive = -(np.arange(4000) + 0.5) / 4000
    w = np.linspace(0.0, 1.0, 200_001)
    cumulated = 0.2 * w + 0.25 * w**2
    rows = (np.arange(40_000) + 0.5) / 40_000
    unlabeled = -np.interp(rows[rows < cumulated[-1]], cumulated, w)
    unlabeled = np.concatenate([unlabeled, np.full(40_000 - len(unlabeled), -2.0)])
    end = float(
        extrapolated_share(*ScoreTails.from_scores(positive, unlabeled).counts(), WINDOW, 1.0)
    )
    assert_allclose(end, 0.2, atol=0.01)
    scores = {"linear": (positive, unlabeled)}
    display = TailDisplay(scores=scores, prior=0.3, low=0.2, high=0.4, extrapolated=end).plot()
    x, y = display.lines_["linear"].get_data()
    inside = (x > 0.02) & (x < WINDOW)
    on_line = np.interp(x[inside], *display.extrapolation_.get_data())
    assert_allclose(on_line, y[inside], atol=0.01)


def test_an_excess_of_positives_is_chance_or_not():
    """Scores of normal classes, at the true share and at twice that."""
    found = {0.2: [], 0.4: []}
    for seed in range(100):
        rng = np.random.default_rng(seed)
        positive = rng.normal(1.5, 1.0, 300)
        unlabeled = np.concatenate([rng.normal(1.5, 1.0, 200), rng.normal(-1.5, 1.0, 800)])
        for prior, p_values in found.items():
            display = ScoreDisplay(positive=positive, unlabeled=unlabeled, prior=prior)
            p_values.append(display.excess_p_value)
    assert np.mean(np.array(found[0.2]) < 0.05) <= 0.05
    assert min(found[0.2]) > SIGNIFICANT
    assert np.mean(np.array(found[0.4]) < SIGNIFICANT) > 0.9
    # By hand: 12 rows where 30 known positives stand for 30 hidden ones.
    one = ScoreDisplay(positive=[9.0] * 30, unlabeled=[0.0] * 18 + [9.0] * 12, prior=1.0)
    n_tests = 1 + 36  # the last bin, and the tails from each bin on
    assert one.excess_p_value == pytest.approx(n_tests * stats.binom.cdf(12, 42, 0.5))
    assert ScoreDisplay(positive=[0.0], unlabeled=[0.0], prior=0.0).excess_p_value == 1.0


def test_draws_the_tails_of_any_number_of_scores(auto):
    scores = {str(i): auto[-1].mean_scores_ for i in range(10)}
    display = TailDisplay(scores=scores, prior=0.3, low=0.2, high=0.4).plot()
    assert set(display.lines_) == set(scores)
    assert display.extrapolation_ is None


def test_draws_the_mixture_of_scores(auto):
    display = ScoreDisplay.from_estimator(auto)
    positive, unlabeled = auto[-1].scores_["together"]
    edges = display.unlabeled_.get_data().edges
    inside = [np.histogram(scores, edges)[0][1:-1] for scores in (positive, unlabeled)]
    positives = inside[0] / 400 * 1000 * auto[-1].prior_
    assert_array_equal(display.unlabeled_.get_data().values[1:-1], inside[1])
    assert_allclose(display.positives_.get_data().values[1:-1], positives)
    assert_allclose(
        display.rest_.get_data().values[1:-1], np.maximum(0.0, inside[1] - positives), atol=1e-9
    )
    assert display.unlabeled_.get_data().values.sum() == 1000  # none lost outside


def test_an_estimate_shows_its_method_and_its_evidence(separated):
    """The objective, prior and interval come from the method, the scores from the evidence."""
    estimate = estimate_prior(
        *separated, method="penl1", n_centers=50, evidence=AUTO, n_resamples=20, random_state=0
    )
    assert estimate.prior != estimate.evidence.prior_
    objective = ObjectiveDisplay.from_estimator(estimate)
    assert_array_equal(objective.line_.get_ydata(), estimate.estimator.objective_)
    tails = TailDisplay.from_estimator(estimate)
    assert (tails.prior, tails.low, tails.high) == (estimate.prior, estimate.low, estimate.high)
    assert tails.scores is estimate.evidence.scores_
    scores = ScoreDisplay.from_estimator(estimate)
    assert_allclose(scores.positives_.get_data().values.sum(), 1000.0 * estimate.prior)


def test_draws_scores_that_are_all_the_same():
    display = ScoreDisplay(positive=[0.0, 0.0], unlabeled=[0.0] * 7, prior=1.0).plot()
    assert display.unlabeled_.get_data().values.max() == 7
    assert display.rest_.get_data().values.max() == 0.0


@pytest.mark.parametrize(
    "estimator", [ElkanNotoPrior(random_state=0), DensityRatio(n_centers=20, random_state=0)]
)
def test_an_estimator_without_an_objective_is_sent_elsewhere(separated, estimator):
    fitted = estimator.fit_samples(*separated)
    with pytest.raises(TypeError, match=rf"{type(estimator).__name__}.*TailDisplay"):
        ObjectiveDisplay.from_estimator(fitted)


@pytest.mark.parametrize(
    ("method", "options", "fitting"),
    [
        ("auto", {}, ["TailDisplay", "ScoreDisplay"]),
        ("en", {}, ["TailDisplay", "ScoreDisplay"]),
        ("sb", {"n_centers": 20}, ["RejectionDisplay"]),
    ],
)
def test_an_estimate_without_an_objective_is_sent_to_another_display(
    separated, method, options, fitting
):
    samples = separated[0][:80], separated[1][:200]
    settings = {"evidence": AUTO, "n_resamples": 2, "random_state": 0}
    estimate = estimate_prior(*samples, method=method, **settings, **options)
    with pytest.raises(TypeError, match=repr(method)) as caught:
        ObjectiveDisplay.from_estimator(estimate)
    for name in fitting:
        assert name in str(caught.value)
        getattr(plotting, name).from_estimator(estimate)


def test_something_else_is_refused():
    with pytest.raises(TypeError, match="ndarray"):
        TailDisplay.from_estimator(np.zeros(3))


def test_segments_from_top_to_bottom():
    estimate = by_segment(np.where(np.arange(200) % 4 == 0, "$a_{", "b"))
    display = SegmentDisplay.from_estimate(estimate)
    assert display.names_ == list(estimate.segments) == ["$a_{", "b"]
    parts = estimate.segments.values()
    assert_array_equal(display.shares_.get_xdata(), [part.prior for part in parts])
    assert_array_equal(display.shares_.get_ydata(), [0, 1])
    ends = display.intervals_.get_xdata().reshape(2, 3)
    assert_array_equal(ends[:, :2], [[part.low, part.high] for part in parts])
    assert_array_equal(display.whole_.get_xdata(), [estimate.prior] * 2)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["$a_{", "b"]
    display.figure_.savefig(io.BytesIO())  # mathematics in a name is not drawn
    bottom, top = display.ax_.get_ylim()
    assert bottom > top


def test_the_largest_segments_are_kept():
    segments = np.minimum(np.arange(200) // 10, 12)  # the last has 80 rows
    display = SegmentDisplay.from_estimate(by_segment(segments), most=3)
    assert display.names_ == [0, 1, 12]


def test_periods_are_drawn_over_time():
    months = np.array(["2024-01", "2024-02", "2024-05", ""])[np.arange(200) % 4]
    estimate = by_segment(months, every="month")
    display = SegmentDisplay.from_estimate(estimate, most=1)
    assert_array_equal(display.shares_.get_xdata(), [0, 1, 4, 6])  # the last is missing
    parts = estimate.segments.values()
    assert_array_equal(display.shares_.get_ydata(), [part.prior for part in parts])
    assert_array_equal(display.whole_.get_ydata(), [estimate.prior] * 2)
    labels = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert labels == ["2024-01", "2024-02", "2024-05", "(missing)"]


def test_several_columns_of_dates_are_listed():
    months = np.array(["2024-01", "2024-02"])[np.arange(200) % 2]
    display = SegmentDisplay.from_estimate(by_segment(np.column_stack([months] * 2), every="year"))
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["2024, 2024"]


def test_only_upper_bounds_are_marked():
    estimate = by_segment(np.arange(200) % 2)
    bounds = {k: replace(part, is_upper_bound=k == 1) for k, part in estimate.segments.items()}
    estimate.segments.update(bounds)
    ax = SegmentDisplay.from_estimate(estimate).ax_
    (marker,) = (line for line in ax.get_lines() if line.get_label().startswith("at most"))
    assert_array_equal(marker.get_xdata(), [estimate.segments[1].prior])


def test_segments_are_needed():
    estimate = by_segment(np.arange(200) % 2)
    with pytest.raises(ValueError, match="segments"):
        SegmentDisplay.from_estimate(replace(estimate, segments=None))


# Importances -------------------------------------------------------------------------------------


def test_the_most_important_columns_from_top_to_bottom():
    importances = [Importance(name, 0.5 / n, 0.1) for n, name in enumerate(["$a_{", "b", "c"], 1)]
    display = ImportanceDisplay(importances=importances).plot(most=2)
    assert display.names_ == ["$a_{", "b"]
    assert_allclose([bar.get_width() for bar in display.bars_], [0.5, 0.25])
    assert_allclose(display.intervals_.get_xdata()[[0, 1, 3, 4]], [0.304, 0.696, 0.054, 0.446])
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["$a_{", "b"]
    bottom, top = display.ax_.get_ylim()
    assert bottom > top  # the first column is at the top
    display.figure_.canvas.draw()  # a name is no formula
