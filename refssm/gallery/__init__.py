"""Pictures, one file for each kind: what is drawn is computed by one function and drawn by another.

The only place that imports matplotlib. `draw(output, …)` writes a PNG or SVG file; the same
arguments give the same bytes.
"""
