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
    summary: str  # how it works, in a few words
    parameters: Mapping[str, Any] = MappingProxyType({})  # fixed parameters of the class
    over_estimates: bool = False  # whether the estimate is too high if the classes overlap
    has_centers: bool = True  # whether it has a parameter n_centers
    allows_bias: bool = False  # whether labels may favor some kinds of positives
    has_interval: bool = False  # whether it has an interval of its own, which allows for overlap
    has_kernel: bool = True  # whether it works on Gaussian kernels, which need few columns
    is_slow: bool = False  # whether it iterates for seconds, even with a thousand rows
    compared_rows: int | None = None  # most rows of each sample in a comparison; None for all

    def __call__(self, **options: Any) -> Any:
        """Return the estimator with the given parameters."""
        return self.estimator(**{**self.parameters, **options})

    @property
    def estimator(self) -> Any:
        """The class of the estimator."""
        return getattr(import_module(f"classprior.priors.{self.module}"), self.name)


#: In a comparison, methods that would take minutes get random rows of each sample. With so many,
#: none took longer than 20 seconds of processor time.
_MANY, _FEW = 100_000, 1_000
#: The method for scores that the user has; not among METHODS, which all take the same rows.
SCORES = "scores"
RECOMMENDED = "auto"
#: Those that assume least come first; those that overestimate if the classes overlap come last.
METHODS: Mapping[str, Method] = MappingProxyType(
    {
        RECOMMENDED: Method(
            "_auto",
            "AutoPrior",
            "tails of the scores of several classifiers",
            has_interval=True,
            has_centers=False,
            has_kernel=False,
        ),
        "subtypes": Method(
            "_subtypes",
            "SubtypePrior",
            "tails of scores, for each cluster of the known positives",
            has_interval=True,
            has_centers=False,
            has_kernel=False,
            allows_bias=True,
        ),
        "dedpul": Method(
            "_dedpul",
            "DEDPULPrior",
            "ratio of the densities of classifier scores",
            has_centers=False,
            has_kernel=False,
            compared_rows=_MANY,
        ),
        "bbe": Method(
            "_best_bin",
            "BestBinPrior",
            "one tail of scores, with the smallest confidence limit",
            has_centers=False,
            has_kernel=False,
            compared_rows=_MANY,
        ),
        "sb": Method(
            "_scott_blanchard",
            "ScottBlanchardPrior",
            "slope of the ROC curve at its end",
            compared_rows=_MANY,
        ),
        "tice": Method(
            "_tice",
            "TIcEPrior",
            "lower bounds on the label frequency in nodes of trees",
            has_centers=False,
            has_kernel=False,
            compared_rows=_MANY,
        ),
        "penl1": Method(
            "_penalized_l1",
            "PenalizedL1Prior",
            "matching with the penalized L1 distance",
        ),
        "pen-pearson": Method(
            "_divergence",
            "DivergencePrior",
            "matching with the penalized Pearson divergence",
            {"divergence": "pearson"},
            is_slow=True,
            compared_rows=_FEW,
        ),
        "pen-kl": Method(
            "_divergence",
            "DivergencePrior",
            "matching with the penalized Kullback-Leibler divergence",
            {"divergence": "kl"},
            is_slow=True,
            compared_rows=_FEW,
        ),
        "km1": Method(
            "_kernel_mean",
            "KernelMeanPrior",
            "kernel means of up to 500 rows; threshold from their number",
            {"threshold": "km1"},
            has_centers=False,
        ),
        "km2": Method(
            "_kernel_mean",
            "KernelMeanPrior",
            "kernel means of up to 500 rows; threshold from the curve",
            {"threshold": "km2"},
            has_centers=False,
        ),
        "recpe": Method(
            "_recpe",
            "ReCPEPrior",
            "km2 with the least positive rows copied to the positives",
            has_centers=False,
            compared_rows=_MANY,
        ),
        "en": Method(
            "_elkan_noto",
            "ElkanNotoPrior",
            "probability that a positive is labeled",
            over_estimates=True,
            has_centers=False,
            compared_rows=_MANY,
        ),
        "pe": Method(
            "_pearson",
            "PearsonPrior",
            "matching with the Pearson divergence, in closed form",
            over_estimates=True,
        ),
        "pearson": Method(
            "_divergence",
            "DivergencePrior",
            "matching with the Pearson divergence",
            {"divergence": "pearson", "penalized": False},
            over_estimates=True,
            compared_rows=_FEW,
        ),
        "l1": Method(
            "_divergence",
            "DivergencePrior",
            "matching with the L1 distance",
            {"penalized": False},
            over_estimates=True,
            compared_rows=_FEW,
        ),
        "kl": Method(
            "_divergence",
            "DivergencePrior",
            "matching with the Kullback-Leibler divergence; always 1",
            {"divergence": "kl", "penalized": False},
            over_estimates=True,
            is_slow=True,
            compared_rows=_FEW,
        ),
    }
)
