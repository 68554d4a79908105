"""pytest: a function marked `refssm` is an implementation, and each check of it is an item.

    @pytest.mark.refssm("linear_scan", framework="torch", vjp=True)
    def test_my_scan(a, b):
        return my_scan(a, b)

    pytest -k "test_my_scan and value"      # test_scan.py::test_my_scan::value[float32]
    pytest --refssm-profile quick

The mark takes what `refssm.testing.implements` takes; `vjp` may also be a function, the gradient by
hand; `xfail={"gradient[complex64]": "why"}` expects one check to fail. Of [tool.refssm] in
pyproject.toml profile, seed, dtypes, checks and known-failures hold here too; the mark and the
command line come before.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import pytest

from refssm.conformance.calling.attributes import marks_of

OPTIONS = ("profile", "seed", "xfail")


def pytest_addoption(parser):
    """How thoroughly to judge, and with which seed."""
    group = parser.getgroup("refssm", "checks of implementations of state-space operators")
    group.addoption(
        "--refssm-profile",
        choices=("quick", "default", "thorough"),
        default=None,
        help="how many cases each check runs",
    )
    group.addoption("--refssm-seed", type=int, default=None, help="the seed of the random cases")


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


PROJECT = pytest.StashKey()


def _project(config):
    """The project's table [tool.refssm], and its list of known failures: read once."""
    from refssm.conformance.project.known_failures import Known, read
    from refssm.conformance.project.pyproject import nearest

    if PROJECT not in config.stash:
        table = nearest(config.rootpath)
        path = table.get("known-failures")
        config.stash[PROJECT] = table, read(Path(path)) if path else Known()
    return config.stash[PROJECT]


class Implementation(pytest.Collector):
    """One implementation: its checks, worked out from the catalog without calling it."""

    def __init__(self, *, function, mark, **kwargs):
        super().__init__(**kwargs)
        self.function, self.mark = function, mark
        self.obj = function  # conditions of xfail and skipif look here
        self.own_markers.extend(getattr(function, "pytestmark", []))
        self.keywords.update((m.name, m) for m in self.own_markers)

    @cached_property
    def project(self):
        """Settings and known failures of the project; what is wrong with them is one sentence."""
        from refssm.conformance.usage_error import UsageError

        try:
            return _project(self.config)
        except UsageError as error:
            raise self.CollectError(f"{self.name}: {error}") from None

    def setting(self, name: str, usual):
        """From the mark, else from the command line, else from the project's file."""
        told = self.config.getoption(f"refssm_{name}")
        return self.mark.kwargs.get(
            name, self.project[0].get(name, usual) if told is None else told
        )

    @cached_property
    def trial(self):
        """The implementation as the judge holds it."""
        from refssm._implements import declared_as
        from refssm.conformance.running.in_process import session_of
        from refssm.conformance.running.session import trials_of
        from refssm.conformance.usage_error import UsageError

        told = {k: v for k, v in self.mark.kwargs.items() if k not in OPTIONS}
        by_hand = told.pop("vjp") if callable(told.get("vjp")) else None
        try:
            declared = declared_as(self.mark.args[0] if self.mark.args else "", told)
            session = session_of(
                declared.name,
                self.function,
                by_hand or getattr(self.function, "vjp", None),
                declared,
                self.setting("profile", "default"),
                self.setting("seed", 0),
                self.project[0].get("checks", ()),
                self.project[0].get("dtypes", ()),
            )
            return trials_of(session)[0]
        except (UsageError, ValueError) as error:  # none of the project's types, for one
            raise self.CollectError(f"{self.name}: {error}") from None

    def collect(self):
        """One item for each check in each type."""
        trial = self.trial
        checks = trial.checks(trial.scope.types)
        expected = dict(self.mark.kwargs.get("xfail", {}))
        items, known = [], trial.scope.every_check()
        for check in checks:
            item = Check.from_parent(self, name=f"{check.name}[{check.dtype}]")
            if item.name in expected:
                item.add_marker(pytest.mark.xfail(reason=expected.pop(item.name)))
            item.expect(self.project[1].entry(check.id, self.called))
            items.append(item)
        self._refuse_idle()
        expected = {name: why for name, why in expected.items() if name not in known}
        if expected:  # an expectation that matches nothing hides the next failure
            told = ", ".join(known)
            raise self.CollectError(
                f"{self.name}: xfail: no check matches {expected}; the checks are {told}"
            )
        return items

    @property
    def called(self) -> tuple[str, ...]:
        """What an entry of the known failures may call it."""
        names = {self.path.name, *self.nodeid.split("::")[:1]}
        path = self.project[1].path
        if path is not None:
            names.add(os.path.relpath(self.path, path.resolve().parent))
        return self.name, *names, *(f"{name}::{self.name}" for name in names)

    def _refuse_idle(self) -> None:
        """An entry that names this implementation and no check of it is an error."""
        from refssm.conformance.project.known_failures import possible

        known, called = self.project[1], [n for n in self.called if n.endswith(self.name)]
        for entry in known.entries:
            mine = entry.implementation and entry.of(called)
            if mine and not any(entry.matches(id) for id in possible(self.trial)):
                told = f"{known.path}: {entry} matches none of its checks: remove it"
                raise self.CollectError(f"{self.name}: {told}")


class Check(pytest.Item):
    """One check of one implementation."""

    parent: Implementation
    over = ""  # the day of a known failure's entry, where it is over

    def expect(self, entry) -> None:
        """Take down that this check is known to fail: strictly, where the entry is of it alone."""
        if entry is None:
            return
        from refssm.conformance.project.known_failures import said_enough

        known = self.parent.project[1]
        if known.expired(entry):
            self.over = f"{known.path}: {entry} expired on {entry.expires}: {entry.reason}"
            return
        reason = f"{entry.reason} (known until {entry.expires})"
        profile, name = self.parent.trial.session.settings.profile, self.name.partition("[")[0]
        strict = entry.exact and said_enough(profile, name)
        self.add_marker(pytest.mark.xfail(reason=reason, strict=strict))

    @property
    def obj(self):
        """The function, for conditions of xfail and skipif."""
        return self.parent.function

    def runtest(self):
        """Judge; a skip says why."""
        from refssm.conformance.checks.checks import GRADIENT, VALUE

        trial = self.parent.trial
        if trial.offer.absent:
            _skip(trial.offer.absent)
        name, _, dtype = self.name.rstrip("]").partition("[")
        checks = {f"{c.name}[{c.dtype}]": c for c in trial.checks(trial.probe.accepted)}
        check = checks.get(self.name)
        if check is None and name not in (VALUE.name, GRADIENT.name):  # laws run in one type
            check = next((c for c in checks.values() if c.name == name), None)
        if check is None:
            _skip(f"{dtype} is not accepted: {trial.probe.refused.get(dtype, '')}")
        result = trial.judge(check)
        self.user_properties += [("verdict", result.verdict), ("grade", result.grade)]
        self.user_properties += [("ratio", result.ratio), ("cases", result.examples)]
        if result.verdict == "skipped":
            _skip(result.message)
        if result.failed or self.over:
            raise Failed(result, self.over)
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
    """A check failed, or is on the list of known failures for too long; carries the result."""

    def __init__(self, result, over: str = ""):
        from refssm.conformance.running.in_process import text

        told = text([result]).removeprefix("FAIL ")
        if result.failed:
            told = f"{result.verdict}: {told}" + f"\n{over}" * bool(over)
        else:
            told = f"{over}; it passes now: remove it"
        super().__init__(told)
        self.result = result
