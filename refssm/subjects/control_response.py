# pyright: reportMissingImports=false
"""control.forced_response and control.impulse_response of a discrete real system.

Their recurrence is x_{k+1} = A x_k + B u_k, one step behind refssm's, so a zero sample is appended
and the first state or output dropped.
"""

import control
import numpy as np

from refssm.testing import implements

DOUBLE = ("float64",)


def _system(A, B, C):
    """A discrete system with time step 1."""
    if A.shape[-1] == 0:
        raise NotImplementedError("control has no systems without states")
    D = np.zeros((len(C), B.shape[-1]))
    return control.ss(A, B, C, D, True, remove_useless_states=False)


def _states(A, b, x0):
    if len(b) == 0:
        raise NotImplementedError("control has no responses to nothing")
    if not np.isfinite(b).all():
        raise NotImplementedError("control refuses inputs that are not finite")
    I = np.eye(len(A))
    u = np.concatenate([b, np.zeros_like(b[:1])]).T
    return control.forced_response(_system(A, I, I), inputs=u, initial_state=x0).states.T[1:]  # pyright: ignore[reportArgumentType]


@implements("dense_scan", dtypes=DOUBLE)
def dense_scan(A, b):
    """forced_response from a zero state."""
    return _states(A, b, np.zeros(len(A)))


@implements("dense_scan_from", dtypes=DOUBLE)
def dense_scan_from(A, b, x0):
    """forced_response from x0."""
    return _states(A, b, x0)


@implements("krylov_kernel", dtypes=DOUBLE)
def krylov_kernel(A, B, C, *, l):
    """impulse_response without its first output, which is D."""
    if l == 0:
        raise NotImplementedError("control has no responses of no steps")
    if not np.isfinite(A).all():
        raise NotImplementedError("control refuses matrices that are not finite")
    system = _system(A, B[:, None], C[None])
    return np.asarray(control.impulse_response(system, T=l).outputs)[1:]
