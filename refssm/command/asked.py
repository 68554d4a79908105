"""The options of one run of `refssm verify`: the command line, with [tool.refssm] as defaults."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import typer

from refssm.command.options import KEYS

UNTOLD = (
    "targets",
    "json",
    "html",
    "verbose",
    "quiet",
    "config",
    "no_config",
    "write_known",
)  # reported elsewhere, or not a setting
OF_CASES = ("dtype", "check", "known")  # not for --inputs
TIMEOUT = 60.0


@dataclass(frozen=True)
class Asked:
    """Options of a run: the command line overrides an author's declaration, that the file."""

    ctx: typer.Context
    own_data: bool  # --inputs: the file's checks, types, known failures do not apply

    @property
    def config(self):
        """The table [tool.refssm]; empty if there is none."""
        return self.ctx.obj

    def option(self, name: str):
        """The value of an option; None if it comes from the file but does not apply."""
        given = self.ctx.params[name]
        return given if self._counts(name) or not self._from_file(name) else None

    @property
    def targets(self) -> list[str]:
        """The targets of the command line; if it names none, those of [tool.refssm]."""
        return [*(self.ctx.params["targets"] or ())] or self._places("targets")

    @property
    def subjects(self) -> list[str]:
        """Known libraries to judge; those of the file are ignored once a target is given."""
        return [*(self.ctx.params["subject"] or ())] or self._places("subjects")

    def _places(self, key: str) -> list[str]:
        named = any(self.ctx.params[name] for name in ("targets", "subject", "exec_"))
        return [] if named or self.ctx.params["output"] else [*self.config.get(key, ())]

    @property
    def every(self) -> bool:
        """True if everything that the file names is judged."""
        return bool(self._places("targets") or self._places("subjects"))

    @property
    def whole(self) -> bool:
        """True if no target is left out, of the command line or the file."""
        there = self.config.get("targets") or self.config.get("subjects")
        return (self.every or not there) and not any(map(self.part, self.targets))

    def part(self, target: str) -> bool:
        """True if only one function of a target is judged."""
        return ":" in target or bool(self.ctx.params["as_"])

    @property
    def told(self) -> dict:
        """Call options that override declarations; `usual`: values if nothing is declared."""
        names = ("framework", "device", "layout", "vjp", "ftz", "deterministic", "kinds")
        told = {n: self.ctx.params[n] for n in names if self.ctx.params[n] not in (None, "")}
        usual = {n: value for n, value in self.config.declared.items() if n not in told}
        return told | ({"usual": usual} if usual else {})

    def ranges(self, names: Iterable[str]) -> list[str]:
        """Ranges as texts: from the command line, else those of the file for known names."""
        from refssm.conformance.cases.ranges import split

        if self.ctx.params["where"] or self.own_data:
            return [*(self.ctx.params["where"] or ())]
        known = {*names}
        return [text for text in self.config.get("where", ()) if split(text)[0] in known]

    def settings(self) -> str:
        """All options that differ from the defaults, with their source, in one line."""
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
        """True if an option's value comes from the file and applies."""
        return self._from_file(name) and not (self.own_data and name in OF_CASES)

    def _from_file(self, name: str) -> bool:
        return self._source(name) == "DEFAULT_MAP"

    def _source(self, name: str) -> str:
        source = self.ctx.get_parameter_source(name)
        return source.name if source else ""


def _shown(values: dict) -> str:
    """Settings in one line."""
    return ", ".join(f"{name.replace('_', '-')} {_words_of(v)}" for name, v in values.items())


def _words_of(value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
