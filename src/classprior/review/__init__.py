"""Which rows a person should look at, and what the rows that were looked at prove."""

from __future__ import annotations

from classprior.review._checked import evaluate_review
from classprior.review._design import Design, Forecast
from classprior.review._limits import limits_of_count
from classprior.review._plan import ReviewPlan, load_plan
from classprior.review._planning import plan_review
from classprior.review._results import (
    CheckedEstimate,
    CutoffResult,
    Limits,
    ReliabilityBin,
    SegmentCount,
)
from classprior.review._sheet import (
    check_sheet_path,
    plan_of_random_sample,
    plan_path,
    read_sheets,
    write_sheet,
)

__all__ = [
    "CheckedEstimate",
    "CutoffResult",
    "Design",
    "Forecast",
    "Limits",
    "ReliabilityBin",
    "ReviewPlan",
    "SegmentCount",
    "check_sheet_path",
    "evaluate_review",
    "limits_of_count",
    "load_plan",
    "plan_of_random_sample",
    "plan_path",
    "plan_review",
    "read_sheets",
    "write_sheet",
]
