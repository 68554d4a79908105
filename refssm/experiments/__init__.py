"""Experiments that show results of the theory, one file each.

`measured(seed=…, quick=…, track=…)` computes, `tables(result)` returns the numbers and
`draw(output, result)` draws a picture. `track` wraps the iterable of a loop; the command uses it to
show progress. The same seed gives the same numbers.
"""
