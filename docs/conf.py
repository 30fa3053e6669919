"""Settings of the documentation: ``make docs``."""

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

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
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
    # In docs/extensions.
    "api_pages",
    "calibration_table",
    "mathml",
    "method_pages",
    "method_table",
    "references",
    "rubric_table",
    "source_text",
]

# Notebooks are committed without outputs, so that what is shown is what the code gives.
nb_execution_mode = os.environ.get("BAYESRANK_DOCS_NOTEBOOKS", "cache")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
# The pages have no kernel, and ask no other server for scripts: widgets show their HTML.
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]
nb_ipywidgets_js: dict[str, Any] = {}

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist", "attrs_block", "attrs_inline"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
# A reference to what does not exist is a warning, and `make docs` makes warnings errors.
nitpicky = True

numpydoc_show_class_members = False
numpydoc_xref_param_type = False
autodoc_typehints = "none"  # numpydoc shows the types that the docstrings name
autodoc_member_order = "bysource"

bibtex_bibfiles = ["../bayesrank/references.bib"]
bibtex_reference_style = "author_year"
bibtex_default_style = "unsrt"

sphinx_gallery_conf = {
    "examples_dirs": "gallery_code",
    "gallery_dirs": "gallery",
    "filename_pattern": "plot_",
    "image_scrapers": ("figure_scraper",),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 60,
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": (),
    "abort_on_example_error": True,
}

exclude_patterns = [
    "_build",
    "**.ipynb_checkpoints",
    "extensions",
    "gallery_code",
    "gallery/*.ipynb",
    "gallery/*.py",
    "gallery/sg_execution_times.rst",
    "sg_execution_times.rst",
    "*.partial",
]
html_theme = "pydata_sphinx_theme"
html_title = "bayesrank"
html_static_path = ["static"]
html_css_files = ["tables.css", "pages.css"]
html_theme_options: dict[str, Any] = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 8,
    # Pages that are wide tables have the width of their two or three headings too.
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        **{page: [] for page in ("papers", "rankllm", "comparison", "methods")},
    },
}
# Several versions side by side: the address of a switcher.json, such as docs/static/switcher.json
# on the server of the documentation.
SWITCHER = os.environ.get("BAYESRANK_DOCS_SWITCHER")
if SWITCHER:
    html_theme_options["switcher"] = {"json_url": SWITCHER, "version_match": version}
    html_theme_options["check_switcher"] = False
    html_theme_options["navbar_start"] = ["navbar-logo", "version-switcher"]
html_show_sourcelink = False
# Pages without a section have the width for themselves, and notebooks, whose tables are wide.
html_sidebars = {
    page: []
    for page in (
        *("index", "quickstart", "methods", "calibration", "notebooks/*"),
        *("papers", "rankllm", "formats", "comparison", "genindex"),
    )
}
