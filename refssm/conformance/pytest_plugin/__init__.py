"""pytest: a function marked `refssm` is an implementation, and each check of it is an item.

    @pytest.mark.refssm("linear_scan", framework="torch", vjp=True)
    def my_scan(a, b): ...

    pytest -k "my_scan and value"           # test_scan.py::my_scan::value[float32]
    pytest --refssm-profile quick

The mark has the arguments of `refssm.testing.implements`; `vjp` may also be a function that
computes the gradient; `where="re(w)=-100..-0.001"` limits what is drawn;
`xfail={"gradient[complex64]": "why"}` expects one check to fail. Of
[tool.refssm] in pyproject.toml, profile, seed, dtypes, checks, allow-thin and known-failures apply
here too; the mark and the command line override them.

A mark or a setting that is wrong is an item too: it fails, and the rest of the suite runs.
"""

import pytest

from refssm.conformance.calling.attributes import marks_of


def pytest_addoption(parser):
    """Add the options for the profile and the seed."""
    group = parser.getgroup("refssm", "checks of implementations of state-space operators")
    group.addoption(
        "--refssm-profile",
        choices=("quick", "default", "thorough"),
        default=None,
        help="how many cases each check runs",
    )
    group.addoption("--refssm-seed", type=int, default=None, help="the seed of the random cases")
    group.addoption(
        "--refssm-allow-thin",
        action="store_true",
        default=None,
        help="checks that could judge only few cases do not fail",
    )


def pytest_configure(config):
    """Register the mark."""
    line = "refssm(operator, **declared): this function is an implementation of the operator"
    config.addinivalue_line("markers", line)


def pytest_pycollect_makeitem(collector, name, obj):
    """Turn a marked function into a node whose items are its checks."""
    marks = marks_of(obj)
    if not marks or not callable(obj):
        return None
    from refssm.conformance.pytest_plugin.collecting import Implementation  # in marked files only

    method = isinstance(collector, pytest.Class)
    return Implementation.from_parent(
        collector, name=name, function=obj, marks=marks, method=method
    )
