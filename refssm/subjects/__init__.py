"""Other people's libraries as implementations of the catalog, one small file each.

If a library has two functions for one operator, they are in two files, because a target has at most
one implementation of each operator.
"""


def constant_in_time(x):
    """The case with every decay that of the first step: for filters with fixed coefficients."""
    a = x["a"].copy()
    a[...] = a[..., :1, :]
    return {**x, "a": a}
