"""Inputs of a check: how each argument is drawn, and the results it is compared with.

Draws are normal, as in most tests, except for arguments that must be stable: those follow the tests
of the public repository that has the operator. Each is a function of (generator, shape, complex,
arrays drawn before) and returns double precision. Arguments of a chunk's stages are drawn together
(`chunks.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from refssm._declaration.arguments import several
from refssm._declaration.operator import Operator
from refssm._declaration.signature import length_of
from refssm.conformance.cases.cotangents import random_like
from selftest.comparing import chunks

Draw = Callable[[np.random.Generator, tuple[int, ...], bool, Mapping[str, np.ndarray]], np.ndarray]
# by operator or family, then by argument; "" in both: all others
Draws = Mapping[str, Mapping[str, Draw]]
STATICS = {"chunk": 64, "dt_min": 0.0, "dt_max": np.inf, "eps": 1e-6}


def normal(rng, shape, of_complex, before):
    """Standard normal numbers; complex ones have the modulus of real ones, as in PyTorch."""
    del before
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape)) / np.sqrt(2) if of_complex else x


def uniform(rng, shape, of_complex, before):
    """Uniform numbers from 0 to 1, in each part of a complex one."""
    del before
    return rng.random(shape) + 1j * rng.random(shape) if of_complex else rng.random(shape)


def times(factor: float, draw: Draw) -> Draw:
    """A draw multiplied by a number."""
    return lambda *drawn: factor * draw(*drawn)


def decay(rng, shape, of_complex, before):
    """A logistic sigmoid of normal numbers; complex ones have a random phase."""
    del before
    a = 1 / (1 + np.exp(-rng.standard_normal(shape)))
    return a * np.exp(1j * rng.standard_normal(shape)) if of_complex else a


def log_decay(rng, shape, of_complex, before):
    """The logarithm of `decay`."""
    return np.log(decay(rng, shape, of_complex, before))


def sigmoid(rng, shape, of_complex, before):
    """A logistic sigmoid of normal numbers."""
    del of_complex, before
    return 1 / (1 + np.exp(-rng.standard_normal(shape)))


def normalized(draw: Draw) -> Draw:
    """Rows of norm 1."""

    def drawn(*args):
        x = draw(*args)
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    return drawn


def against_a(rng, shape, of_complex, before):
    """b = −a, as in fla's tests of DPLR: with rows of norm 1, I + b aᵀ is a projection."""
    del rng, shape, of_complex
    return -before["a"]


def shifted(by: float, draw: Draw) -> Draw:
    """A draw with a number added."""
    return lambda *drawn: by + draw(*drawn)


def negative_exp(rng, shape, of_complex, before):
    """−e^U for uniform U: the decay rates of mamba_ssm's tests of SSD."""
    return -np.exp(uniform(rng, shape, of_complex, before))


def small_steps(rng, shape, of_complex, before):
    """−0.1 U · softplus(N − 4): logarithms of decays as in mamba_ssm's test of SSD."""
    del before
    steps = np.log1p(np.exp(rng.standard_normal(shape) - 4))
    return -0.1 * uniform(rng, (*shape[:-1], 1), of_complex, {}) * steps


def on_circle(rng, shape, of_complex, before):
    """e^{iN}: nodes of a Cauchy kernel as in S4's test."""
    del of_complex, before
    return np.exp(1j * rng.standard_normal(shape))


def modes(rng, shape, of_complex, before):
    """0.001 U + i n U for n modes, as in S4's test of its Vandermonde kernel; −U if real."""
    del before
    x = rng.random(shape)
    return 0.001 * x + 1j * shape[-1] * rng.random(shape) if of_complex else -x


def poles(rng, shape, of_complex, before):
    """S4D-Lin, −1/2 + iπn, if complex; S4D-Real, −(n + 1), if real."""
    del rng, before
    n = np.arange(shape[-1])
    return np.broadcast_to(-0.5 + 1j * np.pi * n if of_complex else -(n + 1.0), shape)


def steps(rng, shape, of_complex, before):
    """Steps between 0.001 and 0.1, uniform in their logarithm."""
    del of_complex, before
    return np.exp(rng.uniform(np.log(1e-3), np.log(1e-1), shape))


def near_P(rng, shape, of_complex, before):
    """An array near P, which keeps diag w − P Qᴴ stable."""
    return before["P"] + 0.1 * normal(rng, shape, of_complex, before)


USUAL: Draws = {
    "": {"": normal},
    "scan": {"a": decay},
    "selective_scan": {
        "A": times(-0.5, uniform),
        "dt": times(0.5, uniform),
        "dt_bias": times(0.5, uniform),
    },
    "ssd": {"log_a": log_decay},
    "mamba2_scan": {"A": negative_exp, "dt": shifted(-4, normal), "dt_bias": times(0.1, normal)},
    "linear_attention": {
        "k": normalized(normal),
        "log_g": log_decay,
        "log_w": log_decay,
        "beta": sigmoid,
        "a": normalized(uniform),
        "b": against_a,
    },
    "rwkv6_chunked": {"k": normal},
    "gated_linear_recurrence_chunked": {"k": normal},
    "xlstm": {"log_f": log_decay},
    "cauchy": {"z": on_circle},
    "vandermonde": {"x": modes},
    "diagonal": {"w": poles, "dt": steps},
    "dplr": {"w": poles, "dt": steps, "P": times(0.5, normal), "Q": near_P},
}


def draw_of(op: Operator, argument: str, own: Draws) -> Draw:
    """The draw of an argument: a check's own before the usual one, the nearest first."""
    near = [d.get(name, {}) for name in (op.name, op.family) for d in (own, USUAL)]
    found = (*near, own.get("", {}), USUAL[""])
    names = (*[(argument,)] * len(near), (argument, ""), ("",))
    return next(d[n] for d, ns in zip(found, names, strict=True) for n in ns if n in d)


class Made(NamedTuple):
    """Arrays, and the seconds of the processor that they took."""

    arrays: tuple[np.ndarray, ...]
    seconds: float


@dataclass(frozen=True, eq=False)
class Trial:
    """One set of inputs; the truth is the reference's result in the same precision."""

    op: Operator
    arrays: list[np.ndarray]
    statics: Mapping[str, int]
    cotangents: list[np.ndarray]

    @cached_property
    def outputs(self) -> Made:
        """The results of the reference."""
        return timed(self.op.reference, self.arrays, self.statics)

    @cached_property
    def gradients(self) -> Made:
        """The gradients of the reference."""
        return timed(self.op.bare_vjp, [*self.cotangents, *self.arrays], self.statics)


def timed(program: Callable, arrays, statics) -> Made:
    """The results of a program on copies of the arrays, without the gradients that it has not."""
    given = [np.copy(a) for a in arrays]
    started = time.process_time()
    found = several(program(*given, **statics))
    seconds = time.process_time() - started
    return Made(tuple(np.asarray(y) for y in found if y is not None), seconds)


def trial_of(
    op: Operator,
    dtype: str,
    sizes: Mapping[str, int],
    own: Draws,
    seed: int,
    together: chunks.Together = chunks.usual,
) -> Trial:
    """A trial with these core and batch sizes (2 where one is missing)."""
    rng = np.random.default_rng([seed, len(op.name)])
    every = dict.fromkeys([*_dims(op), *op.batch_names], 2) | STATICS | dict(sizes)
    if op.name in chunks.STAGES:
        drawn = chunks.arguments(op.name, together(rng, {"c": 2, **every}))
        arrays = [drawn[name].astype(np.float32) for name in op.inputs]
    else:
        arrays = _one_by_one(op, dtype, every, own, rng)
    statics = {name: every[name] for name in op.static}
    shapes, types = op.output_shapes(*arrays, **statics), op.output_types(*arrays)
    cotangents = [random_like(s, t, rng).astype(t) for s, t in zip(shapes, types, strict=True)]
    return Trial(op, arrays, statics, cotangents)


def _one_by_one(op, dtype, every, own, rng) -> list[np.ndarray]:
    before: dict[str, np.ndarray] = {}
    for (name, domain), core, batch in zip(
        op.inputs.items(), op.input_dims, op.batch_axes, strict=True
    ):
        leading = [1 if d == "1" else every[d] for d in batch]
        shape = (*leading, *(length_of(d, every) for d in core))
        of_complex = domain.kind == "complex" or (dtype == "complex64" and not domain.real)
        drawn = draw_of(op, name, own)(rng, shape, of_complex, before)
        before[name] = np.array(drawn, np.complex64 if of_complex else np.float32)
    return list(before.values())


def _dims(op: Operator) -> list[str]:
    return [d for dims in (*op.input_dims, *op.output_dims) for d in dims if not d[0].isdigit()]
