"""A marked function as a node of pytest, and its items.

These are its checks, those that the profile leaves out, and a mark that is wrong.
"""

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any, NoReturn

import pytest

from refssm._declaration.implements import Declaration, declared_as
from refssm._declaration.names import did_you_mean
from refssm.conformance.usage_error import UsageError

GIVEN = {"refssm_profile": "--refssm-profile", "refssm_seed": "--refssm-seed"}
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
        given = [(said, self.config.getoption(name)) for name, said in GIVEN.items()]
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
        if result.unjudged:
            self.user_properties += [("unjudged", ", ".join(result.unjudged))]


def _skip(reason: str) -> NoReturn:
    """Skip, with the location of the implementation instead of this file."""
    raise pytest.skip.Exception(reason, _use_item_location=True)


class Failed(AssertionError):
    """An item failed; the text is what pytest shows of it, its first line also in the summary."""


def _told(result, over: str) -> str:
    """The lines of a failed check, or of a known failure whose entry has expired."""
    from refssm.conformance.report.verdict import headline
    from refssm.conformance.running.session import text

    if not result.failed:
        return f"{over}; it passes now: remove it"
    lines = text([result]).removeprefix("FAIL ").removeprefix("thin ")
    told = f"{headline(result)}\n{result.verdict}: {lines}"
    return told + f"\n{over}" * bool(over)


OPTIONS = ("profile", "seed", "allow_thin", "where", "xfail")
DECLARED = tuple(Declaration.__dataclass_fields__)[1:]
METHOD = "a method of a class: mark a function of the module"

PROJECT = pytest.StashKey()


def _project(config):
    """The project's table [tool.refssm] and its list of known failures, read once."""
    from refssm.conformance.project.known_failures import KnownFailures, read
    from refssm.conformance.project.pyproject import nearest

    if PROJECT not in config.stash:
        table = nearest(config.rootpath)
        path = table.get("known-failures")
        config.stash[PROJECT] = table, read(Path(path)) if path else KnownFailures()
    return config.stash[PROJECT]


class Implementation(pytest.Collector):
    """One implementation; its checks follow from the catalog, without a call."""

    def __init__(self, *, function, marks, method=False, **kwargs):
        super().__init__(**kwargs)
        self.function, self.marks, self.method = function, marks, method
        self.mark = marks[0]
        self.obj = function  # pytest evaluates conditions of xfail and skipif with it
        self.own_markers.extend(getattr(function, "pytestmark", []))
        self.keywords.update((m.name, m) for m in self.own_markers)

    @property
    def line(self) -> int:
        """The first line of the function, with its decorators."""
        code = getattr(self.function, "__code__", None)
        return code.co_firstlineno if code else 1

    def collect(self):
        """One item for each check in each type; one that fails for what is wrong in the mark."""
        try:
            self._refuse_mark()
            self._refuse_settings()
            return [*self._checks(), *self._idle()]
        except _Wrong as wrong:
            return [self._refused(*wrong.args)]

    def _refused(self, name: str, why: str) -> RefusedItem:
        """An item that fails, chosen by every check's name: it stands for all of them."""
        from refssm._declaration.implements import TYPES
        from refssm.conformance.checks.checks import NAMES

        place = f"in the mark of {self.name} at {self.path.name}:{self.line}"
        of = place if name == "mark" else f"for {self.name} at {self.path.name}:{self.line}"
        item = RefusedItem.from_parent(self, name=name, why=why, of=of)
        item.extra_keyword_matches.update(f"{check}[{kind}]" for check in NAMES for kind in TYPES)
        return item

    def _refuse_mark(self) -> None:
        """_Wrong for a mark with arguments that none has."""
        if self.method:
            raise _Wrong("mark", METHOD)
        if len(self.marks) > 1:
            raise _Wrong("mark", f"{len(self.marks)} marks `refssm`, wanted one for a function")
        if len(self.mark.args) > 1:
            came = ", ".join(map(repr, self.mark.args[1:]))
            raise _Wrong(
                "mark", f"wanted the operator, then keywords; got {came} without a keyword"
            )
        known = (*DECLARED, *OPTIONS)
        for word in self.mark.kwargs:
            if word not in known:
                told = f"unknown keyword `{word}`; {did_you_mean(word, known)}"
                raise _Wrong("mark", f"{told}wanted one of {', '.join(known)}")

    def _refuse_settings(self) -> None:
        """_Wrong for a value of the mark, or of the project's file, that is not possible."""
        from refssm.conformance.project.keys import KEYS, RefusedValue
        from refssm.conformance.usage_error import shown

        for name in ("profile", "seed", "allow_thin"):
            if name not in self.mark.kwargs:
                continue
            value, (wanted, read) = self.mark.kwargs[name], KEYS[name.replace("_", "-")]
            try:
                read(value)
            except RefusedValue as refused:
                raise _Wrong(
                    "mark", f"{name}: wanted {wanted}, got {shown(value)}{refused}"
                ) from None
        expected = self.mark.kwargs.get("xfail", {})
        texts = isinstance(expected, dict) and all(map(_is_text, (*expected, *expected.values())))
        if not texts:
            wanted = 'a dict such as {"value[float32]": "why"}'
            raise _Wrong("mark", f"xfail: wanted {wanted}, got {shown(expected)}")
        try:
            _ = self.project
        except UsageError as error:
            raise _Wrong("settings", f"{error}") from None

    @cached_property
    def project(self):
        """Settings and known failures of the project; UsageError for an error in them."""
        return _project(self.config)

    def setting(self, name: str, usual):
        """The value from the mark, else from the command line, else from the project's file."""
        told = self.config.getoption(f"refssm_{name}")
        return self.mark.kwargs.get(
            name, self.project[0].get(name.replace("_", "-"), usual) if told is None else told
        )

    @cached_property
    def trial(self):
        """The implementation as a trial of the judge; _Wrong for a wrong mark."""
        from refssm.conformance.running.session import session_of, trials_of

        told = {k: v for k, v in self.mark.kwargs.items() if k not in OPTIONS}
        by_hand = told.pop("vjp") if callable(told.get("vjp")) else None
        try:
            declared = declared_as(self.mark.args[0] if self.mark.args else "", told)
        except ValueError as error:
            raise _Wrong("mark", f"{error}".removeprefix("implements: ")) from None
        try:
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
                self._where(declared),
            )
            return trials_of(session)[0]
        except UsageError as error:  # such as: it has none of the project's types
            raise _Wrong("settings", f"{error}") from None

    def _where(self, declared: Declaration) -> tuple[str, ...]:
        """The ranges of the mark, a text or several; _Wrong for one that cannot be."""
        from refssm._declaration.adapted import taken
        from refssm.conformance.calling.finding import operator_named
        from refssm.conformance.cases.ranges import parse
        from refssm.conformance.usage_error import shown

        given = self.mark.kwargs.get("where", ())
        texts = (given,) if isinstance(given, str) else given
        if not isinstance(texts, tuple | list) or not all(map(_is_text, texts)):
            raise _Wrong("mark", f'where: wanted a range such as "l=1..64", got {shown(given)}')
        try:
            parse(texts, [taken(operator_named(declared.name), declared.adapters)])
        except UsageError as error:
            raise _Wrong("mark", f"{error}".removeprefix("--")) from None
        return tuple(texts)

    def _checks(self) -> Iterator[CheckItem | LeftOut]:
        """The checks of the profile, and a skip for each that only it leaves out."""
        scope, types = self.trial.scope, self.trial.scope.types
        expected = self.mark.kwargs.get("xfail", {})
        checks, names = self.trial.checks(types), set()
        for check in checks:
            item = CheckItem.from_parent(self, name=f"{check.name}[{check.dtype}]")
            names.add(check.name)
            if item.name in expected:
                item.add_marker(pytest.mark.xfail(reason=expected[item.name]))
            item.expect(self.project[1].entry(check.id, self.called))
            yield item
        left_out = scope.left_out(checks)
        for check in left_out:
            names.add(check.name)
            name, why = f"{check.name}[{check.dtype}]", self._how_to_run(left_out)
            yield LeftOut.from_parent(self, name=name, why=why)
        if scope.gradient_missing and types and "gradient" not in names:
            why = scope.gradient_missing
            yield LeftOut.from_parent(self, name=f"gradient[{types[0]}]", why=why)

    def _how_to_run(self, left_out: list) -> str:
        """Why the profile leaves checks out, what runs them, and which; pytest's summary has equal
        sentences once."""
        types: dict[str, list[str]] = {}
        for check in left_out:
            types.setdefault(check.name, []).append(check.dtype)
        which = ", ".join(f"{name}[{', '.join(of)}]" for name, of in types.items())
        profile, how = self.trial.session.settings.profile, "--refssm-profile=default"
        if "profile" in self.mark.kwargs:
            how = '`profile="default"` in the mark'
        return f"not in the profile {profile}, {how} runs it: {which}"

    @property
    def called(self) -> tuple[str, ...]:
        """Names that an entry of the known failures may use for it."""
        names = {self.path.name, *self.nodeid.split("::")[:1]}
        path = self.project[1].path
        if path is not None:
            names.add(os.path.relpath(self.path, path.resolve().parent))
        return self.name, *names, *(f"{name}::{self.name}" for name in names)

    def _idle(self) -> Iterator[RefusedItem]:
        """An item that fails for expectations that match no check: they would hide failures."""
        from refssm.conformance.project.known_failures import possible

        every = self.trial.scope.every_check()
        for name in self.mark.kwargs.get("xfail", {}):
            if name not in every:
                told = f"xfail: no check `{name}`; {did_you_mean(name, every)}"
                yield self._refused("mark", f"{told}wanted one of {', '.join(every)}")
                break
        known, called = self.project[1], [n for n in self.called if n.endswith(self.name)]
        for entry in known.entries:
            mine = entry.implementation and entry.of(called)
            if mine and not any(entry.matches(id) for id in possible(self.trial)):
                told = f"{known.path}: {entry} matches none of its checks: remove it"
                yield self._refused("settings", told)
                break


class _Wrong(Exception):
    """The mark or a setting is wrong: the name of an item that fails, and a sentence."""


def _is_text(value: object) -> bool:
    return isinstance(value, str)
