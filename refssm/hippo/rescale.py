"""The same memory with rescaled states: each state times a number."""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.domains import input_vectors, matrices, scales


def hippo_rescale(A, B, s):
    """A_ik s_i/s_k and s_i B_i: the memory of the states s x.

    Signature ``(n,n),(n),(n)->(n,n),(n)``: `A` and `B` of a system, `s` the factor of each state,
    never 0; leading axes broadcast. Any of float32, float64, longdouble and their complex types;
    each result is complex if ``np.result_type(A, s)`` or ``np.result_type(B, s)`` is, in the
    largest precision of all. Units: those of the states change. To reconstruct a signal, divide the
    states by `s` first.

    Raises ValueError if sizes disagree, TypeError for other types. A zero in `s` divides by zero
    without a warning. NaN stays in its rows and columns. Source: [gu2020hippo].

    >>> import refssm
    >>> A, B = refssm.hippo_rescale([[-1.0, 0.0], [-3.0, -2.0]], [1.0, 1.0], [1.0, 2.0])
    >>> A.tolist(), B.tolist()
    ([[-1.0, 0.0], [-6.0, -2.0]], [1.0, 2.0])
    """
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], s.shape[:-1])
    scaled = s[..., :, None] * A / s[..., None, :], s * B
    return tuple(
        np.broadcast_to(y, (*batch, *y.shape[y.ndim - rank :])).astype(_type(y, A, B, s))
        for y, rank in zip(scaled, (2, 1), strict=True)
    )


def _type(y, *arrays):
    """The type of y (real or complex), in the precision of all arrays."""
    return np.result_type(y, *(np.finfo(a.dtype).dtype for a in arrays))


def hippo_rescale_vjp(dA_scaled, dB_scaled, A, B, s):
    """dA_ik = dA'_ik (s_i/s_k)*,  dB_i = dB'_i s_i*,  and from rows, columns and B:

    ds_i = Σ_k (dA'_ik (A_ik/s_k)* − dA'_ki (A'_ki/s_i)*) + dB'_i B_i*,  A'_ki = A_ki s_k/s_i.
    Returns `(dA, dB, ds)`, shaped like `A`, `B` and `s`.
    """
    rows, columns = s[..., :, None].conj(), s[..., None, :].conj()
    grown = dA_scaled * A.conj() / columns
    ds = grown.sum(-1) - (grown * rows / columns).sum(-2) + dB_scaled * B.conj()
    dA, dB = dA_scaled * rows / columns, dB_scaled * s.conj()
    return unbroadcast(dA, A), unbroadcast(dB, B), unbroadcast(ds, s)


HIPPO_RESCALE = Operator(
    reference=hippo_rescale,
    signature="(n,n),(n),(n)->(n,n),(n)",
    inputs={"A": matrices, "B": input_vectors, "s": scales},
    outputs=("A_scaled", "B_scaled"),
    batch="d, d, d",
    traits=frozenset({"linear:A->A_scaled", "linear:B->B_scaled"}),
    citation="gu2020hippo",
    lacks=frozenset({"jit"}),
    tags=("change the scale of states", "similarity transform by a diagonal matrix"),
)
hippo_rescale = HIPPO_RESCALE.checked(hippo_rescale)
hippo_rescale_vjp = HIPPO_RESCALE.checked_vjp(hippo_rescale_vjp)
