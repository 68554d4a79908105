"""An implementation as it was found, and what the other side of the pipe knows of it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from refssm._implements import FRAMEWORKS, Budget, Declaration
from refssm._layout import Layout, parse
from refssm._operator import Operator
from refssm.conformance.calling.adapters import adapter
from refssm.conformance.calling.adapters.numpy_arrays import NoDevice


class Offer(NamedTuple):
    """An implementation as the other side of the pipe knows it."""

    name: str
    has_vjp: bool = False
    narrows: bool = False
    judged: bool = True
    dtypes: tuple[str, ...] = ()  # what it is for; empty: to be found out
    framework: str = "numpy"
    layout: str = ""
    accuracy: Budget = Budget()
    ftz: bool = False
    views: tuple[str, ...] = ()  # of memory, as the framework can make them
    immutable: bool = False
    lacks: tuple[str, ...] = ()  # types that the framework does not have
    seems: str = ""  # another framework that its module has imported
    loops: bool = False  # its layout leaves batch axes out: it is called slice by slice
    about: str = ""  # the framework's version, device and flags
    absent: str = ""  # why it cannot be called at all
    functions: tuple[str, str] = ("", "")  # the name it has in its module, and its VJP's
    files: bool = False  # a program that reads files: there is no memory to look at


@dataclass(frozen=True)
class Found:
    """One implementation: the operator, its functions, and what its author declared."""

    op: Operator
    forward: Callable
    vjp: Callable | None
    judged: bool = True  # False: only there because a law of another one calls it
    declared: Declaration = field(default_factory=Declaration)

    @cached_property
    def adapter(self) -> Any:
        """What carries arrays to its framework and back."""
        return adapter(self.declared.framework, self.declared.device)

    @cached_property
    def layout(self) -> Layout | None:
        """The layout it declares."""
        return parse(self.op, self.declared.layout) if self.declared.layout else None

    @property
    def offer(self) -> Offer:
        """What the judge needs to know of it."""
        declared = self.declared
        offer = Offer(
            self.op.name,
            self.vjp is not None or declared.vjp,
            declared.only is not None,
            self.judged,
            declared.dtypes,
            declared.framework,
            declared.layout,
            declared.accuracy,
            declared.ftz,
        )
        try:
            made = self.adapter
        except (ImportError, NoDevice) as error:
            return offer._replace(absent=" ".join(str(error).replace("=====", "").split()))
        loops = bool(self.layout and self.layout.omitted)
        return offer._replace(
            loops=loops,
            functions=(_name(self.forward), _name(self.vjp)),
            views=tuple(made.views),
            immutable=made.immutable,
            lacks=made.lacks,
            about=made.about(),
            seems=_seems(self.forward) if declared.framework == "numpy" else "",
        )


def _name(function) -> str:
    """What a script may call it by: the name it has in its module, or ""."""
    name = getattr(function, "__name__", "")
    there = getattr(sys.modules.get(getattr(function, "__module__", "")), name, None)
    return name if there is function else ""


def _seems(function) -> str:
    """A framework among the names that a function of NumPy arrays, so it says, can see."""
    names = getattr(function, "__globals__", {})
    modules = [getattr(m, "__name__", "") for m in list(names.values()) if inspect.ismodule(m)]
    return next((f for f in FRAMEWORKS[1:] if any(m.split(".")[0] == f for m in modules)), "")
