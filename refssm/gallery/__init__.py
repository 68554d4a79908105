"""Pictures, one file per kind: one function computes the data, another draws it.

Only this package imports matplotlib. `draw(output, …)` writes a PNG or SVG file; the same arguments
give the same bytes.
"""
