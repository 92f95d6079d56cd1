"""Configuration of the documentation site."""

import classprior

project = "classprior"
author = copyright = "The classprior developers"
version = release = classprior.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_title = "classprior"
numpydoc_show_class_members = False
autodoc_typehints = "none"
autosummary_generate = True
myst_heading_anchors = 2
suppress_warnings = ["ref.ref"]  # docstrings inherited from scikit-learn point into its own docs
