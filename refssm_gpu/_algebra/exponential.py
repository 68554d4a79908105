"""The exponential of a matrix and its derivative, by scaling and squaring, without reading back.

    D(2F) = 2D + D²,   φ₁(2F) = φ₁ + ½Dφ₁,   φ₂(2F) = ½φ₂ + ¼(φ₁ + Dφ₂),   D = e^F − I

The number of squarings follows from the norm of each matrix, and the norm is on the card. So every
matrix goes through the same SQUARINGS steps, and each step is kept where the norm asks for it: 31
steps of one product each, 7 products before and 1 after them, whatever the norms are. Above a norm
of 2³¹ the result is NaN. D instead of e^F, and the last step as the square of e^F itself, keep the
digits as in refssm._numerics.expm. φ₁ and φ₂ act on the columns H only, so the input matrix of a
system adds a thin product for each of them to a step, no block rows.
"""

from collections.abc import Callable
from math import factorial

from refssm_gpu._algebra.parts import joined
from refssm_gpu._launching.arrays import Array, namespace, real_type

SQUARINGS = 32  # for norms up to 2³¹; HiPPO's largest matrices have 2²⁰
TERMS = 16  # of φ₂: for ‖F‖₁ ≤ ½ the remainder of D is 2⁻¹⁸/18!, below u of double precision


def exponentials(F: Array, H: Array) -> tuple[Array, Array, Array]:
    """e^F, φ₁(F) H and φ₂(F) H for (…, n, n) and (…, n, m); φ₁(z) = (e^z − 1)/z, φ₂ = (φ₁ − 1)/z.

    The size of H does not matter, and NaN in a column of H stays in that column.
    """
    D, x, y, (last, *asked) = _begun(F, H)
    for step in asked:
        x, y, D = _phi1_doubled(D, x, step), _phi2_doubled(D, x, y, step), _squared(D, step)
    return _whole(D, last), _phi1_doubled(D, x, last), _phi2_doubled(D, x, y, last)


def exponential_held(F: Array, H: Array) -> tuple[Array, Array]:
    """e^F and φ₁(F) H: without φ₂ a step has a third less to do."""
    D, x, _, (last, *asked) = _begun(F, H)
    for step in asked:
        x, D = _phi1_doubled(D, x, step), _squared(D, step)
    return _whole(D, last), _phi1_doubled(D, x, last)


def exponential(F: Array) -> Array:
    """e^F for (…, n, n)."""
    return exponential_held(F, F[..., :0])[0]


def _begun(F: Array, H: Array) -> tuple[Array, Array, Array, list[Array]]:
    """D, φ₁ H and φ₂ H of a scaled F, and whether each squaring is asked for."""
    xp = namespace(F)
    scale, asked = _scaling(F)
    F = F * scale
    square, series = _phi2(F, xp.matmul, _eye(F))
    y = series @ H
    return F + square @ series, H + F @ y, y, asked


def _phi1_doubled(D: Array, x: Array, step: Array) -> Array:
    """φ₁(2F) H from D and φ₁(F) H, where `step` is true."""
    return namespace(D).where(step, x + (D @ x) / 2, x)


def _phi2_doubled(D: Array, x: Array, y: Array, step: Array) -> Array:
    """φ₂(2F) H from D, φ₁(F) H and φ₂(F) H, where `step` is true."""
    return namespace(D).where(step, y / 2 + (x + D @ y) / 4, y)


def _squared(D: Array, step: Array) -> Array:
    """D(2F) from D(F), where `step` is true."""
    return namespace(D).where(step, 2 * D + D @ D, D)


def _whole(D: Array, last: Array) -> Array:
    """e^F, squared where `last` is true."""
    E = _eye(D) + D
    return namespace(D).where(last, E @ E, E)


def exponential_derivative(G: Array, C: Array) -> Array:
    """The derivative of e^G in the direction [[C], [0]], its first n rows; C is (…, n, w).

    G (…, w, w) has zeros right of its first n columns in its first n rows, so its first block P
    stands alone: with e^[[P, C], [0, G]] = [[e^P, L], [0, e^G]], the result is L [vanloan1978].
    Only the norm of G sets the scaling.
    """
    n, w = C.shape[-2:]
    scale, asked = _scaling(G)
    Z, I = joined(G, C, axis=-2) * scale, _eye(joined(G, C, axis=-2))

    def times(X: Array, Y: Array) -> Array:
        product = X @ Y[..., :w, :]
        crossed = X[..., :n, :n] @ Y[..., w:, :]
        return joined(product[..., :w, :], product[..., w:, :] + crossed, axis=-2)

    square, series = _phi2(Z, times, I)
    D = Z + times(square, series)
    xp = namespace(D)
    for step in asked[1:]:
        D = xp.where(step, 2 * D + times(D, D), D)
    E = D + I
    return xp.where(asked[0], times(E, E), E)[..., w:, :]


def _eye(Z: Array) -> Array:
    """[[I], [0]] in the shape of the last two axes."""
    xp = namespace(Z)
    return xp.eye(*Z.shape[-2:], dtype=real_type(Z.dtype, xp))


def _scaling(F: Array) -> tuple[Array, list[Array]]:
    """2^−s with ‖F‖₁ ≤ 2^(s−1), and for each squaring whether s asks for it; NaN if s is too large.

    Powers of two come from products: a power function need not be exact, and an error of the scale
    would grow with the norm.
    """
    xp = namespace(F)
    columns = xp.sum(xp.abs(F), axis=-2)  # (…, n)
    none = xp.zeros((*columns.shape[:-1], 1), dtype=columns.dtype)
    norm = xp.max(xp.concat([columns, none], axis=-1), axis=-1)[..., None]
    powers = xp.cumulative_prod(xp.full(SQUARINGS, 2.0, dtype=columns.dtype))  # 2, 4, …
    over = norm > powers / 4
    scale = xp.min(xp.where(over, 1 / powers, 1.0), axis=-1)
    limit = float(2 ** (SQUARINGS - 1))
    scale = xp.where(norm[..., 0] > limit, float("nan"), scale)
    return scale[..., None, None], [over[..., j, None, None] for j in range(SQUARINGS)]


def _phi2(G: Array, times: Callable, I: Array) -> tuple[Array, Array]:
    """G² and Σ_{k<TERMS} G^k/(k+2)!, in blocks of four terms [paterson1973]: six products."""
    square = times(G, G)
    cube, fourth = times(square, G), times(square, square)
    blocks = []
    for k in range(0, TERMS, 4):
        a, b, c, d = (1 / factorial(k + j + 2) for j in range(4))
        blocks.append(a * I + b * G + c * square + d * cube)
    series = blocks[-1]
    for block in reversed(blocks[:-1]):
        series = block + times(fourth, series)
    return square, series
