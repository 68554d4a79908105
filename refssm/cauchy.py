"""Cauchy kernel: every DPLR convolution kernel reduces to this sum [gu2022s4, §3.2].

    k_l = Σ_n v_n / (z_l − w_n)

`w` are the poles of the system, `z` the nodes at which to evaluate its transfer function, and
`v` the residues: Σ_n v_n/(z − w_n) is the partial fraction form of C (z − A)⁻¹ B with A = diag w
and v_n = C_n B_n. Of conjugate pairs, one pole and residue each may be stored.

The same at all l-th roots of unity, with discrete poles a_n:

    k_j = Σ_n v_n / (1 − a_n ω_j),   ω_j = e^(−2πij/l)
"""

import numpy as np

from refssm._declaration.contract import SPECTRUM
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm._numerics.pairs import folded, paired
from refssm._numerics.roots import roots_of_unity
from refssm.domains import coefficients, discrete_poles, nodes, poles, residues


def cauchy_kernel(v, w, z):
    """k_l = Σ_n v_n / (z_l − w_n).

    Signature ``(n),(n),(l)->(l)``: `v` the residues, `w` the poles, `z` the nodes, `n` modes,
    `l` nodes; leading axes broadcast. Any of float32, float64, longdouble and their complex
    types; the result has ``np.result_type(v, w, z)``. Units: `w` and `z` share theirs (1/time),
    `k` has those of `v` times time.

    A node exactly at a pole, z_l = w_n, gives infinity where v_n ≠ 0 and NaN where v_n = 0. Raises
    ValueError if sizes disagree, TypeError for other types. Source: [gu2022s4, §3.2].

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
    tags=("cauchy_mult", "cauchy_dot", "S4 Cauchy multiplication"),
)
cauchy_kernel = CAUCHY_KERNEL.checked(cauchy_kernel)
cauchy_kernel_vjp = CAUCHY_KERNEL.checked_vjp(cauchy_kernel_vjp)


def cauchy_kernel_pairs(v, w, z):
    """k_l = Σ_n v_n / (z_l − w_n) + v_n* / (z_l − w_n*).

    Signature ``(n),(n),(l)->(l)``: arguments, types, units and errors are those of `cauchy_kernel`;
    `n` counts the stored poles, one of each conjugate pair. A pole on the real axis counts twice,
    with the real part of its residue. At a real node it is 2 Re of the stored half, at others not.
    Source: [gu2022s4, §3.2].

    >>> import refssm
    >>> refssm.cauchy_kernel_pairs([1 - 2j], [-0.5 + 3j], [1.0, 2j]).round(4)
    array([1.3333+0.j    , 2.4158-0.1584j])
    """
    return CAUCHY_KERNEL.reference(paired(v), paired(w), z)


def cauchy_kernel_pairs_vjp(dk, v, w, z):
    """The gradients by v and w are those of the stored half plus the conjugate of the other's.

    Returns `(dv, dw, dz)`, shaped like `v`, `w` and `z`.
    """
    dv, dw, dz = CAUCHY_KERNEL.bare_vjp(dk, paired(v), paired(w), z)
    return folded(dv), folded(dw), dz


CAUCHY_KERNEL_PAIRS = Operator(
    reference=cauchy_kernel_pairs,
    signature="(n),(n),(l)->(l)",
    inputs={"v": residues, "w": poles, "z": nodes},
    outputs=("k",),
    batch="d, d, ",
    traits=frozenset({"linear:v"}),
    citation="gu2022s4, §3.2",
    tags=("cauchy_conj", "cauchy_naive", "cauchy_mult_sym", "S4 Cauchy sum conjugate pairs"),
)
cauchy_kernel_pairs = CAUCHY_KERNEL_PAIRS.checked(cauchy_kernel_pairs)
cauchy_kernel_pairs_vjp = CAUCHY_KERNEL_PAIRS.checked_vjp(cauchy_kernel_pairs_vjp)


def resolvent_at_roots(v, a, *, l):
    """k_j = Σ_n v_n / (1 − a_n ω_j), ω_j = e^(−2πij/l), j = 0 … l−1.

    Signature ``(n),(n)->(l)``: `v` the residues C_n B̄_n, `a` the discrete poles, `n` modes, and
    the keyword `l`, the number of nodes; leading axes broadcast. Any of float32, float64,
    longdouble and their complex types; the result is complex, of the precision of
    ``np.result_type(v, a)``. No units. It is the transform of Σ_n v_n a_n^k / (1 − a_n^l), k = 0 …
    l−1, and errors are measured against its norm, as for a transform.

    If a_n^l = 1, a node is at a pole: the result is infinite or NaN. Raises ValueError if sizes
    disagree or `l` is not an integer ≥ 0, TypeError for other types. Source: [gu2022s4, §3.2].

    >>> import refssm
    >>> refssm.resolvent_at_roots([1.0], [0.5], l=4)
    array([2.        +0.j , 0.8       -0.4j, 0.66666667+0.j , 0.8       +0.4j])
    """
    return (v[..., None, :] / (1 - a[..., None, :] * _roots(v, a, l)[:, None])).sum(-1)


def resolvent_at_roots_vjp(dk, v, a, *, l):
    """R_jn = 1/(1 − a_n ω_j);  ∂k_j/∂v_n = R_jn,  ∂k_j/∂a_n = v_n ω_j R_jn².

    Returns `(dv, da)`, shaped like `v` and `a`.
    """
    omega = _roots(v, a, l)[:, None]
    R = 1 / (1 - a[..., None, :] * omega)  # (…, l, n)
    vR2 = v[..., None, :] * (omega * R**2)
    dv = (dk[..., :, None] * R.conj()).sum(-2)
    da = (dk[..., :, None] * vR2.conj()).sum(-2)
    return unbroadcast(dv, v), unbroadcast(da, a)


def _roots(v, a, l):
    """ω_j, in the precision of the arguments."""
    return roots_of_unity(l, np.finfo(np.result_type(v, a)).dtype.type)


RESOLVENT_AT_ROOTS = Operator(
    reference=resolvent_at_roots,
    signature="(n),(n)->(l)",
    inputs={"v": coefficients, "a": discrete_poles},
    outputs=("k",),
    batch="d, d",
    traits=frozenset({"linear:v"}),
    contract=SPECTRUM,
    citation="gu2022s4, §3.2",
    tags=("Cauchy kernel at roots of unity", "generating function of a diagonal system"),
)
resolvent_at_roots = RESOLVENT_AT_ROOTS.checked(resolvent_at_roots)
resolvent_at_roots_vjp = RESOLVENT_AT_ROOTS.checked_vjp(resolvent_at_roots_vjp)
