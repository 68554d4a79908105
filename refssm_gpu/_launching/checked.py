"""What every call goes through: arguments are checked, then run on the device where they are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from refssm._declaration.arguments import each
from refssm._declaration.implements import Declaration
from refssm._declaration.operator import Operator
from refssm_gpu._launching.arrays import HALVES, Array, made_here, namespace
from refssm_gpu._launching.conduct import on_device_of, within_memory
from refssm_gpu._launching.inputs import converted, one_device, typed
from refssm_gpu._launching.kernel import FIELDS
from refssm_gpu._launching.missing import require_card, require_new
from refssm_gpu._launching.target import host_lack, on_host

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
    how = (op.name, names, args, types, op.flags, real, first)
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
    public.__refssm_lack__ = host_lack  # a reason to skip; what a card lacks, CuPy's import says
    return public
