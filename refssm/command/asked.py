"""What a run of `refssm verify` was asked for: the command line, and [tool.refssm] under it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import typer

from refssm.command.options import KEYS

UNTOLD = (
    "targets",
    "json",
    "html",
    "config",
    "no_config",
    "write_known",
)  # told elsewhere, or no setting
OF_CASES = ("dtype", "check", "known")  # not of one's own arrays
TIMEOUT = 60.0


@dataclass(frozen=True)
class Asked:
    """Options put together. What is told of a function comes before what its author declares,
    what the file says comes after."""

    ctx: typer.Context
    own_data: bool  # --inputs: the file's checks, types and known failures are of the usual cases

    @property
    def config(self):
        """The table [tool.refssm], empty where there is none."""
        return self.ctx.obj

    def option(self, name: str):
        """The value of an option, where the file's counts; else None."""
        given = self.ctx.params[name]
        return given if self._counts(name) or not self._from_file(name) else None

    @property
    def targets(self) -> list[str]:
        """Those that were named, else those of the file."""
        return [*(self.ctx.params["targets"] or ())] or self._places("targets")

    @property
    def subjects(self) -> list[str]:
        """The same of known libraries; whoever names a target means no others."""
        return [*(self.ctx.params["subject"] or ())] or self._places("subjects")

    def _places(self, key: str) -> list[str]:
        named = any(self.ctx.params[name] for name in ("targets", "subject", "exec_"))
        return [] if named or self.ctx.params["output"] else [*self.config.get(key, ())]

    @property
    def every(self) -> bool:
        """Whether all is judged that the file names."""
        return bool(self._places("targets") or self._places("subjects"))

    @property
    def whole(self) -> bool:
        """Whether no target is left out of those that are named anywhere."""
        there = self.config.get("targets") or self.config.get("subjects")
        return (self.every or not there) and not any(map(self.part, self.targets))

    def part(self, target: str) -> bool:
        """Whether one function of a target was asked for."""
        return ":" in target or bool(self.ctx.params["as_"])

    @property
    def told(self) -> dict:
        """How functions are to be called, whatever their authors declared; `usual`: if nothing."""
        names = ("framework", "device", "layout", "vjp", "ftz")
        told = {n: self.ctx.params[n] for n in names if self.ctx.params[n] not in (None, "")}
        usual = {n: value for n, value in self.config.declared.items() if n not in told}
        return told | ({"usual": usual} if usual else {})

    def ranges(self, names: Iterable[str]) -> list[str]:
        """Ranges as texts: those of the command line, else those of the file that concern it."""
        from refssm.conformance.cases.ranges import split

        if self.ctx.params["where"] or self.own_data:
            return [*(self.ctx.params["where"] or ())]
        known = {*names}
        return [text for text in self.config.get("where", ()) if split(text)[0] in known]

    def settings(self) -> str:
        """What differs from the usual, and where it was said."""
        given = {o.name: o for o in self.ctx.command.params if o.name not in UNTOLD}
        values = {
            n: self.ctx.params[n] for n, o in given.items() if self.ctx.params[n] != o.default
        }
        typed = {
            given[name].opts[0].removeprefix("--"): value
            for name, value in values.items()
            if self._source(name) == "COMMANDLINE"
        }
        read = {KEYS[name]: values[name] for name in KEYS if name in values and self._counts(name)}
        read |= self.told.get("usual", {})
        if not self.ctx.params["where"] and not self.own_data and "where" in self.config.values:
            read["where"] = self.config.get("where")
        parts = (("command line", typed), (str(self.config), read))
        return "; ".join(f"{whence}: {_shown(values)}" for whence, values in parts if values)

    def _counts(self, name: str) -> bool:
        """Whether an option has the file's value, and takes it."""
        return self._from_file(name) and not (self.own_data and name in OF_CASES)

    def _from_file(self, name: str) -> bool:
        return self._source(name) == "DEFAULT_MAP"

    def _source(self, name: str) -> str:
        source = self.ctx.get_parameter_source(name)
        return source.name if source else ""


def _shown(values: dict) -> str:
    """Settings in a line."""
    return ", ".join(f"{name.replace('_', '-')} {_words_of(v)}" for name, v in values.items())


def _words_of(value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
