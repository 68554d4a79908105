"""Diagonal systems from a given state, which also return their last state: sequences may be split.

y, x = diagonal_ssm_stateful(a, B, C, D, u, x0)
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each, with_batch
from refssm.domains import states as initial_states
from refssm.scan.diagonal import (
    DIAGONAL_SSM,
    DIAGONAL_SSM_VARYING,
    common,
    driven,
    pulled_back,
    read,
    skipped_back,
)
from refssm.scan.linear import LINEAR_SCAN_FROM


def states_from(a, B, u, x0):
    """x0, then x_k = a_k x_{k-1} + B u_k; `a` (l, n), or (1, n) if constant in time."""
    b = driven(B, u)
    x = LINEAR_SCAN_FROM.reference(np.broadcast_to(a, common(a, b)), b, x0)
    start = np.broadcast_to(x0[..., None, :], (*x.shape[:-2], 1, x.shape[-1]))
    return np.concatenate([start, x], axis=-2)


def diagonal_ssm_stateful(a, B, C, D, u, x0):
    """y_k = C x_k + D u_k,  x_k = a x_{k-1} + B u_k from x_{-1} = x0, and the last state.

    Signature ``(n),(n,m),(p,n),(p,m),(l,m),(n)->(l,p),(n)``: as `diagonal_ssm`, with the state
    before the first input; the next piece starts from the last state (`x0` if l is 0).
    Types, units and errors are those of `diagonal_ssm`. Source: [smith2023s5, §3.1].

    >>> import refssm
    >>> y, x = refssm.diagonal_ssm_stateful([0.5], [[1.0]], [[2.0]], [[0.0]], [[1.0]], [4.0])
    >>> y.ravel(), x
    (array([6.]), array([3.]))
    """
    x = states_from(a[..., None, :], B, u, x0)
    y = read(C, x[..., 1:, :]) + read(D, u)
    return y, with_batch(x[..., -1, :], 1, y.shape[:-2])


def diagonal_ssm_stateful_vjp(dy, dx, a, B, C, D, u, x0):
    """As in `diagonal_ssm_vjp`, with dx added to the last g;  dx0 = a* g_0.

    Returns `(da, dB, dC, dD, du, dx0)`, shaped like the arguments.
    """
    bare = DIAGONAL_SSM_VARYING_STATEFUL.bare_vjp
    da, *others = bare(dy, dx, a[..., None, :], B, C, D, u, x0)
    return unbroadcast(da[..., 0, :], a), *others


def diagonal_ssm_varying_stateful(a, B, C, D, u, x0):
    """y_k = C x_k + D u_k,  x_k = a_k x_{k-1} + B u_k from x_{-1} = x0, and the last state.

    Signature ``(l,n),(n,m),(p,n),(p,m),(l,m),(n)->(l,p),(n)``: as `diagonal_ssm_varying` and
    `diagonal_ssm_stateful`. Source: [smith2023s5, §6.3].

    >>> import refssm
    >>> y, x = refssm.diagonal_ssm_varying_stateful(
    ...     [[0.5], [2.0]], [[1.0]], [[1.0]], [[0.0]], [[1.0], [3.0]], [2.0])
    >>> y.ravel(), x
    (array([2., 7.]), array([7.]))
    """
    x = states_from(a, B, u, x0)
    y = read(C, x[..., 1:, :]) + read(D, u)
    return y, with_batch(x[..., -1, :], 1, y.shape[:-2])


def diagonal_ssm_varying_stateful_vjp(dy, dx, a, B, C, D, u, x0):
    """As in `diagonal_ssm_stateful_vjp`, with a_k for a:  da_k = x_{k-1}* g_k.

    Returns `(da, dB, dC, dD, du, dx0)`, shaped like the arguments.
    """
    da, dB, dC, du, dx0 = pulled_back(dy, dx, a, B, C, u, x0)
    dD, skipped = skipped_back(dy, D, u)
    gradients, arguments = (da, dB, dC, dD, du + skipped, dx0), (a, B, C, D, u, x0)
    return unbroadcast_each(gradients, arguments)


DIAGONAL_SSM_VARYING_STATEFUL = Operator(
    reference=diagonal_ssm_varying_stateful,
    signature="(l,n),(n,m),(p,n),(p,m),(l,m),(n)->(l,p),(n)",
    form="stateful",
    inputs={**DIAGONAL_SSM_VARYING.inputs, "x0": initial_states},
    outputs=("y", "x"),
    batch="b, , , , b, b",
    traits=frozenset({"causal", "state", "linear:u,x0", "linear:C,D->y"}),
    citation="smith2023s5, §6.3",
    tags=("S5 irregular time steps with the last state",),
)
DIAGONAL_SSM_STATEFUL = Operator(
    reference=diagonal_ssm_stateful,
    signature="(n),(n,m),(p,n),(p,m),(l,m),(n)->(l,p),(n)",
    form="stateful",
    inputs={**DIAGONAL_SSM.inputs, "x0": initial_states},
    outputs=("y", "x"),
    batch=", , , , b, b",
    traits=frozenset({"causal", "state", "linear:u,x0", "linear:C,D->y"}),
    citation="smith2023s5, §3.1",
    tags=("S5 SSM with the last state",),
)
diagonal_ssm_stateful = DIAGONAL_SSM_STATEFUL.checked(diagonal_ssm_stateful)
diagonal_ssm_stateful_vjp = DIAGONAL_SSM_STATEFUL.checked_vjp(diagonal_ssm_stateful_vjp)
diagonal_ssm_varying_stateful = DIAGONAL_SSM_VARYING_STATEFUL.checked(diagonal_ssm_varying_stateful)
diagonal_ssm_varying_stateful_vjp = DIAGONAL_SSM_VARYING_STATEFUL.checked_vjp(
    diagonal_ssm_varying_stateful_vjp
)
