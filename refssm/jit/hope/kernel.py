"""Numba mirror of refssm.hope.kernel: waves j + k = t, their stages j across SIMD lanes.

A wave depends only on the two waves before it, so its entries are independent; in time order each
stage would wait for the stage before. A wave adds to K in reverse order, so K is reversed until the
end.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.hope import HOPE_KERNEL
from refssm.hope.impulses import pole
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.lanes import apart


@part(fastmath={"contract"})
def _step(rho, h, place, earlier, wave, later, total):
    """s_{j+1,k} = ρ (s_{j+1,k−1} − s_{j,k}) + s_{j,k−1} along a wave; adds h_j s_{j+1,k} to K.

    Unsigned indices cannot be negative, so the compiler vectorizes the loop.
    """
    apart()
    for j in range(h.size):
        total[place + np.uintp(j)] += h[j] * wave[j + 1]
        later[j + 1] = rho * (wave[j + 1] - wave[j]) + earlier[j]
    later[0] = 0


@gufunc("(n),(),(l)->(l)", kinds=("f8",))
def _kernel(h, rho, length, K):
    """Σ_j h_j s_{j+1,k}; the array has room for wave entries before time 0 and after l."""
    n, l = h.size, K.size
    total, own = np.zeros(l + 2 * n), np.empty(n)  # a contiguous copy
    for j in range(n):
        own[j] = h[j]
    earlier, wave, later = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    wave[0] = 1
    for t in range(n + l):
        _step(rho[0], own, np.uintp(l + n - t), earlier, wave, later, total)
        earlier, wave, later = wave, later, earlier
    for k in range(l):
        K[k] = total[l + n - 1 - k]


@part(fastmath={"contract"})
def _step_back(rho, backwards, place, earlier, wave, later, total):
    """The same wave; adds s_{j,k} dk_k to the sum of stage j."""
    apart()
    for j in range(total.size):
        total[j] += wave[j] * backwards[place + np.uintp(j)]
    for j in range(total.size - 1):
        later[j + 1] = rho * (wave[j + 1] - wave[j]) + earlier[j]
    later[0] = 0


@gufunc("(l),(),(n)->(n)", kinds=("f8",))
def _correlations(dk, rho, count, met):
    """Σ_k dk_k s_{j,k}."""
    n, l = met.size, dk.size
    backwards, total = np.zeros(l + 2 * n), np.zeros(n)
    for k in range(l):
        backwards[n + k] = dk[l - 1 - k]
    earlier, wave, later = np.zeros(n), np.zeros(n), np.zeros(n)
    wave[0] = 1
    for t in range(n + l - 1):
        _step_back(rho[0], backwards, np.uintp(l + n - 1 - t), earlier, wave, later, total)
        earlier, wave, later = wave, later, earlier
    for j in range(n):
        met[j] = total[j]


def _each_part(function, x, *more):
    """Apply a real function to the real part, and to the imaginary part if there is one."""
    if x.dtype.kind == "c":
        real, imaginary = (function(part, *more) for part in (x.real, x.imag))
        return real + 1j * imaginary
    return function(x, *more)


@mirror(HOPE_KERNEL)
def hope_kernel(h, dt, *, l):
    """Computed in double precision and rounded once."""
    rho = pole(dt.astype(np.float64))
    return _each_part(_kernel, h, rho, np.empty(l)).astype(np.result_type(h, dt))


@mirror(HOPE_KERNEL)
def hope_kernel_vjp(dk, h, dt, *, l):
    n, kind, wide = h.shape[-1], np.result_type(dk, h, dt), dt.astype(np.float64)
    met = _each_part(_correlations, dk, pole(wide), np.empty(n + 2))
    differences = np.arange(1, n + 1) * (met[..., :-2] - met[..., 2:])
    warped = (h.conj() * differences).sum(-1) / (2 * wide)
    gradients = (g.astype(kind) for g in (met[..., 1:-1], warped))
    return unbroadcast_each(gradients, (h, dt))
