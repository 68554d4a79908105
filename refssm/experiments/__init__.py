"""Experiments that show what the theory says, one file for each.

`measured(seed=…, quick=…, track=…)` computes, `tables(result)` says it in numbers and
`draw(output, result)` in a picture. `track` is given what a loop runs over, and gives it on: the
command shows there how far it is. The same seed gives the same numbers.
"""
