"""H3: products with a shifted key are stored, and a query reads them [fu2023h3].

    q, k, v = u W_q, u W_k, u W_v in each of g heads of p numbers
    k'_i = Σ_{j<t} C_j k_{i−j} + D k_i at time i, the shift: each number has its own C and D
    y = K * (k' vᵀ) + D k' vᵀ,   K_k = 2 Re Σ_n C_n dt φ₁(dt w_n) e^{dt w_n k} of S4D
    out = Σ_heads (Σ_i q_i y_ij)_j W_out

With p = 1, as in the published code, k' vᵀ is a product of two numbers, and a head is a channel.
The shift's state has the last inputs, so C is a filter of `t` taps.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import (
    complex_entries,
    complex_states,
    layer_frequencies,
    layer_states,
    log_rates,
    log_steps,
    skips,
    weights_of_taps,
)
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts import bank
from refssm.layers._parts.bank import turned
from refssm.layers._parts.heads import drawn, drawn_back, headed, headed_vjp, merged, merged_vjp
from refssm.layers._parts.mixing import plus, summed


@dataclass(frozen=True)
class H3(Parameters):
    """Parameters of `h3`: `g` heads of `p` numbers, `t` taps, `n` modes."""

    W_q: np.ndarray = parameter("g h p", "uniform between ±1/√h")
    W_k: np.ndarray = parameter("g h p", "uniform between ±1/√h")
    W_v: np.ndarray = parameter("g h p", "uniform between ±1/√h")
    C_shift: np.ndarray = parameter("g p t", "uniform between ±1/√t", domain=weights_of_taps)
    D_shift: np.ndarray = parameter("g p", "normal", domain=skips)
    log_dt: np.ndarray = parameter(
        "g", "log of a step from 1e-3 to 1e-1, uniform", "system", domain=log_steps
    )
    log_rate: np.ndarray = parameter("g n", "log(−Re w) of the poles", "system", domain=log_rates)
    frequency: np.ndarray = parameter(
        "g n", "Im w of the poles", "system", domain=layer_frequencies
    )
    C: np.ndarray = parameter("g n", "complex normal, E|C|² = 1", domain=complex_entries)
    D: np.ndarray = parameter("g", "normal", domain=skips)
    W_out: np.ndarray = parameter("g p h", "uniform between ±1/√(g p)")

    def resampled(self, factor: float):
        """ValueError: the shift counts samples."""
        raise ValueError("the shift of H3 counts samples, so it knows no sampling rate")


@dataclass(frozen=True)
class H3Kernels(Parameters):
    """The same with the kernels (g, l) of the diagonal systems."""

    W_q: np.ndarray
    W_k: np.ndarray
    W_v: np.ndarray
    C_shift: np.ndarray
    D_shift: np.ndarray
    K: np.ndarray
    D: np.ndarray
    W_out: np.ndarray


def init(
    rng, *, h, n=32, p=1, t=64, poles="lin", steps="vector",
    dt_min=initial.DT_MIN, dt_max=initial.DT_MAX,
) -> H3:  # fmt: skip
    """New parameters in double precision; g = h/p, rounded up. `poles` and `steps` are those of
    `s4d`, for heads in place of channels."""
    g = -(-h // p)
    W_q, W_k, W_v = (drawn(rng, g, h, p) for _ in range(3))
    C_shift = rng.uniform(-1, 1, (g, p, t)) / np.sqrt(t)
    w = np.broadcast_to(initial.modes(rng, poles, n=n)[0], (g, n))
    log_dt = initial.log_steps(rng, g, steps=steps, dt_min=dt_min, dt_max=dt_max)
    D_shift, C = rng.standard_normal((g, p)), initial.complex_normal(rng, (g, n))
    D, W_out = rng.standard_normal(g), drawn_back(rng, g, p, h)
    system = log_dt, np.log(-np.real(w)), np.imag(w) + np.zeros((g, n)), C, D
    return H3(W_q, W_k, W_v, C_shift, D_shift, *system, W_out)


def prepared(ops, p, l):
    """The kernels for l steps, and the function from their gradient to that of the parameters."""
    K, kernel_back = bank.kernel(ops, "zoh", p, l)

    def back(dq):
        return H3(
            dq.W_q, dq.W_k, dq.W_v, dq.C_shift, dq.D_shift, *kernel_back(dq.K), dq.D, dq.W_out
        )

    return H3Kernels(p.W_q, p.W_k, p.W_v, p.C_shift, p.D_shift, K, p.D, p.W_out), back


def _rows(x):
    """As a column's entry i of (i, j): (…, p, l) to (…, p, 1, l)."""
    return x[..., :, None, :]


def _columns(x):
    """As a row's entry j of (i, j): (…, p, l) to (…, 1, p, l)."""
    return x[..., None, :, :]


def _of_heads(x):
    """One number of each head, for all entries and times."""
    return x[:, None, None, None]


def _streams(p, u):
    """q, k and v as (…, g, p, l)."""
    return tuple(turned(headed(u, W)) for W in (p.W_q, p.W_k, p.W_v))


def read(q, y):
    """Σ_i q_i y_ij, as (…, g, l, p)."""
    return turned((_rows(q) * y).sum(-3))


def run(ops, p, u):
    """The output, and the function from its cotangent to the gradients of `p` and of u."""
    q, k, v = _streams(p, u)
    shifted = ops.short_convolution(k, p.C_shift) + p.D_shift[..., None] * k
    stored, K = _rows(shifted) * _columns(v), p.K[:, None, None, :]
    y = ops.causal_convolution(stored, K) + _of_heads(p.D) * stored

    def back(dout):
        dread, dW_out = merged_vjp(dout, read(q, y), p.W_out)
        dread = _columns(turned(dread))
        dq, dy = (dread * y).sum(-2), _rows(q) * dread
        dstored, dK = ops.causal_convolution_vjp(dy, stored, K)
        dstored = dstored + _of_heads(p.D) * dy
        dshifted, dv = (dstored * _columns(v)).sum(-2), (dstored * _rows(shifted)).sum(-3)
        dk, dC_shift = ops.short_convolution_vjp(dshifted, k, p.C_shift)
        dk = dk + p.D_shift[..., None] * dshifted
        found, du = [], np.zeros_like(u)
        for dx, W in ((dq, p.W_q), (dk, p.W_k), (dv, p.W_v)):
            through, dW = headed_vjp(turned(dx), u, W)
            du = plus(du, through)
            found.append(dW)
        dD_shift = _over_batch((dshifted * k).sum(-1), p.D_shift)
        dD = _over_batch((dy * stored).sum((-3, -2, -1)), p.D)
        return H3Kernels(*[*found, dC_shift, dD_shift, dK[:, 0, 0], dD, dW_out]), du

    return merged(read(q, y), p.W_out), back


def _over_batch(dx, x):
    """The sum over the batch."""
    return summed(dx.reshape(*dx.shape[: dx.ndim - x.ndim], x.size)).reshape(x.shape)


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    q, k, v = _streams(p, u)
    shifted, newest = ops.short_convolution_stateful(k, p.C_shift, state[0])
    shifted = shifted + p.D_shift[..., None] * k
    w, dt = bank.poles(p)
    a, B = ops.discretize_diagonal_zoh(w, np.ones_like(w)[..., None], dt[:, None] + 0 * w.real)
    system = a[:, None, None], B[:, None, None], p.C[:, None, None, None], _of_heads(p.D)[..., None]
    stored = (_rows(shifted) * _columns(v))[..., None]
    y, x = ops.diagonal_ssm_real_stateful(*system, stored, state[1])
    return merged(read(q, y[..., 0]), p.W_out), (newest, x)


H3_LAYER = Layer(
    name="h3", kind=H3, init=init, prepared=prepared, run=run, stateful=stateful,
    source="fu2023h3",  # states: the last t keys, and those of the diagonal systems
    states={"s": ("g p t", layer_states), "x": ("g p p n", complex_states)},
    traits=frozenset({"time-invariant", "transform"}),
    tags=("H3 layer", "Hungry Hungry Hippos", "shift SSM and diagonal SSM"),
)  # fmt: skip
