"""The table of methods and their short names."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple


class Method(NamedTuple):
    """A method of prior estimation, imported when it is first used."""

    module: str
    name: str
    parameters: Mapping[str, Any] = MappingProxyType({})  # fixed parameters of the class
    over_estimates: bool = False  # whether the estimate is too high if the classes overlap
    takes_blocks: bool = False  # whether it can use more rows than fit in memory
    has_centers: bool = True  # whether it has a parameter n_centers
    allows_bias: bool = False  # whether labels may favor some kinds of positives
    has_kernel: bool = True  # whether it works on Gaussian kernels, which need few columns

    def __call__(self, **options: Any) -> Any:
        """Return the estimator with the given parameters."""
        estimator = getattr(import_module(f"classprior.priors.{self.module}"), self.name)
        return estimator(**{**self.parameters, **options})


#: The method for scores that the user has; not among METHODS, which all take the same rows.
SCORES = "scores"
METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "auto": Method(
            "_auto", "AutoPrior", takes_blocks=True, has_centers=False, has_kernel=False
        ),
        "penl1": Method("_penalized_l1", "PenalizedL1Prior", takes_blocks=True),
        "l1": Method("_divergence", "DivergencePrior", {"penalized": False}, over_estimates=True),
        "pen-kl": Method("_divergence", "DivergencePrior", {"divergence": "kl"}),
        "pen-pearson": Method("_divergence", "DivergencePrior", {"divergence": "pearson"}),
        "kl": Method(
            "_divergence",
            "DivergencePrior",
            {"divergence": "kl", "penalized": False},
            over_estimates=True,
        ),
        "pearson": Method(
            "_divergence",
            "DivergencePrior",
            {"divergence": "pearson", "penalized": False},
            over_estimates=True,
        ),
        "en": Method("_elkan_noto", "ElkanNotoPrior", over_estimates=True, has_centers=False),
        "pe": Method("_pearson", "PearsonPrior", over_estimates=True, takes_blocks=True),
        "sb": Method("_scott_blanchard", "ScottBlanchardPrior"),
        "subtypes": Method(
            "_subtypes", "SubtypePrior", has_centers=False, has_kernel=False, allows_bias=True
        ),
        "dedpul": Method("_dedpul", "DEDPULPrior", has_centers=False, has_kernel=False),
        "bbe": Method("_best_bin", "BestBinPrior", has_centers=False, has_kernel=False),
        "tice": Method("_tice", "TIcEPrior", has_centers=False, has_kernel=False),
        "km1": Method("_kernel_mean", "KernelMeanPrior", {"threshold": "km1"}, has_centers=False),
        "km2": Method("_kernel_mean", "KernelMeanPrior", {"threshold": "km2"}, has_centers=False),
        "recpe": Method("_recpe", "ReCPEPrior", has_centers=False),
    }
)
