"""Save fitted models, and load them from files that need not be trusted."""

from classprior.saving.models import SavedModel, load_model, save_model

__all__ = ["SavedModel", "load_model", "save_model"]
