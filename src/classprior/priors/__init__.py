"""Estimators of the share of positives in unlabeled data, one method a file."""

from classprior.priors._auto import AutoPrior, AutoResult, auto_prior
from classprior.priors._base import PriorCurve, PriorResult
from classprior.priors._divergence import DivergencePrior, divergence_prior
from classprior.priors._elkan_noto import ElkanNotoPrior, elkan_noto_prior
from classprior.priors._pearson import PearsonPrior, pearson_prior
from classprior.priors._penalized import PenalizedL1Prior, penalized_l1
from classprior.priors._scott_blanchard import (
    RejectionCurve,
    ScottBlanchardPrior,
    scott_blanchard_prior,
)

__all__ = [
    "AutoPrior",
    "AutoResult",
    "DivergencePrior",
    "ElkanNotoPrior",
    "PearsonPrior",
    "PenalizedL1Prior",
    "PriorCurve",
    "PriorResult",
    "RejectionCurve",
    "ScottBlanchardPrior",
    "auto_prior",
    "divergence_prior",
    "elkan_noto_prior",
    "pearson_prior",
    "penalized_l1",
    "scott_blanchard_prior",
]
