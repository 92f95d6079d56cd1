import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, PenalizedL1Prior
from classprior._samples.samples import Samples
from classprior._samples.units import Units
from classprior._scores.crossfit import out_of_fold_scores
from classprior.priors import BestBinPrior, KernelMeanPrior, ReCPEPrior
from classprior.priors._recpe import _regrouped

LINEAR = LogisticRegression()


def test_rows_that_look_least_positive_are_copied(separated):
    fitted = ReCPEPrior(
        estimator=BestBinPrior(), classifier=LINEAR, fraction=0.05, random_state=0
    ).fit_samples(*separated)
    _, scores = out_of_fold_scores(Samples.of_rows(*separated, 0), LINEAR, 5)
    assert len(fitted.copied_) == 50
    assert scores[fitted.copied_].max() <= np.partition(scores, 50)[50]
    assert fitted.estimator_.prior_ == fitted.prior_


@pytest.mark.parametrize(
    "estimator",
    [PenalizedL1Prior(), KernelMeanPrior(max_rows=100), BestBinPrior(classifier=LINEAR)],
)
def test_estimate_is_that_of_the_regrouped_samples(estimator, separated):
    fitted = ReCPEPrior(estimator=estimator, classifier=LINEAR, random_state=3).fit_samples(
        *separated
    )
    P, U = separated
    ids = np.arange(400, dtype=np.uint64), np.arange(400, 1400, dtype=np.uint64)
    groups = np.concatenate([ids[0], ids[1][fitted.copied_]]), ids[1]
    by_hand = Samples.of_rows(np.vstack([P, U[fitted.copied_]]), U, 3, units=Units(groups=groups))
    again = clone(estimator)
    again.fit_opened(by_hand)
    assert fitted.prior_ == again.prior_


def test_a_row_and_its_copy_are_in_the_same_fold(separated):
    samples = Samples.of_rows(*separated, 0)
    copied = np.array([3, 500, 999])
    positive, unlabeled = _regrouped(samples, copied).bins_of_rows
    assert_array_equal(positive[-3:], unlabeled[copied])
    groups = np.arange(400, dtype=np.uint64) // 4, np.arange(1000, dtype=np.uint64) // 5
    grouped = _regrouped(Samples.of_rows(*separated, 0, units=Units(groups=groups)), copied)
    assert_array_equal(grouped.units.groups[0][-3:], groups[1][copied])


def test_copies_limit_the_estimate():
    """As many positives as a tenth of the unlabeled rows: at most (n + k) / n' = 0.2."""
    rng = np.random.default_rng(0)
    P = rng.normal(0, 1, (200, 1))
    U = np.r_[rng.normal(0, 1, (1600, 1)), rng.normal(8, 1, (400, 1))]
    base = BestBinPrior(classifier=LINEAR, delta=1.0, random_state=0)
    assert base.fit_samples(P, U).prior_ == pytest.approx(0.8, abs=0.02)
    regrouped = ReCPEPrior(estimator=base, classifier=LINEAR, random_state=0)
    assert regrouped.fit_samples(P, U).prior_ < 0.25


def test_seed_of_the_estimator_is_its_own(separated):
    def prior(seed, of_estimator):
        base = KernelMeanPrior(max_rows=30, random_state=of_estimator)
        fitted = ReCPEPrior(estimator=base, classifier=LINEAR, random_state=seed)
        return fitted.fit_samples(*separated).prior_

    assert prior(0, None) == prior(0, None)
    assert prior(0, 5) != prior(0, None)
    assert prior(0, 5) == prior(1, 5)  # the same rows are copied: the classes hardly touch


def test_any_estimator_of_ours_can_be_wrapped(separated):
    auto = AutoPrior(classifiers={"linear": LINEAR}, n_repeats=1, n_resamples=20)
    fitted = ReCPEPrior(estimator=auto, classifier=LINEAR, random_state=0).fit_samples(*separated)
    assert 0.2 < fitted.prior_ < 0.5
    assert not hasattr(auto, "prior_")


@pytest.mark.parametrize(("fraction", "copied"), [(0.29, 29), (0.295, 29), (0.001, 1), (1.0, 100)])
def test_fractions_are_rounded_down(fraction, copied):
    rng = np.random.default_rng(0)
    fitted = ReCPEPrior(fraction=fraction, estimator=BestBinPrior(), classifier=LINEAR)
    fitted.fit_samples(rng.normal(size=(50, 1)), rng.normal(size=(100, 1)))
    assert len(fitted.copied_) == copied


@pytest.mark.parametrize("fraction", [0.0, 1.5, "all"])
def test_fraction_must_be_a_share(fraction, separated):
    with pytest.raises(ValueError, match="fraction"):
        ReCPEPrior(fraction=fraction).fit_samples(*separated)


def test_estimator_must_estimate_priors(separated):
    with pytest.raises(TypeError, match=r"estimator.*LogisticRegression"):
        ReCPEPrior(estimator=LINEAR).fit_samples(*separated)
