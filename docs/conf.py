"""Configuration of the documentation site."""

import os
import warnings

import matplotlib as mpl
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

import classprior

mpl.use("Agg")
# Examples that show a warning print it; a page is no place for a stack of log lines.
warnings.filterwarnings("ignore", category=UserWarning, module="classprior")
os.environ["COLUMNS"] = "96"

project = "classprior"
author = copyright = "The classprior developers"
version = release = classprior.__version__
extensions = [
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "gallery/**/*.ipynb"]
templates_path = ["_templates"]
suppress_warnings = ["ref.ref"]  # docstrings inherited from scikit-learn point into its own docs

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "substitution"]
myst_substitutions = {"version": release}
myst_heading_anchors = 3

smartquotes = False  # "--out" stays as it is typed
autodoc_typehints = "none"
autosummary_generate = True
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

plot_basedir = "."
plot_formats = [("png", 144)]
plot_html_show_formats = plot_html_show_source_link = False
plot_rcparams = {"figure.constrained_layout.use": True, "font.size": 10}
plot_apply_rcparams = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("classprior",),
    "reference_url": {"classprior": None},
    "ignore_pattern": r"__init__\.py|spark_rows\.py",
    "subsection_order": [
        f"../examples/{name}" for name in ("first_steps", "trust", "methods", "practice")
    ],
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "ignore_repr_types": "matplotlib",  # what a call such as ax.legend() returns
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
    "min_reported_time": 5,
}

html_math_renderer = "mathml"  # browsers render it themselves, offline too
html_theme = "pydata_sphinx_theme"
html_title = "classprior"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "classprior"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# Pages without siblings have nothing to show in the section navigation.
html_sidebars = {page: [] for page in ("index", "changes", "contributing")}


def _escape_patterns(app: object, context: object, lines: list[str]) -> None:
    """Keep the asterisks of file patterns in the help texts from starting emphasis."""
    lines[:] = [line.replace("*", r"\*") for line in lines]


def _format_examples(app: object, context: object, lines: list[str]) -> None:
    """Show the examples of a help text as code."""
    texts = [line.removeprefix("|").strip() for line in lines]
    commands = [f"   {text}" for text in texts if text.startswith("classprior ")]
    if commands:
        lines[:] = ["Examples:", "", ".. code-block:: console", "", *commands, ""]


def _write_mathml(translator: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    as_block = isinstance(node, nodes.math_block)
    translator.body.append(tex2mathml(node.astext(), as_block=as_block))
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.connect("sphinx-click-process-description", _escape_patterns)
    app.connect("sphinx-click-process-epilog", _format_examples)
    app.add_html_math_renderer("mathml", (_write_mathml, None), (_write_mathml, None))
