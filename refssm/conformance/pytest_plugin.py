"""pytest: a function marked `refssm` is an implementation, and each check of it is an item.

    @pytest.mark.refssm("linear_scan", framework="torch", vjp=True)
    def test_my_scan(a, b):
        return my_scan(a, b)

    pytest -k "test_my_scan and value"      # test_scan.py::test_my_scan::value[float32]
    pytest --refssm-profile quick

The mark has the arguments of `refssm.testing.implements`; `vjp` may also be a function that
computes the gradient; `xfail={"gradient[complex64]": "why"}` expects one check to fail. Of
[tool.refssm] in pyproject.toml, profile, seed, dtypes, checks, allow-thin and known-failures apply
here too; the mark and the command line override them.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import pytest

from refssm.conformance.calling.attributes import marks_of

OPTIONS = ("profile", "seed", "allow_thin", "xfail")


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
    if isinstance(collector, pytest.Class):
        raise collector.CollectError(f"{name}: mark a function of the module, not a method")
    return Implementation.from_parent(collector, name=name, function=obj, mark=marks[0])


PROJECT = pytest.StashKey()


def _project(config):
    """The project's table [tool.refssm] and its list of known failures, read once."""
    from refssm.conformance.project.known_failures import Known, read
    from refssm.conformance.project.pyproject import nearest

    if PROJECT not in config.stash:
        table = nearest(config.rootpath)
        path = table.get("known-failures")
        config.stash[PROJECT] = table, read(Path(path)) if path else Known()
    return config.stash[PROJECT]


class Implementation(pytest.Collector):
    """One implementation; its checks follow from the catalog, without a call."""

    def __init__(self, *, function, mark, **kwargs):
        super().__init__(**kwargs)
        self.function, self.mark = function, mark
        self.told = False  # one check has said that the layout does not fit
        self.obj = function  # pytest evaluates conditions of xfail and skipif with it
        self.own_markers.extend(getattr(function, "pytestmark", []))
        self.keywords.update((m.name, m) for m in self.own_markers)

    @cached_property
    def project(self):
        """Settings and known failures of the project; an error in them becomes a CollectError."""
        from refssm.conformance.usage_error import UsageError

        try:
            return _project(self.config)
        except UsageError as error:
            raise self.CollectError(f"{self.name}: {error}") from None

    def setting(self, name: str, usual):
        """The value from the mark, else from the command line, else from the project's file."""
        told = self.config.getoption(f"refssm_{name}")
        return self.mark.kwargs.get(
            name, self.project[0].get(name.replace("_", "-"), usual) if told is None else told
        )

    @cached_property
    def trial(self):
        """The implementation as a trial of the judge; a wrong mark becomes a CollectError."""
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
                bool(self.setting("allow_thin", False)),
            )
            return trials_of(session)[0]
        except (UsageError, ValueError) as error:  # such as: it has none of the project's types
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
        if expected:  # an expectation that matches nothing would hide a later failure
            told = ", ".join(known)
            raise self.CollectError(
                f"{self.name}: xfail: no check matches {expected}; the checks are {told}"
            )
        return items

    @property
    def called(self) -> tuple[str, ...]:
        """Names that an entry of the known failures may use for it."""
        names = {self.path.name, *self.nodeid.split("::")[:1]}
        path = self.project[1].path
        if path is not None:
            names.add(os.path.relpath(self.path, path.resolve().parent))
        return self.name, *names, *(f"{name}::{self.name}" for name in names)

    def _refuse_idle(self) -> None:
        """CollectError for an entry with this implementation that matches none of its checks."""
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
    over = ""  # set if the entry of a known failure has expired

    def expect(self, entry) -> None:
        """Mark a known failure as xfail, strict if its entry names only this check."""
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
        """Judge the check; a skip has a reason."""
        from refssm.conformance.checks.checks import GRADIENT, VALUE

        trial = self.parent.trial
        if trial.offer.absent:
            _skip(trial.offer.absent)
        if trial.probe.misfit:
            self._misfit(trial)
        name, _, dtype = self.name.rstrip("]").partition("[")
        checks = {f"{c.name}[{c.dtype}]": c for c in trial.planned()}
        check = checks.get(self.name)
        if check is None and name not in (VALUE.name, GRADIENT.name):  # laws run in only one type
            check = next((c for c in checks.values() if c.name == name), None)
        if check is None:
            _skip(trial.probe.reason(dtype))
        result = trial.judge(check)
        self.user_properties += [("verdict", result.verdict), ("grade", result.grade)]
        self.user_properties += [("ratio", result.ratio), ("cases", result.examples)]
        if result.verdict == "skipped":
            _skip(result.message)
        if result.failed or self.over:
            raise Failed(result, self.over)
        for note in result.notes:
            self.add_report_section("call", "refssm", note)

    def _misfit(self, trial):
        """Fail if the layout does not fit, once for all checks; the others are skipped."""
        if self.parent.told:
            _skip("not run, because the layout does not fit")
        self.parent.told = not any(self.iter_markers("xfail"))  # one that may fail says nothing
        result = trial.misfit()
        self.user_properties += [("verdict", result.verdict), ("grade", result.grade)]
        raise Failed(result, self.over)

    def repr_failure(self, excinfo, style=None):
        """The lines of the report instead of a traceback."""
        if isinstance(excinfo.value, Failed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        """File, line and name of the implementation."""
        code = getattr(self.obj, "__code__", None)
        line = code.co_firstlineno - 1 if code else None
        return self.path, line, f"{self.parent.name}::{self.name}"


def _skip(reason: str) -> NoReturn:
    """Skip, with the location of the implementation instead of this file."""
    raise pytest.skip.Exception(reason, _use_item_location=True)


class Failed(AssertionError):
    """A check failed, or the entry of its known failure has expired; carries the result."""

    def __init__(self, result, over: str = ""):
        from refssm.conformance.running.in_process import text

        told = text([result]).removeprefix("FAIL ")
        if result.failed:
            told = f"{result.verdict}: {told}" + f"\n{over}" * bool(over)
        else:
            told = f"{over}; it passes now: remove it"
        super().__init__(told)
        self.result = result
