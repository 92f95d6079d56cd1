"""Estimate how many positives hide in your unlabeled data, and find out which rows they are."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from classprior import (
        datasets,
        divergences,
        engines,
        metrics,
        plotting,
        priors,
        report,
        review,
        sensitivity,
        theory,
    )
    from classprior._tables.encoder import TableEncoder
    from classprior.classifier import PUClassifier
    from classprior.density_ratio import DensityRatio
    from classprior.estimate import estimate_prior
    from classprior.estimation import Estimation
    from classprior.priors._auto import AutoPrior
    from classprior.priors._divergence import DivergencePrior
    from classprior.priors._elkan_noto import ElkanNotoPrior
    from classprior.priors._pearson import PearsonPrior
    from classprior.priors._penalized_l1 import PenalizedL1Prior
    from classprior.priors._scott_blanchard import ScottBlanchardPrior
    from classprior.result import PriorEstimate

__all__ = [
    "AutoPrior",
    "DensityRatio",
    "DivergencePrior",
    "ElkanNotoPrior",
    "Estimation",
    "PUClassifier",
    "PearsonPrior",
    "PenalizedL1Prior",
    "PriorEstimate",
    "ScottBlanchardPrior",
    "TableEncoder",
    "datasets",
    "divergences",
    "engines",
    "estimate_prior",
    "metrics",
    "plotting",
    "priors",
    "report",
    "review",
    "sensitivity",
    "theory",
]
__version__ = "0.1.0"

# Module of each public name that is not a module itself.
_HOMES = {
    "AutoPrior": "priors._auto",
    "ColumnTreatment": "_tables.columns",
    "DensityRatio": "density_ratio",
    "DivergencePrior": "priors._divergence",
    "ElkanNotoPrior": "priors._elkan_noto",
    "Estimation": "estimation",
    "Importance": "_scores.by_column",
    "PUClassifier": "classifier",
    "PearsonPrior": "priors._pearson",
    "PenalizedL1Prior": "priors._penalized_l1",
    "PriorEstimate": "result",
    "Reason": "_scores.by_column",
    "ScottBlanchardPrior": "priors._scott_blanchard",
    "TableEncoder": "_tables.encoder",
    "estimate_prior": "estimate",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that ``--help`` does not import scikit-learn."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
