"""Find implementations in an author's file or module; runs in the child, where their code runs."""

import difflib
import importlib.util
import inspect
import os
import pkgutil
import sys
import sysconfig
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from refssm._declaration.names import did_you_mean
from refssm._declaration.operator import Operator
from refssm.catalog import called, judged, named, resumed
from refssm.conformance.calling import adapters, onnx_called, onnx_model
from refssm.conformance.calling.attributes import vars_of
from refssm.conformance.calling.implementation import Found, by_hand, declared
from refssm.conformance.usage_error import Several, UsageError

INSTALLS = {
    **adapters.INSTALLS,
    "pytest": "pip install pytest",
}  # a file of marked functions imports it
LONGEST = 300  # characters of an exception's text in a report
PACKAGE = Path(__file__).parents[2]
PYTHON = ("stdlib", "platstdlib", "purelib", "platlib")
INSTALLED = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in PYTHON)


@contextmanager
def looking(target: str):
    """Context: an exception raised by the author's objects becomes a one-line UsageError."""
    try:
        yield
    except (UsageError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise UsageError(f"{target}: inspecting it raised {sentence(error)}") from None


def find(target: str, name: str | None = None, told: dict | None = None) -> list[Found]:
    """Implementations in `target`: file.py, file.py::function, module or module:function.

    Without a function name, all functions that the file defines under a catalog name count; an
    operator's name stands for its functions. If several are of one operator, Several is raised,
    with a target for each function. `name` is the operator to judge; `told` overrides parts of the
    author's declaration.
    """
    path, _, function = _split(target)
    if not path.strip():
        raise UsageError(f"wanted a file or a module, got {target!r}")
    if _is_model(path):
        return onnx_called.found_in(path, function, name, told)
    module = loaded(path)
    if name and not function:
        own = _offered(module, name) or [(name, f) for f in _named(module, path, name, name)]
    elif function:
        meant = _functions_named(module, function)
        own = [(n, f) for n in meant for f in _named(module, path, n, name or n)]
    else:
        own = _catalogued(module) or _refuse(module, path)
    own = [(n, _told(f, told)) for n, f in own] if told else own
    for _, implementation in own:
        _check_arity(path, implementation)
    _refuse_several(path, own)
    return [found for _, found in own]


def every(target: str, told: dict | None = None) -> list[tuple[str, Found]]:
    """Every implementation in a target, also several of one operator, each with its own target.

    `find` wants one of each operator, because a verdict belongs to an operator. A comparison of an
    author's variants wants all of them; the own target of each finds it again alone. `told`
    overrides parts of the authors' declarations.
    """
    path, _, function = _split(target)
    if function or not path.strip():
        return _alone(target, told)
    module = _load_file(Path(path)) if _is_file(path) else _load_module(path)
    by_name = {op.name: op for op in judged()}
    pairs = []
    for name, forward in vars(module).items():
        op = by_name.get(_operator_name(forward) or name) if callable(forward) else None
        if op is None or not _defined_in(module, forward):
            continue
        own = getattr(module, f"{name}_vjp", None) or getattr(module, f"{op.name}_vjp", None)
        found = _found(op, forward, own)
        _check_arity(path, found)
        pairs.append((f"{path}::{name}", _told(found, told) if told else found))
    if not pairs:
        find(target)  # raises an error with the functions that are there
    return pairs


def _alone(target: str, told: dict | None) -> list[tuple[str, Found]]:
    """The function that a target names, or the functions of an operator that it names."""
    try:
        return [(target, found) for found in find(target, told=told) if found.judged]
    except Several as several:
        return [pair for part, _ in several.parts for pair in _alone(part, told)]


def _refuse_several(path: str, own: list[tuple[str, Found]]) -> None:
    """Raise Several, with all functions in the order of the file, if two are of one operator."""
    first: dict[str, str] = {}
    for n, found in own:
        other = first.setdefault(found.op.name, n)
        if other != n:
            raise Several(
                f"{path}: `{other}` and `{n}` both implement {found.op}; choose one: {path}::{n}",
                tuple((f"{path}::{n}", f.op.name) for n, f in own if f.judged),
            )


def _functions_named(module, function: str) -> list[str]:
    """The function of this name, else those of the operator of this name, else the name itself."""
    if getattr(module, function, None) is not None:
        return [function]
    return [n for n, f in _catalogued(module) if f.op.name == function] or [function]


def _offered(module, name) -> list[tuple[str, Found]]:
    """The module's own implementations of one operator and of its resumed form; [] if none."""
    found = _catalogued(module)
    if not any(f.op.name == name for _, f in found):
        return []
    return [(n, f) for n, f in found if f.op.name in (name, _resumed(name))]


def _told(found: Found, told: dict) -> Found:
    """The implementation with parts of its declaration replaced by `told`.

    `told["silent"]`: only if the author declares nothing. `told["usual"]` has the project's
    settings for functions without a declaration.
    """
    own, usual = bool(found.declared.name), told.get("usual", {})
    if told.get("silent") and own:
        return found
    told = {key: value for key, value in told.items() if key not in ("silent", "usual")}
    try:
        told = told if own else usual | told
        declared = replace(found.declared, name=found.op.name, **told)
    except ValueError as error:
        whence = " (from [tool.refssm])" if usual and not own else ""
        raise UsageError(str(error).replace("implements: ", "", 1) + whence) from None
    return replace(found, declared=declared)


def operator_named(name: str) -> Operator:
    """The operator called `name`; UsageError with the nearest name if there is none."""
    op = named(name)
    if op is not None:
        return op
    others = called(name)
    hint = f"{others[0]} is nearest to it; " if others else ""
    hint = hint or did_you_mean(name, [op.name for op in judged()])
    raise UsageError(
        f"`{name}` is not an operator of the catalog; {hint}`refssm list` prints all names"
    )


def _split(target):
    if os.path.isfile(target) or ":" not in target:
        return target, "", ""
    if "::" in target:
        return target.partition("::")
    if _is_file(target):
        return target, "", ""
    return target.partition(":")


def _is_file(path):
    return path.endswith(".py") or "/" in path or os.path.isfile(path)


def _is_model(path: str) -> bool:
    """True for an ONNX file, also an absent one; a module may be called onnx, too."""
    if not path.endswith(onnx_model.ENDING) or os.path.isfile(path) or "/" in path:
        return path.endswith(onnx_model.ENDING)
    try:
        return importlib.util.find_spec(path) is None
    except Exception:  # its parent is no package, or raises
        return True


def _load_file(path: Path):
    """Import a file by its dotted name if it is in a package, else with its folder on sys.path."""
    if not os.path.isfile(path):
        raise UsageError(f"{path}: {'not a file' if os.path.lexists(path) else 'no such file'}")
    path = path.resolve()
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    sys.path.insert(0, str(root))
    if len(parts) > 1:
        return _load_module(".".join(parts), str(path))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    if path.stem not in sys.modules:  # the name may be that of another module
        sys.modules[path.stem] = module
    execute = spec.loader.exec_module
    return _imported(lambda: execute(module) or module, str(path))


def _load_module(name: str, where: str = ""):
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        known = not name.startswith(".") and importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        known = False
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # importing a parent package raised
        raise UsageError(f"{where or name}: importing it raised {sentence(error)}") from None
    if not known and not where:
        raise UsageError(f"{name}: no such file, and no module of that name")
    return _imported(lambda: importlib.import_module(name), where or name)


def _imported(load: Callable, where: str):
    """Run an import; an exception becomes a one-line UsageError with the author's line number."""
    try:
        return load()
    except KeyboardInterrupt:
        raise
    except SyntaxError as error:
        raise UsageError(f"{where}: {_worded(error)}") from None
    except BaseException as error:
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        advice = f": {INSTALLS[absent]}" if absent in INSTALLS else ""
        raise UsageError(f"{where}: importing it raised {sentence(error)}{advice}") from None


def sentence(error: BaseException) -> str:
    """An exception in one line, with the innermost code line of the author's own, if any is."""
    text = _worded(error)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _ours(f.filename)]
    frames = [f for f in frames if not f.filename.startswith(INSTALLED)] or frames
    return f"{text} ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else text


def _worded(error: BaseException) -> str:
    """Type and message of an exception in one printable line."""
    name = vars(type)["__name__"].__get__(type(error))  # a metaclass may replace __name__
    try:
        text = f"{name}: {error}".strip(": ")
    except BaseException:  # __str__ may raise
        text = name
    return short(text)


def short(text: str) -> str:
    """Text in one line, cut to `LONGEST` characters, with unprintable characters escaped."""
    text = " ".join(text[: 10 * LONGEST].split())
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _ours(filename):
    return filename.startswith((f"{PACKAGE}{os.sep}", "<frozen"))


def _named(module, path, function, name) -> list[Found]:
    forward = getattr(module, function, None)
    if forward is None:
        functions = [n for n, f in vars(module).items() if inspect.isfunction(f)]
        alike = ", ".join(difflib.get_close_matches(function, functions, n=3, cutoff=0.4))
        hint = f"; it has {alike}" if alike else ""
        raise UsageError(f"{path} has no function `{function}`{hint}")
    if not callable(forward):
        raise UsageError(f"{path}: `{function}` is a {type(forward).__name__}, not a function")
    try:
        op = operator_named(_operator_name(forward) or name)
    except UsageError as error:
        raise UsageError(f"{path}: {error}; name its operator by --as") from None
    vjp = getattr(module, f"{function}_vjp", None) or getattr(module, f"{op.name}_vjp", None)
    found = [_found(op, forward, vjp)]
    later = _continued(module, function, op.name)
    if later is not None:
        found.append(replace(_found(operator_named(_resumed(op.name)), later, None), judged=False))
    return found


def _continued(module, function: str, name: str) -> Callable | None:
    """What continues a function from its state: `<function>_from` or `<function>_stateful`, or the
    function with the name of that operator.
    """
    other = _resumed(name)
    own = other and f"{function}{other.removeprefix(name)}"
    found = (getattr(module, n, None) for n in (own, other) if n)
    return next((f for f in found if callable(f) and _operator_name(f) in ("", other)), None)


def loaded(path: str):
    """The module of a file or a dotted name."""
    return _load_file(Path(path)) if _is_file(path) else _load_module(path)


def _resumed(name: str) -> str:
    """The operator's form that starts from a state, if that is another operator; else ""."""
    op = named(name)
    other = resumed(op) if op else None
    return other.name if other and other.name != name else ""


def own(module) -> dict[str, Callable]:
    """The functions that the module itself defines, by name, without imported ones."""
    return {n: f for n, f in vars(module).items() if callable(f) and _defined_in(module, f)}


def _catalogued(module) -> list[tuple[str, Found]]:
    """The module's own functions of operators, with their names; each function once."""
    mine = own(module)
    by_name: dict[str, dict[int, tuple[str, Callable]]] = {}
    for n, f in mine.items():
        by_name.setdefault(_operator_name(f) or n, {}).setdefault(id(f), (n, f))
    return [
        (n, _found(op, f, mine.get(f"{n}_vjp") or mine.get(f"{op.name}_vjp")))
        for op in judged()
        for n, f in by_name.get(op.name, {}).values()
    ]


def _refuse(module, path) -> NoReturn:
    """UsageError: no function of the module is one of an operator."""
    functions = sorted(n for n in own(module) if not n.startswith("_"))[:8]
    has = _modules_of(module) or f"it defines {', '.join(functions) or 'no function'}"
    raise UsageError(
        f"{path}: no function has the name of an operator ({has}); "
        "mark one by `implements`, or run `refssm verify FILE::FUNCTION --as OPERATOR`; "
        "`refssm list` prints the operators"
    )


def _modules_of(package) -> str:
    """The public modules of a package in words, or "" of a module that is none."""
    found = pkgutil.iter_modules(getattr(package, "__path__", ()), f"{package.__name__}.")
    names = [m.name for m in found if not m.name.rpartition(".")[2].startswith("_")]
    return f"its modules are {', '.join(names)}" if names else ""


def _found(op, forward, vjp) -> Found:
    return Found(op, forward, by_hand(forward) or vjp, declared=declared(forward))


def _operator_name(function):
    """The operator that a function's `implements` decorator names, or ""."""
    return declared(function).name


def _defined_in(module, function):
    """True if the module or a submodule defines the object, or the object has no module."""
    made_in = getattr(function, "__module__", None)
    part = hasattr(module, "__path__") and f"{made_in}".startswith(f"{module.__name__}.")
    plain = not (inspect.isroutine(function) or inspect.isclass(function))
    unplaced = plain and "__module__" not in vars_of(function)
    here = part or unplaced or made_in in (module.__name__, None)
    return here or "__refssm__" in vars_of(function)


def _check_arity(path, implementation: Found):
    op = implementation.op
    pairs = [(implementation.forward, [], "")]
    if implementation.vjp is not None:
        pairs.append((implementation.vjp, [f"d{y}" for y in op.outputs], "_vjp"))
    keywords = [*op.static, *filter(None, [implementation.declared.lengths])]
    for function, cotangents, suffix in pairs:
        try:
            signature = inspect.signature(function)
        except Exception:  # no signature: a compiled function or a proxy; its first call will show
            continue
        arguments = [*cotangents, *op.inputs]
        try:
            signature.bind(*arguments, **dict.fromkeys(keywords))
        except TypeError as error:
            called = ", ".join([*arguments, *(f"{name}=…" for name in keywords)])
            own = short(f"{getattr(function, '__name__', op.name)}{signature}")
            as_ = f"{op.name}{suffix}({called})"
            more = _OWN_GATE.format(", ".join(op.inputs)) if _makes_gate(op, signature) else ""
            raise UsageError(f"{path}: {own} cannot be called as {as_}: {error}{more}") from None


_OWN_GATE = (
    "; if it makes its gate itself, −e^A_log softplus(… + dt_bias), declare a function of "
    '({}) that passes zeros for A_log and dt_bias, with adapters=(neg_softplus("log_g"),)'
)


def _makes_gate(op: Operator, signature: inspect.Signature) -> bool:
    """True if a function takes the parameters of the gate that the operator takes as log_g."""
    return "log_g" in op.inputs and {"A_log", "dt_bias"} <= {*signature.parameters}
