"""Estimators of the share of positives in unlabeled data, one method a file."""

from classprior.priors._base import PriorCurve
from classprior.priors._pearson import PearsonPrior, pearson_prior
from classprior.priors._penalized import PenalizedL1Prior, penalized_l1

__all__ = ["PearsonPrior", "PenalizedL1Prior", "PriorCurve", "pearson_prior", "penalized_l1"]
