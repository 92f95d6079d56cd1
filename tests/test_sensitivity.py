"""Sensitivity of estimates to parameters and to foreign positives."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, DensityRatio, PenalizedL1Prior, PUClassifier, estimate_prior
from classprior.plotting import SensitivityDisplay
from classprior.sensitivity import (
    SensitivityCurve,
    label_bias_curve,
    label_bias_test,
    sensitivity_curve,
)

PRIOR = 0.3


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    known = rng.normal(0, 1, (400, 2))
    return known, np.vstack([rng.normal(0, 1, (300, 2)), rng.normal(4, 1, (700, 2))])


def test_each_value_is_the_fit_with_that_value(samples):
    curve = sensitivity_curve(
        PenalizedL1Prior(),
        *samples,
        param_name="sigmas",
        param_range=[0.5, 2.0],
        n_repeats=2,
        random_state=2**32 - 1,  # after the greatest seed comes 0
    )
    expected = [
        [
            PenalizedL1Prior(sigmas=[s], random_state=seed).fit_samples(*samples).prior_
            for seed in (2**32 - 1, 0)
        ]
        for s in (0.5, 2.0)
    ]
    np.testing.assert_array_equal(curve.priors, expected)
    assert curve.error_rates is None


def test_foreign_positives_move_the_estimate_as_the_mixture_says(samples):
    shares = np.array([0.0, 0.2, 0.4])
    curve = sensitivity_curve(
        AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1, n_resamples=20),
        *samples,
        param_name="foreign_positives",
        param_range=shares,
        n_repeats=4,
        random_state=0,
    )
    expected = PRIOR / (1.0 - shares * (1.0 - PRIOR))  # .3, .349, .417
    np.testing.assert_allclose(curve.priors.mean(axis=1), expected, atol=0.035)
    assert np.all(np.diff(curve.priors.mean(axis=1)) > 0.0)


@pytest.mark.filterwarnings("ignore:No unlabeled row is classified as positive")
def test_a_classifier_has_an_error_rate_where_the_truth_is_known(samples):
    model = PUClassifier(prior=PRIOR, ratio=DensityRatio())
    truth = np.arange(1000) < 300
    options = {"param_name": "ratio__sigmas", "param_range": [0.01, 1.5], "n_repeats": 1}
    curve = sensitivity_curve(model, *samples, is_positive=truth, random_state=5, **options)
    for value, rate in zip([0.01, 1.5], curve.error_rates[:, 0], strict=True):
        ratio = DensityRatio(sigmas=[value], random_state=5)
        fitted = PUClassifier(prior=PRIOR, ratio=ratio).fit_samples(*samples)
        assert rate == np.mean(fitted.predict(samples[1]) != truth)
    assert sensitivity_curve(model, *samples, random_state=0, **options).error_rates is None


def test_the_error_rate_leaves_foreign_positives_out(samples):
    # A classifier that calls nothing positive errs on the positives that are still unlabeled.
    curve = sensitivity_curve(
        PUClassifier(prior=0.0, ratio=LogisticRegression()),
        *samples,
        param_name="foreign_positives",
        param_range=[0.0, 0.5],
        is_positive=np.arange(1000) < 300,
        n_repeats=1,
        random_state=0,
    )
    left = 1000 - 200
    assert curve.error_rates[0, 0] == 0.3
    assert (curve.error_rates[1, 0] * left) == pytest.approx(round(curve.error_rates[1, 0] * left))
    assert abs(curve.error_rates[1, 0] - 0.3) < 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"param_name": "sigma", "param_range": [1.0]}, "PenalizedL1Prior.*'sigma'"),
        ({"param_name": "foreign_positives", "param_range": [1.0]}, "foreign_positives == 1.0"),
        ({"param_name": "n_centers", "param_range": []}, "param_range"),
        (
            {"param_name": "n_centers", "param_range": [9], "is_positive": [True]},
            r"is_positive.*1000.*\(1,\)",
        ),
    ],
)
def test_bad_input_is_refused(samples, options, message):
    with pytest.raises(ValueError, match=message):
        sensitivity_curve(PenalizedL1Prior(), *samples, **options)


def test_foreign_positives_must_be_had(samples):
    options = {"param_name": "foreign_positives", "param_range": [0.0, 0.5]}
    with pytest.raises(ValueError, match=r"300 unlabeled rows.* 0\.5 of 400 positives.* 200"):
        sensitivity_curve(PenalizedL1Prior(), samples[0], samples[1][:300], **options)


def test_the_display_shows_mean_and_range():
    curve = SensitivityCurve(
        param_name="lams",
        param_range=(0.01, 1.0),
        priors=np.array([[0.2, 0.4], [0.5, 0.5]]),
        error_rates=np.array([[0.1, 0.1], [0.2, 0.3]]),
    )
    display = SensitivityDisplay.from_curve(curve, truth=0.3)
    np.testing.assert_allclose(display.lines_["estimate"].get_ydata(), [0.3, 0.5])
    np.testing.assert_allclose(display.lines_["error rate"].get_ydata(), [0.1, 0.25])
    assert display.ax_.get_xscale() == "log"


def test_values_that_are_no_numbers_are_named_on_the_axis():
    curve = SensitivityCurve(
        param_name="n_centers",
        param_range=(100, None),
        priors=np.full((2, 1), 0.3),
        error_rates=None,
    )
    ax = SensitivityDisplay.from_curve(curve).ax_
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["100", "None"]


# Biased labels -----------------------------------------------------------------------------------

LINEAR = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=2, n_resamples=20)


def of_two_kinds(known, hidden, n_negative, seed):
    """Easy positives score highest, hard ones come next, negatives are apart from both."""
    rng = np.random.default_rng(seed)
    easy, hard, negative = (
        rng.uniform(low, low + 1.0, (n, 1))
        for low, n in ((4.0, known[0] + hidden[0]), (2.0, known[1] + hidden[1]), (0.0, n_negative))
    )
    known_rows = np.vstack([easy[: known[0]], hard[: known[1]]])
    return known_rows, np.vstack([easy[known[0] :], hard[known[1] :], negative])


def test_the_curve_finds_the_share_at_the_true_factor():
    """Hidden one to one, labeled two to one: the factor is 2, the share 0.4."""
    found = []
    for seed in range(5):
        samples = of_two_kinds((3200, 1600), (3200, 3200), 9600, seed)
        fitted = LINEAR.set_params(random_state=seed).fit_samples(*samples)
        found.append(label_bias_curve(fitted, factors=[1, 2]).priors[:, 0])
    np.testing.assert_allclose(np.mean(found, axis=0), [0.3, 0.4], rtol=0.04)


def test_the_curve_is_the_estimate_at_factor_one_and_rises():
    samples = of_two_kinds((200, 100), (200, 200), 600, 0)
    estimate = estimate_prior(*samples, evidence=LINEAR, random_state=0)
    curve = label_bias_curve(estimate)
    assert curve.param_name == "label_bias"
    assert curve.param_range == (0.25, 0.5, 1.0, 2.0, 4.0)
    assert curve.priors[2, 0] == estimate.prior
    assert np.all(np.diff(curve.priors[:, 0]) > 0.0)
    # At factor c, a tail with a share s of the positives counts (s + c(1 - s)) times as much.
    assert curve.priors[-1, 0] <= 4.0 * estimate.prior
    assert SensitivityDisplay.from_curve(curve).ax_.get_xscale() == "log"
    assert label_bias_curve(estimate, factors=[1e9]).priors[0, 0] <= 1.0


def test_the_curve_refuses_what_it_cannot_use():
    with pytest.raises(TypeError, match="PenalizedL1Prior"):
        label_bias_curve(PenalizedL1Prior())
    fitted = LINEAR.fit_samples(*of_two_kinds((50, 50), (50, 50), 100, 0))
    with pytest.raises(ValueError, match="factors"):
        label_bias_curve(fitted, factors=[])
    with pytest.raises(ValueError, match="factors == 0"):
        label_bias_curve(fitted, factors=[0])


def test_biased_labels_are_seen():
    biased = of_two_kinds((600, 200), (200, 600), 900, 0)
    fair = of_two_kinds((200, 200), (300, 300), 900, 0)
    found = label_bias_test(*biased, evidence=LINEAR, random_state=0)
    assert found.p_value < 0.01
    assert len(found.labeled_shares) == len(found.found) == len(found.expected) > 1
    assert label_bias_test(*fair, evidence=LINEAR, random_state=0).p_value > 0.05
    again = label_bias_test(*biased, evidence=LINEAR, random_state=0)
    assert again.p_value == found.p_value
