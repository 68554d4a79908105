"""The site that `make docs` builds from the Markdown of `docs`; no page is written twice.

`stage.py` copies the pages into a build folder and makes links, citations and formulas of them that
Sphinx knows; `conf.py` is Sphinx's own file. Only `conf.py` and the build need Sphinx.
"""
