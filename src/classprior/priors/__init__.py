"""Prior estimators, one per module.

Those of the paper and :class:`classprior.AutoPrior` are imported from ``classprior``, the others
from here.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from classprior.priors._best_bin import BestBinPrior
    from classprior.priors._dedpul import DEDPULPrior
    from classprior.priors._kernel_mean import KernelMeanPrior
    from classprior.priors._recpe import ReCPEPrior
    from classprior.priors._score import ScorePrior
    from classprior.priors._subtypes import SubtypePrior
    from classprior.priors._tice import TIcEPrior

__all__ = [
    "BestBinPrior",
    "DEDPULPrior",
    "KernelMeanPrior",
    "ReCPEPrior",
    "ScorePrior",
    "SubtypePrior",
    "TIcEPrior",
]

_HOMES = {
    "BestBinPrior": "_best_bin",
    "DEDPULPrior": "_dedpul",
    "KernelMeanPrior": "_kernel_mean",
    "ReCPEPrior": "_recpe",
    "ScorePrior": "_score",
    "SubtypePrior": "_subtypes",
    "TIcEPrior": "_tice",
}


def __getattr__(name: str) -> Any:
    """Import an estimator on first use."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
