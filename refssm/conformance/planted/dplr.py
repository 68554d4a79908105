"""Planted bugs in DPLR kernels: of all modes, and of conjugate pairs."""

import numpy as np

from refssm._numerics.powers import through_powers
from refssm._numerics.roots import roots_of_unity
from refssm.conformance.planted.planting import (
    Planting,
    but_last,
    instead,
    of_each_result,
    of_result,
)
from refssm.dplr import DPLR_KERNEL, DPLR_KERNEL_ALIASED, DPLR_KERNEL_ALIASED_REAL, DPLR_KERNEL_REAL
from refssm.dplr.pairs import both_halves
from refssm.dplr.system import bilinear, corrected, matrix


def _kept(K, dtype):
    return (K if dtype.kind == "c" else K.real).astype(dtype)


def remembered(w, P, Q, B, C, dt, l):
    """C (I − Ā^l)."""
    return through_powers(*bilinear(w, P, Q, B, dt), C, np.array([], int), l)[0]


def _at(z, w, P, Q, B, C, dt):
    """2 C (D + (1 + z) P Qᴴ)⁻¹ B at nodes z."""
    D = (2 * (1 - z) / dt[..., None])[..., None] - (1 + z)[:, None] * w[..., None, :]
    return 2 * (C[..., None, :] * corrected(D, 1 + z, P, Q, B[..., None, :])).sum(-1)


def _published(z, w, P, Q, B, C, dt):
    """2/(1 + z) C (2/dt (1 − z)/(1 + z) − A)⁻¹ B, in the precision of the arguments."""
    g = 2 / dt[..., None] * ((1 - z) / (1 + z))
    one = np.ones_like(z)
    solved = corrected(g[..., None] - w[..., None, :], one, P, Q, B[..., None, :])
    return 2 / (1 + z) * (C[..., None, :] * solved).sum(-1)


def _powers_of_a_root(l, roots):
    """Powers of a rounded e^(−2πi/l), as in S4's code."""
    root = roots(l)[1 % max(l, 1)]
    return (root ** np.arange(l)).astype(root.dtype)


def _even_length_repeated(K):
    if K.shape[-1] < 3 or K.shape[-1] % 2 == 0:
        return K
    short = np.fft.irfft(np.fft.rfft(K.real)).astype(K.real.dtype)
    return np.concatenate([short, short[..., -1:]], axis=-1).astype(K.dtype)


def _without_nyquist(K):
    l = K.shape[-1]
    spectrum = np.where(2 * np.arange(l) == l, 0, np.fft.fft(K))
    return K if l % 2 else _kept(np.fft.ifft(spectrum), K.dtype)


def _by(remembers, nodes=lambda l, roots: roots(l), form=_at):
    """The kernel by a spectrum at other nodes or in another form, from C (I − Ā^l) or from C."""

    def kernel(right, w, P, Q, B, C, dt, *, l):
        dtype = np.result_type(w, P, Q, B, C, dt)
        z = nodes(l, lambda l: roots_of_unity(l, np.finfo(dtype).dtype.type))
        C = remembered(w, P, Q, B, C, dt, l) if remembers else C
        return _kept(np.fft.ifft(form(z, w, P, Q, B, C, dt)), dtype)

    return kernel


def _step_of_input(right, dk, w, P, Q, B, C, dt, *, l):
    *others, dB, dC, ddt = right(dk, w, P, Q, B, C, dt, l=l)
    partial = (B.conj() * dB).sum(-1).real / dt
    return *others, dB, dC, partial.astype(ddt.dtype).reshape(ddt.shape)


def of_both_halves(wrong):
    """A wrong program of a whole system, which does not ask the right one, as one of pairs."""

    def program(right, *arrays, l):
        *halves, dt = arrays
        return wrong(None, *both_halves(*halves), dt, l=l).real.copy()

    return program


def planted(op, remembers, pairs=False):
    """The bugs of any kernel, made of C (I − Ā^l) if it `remembers`, else of C.

    A kernel of conjugate `pairs` is real, and its Q is a real multiple of P in every column.
    """
    p = Planting(op, "float32")
    p.usual()
    spectra = Planting(op, "float32", adapt=of_both_halves if pairs else None)
    _around_the_circle(spectra, remembers)
    p.bugs += spectra.bugs
    _of_transforms(p)
    _of_systems(p)
    if not pairs:
        _of_complex_kernels(p)
    _of_gradients(p)
    return p


def _around_the_circle(p, remembers):
    """Wrong nodes, and the form that is 0/0 at one of them."""
    p.plant(
        ("published_form", "the published form, 0/0 at z = −1", _by(remembers, form=_published)),
        ("published_by_luck", "the published form at powers of a rounded root",
         _by(remembers, _powers_of_a_root, _published)),
        ("time_reversed", "e^(+2πij/l) for nodes",
         _by(remembers, lambda l, roots: roots(l).conj())),
        ("nodes_of_one_more", "nodes of l + 1", _by(remembers, lambda l, roots: roots(l + 1)[:l])),
        ("nodes_in_bfloat16", "nodes of eight bits",
         _by(remembers, lambda l, roots: np.round(256 * roots(l)) / 256)),
    )  # fmt: skip
    p.plant(
        ("rounded_root", "nodes as powers of one rounded root", _by(remembers, _powers_of_a_root)),
        by="value[complex64]",
    )


def _of_transforms(p):
    """Wrong transforms of the right spectrum."""
    p.plant(
        ("nyquist_dropped", "K̂(−1) set to zero", of_result(_without_nyquist)),
        ("irfft_truncated", "irfft of the first half: one shorter at odd l, repeated here",
         of_result(_even_length_repeated)),
        ("unnormalised", "1/l forgotten", of_result(lambda K: K.shape[-1] * K)),
        ("normalised_twice", "1/l twice", of_result(lambda K: K / max(1, K.shape[-1]))),
        ("reversed", "time backwards", of_result(lambda K: np.flip(K, -1).copy())),
    )  # fmt: skip


def _of_systems(p):
    """Right kernels of wrong systems."""
    p.plant(
        ("p_for_q", "P Pᴴ", lambda right, w, P, Q, *x, l: right(w, P, P, *x, l=l)),
        ("low_rank_added", "diag w + P Qᴴ", {"P": np.negative}),
        ("low_rank_forgotten", "diag w alone", {"P": lambda P: 0 * P}),
        ("first_rank_only", "one column of several", dict.fromkeys("PQ", lambda x: x[..., :1])),
        ("halved", "the factor 2 of the bilinear map forgotten", of_result(lambda K: K / 2)),
        ("step_halved", "1/dt for 2/dt", {"B": lambda B: B / 2, "dt": lambda dt: 2 * dt}),
        ("step_inverted", "1/dt for dt", {"dt": lambda dt: 1 / dt}),
        ("input_not_scaled", "B̄ without dt", lambda right, w, P, Q, B, C, dt, *, l:
         right(w, P, Q, B / dt[..., None], C, dt, l=l)),
        ("last_mode", "the last mode of several left out",
         dict.fromkeys("wBC", but_last) | dict.fromkeys("PQ", lambda x: but_last(x.mT).mT)),
        ("zero_order_hold", "e^(dt A) for the bilinear map", lambda right, w, P, Q, B, C, dt, *, l:
         right(2 / dt[..., None] * np.tanh(dt[..., None] * w / 2), P, Q, B, C, dt, l=l)),
    )  # fmt: skip
    p.plant(
        ("q_not_conjugated", "P Qᵀ for P Qᴴ", {"Q": np.conj}),
        ("c_conjugated", "C* for C", {"C": np.conj}),
        ("b_conjugated", "B* for B", {"B": np.conj}),
        ("modes_conjugated", "w* for w", {"w": np.conj}),
        ("transposed_system", "C Ā^k for (Āᵀ)^k: B and C exchanged, P and Q not",
         lambda right, w, P, Q, B, C, dt, *, l: right(w, P, Q, C, B, dt, l=l)),
        by="value[complex64]",
    )  # fmt: skip


def _of_complex_kernels(p):
    """What is right where modes come in pairs, or where Q is a multiple of P."""
    p.plant(
        ("hermitian_taken", "irfft for complex systems too", of_result(lambda K:
         np.fft.irfft(np.fft.fft(K)[..., : K.shape[-1] // 2 + 1], K.shape[-1]).astype(K.dtype))),
        ("factors_exchanged", "Q Pᴴ", lambda right, w, P, Q, *x, l: right(w, Q, P, *x, l=l)),
        ("pairs_added", "2 Re, though nobody left out half",
         of_result(lambda K: (2 * K.real).astype(K.dtype))),
        by="value[complex64]",
    )  # fmt: skip


def _of_gradients(p):
    """Wrong gradients, some of which are right where all is real."""
    p.plant(
        ("doubled", "the factor 2 once more", {"dk": lambda dk: 2 * dk}),
        ("cotangent_reversed", "correlation for convolution", {"dk": lambda dk: np.flip(dk, -1)}),
        ("last_step_dropped", "the last step left out",
         {"dk": lambda dk: np.where(np.arange(dk.shape[-1]) == dk.shape[-1] - 1, 0, dk)}),
        ("dw_sign", "dw with the other sign", {"w": np.negative}),
        ("dp_sign", "dP with the other sign", {"P": np.negative}),
        ("dq_forgotten", "dQ = 0: Q taken for a constant", {"Q": lambda g: 0 * g}),
        ("ddt_forgotten", "ddt = 0", {"dt": lambda g: 0 * g}),
        ("db_doubled", "dB twice", {"B": lambda g: 2 * g}),
        ("dq_of_p", "dQ as dP: Q tied to P",
         of_result(lambda dw, dP, dQ, *others: (dw, dP + dQ, dQ, *others))),
        ("dt_of_input", "ddt through B̄ alone", _step_of_input),
        by="gradient",
    )  # fmt: skip
    p.plant(
        ("as_jax", "the conjugate convention", of_each_result(np.conj)),
        *((f"d{x.lower()}_conjugated", f"d{x}*", {x: np.conj}) for x in "CQB"),
        by="gradient[complex64]",
    )


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

OF_KERNELS = [*WHOLE.bugs, *ALIASED.bugs]


WHOLE_OF_PAIRS, ALIASED_OF_PAIRS = (
    planted(DPLR_KERNEL_REAL, True, True),
    planted(DPLR_KERNEL_ALIASED_REAL, False, True),
)
whole_of_pairs, aliased_of_pairs = DPLR_KERNEL_REAL.reference, DPLR_KERNEL_ALIASED_REAL.reference


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
for _p, _op, _m in (
    (WHOLE_OF_PAIRS, DPLR_KERNEL, True),
    (ALIASED_OF_PAIRS, DPLR_KERNEL_ALIASED, False),
):
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
WHOLE_OF_PAIRS.plant(
    ("aliased", "C for C̃ = C (I − Ā^l)", instead(aliased_of_pairs)),
    ("remembered_twice", "C̃ made of C̃: the second call of a stateful module",
     lambda right, w, P, Q, B, C, dt, *, l:
     right(w, P, Q, B, _stored(w, P, Q, B, C, dt, l), dt, l=l)),
    ("power_of_half", "Ā^l of the half's own Ā", lambda right, w, P, Q, B, C, dt, *, l:
     aliased_of_pairs(w, P, Q, B, remembered(w, P, Q, B, C, dt, l), dt, l=l)),
    ("first_step_lost", "C Ā^(k+1) B̄", lambda right, *x, l: right(*x, l=l + 1)[..., 1:]),
)  # fmt: skip


def _stored(w, P, Q, B, C, dt, l):
    """The stored half of C₂ (I − Ā₂^l)."""
    return remembered(*both_halves(w, P, Q, B, C), dt, l)[..., : w.shape[-1]]


@WHOLE_OF_PAIRS.bug("power_constant", "C̃ taken for C (I − Ā^l) with a constant Ā^l", by="gradient")
def _(right, dk, w, P, Q, B, C, dt, *, l):
    vjp, C_tilde = DPLR_KERNEL_ALIASED_REAL.bare_vjp, _stored(w, P, Q, B, C, dt, l)
    dw, dP, dQ, dB, _, ddt = vjp(dk, w, P, Q, B, C_tilde, dt, l=l)
    return dw, dP, dQ, dB, right(dk, w, P, Q, B, C, dt, l=l)[4], ddt


ALIASED_OF_PAIRS.plant(
    ("remembered", "C (I − Ā^l) for C", instead(whole_of_pairs)),
    ("next_period_only", "K_k + K_{k+l}, later periods left out",
     lambda right, *x, l: whole_of_pairs(*x, l=2 * l)[..., :l]
     + whole_of_pairs(*x, l=2 * l)[..., l:]),
)  # fmt: skip

OF_PAIRS = [*WHOLE_OF_PAIRS.bugs, *_FORMS.bugs, *ALIASED_OF_PAIRS.bugs]


BUGS = [*OF_KERNELS, *OF_PAIRS]
