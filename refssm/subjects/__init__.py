"""Other people's libraries as implementations of the catalog: one file a library, or a subject of it.

A file may have several functions of one operator; each is judged under its own name. A library that
one function needs and another does not is a reason for a second file: all of a file's imports must
succeed. A plug-in sees what every author sees, `refssm.testing` and `refssm.adapters`, and nothing
imports a plug-in but by its name. `libraries` and `clones` are the tables of what can be judged, and
`former` the names that plug-ins had before.
"""


def constant_in_time(x):
    """The case with every decay that of the first step: for filters with fixed coefficients."""
    a = x["a"].copy()
    a[...] = a[..., :1, :]
    return {**x, "a": a}
