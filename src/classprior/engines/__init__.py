"""Rows beyond memory: fits in blocks, on threads, processes or a cluster."""

from classprior.engines._fit import fit_blocks

__all__ = ["fit_blocks"]
