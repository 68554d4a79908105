"""The compiled recurrence of real selective scans: channels in lanes, time in sequence.

Each lane has a channel, so y_k = Σ_n C_kn x_kn needs no sum over lanes, and B_kn and C_kn are one
number for all of them. The states of a tile of channels stay in the first cache.
"""

# pyright: reportCallIssue=false
# (pyright sees the compiler's argument of intrinsics)

from refssm.jit._compiling.parts import part
from refssm.jit._vectors.exponential import silu
from refssm.jit._vectors.lanes import apart, times_plus
from refssm.jit._vectors.scratch import after, load, release, scratch, store, width_of
from refssm.jit.selective_scan.channels import over_channels
from refssm.jit.selective_scan.tiles import (
    careful_steps,
    gathered,
    rates_of,
    run,
    scattered,
    steps_of,
)

BLOCK = 64  # a tile's rows of u, dt and y stay in the first cache


@over_channels("(d,l),(d,l),(d,n),(l,n),(l,n),(d,n),(r,l)->(d,l),(d,n)")
def scan(u, dt, A, B, C, x0, resets, y, x):
    """x_k = e^{dt_k A} x_{k-1} + dt_k u_k B_k, first term 0 at a reset; y_k = C_k · x_k."""
    _scan(u, dt, A, B, C, None, None, None, x0, resets, y, x)


@over_channels("(d,l),(d,l),(d,n),(l,n),(l,n),(d,i),(d,l),(d,i),(d,n),(r,l)->(d,l),(d,n)")
def gated_scan(u, dt, A, B, C, D, z, dt_bias, x0, resets, y, x):
    """`scan` with steps softplus(dt + dt_bias); y_k = (C_k · x_k + D u_k) silu(z_k)."""
    _scan(u, dt, A, B, C, D, z, dt_bias, x0, resets, y, x)


@part
def _scan(u, dt, A, B, C, D, z, dt_bias, x0, resets, y, x):
    """The outputs and last states of one piece; Numba drops what is None."""
    apart()
    n, l = A.shape[1], u.shape[1]
    T = l if l < BLOCK else BLOCK
    work = scratch(4 * T + 2 * n + 1, y)
    inputs, steps, outputs = work, after(work, T), after(work, 2 * T)
    careful, rates, state = after(work, 3 * T), after(work, 4 * T), after(work, 4 * T + n)
    flags = after(work, 4 * T + 2 * n)
    for d in range(0, u.shape[0], width_of(work)):
        bound = rates_of(A, d, rates)
        gathered(x0, d, 0, n, state)
        for t in range(0, l, BLOCK):
            width = T if l - t > T else l - t
            gathered(u, d, t, width, inputs)
            steps_of(dt, dt_bias, d, t, width, steps, flags)
            careful_steps(steps, width, bound, resets, d, t, careful)
            run(inputs, steps, rates, B, C, resets, d, t, width, careful, flags, state, outputs)
            if z is not None:
                gathered(z, d, t, width, steps)
                gathered(D, d, 0, 1, flags)
                for k in range(width):
                    s = times_plus(load(flags, 0), load(inputs, k), load(outputs, k))
                    store(outputs, k, s * silu(load(steps, k)))
            scattered(outputs, d, t, width, y)
        scattered(state, d, 0, n, x)
    release(work)
