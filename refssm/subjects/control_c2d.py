# pyright: reportMissingImports=false
"""control.c2d: the discretization rules, for one real system in double precision.

Under "foh" and "impulse" its state differs from refssm's, and the direct part of the input is in
its D; B̄ is computed from these.
"""

import control
import numpy as np

from refssm.testing import implements

DOUBLE = ("float64",)
BY_EXPONENTIAL = ("zoh", "foh", "impulse")  # the others raise ValueError for NaN in A or B


def _discretized(A, B, dt, method, **how):
    """Ā, and B and D of the system whose output is its state."""
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
