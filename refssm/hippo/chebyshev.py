"""HiPPO with Chebyshev polynomials, tilted to a uniform weight, up to the end of the window.

    x_i = 2√2/(πw) ∫_0^w u(t−s) T̃_i(1 − 2s/w) ds,   T̃_0 = 1, T̃_i = √2 T_i

for signals that start at t = 0, with t ≤ w [gu2020hippo, App. D.5]. No sliding form exists:
the Chebyshev weight is infinite at both ends.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm.domains import orders, windows
from refssm.hippo.entries import rows_and_columns


def hippo_chebt(*, n, window=1.0):
    """A_ik = −4i/w for k < i and i−k odd, that by √½ for k = 0;  B = 2√2/(πw) (1, √2, √2, …).

    Signature ``->(n,n),(n)`` and the keywords `n`, the number of coefficients, and `window`, the
    length w of the window. In double precision. A is nilpotent: x is the projection of u for t ≤ w,
    and meaningless later. Units: `A` and `B` that of 1/w.

    Raises ValueError if `n` is not an integer ≥ 1 or `window` is not a number above 0. Source:
    [gu2020hippo, App. D.5].

    >>> import numpy as np
    >>> import refssm
    >>> A, B = refssm.hippo_chebt(n=4, window=2.0)
    >>> A.round(4).tolist()[2:], (np.pi * B).round(4).tolist()
    ([[0.0, -4.0, 0.0, 0.0], [-4.2426, 0.0, -6.0, 0.0]], [1.4142, 2.0, 2.0, 2.0])
    """
    (i, k), w = rows_and_columns(n), float(window)
    halved = np.where(k == 0, np.sqrt(0.5), 1.0)
    A = np.where((k < i) & ((i - k) % 2 == 1), -(4 * i / w) * halved, 0.0)
    B = np.where(k == 0, np.sqrt(8), 4) / (np.pi * w)  # 2√2 and 2√2·√2, rounded once
    return A, B


HIPPO_CHEBT = Operator(
    reference=hippo_chebt,
    signature="->(n,n),(n)",
    inputs={},
    parameters={"n": orders, "window": windows},
    outputs=("A", "B"),
    citation="gu2020hippo, App. D.5",
    lacks=frozenset({"vjp", "jit", "gpu"}),  # runs once: no mirror needed
    tags=("HiPPO-ChebT", "translated Chebyshev"),
)
hippo_chebt = HIPPO_CHEBT.checked(hippo_chebt)
