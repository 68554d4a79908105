"""Numba mirrors of refssm.hope.kernel and refssm.hope.stream: cascades of all-passes.

The kernel: waves j + k = t, their stages j across SIMD lanes. A wave depends only on the two waves
before it, so its entries are independent; in time order each stage would wait for the stage before.
A wave adds to K in reverse order, so K is reversed until the end.

The stream: time in the outer loop; only the current states are stored. One kernel runs the cascade;
one computes the gradients of h and dt from its signals. The backward pass is the cascade in reverse
time. A single step is a stream of length 1.
"""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.hope import HOPE_KERNEL, HOPE_STEP, HOPE_STREAM, HOPE_STREAM_STATEFUL
from refssm.hope.allpass import rotation, turning
from refssm.hope.impulses import pole
from refssm.jit._compiling.gufunc import gufunc, in_kind_of
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


@gufunc("(n),(),(),(l),(n)->(l),(n)")
def _streamed(h, rho, c, u, x0, y, x):
    """y_k = Σ_j h_j s_{j+1}; and the last states."""
    for j in range(h.size):
        x[j] = x0[j]
    for k in range(u.size):
        s, total = u[k], 0 * u[k]
        for j in range(h.size):
            before = x[j]
            x[j] = rho[0] * before + c[0] * s
            s = c[0] * before - rho[0] * s
            total += h[j] * s
        y[k] = total


@gufunc("(l),(n),(),(),(l),(m)->(n),(),(m)")
def _gathered(dy, h, rho, c, u, x0, dh, slope, x):
    """dh_j = Σ_k s_{j+1}* dy, Σ_k dy* Σ_j (j + 1) h_j (s_j − s_{j+2}), last states; m = n + 1."""
    n = h.size
    s = np.zeros(n + 2, x.dtype)
    for j in range(n + 1):
        x[j] = x0[j]
    for j in range(n):
        dh[j] = 0
    slope[0] = 0
    for k in range(u.size):
        s[0] = u[k]
        for j in range(n + 1):
            before = x[j]
            x[j] = rho[0] * before + c[0] * s[j]
            s[j + 1] = c[0] * before - rho[0] * s[j]
        total = 0 * u[k]
        for j in range(n):
            dh[j] += np.conj(s[j + 1]) * dy[k]
            total += (j + 1) * (h[j] * (s[j] - s[j + 2]))
        slope[0] += np.conj(dy[k]) * total


def _rest(h, u):
    """A state of zeros."""
    return np.zeros(h.shape[-1], np.finfo(u.dtype).dtype)


def _pulled_back(dy, h, dt, u, x0):
    """Like refssm.hope.stream._pulled_back."""
    rho, c = rotation(dt)
    more = np.zeros((*x0.shape[:-1], 1), x0.dtype)
    dh, slope, x = _gathered(dy, h, rho, c, u, np.concatenate([x0, more], axis=-1))
    du, X = _streamed(h.conj(), rho, c, dy[..., ::-1], _rest(h, dy))
    return dh, slope, du[..., ::-1], X, x


@mirror(HOPE_STREAM)
def hope_stream(h, dt, u):
    return _streamed(h, *rotation(dt), u, _rest(h, u))[0]


@mirror(HOPE_STREAM)
def hope_stream_vjp(dy, h, dt, u):
    dh, slope, du, *_ = _pulled_back(dy, h, dt, u, _rest(h, u))
    return unbroadcast_each((dh, slope / (2 * dt), du), (h, dt, u))


@mirror(HOPE_STREAM_STATEFUL)
def hope_stream_stateful(h, dt, u, x0):
    y, x = _streamed(h, *rotation(dt), u, x0)
    return y, in_kind_of(x, dt, u, x0)


@mirror(HOPE_STREAM_STATEFUL)
def hope_stream_stateful_vjp(dy, dx, h, dt, u, x0):
    n = h.shape[-1]
    dh, slope, du, X, x = _pulled_back(dy, h, dt, u, x0)
    last = np.where(np.arange(n) == n - 1, 1, 0).astype(dt.dtype)
    free, Z = _streamed(last, *rotation(dt), np.zeros_like(dy), dx[..., ::-1])
    dx0 = _hankel_product(h.conj(), X) + Z[..., ::-1]
    slope = slope + (dx.conj() * turning(x)[..., :n]).sum(-1) - (dx0.conj() * turning(x0)).sum(-1)
    gradients = dh, slope / (2 * dt), du + free[..., ::-1], dx0
    return unbroadcast_each(gradients, (h, dt, u, x0))


@gufunc("(n),(n)->(n)")
def _hankel_product(h, x, y):
    """y_i = Σ_j h_{i+j} x_j, h = 0 beyond its end."""
    for i in range(h.size):
        total = 0 * h[0]
        for j in range(h.size - i):
            total += h[i + j] * x[j]
        y[i] = total


@mirror(HOPE_STEP)
def hope_step(h, dt, u, x):
    """A stream of length 1."""
    y, last = _streamed(h, *rotation(dt), u[..., None], x)
    return y[..., 0], in_kind_of(last, dt, u, x)


@mirror(HOPE_STEP)
def hope_step_vjp(dy, dx_next, h, dt, u, x):
    pulled = hope_stream_stateful_vjp.__wrapped__(dy[..., None], dx_next, h, dt, u[..., None], x)
    dh, ddt, du, dx = pulled
    return dh, ddt, du[..., 0], dx
