"""Honest HOPE kernels: a cascade by stages and by steps, samples inside the circle, folding."""

import numpy as np
from scipy.signal import lfilter

from honest import Honest
from honest.hope.transfer import delays, horner, near_one
from refssm._numerics.broadcasting import unbroadcast, with_batch
from refssm._numerics.roots import roots_of_unity
from refssm.hope import HOPE_KERNEL, HOPE_KERNEL_ALIASED, HOPE_TRANSFER

ENOUGH = 2**22  # of l n² or l², beyond which a dense form is declined


def _pole(h, dt):
    """ρ in the precision of the arguments."""
    return (1 - dt) / (1 + dt)


def _kept(K, dtype):
    """K, or its real part if the arguments are real."""
    return (K if dtype.kind == "c" else K.real).astype(dtype)


def _stages(h, dt, l):
    """s_{j+1} for each row and stage, by a recursive filter in the precision of the arguments."""
    kind = np.finfo(np.result_type(h, dt)).dtype
    dt = np.asarray(dt, kind)
    s = np.zeros((*dt.shape, h.shape[-1], l), kind)
    for row in np.ndindex(*dt.shape):
        rho = _pole(h, dt[row])
        x = (np.arange(l) == 0).astype(kind)
        for j in range(h.shape[-1]):
            x = lfilter(np.array([-rho, 1], kind), np.array([1, -rho], kind), x)
            s[(*row, j)] = x
    return s


def stage_by_stage(h, dt, *, l):
    """SciPy's recursive filter for each of n stages."""
    return (h[..., None] * _stages(h, dt, l)).sum(-2).astype(np.result_type(h, dt))


def stages_vjp(dk, h, dt, *, l):
    """Correlations with the stages; the gradient of dt from the previous and the next stage."""
    n, kind = h.shape[-1], np.result_type(dk, h, dt)
    s = _stages(np.zeros(n + 1), dt.astype(float), l)
    impulse = np.broadcast_to((np.arange(l) == 0).astype(float), (*s.shape[:-2], 1, l))
    met = (dk[..., None, :] * np.concatenate([impulse, s], axis=-2)).sum(-1)
    moved = np.arange(1, n + 1) * (met[..., :-2] - met[..., 2:])
    ddt = (h.conj() * moved).sum(-1) / (2 * dt)
    return unbroadcast(met[..., 1:-1].astype(kind), h), unbroadcast(ddt.astype(kind), dt)


def step_by_step(h, dt, *, l):
    """All stages of one time, then those of the next."""
    n, kind = h.shape[-1], np.result_type(h, dt)
    if n * l > 2**14:
        raise NotImplementedError("a Python loop over every stage and step")
    batch = np.broadcast_shapes(h.shape[:-1], dt.shape)
    rho, K = _pole(h, dt), np.zeros((*batch, l), kind)
    gain = 4 * dt / (1 + dt) ** 2  # 1 − ρ²
    sums = np.zeros((*dt.shape, n), dt.dtype)  # Σ_i ρ^{k−1−i} x_i
    for k in range(l):
        x, total = np.full(dt.shape, float(k == 0), dt.dtype), 0
        for j in range(n):
            given = gain * sums[..., j] - rho * x
            sums[..., j] = rho * sums[..., j] + x
            x, total = given, total + h[..., j] * given
        K[..., k] = total
    return K


def state_space(h, dt, *, l):
    """K_k = C A^k B with the states of the stages, a dense A."""
    n, kind = h.shape[-1], np.result_type(h, dt)
    if l * n * n > ENOUGH:
        raise NotImplementedError("a dense matrix")
    rho = _pole(h, dt)[..., None, None]
    i, k = np.arange(n)[:, None], np.arange(n)
    T = np.where(i >= k, (-rho) ** np.maximum(i - k, 0), 0)  # of x_0 = −ρ u, x_{j+1} = … − ρ x_j
    shift = (i == k + 1).astype(T.dtype)
    A = T @ (rho * np.eye(n, dtype=T.dtype) + shift)
    x = -rho[..., 0] * T[..., :, 0] if n else np.zeros((*dt.shape, 0), dt.dtype)
    first = T[..., 0] if n else x  # the impulse itself, one step late, at the first stage
    K = np.zeros((*np.broadcast_shapes(h.shape[:-1], dt.shape), l), kind)
    for step in range(l):
        K[..., step] = (h * x).sum(-1)
        x = (A @ x[..., None])[..., 0] + (first if step == 0 else 0)
    return K


def inside_the_circle(h, dt, *, l):
    """r^{−k} times the inverse transform of 8l samples at |x| = r, with r^{8l} ≈ u, in double."""
    m, kind = 8 * max(l, 8), np.result_type(h, dt)
    r = np.float64(2.0 ** (-53 / m))
    x = r * roots_of_unity(m, np.float64)
    rho = _pole(h, dt.astype(float))[..., None]
    p = (x - rho) / (1 - rho * x)
    G = (h[..., None, :] * p[..., None] ** np.arange(1, h.shape[-1] + 1)).sum(-1)
    return _kept(np.fft.ifft(G)[..., :l] * r ** -np.arange(l), kind)


def many_samples(h, dt, *, l):
    """The inverse transform of so many samples that nothing wraps around."""
    m = 8 * (l + h.shape[-1]) + 512
    G = HOPE_TRANSFER.reference(h, dt, l=m)
    return _kept(np.fft.ifft(G)[..., :l], np.result_type(h, dt))


def folded(h, dt, *, l):
    """The true kernel computed to a large length, then folded onto l steps."""
    turns = -(-(8 * h.shape[-1] + 512) // max(l, 1)) + 1
    K = HOPE_KERNEL.reference(h, dt, l=turns * l)
    return K.reshape(*K.shape[:-1], turns, l).sum(-2)


def folded_vjp(dk, h, dt, *, l):
    """The gradient of the true kernel for a periodically repeated cotangent."""
    turns = -(-(8 * h.shape[-1] + 512) // max(l, 1)) + 1
    return HOPE_KERNEL.bare_vjp(np.concatenate([dk] * turns, axis=-1), h, dt, l=turns * l)


def by_horner(h, dt, *, l):
    """Horner's rule and an inverse transform."""
    return _kept(
        np.fft.ifft(horner(h, dt, l=l)) if l else horner(h, dt, l=l), np.result_type(h, dt)
    )


def real_transform(h, dt, *, l):
    """irfft of half of the nodes if h is real."""
    if np.iscomplexobj(h) or l == 0:
        return HOPE_KERNEL_ALIASED.reference(h, dt, l=l)
    G = HOPE_TRANSFER.reference(h, dt, l=l)[..., : l // 2 + 1]
    return np.fft.irfft(G, l).astype(np.result_type(h, dt))


def by_a_matrix(h, dt, *, l):
    """The inverse transform as a sum, in the precision of the arguments."""
    if l * l > ENOUGH:
        raise NotImplementedError("a transform by a matrix")
    kind = np.result_type(h, dt)
    omega = roots_of_unity(l, np.finfo(kind).dtype.type).conj()
    turns = omega[np.outer(np.arange(l), np.arange(l)) % max(l, 1)]
    G = horner(h, dt, l=l)
    return _kept((G[..., None, :] * turns).sum(-1) / max(l, 1), kind)


def circular_stages(h, dt, *, l):
    """One transform of a multiplied impulse per stage; the results are added in time."""
    kind, p = np.result_type(h, dt), delays(h, dt, l)
    batch = np.broadcast_shapes(h.shape[:-1], dt.shape)
    K, power = np.zeros((*batch, l), kind), with_batch(np.ones_like(p), 1, dt.shape)
    for j in range(h.shape[-1] if l else 0):
        power = power * p
        K = K + h[..., j, None] * np.fft.ifft(power).real
    return K.astype(kind)


KERNEL, ALIASED = HOPE_KERNEL, HOPE_KERNEL_ALIASED
EXACT = (step_by_step, state_space, inside_the_circle)
WRAPPED = (by_horner, real_transform, by_a_matrix, circular_stages)

IMPLEMENTATIONS = [
    Honest(KERNEL.name, "stage_by_stage", stage_by_stage, stages_vjp),
    *(Honest(KERNEL.name, form.__name__, form) for form in EXACT),
    Honest(KERNEL.name, "many_samples", many_samples, only=near_one),
    *(Honest(ALIASED.name, form.__name__, form) for form in WRAPPED),
    Honest(ALIASED.name, "folded", folded, folded_vjp, only=near_one),
]
