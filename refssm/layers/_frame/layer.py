"""What a layer is: named parameters in order, with shapes and sources, and four pure functions.

A layer's file has, in this order, the class of its parameters, `init`, forward over a sequence and
its gradient, the state at rest, and `stateful`, forward over a piece from a given state. A step is
a piece of length 1. A layer that reads the future has no states: its declaration leaves out `rest`,
`stateful` and `states`. `ops` is where operators come from: `refssm`, or `operators("jit")`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

import refssm
from refssm._declaration.operator import PACKAGES
from refssm.catalog import OPERATORS
from refssm.domains import Domain, weights_of_rows

# what layers use between operators, by family; and which of it a role has
FUNCTIONS = {
    "activations": ("gelu", "silu", "gate", "glu"),
    "norms": ("layer_norm", "rms_norm", "batch_norm"),
}
MIRRORED = {"jit": {"activations": ("gelu", "silu", "gate", "glu"), "norms": ("layer_norm",)}}
CORES = {"jit": "_compiling.cores"}  # roles on cores, and the module with `each_on_one_core`


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
    """What stands for `rest` and `stateful` of a layer that is not causal."""
    raise TypeError(
        "a layer that reads the future has no states and no steps; "
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
    init: Callable[..., Any]  # init(rng, *, h, …)
    sizes: Mapping[str, int]  # usual sizes besides h
    rest: Callable[..., State] = without_states  # rest(p, batch): the state before the first step
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
    # by name, shape in letters and domain, for the judge
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

    @property
    def causal(self) -> bool:
        """Whether it can be computed step by step."""
        return self.stateful is not without_states

    def _again(self, ops: Ops, p, u: np.ndarray):
        return self.forward(ops, p, u), lambda dy: self.vjp(ops, dy, p, u)

    def _forward(self, ops: Ops, p, u: np.ndarray) -> np.ndarray:
        return self.run(ops, self.prepared(ops, p, u.shape[-2])[0], u)[0]

    def _vjp(self, ops: Ops, dy: np.ndarray, p, u: np.ndarray):
        q, back = self.prepared(ops, p, u.shape[-2])
        dq, du = self.run(ops, q, u)[1](dy)
        return back(dq), du

    def step(self, ops: Ops, p, u: np.ndarray, state: State) -> tuple[np.ndarray, State]:
        """One input (…, h): the output and the next state."""
        y, state = self.stateful(ops, p, u[..., None, :], state)
        return y[..., 0, :], state


def operators(role: str) -> SimpleNamespace:
    """Every operator of the catalog in this role, with its VJP, and activations and norms; the
    reference where the operator's declaration, or MIRRORED, says that the role lacks it. If the
    role works on cores, also `each_on_one_core(function, items)`."""
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
    return SimpleNamespace(**space)
