"""HiPPO with generalised Laguerre polynomials: a fading memory without an end.

    ω(s) ∝ s^{−α} e^{−βs},   s = time ago

Coefficients of `L_i^{(α)}(s) s^α e^{−(1−β)s/2} / L_i`, orthonormal under ω up to its total mass
[gu2020hippo, App. D.2]; α shapes the weight at s = 0, β is the rate of forgetting.
"""

import numpy as np
from scipy.special import gamma

from refssm._declaration.operator import Operator
from refssm.domains import laguerre_decays, laguerre_exponents, orders
from refssm.hippo.entries import rows_and_columns


def hippo_lagt(*, n, alpha=0.0, beta=1.0):
    """A = L⁻¹ A₀ L, A₀ is −(1+β)/2 on and −1 below the diagonal;  B_i = C(i+α, i) g / L_i.

    g = β^{(1−α)/2} / √Γ(1−α), L = diag √(Γ(i+α+1)/i!). Signature ``->(n,n),(n)`` and the keywords
    `n`, the number of coefficients, `alpha` between −1 and 1 and `beta` above 0. In double
    precision. For α = 0, B = √β; for α = 0 and β = 1 A is −1 on and below the diagonal and B = 1.
    Units: `A` and `B` that of β.

    Raises ValueError if `n` is not an integer ≥ 1, or `alpha` or `beta` is out of bounds. Source:
    [gu2020hippo, App. D.2].

    >>> import refssm
    >>> A, B = refssm.hippo_lagt(n=3)
    >>> A.tolist(), B.tolist()
    ([[-1.0, 0.0, 0.0], [-1.0, -1.0, 0.0], [-1.0, -1.0, -1.0]], [1.0, 1.0, 1.0])
    """
    (i, k), alpha, beta = rows_and_columns(n), float(alpha), float(beta)
    r = _binomials(n, alpha)  # L_i² = Γ(1+α) r_i
    A = np.where(i > k, -np.sqrt(r / r[:, None]), np.where(i == k, -(1 + beta) / 2, 0.0))
    B = np.sqrt(r / (gamma(1 - alpha) * gamma(1 + alpha))) * beta ** ((1 - alpha) / 2)
    return A, B


def _binomials(n, alpha):
    """C(i+α, i) = Π_{j≤i} (j + α)/j, each rounded once, because the product uses integers.

    Rounded factors would have an error of i·u, exponentials of logarithms of Γ(i) one of log
    Γ(i)·u.
    """
    p, q = alpha.as_integer_ratio()
    over, under, r = 1, 1, [1.0]
    for j in range(1, n):
        over, under = over * (j * q + p), under * (j * q)
        r.append(over / under)
    return np.array(r)


HIPPO_LAGT = Operator(
    reference=hippo_lagt,
    signature="->(n,n),(n)",
    inputs={},
    parameters={"n": orders, "alpha": laguerre_exponents, "beta": laguerre_decays},
    outputs=("A", "B"),
    citation="gu2020hippo, App. D.2",
    lacks=frozenset({"vjp", "jit", "gpu"}),  # runs once: no mirror needed
    tags=("HiPPO-LagT", "translated Laguerre exponential measure"),
)
hippo_lagt = HIPPO_LAGT.checked(hippo_lagt)
