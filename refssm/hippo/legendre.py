"""HiPPO with Legendre polynomials: the whole past, and a sliding window in two scalings.

    legs   t x' = A x + B u    ω uniform on [0, t]
    legt     x' = A x + B u    ω uniform on [t − w, t]
    lmu      x' = A x + B u    the same window, another scale of the polynomials

from [gu2020hippo] and [voelker2019lmu]; `docs/operators/hippo.md` derives them.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm.domains import orders, windows
from refssm.hippo.entries import alternating, rows_and_columns


def hippo_legs(*, n):
    """A_ik = −√((2i+1)(2k+1)) below the diagonal, −(i+1) on it, 0 above;  B_i = √(2i+1).

    Signature ``->(n,n),(n)`` and the keyword `n`, the number of coefficients. In double precision.
    The memory of the whole past is `t x' = A x + B u`; S4 uses `x' = A x + B u`, whose measure
    decays exponentially. The eigenvalues are −1 … −n. Units: none.

    Raises ValueError if `n` is not an integer ≥ 1. Source: [gu2020hippo, App. D.3].

    >>> import refssm
    >>> A, B = refssm.hippo_legs(n=3)
    >>> (A**2).round(12).tolist(), (B**2).round(12).tolist()
    ([[1.0, 0.0, 0.0], [3.0, 4.0, 0.0], [5.0, 15.0, 9.0]], [1.0, 3.0, 5.0])
    """
    i, k = rows_and_columns(n)
    below = -np.sqrt((2 * i + 1) * (2 * k + 1))
    A = np.where(i > k, below, np.where(i == k, -(i + 1), 0.0))
    return A, np.sqrt(2 * k + 1)


HIPPO_LEGS = Operator(
    reference=hippo_legs,
    signature="->(n,n),(n)",
    inputs={},
    parameters={"n": orders},
    outputs=("A", "B"),
    citation="gu2020hippo, App. D.3",
    lacks=frozenset({"vjp", "jit", "gpu"}),  # runs once: no mirror needed
    tags=("HiPPO-LegS", "make_HiPPO", "scaled Legendre measure", "HiPPO_LegS"),
)
hippo_legs = HIPPO_LEGS.checked(hippo_legs)


def hippo_legt(*, n, window=1.0):
    """A_ik = −√((2i+1)(2k+1))/w, times (−1)^{i−k} above the diagonal;  B_i = √(2i+1)/w.

    Signature ``->(n,n),(n)`` and the keywords `n`, the number of coefficients, and `window`, the
    length w of the window. In double precision. The coefficients approximate the signal at the far
    end of the window. Units: `A` and `B` that of 1/w.

    Raises ValueError if `n` is not an integer ≥ 1 or `window` is not a number above 0. Source:
    [gu2020hippo, App. D.1].

    >>> import refssm
    >>> A, B = refssm.hippo_legt(n=2, window=0.5)
    >>> (A * abs(A)).round(12).tolist(), (B**2).round(12).tolist()
    ([[-4.0, 12.0], [-12.0, -36.0]], [4.0, 12.0])
    """
    (i, k), w = rows_and_columns(n), float(window)
    size = np.sqrt((2 * i + 1) * (2 * k + 1)) / w
    A = -np.where(i < k, alternating(i - k), 1.0) * size
    return A, np.sqrt(2 * k + 1) / w


HIPPO_LEGT = Operator(
    reference=hippo_legt,
    signature="->(n,n),(n)",
    inputs={},
    parameters={"n": orders, "window": windows},
    outputs=("A", "B"),
    citation="gu2020hippo, App. D.1",
    lacks=frozenset({"vjp", "jit", "gpu"}),  # runs once: no mirror needed
    tags=("HiPPO-LegT", "translated Legendre sliding window", "HiPPO_LegT"),
)
hippo_legt = HIPPO_LEGT.checked(hippo_legt)


def hippo_lmu(*, n, window=1.0):
    """A_ik = −(2i+1)/w above the diagonal, (2i+1)(−1)^{i−k+1}/w elsewhere;  B_i = (−1)^i (2i+1)/w.

    Signature ``->(n,n),(n)`` and the keywords `n` and `window`, as `hippo_legt`. The two are
    similar: T A T⁻¹ and T B with T = diag((−1)^i √(2i+1)). In double precision. Units and errors
    are those of `hippo_legt`. Source: [voelker2019lmu].

    >>> import refssm
    >>> A, B = refssm.hippo_lmu(n=2, window=0.5)
    >>> A.tolist(), B.tolist()
    ([[-2.0, -2.0], [6.0, -6.0]], [2.0, -6.0])
    """
    (i, k), w = rows_and_columns(n), float(window)
    A = (2 * i + 1) / w * np.where(i < k, -1.0, alternating(i - k + 1))
    return A, alternating(k) * ((2 * k + 1) / w)


HIPPO_LMU = Operator(
    reference=hippo_lmu,
    signature="->(n,n),(n)",
    inputs={},
    parameters={"n": orders, "window": windows},
    outputs=("A", "B"),
    citation="voelker2019lmu",
    lacks=frozenset({"vjp", "jit", "gpu"}),  # runs once: no mirror needed
    tags=("Legendre memory unit", "LMU", "keras-lmu"),
)
hippo_lmu = HIPPO_LMU.checked(hippo_lmu)
