# pyright: reportMissingImports=false
"""The same models in JAX: parameters under the same names, compiled as one function.

S5's recurrence is an associative scan, or a loop over time; Mamba's is a loop, since the states of
an associative scan of 256 channels and 16 states need gigabytes. AdamW treats a complex parameter
as two real ones, as ours does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

BETAS, EPSILON, DECAY = (0.9, 0.999), 1e-8, 0.01


def _norm(p, x):
    centred = x - x.mean(-1, keepdims=True)
    rate = 1 / jnp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return p["scale"] * (centred * rate) + p["shift"]


def _joined(first, second):
    (a, x), (b, y) = first, second
    return a * b, b * x + y


def _by_tree(a, driven):
    """All states, from a balanced tree of pairs."""
    return jax.lax.associative_scan(_joined, (jnp.broadcast_to(a, driven.shape), driven), axis=1)[1]


def _by_loop(a, driven):
    """All states, one step after the other."""

    def step(x, given):
        x = a * x + given
        return x, x

    start = jnp.zeros_like(driven[:, 0])
    return jax.lax.scan(step, start, driven.swapaxes(0, 1), unroll=8)[1].swapaxes(0, 1)


def _s5(scan, p, u):
    dt = jnp.exp(p["log_dt"])
    a = jnp.exp(dt * p["w"])
    B = ((a - 1) / p["w"])[:, None] * p["B"]
    x = scan(a, jax.lax.complex(u @ B.real.T, u @ B.imag.T))
    y = 2 * (x.real @ p["C"].real.T - x.imag @ p["C"].imag.T) + p["D"] * u
    g = jax.nn.gelu(y, approximate=False)
    return g * jax.nn.sigmoid(g @ p["W"] + p["b"])


def _mamba(p, u):
    x, z = jnp.split(u @ p["W_in"], 2, axis=-1)
    t, l = p["k"].shape[-1], u.shape[1]
    before = jnp.pad(x, ((0, 0), (t - 1, 0), (0, 0)))
    x = sum(p["k"][:, j] * before[:, t - 1 - j : t - 1 - j + l] for j in range(t)) + p["k_bias"]
    x = jax.nn.silu(x)
    dt = jax.nn.softplus((x @ p["W_low"]) @ p["W_dt"] + p["dt_bias"])
    B, C, A = x @ p["W_B"], x @ p["W_C"], -jnp.exp(p["log_rate"])

    def step(state, given):
        dt, x, B, C = given
        state = jnp.exp(dt[..., None] * A) * state + (dt * x)[..., None] * B[:, None]
        return state, (state * C[:, None]).sum(-1)

    start = jnp.zeros((x.shape[0], *A.shape), x.dtype)
    _, y = jax.lax.scan(step, start, tuple(v.swapaxes(0, 1) for v in (dt, x, B, C)))
    return ((y.swapaxes(0, 1) + p["D"] * x) * jax.nn.silu(z)) @ p["W_out"]


LAYERS = {
    "s5": {"jax_tree": partial(_s5, _by_tree), "jax_loop": partial(_s5, _by_loop)},
    "mamba": {"jax_loop": _mamba},
}


def _part(p, prefix: str) -> dict:
    return {name.removeprefix(prefix): x for name, x in p.items() if name.startswith(prefix)}


def loss(layer, depth: int, p, u, labels):
    """The mean cross-entropy of a batch."""
    x = u @ p["encoder.W"] + p["encoder.b"]
    for i in range(depth):
        normal = _norm(_part(p, f"blocks.{i}.norm."), x)
        x = x + layer(_part(p, f"blocks.{i}.layer."), normal)
    y = x.mean(1) @ p["decoder.W"] + p["decoder.b"]
    return -jnp.take_along_axis(jax.nn.log_softmax(y), labels[:, None], 1).mean()


def _reals(x):
    return jnp.stack([x.real, x.imag]) if jnp.iscomplexobj(x) else x


def _like(x, p):
    return jax.lax.complex(x[0], x[1]) if jnp.iscomplexobj(p) else x


def _moved(p, g, m, v, count, rate):
    """One parameter after a step of AdamW, and its moments."""
    (first, second), p_, g_ = BETAS, _reals(p), _reals(g.conj())
    m, v = first * m + (1 - first) * g_, second * v + (1 - second) * g_ * g_
    direction = (m / (1 - first**count)) / (jnp.sqrt(v / (1 - second**count)) + EPSILON)
    return _like(p_ - rate * (direction + DECAY * p_), p), m, v


def step_of(layer, depth: int, parameters, signals, labels, rate: float) -> Callable[[], float]:
    """One compiled step; each call continues from the last one."""

    @partial(jax.jit, donate_argnums=(0, 1, 2))
    def compiled(p, m, v, count, u, labels):
        value, g = jax.value_and_grad(partial(loss, layer, depth))(p, u, labels)
        found = {n: _moved(p[n], g[n], m[n], v[n], count, rate) for n in p}
        return (*({n: x[i] for n, x in found.items()} for i in range(3)), value)

    p = {n: jnp.array(x) for n, x in parameters.items()}
    m, v = ({n: jnp.zeros_like(_reals(x)) for n, x in p.items()} for _ in range(2))
    u, given, count = jnp.array(signals), jnp.array(labels), 0

    def step() -> float:
        nonlocal p, m, v, count
        count += 1
        p, m, v, value = compiled(p, m, v, count, u, given)
        return float(jax.block_until_ready(value))

    return step


def value_and_gradients(layer, depth: int, parameters, signals, labels):
    """The loss, and gradients in our convention: of a complex parameter the conjugate of JAX's."""
    p = {n: jnp.array(x) for n, x in parameters.items()}
    value, g = jax.jit(jax.value_and_grad(partial(loss, layer, depth)))(p, signals, labels)
    return float(value), {n: x.conj() for n, x in g.items()}
