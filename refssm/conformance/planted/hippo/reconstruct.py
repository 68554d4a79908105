"""Planted bugs in what comes back from a memory, and in rescaling one."""

import numpy as np

from refssm.conformance.planted.planting_old import Planting
from refssm.hippo import (
    HIPPO_RECONSTRUCT_FOURIER,
    HIPPO_RECONSTRUCT_LAGT,
    HIPPO_RECONSTRUCT_LEGS,
    HIPPO_RECONSTRUCT_LEGT,
    HIPPO_RECONSTRUCT_LMU,
    HIPPO_RESCALE,
)


def counted(c):
    """0 … n − 1 in the precision of c."""
    return np.arange(c.shape[-1], dtype=np.finfo(c.dtype).dtype)


def roots(c):
    """√(2i + 1)."""
    return np.sqrt(2 * counted(c) + 1)


def without_last(c):
    """The last coefficient left out."""
    return np.concatenate([c[..., :-1], 0 * c[..., -1:]], axis=-1)


def _plant_any(p: Planting) -> None:
    """What may be wrong with any of them."""
    right, wrong, vjp = p.right, p.forward, p.right_vjp
    wrong("last_coefficient", "the last coefficient left out")(
        lambda c, s, **w: right(without_last(c), s, **w)
    )
    wrong("conjugate", "c* for c", dtype="complex64")(lambda c, s, **w: right(c.conj(), s, **w))
    wrong("real_part", "Re c for c", dtype="complex64")(
        lambda c, s, **w: right(c.real.astype(c.dtype), s, **w)
    )
    wrong("doubled", "twice the signal: pairs")(lambda c, s, **w: 2 * right(c, s, **w))
    wrong("rolled", "the coefficients rolled")(
        lambda c, s, **w: right(np.roll(c, 1, axis=-1), s, **w)
    )
    wrong("later", "times rolled")(lambda c, s, **w: right(c, np.roll(s, 1, axis=-1), **w))
    wrong("half_time", "s/2 for s")(lambda c, s, **w: right(c, s / 2, **w))
    wrong("beyond_64", "coefficients beyond 64 left out")(
        lambda c, s, **w: right(np.where(np.arange(c.shape[-1]) < 64, c, 0), s, **w)
    )
    p.gradient("times_missing", "no gradient of s")(
        lambda dy, c, s, **w: (vjp(dy, c, s, **w)[0], np.zeros_like(s))
    )
    p.gradient("times_sign", "−ds for ds")(
        lambda dy, c, s, **w: (vjp(dy, c, s, **w)[0], -vjp(dy, c, s, **w)[1])
    )
    p.gradient("coefficients_rolled", "dc rolled")(
        lambda dy, c, s, **w: (np.roll(vjp(dy, c, s, **w)[0], 1, -1), vjp(dy, c, s, **w)[1])
    )
    p.gradient("as_jax", "the conjugate convention", "complex64")(
        lambda dy, c, s, **w: (vjp(dy, c, s, **w)[0].conj(), vjp(dy, c, s, **w)[1])
    )


def _plant_legendre(p: Planting) -> None:
    """What may be wrong with Legendre polynomials."""
    right, wrong = p.right, p.forward
    wrong("unscaled", "√(2i+1) forgotten, or put where there is none")(
        lambda c, s, **w: right(c / roots(c), s, **w)
    )
    wrong("scaled_twice", "√(2i+1) once more")(lambda c, s, **w: right(c * roots(c), s, **w))
    wrong("backwards", "P_i(−x): the oldest taken for the newest")(
        lambda c, s, **w: right(c * (-1) ** counted(c), s, **w)
    )
    wrong("chebyshev", "Chebyshev polynomials")(
        lambda c, s, window=1.0: _cosines(c * (roots(c) if _orthonormal(p) else 1), s, p, window)
    )


def _orthonormal(p):
    return p.op is not HIPPO_RECONSTRUCT_LMU


def _cosines(c, s, p, window):
    sign = 1 if _orthonormal(p) else -1
    x = sign * (1 - 2 * np.clip(s / s.dtype.type(window), 0, 1))
    T = np.cos(counted(c) * np.arccos(x)[..., None])
    return (T @ c[..., None])[..., 0].astype(np.result_type(c, s))


def _plant_window(p: Planting) -> None:
    right, wrong = p.right, p.forward
    wrong("window_ignored", "window = 1")(lambda c, s, *, window: right(c, s, window=1.0))
    wrong("window_squared", "s/w² for s/w")(lambda c, s, *, window: right(c, s, window=window**2))
    wrong("window_inverted", "s w for s/w")(lambda c, s, *, window: right(c, s, window=1 / window))


def _plant_laguerre(p: Planting) -> None:
    right, wrong = p.right, p.forward
    wrong("alpha_ignored", "α = 0")(lambda c, s, *, alpha, beta: right(c, s, alpha=0.0, beta=beta))
    wrong("beta_ignored", "β = 1")(lambda c, s, *, alpha, beta: right(c, s, alpha=alpha, beta=1.0))
    wrong("alpha_sign", "−α for α")(
        lambda c, s, *, alpha, beta: right(c, s, alpha=-alpha, beta=beta)
    )
    wrong("weight_forgotten", "without s^α e^{−(1−β)s/2}")(
        lambda c, s, *, alpha, beta: (
            right(c, s, alpha=alpha, beta=beta)
            / (s**alpha * np.exp((beta - 1) / 2 * s)).astype(s.dtype)
        )
    )
    wrong("weight_doubled", "e^{−(1−β)s} for e^{−(1−β)s/2}")(
        lambda c, s, *, alpha, beta: (
            right(c, s, alpha=alpha, beta=beta) * np.exp((beta - 1) / 2 * s).astype(s.dtype)
        )
    )
    wrong("clipped", "s at most 10")(
        lambda c, s, *, alpha, beta: right(c, np.minimum(s, 10), alpha=alpha, beta=beta)
    )
    wrong("alternating", "the signs of the other convention")(
        lambda c, s, **w: right(c * (-1) ** counted(c), s, **w)
    )


def _plant_fourier(p: Planting) -> None:
    right, wrong = p.right, p.forward
    wrong("unscaled", "without √2")(
        lambda c, s, **w: right(c / np.where(counted(c) > 1, np.sqrt(2), 1).astype(s.dtype), s, **w)
    )
    wrong("backwards", "−sin for sin: time forward")(
        lambda c, s, **w: right(c * np.where(counted(c) % 2, -1, 1), s, **w)
    )
    wrong("swapped", "sines before cosines")(
        lambda c, s, **w: right(
            c[..., np.minimum(np.arange(c.shape[-1]) ^ 1, c.shape[-1] - 1)], s, **w
        )
    )
    wrong("halves", "πk for 2πk")(lambda c, s, *, window: right(c, s, window=2 * window))
    wrong("constant_scaled", "√2 c_0")(
        lambda c, s, **w: right(
            c * np.where(counted(c) == 0, np.sqrt(2), 1).astype(s.dtype), s, **w
        )
    )
    wrong("blocks", "all cosines, then all sines")(
        lambda c, s, **w: right(
            c[..., np.argsort(np.argsort(np.arange(c.shape[-1]) % 2, kind="stable"))], s, **w
        )
    )
    wrong("pi", "3.1416 for π", dtype="float64")(
        lambda c, s, *, window: right(c, s, window=window * (np.pi / 3.1416))
    )


def _plant_rescale(p: Planting) -> None:
    right, wrong = p.right, p.forward

    def of_result(name, what, first=lambda x, s: x, second=lambda x, s: x, dtype=""):
        def result(A, B, s):
            A_scaled, B_scaled = right(A, B, s)
            return first(A_scaled, s), second(B_scaled, s)

        wrong(name, what, dtype=dtype)(result)

    of_result("transposed", "A'ᵀ", lambda x, s: x.mT.copy())
    of_result("input_forgotten", "B as it was", second=lambda x, s: x / s)
    of_result("input_inverted", "B/s", second=lambda x, s: x / (s * s))
    of_result("rows_only", "diag(s) A", lambda x, s: x * s[..., None, :])
    of_result("columns_only", "A diag(s)⁻¹", lambda x, s: x / s[..., :, None])
    of_result("diagonal_scaled", "the diagonal too", lambda x, s: x * _on_diagonal(s))
    of_result("last_row", "the last row not written", lambda x, s: _last_row_zero(x))
    wrong("inverse", "1/s for s")(lambda A, B, s: right(A, B, 1 / s))
    wrong("moduli", "|s| for s")(lambda A, B, s: right(A, B, np.abs(s).astype(s.dtype)))
    wrong("squared", "s² for s")(lambda A, B, s: right(A, B, s * s))
    wrong("conjugate", "s* for s", dtype="complex64")(lambda A, B, s: right(A, B, s.conj()))
    wrong("adjoint", "s_k* for 1/s_k: right for phases", dtype="complex64")(
        lambda A, B, s: (s[..., :, None] * A * s.conj()[..., None, :], right(A, B, s)[1])
    )
    wrong("beyond_32", "states beyond 32 not scaled")(
        lambda A, B, s: right(A, B, np.where(np.arange(s.shape[-1]) < 32, s, 1).astype(s.dtype))
    )
    changed = p.changed_gradient
    changed("transposed", "dAᵀ for dA", A=lambda g, s: g.mT.copy())
    changed("sign", "−ds for ds", s=lambda g, s: -g)
    changed("input_forgotten", "dB without s", B=lambda g, s: g / s.conj())
    changed("as_jax", "dA* for dA", "complex64", A=lambda g, s: g.conj())
    p.gradient("columns_ignored", "ds of the rows only")(_rows_only(p.right_vjp))


def _on_diagonal(s):
    return np.where(np.eye(s.shape[-1], dtype=bool), s[..., None, :], 1).astype(s.dtype)


def _last_row_zero(x):
    x = x.copy()
    x[..., -1, :] = 0
    return x


def _rows_only(vjp):
    def wrong(dA, dB, A, B, s):
        gA, gB, _ = vjp(dA, dB, A, B, s)
        ds = (dA * A.conj() / s[..., None, :].conj()).sum(-1) + dB * B.conj()
        while ds.ndim > s.ndim:
            ds = ds.sum(0)
        return gA, gB, ds if np.iscomplexobj(s) else ds.real

    return wrong


LEGS, LEGT, LMU = (
    Planting(op, "float32")
    for op in (HIPPO_RECONSTRUCT_LEGS, HIPPO_RECONSTRUCT_LEGT, HIPPO_RECONSTRUCT_LMU)
)
LAGT, FOURIER = (
    Planting(op, "float32") for op in (HIPPO_RECONSTRUCT_LAGT, HIPPO_RECONSTRUCT_FOURIER)
)
RESCALE = Planting(HIPPO_RESCALE, "float32")
for _p in (LEGS, LEGT, LMU, LAGT, FOURIER):
    _plant_any(_p)
for _p in (LEGS, LEGT, LMU, LAGT, FOURIER, RESCALE):
    _p.usual()
for _p in (LEGS, LEGT, LMU):
    _plant_legendre(_p)
for _p in (LEGT, LMU, FOURIER):
    _plant_window(_p)
_plant_laguerre(LAGT)
_plant_fourier(FOURIER)
_plant_rescale(RESCALE)
DEVIATIONS = [bug for p in (LEGS, LEGT, LMU, LAGT, FOURIER, RESCALE) for bug in p.bugs]
