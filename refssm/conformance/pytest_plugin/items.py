"""The items of an implementation: its checks, those that the profile leaves out, and a mark that
is wrong."""

from __future__ import annotations

import os
from shlex import quote
from typing import Any, NoReturn

import pytest

OPTIONS = {"refssm_profile": "--refssm-profile", "refssm_seed": "--refssm-seed"}
UNFIT = "not run: the layout does not fit, which {} reports"


class Item(pytest.Item):
    """An item of one implementation."""

    parent: Any  # the Implementation

    @property
    def obj(self):
        """The function, for conditions of xfail and skipif."""
        return self.parent.function

    def reportinfo(self):
        """File, line and name of the implementation."""
        return self.path, self.parent.line - 1, f"{self.parent.name}::{self.name}"

    @property
    def again(self) -> str:
        """The command that runs this item once more."""
        given = [(said, self.config.getoption(name)) for name, said in OPTIONS.items()]
        told = [f"{said}={value}" for said, value in given if value is not None]
        told += ["--refssm-allow-thin"] * bool(self.config.getoption("refssm_allow_thin"))
        rest = f"{self.nodeid}".partition("::")[2]
        place = os.path.relpath(self.path, self.config.invocation_params.dir)
        return " ".join(["pytest", *told, quote(f"{place}::{rest}")])

    def repr_failure(self, excinfo, style=None):
        """The lines of the report instead of a traceback; the summary has the first of them."""
        if not isinstance(excinfo.value, Failed):
            return super().repr_failure(excinfo, style)
        shown = excinfo.getrepr(style="value")
        text = f"{excinfo.value}\n  again: {self.again}"
        shown.reprtraceback.reprentries[0].lines = [text]
        if shown.reprcrash is not None:  # with CI=1 pytest's summary would repeat all lines
            shown.reprcrash.message = text.partition("\n")[0]
        return shown


class RefusedItem(Item):
    """Fails: the mark or a setting is wrong, in one sentence."""

    def __init__(self, *, why: str, of: str, **kwargs):
        super().__init__(**kwargs)
        self.why, self.of = why, of

    def runtest(self):
        """Fail with the sentence and its place."""
        raise Failed(f"{self.why}\n  {self.of}")


class LeftOut(Item):
    """A check that is not run: a skip that says why, and how to run it."""

    def __init__(self, *, why: str, **kwargs):
        super().__init__(**kwargs)
        self.why = why

    def runtest(self):
        """Skip."""
        _skip(self.why)


class CheckItem(Item):
    """One check of one implementation."""

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
            _skip(f"{self.name}: {trial.probe.reason(dtype)}")
        result = trial.judge(check)
        self._keep(result)
        if result.verdict == "skipped":
            other = f", a marked function of {self.path.name}" * (result.message == self._resumed)
            _skip(f"{self.name}: {result.message}{other}")
        if result.failed or self.over:
            raise Failed(_told(result, self.over))
        for note in result.notes:
            self.add_report_section("call", "refssm", note)

    @property
    def _resumed(self) -> str:
        """The reason of a law that needs another form of the operator."""
        from refssm.catalog import resumed

        other = resumed(self.parent.trial.op)
        return f"needs {other}" if other else ""

    def _misfit(self, trial):
        """Fail if the layout does not fit, once for all checks; the others are skipped.

        The first item of this session reports it: every process of pytest-xdist finds the same one.
        """
        mine = [
            x for x in self.session.items if isinstance(x, CheckItem) and x.parent is self.parent
        ]
        first = next((item for item in mine if item.reports), self)
        # one that may fail says nothing: neither does it stand for others
        if first is not self and self.reports:
            _skip(UNFIT.format(first.name))
        result = trial.misfit()
        self._keep(result)
        raise Failed(_told(result, self.over))

    @property
    def reports(self) -> bool:
        """True if nothing keeps a failure of this item from the report."""
        return not any(self.iter_markers(name="xfail")) and not any(self.iter_markers(name="skip"))

    def _keep(self, result) -> None:
        """The figures of a result, as properties for reports."""
        self.user_properties += [("verdict", result.verdict), ("grade", result.grade)]
        if result.kind != "layout":
            self.user_properties += [("ratio", result.ratio), ("cases", result.examples)]


def _skip(reason: str) -> NoReturn:
    """Skip, with the location of the implementation instead of this file."""
    raise pytest.skip.Exception(reason, _use_item_location=True)


class Failed(AssertionError):
    """An item failed; the text is what pytest shows of it, its first line also in the summary."""


def _told(result, over: str) -> str:
    """The lines of a failed check, or of a known failure whose entry has expired."""
    from refssm.conformance.report.headline import headline
    from refssm.conformance.running.in_process import text

    if not result.failed:
        return f"{over}; it passes now: remove it"
    lines = text([result]).removeprefix("FAIL ").removeprefix("thin ")
    told = f"{headline(result)}\n{result.verdict}: {lines}"
    return told + f"\n{over}" * bool(over)
