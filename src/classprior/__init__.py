"""How many positives hide in your unlabeled data, and which rows they are."""

from classprior.priors import PenalizedL1Prior, PriorCurve, penalized_l1

__all__ = ["PenalizedL1Prior", "PriorCurve", "penalized_l1"]

__version__ = "0.1.0.dev0"
