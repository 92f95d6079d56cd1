"""Input data: arrays, tables, files and dask collections as two samples of numeric rows."""
