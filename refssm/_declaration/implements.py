"""What authors declare about an implementation: its operator, what it supports, its accuracy."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from refssm._declaration.names import did_you_mean
from refssm.adapters import Adapter

Arrays = Mapping[str, np.ndarray]
FRAMEWORKS = ("numpy", "torch", "jax", "cupy")
# kinds of devices by the framework's own names; NumPy has none but the processor, and says so later
DEVICES = {
    "torch": ("cpu", "cuda", "mps", "xpu", "hpu", "xla"),
    "jax": ("cpu", "gpu", "tpu", "cuda", "rocm", "METAL"),
    "cupy": ("cuda", "gpu"),
    "numpy": ("cpu", "cuda", "gpu"),
}
TYPES = ("float32", "float64", "complex64", "complex128", "float16", "bfloat16")
NUMBERS = ("any", "complex")
ARITHMETICS = ("float64", "float32", "tf32", "float16", "bfloat16")


def unknown(what: str, word: object, known: Iterable[str]) -> str:
    """The sentence about an unknown word."""
    return (
        f"unknown {what} {word!r}; {did_you_mean(str(word), known)}wanted one of {', '.join(known)}"
    )


@dataclass(frozen=True)
class Budget:
    """The rounding error that an implementation may have: errors up to C·u·K are accepted.

    C is 16 by default; a chunked scan through exp(cumsum(log a)) declares `Budget(C=64)`.
    `computes` names the type in which it computes, if that differs from the type of its arguments:
    "tf32" for float32 arguments that tensor cores multiply, "float32" for a bfloat16 kernel that
    accumulates in single precision (its errors are then judged by u of that type).
    `normwise=False` refuses grade N: entries that cancel in differences of cumulative sums must
    have digits of their own. `state` names the type in which a recurrence keeps its state between
    steps, or between chunks, if it is narrower: "bfloat16". What that rounding adds is measured.
    """

    C: float = 16.0
    computes: str = ""
    normwise: bool = True
    state: str = ""

    def __post_init__(self):
        if not (isinstance(self.C, Real) and 1 <= self.C <= 1024):
            raise ValueError(f"Budget: `C` must be between 1 and 1024, got {self.C!r}")
        if self.computes != "" and self.computes not in ARITHMETICS:
            raise ValueError(f"Budget: {unknown('arithmetic', self.computes, ARITHMETICS)}")
        if self.state != "" and self.state not in ARITHMETICS:
            raise ValueError(f"Budget: {unknown('type of a state', self.state, ARITHMETICS)}")
        if not isinstance(self.normwise, bool):
            raise ValueError(f"Budget: `normwise` must be True or False, got {self.normwise!r}")


KINDS = {"device": str, "layout": str, "vjp": bool, "accuracy": Budget}
KINDS |= {"ftz": bool, "deterministic": bool, "kinds": str, "lengths": str}
PADDINGS = ("right", "left")
WANTED = {str: "a string", bool: "True or False", Budget: "a Budget"}


@dataclass(frozen=True)
class Declaration:
    """What an author declares about an implementation; `implements` attaches one to a function."""

    name: str = ""
    framework: str = "numpy"
    device: str = ""
    dtypes: tuple[str, ...] = ()  # empty: the judge finds out
    layout: str = ""
    vjp: bool = False
    only: Callable[[Arrays], Arrays | None] | None = None
    accuracy: Budget = field(default_factory=Budget)
    ftz: bool = False
    deterministic: bool = True
    kinds: str = "any"
    adapters: tuple[Adapter, ...] = ()
    unjudged: tuple[str, ...] = ()
    nan_chunk: int = 0
    lengths: str = ""
    padding: str = "right"

    def __post_init__(self):
        for name, kind in KINDS.items():
            if not isinstance(getattr(self, name), kind):
                wanted, came = WANTED[kind], getattr(self, name)
                raise ValueError(f"implements: `{name}` must be {wanted}, got {came!r}")
        if not (self.only is None or callable(self.only)):
            raise ValueError(f"implements: `only` must be a function, got {self.only!r}")
        if self.framework not in FRAMEWORKS:
            raise ValueError(f"implements: {unknown('framework', self.framework, FRAMEWORKS)}")
        kind, colon, number = self.device.partition(":")
        if self.device and (
            kind not in DEVICES[self.framework] or (colon and not number.isdecimal())
        ):
            known = ", ".join(DEVICES[self.framework])
            wanted = f"wanted one of {known}, or with a number: {DEVICES[self.framework][1]}:1"
            what = f"unknown device {self.device!r} for framework {self.framework!r}"
            raise ValueError(f"implements: {what}; {wanted}")
        if strange := [a for a in self.adapters if not isinstance(a, Adapter)]:
            wanted = "functions of refssm.adapters, called: (log_dt(),)"
            raise ValueError(f"implements: `adapters` must be {wanted}, got {strange[0]!r}")
        if strange := [name for name in self.unjudged if not isinstance(name, str)]:
            wanted = "names of arguments"
            raise ValueError(f"implements: `unjudged` must be {wanted}, got {strange[0]!r}")
        if type(self.nan_chunk) is not int or self.nan_chunk < 0:
            wanted = "a number of steps"
            raise ValueError(f"implements: `nan_chunk` must be {wanted}, got {self.nan_chunk!r}")
        for dtype in self.dtypes:
            if dtype not in TYPES:
                raise ValueError(f"implements: {unknown('type', dtype, TYPES)}")
        if self.padding not in PADDINGS:
            raise ValueError(f"implements: {unknown('padding', self.padding, PADDINGS)}")
        self._check_kinds()
        if self.vjp and self.framework in ("numpy", "cupy"):
            wanted = f"write a function {self.name or '<name>'}_vjp"
            raise ValueError(f"implements: {self.framework} has no autodiff for vjp=True; {wanted}")
        if self.name:
            self._check_operator()

    def _check_kinds(self):
        if self.kinds not in NUMBERS:
            raise ValueError(f"implements: {unknown('kinds', self.kinds, NUMBERS)}")
        real = [t for t in self.dtypes if not t.startswith("complex")]
        if self.kinds == "complex" and real:
            raise ValueError(
                f'implements: kinds="complex" leaves out {real[0]}, which `dtypes` declares: '
                "drop one of the two"
            )

    def _check_operator(self):
        from refssm._declaration.adapted import adapted, taken
        from refssm.catalog import LAYERS, judged, named, resumed  # the catalog loads every family

        op = named(self.name)
        if op is None:
            hint = did_you_mean(self.name, [op.name for op in judged()])
            raise ValueError(
                f"implements: `{self.name}` is no operator; {hint}`refssm list` prints all names"
            )
        if self.kinds == "complex" and all(d.real for d in op.inputs.values()):
            raise ValueError(
                f'implements: kinds="complex": {op} has no argument of complex numbers'
            )
        if self.nan_chunk and op.traits.isdisjoint(("causal", "anticausal")):
            raise ValueError(f"implements: nan_chunk={self.nan_chunk}: {op} has no steps in order")
        try:
            adapted(op, self.adapters)
        except ValueError as error:
            raise ValueError(f"implements: {error}") from None
        if self.accuracy.state and (op.family == LAYERS or resumed(op) is None):
            told = f"{op} is no recurrence with a form that starts from a state"
            raise ValueError(f"implements: Budget(state={self.accuracy.state!r}): {told}")
        if self.lengths and not op.rows:
            raise ValueError(f"implements: lengths={self.lengths!r}: {op} has no rows of steps")
        if self.layout:
            from refssm._declaration.layout import in_layout, parse

            op = taken(op, self.adapters)
            layout = parse(in_layout(op, self.layout), self.layout)
            if self.lengths and op.rows in layout.omitted:
                told = f"the layout must have the axis {op.rows}, whose members are the rows"
                raise ValueError(f"implements: lengths={self.lengths!r}: {told}")


def implements(name: str, **declared: Any):
    """Mark a function as an implementation of the operator `name`; the function may have any name.

    framework   "numpy" (default), "torch", "jax" or "cupy": the arrays of its calls and results.
    device      where the arrays live: "cuda", "cuda:1", "gpu" for JAX; default: its own.
    dtypes      the supported types; without them the judge tries the function. "float16" and
                "bfloat16" are judged only if declared.
    layout      the order of its axes, by the names that `refssm show` prints: "b n l, b n l ->
                b n l". 1 is an axis of length one; the judge loops over batch axes left out.
                "(g h)" is one axis that merges g and h as in einops: h varies fastest.
    vjp         True: also judge the gradient of the framework's autodiff. A function
                `<name>_vjp` in the same place is always judged.
    only        a function that receives the arguments of a case by name (keyword arguments
                too) and returns those that the kernel supports (a length cut to a multiple of
                64, a constant decay), or None to decline the case. Names and axes are those of
                the catalog, as `refssm show` prints them, whatever `layout` says. It is asked
                before every call, also with parts of a case, with a size of zero, and with sizes
                that disagree. It must return its own result unchanged. A call may also raise
                NotImplementedError to decline a case.
    accuracy    a `Budget`.
    ftz         True: subnormal numbers may be flushed to zero.
    deterministic  False: outputs of equal calls may differ within tolerance (atomic additions).
    kinds       "complex": it is never called with real arrays, except for arguments that are real
                by definition (a step size). Complex `dtypes` alone say so too, where the operator
                also has real types. "any" (default): real and complex arguments, also mixed.
    adapters    the function's own parameters, if they are not the operator's arguments:
                (log_dt(), neg_exp("w")). See `refssm.adapters`.
    unjudged    names of arguments that a wrapper leaves at their defaults, and the operator does
                not have: ("D", "z"). Reports list them as not judged, with those of the function
                itself, which are found without a declaration.
    lengths     the argument of the function that has the number of steps of each row of a batch,
                an array of whole numbers: "seq_lens". The check `lengths` then calls it with rows
                of different lengths: what is beyond the end of a row does not count, also if it is
                NaN, and the last state is that at the row's own end.
    padding     where such a row is padded: "right" (default) or "left".
    nan_chunk   the chunk of a scan that multiplies masked matrices, in steps: NaN and infinity
                may come out as NaN within their chunk, because 0 times NaN is NaN. Reports have
                a note. The chunked forms of the catalog need no such declaration.

    Raises ValueError for a value that is not possible.

    >>> @implements("linear_scan", framework="torch", layout="b n l, b n l -> b n l", vjp=True)
    ... def my_scan(a, b): ...
    """
    declaration = declared_as(name, declared)

    def mark(function: Any) -> Any:
        if not callable(function):
            raise ValueError(f"implements: wanted a function, got {function!r}")
        try:
            function.__refssm__ = declaration
        except (AttributeError, TypeError):  # compiled functions accept no attributes
            return Marked(function, declaration)
        return function

    return mark


def declared_as(name: str, declared: dict) -> Declaration:
    """The declaration from keyword arguments; ValueError for an unknown keyword or a bad value."""
    strange = sorted(set(declared) - set(Declaration.__dataclass_fields__))
    if strange or not name or not isinstance(name, str):
        known = list(Declaration.__dataclass_fields__)[1:]
        what = "wanted the name of an operator, then any of"
        if strange:
            what = f"unknown keyword `{strange[0]}`; {did_you_mean(strange[0], known)}wanted one of"
        raise ValueError(f"implements: {what} {', '.join(known)}")
    adapters = declared.get("adapters", ())
    adapters = tuple(adapters) if isinstance(adapters, list | tuple) else (adapters,)
    several = {key: _several(declared.get(key, ())) for key in ("dtypes", "unjudged")}
    return Declaration(name, **{**declared, **several, "adapters": adapters})


def _several(names: Any) -> tuple:
    """Names as a tuple, also of a single one."""
    one = isinstance(names, str) or not isinstance(names, Iterable)
    return (names,) if one else tuple(names)


class Marked:
    """A function with its declaration, for functions that accept no attributes."""

    def __init__(self, function: Callable, declaration: Declaration):
        self.function, self.__refssm__ = function, declaration
        self.__name__ = getattr(function, "__name__", declaration.name)

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)
