"""Diagonal systems with real outputs and one mode per conjugate pair: y = 2 Re(C x) + D u.

Every mode counts twice. A mode on the real axis has no partner: pass half its column of `C`.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.domains import real_matrices, real_signals
from refssm.domains import states as initial_states
from refssm.scan.diagonal import DIAGONAL_SSM, at_rest, pulled_back, read, skipped_back, states
from refssm.scan.diagonal_stateful import states_from


def diagonal_ssm_real(a, B, C, D, u):
    """y_k = 2 Re(C x_k) + D u_k,  x_k = a x_{k-1} + B u_k from rest.

    Signature ``(n),(n,m),(p,n),(p,m),(l,m)->(l,p)``: as `diagonal_ssm`, with real `D`, `u` and `y`;
    `a`, `B` and `C` have one mode of each conjugate pair. Units and errors are those of
    `diagonal_ssm`. Source: [smith2023s5, §3.2].

    >>> import refssm
    >>> refssm.diagonal_ssm_real([0.5j], [[1.0]], [[1.0]], [[0.0]], [[1.0], [0.0], [0.0]]).ravel()
    array([ 2. ,  0. , -0.5])
    """
    return 2 * read(C, states(a[..., None, :], B, u)).real + read(D, u)


def diagonal_ssm_real_vjp(dy, a, B, C, D, u):
    """As in `diagonal_ssm_vjp`, with cotangent 2 dy for the state.

    Returns `(da, dB, dC, dD, du)`, shaped like the arguments.
    """
    rest = at_rest(a[..., None, :], B, u)
    return _pulled_back(dy, np.zeros_like(rest), a, B, C, D, u, rest)[:-1]


def _pulled_back(dy, dx, a, B, C, D, u, x0):
    """Gradients from outputs and last state, summed to the shapes of the arguments."""
    da, dB, dC, du, dx0 = pulled_back(2 * dy, dx, a[..., None, :], B, C, u, x0)
    dD, skipped = skipped_back(dy, D, u)
    gradients = (np.sum(da, axis=-2), dB, dC, dD, np.real(du) + skipped, dx0)
    return unbroadcast_each(gradients, (a, B, C, D, u, x0))


DIAGONAL_SSM_REAL = Operator(
    reference=diagonal_ssm_real,
    signature="(n),(n,m),(p,n),(p,m),(l,m)->(l,p)",
    inputs={**DIAGONAL_SSM.inputs, "D": real_matrices, "u": real_signals},
    batch=", , , , b",
    traits=DIAGONAL_SSM.traits,
    citation="smith2023s5, §3.2",
    tags=("apply_ssm conj_sym", "S5 conjugate symmetry"),
)
diagonal_ssm_real = DIAGONAL_SSM_REAL.checked(diagonal_ssm_real)
diagonal_ssm_real_vjp = DIAGONAL_SSM_REAL.checked_vjp(diagonal_ssm_real_vjp)


def diagonal_ssm_real_stateful(a, B, C, D, u, x0):
    """y_k = 2 Re(C x_k) + D u_k from the state x_{-1} = x0, and the last state.

    Signature ``(n),(n,m),(p,n),(p,m),(l,m),(n)->(l,p),(n)``: as `diagonal_ssm_real`; the states are
    those of the stored modes. Source: [smith2023s5, §3.2].

    >>> import refssm
    >>> y, x = refssm.diagonal_ssm_real_stateful(
    ...     [0.5j], [[1.0]], [[1.0]], [[0.0]], [[0.0], [0.0]], [4.0])
    >>> y.ravel(), x
    (array([ 0., -2.]), array([-1.+0.j]))
    """
    x = states_from(a[..., None, :], B, u, x0)
    y = 2 * read(C, x[..., 1:, :]).real + read(D, u)
    return y, with_batch(x[..., -1, :], 1, y.shape[:-2])


def diagonal_ssm_real_stateful_vjp(dy, dx, a, B, C, D, u, x0):
    """As in `diagonal_ssm_stateful_vjp`, with cotangent 2 dy for the state.

    Returns `(da, dB, dC, dD, du, dx0)`, shaped like the arguments.
    """
    return _pulled_back(dy, dx, a, B, C, D, u, x0)


DIAGONAL_SSM_REAL_STATEFUL = Operator(
    reference=diagonal_ssm_real_stateful,
    signature="(n),(n,m),(p,n),(p,m),(l,m),(n)->(l,p),(n)",
    form="stateful",
    inputs={**DIAGONAL_SSM_REAL.inputs, "x0": initial_states},
    outputs=("y", "x"),
    batch=", , , , b, b",
    traits=frozenset({"causal", "state", "linear:u,x0", "linear:C,D->y"}),
    citation="smith2023s5, §3.2",
    tags=("S5 conj_sym with the last state",),
)
diagonal_ssm_real_stateful = DIAGONAL_SSM_REAL_STATEFUL.checked(diagonal_ssm_real_stateful)
diagonal_ssm_real_stateful_vjp = DIAGONAL_SSM_REAL_STATEFUL.checked_vjp(
    diagonal_ssm_real_stateful_vjp
)
