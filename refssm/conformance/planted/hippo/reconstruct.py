"""Planted bugs in reconstructions from a memory, and in rescaling a memory."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.planted.hippo.making import of_keywords, without
from refssm.conformance.planted.hippo.memory import counted, roots
from refssm.conformance.planted.planting import Planting, of_result
from refssm.hippo import HIPPO_RESCALE

LEGS, LEGT, LMU, LAGT, FOURIER = MEMORIES = [
    Planting(operator_named(f"hippo_reconstruct_{basis}"), "float32")
    for basis in ("legs", "legt", "lmu", "lagt", "fourier")
]
RESCALE = Planting(HIPPO_RESCALE, "float32")
PLANTINGS = [*MEMORIES, RESCALE]
for _p in MEMORIES:
    _p.plant(
        ("last_coefficient", "the last coefficient left out",
         {"c": lambda c: without(c, np.s_[..., -1:])}),
        ("doubled", "twice the signal: pairs", of_result(lambda y: 2 * y)),
        ("rolled", "the coefficients rolled", {"c": lambda c: np.roll(c, 1, axis=-1)}),
        ("later", "times rolled", {"s": lambda s: np.roll(s, 1, axis=-1)}),
        ("half_time", "s/2 for s", {"s": lambda s: s / 2}),
        ("beyond_64", "coefficients beyond 64 left out",
         {"c": lambda c: without(c, np.s_[..., 64:])}),
    )  # fmt: skip
    _p.plant(
        ("conjugate", "c* for c", {"c": np.conj}),
        ("real_part", "Re c for c", {"c": lambda c: c.real.astype(c.dtype)}),
        by="value[complex64]",
    )
    _p.plant(
        ("times_missing", "no gradient of s", {"s": np.zeros_like}),
        ("times_sign", "−ds for ds", {"s": np.negative}),
        ("coefficients_rolled", "dc rolled", {"c": lambda g: np.roll(g, 1, -1)}),
        by="gradient",
    )
    _p.plant(("as_jax", "the conjugate convention", {"c": np.conj}), by="gradient[complex64]")
for _p in PLANTINGS:
    _p.usual()


def _chebyshev(orthonormal):
    """T_i(x) instead of P_i(x); in LMU, which is not orthonormal, x has the other sign."""

    def cosines(right, c, s, *, window=1.0):
        sign = 1 if orthonormal else -1
        x = sign * (1 - 2 * np.clip(s / s.dtype.type(window), 0, 1))
        T = np.cos(counted(c) * np.arccos(x)[..., None])
        c = c * (roots(c) if orthonormal else 1)
        return (T @ c[..., None])[..., 0].astype(np.result_type(c, s))

    return cosines


for _p in (LEGS, LEGT, LMU):
    _p.plant(
        ("unscaled", "√(2i+1) forgotten, or put where there is none",
         {"c": lambda c: c / roots(c)}),
        ("scaled_twice", "√(2i+1) once more", {"c": lambda c: c * roots(c)}),
        ("backwards", "P_i(−x): the oldest taken for the newest",
         {"c": lambda c: c * (-1) ** counted(c)}),
        ("chebyshev", "Chebyshev polynomials", _chebyshev(orthonormal=_p is not LMU)),
    )  # fmt: skip
for _p in (LEGT, LMU, FOURIER):
    _p.plant(
        ("window_ignored", "window = 1", of_keywords(window=lambda w: 1.0)),
        ("window_squared", "s/w² for s/w", of_keywords(window=lambda w: w**2)),
        ("window_inverted", "s w for s/w", of_keywords(window=lambda w: 1 / w)),
    )
LAGT.plant(
    ("alpha_ignored", "α = 0", of_keywords(alpha=lambda alpha: 0.0)),
    ("beta_ignored", "β = 1", of_keywords(beta=lambda beta: 1.0)),
    ("alpha_sign", "−α for α", of_keywords(alpha=lambda alpha: -alpha)),
    ("weight_forgotten", "without s^α e^{−(1−β)s/2}", lambda right, c, s, *, alpha, beta:
     right(c, s, alpha=alpha, beta=beta)
     / (s**alpha * np.exp((beta - 1) / 2 * s)).astype(s.dtype)),
    ("weight_doubled", "e^{−(1−β)s} for e^{−(1−β)s/2}", lambda right, c, s, *, alpha, beta:
     right(c, s, alpha=alpha, beta=beta) * np.exp((beta - 1) / 2 * s).astype(s.dtype)),
    ("clipped", "s at most 10", {"s": lambda s: np.minimum(s, 10)}),
    ("alternating", "the signs of the other convention", {"c": lambda c: c * (-1) ** counted(c)}),
)  # fmt: skip
FOURIER.plant(
    ("unscaled", "without √2", {"c": lambda c: np.where(counted(c) > 1, c / 2**0.5, c)}),
    ("backwards", "−sin for sin: time forward",
     {"c": lambda c: c * np.where(counted(c) % 2, -1, 1)}),
    ("swapped", "sines before cosines", {"c": lambda c:
     c[..., np.minimum(np.arange(c.shape[-1]) ^ 1, c.shape[-1] - 1)]}),
    ("halves", "πk for 2πk", of_keywords(window=lambda w: 2 * w)),
    ("constant_scaled", "√2 c_0", {"c": lambda c: np.where(counted(c) == 0, c * 2**0.5, c)}),
    ("blocks", "all cosines, then all sines", {"c": lambda c:
     c[..., np.argsort(np.argsort(np.arange(c.shape[-1]) % 2, kind="stable"))]}),
)  # fmt: skip
FOURIER.plant(
    ("pi", "3.1416 for π", of_keywords(window=lambda w: w * (np.pi / 3.1416))), by="value[float64]"
)


def _of_rescaled(change):
    """The right A' and B', changed by a function of them and s."""
    return lambda right, A, B, s: change(*right(A, B, s), s)


def _rows_only(right, dA, dB, A, B, s):
    gA, gB, _ = right(dA, dB, A, B, s)
    ds = (dA * A.conj() / s[..., None, :].conj()).sum(-1) + dB * B.conj()
    return gA, gB, unbroadcast(ds, s)


RESCALE.plant(
    ("transposed", "A'ᵀ", of_result(lambda A, B: (A.mT.copy(), B))),
    ("input_forgotten", "B as it was", _of_rescaled(lambda A, B, s: (A, B / s))),
    ("input_inverted", "B/s", _of_rescaled(lambda A, B, s: (A, B / (s * s)))),
    ("rows_only", "diag(s) A", _of_rescaled(lambda A, B, s: (A * s[..., None, :], B))),
    ("columns_only", "A diag(s)⁻¹", _of_rescaled(lambda A, B, s: (A / s[..., :, None], B))),
    ("diagonal_scaled", "the diagonal too", _of_rescaled(lambda A, B, s:
     (np.where(np.eye(s.shape[-1], dtype=bool), A * s[..., None, :], A), B))),
    ("last_row", "the last row not written",
     of_result(lambda A, B: (without(A, np.s_[..., -1, :]), B))),
    ("inverse", "1/s for s", {"s": lambda s: 1 / s}),
    ("moduli", "|s| for s", {"s": lambda s: np.abs(s).astype(s.dtype)}),
    ("squared", "s² for s", {"s": lambda s: s * s}),
    ("beyond_32", "states beyond 32 not scaled",
     {"s": lambda s: np.where(np.arange(s.shape[-1]) < 32, s, 1).astype(s.dtype)}),
)  # fmt: skip
RESCALE.plant(
    ("conjugate", "s* for s", {"s": np.conj}),
    ("adjoint", "s_k* for 1/s_k: right for phases", lambda right, A, B, s:
     (s[..., :, None] * A * s.conj()[..., None, :], right(A, B, s)[1])),
    by="value[complex64]",
)  # fmt: skip
RESCALE.plant(
    ("transposed", "dAᵀ for dA", {"A": lambda g: g.mT.copy()}),
    ("sign", "−ds for ds", {"s": np.negative}),
    ("input_forgotten", "dB without s", lambda right, dA, dB, A, B, s:
     of_result(lambda gA, gB, gs: (gA, gB / s.conj(), gs))(right, dA, dB, A, B, s)),
    ("columns_ignored", "ds of the rows only", _rows_only),
    by="gradient",
)  # fmt: skip
RESCALE.plant(("as_jax", "dA* for dA", {"A": np.conj}), by="gradient[complex64]")
