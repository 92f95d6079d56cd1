"""Rows beyond memory: fits and predictions in blocks, on threads, processes or a cluster."""

from classprior.engines._blocks import Block
from classprior.engines._fit import fit_blocks
from classprior.engines._predict import predict_blocks

__all__ = ["Block", "fit_blocks", "predict_blocks"]
