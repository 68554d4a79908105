"""An operator's declaration, which the judge, tests, benchmarks, docs and commands read.

It stands below the formula and its VJP in the family's file. `OPERATOR.checked(function)`, under
it, makes the public function from the bare formula.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, wraps
from importlib import import_module
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from refssm._declaration.arguments import as_arrays, native, several
from refssm._declaration.contract import TRACED, Contract, Linear
from refssm._declaration.signature import Dims, aligned, cores, leading_axes, length_of

if TYPE_CHECKING:
    from refssm.domains import Domain, Static

P = ParamSpec("P")
R = TypeVar("R")

PACKAGES = {
    "reference": "refssm",
    "oracle": "refssm.oracle",
    "enclosure": "refssm.enclosure",
    "jit": "refssm.jit",
    "gpu": "refssm_gpu",
}
FORMS = ("from", "stateful", "step")  # return all states; outputs and last state; one step
TRAITS = frozenset(
    # matrix-product: its definition multiplies by masked matrices, so 0·NaN may occur in a block
    # anticausal: it runs from the last step to the first
    # quadratic: its definition weighs all pairs of steps
    {"causal", "anticausal", "time-invariant", "state", "transform", "matrix-product", "quadratic"}
)  # and linear:<arguments>[->output]
REFERENCE_TYPES = "fdgFDG"  # no float16: it would need a cast; the GPU mirrors accept it
COMPILED_TYPES = "fdFD"


@dataclass(frozen=True, eq=False)  # compared by identity: `inputs` is a mapping
class Operator:
    """A pure function of arrays, with all facts needed to judge an implementation of it."""

    reference: Callable[..., Any]  # its name and module are the operator's
    signature: str  # "(n),(n)->(l)": names every core dimension, also those that no input has
    inputs: Mapping[str, Domain]  # array arguments, in order; {} for constructors
    parameters: Mapping[str, Static] = field(default_factory=dict)  # keyword-only, not arrays
    outputs: tuple[str, ...] = ("y",)
    form: str = ""  # one of FORMS if the last argument is the previous state; the name ends in it
    batch: str = ""  # leading axes as the field names them, one group per input: "d, d, "
    traits: frozenset[str] = frozenset()
    # what the contract measures with. TRACED: the form whose rounding errors count, if it is not
    # the reference. FFT: the sum that a transform computes. SPECTRUM: the spectrum whose inverse
    # transform is the output. SOLVE: matrix and right-hand side of each output, or its `Equation`.
    # EXPM: the matrix whose exponential it is. INVARIANTS: the invariants of the outputs.
    definition: Callable[..., Any] | None = None
    contract: Contract = TRACED
    citation: str = ""
    lacks: frozenset[str] = frozenset()  # roles that deliberately do not exist
    tags: tuple[str, ...] = ()  # what others call it: models, papers, functions of public code

    def __post_init__(self):
        unknown = {t for t in self.traits if t not in TRAITS and not t.startswith("linear:")}
        assert not unknown, f"{self}: unknown traits {unknown}"
        assert len(self.input_dims) == len(self.inputs), f"{self}: {self.signature}"
        assert len(self.output_dims) == len(self.outputs), f"{self}: {self.signature}"
        assert len(self.batch_axes) == len(self.inputs), f"{self}: batch {self.batch!r}"
        assert self.form in ("", *FORMS), f"{self}: unknown form {self.form!r}"
        assert self.name.endswith(self.form), f"{self}: its form is {self.form!r}"

    def __str__(self):
        return self.name

    @property
    def name(self) -> str:
        """The function's name in every role."""
        return self.reference.__name__

    @property
    def family(self) -> str:
        """The stem of its file or the name of its package; the same in every folder."""
        first, *rest = self.reference.__module__.split(".")
        return rest[0] if first == "refssm" and rest else first

    @cached_property
    def input_dims(self) -> Dims:
        """Core dimensions of each input, from the signature."""
        return cores(self.signature.split("->")[0])

    @cached_property
    def output_dims(self) -> Dims:
        """Core dimensions of each output, from the signature."""
        return cores(self.signature.split("->")[1])

    @cached_property
    def batch_axes(self) -> Dims:
        """Leading axes of each input as the field names them; "1" if it lacks an inner one."""
        return aligned(self.batch, len(self.inputs))

    @cached_property
    def batch_names(self) -> tuple[str, ...]:
        """All batch axes, each once, the outermost first."""
        return tuple(leading_axes(self.batch))

    @property
    def constructor(self) -> bool:
        """True if it has no array inputs; its outputs are in double precision."""
        return not self.inputs

    @property
    def differentiable(self) -> bool:
        """True if there is a VJP."""
        return "vjp" not in self.lacks

    @property
    def leading(self) -> str:
        """First core dimension of the first output (time, for a sequence); "" if it has none."""
        return self.output_dims[0][0] if self.output_dims[0] else ""

    @property
    def rows(self) -> str:
        """The batch axis whose members may end at steps of their own; "" if there is none.

        There is none where flags or offsets divide a sequence already, nor in stages, whose steps
        are chunks.
        """
        steps = self.leading == "l" and any("l" in dims for dims in self.input_dims)
        whole = "causal" in self.traits and not self.discrete
        return self.batch_names[0] if steps and whole and self.batch_names else ""

    @cached_property
    def discrete(self) -> frozenset[str]:
        """Inputs that are flags or offsets; they are not rounded and have no gradient."""
        return frozenset(n for n, d in self.inputs.items() if d.kind in ("flag", "offsets"))

    @cached_property
    def offsets(self) -> frozenset[str]:
        """Inputs that are whole numbers between 0 and the length."""
        return frozenset(n for n, d in self.inputs.items() if d.kind == "offsets")

    @cached_property
    def state_outputs(self) -> tuple[int, ...]:
        """Indices of outputs that are the state after the last step."""
        states = range(1, len(self.outputs)) if "state" in self.traits else ()
        return tuple(j for j in states if self.leading not in self.output_dims[j])

    @cached_property
    def linear_in(self) -> tuple[Linear, ...]:
        """Groups of arguments, and the outputs that are linear in each whole group."""
        texts = sorted(t.removeprefix("linear:") for t in self.traits if t.startswith("linear:"))
        return tuple(self._linear(text) for text in texts)

    def _linear(self, text: str) -> Linear:
        """Parse "b,x0": every output is linear in both together; "B->B_bar": only B_bar is."""
        arguments, _, output = text.partition("->")
        outputs = [output] if output else self.outputs
        return Linear(tuple(arguments.split(",")), tuple(map(self.outputs.index, outputs)))

    def implementation(self, role: str) -> Callable[..., Any]:
        """The operator's function in `role`: "reference", "oracle", "enclosure", "jit", "gpu"."""
        return getattr(import_module(f"{PACKAGES[role]}.{self.family}"), self.name)

    def vjp(self, role: str = "reference") -> Callable[..., Any]:
        """The operator's vector-Jacobian product in `role`."""
        return getattr(import_module(f"{PACKAGES[role]}.{self.family}"), f"{self.name}_vjp")

    @property
    def bare_vjp(self) -> Callable[..., Any]:
        """The reference's VJP without argument checks; the judge traces this one."""
        return inspect.unwrap(self.vjp())

    def checked(self, function: Callable[P, R], types: str = REFERENCE_TYPES) -> Callable[P, R]:
        """`function` with argument checks: lists become arrays; sizes and types are verified."""
        bound = inspect.signature(function)

        @wraps(function)
        def public(*args: P.args, **parameters: P.kwargs) -> R:
            values, statics = self.bound(function.__name__, bound, args, parameters)
            arrays = self.arrays(values, types)
            self.sizes(*arrays, **statics)
            with np.errstate(all="ignore"):
                return as_arrays(function(*arrays, **statics))  # pyright: ignore[reportCallIssue]

        return public

    def checked_vjp(self, function: Callable[P, R], types: str = REFERENCE_TYPES) -> Callable[P, R]:
        """Like `checked`, for a VJP: cotangents come first and must have the outputs' shapes."""
        bound = inspect.signature(function)
        count = len(self.outputs)

        @wraps(function)
        def public(*args: P.args, **parameters: P.kwargs) -> R:
            values, statics = self.bound(function.__name__, bound, args, parameters)
            arrays = self.arrays(values[count:], types)
            kinds = self.output_types(*arrays)
            cotangents = self.arrays(values[:count], types, [f"d{y}" for y in self.outputs])
            self.cotangents_fit(function.__name__, cotangents, arrays, statics, kinds)
            with np.errstate(all="ignore"):
                gradients = function(*cotangents, *arrays, **statics)  # pyright: ignore[reportCallIssue]
                return as_arrays(gradients)

        return public

    def describe_mirror(self, function: Callable[..., Any]) -> None:
        """Begin a mirror's docstring with what it mirrors; AssertionError for another name."""
        name = function.__name__
        assert name in (self.name, f"{self.name}_vjp"), f"{self}: {name} is no mirror of it"
        said = " ".join(filter(None, [f"Mirror of refssm.{name}.", function.__doc__]))
        function.__doc__ = said

    def cotangents_fit(self, function: str, cotangents, arrays, statics, kinds) -> None:
        """ValueError or TypeError unless each cotangent has its output's shape, and is as real."""
        shapes = self.output_shapes(*arrays, **statics)
        told = zip(self.outputs, cotangents, shapes, kinds, strict=True)
        for output, cotangent, shape, kind in told:
            name = f"{function}: `d{output}`"
            if cotangent.shape != shape:
                msg = f"{name} has shape {cotangent.shape}, but `{output}` has {shape}"
                raise ValueError(f"{msg} ({self.signature})")
            if cotangent.dtype.kind == "c" and kind.kind != "c":
                raise TypeError(f"{name} is complex, but `{output}` is real ({kind})")

    def bound(self, name, signature, args, parameters):
        """Arrays in order and keyword arguments of a call; TypeError names the call wanted."""
        try:
            call = signature.bind(*args, **parameters)
        except TypeError as error:
            called = self.call if name == self.name else f"{name}{signature}"
            raise TypeError(f"{name}: {error} ({called})") from None
        call.apply_defaults()
        count = len(signature.parameters) - len(call.kwargs)
        return call.args[:count], call.kwargs

    @property
    def call(self) -> str:
        """The call with its arguments and its signature, for messages."""
        arguments = [*self.inputs, *(["*"] if self.static else []), *self.static]
        return f"{self}({', '.join(arguments)}) {self.signature}"

    @cached_property
    def static(self) -> tuple[str, ...]:
        """Keyword-only arguments: declared parameters, and core dimensions that no input has."""
        known = {d for dims in self.input_dims for d in dims}
        own = (d for dims in self.output_dims for d in dims if not d[0].isdigit())
        sizes = dict.fromkeys(d for d in own if d not in known)
        return tuple(dict.fromkeys([*sizes, *self.parameters]))

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Default values of keyword arguments."""
        keywords = inspect.signature(self.reference).parameters.values()
        return {k.name: k.default for k in keywords if k.default is not k.empty}

    def at_defaults(self, names: Collection[str]) -> Operator:
        """The operator with these keyword arguments always at their defaults."""
        kept = {name: domain for name, domain in self.parameters.items() if name not in names}
        return replace(self, parameters=kept) if names else self

    def arrays(self, args, types: str, names=None) -> list[np.ndarray]:
        """`args` as native arrays of accepted types; TypeError or ValueError says why not."""
        if names is not None:
            return native(self.name, names, args, types)
        real = frozenset(n for n, d in self.inputs.items() if d.real)
        return native(
            self.name, [*self.inputs], args, types, self.discrete - self.offsets, self.offsets, real
        )

    def sizes(self, *arrays: np.ndarray, **statics) -> dict[str, int]:
        """Core dimensions by name; ValueError if two arguments disagree."""
        sizes: dict[str, int] = {}
        for name, domain in self.parameters.items():
            value: Any = statics.get(name, self.defaults.get(name))
            if not domain.admits(value, statics):
                raise ValueError(f"{self}: `{name}` must be {domain.wanted}, got {value!r}")
            if any(name in dims for dims in self.output_dims):
                sizes[name] = int(value)
        for name in [name for name in self.static if name not in self.parameters]:
            size = statics.get(name)
            if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 0:
                raise ValueError(f"{self}: `{name}` must be an integer >= 0, got {size!r}")
            sizes[name] = int(size)
        for name, dims, array in zip(self.inputs, self.input_dims, arrays, strict=True):
            if array.ndim < len(dims):
                wanted = f"core shape ({', '.join(dims)})"
                msg = f"{self}: `{name}` needs {wanted}, got shape {array.shape}"
                raise ValueError(f"{msg} ({self.signature})")
            for dim, size in zip(dims, array.shape[array.ndim - len(dims) :], strict=True):
                if sizes.setdefault(dim, size) != size:
                    earlier = f"earlier arguments have {dim}={sizes[dim]}"
                    if name == next(iter(self.inputs)) and dim not in statics:
                        earlier = f"{dim}={sizes[dim]} along another axis"
                    msg = f"{self}: `{name}` has {dim}={size}, but {earlier}"
                    raise ValueError(f"{msg} ({self.signature})")
        for dim in [d for d in sizes if d[0].isdigit()]:  # "2n" is twice n
            if sizes[dim] != (wanted := length_of(dim, sizes)):
                name = next(
                    n for n, ds in zip(self.inputs, self.input_dims, strict=True) if dim in ds
                )
                if dim.isdigit():
                    msg = f"`{name}` has an axis of {sizes[dim]}, wanted {dim}"
                else:
                    msg = f"`{name}` has {dim}={sizes[dim]}, wanted {wanted}"
                    msg += f" for {dim[1:]}={sizes[dim[1:]]}"
                raise ValueError(f"{self}: {msg} ({self.signature})")
        for name, domain in self.parameters.items():
            value = statics.get(name, self.defaults.get(name))
            if not domain.fits(value, sizes):
                dim = getattr(domain, "divides", "")
                msg = f"{self}: `{name}` must divide {dim}={sizes[dim]}, got {value!r}"
                raise ValueError(msg)
        self.batch_shape(*arrays)
        return sizes

    def fitted(self, statics: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
        """The keywords; one that must divide a size is that size where it does not divide it."""
        known = self.parameters
        return {n: known[n].fitted(v, sizes) if n in known else v for n, v in statics.items()}

    def batch_shape(self, *arrays: np.ndarray) -> tuple[int, ...]:
        """The broadcast leading axes of `arrays`."""
        leading = [
            array.shape[: array.ndim - len(dims)]
            for dims, array in zip(self.input_dims, arrays, strict=True)
        ]
        try:
            return np.broadcast_shapes(*leading)
        except ValueError:
            shapes = ", ".join(f"`{n}` {s}" for n, s in zip(self.inputs, leading, strict=True))
            msg = f"{self}: leading axes do not broadcast: {shapes}"
            first = next(
                name for i, name in enumerate(self.inputs) if not _broadcast(leading[: i + 1])
            )
            raise ValueError(f"{msg}; `{first}` does not fit those before it") from None

    def output_types(self, *arrays: np.ndarray) -> tuple[np.dtype, ...]:
        """Dtype of every output for these arguments; runs the reference on tiny arrays."""
        return _output_types(self, tuple(a.dtype for a in arrays))

    def output_shapes(self, *arrays: np.ndarray, **statics) -> list[tuple[int, ...]]:
        """Shape of every output at these arguments."""
        sizes = self.sizes(*arrays, **statics)
        batch = self.batch_shape(*arrays)
        return [(*batch, *(length_of(d, sizes) for d in dims)) for dims in self.output_dims]


def _broadcast(shapes: list[tuple[int, ...]]) -> bool:
    """True if the shapes broadcast."""
    lengths = zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1)
    return all(len({*axis} - {1}) < 2 for axis in lengths)


@cache
def _output_types(op: Operator, types) -> tuple[np.dtype, ...]:
    dims = zip(op.input_dims, types, strict=True)
    one = defaultdict(lambda: 1)
    halves = [
        np.full([length_of(d, one) for d in ds], 1 if t.kind == "i" else 0.5).astype(t)
        for ds, t in dims
    ]
    with np.errstate(all="ignore"):
        simplest = {name: domain.values[0] for name, domain in op.parameters.items()}
        y = op.reference(*halves, **dict.fromkeys(op.static, 1) | op.fitted(simplest, one))
    return tuple(a.dtype for a in several(y))
