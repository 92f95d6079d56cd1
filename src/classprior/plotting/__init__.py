"""Plots of fitted estimators, in the style of scikit-learn's displays."""

from classprior.plotting._importances import ImportanceDisplay
from classprior.plotting._objective import ObjectiveDisplay
from classprior.plotting._recall import RecallDisplay
from classprior.plotting._rejection import RejectionDisplay
from classprior.plotting._reliability import ReliabilityDisplay
from classprior.plotting._scores import ScoreDisplay
from classprior.plotting._segments import SegmentDisplay
from classprior.plotting._sensitivity import SensitivityDisplay
from classprior.plotting._tails import TailDisplay

__all__ = [
    "ImportanceDisplay",
    "ObjectiveDisplay",
    "RecallDisplay",
    "RejectionDisplay",
    "ReliabilityDisplay",
    "ScoreDisplay",
    "SegmentDisplay",
    "SensitivityDisplay",
    "TailDisplay",
]
