"""S4: a bank of h systems, diagonal plus low rank, each with one input and one output [gu2022s4].

    K_k = Re(C Ā^k B̄),   A = diag w − P Pᴴ,   w = −e^{log_rate} + i frequency,   dt = e^{log_dt}
    y = GLU(GELU(K * u + D u) W + b)

Ā and B̄ come from the bilinear map. All modes of the measure are there, both of each conjugate pair,
and the kernel is the real part. Stepping uses the dense matrices Ā and B̄, never the eigenvectors of
A, whose condition number is 1e23 for LegS at n = 32.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import (
    complex_entries,
    complex_states,
    layer_frequencies,
    log_rates,
    log_steps,
    shifts,
    skips,
)
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts import bank


@dataclass(frozen=True)
class S4(Parameters):
    """Parameters of `s4`."""

    log_dt: np.ndarray = parameter(
        "h", "log of a step from 1e-3 to 1e-1, uniform", "system", domain=log_steps
    )
    log_rate: np.ndarray = parameter("h n", "log(−Re w) of the measure", "system", domain=log_rates)
    frequency: np.ndarray = parameter(
        "h n", "Im w of the measure", "system", domain=layer_frequencies
    )
    P: np.ndarray = parameter("h n r", "low rank of the measure", "system", domain=complex_entries)
    B: np.ndarray = parameter("h n", "input of the measure", "system", domain=complex_entries)
    C: np.ndarray = parameter(
        "h n", "C₀ V, C₀ normal, V the basis of the measure", domain=complex_entries
    )
    D: np.ndarray = parameter("h", "normal", domain=skips)
    W: np.ndarray = parameter("h 2h", "uniform between ±1/√h")
    b: np.ndarray = parameter("2h", "uniform between ±1/√h", domain=shifts)


def init(
    rng, *, h, n=64, measure="legs", steps="vector", dt_min=initial.DT_MIN, dt_max=initial.DT_MAX
) -> S4:
    """New parameters in double precision; `measure` is legs, legt, lagt or fourier, `steps` vector
    or scalar: one step for all channels."""
    system = initial.dplr(measure, n=n)
    w, P, B = (np.tile(system[name], (h, *(1,) * system[name].ndim)) for name in ("w", "P", "B"))
    W, b = initial.linear(rng, h, 2 * h)
    log_dt = initial.log_steps(rng, h, steps=steps, dt_min=dt_min, dt_max=dt_max)
    C, D = initial.real_outputs(rng, system["V"], h), rng.standard_normal(h)
    return S4(log_dt, np.log(initial.rates_of(w)), np.imag(w), P, B, C, D, W, b)


def _system(p):
    """w, P, Q, B, C and dt, as the operators take them."""
    w = -np.exp(p.log_rate) + 1j * p.frequency
    return w, p.P, p.P, p.B, p.C, np.exp(p.log_dt)


def prepared(ops, p, l):
    """The kernels for l steps, and the function from their gradient to that of the parameters."""
    system = _system(p)

    def back(dq):
        dk = dq.K.astype(p.C.dtype)
        dw, dP, dQ, dB, dC, ddt = ops.dplr_kernel_vjp(dk, *system, l=l)
        w, dt = system[0], system[-1]
        own = ddt * dt, dw.real * w.real, dw.imag, dP + dQ, dB, dC
        return S4(*own, dq.D, dq.W, dq.b)

    return bank.Filters(ops.dplr_kernel(*system, l=l).real.copy(), p.D, p.W, p.b), back


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    w, P, Q, B, C, dt = _system(p)
    A = w[..., None] * np.eye(w.shape[-1], dtype=w.real.dtype, like=w) - P @ Q.conj().swapaxes(
        -1, -2
    )
    A_bar, B_bar = ops.discretize_bilinear(A, B[..., None], dt)
    ut = bank.turned(u)
    x = ops.dense_scan_from(A_bar, ut[..., None] * B_bar[..., None, :, 0], state[0])
    y = (x @ C[..., None])[..., 0].real + p.D[:, None] * ut
    last = x[..., -1, :] if u.shape[-2] else state[0]
    return bank.mixed(ops, p, bank.turned(y)), (last,)


S4_LAYER = Layer(
    name="s4", kind=S4, init=init, prepared=prepared, run=bank.run, stateful=stateful,
    source="gu2022s4", states={"x": ("h n", complex_states)},
    traits=frozenset({"time-invariant", "transform"}),
    tags=("S4Block", "S4 layer"),
)  # fmt: skip
