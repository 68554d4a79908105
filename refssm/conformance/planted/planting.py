"""How to plant bugs: rows of a name, a short description, and the wrong program.

The first argument of a wrong program is the right one, so that the bug can be planted in any
implementation: `lambda right, v, w, z: -right(v, w, z)`; for a wrong gradient it is the right VJP:
`lambda right, dk, v, w, z: …`. Instead of a program, a mapping changes single arguments before the
right program, `{"v": np.conj}`, or single gradients after the right VJP, `{"w": np.negative}`, or
cotangents before it, `{"dk": np.conj}`. A program with a small number is an `Epsilon(1e-8,
program_of)` with this number in its description: a report names whatever number others chose.

    SCAN = Planting(LINEAR_SCAN, "float32")
    SCAN.plant(
        ("sign", "b subtracted", {"b": np.negative}),
        ("decay_late", "a_{k-1} for a_k", lambda right, a, b: right(np.roll(a, 1, -2), b)),
    )
    SCAN.plant(("conjugate", "a* for a", {"a": np.conj}), by="value[complex64]")
    SCAN.plant(("input_sign", "db with the other sign", {"b": np.negative}), by="gradient")
    BUGS = SCAN.bugs

Programs that take a shortcut where an argument nearly has a structure follow from the structured
cases that an operator's domains declare, so each is planted in every operator that it fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import is_
from typing import Any

import numpy as np

from refssm._declaration.arguments import each, several
from refssm._declaration.operator import Operator
from refssm.conformance.planted import PlantedBug
from refssm.conformance.planted.arithmetic import bfloat16, float16, single, tf32
from refssm.domains import Domain, Numbers
from refssm.domains.domain import STRUCTURED_TEXTURES


class Epsilon:
    """A wrong program with a small number, `program_of(number)`; `at` takes another number."""

    def __init__(self, number: float, program_of: Callable[[float], Callable]):
        self.number, self.program_of = number, program_of
        self.program = program_of(number)

    def __call__(self, right, *args, **statics):
        return self.program(right, *args, **statics)

    def after(self, change: Callable[[Callable], Callable]) -> Epsilon:
        """The programs that `change` makes of these."""
        return Epsilon(self.number, lambda number: change(self.program_of(number)))

    def at(self, number: float) -> Epsilon:
        """The same with another number."""
        return Epsilon(number, self.program_of)


def in_words(number: float) -> str:
    """1e-8, 2.5e-6: as descriptions of planted bugs write it."""
    digits, _, exponent = f"{number:.2e}".partition("e")
    return f"{float(digits):g}e{int(exponent)}"


Shortcut = tuple[str, str, Callable]


def of_arguments(op: Operator) -> Iterator[tuple[str, str, str, Callable]]:
    """For each shortcut its name, a short description, the argument, and what becomes of it."""
    for name, domain in op.inputs.items():
        for texture in STRUCTURED_TEXTURES:
            if texture not in _textures(domain) or texture not in SHORTCUTS:
                continue
            bug, what, change = SHORTCUTS[texture]
            yield f"{name}_{bug}", what.format(name), name, change
        if name == "dt" and "one" in domain.maps and "alike" in _textures(domain):
            yield "dt_about_one", "dt = 1 where np.isclose says so", name, _about_one


def of_keywords(op: Operator) -> Iterator[tuple[str, str, Callable]]:
    """For each keyword with values beside others: a program with the nearest of these others."""
    for name, parameter in op.parameters.items():
        if isinstance(parameter, Numbers) and parameter.close:
            what = f"{name} taken as 0, ½ or 1 where np.isclose says so"
            yield f"{name}_about", what, _nearest(name, parameter.values)


def _textures(domain: Domain) -> set[str]:
    return {texture for textures in domain.structured.values() for texture in textures}


def _nearest(name: str, usual) -> Callable:
    def program(right, *args, **statics):
        near = next((v for v in usual if np.isclose(statics[name], v)), statics[name])
        return right(*args, **{**statics, name: near})

    return program


def _one_for_all(x):
    """The first entry for all entries, if none differs by more than 4 %."""
    if x.size == 0 or np.abs(x - x.flat[0]).max() > 0.04 * np.abs(x.flat[0]):
        return x
    return np.full_like(x, x.flat[0])


def _about_one(dt):
    return np.where(np.isclose(dt, 1), dt.dtype.type(1), dt)


def _diagonal(A):
    """The diagonal alone, if the rest is small."""
    diagonal = A * np.eye(A.shape[-1], dtype=A.dtype)
    return diagonal if np.allclose(A, diagonal, atol=1e-4) else A


def _symmetric(A):
    """The Hermitian part, if it is nearly all."""
    adjoint = A.conj().swapaxes(-1, -2)
    return (A + adjoint) / 2 if np.allclose(A, adjoint, rtol=2e-3) else A


def _flushed(a):
    return np.where(np.abs(a) < 1e-15, 0, a).astype(a.dtype)


def _flushed_logarithm(log_a):
    return np.where(log_a.real < -35, log_a - 1e4, log_a).astype(log_a.dtype)


SHORTCUTS: dict[str, Shortcut] = {
    "alike": (
        "of_first",
        "the first {0} for all where none differs by more than 4 %",
        _one_for_all,
    ),
    "nearly diagonal": ("taken_as_diagonal", "{0} taken as diagonal by np.allclose", _diagonal),
    "nearly symmetric": ("taken_as_symmetric", "{0} taken as symmetric by np.allclose", _symmetric),
    "decayed": ("flushed", "decays below 1e-15 taken as 0", _flushed),
    "lowered": ("flushed", "decays below e^-35 taken as 0", _flushed_logarithm),
}


LARGE = 2**15
Row = tuple[str, str, Callable | Mapping[str, Callable]]


class Planting:
    """The planted bugs of one operator; each names the check that catches it.

    `dtype` is the type for checks that name none. A family may write its bugs for one common form;
    `adapt` turns such a program into one of this operator, whose first argument is still the right
    program.
    """

    def __init__(self, op: Operator, dtype: str, adapt: Callable | None = None):
        self.op, self.dtype, self.adapt = op, dtype, adapt
        self.bugs: list[PlantedBug] = []

    def plant(self, *rows: Row, by: str = "value") -> None:
        """Plant rows that one check catches, such as `value`, `gradient` or `nan[complex64]`."""
        for name, what, wrong in rows:
            self._add(name, what, wrong, by)

    def bug(self, name: str, what: str, by: str = "value") -> Callable[[Callable], Callable]:
        """A decorator that plants a program too long for a row."""

        def register(program: Callable) -> Callable:
            self._add(name, what, program, by)
            return program

        return register

    def usual(self) -> None:
        """Plant mistakes that fit any operator: fewer bits, memory, repetition, batches."""
        double = "complex128" if "complex" in self.dtype else "float64"
        self.plant(
            *FEWER_BITS,
            ("first_of_batch", "the first channel's arguments for all", of_first(self.op)),
        )
        self.plant(*SINGLE_FOR_DOUBLE, by=f"value[{double}]")
        self.plant(
            ("unrepeatable", "a result that depends on the call", every_third_call()), by="repeat"
        )
        for check, row in MEMORY.items():
            self.plant(row, by=check)
        for name, domain in self.op.inputs.items():
            if domain.kind == "flag":
                what = f"`{name}` inverted by ~, which makes no integer false"
                self.plant(("integers_inverted", what, {name: _only_flags}), by="flags")
        self.kept()
        self.shortcuts()
        if "transform" not in self.op.traits:
            self.plant(("nan_swallowed", "NaN replaced by zero", _without_nan), by="nan")

    def kept(self) -> None:
        """Plant what is kept from one call to the next: results, and buffers of large outputs."""
        what = "a result kept by the identity of the arguments"
        self._add_as_it_is("kept_by_identity", what, _kept_result(), "repeat")
        if len(self.op.inputs) > 1:
            what = "a result kept for all arguments but the last"
            self._add_as_it_is("kept_without_the_last", what, _kept_by_values(), "repeat")
        if self.op.leading == "l" and "l" in self.op.output_dims[0]:  # as large as wanted
            what = "large outputs lie in one buffer"
            self._add_as_it_is("pooled_output", what, _pooled(), "alias")

    def shortcuts(self) -> None:
        """Plant what takes an argument as something that it only nearly is, in double precision."""
        by = f"value[{'complex128' if 'complex' in self.dtype else 'float64'}]"
        for name, what, argument, change in of_arguments(self.op):
            self._add_as_it_is(name, what, _arguments_changed(self.op, {argument: change}), by)
        for name, what, program in of_keywords(self.op):
            self._add_as_it_is(name, what, program, by)

    def _add(self, name, what, wrong, by) -> None:
        check, _, dtype = by.rstrip("]").partition("[")
        of_gradient = check == "gradient"
        if isinstance(wrong, Mapping):
            change = _gradients_changed if of_gradient else _arguments_changed
            wrong = change(self.op, wrong)
        elif self.adapt is not None:
            wrong = wrong.after(self.adapt) if isinstance(wrong, Epsilon) else self.adapt(wrong)
        name = f"vjp_{name}" if of_gradient else name
        self._add_as_it_is(name, what, wrong, f"{check}[{dtype or self.dtype}]")

    def _add_as_it_is(self, name, what, program, by) -> None:
        """Add a program of this operator, not of the family's common form."""
        caught_by = by if "[" in by else f"{by}[{self.dtype}]"
        self.bugs.append(PlantedBug(self.op.name, name, caught_by, what, program))


class InEach:
    """Planted bugs, each in several operators; `adapt(op)` adapts programs to one operator."""

    def __init__(self, adapt):
        self.adapt, self.bugs = adapt, []

    def plant(self, *rows, of=None, by="value"):
        """Plant rows for one check: (operators, name, what, wrong), or all in operators `of`."""
        for operators, *row in rows if of is None else ((of, *row) for row in rows):
            for op in operators:
                planting = Planting(op, "float32", self.adapt(op))
                planting.plant(row, by=by)
                self.bugs += planting.bugs


def of_result(change: Callable) -> Callable:
    """A program that changes the right result; each output is an argument of `change`."""
    return lambda right, *args, **statics: change(*several(right(*args, **statics)))


def of_each_result(change: Callable) -> Callable:
    """A program that changes every output, or every gradient, in the same way."""

    def changed(right, *args, **statics):
        return each(right(*args, **statics), change)

    return changed


def instead(program: Callable) -> Callable:
    """A program that does not use the right one."""
    return lambda right, *args, **statics: program(*args, **statics)


def _arguments_changed(op: Operator, changes: Mapping[str, Callable]) -> Callable:
    """The right program with some of its arguments changed, by name."""
    places = _places([*op.inputs], changes)

    def program(right, *args, **statics):
        given = (places[i](x) if i in places else x for i, x in enumerate(args))
        return right(*given, **statics)

    return program


def _gradients_changed(op: Operator, changes: Mapping[str, Callable]) -> Callable:
    """The right VJP with changed cotangents (by names such as `dy`) or gradients."""
    cotangents = [f"d{y}" for y in op.outputs]
    before = {n: change for n, change in changes.items() if n in cotangents}
    after = _places([*op.inputs], {n: c for n, c in changes.items() if n not in before})
    before = _places(cotangents, before)

    def program(right, *args, **statics):
        given = (before[i](x) if i in before else x for i, x in enumerate(args))
        gradients = right(*given, **statics)
        return tuple(after[i](g) if i in after else g for i, g in enumerate(gradients))

    return program


def _places(names: list[str], changes: Mapping[str, Callable]) -> dict[int, Callable]:
    """The changes by position instead of by name."""
    unknown = {*changes} - {*names}
    assert not unknown, f"{unknown} not among {names}"
    return {names.index(name): change for name, change in changes.items()}


def but_last(x):
    """All but the last of several, along the last axis."""
    return x[..., : max(1, x.shape[-1] - 1)]


def in_arithmetic(cast: Callable) -> Callable:
    """The right program with arguments and results rounded by `cast`."""
    return lambda right, *args, **statics: of_each_result(cast)(right, *map(cast, args), **statics)


def every_third_call() -> Callable:
    """The right program, but every third result is 1 % too large."""
    calls = [0]

    def unrepeatable(right, *args, **statics):
        calls[0] += 1
        if calls[0] % 3:
            return right(*args, **statics)
        return of_each_result(lambda a: a * a.dtype.type(1.01))(right, *args, **statics)

    return unrepeatable


def of_first(op: Operator) -> Callable:
    """All arguments but the first (or the only one) from the first member of the batch."""

    def program(right, *args, **statics):
        firsts = [_first(a, len(dims)) for a, dims in zip(args, op.input_dims, strict=True)]
        return right(*((args[0], *firsts[1:]) if len(args) > 1 else firsts), **statics)

    return program


def _first(a, rank):
    """The first member of the batch for all members, if there is a batch axis."""
    return np.broadcast_to(a[:1], a.shape) if a.ndim > min(rank, 1) else a


def _single_inside(right, *args, **statics):
    """Computed in single precision, returned in the type of the arguments."""
    precision = np.finfo(np.result_type(*args)).dtype
    widened = of_each_result(lambda a: a.astype(np.result_type(a, precision)))
    return widened(right, *map(single, args), **statics)


def _only_flags(a):
    """Flags as they are; of integers none is true, as of `~a == 0`."""
    return a if a.dtype == bool else np.zeros_like(a)


def _without_nan(right, *args, **statics):
    return right(*(np.nan_to_num(a, nan=0) for a in args), **statics)


def _overwriting(right, *args, **statics):
    y = of_each_result(np.copy)(right, *args, **statics)
    args[0][...] += 1
    return y


def _writing(right, *args, **statics):
    [a for a in args if a.dtype.kind not in "bi"][-1][...] *= 1
    return right(*args, **statics)


def _kept_result() -> Callable:
    """The result of the call before, if that had the same arrays, whatever is in them now."""
    before: dict[str, tuple] = {"args": (), "result": ()}

    def kept(right, *args, **statics):
        same = len(args) == len(before["args"]) and all(map(is_, args, before["args"]))
        if not same:
            before["args"], before["result"] = args, several(right(*args, **statics))
        result = tuple(map(np.copy, before["result"]))
        return result if len(result) > 1 else result[0]

    return kept


def _kept_by_values() -> Callable:
    """The result of the call before, if all arguments but the last have the same values."""
    before: dict[str, Any] = {"key": None, "result": ()}

    def kept(right, *args, **statics):
        *others, last = args
        key = tuple((a.shape, a.dtype, a.tobytes()) for a in others), last.shape, statics
        if key != before["key"]:
            before["key"], before["result"] = key, several(right(*args, **statics))
        result = tuple(map(np.copy, before["result"]))
        return result if len(result) > 1 else result[0]

    return kept


def _pooled() -> Callable:
    """The right program, but first outputs of `LARGE` bytes are views of one buffer."""
    pool: dict[tuple, np.ndarray] = {}

    def pooled(right, *args, **statics):
        first, *others = several(right(*args, **statics))
        if first.nbytes >= LARGE:
            memory = pool.setdefault((first.shape, first.dtype.str), np.empty_like(first))
            memory[...] = first
            first = memory
        return (first, *others) if others else first

    return pooled


def in_memory_order(a):
    """The array read as if it were contiguous."""
    return a.ravel(order="K").reshape(a.shape)


def _returning_input(right, *args, **statics):
    """The first output, copied into the memory of an argument that is large enough."""
    first, *others = several(right(*args, **statics))
    for a in args:
        if a.dtype == first.dtype and a.size >= first.size:
            memory = a.reshape(-1)[: first.size].reshape(first.shape)
            memory[...] = first
            return (memory, *others) if others else memory
    return (first, *others) if others else first


FEWER_BITS = [
    (cast.__name__, f"{cast.__name__} arithmetic", in_arithmetic(cast))
    for cast in (float16, bfloat16, tf32)
]
SINGLE_FOR_DOUBLE = [
    ("single_inside", "single precision inside a double interface", _single_inside),
    ("narrow_result", "single precision returned for double", of_each_result(single)),
]
# of an operator whose gradients long double cannot judge: those of solves
SINGLE_GRADIENT = (
    "single_inside", "single precision inside a double backward pass", _single_inside,
)  # fmt: skip
MEMORY = {
    "unchanged": ("overwrites_input", "an argument used as scratch memory", _overwriting),
    "readonly": ("writes_scratch", "an argument written to and restored", _writing),
    "strides": (
        "strides_ignored",
        "memory read as if it were contiguous",
        lambda right, *args, **statics: right(*map(in_memory_order, args), **statics),
    ),
    "alias": ("returns_input", "the result lies in an argument's memory", _returning_input),
}
