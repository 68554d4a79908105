"""The two kernels of diagonal state spaces: DSS-exp and DSS-softmax [gupta2022dss].

    exp:      K_k = Σ_n C_n (e^{z_n} − 1)/w_n e^{z_n k}
    softmax:  K_k = Σ_n (C_n/w_n) e^{z_n k} / Σ_{r<l} e^{z_n r},   z = dt·w

DSS-exp is zero-order hold with B = 1. DSS-softmax divides every mode by its sum over the length, so
modes may grow. The sum is (e^{lz} − 1)/(e^z − 1); with x = z, or −z if Re z > 0,

    e^{zk} / Σ_r e^{zr} = e^{xj} (e^x − 1)/(e^{lx} − 1),   j = k, or l − 1 − k

which does not overflow.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.diagonal.sums import against, exponentials, moment_against, times, total
from refssm.discretize.phi import moment, phi1
from refssm.domains import coefficients, kernel_modes, signed_modes, steps


def dss_exp_kernel(w, C, dt, *, l):
    """K_k = Σ_n C_n dt φ₁(z_n) e^{z_n k},  z = dt·w:  dt φ₁(dt·w) = (e^{dt·w} − 1)/w.

    Signature ``(n),(n),()->(l)``: `w` the continuous modes, `C` the output coefficients, `dt` the
    real step size, `n` modes, and the keyword `l`, the length; leading axes broadcast.
    Types, units and errors are those of `diagonal_kernel_zoh`, which equals this operator at B = 1;
    w = 0 is an integrator: dt·C_n at every k. Source: [gupta2022dss].

    >>> import refssm
    >>> from math import log
    >>> refssm.dss_exp_kernel([0.0, -log(2)], [1.0, log(4)], 1.0, l=3)
    array([2.  , 1.5 , 1.25])
    """
    h = dt[..., None]
    z = h * w
    return total(C * (h * phi1(z)), exponentials(z, l))


def dss_exp_kernel_vjp(dk, w, C, dt, *, l):
    """H = dt φ₁(z), E_nk = e^{z_n k}; ∂K_k/∂w = C (dt² φ₁' + k dt H) E,

    ∂K_k/∂dt = Σ_n C (e^z + k w H) E,  ∂K_k/∂C = H E.

    Returns `(dw, dC, ddt)`, shaped like `w`, `C` and `dt`.
    """
    h = dt[..., None]
    z = h * w
    H, E = h * phi1(z), exponentials(z, l)
    S, T = against(dk, E), moment_against(dk, C * H, E)
    dw = (C * (h * h * moment(1, z))).conj() * S + h * T
    ddt = ((C * np.exp(z)).conj() * S + w.conj() * T).sum(-1)
    return unbroadcast_each((dw, H.conj() * S, ddt), (w, C, dt))


DSS_EXP_KERNEL = Operator(
    reference=dss_exp_kernel,
    signature="(n),(n),()->(l)",
    inputs={"w": kernel_modes, "C": coefficients, "dt": steps},
    outputs=("k",),
    batch="d, d, d",
    traits=frozenset({"causal", "linear:C"}),
    citation="gupta2022dss",
    tags=("DSS_exp", "SSMKernelDiag without B"),
)
dss_exp_kernel = DSS_EXP_KERNEL.checked(dss_exp_kernel)
dss_exp_kernel_vjp = DSS_EXP_KERNEL.checked_vjp(dss_exp_kernel_vjp)


def _falling(z, l):
    """x = ∓z with Re x ≤ 0; True where z grows; and e^{x_n j}, j = k or l − 1 − k."""
    rising = z.real > 0
    x, k = np.where(rising, -z, z), times(z, l)
    E = np.exp(x[..., :, None] * np.where(rising[..., None], l - 1 - k, k))
    return x, rising, E


def _terms(l):
    """l, or 1 if l = 0, so that no division by an empty sum occurs."""
    return max(1, int(l))


def dss_softmax_kernel(w, C, dt, *, l):
    """K_k = Σ_n (C_n/w_n) e^{z_n k} / Σ_{r<l} e^{z_n r},  z = dt·w.

    Signature ``(n),(n),()->(l)``: arguments and types are those of `dss_exp_kernel`, modes of
    either sign of Re w. Units: `K` has that of `C`/`w`. w_n = 0 gives NaN. If l·dt·w is another
    multiple of 2πi, and dt·w is not one, the sum is 0 and K is infinite.

    Raises ValueError if sizes disagree or `l` is not an integer ≥ 0, TypeError for other types. NaN
    in a mode or in `dt` reaches every k. Source: [gupta2022dss].

    >>> import refssm
    >>> from math import log
    >>> refssm.dss_softmax_kernel([log(2)], [7 * log(2)], 1.0, l=3)
    array([1., 2., 4.])
    """
    x, _, E = _falling(dt[..., None] * w, int(l))
    return total(C / w * (np.expm1(x) / np.expm1(_terms(l) * x)), E)


def dss_softmax_kernel_vjp(dk, w, C, dt, *, l):
    """v = (C/w) r,  r = (e^x − 1)/(e^{lx} − 1),  E_nk = e^{x_n j},  x = ±dt·w with Re x ≤ 0:

    ∂log r/∂x = −m,  m = l e^{lx}/(e^{lx} − 1) − e^x/(e^x − 1), the mean of j under the weights;
    ∂K_k/∂x = v (j − m) E,  ∂K_k/∂w = ±dt ∂K_k/∂x − v/w E,  ∂K_k/∂dt = Σ_n ±w ∂K_k/∂x.

    Returns `(dw, dC, ddt)`, shaped like `w`, `C` and `dt`.
    """
    l, terms, h = int(l), _terms(l), dt[..., None]
    x, rising, E = _falling(h * w, l)
    one, whole, k = np.expm1(x), np.expm1(terms * x), times(x, l)
    r, mean = one / whole, terms * (np.exp(terms * x) / whole) - np.exp(x) / one
    places = np.where(rising[..., None], l - 1 - k, k)  # j
    v, S = C / w * r, against(dk, E)
    T = (places * (dk[..., None, :] * (v[..., :, None] * E).conj())).sum(-1)
    centred = T - (mean * v).conj() * S
    dz = np.where(rising, -centred, centred)
    dw = h * dz - (v / w).conj() * S
    ddt = (w.conj() * dz).sum(-1)
    return unbroadcast_each((dw, (r / w).conj() * S, ddt), (w, C, dt))


DSS_SOFTMAX_KERNEL = Operator(
    reference=dss_softmax_kernel,
    signature="(n),(n),()->(l)",
    inputs={"w": signed_modes, "C": coefficients, "dt": steps},
    outputs=("k",),
    batch="d, d, d",
    traits=frozenset({"linear:C"}),
    citation="gupta2022dss",
    tags=("DSS_softmax", "dss_kernel", "complex_softmax", "SSMKernelDiag disc dss"),
)
dss_softmax_kernel = DSS_SOFTMAX_KERNEL.checked(dss_softmax_kernel)
dss_softmax_kernel_vjp = DSS_SOFTMAX_KERNEL.checked_vjp(dss_softmax_kernel_vjp)
