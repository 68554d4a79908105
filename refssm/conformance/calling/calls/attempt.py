"""What the doctor asks of the child: which functions a file has, and one call through a wrapper."""

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from refssm._declaration.implements import FRAMEWORKS, Declaration
from refssm.adapters import Adapter
from refssm.catalog import named
from refssm.conformance.calling.attributes import vars_of
from refssm.conformance.calling.finding import own, short
from refssm.conformance.calling.implementation import Found, declared
from refssm.conformance.calling.one_call import Outcome, call

LONGEST_DOC = 2000
ADVICE = "write a function of the operator's arguments that sets its parameters and calls it"
UNFILLED = inspect.Parameter.empty
IMPORTS = {"torch": "torch", "jax": "jax.numpy", "cupy": "cupy", "numpy": "numpy"}


class Argument(NamedTuple):
    """An argument of a function: `default` in words, "" if it must be given."""

    name: str
    default: str = ""
    annotation: str = ""
    keyword: bool = False  # keyword-only


@dataclass(frozen=True)
class Function:
    """A public function of a file, as far as it can be told without a call; picklable."""

    name: str
    module: str  # the name by which a test imports its file
    folder: str  # and the folder from which it does
    arguments: tuple[Argument, ...] = ()
    doc: str = ""
    frameworks: tuple[str, ...] = ()  # that its file or its annotations name
    operator: str = ""  # that its author declares
    kind: str = ""  # why it cannot be tried, or ""


@dataclass(frozen=True)
class Attempt:
    """One way to call a function as an operator: its wrapper, its framework, its layout."""

    function: str
    operator: str
    wrapper: str  # source of a function `wrapped`, in terms of the function and `xp`
    framework: str
    layout: str = ""
    vjp: bool = False
    adapters: tuple[Adapter, ...] = ()


def functions_of(module) -> list[Function]:
    """The public functions and classes that a file or module itself defines."""
    path = Path(getattr(module, "__file__", None) or ".").resolve()
    depth = module.__name__.count(".") + (path.name == "__init__.py")
    folder = str(path.parents[depth])
    public = {n: f for n, f in own(module).items() if not n.startswith("_")}
    return [_described(n, f, module, folder) for n, f in public.items()]


def _described(name: str, function: Any, module, folder: str) -> Function:
    told: dict = {"name": name, "module": module.__name__, "folder": folder}
    if inspect.isclass(function):
        return Function(**told, kind=f"a class: {ADVICE}")
    if hasattr(type(function), "parameters") and hasattr(type(function), "forward"):
        return Function(**told, kind=f"a module with parameters: {ADVICE}")
    told["operator"] = declared(function).name
    told["doc"] = short((inspect.getdoc(function) or "")[:LONGEST_DOC])
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return Function(**told, kind="its arguments are unknown: it has no signature")
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        parameters = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    arguments = tuple(_argument(p) for p in parameters)
    return Function(
        **told, arguments=arguments, frameworks=_frameworks(function, module, arguments)
    )


def _argument(parameter: inspect.Parameter) -> Argument:
    default, annotation = parameter.default, parameter.annotation
    told = "" if default is UNFILLED else short(repr(default))
    text = "" if annotation is UNFILLED else short(str(annotation))
    return Argument(parameter.name, told, text, parameter.kind is parameter.KEYWORD_ONLY)


def _frameworks(function, module, arguments) -> tuple[str, ...]:
    """The frameworks that annotations name, then those that the function's code uses."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    names = {*code.co_names, *code.co_freevars} if code else set()
    values = vars_of(module)
    used = [values[n] for n in names if n in values]
    modules = [m.__name__ for m in used if inspect.ismodule(m)]
    everywhere = [m.__name__ for m in values.values() if inspect.ismodule(m)]
    texts = [a.annotation for a in arguments]
    found = [f for f in FRAMEWORKS if any(re.search(rf"\b{f}\b", text) for text in texts)]
    for imported in (modules, everywhere):
        found += [f for f in FRAMEWORKS[1:] if any(m.split(".")[0] == f for m in imported)]
    return tuple(dict.fromkeys([*found, "numpy"]))


def attempt(functions: dict[str, Callable], tried: Attempt, arrays, statics, **how) -> Outcome:
    """Call a function through a wrapper; an error of the wrapper is that of the call."""
    operator = named(tried.operator)
    assert operator is not None, tried.operator
    try:
        xp = __import__(IMPORTS[tried.framework], fromlist=["_"])
    except ImportError:
        return Outcome("absent", message=f"{tried.framework} is not installed")
    space: dict[str, Any] = {"xp": xp, "math": math, tried.function: functions[tried.function]}
    exec(compile(tried.wrapper, "<wrapper>", "exec"), space)
    settings: dict[str, Any] = {"framework": tried.framework, "layout": tried.layout}
    settings |= {"vjp": tried.vjp, "adapters": tried.adapters}
    said = Declaration(tried.operator, **settings)
    return call(Found(operator, space["wrapped"], None, declared=said), arrays, statics, **how)
