"""All estimators pass scikit-learn's estimator checks, with no expected failures."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from classprior import (
    AutoPrior,
    DensityRatio,
    DivergencePrior,
    ElkanNotoPrior,
    PearsonPrior,
    PenalizedL1Prior,
    PUClassifier,
    ScottBlanchardPrior,
)
from classprior.density_ratio import LeastSquaresClassifier

PRIORS = [
    PenalizedL1Prior(random_state=0),
    AutoPrior(
        classifiers={"linear": LogisticRegression()}, n_repeats=1, n_resamples=20, random_state=0
    ),
    PearsonPrior(n_centers=30, random_state=0),
    DivergencePrior(divergence="pearson", n_centers=30, random_state=0),
    DivergencePrior(penalized=False, n_centers=30, thetas=np.arange(21) / 20, random_state=0),
    ScottBlanchardPrior(n_centers=30, random_state=0),
    ElkanNotoPrior(classifier=LeastSquaresClassifier(n_centers=20, random_state=0), random_state=0),
]
ESTIMATORS = [
    *PRIORS,
    DensityRatio(n_centers=30, random_state=0),
    LeastSquaresClassifier(n_centers=30, random_state=0),
    PUClassifier(prior=PenalizedL1Prior(), ratio=DensityRatio(n_centers=30), random_state=0),
    PUClassifier(
        prior=AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1, n_resamples=20),
        random_state=0,
    ),
]
each_prior = pytest.mark.parametrize("estimator", PRIORS, ids=repr)


@pytest.mark.filterwarnings("ignore:Taking the greater label")
@pytest.mark.filterwarnings("ignore:The raw estimate")
@pytest.mark.filterwarnings("ignore:No unlabeled row is classified as positive")
@pytest.mark.filterwarnings("ignore:.*rows or groups.* cv=")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@each_prior
def test_pipeline_scales_both_samples(estimator, labeled):
    X, y = labeled
    stretched = X * [1.0, 1000.0]
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).fit(stretched, y)
    assert pipeline[-1].prior_ == clone(estimator).fit(StandardScaler().fit_transform(X), y).prior_


@each_prior
def test_pickle_keeps_the_fit(estimator, labeled):
    fitted = clone(estimator).fit(*labeled)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.prior_ == fitted.prior_
    assert vars(again).keys() == vars(fitted).keys()


@each_prior
def test_grid_search_with_a_scoring(estimator, labeled):
    search = GridSearchCV(
        clone(estimator),
        {"cv": [2, 3]},
        scoring=lambda fitted, X, y: -abs(fitted.prior_ - 0.3),
        cv=StratifiedKFold(3),
    ).fit(*labeled)
    scores = search.cv_results_["mean_test_score"]
    assert np.all(scores > -0.1)
    assert search.best_score_ == scores.max()


@each_prior
@pytest.mark.parametrize(
    "labels", [(0, 1), (-1, 1), (False, True), (0.0, 1.0)], ids=["01", "-11", "bool", "float"]
)
def test_one_is_positive_without_a_warning(estimator, labels, labeled):
    X, y = labeled
    fitted = clone(estimator).fit(X, np.array(labels)[y])
    assert fitted.prior_ == clone(estimator).fit(X, y).prior_
    assert fitted.pos_label_ == 1


@each_prior
def test_other_labels_are_named_in_a_warning(estimator, labeled):
    X, y = labeled
    names = np.array(["unlabeled", "labeled"])[y]
    with pytest.warns(UserWarning, match="greater label 'unlabeled' as known positive") as record:
        clone(estimator).fit(X, names)
    assert record[0].filename == __file__  # points at the user's line, not into the library


@each_prior
def test_pos_label_settles_it(estimator, labeled):
    X, y = labeled
    names = np.array(["unlabeled", "labeled"])[y]
    fitted = clone(estimator).set_params(pos_label="labeled").fit(X, names)
    assert fitted.prior_ == clone(estimator).fit(X, y).prior_
    assert fitted.pos_label_ == "labeled"
