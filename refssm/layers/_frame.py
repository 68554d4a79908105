"""What a layer is: named parameters in order, with shapes and sources, and four pure functions.

A layer's file has, in this order, the class of its parameters, `init`, forward over a sequence and
its gradient, and `stateful`, forward over a piece from a given state. A step is a piece of length
1. A layer that reads the future has no states: its declaration leaves out `stateful` and `states`;
with another kernel for each length of a signal, its `stateful` is `of_one_length`.
`ops` is where operators come from: `refssm`, or `operators("jit")`.

A layer is also operators, derived from its declaration: what the judge judges somebody's block by.
`<layer>_layer` has the arguments u (l, h), what the layer reads beside it, then the parameters in
order, and the output y (l, h).
`<layer>_layer_stateful` has the states before the first step too, and returns those after the last.
A layer that is not causal has only the first, without the traits `causal` and `state`.

`bare` has operators in the forms that layers call, when the judge runs a layer to bound its errors.
They are the references without their checks of arguments, so that tracked arrays pass. Those that
transform have a rule for their errors in a norm (`refssm/conformance/gauges/layers.py`): a sum of
the errors of single operations would be wrong for them.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from importlib import import_module
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

import refssm
from refssm._declaration.contract import CHAIN
from refssm._declaration.operator import PACKAGES, Operator
from refssm._declaration.signature import length_of
from refssm._numerics.broadcasting import unbroadcast_each
from refssm._numerics.elimination import solved
from refssm._numerics.overridable import overridable
from refssm._numerics.powers import states
from refssm.catalog import OPERATORS
from refssm.convolution import CAUSAL_CONVOLUTION
from refssm.discretize import DISCRETIZE_BILINEAR
from refssm.domains import Domain, layer_signals, weights_of_rows
from refssm.hope import HOPE_KERNEL
from refssm.linear_attention.gated_delta import GATED_DELTA_RULE, GATED_DELTA_RULE_STATEFUL

# what layers use between operators, by family; and which of it a role has
FUNCTIONS = {
    "activations": ("gelu", "silu", "gate", "glu"),
    "norms": ("layer_norm", "rms_norm", "batch_norm"),
}
MIRRORED = {
    "jit": {"activations": ("gelu", "silu", "gate", "glu"), "norms": ("layer_norm",)},
    "gpu": {"_algebra.activations": ("gelu",)},
}
CORES = {"jit": "_compiling.threads"}  # roles on cores, and the module with `each_on_one_core`
CARDS = {"gpu": "_launching.arrays"}  # roles on cards, and the module with `placed` and `fetched`


def _with_vjp(names) -> list[str]:
    return [f"{name}{suffix}" for name in names for suffix in ("", "_vjp")]


BETWEEN = [name for names in FUNCTIONS.values() for name in _with_vjp(names)] + ["batch_norm_fixed"]
T = TypeVar("T", bound="Parameters")
State = tuple[np.ndarray, ...]
Ops = Any  # a module or a namespace with the operators' names


def parameter(
    shape: str, start: str, group: str = "weights", domain: Domain = weights_of_rows
) -> Any:
    """A parameter: its shape in letters, how it starts and who says so, its group in AdamW, and
    the numbers with which the judge tries it."""
    told = {"shape": tuple(shape.split()), "start": start, "group": group, "domain": domain}
    return field(metadata=told)


@dataclass(frozen=True)
class Parameters:
    """Parameters of a layer, or their gradients: arrays under names, in a fixed order."""

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def map(self: T, function: Callable) -> T:
        """The same with `function` of each array."""
        return type(self)(**{name: function(x) for name, x in self.arrays().items()})

    def resampled(self: T, factor: float) -> T:
        """The same system for signals whose samples are `factor` times as far apart: dt times
        `factor`. ValueError for a layer whose steps are not times."""
        steps = {n: a for n, a in self.arrays().items() if n.startswith("log_dt")}
        if not steps:
            raise ValueError(f"{type(self).__name__} has no `log_dt`, so it knows no sampling rate")
        if not 0 < factor < np.inf:
            raise ValueError(f"`factor` must be a positive number, got {factor}")
        return replace(self, **{n: a + a.dtype.type(np.log(factor)) for n, a in steps.items()})

    @classmethod
    def groups(cls) -> dict[str, str]:
        """The group of each parameter."""
        return {f.name: f.metadata["group"] for f in fields(cls)}


def absent(*given: Any) -> Any:
    """What stands for a function that a layer does not give."""
    raise NotImplementedError


def without_states(*given: Any) -> Any:
    """What stands for `stateful` of a layer that is not causal; its `rest` refuses with it, too."""
    raise TypeError(
        "a layer that reads the future has no states and no steps; "
        "call `forward` with the whole signal"
    )


def of_one_length(*given: Any) -> Any:
    """What stands for `stateful` of a layer that has another kernel for each length of a signal."""
    raise TypeError(
        "a layer whose kernel depends on the length of the signal has no states and no steps; "
        "call `forward` with the whole signal"
    )


def as_it_is(ops: Ops, p, l: int):
    """The parameters as they are, and the identity."""
    return p, lambda dp: dp


DERIVED = ("forward", "vjp", "run")  # a layer gives the first two or the last


def is_given(function: Callable) -> bool:
    """Whether a layer's declaration has it: it is not absent, nor derived from the others."""
    return function is not absent and not isinstance(getattr(function, "__self__", None), Layer)


@dataclass(frozen=True, eq=False)
class Layer:
    """A map of signals (…, l, h) with parameters."""

    name: str
    kind: type[Parameters]
    init: Callable[..., Any]  # init(rng, *, h, n=64, …): its defaults are the usual sizes
    # stateful(ops, p, u, state): y, and the next state
    stateful: Callable[..., tuple] = without_states
    source: str = ""
    # Either `forward` and `vjp`, which computes again what it needs of the forward pass:
    forward: Callable[..., np.ndarray] = absent  # forward(ops, p, u)
    vjp: Callable[..., tuple] = absent  # vjp(ops, dy, p, u): gradients of p, and of u
    # or `run(ops, q, u)`: the output, and the function from dy to the gradients of q and of u. Here
    # q comes from `prepared(ops, p, l)`: what the parameters alone decide, once for a whole batch,
    # and the function from the gradient of q to that of p. Without it q is p.
    run: Callable[..., tuple] = absent
    prepared: Callable[..., tuple] = as_it_is
    # by name, shape in letters and domain, for the judge; `beside`: inputs after u, before a state,
    # whose gradients `vjp` and `run` return after that of u
    beside: Mapping[str, tuple[str, Domain]] = field(default_factory=dict)
    states: Mapping[str, tuple[str, Domain]] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()  # besides causal and state, as of an `Operator`
    tags: tuple[str, ...] = ()  # what others call it, as of an `Operator`
    judged: bool = True  # False: its definition is not in refssm/oracle/layers.py yet

    def __str__(self):
        return self.name

    def __post_init__(self):
        # `replace` gives what the old layer derived: it is derived again, from the new functions
        given = {name for name in DERIVED if is_given(getattr(self, name))}
        if given == {"forward", "vjp"}:
            object.__setattr__(self, "run", self._again)
        elif given == {"run"}:
            object.__setattr__(self, "forward", self._forward)
            object.__setattr__(self, "vjp", self._vjp)
        else:
            found = ", ".join(sorted(given)) or "none"
            raise TypeError(f"layer {self.name}: wanted `run`, or `forward` and `vjp`; got {found}")

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The usual sizes besides h: the integers among the defaults of `init`."""
        given = inspect.signature(self.init).parameters
        return {name: p.default for name, p in given.items() if type(p.default) is int}

    @cached_property
    def starts(self) -> dict[str, Any]:
        """The options of the start: names or numbers among the defaults of `init`."""
        given = inspect.signature(self.init).parameters
        return {n: p.default for n, p in given.items() if type(p.default) in (str, float)}

    @property
    def causal(self) -> bool:
        """Whether it can be computed step by step."""
        return self.stateful not in (without_states, of_one_length)

    @property
    def reads_future(self) -> bool:
        """Whether an output depends on later inputs."""
        return self.stateful is without_states

    def _again(self, ops: Ops, p, u: np.ndarray, *beside: np.ndarray):
        return self.forward(ops, p, u, *beside), lambda dy: self.vjp(ops, dy, p, u, *beside)

    def _forward(self, ops: Ops, p, u: np.ndarray, *beside: np.ndarray) -> np.ndarray:
        return self.run(ops, self.prepared(ops, p, u.shape[-2])[0], u, *beside)[0]

    def _vjp(self, ops: Ops, dy: np.ndarray, p, u: np.ndarray, *beside: np.ndarray):
        q, back = self.prepared(ops, p, u.shape[-2])
        dq, *dinputs = self.run(ops, q, u, *beside)[1](dy)
        return back(dq), *dinputs

    def rest(self, p, batch: tuple[int, ...] = ()) -> State:
        """The state before the first step: zeros of declared shapes, in the precision of `p`."""
        if not self.causal:
            self.stateful()  # which says why there are none
        size, dtypes = {}, [np.complex64]
        for x, (letters, _) in zip(p.arrays().values(), _parameters(self).values(), strict=True):
            size |= zip(letters, x.shape, strict=True)
            dtypes.append(x.dtype)
        wide = np.result_type(*dtypes)
        types = {"real": np.finfo(wide).dtype, "complex": wide}
        shapes = [(*batch, *(length_of(s, size) for s in text.split()))
                  for text, _ in self.states.values()]  # fmt: skip
        kinds = [types[domain.kind] for _, domain in self.states.values()]
        beside = next(iter(p.arrays().values()))  # in whose library the states are
        return tuple(np.zeros(*given, like=beside) for given in zip(shapes, kinds, strict=True))

    def step(self, ops: Ops, p, u: np.ndarray, *rest: Any) -> tuple[np.ndarray, State]:
        """One input (…, h) and a state: the output and the next state. Inputs beside u, one number
        (…) each, come before the state."""
        *beside, state = rest
        given = (x[..., None] for x in beside)
        y, state = self.stateful(ops, p, u[..., None, :], *given, state)
        return y[..., 0, :], state


def operators(role: str) -> SimpleNamespace:
    """Every operator of the catalog in this role, with its VJP, and activations and norms; the
    reference where the operator's declaration, or MIRRORED, says that the role lacks it. If the
    role works on cores, also `each_on_one_core(function, items)`; if it works on a card, also
    `placed(x)` and `fetched(x)`, which bring an array there and back."""
    space = {name: getattr(refssm, name) for name in BETWEEN}
    for op in OPERATORS:
        place = "reference" if role in op.lacks else role
        space[op.name] = op.implementation(place)
        if op.differentiable:
            space[f"{op.name}_vjp"] = op.vjp(place)
    for family, names in MIRRORED.get(role, {}).items():
        mirrors = import_module(f"{PACKAGES[role]}.{family}")
        space |= {name: getattr(mirrors, name) for name in _with_vjp(names)}
    if role in CORES:
        cores = import_module(f"{PACKAGES[role]}.{CORES[role]}")
        space["each_on_one_core"] = cores.each_on_one_core
    if role in CARDS:
        places = import_module(f"{PACKAGES[role]}.{CARDS[role]}")
        space |= {"placed": places.placed, "fetched": places.fetched}
    return SimpleNamespace(**space)


@overridable
def convolution(u, k):
    """`causal_convolution`."""
    return CAUSAL_CONVOLUTION.reference(u, k)


def convolution_vjp(dy, u, k):
    """Its VJP: convolutions in reversed time."""
    gradients = (_backwards(convolution(_backwards(dy), x.conj())) for x in (k, u))
    return unbroadcast_each(gradients, (u, k))


def _backwards(u):
    return u[..., ::-1]


def shifted(u, k, kr):
    """`bidirectional_convolution_shifted`."""
    later = convolution(_backwards(u), kr)[..., :-1]
    return convolution(u, k) + np.concatenate(
        [_backwards(later), np.zeros_like(u[..., :1])], axis=-1
    )


def shifted_vjp(dy, u, k, kr):
    """Its VJP: that of both convolutions, the second in reversed time."""
    dback = np.concatenate([np.zeros_like(dy[..., :1]), dy[..., :-1]], axis=-1)
    du, dk = convolution_vjp(dy, u, k)
    later, dkr = convolution_vjp(_backwards(dback), _backwards(u), kr)
    return du + _backwards(later), dk, dkr


@overridable
def cascade_response(h, dt, *, l):
    """`hope_kernel`."""
    return HOPE_KERNEL.reference(h, dt, l=l)


@overridable
def corrected(q, k, v, log_g, beta):
    """`gated_delta_rule`: its errors are bounded in each column of the state."""
    return GATED_DELTA_RULE.reference(q, k, v, log_g, beta)


@overridable
def corrected_from(q, k, v, log_g, beta, S0):
    """`gated_delta_rule_stateful`."""
    return GATED_DELTA_RULE_STATEFUL.reference(q, k, v, log_g, beta, S0)


@overridable
def corrected_vjp(dy, q, k, v, log_g, beta):
    """The VJP of the first."""
    return GATED_DELTA_RULE.bare_vjp(dy, q, k, v, log_g, beta)


def dense_states(A, b, x0):
    """`dense_scan_from`: its states are bounded in norm, with x0 as the first input."""
    start = np.broadcast_to(x0[..., None, :], (*b.shape[:-2], 1, b.shape[-1]))
    return states(A, np.concatenate([start, b], axis=-2))[..., 1:, :]


def bilinear_pair(A, B, dt):
    """`discretize_bilinear`, by elimination: LAPACK has no long double."""
    assert DISCRETIZE_BILINEAR.definition is not None
    M, N, H = DISCRETIZE_BILINEAR.definition(A, B, dt)
    return solved(M, N), solved(M, H)


def bare() -> SimpleNamespace:
    """Every operator of the catalog without checks of arguments, and its VJP."""
    space = {name: getattr(refssm, name) for name in BETWEEN}
    for op in OPERATORS:
        space[op.name] = op.reference
        if op.differentiable:
            space[f"{op.name}_vjp"] = op.bare_vjp
    space |= {
        "causal_convolution": convolution,
        "causal_convolution_vjp": convolution_vjp,
        "bidirectional_convolution_shifted": shifted,
        "bidirectional_convolution_shifted_vjp": shifted_vjp,
        "hope_kernel": cascade_response,
        "dense_scan_from": dense_states,
        "gated_delta_rule": corrected,
        "gated_delta_rule_stateful": corrected_from,
        "gated_delta_rule_vjp": corrected_vjp,
        "discretize_bilinear": bilinear_pair,
    }
    return SimpleNamespace(**space)


ABSENT = frozenset({"jit", "gpu", "enclosure"})  # a layer takes the mirrors' operators as they are
STEPPED = frozenset({"causal", "state"})  # traits of a layer with states
OF_PAIRS = frozenset({"matrix-product", "quadratic"})  # of its pieces, too
PACKAGE = "refssm.layers"
ops = cache(bare)


def operators_of(layer: Layer) -> Iterator[Operator]:
    """The operators of a layer: over a sequence, and from its states if it is causal."""
    yield _whole(layer)
    if layer.causal:
        yield _stateful(layer)


def public_functions(op: Operator, layer: Layer) -> dict[str, Callable]:
    """The operator's function and its VJP by name, with checks of their arguments."""
    named = {op.name: op.checked(op.reference)}
    if op.differentiable:
        named[f"{op.name}_vjp"] = op.checked_vjp(_pulled_back(op, layer))
    return named


def _signals(layer: Layer) -> dict[str, tuple[tuple[str, ...], Domain]]:
    """Shape and domain of u and of what the layer reads beside it, by name."""
    own = {name: (tuple(text.split()), domain) for name, (text, domain) in layer.beside.items()}
    return {"u": (("l", "h"), layer_signals)} | own


def _domains(*shapes) -> dict[str, Domain]:
    return {name: domain for of in shapes for name, (_, domain) in of.items()}


def _whole(layer: Layer) -> Operator:
    signals, shapes = _signals(layer), _parameters(layer)

    def forward(*given):
        read, parameters = given[: len(signals)], given[len(signals) :]
        _check_cores(layer, parameters)
        return layer.forward(ops(), layer.kind(*parameters), *read)

    inputs = _domains(signals, shapes)
    name = f"{layer.name}_layer"
    return Operator(
        reference=_presented(forward, name, [*inputs], _doc(layer, _sequence(layer))),
        signature=f"{_cores(signals)},{_cores(shapes)}->(l,h)",
        inputs=inputs,
        batch=", ".join(["b"] * len(signals) + [""] * len(shapes)),
        traits=layer.traits | (STEPPED if layer.causal else set()),
        contract=CHAIN,
        citation=layer.source,
        lacks=ABSENT,
        tags=layer.tags,
    )


def _stateful(layer: Layer) -> Operator:
    signals, shapes = _signals(layer), _parameters(layer)
    states = {name: (tuple(text.split()), domain) for name, (text, domain) in layer.states.items()}
    first, last = len(signals), len(signals) + len(shapes)

    def stateful(*given):
        parameters = given[first:last]
        _check_cores(layer, parameters)
        given = (*given[:first], tuple(given[last:]))
        y, after = layer.stateful(ops(), layer.kind(*parameters), *given)
        return y, *after

    inputs = _domains(signals, shapes)
    inputs |= {f"{name}0": domain for name, (_, domain) in states.items()}
    name = f"{layer.name}_layer_stateful"
    batch = ["b"] * first + [""] * len(shapes) + ["b"] * len(states)
    return Operator(
        reference=_presented(stateful, name, [*inputs], _doc(layer, PIECE)),
        signature=f"{_cores(signals)},{_cores(shapes)},{_cores(states)}->(l,h),{_cores(states)}",
        form="stateful",
        inputs=inputs,
        outputs=("y", *states),
        batch=", ".join(batch),
        traits=STEPPED | (layer.traits & OF_PAIRS),
        contract=CHAIN,
        citation=layer.source,
        lacks=ABSENT | {"vjp"},
        tags=tuple(f"{tag} with the last state" for tag in layer.tags),
    )


def _pulled_back(op: Operator, layer: Layer) -> Callable:
    count = len(_signals(layer))

    def vjp(dy, *given):
        read, parameters = given[:count], given[count:]
        _check_cores(layer, parameters)
        gradients, *dread = layer.vjp(ops(), dy, layer.kind(*parameters), *read)
        return *dread, *gradients.arrays().values()

    told = "".join(f", `{name}`" for name in layer.beside)
    doc = (
        f"Gradients of `u`{told} and of each parameter of `{layer}`, in the order of the arguments."
    )
    return _presented(vjp, f"{op.name}_vjp", ["dy", *op.inputs], doc)


def _parameters(layer: Layer) -> dict[str, tuple[tuple[str, ...], Domain]]:
    """Shape and domain of each parameter, by name."""
    return {f.name: (f.metadata["shape"], f.metadata["domain"]) for f in fields(layer.kind)}


def _cores(shapes) -> str:
    """ "(n),(n,h)" for several shapes in letters."""
    return ",".join(f"({','.join(letters)})" for letters, _ in shapes.values())


def _check_cores(layer: Layer, parameters) -> None:
    """ValueError for a parameter with leading axes: all members of a batch have the same."""
    for (name, (letters, _)), p in zip(_parameters(layer).items(), parameters, strict=True):
        if p.ndim != len(letters):
            wanted = f"core shape ({', '.join(letters)}) without batch axes"
            raise ValueError(f"{layer}_layer: `{name}` has shape {p.shape}, wanted {wanted}")


def _presented(function: Callable, name: str, arguments: list[str], doc: str) -> Callable:
    """`function` with the name, the place, the arguments and the docstring of an operator's."""
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = PACKAGE, doc
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    taken = [inspect.Parameter(argument, kind) for argument in arguments]
    function.__signature__ = inspect.Signature(taken)  # pyright: ignore[reportFunctionMemberAccess]
    return function


def _sequence(layer: Layer) -> str:
    """What the operator of the whole does."""
    return f"Forward over a sequence `u` of l steps and h channels{', from rest' * layer.causal}."


PIECE = "Forward over a piece from given states; also the states after it. A step has l = 1."


def _doc(layer: Layer, what: str) -> str:
    """The page of the layer's file, and what this function does."""
    told = inspect.getdoc(inspect.getmodule(layer.kind)) or str(layer)
    return f"{told}\n\n{what}"
