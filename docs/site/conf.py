"""Sphinx's settings of the site; `python -m docs.site.stage` has written the pages before."""

import os

project = "refssm"
copyright = "the refssm developers, BSD-3-Clause; formulas by MathJax, Apache-2.0"
release = os.environ.get("REFSSM_VERSION", "")
extensions = ["myst_parser", "sphinx.ext.mathjax", "sphinxcontrib.bibtex"]
exclude_patterns = []
source_suffix = {".md": "markdown"}
nitpicky = True  # a reference that finds nothing is a warning, and warnings are errors

myst_heading_anchors = 6
myst_enable_extensions = ["attrs_inline"]
highlight_language = "text"
suppress_warnings = ["myst.header"]  # a page may go from its title to a table

bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"
bibtex_default_style = "plain"

# one file without fonts: every formula is an SVG, so nothing is read from a network
mathjax_path = "mathjax.js"
mathjax3_config = {"options": {"enableMenu": False}, "svg": {"fontCache": "local"}}

html_theme = "furo"
html_title = "refssm"
html_static_path = ["_static"]
html_extra_path = ["_extra"]
html_css_files = ["site.css"]
html_js_files = ["filter.js"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"font-stack": "system-ui, sans-serif"},
    "dark_css_variables": {"font-stack": "system-ui, sans-serif"},
}
