# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""python-control, for one real system in double precision.

Discretization rules, responses of a discrete system, gramians and Hankel singular values.
"""

from importlib.util import find_spec

import control
import numpy as np

from refssm.testing import implements

DOUBLE = ("float64",)
BY_EXPONENTIAL = ("zoh", "foh", "impulse")  # the others raise ValueError for NaN in A or B


def _discretized(A, B, dt, method, **how):
    """Ā, and B and D of the system whose output is its state.

    Under "foh" and "impulse" its state differs from refssm's, and the direct part of the input is
    in its D; B̄ is computed from these.
    """
    n, m = B.shape
    if n == 0 or m == 0:
        raise NotImplementedError("control has no systems without states or inputs")
    if method not in BY_EXPONENTIAL and not np.isfinite([*A.flat, *B.flat, dt]).all():
        raise NotImplementedError("control refuses what is not finite")
    system = control.ss(A, B, np.eye(n), np.zeros((n, m)), remove_useless_states=False)
    sampled = control.c2d(system, float(dt), method, **how)
    return sampled.A, sampled.B, sampled.D


@implements("discretize_zoh", dtypes=DOUBLE)
def discretize_zoh(A, B, dt):
    """c2d(…, "zoh")."""
    return _discretized(A, B, dt, "zoh")[:2]


@implements("discretize_bilinear", dtypes=DOUBLE)
def discretize_bilinear(A, B, dt):
    """c2d(…, "bilinear")."""
    return _discretized(A, B, dt, "bilinear")[:2]


@implements("discretize_gbt", dtypes=DOUBLE)
def discretize_gbt(A, B, dt, *, alpha):
    """c2d(…, "gbt", alpha)."""
    return _discretized(A, B, dt, "gbt", alpha=alpha)[:2]


@implements("discretize_euler", dtypes=DOUBLE)
def discretize_euler(A, B, dt):
    """c2d(…, "euler")."""
    return _discretized(A, B, dt, "euler")[:2]


@implements("discretize_backward", dtypes=DOUBLE)
def discretize_backward(A, B, dt):
    """c2d(…, "backward_diff")."""
    return _discretized(A, B, dt, "backward_diff")[:2]


@implements("discretize_foh", dtypes=DOUBLE)
def discretize_foh(A, B, dt):
    """c2d(…, "foh"), whose new state is x − D u: B̄₀ = D, B̄₁ = B − Ā D."""
    A_bar, B_bar, D_bar = _discretized(A, B, dt, "foh")
    return A_bar, D_bar, B_bar - A_bar @ D_bar


@implements("discretize_impulse", dtypes=DOUBLE)
def discretize_impulse(A, B, dt):
    """c2d(…, "impulse"), which multiplies the impulse by the step: D = dt·B."""
    A_bar, _, D_bar = _discretized(A, B, dt, "impulse")
    return A_bar, D_bar / dt


def _sampled(A, B, C):
    """A discrete system with time step 1.

    Its recurrence is x_{k+1} = A x_k + B u_k, one step behind refssm's: for a response a zero
    sample is appended, and the first state or output dropped.
    """
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
    return control.forced_response(_sampled(A, I, I), inputs=u, initial_state=x0).states.T[1:]  # pyright: ignore[reportArgumentType]


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
    system = _sampled(A, B[:, None], C[None])
    return np.asarray(control.impulse_response(system, T=l).outputs)[1:]


def _single(A, B, C, *step):
    """A system for gramians, which slycot computes; continuous if no step is given.

    The gramians of a discrete system do not depend on whether its recurrence starts with x_0 or
    x_1.
    """
    if find_spec("slycot") is None:
        raise NotImplementedError("control has no gramians without slycot: pip install slycot")
    if A.shape[-1] == 0:
        raise NotImplementedError("control has no systems without states")
    if not np.isfinite(A).all():
        raise NotImplementedError("control refuses matrices that are not finite")
    zero = np.zeros((1, 1))
    return control.ss(A, B[:, None], C[None], zero, *step, remove_useless_states=False)


def _gramians(system):
    return control.gram(system, "c"), control.gram(system, "o")


@implements("gramians", dtypes=DOUBLE)
def gramians(A, B, C):
    """gram(…, "c") and gram(…, "o")."""
    return _gramians(_single(A, B, C))


@implements("gramians_discrete", dtypes=DOUBLE)
def gramians_discrete(A, B, C):
    """gram(…) of a discrete system."""
    return _gramians(_single(A, B, C, True))


@implements("hankel_singular_values", dtypes=DOUBLE)
def hankel_singular_values(A, B, C):
    """hankel_singular_values, also called hsvd."""
    return control.hankel_singular_values(_single(A, B, C))
