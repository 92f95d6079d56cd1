"""How many positives hide in your unlabeled data."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from classprior import (
        datasets,
        divergences,
        engines,
        metrics,
        plotting,
        report,
        sensitivity,
        theory,
    )
    from classprior._classifier import PUClassifier
    from classprior._density_ratio import DensityRatio, density_ratio
    from classprior.estimate import PriorEstimate, estimate_prior
    from classprior.priors import (
        AutoPrior,
        AutoResult,
        DivergencePrior,
        ElkanNotoPrior,
        PearsonPrior,
        PenalizedL1Prior,
        PriorCurve,
        PriorResult,
        RejectionCurve,
        ScottBlanchardPrior,
        auto_prior,
        divergence_prior,
        elkan_noto_prior,
        pearson_prior,
        penalized_l1,
        scott_blanchard_prior,
    )

__all__ = [
    "AutoPrior",
    "AutoResult",
    "DensityRatio",
    "DivergencePrior",
    "ElkanNotoPrior",
    "PUClassifier",
    "PearsonPrior",
    "PenalizedL1Prior",
    "PriorCurve",
    "PriorEstimate",
    "PriorResult",
    "RejectionCurve",
    "ScottBlanchardPrior",
    "auto_prior",
    "datasets",
    "density_ratio",
    "divergence_prior",
    "divergences",
    "elkan_noto_prior",
    "engines",
    "estimate_prior",
    "metrics",
    "pearson_prior",
    "penalized_l1",
    "plotting",
    "report",
    "scott_blanchard_prior",
    "sensitivity",
    "theory",
]

__version__ = "0.1.0.dev0"

# Where the names above live that are no modules themselves.
_HOMES = ("estimate", "priors", "_classifier", "_density_ratio")


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for: ``--help`` has no time for scikit-learn."""
    if not name.startswith("__") and find_spec(f"{__name__}.{name}"):
        return import_module(f"{__name__}.{name}")
    homes = map(import_module, (f"{__name__}.{home}" for home in _HOMES if name in __all__))
    for home in homes:
        if hasattr(home, name):
            return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
