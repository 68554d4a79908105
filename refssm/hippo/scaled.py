"""One step of a memory whose time is stretched: LegS as programs run it, and its warped forms.

    x' = (A x + B u)/(p t),   h = 1/(p t) held over a step of length 1

`time` is the t of the step, so the caller says where in the step it stands. The states of m signals
that share A are the columns of `x`. A step solves

    (I − α h A) x_k = (I + (1 − α) h A) x_{k−1} + h B u_kᵀ

with α = 0 for Euler's rule, ½ for the bilinear one, and 1 for backward Euler [gu2020hippo].
"""

from functools import partial

import numpy as np

from refssm._declaration.contract import SOLVE
from refssm._declaration.operator import COMPILED_TYPES, Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm._numerics.lyapunov import adjoint
from refssm.discretize.blocks import identity, scaled, solve
from refssm.domains import (
    elapsed_times,
    input_vectors,
    powers_of_time,
    signals,
    state_matrices,
    states,
)

# what the three rules have; Euler's solves nothing, so it has another contract
_rule = partial(
    Operator,
    signature="(n,n),(n),(n,m),(m),()->(n,m)",
    inputs={
        "A": state_matrices,
        "B": input_vectors,
        "x": states,
        "u": signals,
        "time": elapsed_times,
    },
    parameters={"p": powers_of_time},
    outputs=("x_next",),
    batch="d, d, b d, b d, b",
    traits=frozenset({"linear:x,u"}),
    citation="gu2020hippo",
    lacks=frozenset({"jit"}),  # a product or a solve: LAPACK does this already
)


def _share(time, p):
    """h = 1/(p t)."""
    return 1 / (p * time)


def systems(A, B, x, u, time, *, p, alpha):
    """M = I − α h A, and M x_k = x + (1 − α) h A x + h B uᵀ."""
    h = _share(time, p)
    F, driven = scaled(A, h), (h[..., None] * B)[..., None] * u[..., None, :]
    return identity(A) - alpha * F, x + (1 - alpha) * (F @ x) + driven


def _gradients(S, x_next, A, B, x, u, time, *, p, alpha):
    """From S = M⁻ᴴ dx_k: dx = (I + (1 − α) h A)ᴴ S, dF = S ((1 − α) x + α x_k)ᴴ, F = h A."""
    h = _share(time, p)
    F = scaled(A, h)
    dF = S @ adjoint((1 - alpha) * x + alpha * x_next)
    dx = S + (1 - alpha) * (adjoint(F) @ S)
    dH = (S * u[..., None, :].conj()).sum(-1)  # the gradient of h B
    du = ((h[..., None] * B).conj()[..., None] * S).sum(-2)
    dh = (A.conj() * dF).sum((-1, -2)) + (B.conj() * dH).sum(-1)
    return (
        unbroadcast(h[..., None, None] * dF, A),
        unbroadcast(h[..., None] * dH, B),
        unbroadcast(dx, x),
        unbroadcast(du, u),
        unbroadcast(-h / time * dh, time),
    )


def _stepped(name, share, arrays, p, alpha):
    M, side = systems(*arrays, p=p, alpha=alpha)
    return solve(name, share, M, side, _share(arrays[-1], p))


def _stepped_back(name, share, dx_next, arrays, p, alpha):
    M, side = systems(*arrays, p=p, alpha=alpha)
    h = _share(arrays[-1], p)
    x_next, S = solve(name, share, M, side, h), solve(name, share, adjoint(M), dx_next, h)
    return _gradients(S, x_next, *arrays, p=p, alpha=alpha)


def hippo_scaled_euler(A, B, x, u, time, *, p):
    """x_k = x + (A x + B uᵀ)/(p t).

    Signature ``(n,n),(n),(n,m),(m),()->(n,m)`` and the keyword `p`, a number above 0: `A` and `B`
    of the memory, `x` the states of `m` signals as columns, `u` a sample of each, `time` the t of
    the step in units of the step; leading axes broadcast. Any of float32, float64, longdouble and
    their complex types. A state −j of A grows in this step if j > 2 p t, so LegS with n states
    grows until t = n/(2p). Units: `x` in those of `u` for LegS.

    Raises ValueError if sizes disagree or `p` is not above 0, TypeError for other types. Errors are
    measured entry by entry; NaN in a signal stays in its column. Source: [gu2020hippo].

    >>> import refssm
    >>> refssm.hippo_scaled_euler([[-1.0]], [1.0], [[3.0]], [7.0], 4.0, p=1.0)  # a running mean
    array([[4.]])
    """
    return systems(A, B, x, u, time, p=p, alpha=0)[1]


def hippo_scaled_euler_vjp(dx_next, A, B, x, u, time, *, p):
    """dx = (I + h A)ᴴ dx_k, dA = h dx_k xᴴ, dB = h dx_k u*, du = h Bᴴ dx_k, h = 1/(p t), dt by h.

    Returns `(dA, dB, dx, du, dtime)`, shaped like the arguments.
    """
    S = dx_next.astype(np.result_type(dx_next, x))
    return _gradients(S, x, A, B, x, u, time, p=p, alpha=0)


HIPPO_SCALED_EULER = _rule(
    reference=hippo_scaled_euler,
    tags=("LegS step by forward Euler", "LegSAdaptiveTransitionManual forward_diff"),
)
hippo_scaled_euler = HIPPO_SCALED_EULER.checked(hippo_scaled_euler)
hippo_scaled_euler_vjp = HIPPO_SCALED_EULER.checked_vjp(hippo_scaled_euler_vjp)


def hippo_scaled_bilinear(A, B, x, u, time, *, p):
    """(I − ½h A) x_k = (I + ½h A) x + h B uᵀ,  h = 1/(p t).

    Arguments and units are those of `hippo_scaled_euler`. Any of float32, float64 and their complex
    types. No state with Re λ(A) ≤ 0 grows, for any t. With t and u from the middle of the step it
    is of second order; with t from its end, as programs have it, of first. Errors are measured as
    those of a solve: by the residual.

    Raises numpy.linalg.LinAlgError if 2 p t is an eigenvalue of A; otherwise the errors of
    `hippo_scaled_euler`. NaN in `A` or `time` makes every entry NaN. Source: [gu2020hippo].

    >>> import refssm
    >>> refssm.hippo_scaled_bilinear([[-1.0]], [1.0], [[3.0]], [7.0], 1.5, p=1.0)
    array([[5.]])
    """
    return _stepped("hippo_scaled_bilinear", "½", (A, B, x, u, time), p, 0.5)


def hippo_scaled_bilinear_vjp(dx_next, A, B, x, u, time, *, p):
    """S = (I − ½h A)⁻ᴴ dx_k;  dx = (I + ½h A)ᴴ S, dA = ½h S (x + x_k)ᴴ, dB = h S u*, du = h Bᴴ S.

    Returns `(dA, dB, dx, du, dtime)`, shaped like the arguments.
    """
    arrays = A, B, x, u, time
    return _stepped_back("hippo_scaled_bilinear", "½", dx_next, arrays, p, 0.5)


HIPPO_SCALED_BILINEAR = _rule(
    reference=hippo_scaled_bilinear,
    definition=partial(systems, alpha=0.5),
    contract=SOLVE,
    tags=("LegS step by the bilinear rule", "LegSAdaptiveTransitionManual bilinear"),
)
hippo_scaled_bilinear = HIPPO_SCALED_BILINEAR.checked(hippo_scaled_bilinear, COMPILED_TYPES)
hippo_scaled_bilinear_vjp = HIPPO_SCALED_BILINEAR.checked_vjp(
    hippo_scaled_bilinear_vjp, COMPILED_TYPES
)


def hippo_scaled_backward(A, B, x, u, time, *, p):
    """(I − h A) x_k = x + h B uᵀ,  h = 1/(p t).

    Arguments and units are those of `hippo_scaled_euler`, types those of `hippo_scaled_bilinear`.
    Of first order; fast states are damped to 0, and none with Re λ(A) ≤ 0 grows. Errors are
    measured as those of a solve.

    Raises numpy.linalg.LinAlgError if p t is an eigenvalue of A; otherwise the errors of
    `hippo_scaled_euler`. NaN in `A` or `time` makes every entry NaN. Source: [gu2020hippo].

    >>> import refssm
    >>> refssm.hippo_scaled_backward([[-1.0]], [1.0], [[3.0]], [7.0], 3.0, p=1.0)
    array([[4.]])
    """
    return _stepped("hippo_scaled_backward", "", (A, B, x, u, time), p, 1)


def hippo_scaled_backward_vjp(dx_next, A, B, x, u, time, *, p):
    """S = (I − h A)⁻ᴴ dx_k;  dx = S, dA = h S x_kᴴ, dB = h S u*, du = h Bᴴ S.

    Returns `(dA, dB, dx, du, dtime)`, shaped like the arguments.
    """
    return _stepped_back("hippo_scaled_backward", "", dx_next, (A, B, x, u, time), p, 1)


HIPPO_SCALED_BACKWARD = _rule(
    reference=hippo_scaled_backward,
    definition=partial(systems, alpha=1),
    contract=SOLVE,
    tags=("LegS step by backward Euler", "LegSAdaptiveTransitionManual backward_diff"),
)
hippo_scaled_backward = HIPPO_SCALED_BACKWARD.checked(hippo_scaled_backward, COMPILED_TYPES)
hippo_scaled_backward_vjp = HIPPO_SCALED_BACKWARD.checked_vjp(
    hippo_scaled_backward_vjp, COMPILED_TYPES
)
