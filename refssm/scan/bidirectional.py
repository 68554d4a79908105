"""Diagonal systems over past and future: one scan from the start, one from the end.

    x_k = a x_{k-1} + B u_k,    z_k = a z_{k+1} + B u_k,    y_k = C [x_k; z_k] + D u_k

In S5 both sums begin at lag 0, so u_k counts twice; in other models the second begins one step
later [smith2023s5].
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.scan.diagonal import DIAGONAL_SSM, at_rest, pulled_back, read, skipped_back, states


def diagonal_ssm_bidirectional(a, B, C, D, u):
    """y_k = C [x_k; z_k] + D u_k,  x_k = a x_{k-1} + B u_k,  z_k = a z_{k+1} + B u_k.

    Signature ``(n),(n,m),(p,2n),(p,m),(l,m)->(l,p)``: as `diagonal_ssm`, with a second scan from
    the end; the first n columns of `C` read the state of the past, the others that of the future.
    Types, units and errors are those of `diagonal_ssm`. Source: [smith2023s5].

    >>> import refssm
    >>> u = [[1.0], [0.0], [2.0]]
    >>> refssm.diagonal_ssm_bidirectional([0.5], [[1.0]], [[1.0, 1.0]], [[0.0]], u).ravel()
    array([2.5 , 1.5 , 4.25])
    """
    n, a = a.shape[-1], a[..., None, :]
    past, future = states(a, B, u), states(a, B, u[..., ::-1, :])[..., ::-1, :]
    return read(C[..., :n], past) + read(C[..., n:], future) + read(D, u)


def diagonal_ssm_bidirectional_vjp(dy, a, B, C, D, u):
    """The gradients of `diagonal_ssm` for the past, plus those with time reversed for the future.

    Returns `(da, dB, dC, dD, du)`, shaped like the arguments.
    """
    n, a_k = a.shape[-1], a[..., None, :]
    rest = at_rest(a_k, B, u)
    none, backwards = np.zeros_like(rest), (..., slice(None, None, -1), slice(None))
    past = pulled_back(dy, none, a_k, B, C[..., :n], u, rest)
    future = pulled_back(dy[backwards], none, a_k, B, C[..., n:], u[backwards], rest)
    da, dB, du = past[0] + future[0], past[1] + future[1], past[3] + future[3][backwards]
    dC = np.concatenate([past[2], future[2]], axis=-1)
    dD, skipped = skipped_back(dy, D, u)
    gradients = (np.sum(da, axis=-2), dB, dC, dD, du + skipped)
    return unbroadcast_each(gradients, (a, B, C, D, u))


DIAGONAL_SSM_BIDIRECTIONAL = Operator(
    reference=diagonal_ssm_bidirectional,
    signature="(n),(n,m),(p,2n),(p,m),(l,m)->(l,p)",
    inputs=DIAGONAL_SSM.inputs,
    batch=", , , , b",
    traits=frozenset({"linear:u", "linear:B,D", "linear:C,D"}),
    citation="smith2023s5",
    tags=("apply_ssm bidirectional", "S5 bidirectional"),
)
diagonal_ssm_bidirectional = DIAGONAL_SSM_BIDIRECTIONAL.checked(diagonal_ssm_bidirectional)
diagonal_ssm_bidirectional_vjp = DIAGONAL_SSM_BIDIRECTIONAL.checked_vjp(
    diagonal_ssm_bidirectional_vjp
)
