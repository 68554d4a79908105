"""What every call goes through: arguments are checked, then run on the device where they are.

The caller's arguments become arrays on one device, their types checked, in one precision.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache, wraps
from numbers import Number
from typing import Any, ParamSpec, TypeVar

import numpy as np

from refssm._declaration.arguments import each
from refssm._declaration.implements import Declaration
from refssm._declaration.operator import Operator
from refssm_gpu._launching.arrays import HALVES, Array, made_here, namespace, real_type
from refssm_gpu._launching.kernel import FIELDS, on_host
from refssm_gpu._launching.missing import require_card, require_new

P = ParamSpec("P")
R = TypeVar("R")
WITH_HALVES = (*FIELDS, *HALVES)  # for operators whose kernels compute halves in single precision


def mirror(
    op: Operator, types: Sequence[str] = FIELDS
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function the mirror of `op`, or of its VJP, on arrays of one device.

    The docstring says of which function it is the mirror; what the function itself says follows.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        op.describe_mirror(function)
        check = _checked if function.__name__ == op.name else _checked_vjp
        return check(op, function, types)

    return decorate


def _checked(op: Operator, function: Callable[P, R], types: Sequence[str]) -> Callable[P, R]:
    """The public function: arrays of one device, sizes and types as the declaration says.

    Raises NoCard without a GPU, TypeError for other arrays or types, ValueError for sizes or
    devices that do not fit, MemoryError if the card's memory is too small.
    """
    bound = inspect.signature(function)

    @wraps(function)
    def public(*args: P.args, **parameters: P.kwargs) -> R:
        values, statics = op.bound(function.__name__, bound, args, parameters)
        arrays = _arrays(op, function.__name__, [*op.inputs], values, types)
        op.sizes(*arrays, **statics)
        return _run(op, function, arrays, statics)

    return _declared(public, types)


def _checked_vjp(op: Operator, function: Callable[P, R], types: Sequence[str]) -> Callable[P, R]:
    """Like `_checked`, for a VJP: cotangents come first and must have the outputs' shapes."""
    bound = inspect.signature(function)
    count = len(op.outputs)
    names = [*(f"d{y}" for y in op.outputs), *op.inputs]

    @wraps(function)
    def public(*args: P.args, **parameters: P.kwargs) -> R:
        values, statics = op.bound(function.__name__, bound, args, parameters)
        arrays = _arrays(op, function.__name__, names, values, types)
        cotangents, primals = arrays[:count], arrays[count:]
        kinds = _output_types(op, tuple(x.dtype for x in primals))
        op.cotangents_fit(function.__name__, cotangents, primals, statics, kinds)
        return _run(op, function, arrays, statics)

    return public


def _arrays(
    op: Operator, called: str, names: Sequence[str], values: Sequence[Any], types
) -> list[Array]:
    """The caller's values as arrays on one device; `called` is the function's name in messages."""
    if not on_host():
        require_card(called)
    args = [typed(f"{op}: `{n}`", value) for n, value in zip(names, values, strict=True)]
    first = one_device(op.name, names, args)
    first = made_here() if first is None else first
    if not on_host():
        require_new(op.name, first.device)
    real = frozenset(name for name, domain in op.inputs.items() if domain.real)
    how = (op.name, names, args, types, op.discrete, op.offsets, real, first)
    with on_device_of(first):
        return within_memory(op.name, first, lambda: converted(*how))


def _run(op: Operator, function: Callable, arrays: Sequence[Array], statics) -> Any:
    """Call the mirror on the arrays' device; NumPy's scalars become arrays."""
    like = arrays[0]
    with on_device_of(like):
        y = within_memory(op.name, like, lambda: function(*arrays, **statics))
        return each(y, lambda a: a if a is None else namespace(like).asarray(a))


@cache
def _output_types(op: Operator, types: tuple[np.dtype, ...]) -> tuple[np.dtype, ...]:
    """Types of the outputs, by the reference; it computes halves in single precision."""
    wide = [np.dtype(np.float32) if t.name in HALVES else t for t in types]
    return op.output_types(*(np.empty(0, t) for t in wide))


def _declared(public: Any, types: Sequence[str]) -> Any:
    """Tell the judge what the function takes: CuPy's arrays, and every type of `types`."""
    framework = "numpy" if on_host() else "cupy"
    public.__refssm__ = Declaration(framework=framework, dtypes=tuple(types), ftz=True)
    public.__refssm_lack__ = _host_lack  # a reason to skip; what a card lacks, CuPy's import says
    return public


def _host_lack() -> str:
    """Why the host build cannot run here, or an empty text; also where it is not asked for."""
    if not on_host():
        return ""
    from refssm_gpu._host.build import NoCompiler, compiler

    try:
        compiler()
    except NoCompiler as lack:
        return str(lack)
    return ""


def typed(what: str, arg: Any) -> Array | Number:
    """`arg` if it is an array of the GPU, or a number; else a TypeError that begins with `what`."""
    if isinstance(arg, Number | np.generic) and not isinstance(arg, str):
        return arg.item() if isinstance(arg, np.generic) else arg
    if on_host():
        if isinstance(arg, np.ndarray):
            return arg
        raise TypeError(f"{what} is a {_kind(arg)}, wanted a NumPy array (REFSSM_GPU=host)")
    import cupy

    if isinstance(arg, cupy.ndarray):
        return arg
    advice = "; cupy.asarray copies it to the GPU"
    if not isinstance(arg, np.ndarray | list | tuple):
        advice = "; cupy.from_dlpack takes it without a copy" if hasattr(arg, "__dlpack__") else ""
    raise TypeError(f"{what} is a {_kind(arg)}, wanted a CuPy array{advice}")


def _kind(arg: Any) -> str:
    """The type of an argument, with its library."""
    kind = type(arg)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def one_device(op: str, names: Sequence[str], args: Sequence[Any]) -> Array | None:
    """The first array, None if all are numbers; ValueError if two are on different devices."""
    pairs = zip(names, args, strict=True)
    arrays = [(name, arg) for name, arg in pairs if not isinstance(arg, Number)]
    if not arrays:
        return None
    where, first = arrays[0]
    if on_host():  # one memory, and NumPy's `device` is a word
        return first
    for name, arg in arrays[1:]:
        if arg.device.id != first.device.id:
            here, there = arg.device.id, first.device.id
            raise ValueError(f"{op}: `{name}` is on cuda:{here}, but `{where}` is on cuda:{there}")
    return first


def converted(
    op: str,
    names: Sequence[str],
    args: Sequence[Any],
    types: Sequence[str],
    discrete,
    offsets,
    real,
    like: Array,
) -> list[Array]:
    """All as arrays beside `like`, in the precision of the widest; each stays real or complex.

    Integers become float64; Python numbers adopt the others' precision, as in NumPy.
    `offsets` become integers, others of `discrete` boolean. TypeError for other types, or for
    complex numbers where `real` wants real ones.
    """
    xp = namespace(like)
    strong = [
        _precise(op, n, x, types, discrete, offsets, real) for n, x in zip(names, args, strict=True)
    ]
    kinds = [kind for kind in strong if kind is not None]
    if {kind.name for kind in kinds} == set(HALVES):
        kinds = [np.dtype(np.float32)]
    wide = np.result_type(*kinds) if kinds else np.dtype(np.float64)
    single = np.result_type(wide, np.complex64)
    arrays = []
    for name, arg in zip(names, args, strict=True):
        if name in discrete:
            whole = xp.asarray(arg)
            arrays.append(whole.astype(np.int64) if name in offsets else whole != 0)
            continue
        compound = _is_complex(arg)
        dtype = single if compound else real_type(wide)
        arrays.append(
            xp.asarray(arg, dtype=dtype)
            if isinstance(arg, Number)
            else arg.astype(dtype, copy=False)
        )
    return arrays


def _is_complex(arg: Any) -> bool:
    return isinstance(arg, complex) if isinstance(arg, Number) else arg.dtype.kind == "c"


def _precise(op, name, arg, types, discrete, offsets, real) -> np.dtype | None:
    """The real type of an argument that decides the precision; None for numbers, or if discrete."""
    what = f"{op}: `{name}`"
    if name in discrete:
        accepted = "iu" if name in offsets else "biu"
        if not isinstance(arg, Number) and arg.dtype.kind not in accepted and arg.size:
            flag = "true or false, or integers, where 0 means false"
            wanted = "integers" if name in offsets else flag
            raise TypeError(f"{what} has dtype {arg.dtype}, wanted {wanted}")
        return None
    if _is_complex(arg) and name in real:
        dtype = "complex128" if isinstance(arg, Number) else arg.dtype
        raise TypeError(f"{what} has dtype {dtype}, wanted a real dtype")
    if isinstance(arg, Number):
        return None
    if arg.dtype.kind in "biu":
        return np.dtype(np.float64)
    if arg.dtype.name not in types:
        raise TypeError(f"{what} has dtype {arg.dtype}, wanted one of {', '.join(types)}")
    return real_type(arg.dtype)


def on_device_of(x: Array) -> AbstractContextManager:
    """A context in which the device of `x` is the current one; on the host NumPy stays silent."""
    return np.errstate(all="ignore") if on_host() else x.device


def within_memory(op: str, x: Array, call: Callable[[], Any]) -> Any:
    """The result of `call`; MemoryError with one sentence if the card has too little memory.

    The error is raised after CuPy's own one is gone: that one keeps the frames of the call alive,
    and with them the arrays that it had made.
    """
    if on_host():
        return call()
    import cupy

    try:
        return call()
    except cupy.cuda.memory.OutOfMemoryError as error:
        message = str(error).partition("(")[0].strip().rstrip(".")
    except Exception as error:  # cuFFT and cuBLAS have classes of their own for it
        if "ALLOC_FAILED" not in str(error):
            raise
        message = str(error)
    free, total = (f"{size / 1e9:.1f} GB" for size in cupy.cuda.runtime.memGetInfo())
    raise MemoryError(f"{op}: {message}; cuda:{x.device.id} has {free} free of {total}")
