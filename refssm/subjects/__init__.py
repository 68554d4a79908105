"""Other people's libraries as implementations of the catalog: one file a library, or a part of one.

A file may have several functions of one operator; each is judged under its own name. All imports of
a file must succeed, so what needs another library has another file. A plug-in sees what every
author sees, `refssm.testing` and `refssm.adapters`. It is found by its name; nothing imports it.
`libraries` and `clones` are the tables of what can be judged by name, and `former` has the names
that plug-ins had before.
"""

import numpy as np


def constant_in_time(x):
    """The case with every decay that of the first step: for filters with fixed coefficients."""
    a = x["a"].copy()
    a[...] = a[..., :1, :]
    return {**x, "a": a}


def some(x):
    """The case if it has a step, or a node: for kernels that are nothing else of length 0."""
    return x if x["l"] else None


def square(x, rows=("q", "k")):
    """The case with as many values as keys, up to 64: for kernels with square states.

    Values are repeated, so kernels that compute 16 or 64 of them at once get so many.
    """
    n = min(x["k"].shape[-1], 64)
    places = np.arange(n) % max(x["v"].shape[-1], 1)
    cut = {name: x[name][..., :n] for name in rows}
    cut["v"] = x["v"][..., places]
    for name in {"S0", "S"} & {*x}:
        cut[name] = x[name][..., :n, places]
    return {**x, **cut}
