"""Planted bugs in DPLR kernels of conjugate pairs: those of any, and those of halves."""

import numpy as np

from refssm._numerics.roots import roots_of_unity
from refssm.conformance.planted.dplr.every_kernel import of_both_halves, planted, remembered
from refssm.conformance.planted.dplr.kernels import FORMS
from refssm.conformance.planted.planting import Planting, instead, of_result
from refssm.dplr import (
    DPLR_KERNEL,
    DPLR_KERNEL_ALIASED,
    DPLR_KERNEL_ALIASED_REAL,
    DPLR_KERNEL_REAL,
)
from refssm.dplr.pairs import both_halves

WHOLE, ALIASED = (
    planted(DPLR_KERNEL_REAL, True, True),
    planted(DPLR_KERNEL_ALIASED_REAL, False, True),
)
whole, aliased = DPLR_KERNEL_REAL.reference, DPLR_KERNEL_ALIASED_REAL.reference


def _of_half(op):
    """Twice the real part of the stored half's own kernel."""
    return lambda right, *arrays, l: 2 * op.reference(*arrays, l=l).real


def _same_partner(op, i):
    """The kernel of a system in which one argument, the one at i, has itself for its partner."""

    def program(right, *arrays, l):
        *halves, dt = arrays
        both = [*both_halves(*halves)]
        both[i] = np.concatenate([halves[i], halves[i]], axis=_AXES[i])
        return op.reference(*both, dt, l=l).real.copy()

    return program


def _coupled_by_half(remembers):
    """The spectrum with the capacitance I + (1 + z) Qᴴ D⁻¹ P of the stored half alone."""

    def program(right, w, P, Q, B, C, dt, *, l):
        if l == 0:
            return right(w, P, Q, B, C, dt, l=l)
        precision = np.finfo(np.result_type(w, P, Q, B, C, dt)).dtype
        n, both = w.shape[-1], both_halves(w, P, Q, B, C)
        C = remembered(*both, dt, l) if remembers else both[-1]
        w, P, Q, B, _ = both
        z = roots_of_unity(l, precision.type)[:, None]
        R = 1 / (2 * (1 - z) / dt[..., None, None] - (1 + z) * w[..., None, :])
        CR, RB = C[..., None, :] * R, R * B[..., None, :]
        first = np.einsum(
            "...nr,...ln,...nq->...lrq", Q[..., :n, :].conj(), R[..., :n], P[..., :n, :]
        )
        inside = np.eye(P.shape[-1], dtype=precision) + (1 + z)[..., None] * first
        met = np.linalg.solve(inside, (RB @ Q.conj())[..., None])[..., 0]
        K = (CR * B[..., None, :]).sum(-1) - (1 + z[:, 0]) * ((CR @ P) * met).sum(-1)
        return np.fft.ifft(2 * K).real.astype(precision)

    return program


_ARGUMENTS = ("w", "P", "Q", "B", "C")
_AXES = (-1, -2, -2, -1, -1)  # of their modes
for _p, _op, _m in ((WHOLE, DPLR_KERNEL, True), (ALIASED, DPLR_KERNEL_ALIASED, False)):
    _p.plant(
        ("of_half", "2 Re of the half's own kernel", _of_half(_op)),
        ("coupled_once", "Re(Qᴴ x) for 2 Re(Qᴴ x)", {"Q": lambda Q: Q / 2}),
        ("coupled_twice", "2 Re(Qᴴ x) twice", {"Q": lambda Q: 2 * Q}),
        ("coupled_by_half", "the capacitance of the half alone", _coupled_by_half(_m)),
        ("doubled", "the factor 2 once more", of_result(lambda K: 2 * K)),
        ("real_modes_halved", "the factor 2 for complex modes only",
         lambda right, w, P, Q, B, C, dt, *, l:
         right(w, P, Q, B, np.where(np.imag(w) == 0, C / 2, C), dt, l=l)),
    )  # fmt: skip
    _p.plant(
        *((f"partner_of_{x.lower()}", f"({x}, {x}) for ({x}, {x}*)", _same_partner(_op, i))
          for i, x in enumerate(_ARGUMENTS)),
        ("imaginary_part", "Im in place of Re", lambda right, w, P, Q, B, C, dt, *, l:
         right(w, P, Q, B, -1j * C, dt, l=l)),
        ("complex_result", "a complex result", of_result(lambda K: K + 0j)),
        by="value[complex64]",
    )  # fmt: skip
    _p.plant(
        ("half_alone", "gradients of the stored half without its partner's",
         of_result(lambda *gradients: (*(g / 2 for g in gradients[:-1]), gradients[-1]))),
        ("dp_halved", "dP of the stored half alone", {"P": lambda g: g / 2}),
        ("ddt_halved", "ddt by ½", {"dt": lambda g: g / 2}),
        by="gradient",
    )  # fmt: skip
    _p.plant(
        ("partner_as_it_is", "the partner's gradient not conjugated",
         of_result(lambda *gradients: tuple(g.real.astype(g.dtype) for g in gradients))),
        by="gradient[complex64]",
    )  # fmt: skip


_FORMS = Planting(DPLR_KERNEL_REAL, "float32", adapt=of_both_halves)
_FORMS.plant(*FORMS)
WHOLE.plant(
    ("aliased", "C for C̃ = C (I − Ā^l)", instead(aliased)),
    ("remembered_twice", "C̃ made of C̃: the second call of a stateful module",
     lambda right, w, P, Q, B, C, dt, *, l:
     right(w, P, Q, B, _stored(w, P, Q, B, C, dt, l), dt, l=l)),
    ("power_of_half", "Ā^l of the half's own Ā", lambda right, w, P, Q, B, C, dt, *, l:
     aliased(w, P, Q, B, remembered(w, P, Q, B, C, dt, l), dt, l=l)),
    ("first_step_lost", "C Ā^(k+1) B̄", lambda right, *x, l: right(*x, l=l + 1)[..., 1:]),
)  # fmt: skip


def _stored(w, P, Q, B, C, dt, l):
    """The stored half of C₂ (I − Ā₂^l)."""
    return remembered(*both_halves(w, P, Q, B, C), dt, l)[..., : w.shape[-1]]


@WHOLE.bug("power_constant", "C̃ taken for C (I − Ā^l) with a constant Ā^l", by="gradient")
def _(right, dk, w, P, Q, B, C, dt, *, l):
    vjp, C_tilde = DPLR_KERNEL_ALIASED_REAL.bare_vjp, _stored(w, P, Q, B, C, dt, l)
    dw, dP, dQ, dB, _, ddt = vjp(dk, w, P, Q, B, C_tilde, dt, l=l)
    return dw, dP, dQ, dB, right(dk, w, P, Q, B, C, dt, l=l)[4], ddt


ALIASED.plant(
    ("remembered", "C (I − Ā^l) for C", instead(whole)),
    ("next_period_only", "K_k + K_{k+l}, later periods left out",
     lambda right, *x, l: whole(*x, l=2 * l)[..., :l] + whole(*x, l=2 * l)[..., l:]),
)  # fmt: skip

BUGS = [*WHOLE.bugs, *_FORMS.bugs, *ALIASED.bugs]
