"""Planted bugs in DPLR kernels and their VJPs, with and without the factor I − Ā^l."""

import numpy as np

from refssm.conformance.planted.dplr.every_kernel import planted, remembered
from refssm.conformance.planted.planting import instead
from refssm.dplr import DPLR_KERNEL, DPLR_KERNEL_ALIASED
from refssm.dplr.system import matrix

WHOLE, ALIASED = planted(DPLR_KERNEL, True), planted(DPLR_KERNEL_ALIASED, False)
whole, aliased = DPLR_KERNEL.reference, DPLR_KERNEL_ALIASED.reference  # each in the other's bugs


def _with_memory(remembered):
    """The kernel from a wrong `remembered` instead of C (I − Ā^l)."""
    return lambda right, w, P, Q, B, C, dt, *, l: aliased(
        w, P, Q, B, remembered(w, P, Q, B, C, dt, l), dt, l=l
    )


def _euler(right, w, P, Q, B, C, dt, *, l):
    A, x, K = dt[..., None, None] * matrix(w, P, Q), dt[..., None] * B, []
    for _ in range(l):
        K.append((C * x).sum(-1))
        x = x + (A @ x[..., None])[..., 0]
    return np.stack(K, axis=-1).astype(np.result_type(w, P, Q, B, C, dt))


# none asks the right kernel
FORMS = (
    ("power_one_less", "C (I − Ā^(l−1))", _with_memory(lambda w, P, Q, B, C, dt, l:
     remembered(w, P, Q, B, C, dt, l - 1) if l > 1 else C)),
    ("power_of_diagonal", "Ā^l of the diagonal part alone",
     _with_memory(lambda w, P, Q, B, C, dt, l: remembered(w, 0 * P, Q, B, C, dt, l))),
    ("power_of_exponential", "I − e^(l dt A) by diagonal modes",
     _with_memory(lambda w, P, Q, B, C, dt, l: -C * np.expm1(l * dt[..., None] * w))),
    ("dense_in_time", "(I + dt A)^k dt B: Euler's rule", _euler),
)  # fmt: skip
WHOLE.plant(
    ("aliased", "C for C̃ = C (I − Ā^l)", instead(aliased)),
    ("remembered_twice", "C̃ made of C̃: the second call of a stateful module",
     lambda right, w, P, Q, B, C, dt, *, l:
     right(w, P, Q, B, remembered(w, P, Q, B, C, dt, l), dt, l=l)),
    ("first_step_lost", "C Ā^(k+1) B̄", lambda right, *x, l: right(*x, l=l + 1)[..., 1:]),
    *FORMS,
)  # fmt: skip


@WHOLE.bug("power_constant", "C̃ taken for C (I − Ā^l) with a constant Ā^l", by="gradient")
def _(right, dk, w, P, Q, B, C, dt, *, l):
    C_tilde = remembered(w, P, Q, B, C, dt, l)
    dw, dP, dQ, dB, _, ddt = DPLR_KERNEL_ALIASED.bare_vjp(dk, w, P, Q, B, C_tilde, dt, l=l)
    return dw, dP, dQ, dB, right(dk, w, P, Q, B, C, dt, l=l)[4], ddt


ALIASED.plant(
    ("remembered", "C (I − Ā^l) for C", instead(whole)),
    ("next_period_only", "K_k + K_{k+l}, later periods left out",
     lambda right, *x, l: whole(*x, l=2 * l)[..., :l] + whole(*x, l=2 * l)[..., l:]),
)  # fmt: skip

BUGS = [*WHOLE.bugs, *ALIASED.bugs]
