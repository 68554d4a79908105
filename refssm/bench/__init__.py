"""`refssm bench`: time, memory and accuracy of implementations, side by side in one run.

`work/` says what is timed and at which sizes, `programs/` finds implementations and calls them,
`measuring/` measures, `results/` has the rows, the file, and comparisons. `run.py` joins them.
"""
