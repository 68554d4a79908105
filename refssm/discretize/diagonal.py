"""Discretization of a diagonal system: the exponential rules, then the generalized bilinear map.

The exponential rules: input constant, linear, impulses, or as in Mamba.

    Ā_n = e^{z_n},   z_n = dt_n w_n

They differ in B̄. Constant input over a step: dt φ₁(z) B. Linear input: dt φ₂(z) B at the end of
the step and dt φ₁'(z) B at its start. Impulse: B. Mamba: dt B.

The generalized bilinear map: e^z becomes (1 + (1 − α)z) / (1 − αz).

    Ā_n = (1 + (1 − α) z_n) / (1 − α z_n),   B̄_nm = dt_n B_nm / (1 − α z_n),   z_n = dt_n w_n

[zhang2009gbt]; α = 0 is Euler's rule, ½ the trapezoidal one, 1 backward Euler.
"""

from functools import partial

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.discretize.blocks import for_every
from refssm.discretize.phi import moment, phi1, phi2, phi2_derivative
from refssm.domains import input_matrices, modes, steps, weights

# what all rules have; first-order hold has a B̄ for each end of a step
_rule = partial(
    Operator,
    signature="(n),(n,m),(n)->(n),(n,m)",
    inputs={"w": modes, "B": input_matrices, "dt": steps},
    outputs=("A_bar", "B_bar"),
    batch="d, d, d",
    traits=frozenset({"linear:B->B_bar"}),
    lacks=frozenset({"jit"}),  # one pass over n numbers: a mirror would gain nothing
)


def discretize_diagonal_zoh(w, B, dt):
    """Ā_n = e^{dt_n w_n},  B̄_nm = dt_n φ₁(dt_n w_n) B_nm,  φ₁(z) = (e^z − 1)/z,  φ₁(0) = 1.

    Signature ``(n),(n,m),(n)->(n),(n,m)``: `discretize_zoh` of A = diag w, with one step size `dt`
    per state; leading axes broadcast. Types are those of `discretize_zoh`; every entry is accurate
    by itself: φ₁ uses expm1, since e^z − 1 cancels for small dt·w.

    Raises ValueError if sizes disagree, TypeError for other types. NaN in `w_n` or `dt_n` reaches
    Ā_n and row n of B̄. Source: [smith2023s5, §3.2].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_diagonal_zoh([0.0, -1e-9], [[1.0], [1.0]], [0.5, 0.5])
    >>> B_bar.tolist()
    [[0.5], [0.499999999875]]
    """
    z = dt * w
    return for_every(np.exp(z), (dt * phi1(z))[..., None] * B, rank=1)


def discretize_diagonal_zoh_vjp(dA_bar, dB_bar, w, B, dt):
    """∂Ā/∂w = dt Ā,  ∂Ā/∂dt = w Ā,  ∂B̄/∂w = dt² φ₁'(dt w) B,  ∂B̄/∂dt = Ā B,  ∂B̄/∂B = dt φ₁.

    Returns `(dw, dB, ddt)`, shaped like `w`, `B` and `dt`.
    """
    z = dt * w
    A_bar, through_B = np.exp(z), (B.conj() * dB_bar).sum(-1)
    dw = (dt * A_bar).conj() * dA_bar + (dt * dt * moment(1, z)).conj() * through_B
    dB = (dt * phi1(z)).conj()[..., None] * dB_bar
    ddt = (w * A_bar).conj() * dA_bar + A_bar.conj() * through_B
    return unbroadcast(dw, w), unbroadcast(dB, B), unbroadcast(ddt, dt)


DISCRETIZE_DIAGONAL_ZOH = _rule(
    reference=discretize_diagonal_zoh,
    citation="smith2023s5, §3.2",
    tags=("S5 discretize_zoh", "zero-order hold diagonal"),
)
discretize_diagonal_zoh = DISCRETIZE_DIAGONAL_ZOH.checked(discretize_diagonal_zoh)
discretize_diagonal_zoh_vjp = DISCRETIZE_DIAGONAL_ZOH.checked_vjp(discretize_diagonal_zoh_vjp)


def discretize_diagonal_foh(w, B, dt):
    """Ā_n = e^{z_n},  B̄₀ = dt_n φ₂(z_n) B_nm,  B̄₁ = dt_n φ₁'(z_n) B_nm,  z_n = dt_n w_n.

    Signature ``(n),(n,m),(n)->(n),(n,m),(n,m)``: `discretize_foh` of A = diag w with one step size
    `dt` per state: x_k = Ā x_{k−1} + B̄₀ u_k + B̄₁ u_{k−1}. φ₂(z) = (φ₁(z) − 1)/z, and φ₁ − φ₂ =
    φ₁'; that difference would cancel for large |z|. Types, errors, NaN and accuracy are those of
    `discretize_diagonal_zoh`. Source: [franklin1998digital].

    >>> import refssm
    >>> _, B0_bar, B1_bar = refssm.discretize_diagonal_foh([0.0, -1e4], [[1.0], [1.0]], [1.0, 1.0])
    >>> B0_bar.tolist(), B1_bar.tolist()
    ([[0.5], [9.999e-05]], [[0.5], [1e-08]])
    """
    z = dt * w
    shares = (dt * phi2(z))[..., None], (dt * moment(1, z))[..., None]
    return for_every(np.exp(z), *(share * B for share in shares), rank=1)


def discretize_diagonal_foh_vjp(dA_bar, dB0_bar, dB1_bar, w, B, dt):
    """∂B̄₀/∂dt = φ₁' B,  ∂B̄₀/∂w = dt² φ₂' B,  ∂B̄₁/∂dt = (e^z − φ₁') B,  ∂B̄₁/∂w = dt² φ₁'' B.

    Returns `(dw, dB, ddt)`, shaped like `w`, `B` and `dt`.
    """
    z = dt * w
    A_bar, slope = np.exp(z), moment(1, z)
    through_0, through_1 = (B.conj() * dB0_bar).sum(-1), (B.conj() * dB1_bar).sum(-1)
    bent = phi2_derivative(z).conj() * through_0 + moment(2, z).conj() * through_1
    dw = (dt * A_bar).conj() * dA_bar + dt * dt * bent
    dB = (dt * phi2(z)).conj()[..., None] * dB0_bar + (dt * slope).conj()[..., None] * dB1_bar
    ddt = (w * A_bar).conj() * dA_bar + slope.conj() * through_0
    ddt = ddt + (A_bar - slope).conj() * through_1
    return unbroadcast(dw, w), unbroadcast(dB, B), unbroadcast(ddt, dt)


DISCRETIZE_DIAGONAL_FOH = _rule(
    reference=discretize_diagonal_foh,
    signature="(n),(n,m),(n)->(n),(n,m),(n,m)",
    outputs=("A_bar", "B0_bar", "B1_bar"),
    traits=frozenset({"linear:B->B0_bar", "linear:B->B1_bar"}),
    citation="franklin1998digital",
    tags=("first-order hold diagonal",),
)
discretize_diagonal_foh = DISCRETIZE_DIAGONAL_FOH.checked(discretize_diagonal_foh)
discretize_diagonal_foh_vjp = DISCRETIZE_DIAGONAL_FOH.checked_vjp(discretize_diagonal_foh_vjp)


def discretize_diagonal_impulse(w, B, dt):
    """Ā_n = e^{dt_n w_n},  B̄ = B: the input is a series of impulses u_k δ(t − k dt).

    Signature ``(n),(n,m),(n)->(n),(n,m)``: `discretize_impulse` of A = diag w with one step size
    `dt` per state. The kernel C Ā^k B is the continuous impulse response at the times k dt. Types,
    errors and NaN are those of `discretize_diagonal_zoh`, but B̄ has the values of `B` and is real
    or complex like it. Source: [franklin1998digital].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_diagonal_impulse([-1.0], [[3.0]], [0.5])
    >>> A_bar.round(4).tolist(), B_bar.tolist()
    ([0.6065], [[3.0]])
    """
    return for_every(np.exp(dt * w), np.copy(B), rank=1)


def discretize_diagonal_impulse_vjp(dA_bar, dB_bar, w, B, dt):
    """∂Ā/∂w = dt Ā,  ∂Ā/∂dt = w Ā,  ∂B̄/∂B = 1.

    Returns `(dw, dB, ddt)`, shaped like `w`, `B` and `dt`.
    """
    dz = np.exp(dt * w).conj() * dA_bar
    dB = dB_bar.astype(np.result_type(dB_bar, w, B))  # summed in their precision
    return unbroadcast(dt * dz, w), unbroadcast(dB, B), unbroadcast(w.conj() * dz, dt)


DISCRETIZE_DIAGONAL_IMPULSE = _rule(
    reference=discretize_diagonal_impulse,
    citation="franklin1998digital",
    tags=("S5 dirac", "impulse invariant diagonal"),
)
discretize_diagonal_impulse = DISCRETIZE_DIAGONAL_IMPULSE.checked(discretize_diagonal_impulse)
discretize_diagonal_impulse_vjp = DISCRETIZE_DIAGONAL_IMPULSE.checked_vjp(
    discretize_diagonal_impulse_vjp
)


def discretize_diagonal_mamba(w, B, dt):
    """Ā_n = e^{dt_n w_n},  B̄_nm = dt_n B_nm: the exponential with the B̄ of Euler's rule.

    Signature ``(n),(n,m),(n)->(n),(n,m)``: `discretize_mamba` of A = diag w with one step size `dt`
    per state. B̄ is that of `discretize_diagonal_zoh` divided by φ₁(dt·w), which is 0.95, 0.63,
    0.20 at dt·w = −0.1, −1, −5. Types, errors and NaN are those of `discretize_diagonal_zoh`, but
    B̄ is real or complex like `B`. Source: [gu2023mamba, §3.2].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_diagonal_mamba([-1.0], [[3.0]], [0.5])
    >>> A_bar.round(4).tolist(), B_bar.tolist()
    ([0.6065], [[1.5]])
    """
    return for_every(np.exp(dt * w), dt[..., None] * B, rank=1)


def discretize_diagonal_mamba_vjp(dA_bar, dB_bar, w, B, dt):
    """∂Ā/∂w = dt Ā,  ∂Ā/∂dt = w Ā,  ∂B̄/∂B = dt,  ∂B̄/∂dt = B.

    Returns `(dw, dB, ddt)`, shaped like `w`, `B` and `dt`.
    """
    dz = np.exp(dt * w).conj() * dA_bar
    ddt = w.conj() * dz + (B.conj() * dB_bar).sum(-1)
    return unbroadcast(dt * dz, w), unbroadcast(dt[..., None] * dB_bar, B), unbroadcast(ddt, dt)


DISCRETIZE_DIAGONAL_MAMBA = _rule(
    reference=discretize_diagonal_mamba,
    citation="gu2023mamba, §3.2",
    tags=("Mamba discretization deltaA deltaB",),
)
discretize_diagonal_mamba = DISCRETIZE_DIAGONAL_MAMBA.checked(discretize_diagonal_mamba)
discretize_diagonal_mamba_vjp = DISCRETIZE_DIAGONAL_MAMBA.checked_vjp(discretize_diagonal_mamba_vjp)


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


DISCRETIZE_DIAGONAL_GBT = _rule(
    reference=discretize_diagonal_gbt,
    parameters={"alpha": weights},
    citation="zhang2009gbt",
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


DISCRETIZE_DIAGONAL_EULER = _rule(
    reference=discretize_diagonal_euler,
    citation="gu2020hippo, App. B.3",
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


DISCRETIZE_DIAGONAL_BILINEAR = _rule(
    reference=discretize_diagonal_bilinear,
    citation="smith2023s5, §3.2",
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


DISCRETIZE_DIAGONAL_BACKWARD = _rule(
    reference=discretize_diagonal_backward,
    citation="gu2020hippo, App. B.3",
    tags=("backward Euler diagonal",),
)
discretize_diagonal_backward = DISCRETIZE_DIAGONAL_BACKWARD.checked(discretize_diagonal_backward)
discretize_diagonal_backward_vjp = DISCRETIZE_DIAGONAL_BACKWARD.checked_vjp(
    discretize_diagonal_backward_vjp
)
