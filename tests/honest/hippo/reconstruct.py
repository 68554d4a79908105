"""Honest reconstructions and rescalings: Clenshaw, differences, SciPy, exponentials, loops."""

import numpy as np
from scipy import special

from honest import Honest
from honest.hippo.memory import in_double
from refssm.hippo import (
    HIPPO_RECONSTRUCT_FOURIER,
    HIPPO_RECONSTRUCT_LAGT,
    HIPPO_RECONSTRUCT_LEGS,
    HIPPO_RECONSTRUCT_LEGT,
    HIPPO_RECONSTRUCT_LMU,
    HIPPO_RESCALE,
)


def clenshaw(x, c, a, b):
    """Σ c_i p_i with p_{i+1} = a(i) p_i − b(i) p_{i−1}, from the last coefficient to the first."""
    shape = np.broadcast_shapes((*c.shape[:-1], 1), x.shape)
    now = later = np.zeros(shape, np.result_type(c, x))
    for i in reversed(range(c.shape[-1])):
        now, later = c[..., i, None] + a(i) * now - b(i + 1) * later, now
    return now


def legendre_clenshaw(x, c):
    """Clenshaw's algorithm for Legendre polynomials."""
    one = x.dtype.type
    return clenshaw(x, c, lambda i: one((2 * i + 1) / (i + 1)) * x, lambda i: one(i / (i + 1)))


def legendre_differences(s, c):
    """P_{i+1} − P_i = D_{i+1},  (i + 1) D_{i+1} = i D_i − 2 (2i + 1) s P_i: exact at s = 0."""
    P, D = np.ones_like(s), np.zeros_like(s)
    y = np.zeros(np.broadcast_shapes((*c.shape[:-1], 1), s.shape), np.result_type(c, s))
    for i in range(c.shape[-1]):
        y = y + c[..., i, None] * P
        D = (i * D - 2 * (2 * i + 1) * s * P) / s.dtype.type(i + 1)
        P = P + D
    return y + 0 * s


def legendre_scipy(x, c):
    """scipy.special.eval_legendre, one degree after another."""
    y = (
        0 * c[..., :1] * x
        if c.shape[-1]
        else np.zeros(np.broadcast_shapes((*c.shape[:-1], 1), x.shape), np.result_type(c, x))
    )
    for i in range(c.shape[-1]):
        y = y + c[..., i, None] * special.eval_legendre(i, x)
    return y


def roots(c):
    """√(2i + 1)."""
    return np.sqrt(2 * np.arange(c.shape[-1], dtype=np.finfo(c.dtype).dtype) + 1)


def turned(c):
    """(−1)^i c_i."""
    return c * np.where(np.arange(c.shape[-1]) % 2, -1, 1).astype(np.finfo(c.dtype).dtype)


def laguerre_clenshaw(c, s, *, alpha, beta):
    """Clenshaw's algorithm for Laguerre polynomials; scales by SciPy's log Γ."""
    i, one = np.arange(c.shape[-1]), s.dtype.type
    size = special.gammaln(1 - alpha) + (alpha - 1) * np.log(beta)
    size = np.exp((size - special.gammaln(i + alpha + 1) + special.gammaln(i + 1)) / 2)
    y = clenshaw(
        s, c * size.astype(np.finfo(c.dtype).dtype),
        lambda i: (one(2 * i + 1 + alpha) - s) / one(i + 1), lambda i: one((i + alpha) / (i + 1)),
    )  # fmt: skip
    return y * s ** one(alpha) * np.exp(one((beta - 1) / 2) * s)


def laguerre_scipy(c, s, *, alpha, beta):
    """scipy.special.eval_genlaguerre in double precision."""
    i = np.arange(c.shape[-1])
    squares = special.gamma(1 + alpha) * np.cumprod(np.where(i, 1 + alpha / np.maximum(i, 1), 1))
    wide = s.astype(float)[..., None]
    p = special.eval_genlaguerre(i, alpha, wide) / np.sqrt(squares)
    p = p * np.sqrt(special.gamma(1 - alpha) * beta ** (alpha - 1.0))
    p = p * wide**alpha * np.exp((beta - 1) / 2 * wide)
    return (p @ c[..., None])[..., 0].astype(np.result_type(c, s))


def exponential_waves(c, s, *, window):
    """Real and imaginary part of e^{2πi k s/w}."""
    i, real = np.arange(c.shape[-1]), s.dtype.type
    E = np.exp(2j * np.pi * (i // 2) * (s / real(window))[..., None])
    p = np.where(i % 2, E.imag, E.real) * np.where(i > 1, np.sqrt(2), 1)
    return (p.astype(s.dtype) @ c[..., None])[..., 0]


def reduced_waves(c, s, *, window):
    """As `exponential_waves`, with k s/w reduced to less than one turn, in double precision."""
    i = np.arange(c.shape[-1])
    turns = (s.astype(float)[..., None] / window * (i // 2)) % 1
    p = np.where(i % 2, np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns))
    p = (p * np.where(i > 1, np.sqrt(2), 1)).astype(s.dtype)
    return np.einsum("...n,...ln->...l", c, p)


def by_matrices(A, B, s):
    """diag(s) A diag(s)⁻¹ as products of matrices."""
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], s.shape[:-1])
    rows, columns = s[..., None] * A, np.broadcast_to(1 / s, (*batch, s.shape[-1]))
    scaled = np.broadcast_to(rows * columns[..., None, :], (*batch, *A.shape[-2:])).copy()
    return scaled, np.broadcast_to(s * B, (*batch, B.shape[-1])).copy()


def by_ratios(A, B, s):
    """A_ik times the table of s_i/s_k."""
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], s.shape[:-1])
    ratios = s[..., :, None] / s[..., None, :]
    scaled = np.broadcast_to(ratios * A, (*batch, *A.shape[-2:])).copy()
    return scaled, np.broadcast_to(B * s, (*batch, B.shape[-1])).copy()


def row_by_row(A, B, s):
    """A loop over rows and columns."""
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], s.shape[:-1])
    n = s.shape[-1]
    scaled = np.empty((*batch, n, n), np.result_type(A, s))
    for i in range(n):
        for k in range(n):
            scaled[..., i, k] = A[..., i, k] * s[..., i] / s[..., k]
    return scaled, np.broadcast_to(s * B, (*batch, n)).copy()


def legendre_forms(argument, fraction, sign):
    """Clenshaw, differences and SciPy, given x(s), the window's fraction and the scaling."""
    return {
        "clenshaw": lambda c, s, **w: legendre_clenshaw(argument(s, **w), sign(c)),
        "differences": lambda c, s, **w: legendre_differences(*fraction(s, c, sign, **w)),
        "scipy": lambda c, s, **w: legendre_scipy(argument(s, **w), sign(c)),
    }


def orthonormal(c):
    """√(2i + 1) c_i."""
    return roots(c) * c


def within(s, window):
    """s/w in the type of s."""
    return s / s.dtype.type(window)


def normal(x):
    """The case with coefficients well above subnormals, or 0: e^{s/2} multiplies their sums."""
    c, kind = x["c"], np.finfo(x["c"].dtype)
    return {**x, "c": np.where(np.abs(c) < kind.tiny / kind.eps, 0, c).astype(c.dtype)}


ONLY = {laguerre_clenshaw: normal}
FORMS = {
    HIPPO_RECONSTRUCT_LEGS: legendre_forms(
        lambda s: 1 - 2 * s, lambda s, c, sign: (s, sign(c)), orthonormal
    ),
    HIPPO_RECONSTRUCT_LEGT: legendre_forms(
        lambda s, window: 1 - 2 * within(s, window),
        lambda s, c, sign, window: (within(s, window), sign(c)),
        orthonormal,
    ),
    HIPPO_RECONSTRUCT_LMU: legendre_forms(
        lambda s, window: 2 * within(s, window) - 1,
        lambda s, c, sign, window: (within(s, window), turned(sign(c))),
        np.copy,
    ),
    HIPPO_RECONSTRUCT_LAGT: {"clenshaw": laguerre_clenshaw, "scipy": laguerre_scipy},
    HIPPO_RECONSTRUCT_FOURIER: {"exponentials": exponential_waves, "reduced": reduced_waves},
    HIPPO_RESCALE: {"matrices": by_matrices, "ratios": by_ratios, "loop": row_by_row},
}
IMPLEMENTATIONS = [
    *(
        Honest(op.name, name, form, only=ONLY.get(form))
        for op, forms in FORMS.items()
        for name, form in forms.items()
    ),
    *(Honest(op.name, "in_double", in_double(op)) for op in FORMS),
]
