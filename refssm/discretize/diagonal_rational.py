"""The generalized bilinear map of a diagonal system: e^z becomes (1 + (1 − α)z) / (1 − αz).

    Ā_n = (1 + (1 − α) z_n) / (1 − α z_n),   B̄_nm = dt_n B_nm / (1 − α z_n),   z_n = dt_n w_n

[zhang2009gbt]; α = 0 is Euler's rule, ½ the trapezoidal one, 1 backward Euler.
"""

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.discretize.blocks import for_every
from refssm.domains import input_matrices, modes, steps, weights


def _mapped(z, B, dt, alpha):
    """Ā and B̄ of the map with weight `alpha`."""
    R = 1 - alpha * z
    return for_every((1 + (1 - alpha) * z) / R, dt[..., None] * B / R[..., None], rank=1)


def _gradients(dA_bar, dB_bar, w, B, dt, alpha):
    """R = 1/(1 − αz): ∂Ā/∂z = R², ∂B̄/∂dt = R² B, ∂B̄/∂w = α dt² R² B, ∂B̄/∂B = dt R."""
    R = 1 / (1 - alpha * (dt * w))
    R2, through_B = (R * R).conj(), (B.conj() * dB_bar).sum(-1)
    dw = dt * R2 * dA_bar + alpha * dt * dt * R2 * through_B
    dB = (dt * R).conj()[..., None] * dB_bar
    ddt = w.conj() * R2 * dA_bar + R2 * through_B
    return unbroadcast(dw, w), unbroadcast(dB, B), unbroadcast(ddt, dt)


def discretize_diagonal_gbt(w, B, dt, *, alpha):
    """Ā_n = (1 + (1 − α)dt_n w_n) / (1 − α dt_n w_n),  B̄_nm = dt_n / (1 − α dt_n w_n) B_nm.

    Signature ``(n),(n,m),(n)->(n),(n,m)`` and the keyword `alpha`, a number from 0 to 1:
    `discretize_gbt` of A = diag w with one step size `dt` per state; leading axes broadcast. Types,
    errors and NaN are those of `discretize_diagonal_zoh`; α dt·w = 1 gives infinity. Source:
    [zhang2009gbt].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_diagonal_gbt([-2.0], [[1.0]], [1.0], alpha=0.25)
    >>> A_bar.round(4).tolist(), B_bar.round(4).tolist()
    ([-0.3333], [[0.6667]])
    """
    return _mapped(dt * w, B, dt, alpha)


def discretize_diagonal_gbt_vjp(dA_bar, dB_bar, w, B, dt, *, alpha):
    """R = 1/(1 − αz): ∂Ā/∂z = R², ∂B̄/∂dt = R² B, ∂B̄/∂w = α dt² R² B, ∂B̄/∂B = dt R.

    Returns `(dw, dB, ddt)`, shaped like `w`, `B` and `dt`.
    """
    return _gradients(dA_bar, dB_bar, w, B, dt, alpha)


DISCRETIZE_DIAGONAL_GBT = Operator(
    reference=discretize_diagonal_gbt,
    signature="(n),(n,m),(n)->(n),(n,m)",
    inputs={"w": modes, "B": input_matrices, "dt": steps},
    parameters={"alpha": weights},
    outputs=("A_bar", "B_bar"),
    batch="d, d, d",
    traits=frozenset({"linear:B->B_bar"}),
    citation="zhang2009gbt",
    lacks=frozenset({"jit"}),  # one pass over n numbers: a mirror would gain nothing
    tags=("generalized bilinear transform diagonal",),
)
discretize_diagonal_gbt = DISCRETIZE_DIAGONAL_GBT.checked(discretize_diagonal_gbt)
discretize_diagonal_gbt_vjp = DISCRETIZE_DIAGONAL_GBT.checked_vjp(discretize_diagonal_gbt_vjp)


def discretize_diagonal_euler(w, B, dt):
    """Ā_n = 1 + dt_n w_n,  B̄_nm = dt_n B_nm.

    Signature ``(n),(n,m),(n)->(n),(n,m)``: `discretize_euler` of A = diag w with one step size `dt`
    per state. Types, errors and NaN are those of `discretize_diagonal_zoh`, but B̄ is real or
    complex like `B`. Source: [gu2020hippo, App. B.3].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_diagonal_euler([-2.0], [[1.0]], [0.25])
    >>> A_bar.tolist(), B_bar.tolist()
    ([0.5], [[0.25]])
    """
    return for_every(1 + dt * w, dt[..., None] * B, rank=1)


def discretize_diagonal_euler_vjp(dA_bar, dB_bar, w, B, dt):
    """∂Ā/∂w = dt,  ∂Ā/∂dt = w,  ∂B̄/∂B = dt,  ∂B̄/∂dt = B.

    Returns `(dw, dB, ddt)`, shaped like `w`, `B` and `dt`.
    """
    ddt = w.conj() * dA_bar + (B.conj() * dB_bar).sum(-1)
    return unbroadcast(dt * dA_bar, w), unbroadcast(dt[..., None] * dB_bar, B), unbroadcast(ddt, dt)


DISCRETIZE_DIAGONAL_EULER = Operator(
    reference=discretize_diagonal_euler,
    signature="(n),(n,m),(n)->(n),(n,m)",
    inputs={"w": modes, "B": input_matrices, "dt": steps},
    outputs=("A_bar", "B_bar"),
    batch="d, d, d",
    traits=frozenset({"linear:B->B_bar"}),
    citation="gu2020hippo, App. B.3",
    lacks=frozenset({"jit"}),  # one pass over n numbers: a mirror would gain nothing
    tags=("forward Euler diagonal",),
)
discretize_diagonal_euler = DISCRETIZE_DIAGONAL_EULER.checked(discretize_diagonal_euler)
discretize_diagonal_euler_vjp = DISCRETIZE_DIAGONAL_EULER.checked_vjp(discretize_diagonal_euler_vjp)


def discretize_diagonal_bilinear(w, B, dt):
    """Ā_n = (1 + ½dt_n w_n) / (1 − ½dt_n w_n),  B̄_nm = dt_n / (1 − ½dt_n w_n) B_nm.

    Signature ``(n),(n,m),(n)->(n),(n,m)``: `discretize_bilinear` of A = diag w with one step size
    `dt` per state; leading axes broadcast. Types, errors and NaN are those of
    `discretize_diagonal_zoh`; dt·w = −2 gives Ā = 0, dt·w = 2 gives infinity. Source: [smith2023s5,
    §3.2].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_diagonal_bilinear([-2.0, 0.0], [[1.0], [1.0]], [1.0, 0.5])
    >>> A_bar.tolist(), B_bar.tolist()
    ([0.0, 1.0], [[0.5], [0.5]])
    """
    return _mapped(dt * w, B, dt, 0.5)


def discretize_diagonal_bilinear_vjp(dA_bar, dB_bar, w, B, dt):
    """R = 1/(1 − ½z): ∂Ā/∂z = R², ∂B̄/∂dt = R² B, ∂B̄/∂w = ½dt² R² B, ∂B̄/∂B = dt R.

    Returns `(dw, dB, ddt)`, shaped like `w`, `B` and `dt`.
    """
    return _gradients(dA_bar, dB_bar, w, B, dt, 0.5)


DISCRETIZE_DIAGONAL_BILINEAR = Operator(
    reference=discretize_diagonal_bilinear,
    signature="(n),(n,m),(n)->(n),(n,m)",
    inputs={"w": modes, "B": input_matrices, "dt": steps},
    outputs=("A_bar", "B_bar"),
    batch="d, d, d",
    traits=frozenset({"linear:B->B_bar"}),
    citation="smith2023s5, §3.2",
    lacks=frozenset({"jit"}),  # one pass over n numbers: a mirror would gain nothing
    tags=("S5 discretize_bilinear", "Tustin diagonal"),
)
discretize_diagonal_bilinear = DISCRETIZE_DIAGONAL_BILINEAR.checked(discretize_diagonal_bilinear)
discretize_diagonal_bilinear_vjp = DISCRETIZE_DIAGONAL_BILINEAR.checked_vjp(
    discretize_diagonal_bilinear_vjp
)


def discretize_diagonal_backward(w, B, dt):
    """Ā_n = 1 / (1 − dt_n w_n),  B̄_nm = dt_n / (1 − dt_n w_n) B_nm.

    Signature ``(n),(n,m),(n)->(n),(n,m)``: `discretize_backward` of A = diag w with one step size
    `dt` per state. Types, errors and NaN are those of `discretize_diagonal_zoh`; dt·w = 1 gives
    infinity. Source: [gu2020hippo, App. B.3].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_diagonal_backward([-3.0], [[1.0]], [1.0])
    >>> A_bar.tolist(), B_bar.tolist()
    ([0.25], [[0.25]])
    """
    R = 1 - dt * w
    return for_every(1 / R, dt[..., None] * B / R[..., None], rank=1)


def discretize_diagonal_backward_vjp(dA_bar, dB_bar, w, B, dt):
    """R = 1/(1 − z): ∂Ā/∂z = R², ∂B̄/∂dt = R² B, ∂B̄/∂w = dt² R² B, ∂B̄/∂B = dt R.

    Returns `(dw, dB, ddt)`, shaped like `w`, `B` and `dt`.
    """
    return _gradients(dA_bar, dB_bar, w, B, dt, 1)


DISCRETIZE_DIAGONAL_BACKWARD = Operator(
    reference=discretize_diagonal_backward,
    signature="(n),(n,m),(n)->(n),(n,m)",
    inputs={"w": modes, "B": input_matrices, "dt": steps},
    outputs=("A_bar", "B_bar"),
    batch="d, d, d",
    traits=frozenset({"linear:B->B_bar"}),
    citation="gu2020hippo, App. B.3",
    lacks=frozenset({"jit"}),  # one pass over n numbers: a mirror would gain nothing
    tags=("backward Euler diagonal",),
)
discretize_diagonal_backward = DISCRETIZE_DIAGONAL_BACKWARD.checked(discretize_diagonal_backward)
discretize_diagonal_backward_vjp = DISCRETIZE_DIAGONAL_BACKWARD.checked_vjp(
    discretize_diagonal_backward_vjp
)
