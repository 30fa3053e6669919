"""Settings of the documentation: ``make docs``."""

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

project = "bayesrank"
author = "The bayesrank developers"
project_copyright = "The bayesrank developers, Apache-2.0"
release = version = installed_version("bayesrank")

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinxcontrib.bibtex",
    # In docs/extensions.
    "api_pages",
    "method_table",
    "rubric_table",
    "source_text",
]

# Notebooks are committed without outputs, so that what is shown is what the code gives.
nb_execution_mode = os.environ.get("BAYESRANK_DOCS_NOTEBOOKS", "cache")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3

numpydoc_show_class_members = False
numpydoc_xref_param_type = False
autodoc_typehints = "none"  # numpydoc shows the types that the docstrings name
autodoc_member_order = "bysource"

bibtex_bibfiles = ["../bayesrank/references.bib"]
bibtex_reference_style = "author_year"
bibtex_default_style = "unsrt"

exclude_patterns = ["_build", "**.ipynb_checkpoints", "extensions", "*.partial"]
html_theme = "pydata_sphinx_theme"
html_title = "bayesrank"
html_static_path = ["static"]
html_css_files = ["tables.css"]
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
}
html_show_sourcelink = False
# Pages without a section have the width for themselves.
html_sidebars = {page: [] for page in ("index", "quickstart", "methods")}
