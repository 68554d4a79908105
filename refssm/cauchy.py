"""Cauchy kernel, the sum every DPLR convolution kernel reduces to [gu2022s4, §3.2].

    k_l = Σ_n v_n / (z_l − w_n)

`w` are the poles of the system, `z` the nodes at which its transfer function is wanted, and
`v` the residues: Σ_n v_n/(z − w_n) is the partial fraction form of C (z − A)⁻¹ B with A = diag w
and v_n = C_n B_n.
"""

from refssm._operator import Operator
from refssm.broadcasting import unbroadcast
from refssm.domains import nodes, poles, residues


def cauchy_kernel(v, w, z):
    """k_l = Σ_n v_n / (z_l − w_n).

    Signature ``(n),(n),(l)->(l)``: `v` the residues, `w` the poles, `z` the nodes, `n` modes,
    `l` nodes; leading axes broadcast. Any of float32, float64, longdouble and their complex
    types; the result has ``np.result_type(v, w, z)``. Units: `w` and `z` share theirs (1/time),
    `k` has those of `v` times time.

    A pole hit exactly, z_l = w_n, gives infinity where v_n ≠ 0 and NaN where v_n = 0. Raises
    ValueError where sizes disagree, TypeError for other types. Source: [gu2022s4, §3.2].

    >>> import refssm
    >>> refssm.cauchy_kernel([1.0, 1.0], [-1.0, -3.0], [1.0, 0.0])
    array([0.75      , 1.33333333])
    """
    return (v[..., None, :] / (z[..., :, None] - w[..., None, :])).sum(-1)


def cauchy_kernel_vjp(dk, v, w, z):
    """R_ln = 1/(z_l − w_n);  ∂k_l/∂v_n = R_ln,  ∂k_l/∂w_n = v_n R_ln²,  ∂k_l/∂z_l = −Σ_n v_n R_ln².

    Returns `(dv, dw, dz)`, shaped like `v`, `w` and `z`.
    """
    R = _resolvent(w, z)  # (…, l, n)
    vR2 = v[..., None, :] * R**2
    dv = (dk[..., :, None] * R.conj()).sum(-2)
    dw = (dk[..., :, None] * vR2.conj()).sum(-2)
    dz = -dk * vR2.sum(-1).conj()
    return unbroadcast(dv, v), unbroadcast(dw, w), unbroadcast(dz, z)


def _resolvent(w, z):
    """R_ln = 1 / (z_l − w_n)."""
    return 1 / (z[..., :, None] - w[..., None, :])


CAUCHY_KERNEL = Operator(
    reference=cauchy_kernel,
    signature="(n),(n),(l)->(l)",
    inputs={"v": residues, "w": poles, "z": nodes},
    outputs=("k",),
    batch="d, d, ",
    traits=frozenset({"linear:v"}),
    citation="gu2022s4, §3.2",
    lacks=frozenset({"gpu"}),
)
cauchy_kernel = CAUCHY_KERNEL.checked(cauchy_kernel)
cauchy_kernel_vjp = CAUCHY_KERNEL.checked_vjp(cauchy_kernel_vjp)
