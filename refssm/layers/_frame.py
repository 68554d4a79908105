"""What a layer is: named parameters in order, with shapes and sources, and four pure functions.

A layer's file has, in this order, the class of its parameters, `init`, forward over a sequence and
its gradient, and `stateful`, forward over a piece from a given state. A step is a piece of length
1. A layer that reads the future has no states: its declaration leaves out `stateful` and `states`;
with another kernel for each length of a signal, its `stateful` is `of_one_length`.
`ops` is where operators come from: `refssm`, or `operators("jit")`.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from refssm._declaration.signature import length_of
from refssm.domains import Domain, weights_of_rows

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
        for x, (letters, _) in zip(p.arrays().values(), parameters_of(self).values(), strict=True):
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


def parameters_of(layer: Layer) -> dict[str, tuple[tuple[str, ...], Domain]]:
    """Shape and domain of each parameter, by name."""
    return {f.name: (f.metadata["shape"], f.metadata["domain"]) for f in fields(layer.kind)}
