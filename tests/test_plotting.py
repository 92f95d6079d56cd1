import sys

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from classprior import (
    AutoPrior,
    ElkanNotoPrior,
    PenalizedL1Prior,
    ScottBlanchardPrior,
    auto_prior,
    penalized_l1,
)
from classprior.plotting import ObjectiveDisplay, RejectionDisplay, ScoreDisplay, TailDisplay

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_draws_the_curve_and_its_minimum(labelled):
    estimator = PenalizedL1Prior(random_state=0).fit(*labelled)
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


def test_draws_where_and_how_it_is_told(separated):
    _, ax = plt.subplots()
    curve = penalized_l1(*separated, random_state=0)
    display = ObjectiveDisplay.from_curve(curve, ax=ax, name="penL1", color="red")
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.line_.get_color() == display.minimum_.get_color() == "red"
    assert display.truth_ is None


def test_takes_a_pipeline(labelled):
    pipeline = make_pipeline(StandardScaler(), PenalizedL1Prior(random_state=0)).fit(*labelled)
    display = ObjectiveDisplay.from_estimator(pipeline)
    assert display.prior == pipeline[-1].prior_


def test_refuses_an_estimator_that_is_not_fitted():
    with pytest.raises(NotFittedError):
        ObjectiveDisplay.from_estimator(PenalizedL1Prior())


def test_names_the_other_constructor(separated):
    curve = penalized_l1(*separated, random_state=0)
    with pytest.raises(TypeError, match=r"got a PriorCurve.*from_curve"):
        ObjectiveDisplay.from_estimator(curve)
    with pytest.raises(TypeError, match=r"got a PenalizedL1Prior.*from_estimator"):
        ObjectiveDisplay.from_curve(PenalizedL1Prior())


def test_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    display = ObjectiveDisplay(thetas=np.array([0.0, 1.0]), objective=[1.0, 0.0], prior=1.0)
    with pytest.raises(ImportError, match=r"pip install 'classprior\[plot\]'"):
        display.plot()


def test_draws_the_rejection_curve_and_its_line(labelled):
    estimator = ScottBlanchardPrior(n_centers=30, random_state=0)
    pipeline = make_pipeline(StandardScaler(), estimator).fit(*labelled)
    display = RejectionDisplay.from_estimator(pipeline, color="red")
    assert_array_equal(display.curve_.get_xdata(), pipeline[-1].rejected_)
    assert_array_equal(display.curve_.get_ydata(), pipeline[-1].accepted_)
    assert display.curve_.get_color() == "red"
    assert_array_equal(display.line_.get_ydata(), [pipeline[-1].prior_, 0.0])
    assert display.line_.get_label() == f"slope {pipeline[-1].prior_:.3f}"


def test_rejection_curve_needs_a_fit():
    with pytest.raises(NotFittedError):
        RejectionDisplay.from_estimator(ScottBlanchardPrior())


def test_draws_the_tails(labelled, separated):
    options = {"n_repeats": 1, "n_resamples": 20, "random_state": 0}
    pipeline = make_pipeline(StandardScaler(), AutoPrior(**options)).fit(*labelled)
    display = TailDisplay.from_estimator(pipeline, truth=0.3)
    assert set(display.lines_) == set(pipeline[-1].views_)
    assert display.truth_.get_ydata() == [0.3, 0.3]
    positive, unlabeled = pipeline[-1].scores_["trees"]
    shares, ratios = display.lines_["trees"].get_data()
    threshold = np.unique(positive)[::-1][0]
    assert shares[0] == np.mean(positive >= threshold)
    assert ratios[0] == np.mean(unlabeled >= threshold) / shares[0]
    assert shares[-1] == 1.0
    result = auto_prior(*separated, **options)
    assert TailDisplay.from_result(result).truth_ is None
    with pytest.raises(NotFittedError):
        TailDisplay.from_estimator(AutoPrior())


def test_draws_the_mixture_of_scores(labelled, separated):
    options = {"n_repeats": 1, "n_resamples": 20, "random_state": 0}
    pipeline = make_pipeline(StandardScaler(), AutoPrior(**options)).fit(*labelled)
    display = ScoreDisplay.from_estimator(pipeline)
    positive, unlabeled = pipeline[-1].scores_["together"]
    edges = display.unlabeled_.get_data().edges
    inside = [np.histogram(scores, edges)[0][1:-1] for scores in (positive, unlabeled)]
    positives = inside[0] / 400 * 1000 * pipeline[-1].prior_
    assert_array_equal(display.unlabeled_.get_data().values[1:-1], inside[1])
    assert_allclose(display.positives_.get_data().values[1:-1], positives)
    assert_allclose(
        display.rest_.get_data().values[1:-1], np.maximum(0.0, inside[1] - positives), atol=1e-9
    )
    assert display.unlabeled_.get_data().values.sum() == 1000  # none lost outside
    with pytest.raises(NotFittedError):
        ScoreDisplay.from_estimator(AutoPrior())
    other = ScoreDisplay.from_result(auto_prior(*separated, **options), prior=0.5)
    assert_allclose(other.positives_.get_data().values.sum(), 500.0)


def test_draws_scores_that_are_all_the_same():
    display = ScoreDisplay(positive=[0.0, 0.0], unlabeled=[0.0] * 7, prior=1.0).plot()
    assert display.unlabeled_.get_data().values.max() == 7
    assert display.rest_.get_data().values.max() == 0.0


def test_an_estimator_without_an_objective_is_sent_elsewhere(separated):
    X, y = np.vstack(separated), np.arange(1400) < 400
    with pytest.raises(TypeError, match=r"got a ElkanNotoPrior, which has none.* TailDisplay"):
        ObjectiveDisplay.from_estimator(ElkanNotoPrior(random_state=0).fit(X, y))
