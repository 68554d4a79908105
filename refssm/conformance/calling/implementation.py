"""An implementation that was found, and its picklable description for the parent process."""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from refssm._declaration.adapted import taken
from refssm._declaration.implements import FRAMEWORKS, Budget, Declaration, declared_as
from refssm._declaration.layout import Layout, in_layout, parse
from refssm._declaration.operator import Operator
from refssm.adapters import Adapter
from refssm.conformance.calling.adapters import adapter
from refssm.conformance.calling.adapters.numpy_arrays import NoDevice
from refssm.conformance.calling.attributes import marks_of, vars_of


class Offer(NamedTuple):
    """The picklable description of an implementation, for the parent process."""

    name: str
    has_vjp: bool = False
    narrows: bool = False
    judged: bool = True
    dtypes: tuple[str, ...] = ()  # the declared types; empty: the judge finds out
    framework: str = "numpy"
    layout: str = ""
    accuracy: Budget = Budget()
    ftz: bool = False
    deterministic: bool = True  # False: equal calls may differ within tolerance
    kinds: str = "any"  # "complex": not called with real arrays
    adapters: tuple[Adapter, ...] = ()  # parameters that it has in place of arguments
    views: tuple[str, ...] = ()  # memory layouts that the framework supports
    immutable: bool = False
    lacks: Mapping[str, str] = {}  # types that cannot be judged here, and why
    seems: str = ""  # another framework that its module has imported
    loops: bool = False  # its layout has no batch axes: it is called slice by slice
    about: str = ""  # the framework's version, device and flags
    absent: str = ""  # why it cannot be called here
    functions: tuple[str, str] = ("", "")  # names of the function and of its VJP in their modules
    streams: bool = False  # calls queue their work on the current stream of a device
    tf32: str = ""  # the settings by which products are computed in TF32
    files: bool = False  # an external program that reads files: no memory to check
    unjudged: tuple[str, ...] = ()  # arguments that the operator does not have
    untaken: tuple[str, ...] = ()  # keywords of the operator that it does not have
    own_defaults: tuple[str, ...] = ()  # those of its keywords that differ from the operator's
    nan_chunk: int = 0  # steps within which it may spread NaN
    lengths: str = ""  # its argument for the number of steps of each row
    padding: str = "right"  # where rows are padded
    sizes: tuple[str, ...] = ()  # the core dimensions that it has, as texts of `--where`


@dataclass(frozen=True)
class Found:
    """One implementation: the operator, its functions, and what its author declared."""

    op: Operator
    forward: Callable
    vjp: Callable | None
    judged: bool = True  # False: only called by a law of another operator
    declared: Declaration = field(default_factory=Declaration)
    untaken: tuple[str, ...] = field(default=(), init=False)  # keywords that are not passed

    def __post_init__(self):
        op = in_layout(taken(self.op, self.declared.adapters), self.declared.layout)
        object.__setattr__(self, "untaken", tuple(_untaken(op, self.forward, self.vjp)))
        object.__setattr__(self, "op", op.at_defaults(self.untaken))

    @cached_property
    def adapter(self) -> Any:
        """The adapter of the declared framework and device."""
        return adapter(self.declared.framework, self.declared.device)

    @cached_property
    def layout(self) -> Layout | None:
        """The declared layout, or None."""
        return parse(self.op, self.declared.layout) if self.declared.layout else None

    @property
    def unjudged(self) -> tuple[str, ...]:
        """Arguments of the functions that the operator does not have: they keep their defaults."""
        own = [*filter(None, [self.declared.lengths])]
        found = [*self.declared.unjudged, *_beyond(self.forward, self.op, own)]
        if self.vjp is not None:
            found += _beyond(self.vjp, self.op, own, [f"d{y}" for y in self.op.outputs])
        return tuple(dict.fromkeys(found))

    @property
    def offer(self) -> Offer:
        """The description for the judge; `absent` says why if framework or device is missing."""
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
            declared.deterministic,
            declared.kinds,
            declared.adapters,
            unjudged=self.unjudged,
            untaken=self.untaken,
            own_defaults=tuple(_own_defaults(self.op, self.forward)),
            nan_chunk=declared.nan_chunk,
            lengths=declared.lengths,
            padding=declared.padding,
        )
        if lack := vars_of(self.forward).get("__refssm_lack__", str)():
            return offer._replace(absent=lack)
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
            streams=made.streams,
            tf32=made.tf32,
            seems=_seems(self.forward) if declared.framework == "numpy" else "",
        )


def _untaken(op: Operator, *functions) -> list[str]:
    """The keywords with defaults that one of the functions does not take."""
    found = []
    for function in functions:
        try:
            parameters = inspect.signature(function).parameters
        except Exception:  # no signature; the call will show, and None is no function
            continue
        anything = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        known = op.parameters if anything else parameters
        found += [n for n in op.parameters if n in op.defaults and n not in (*known, *found)]
    return found


def _own_defaults(op: Operator, function) -> list[str]:
    """The defaults of its keywords that are not the operator's: no call shows them."""
    try:
        parameters = inspect.signature(function).parameters
    except Exception:  # no signature: nothing is known of its defaults
        return []
    own = {n: parameters[n].default for n in op.defaults if n in parameters}
    plain = {n: x for n, x in own.items() if isinstance(x, int | float | str)}
    return [f"{n}={x!r}, not {op.defaults[n]!r}" for n, x in plain.items() if x != op.defaults[n]]


def _beyond(function, op: Operator, own=(), cotangents=()) -> list[str]:
    """The names of arguments that a call with the operator's arguments, and its own, leaves out."""
    try:
        parameters = inspect.signature(function)
        keywords = dict.fromkeys([*op.static, *own])
        given = parameters.bind(*cotangents, *op.inputs, **keywords).arguments
    except Exception:  # no signature, or one that the call does not fit; the call will show
        return []
    given = {*given, *getattr(function, "keywords", ())}  # those of functools.partial
    many = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    left = [n for n, p in parameters.parameters.items() if n not in given and p.kind not in many]
    return [name for name in left if not name.startswith("_")]


def _name(function) -> str:
    """The function's name if its module has it under that name, else ""."""
    name = getattr(function, "__name__", "")
    there = getattr(sys.modules.get(getattr(function, "__module__", "")), name, None)
    return name if there is function else ""


def _seems(function) -> str:
    """A framework whose modules are among the function's globals, or ""."""
    names = getattr(function, "__globals__", {})
    modules = [getattr(m, "__name__", "") for m in list(names.values()) if inspect.ismodule(m)]
    return next((f for f in FRAMEWORKS[1:] if any(m.split(".")[0] == f for m in modules)), "")


def declared(function) -> Declaration:
    """The declaration by `refssm.testing.implements` or by a pytest mark, or an empty one."""
    declared = vars_of(function).get("__refssm__")
    return declared if isinstance(declared, Declaration) else marked(function) or Declaration()


def marked(function) -> Declaration | None:
    """The declaration in a function's pytest mark; None without one, or if pytest refuses it."""
    ours = marks_of(function)
    if len(ours) != 1 or len(ours[0].args) != 1:
        return None
    fields = {*Declaration.__dataclass_fields__} - {"name"}
    said = {key: value for key, value in ours[0].kwargs.items() if key in fields}
    if callable(said.get("vjp")):
        del said["vjp"]
    try:
        return declared_as(ours[0].args[0], said)
    except ValueError:  # an item of its own says so
        return None


def by_hand(function) -> Callable | None:
    """The gradient by hand that a function's pytest mark names."""
    given = [mark.kwargs.get("vjp") for mark in marks_of(function)]
    return next((vjp for vjp in given if callable(vjp)), None)
