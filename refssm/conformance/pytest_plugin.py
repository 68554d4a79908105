"""pytest: a function marked `refssm` is an implementation, and each check of it is an item.

    @pytest.mark.refssm("linear_scan", framework="torch", vjp=True)
    def test_my_scan(a, b):
        return my_scan(a, b)

    pytest -k "test_my_scan and value"      # test_scan.py::test_my_scan::value[float32]
    pytest --refssm-profile quick

The mark takes what `refssm.testing.implements` takes; `vjp` may also be a function, the gradient by
hand; `xfail={"gradient[complex64]": "why"}` expects one check to fail.
"""

from __future__ import annotations

from functools import cached_property
from typing import NoReturn

import pytest

from refssm.conformance.marks import marks_of

OPTIONS = ("profile", "seed", "xfail")


def pytest_addoption(parser):
    """How thoroughly to judge, and with which seed."""
    group = parser.getgroup("refssm", "numerical truth for state-space models")
    group.addoption(
        "--refssm-profile",
        choices=("quick", "default", "thorough"),
        default="default",
        help="how many cases each check takes",
    )
    group.addoption("--refssm-seed", type=int, default=0, help="the seed of all cases")


def pytest_configure(config):
    """Say what the mark is."""
    line = "refssm(operator, **declared): this function is an implementation of the operator"
    config.addinivalue_line("markers", line)


def pytest_pycollect_makeitem(collector, name, obj):
    """A marked function becomes a node whose items are its checks."""
    marks = marks_of(obj)
    if not marks or not callable(obj):
        return None
    if isinstance(collector, pytest.Class):
        raise collector.CollectError(f"{name}: mark a function of the module, not a method")
    return Implementation.from_parent(collector, name=name, function=obj, mark=marks[0])


class Implementation(pytest.Collector):
    """One implementation: its checks, worked out from the catalog without calling it."""

    def __init__(self, *, function, mark, **kwargs):
        super().__init__(**kwargs)
        self.function, self.mark = function, mark
        self.obj = function  # conditions of xfail and skipif look here
        self.own_markers.extend(getattr(function, "pytestmark", []))
        self.keywords.update((m.name, m) for m in self.own_markers)

    @cached_property
    def trial(self):
        """The implementation as the judge holds it."""
        from refssm.conformance.plugin import UsageError
        from refssm.conformance.suite import session_of
        from refssm.testing import _declaration

        told = {k: v for k, v in self.mark.kwargs.items() if k not in OPTIONS}
        by_hand = told.pop("vjp") if callable(told.get("vjp")) else None
        try:
            declared = _declaration(self.mark.args[0] if self.mark.args else "", told)
            session = session_of(
                declared.name,
                self.function,
                by_hand or getattr(self.function, "vjp", None),
                declared,
                self.mark.kwargs.get("profile", self.config.getoption("refssm_profile")),
                self.mark.kwargs.get("seed", self.config.getoption("refssm_seed")),
            )
        except (UsageError, ValueError) as error:
            raise self.CollectError(f"{self.name}: {error}") from None
        return session.trials()[0]

    def collect(self):
        """One item for each check in each type."""
        trial = self.trial
        checks = trial.checks(trial.wanted)
        expected = dict(self.mark.kwargs.get("xfail", {}))
        items, known = [], trial.known()
        for check in checks:
            item = Check.from_parent(self, name=f"{check.name}[{check.dtype}]")
            if item.name in expected:
                item.add_marker(pytest.mark.xfail(reason=expected.pop(item.name)))
            items.append(item)
        expected = {name: why for name, why in expected.items() if name not in known}
        if expected:  # an expectation that matches nothing hides the next failure
            told = ", ".join(known)
            raise self.CollectError(f"{self.name}: xfail names no check: {expected} ({told})")
        return items


class Check(pytest.Item):
    """One check of one implementation."""

    parent: Implementation

    @property
    def obj(self):
        """The function, for conditions of xfail and skipif."""
        return self.parent.function

    def runtest(self):
        """Judge; a skip says why."""
        trial = self.parent.trial
        if trial.offer.absent:
            _skip(trial.offer.absent)
        name, _, dtype = self.name.rstrip("]").partition("[")
        checks = {f"{c.name}[{c.dtype}]": c for c in trial.checks(trial.accepted)}
        check = checks.get(self.name)
        if check is None and name not in ("value", "gradient"):  # laws run in one type
            check = next((c for c in checks.values() if c.name == name), None)
        if check is None:
            _skip(f"{dtype} is not accepted: {trial.refused.get(dtype, '')}")
        result = trial.judge(check)
        self.user_properties += [("verdict", result.verdict), ("grade", result.grade)]
        self.user_properties += [("ratio", result.ratio), ("cases", result.examples)]
        if result.verdict == "skipped":
            _skip(result.message)
        if result.failed:
            raise Failed(result)
        for note in result.notes:
            self.add_report_section("call", "refssm", note)

    def repr_failure(self, excinfo, style=None):
        """The lines of the report in place of a traceback."""
        if isinstance(excinfo.value, Failed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        """Where the implementation stands."""
        code = getattr(self.obj, "__code__", None)
        line = code.co_firstlineno - 1 if code else None
        return self.path, line, f"{self.parent.name}::{self.name}"


def _skip(reason: str) -> NoReturn:
    """Skip, and point at the implementation in place of this file."""
    raise pytest.skip.Exception(reason, _use_item_location=True)


class Failed(AssertionError):
    """A check failed; carries the result."""

    def __init__(self, result):
        from refssm.conformance.suite import text

        super().__init__(text([result]))
        self.result = result
