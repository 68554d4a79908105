"""HiPPO with a Fourier basis: a sliding window of length w, uniform weight.

    1, 0, √2 cos(2πs/w), √2 sin(2πs/w), √2 cos(4πs/w), …    s = time ago

Entry 1 is the sine of frequency 0: a state that stays 0, so that cosines have even indices and
sines odd ones. `S` rotates each pair at 2πk/w, `b` are the values at s = 0. The three variants
differ at the far end of the window [gu2020hippo, gu2023train].
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm.domains import even_orders, windows


def _rotation(n, w):
    """S: S_{2k+1,2k} = 2πk/w = −S_{2k,2k+1}."""
    k = np.arange(n // 2)
    R = np.zeros((n, n))
    R[2 * k + 1, 2 * k] = 2 * np.pi * k / w
    return R - R.T


def _now(n):
    """b = (1, 0, √2, 0, √2, 0, …): the basis at s = 0."""
    b = np.zeros(n)
    b[::2] = np.sqrt(2)
    b[0] = 1
    return b


def hippo_fourier(*, n, window=1.0):
    """A = S − 2 b bᵀ/w,  B = 2 b/w.

    Signature ``->(n,n),(n)`` and the keywords `n`, the number of coefficients, an even one, and
    `window`, the length w of the window. In double precision. At the ends of the window the series
    gives the mean of both ends, so u(t−w) = 2 bᵀx − u(t): this gives the factors 2. Units: `A` and
    `B` that of 1/w.

    Raises ValueError if `n` is not an even integer ≥ 2 or `window` is not a number above 0. Source:
    [gu2023train].

    >>> import numpy as np
    >>> import refssm
    >>> A, B = refssm.hippo_fourier(n=4, window=2.0)
    >>> (A / np.pi).round(4).tolist()[2:], B.round(4).tolist()
    ([[-0.4502, 0.0, -0.6366, -1.0], [0.0, 0.0, 1.0, 0.0]], [1.0, 0.0, 1.4142, 0.0])
    """
    b, w = _now(n), float(window)
    return _rotation(n, w) - 2 * np.outer(b, b) / w, 2 * b / w


HIPPO_FOURIER = Operator(
    reference=hippo_fourier,
    signature="->(n,n),(n)",
    inputs={},
    parameters={"n": even_orders, "window": windows},
    outputs=("A", "B"),
    citation="gu2023train",
    lacks=frozenset({"vjp", "jit", "gpu"}),  # runs once: no mirror needed
    tags=("S4-FouT", "HiPPO-FouT", "truncated Fourier basis"),
)
hippo_fourier = HIPPO_FOURIER.checked(hippo_fourier)


def hippo_fourier_naive(*, n, window=1.0):
    """A = S − b bᵀ/w,  B = b/w.

    Signature ``->(n,n),(n)``: as `hippo_fourier`, but it approximates u(t−w) by bᵀx, the value of
    the series. That is the mean of both ends, not u(t−w), so the state is no memory of the window,
    however large `n` is. The complex form is −1/w off the diagonal and (2πik − 1)/w on it.
    Keywords, units and errors are those of `hippo_fourier`. Source: [gu2020hippo, App. D.4].

    >>> import refssm
    >>> A, B = refssm.hippo_fourier_naive(n=2)
    >>> A.tolist(), B.tolist()
    ([[-1.0, 0.0], [0.0, 0.0]], [1.0, 0.0])
    """
    b, w = _now(n), float(window)
    return _rotation(n, w) - np.outer(b, b) / w, b / w


HIPPO_FOURIER_NAIVE = Operator(
    reference=hippo_fourier_naive,
    signature="->(n,n),(n)",
    inputs={},
    parameters={"n": even_orders, "window": windows},
    outputs=("A", "B"),
    citation="gu2020hippo, App. D.4",
    lacks=frozenset({"vjp", "jit", "gpu"}),  # runs once: no mirror needed
    tags=("textbook Fourier window",),
)
hippo_fourier_naive = HIPPO_FOURIER_NAIVE.checked(hippo_fourier_naive)


def hippo_fourier_diagonal(*, n):
    """A = S − ½ I,  B = b, for w = 1.

    Signature ``->(n,n),(n)`` and the keyword `n`, the number of coefficients, an even one. In
    double precision. Each pair of states is a damped rotation, −½ ± 2πik; there is no finite
    window. Units: none. Errors are those of `hippo_fourier`. Source: [gu2022s4d].

    >>> import refssm
    >>> A, B = refssm.hippo_fourier_diagonal(n=4)
    >>> A.round(4).tolist()[2:], B.round(4).tolist()
    ([[0.0, 0.0, -0.5, -6.2832], [0.0, 0.0, 6.2832, -0.5]], [1.0, 0.0, 1.4142, 0.0])
    """
    return _rotation(n, 1.0) - 0.5 * np.eye(n), _now(n)


HIPPO_FOURIER_DIAGONAL = Operator(
    reference=hippo_fourier_diagonal,
    signature="->(n,n),(n)",
    inputs={},
    parameters={"n": even_orders},
    outputs=("A", "B"),
    citation="gu2022s4d",
    lacks=frozenset({"vjp", "jit", "gpu"}),  # runs once: no mirror needed
    tags=("S4D-Fou", "diagonal Fourier"),
)
hippo_fourier_diagonal = HIPPO_FOURIER_DIAGONAL.checked(hippo_fourier_diagonal)
