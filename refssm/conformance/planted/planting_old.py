"""How bugs are planted in an operator, and those that any implementation may have."""

from __future__ import annotations

import numpy as np

from refssm._operator import Operator
from refssm.conformance.planted import Deviation
from refssm.conformance.planted.arithmetic import bfloat16, float16, single, tf32


class Planting:
    """The planted bugs of one operator; each names the check that catches it."""

    def __init__(self, op: Operator, dtype: str):
        self.op, self.dtype, self.bugs = op, dtype, []
        self.right, self.right_vjp = op.reference, op.bare_vjp

    def forward(self, name: str, what: str, caught_by: str = "", dtype: str = ""):
        """Register a wrong implementation."""
        check = f"{caught_by or 'value'}[{dtype or self.dtype}]"

        def register(function):
            self.bugs.append(Deviation(self.op.name, name, check, what, function))
            return function

        return register

    def gradient(self, name: str, what: str, dtype: str = ""):
        """Register a wrong gradient of a right implementation."""
        check = f"gradient[{dtype or self.dtype}]"

        def register(vjp):
            bug = Deviation(self.op.name, f"vjp_{name}", check, what, self.right, vjp)
            self.bugs.append(bug)
            return vjp

        return register

    def changed_gradient(self, name: str, what: str, dtype: str = "", **changes):
        """Register the right VJP with some gradients changed: by argument, f(gradient, step)."""
        names = list(self.op.inputs)
        assert set(changes) <= set(names), f"{self.op}: {set(changes)}"

        def vjp(*args, **statics):
            gradients = zip(names, self.right_vjp(*args, **statics), strict=True)
            return tuple(changes[n](g, args[-1]) if n in changes else g for n, g in gradients)

        self.gradient(name, what, dtype)(vjp)

    def usual(self) -> None:
        """What goes wrong anywhere: arithmetic in fewer bits, memory, repetition, batches."""
        self._fewer_bits()
        self._memory()
        right = self.right
        self.forward("first_of_batch", "the first channel's arguments for all")(
            lambda *args, **statics: right(*_of_first(self.op, args), **statics)
        )
        self.forward("unrepeatable", "a result that depends on the call", "repeat")(
            _every_third_call(right)
        )
        if "transform" not in self.op.traits:
            self.forward("nan_swallowed", "NaN replaced by zero", "nan")(
                lambda *args, **statics: right(*(np.nan_to_num(a, nan=0) for a in args), **statics)
            )

    def _fewer_bits(self) -> None:
        right, double = self.right, "complex128" if "complex" in self.dtype else "float64"
        for name, cast in {"float16": float16, "bfloat16": bfloat16, "tf32": tf32}.items():
            self.forward(name, f"{name} arithmetic")(
                lambda *args, cast=cast, **statics: _each(cast, right(*map(cast, args), **statics))
            )
        self.forward("single_inside", "single precision inside a double interface", "", double)(
            lambda *args, **statics: _widened(right(*map(single, args), **statics), args)
        )
        self.forward("narrow_result", "single precision returned for double", "", double)(
            lambda *args, **statics: _each(single, right(*args, **statics))
        )

    def _memory(self) -> None:
        right = self.right

        @self.forward("overwrites_input", "an argument used as scratch memory", "unchanged")
        def _(*args, **statics):
            y = _each(np.copy, right(*args, **statics))
            args[0][...] += 1
            return y

        @self.forward("writes_scratch", "an argument written to and restored", "readonly")
        def _(*args, **statics):
            [a for a in args if a.dtype.kind != "b"][-1][...] *= 1
            return right(*args, **statics)

        self.forward("strides_ignored", "memory read as if it were contiguous", "strides")(
            lambda *args, **statics: right(*map(_in_memory_order, args), **statics)
        )
        self.forward("returns_input", "the result lies in an argument's memory", "alias")(
            lambda *args, **statics: _within(args, right(*args, **statics))
        )


def _each(function, y):
    """A function of every output."""
    return tuple(map(function, y)) if isinstance(y, tuple) else function(y)


def _widened(y, args):
    """In double precision where an argument is."""
    precision = np.finfo(np.result_type(*args)).dtype
    return _each(lambda a: a.astype(np.result_type(a, precision)), y)


def _of_first(op, args):
    """Every argument but the first from the first member of the batch; the only one too."""
    firsts = [_first(a, len(dims)) for a, dims in zip(args, op.input_dims, strict=True)]
    return (args[0], *firsts[1:]) if len(args) > 1 else firsts


def _first(a, rank):
    """The first member of the batch in place of all, where there is a batch axis to take."""
    return np.broadcast_to(a[:1], a.shape) if a.ndim > min(rank, 1) else a


def _in_memory_order(a):
    return a.ravel(order="K").reshape(a.shape)


def _within(args, y):
    """The first output copied into the memory of an argument that is large enough."""
    first, *others = y if isinstance(y, tuple) else (y,)
    for a in args:
        if a.dtype == first.dtype and a.size >= first.size:
            memory = a.reshape(-1)[: first.size].reshape(first.shape)
            memory[...] = first
            return (memory, *others) if others else memory
    return y


def _every_third_call(right):
    calls = [0]

    def unrepeatable(*args, **statics):
        calls[0] += 1
        y = right(*args, **statics)
        return y if calls[0] % 3 else _each(lambda a: a * a.dtype.type(1.01), y)

    return unrepeatable
