"""Planted bugs in DPLR kernels and their VJPs, with and without the factor I − Ā^l."""

import numpy as np

from refssm._powers import through_powers
from refssm._roots import roots_of_unity
from refssm.conformance.planted.planting import Planting, instead, of_each_result, of_result
from refssm.dplr import DPLR_KERNEL, DPLR_KERNEL_ALIASED
from refssm.dplr.system import bilinear, corrected, matrix

WHOLE, ALIASED = Planting(DPLR_KERNEL, "float32"), Planting(DPLR_KERNEL_ALIASED, "float32")
whole, aliased = DPLR_KERNEL.reference, DPLR_KERNEL_ALIASED.reference  # each in the other's bugs


def _kept(K, dtype):
    return (K if dtype.kind == "c" else K.real).astype(dtype)


def _remembered(w, P, Q, B, C, dt, l):
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
        C = _remembered(w, P, Q, B, C, dt, l) if remembers else C
        return _kept(np.fft.ifft(form(z, w, P, Q, B, C, dt)), dtype)

    return kernel


def _but_last(x):
    return x[..., : max(1, x.shape[-1] - 1)]


def _step_of_input(right, dk, w, P, Q, B, C, dt, *, l):
    *others, dB, dC, ddt = right(dk, w, P, Q, B, C, dt, l=l)
    partial = (B.conj() * dB).sum(-1).real / dt
    return *others, dB, dC, partial.astype(ddt.dtype).reshape(ddt.shape)


for _p, _m in ((WHOLE, True), (ALIASED, False)):
    _p.usual()
    _p.plant(  # around the circle
        ("published_form", "the published form, 0/0 at z = −1", _by(_m, form=_published)),
        ("published_by_luck", "the published form at powers of a rounded root",
         _by(_m, _powers_of_a_root, _published)),
        ("time_reversed", "e^(+2πij/l) for nodes", _by(_m, lambda l, roots: roots(l).conj())),
        ("nodes_of_one_more", "nodes of l + 1", _by(_m, lambda l, roots: roots(l + 1)[:l])),
        ("nodes_in_bfloat16", "nodes of eight bits",
         _by(_m, lambda l, roots: np.round(256 * roots(l)) / 256)),
        ("nyquist_dropped", "K̂(−1) set to zero", of_result(_without_nyquist)),
        ("irfft_truncated", "irfft of the first half: one shorter at odd l, repeated here",
         of_result(_even_length_repeated)),
        ("unnormalised", "1/l forgotten", of_result(lambda K: K.shape[-1] * K)),
        ("normalised_twice", "1/l twice", of_result(lambda K: K / max(1, K.shape[-1]))),
        ("reversed", "time backwards", of_result(lambda K: np.flip(K, -1).copy())),
    )  # fmt: skip
    _p.plant(  # right spectra of wrong systems
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
         dict.fromkeys("wBC", _but_last) | dict.fromkeys("PQ", lambda x: _but_last(x.mT).mT)),
        ("zero_order_hold", "e^(dt A) for the bilinear map", lambda right, w, P, Q, B, C, dt, *, l:
         right(2 / dt[..., None] * np.tanh(dt[..., None] * w / 2), P, Q, B, C, dt, l=l)),
    )  # fmt: skip
    _p.plant(
        ("rounded_root", "nodes as powers of one rounded root", _by(_m, _powers_of_a_root)),
        ("hermitian_taken", "irfft for complex systems too", of_result(lambda K:
         np.fft.irfft(np.fft.fft(K)[..., : K.shape[-1] // 2 + 1], K.shape[-1]).astype(K.dtype))),
        ("q_not_conjugated", "P Qᵀ for P Qᴴ", {"Q": np.conj}),
        ("factors_exchanged", "Q Pᴴ", lambda right, w, P, Q, *x, l: right(w, Q, P, *x, l=l)),
        ("c_conjugated", "C* for C", {"C": np.conj}),
        ("b_conjugated", "B* for B", {"B": np.conj}),
        ("modes_conjugated", "w* for w", {"w": np.conj}),
        ("pairs_added", "2 Re, though nobody left out half",
         of_result(lambda K: (2 * K.real).astype(K.dtype))),
        ("transposed_system", "C Ā^k for (Āᵀ)^k: B and C exchanged, P and Q not",
         lambda right, w, P, Q, B, C, dt, *, l: right(w, P, Q, C, B, dt, l=l)),
        by="value[complex64]",
    )  # fmt: skip
    _p.plant(
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
    _p.plant(
        ("as_jax", "the conjugate convention", of_each_result(np.conj)),
        *((f"d{x.lower()}_conjugated", f"d{x}*", {x: np.conj}) for x in "CQB"),
        by="gradient[complex64]",
    )


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


WHOLE.plant(
    ("aliased", "C for C̃ = C (I − Ā^l)", instead(aliased)),
    ("remembered_twice", "C̃ made of C̃: the second call of a stateful module",
     lambda right, w, P, Q, B, C, dt, *, l:
     right(w, P, Q, B, _remembered(w, P, Q, B, C, dt, l), dt, l=l)),
    ("power_one_less", "C (I − Ā^(l−1))", _with_memory(lambda w, P, Q, B, C, dt, l:
     _remembered(w, P, Q, B, C, dt, l - 1) if l > 1 else C)),
    ("power_of_diagonal", "Ā^l of the diagonal part alone",
     _with_memory(lambda w, P, Q, B, C, dt, l: _remembered(w, 0 * P, Q, B, C, dt, l))),
    ("power_of_exponential", "I − e^(l dt A) by diagonal modes",
     _with_memory(lambda w, P, Q, B, C, dt, l: -C * np.expm1(l * dt[..., None] * w))),
    ("first_step_lost", "C Ā^(k+1) B̄", lambda right, *x, l: right(*x, l=l + 1)[..., 1:]),
    ("dense_in_time", "(I + dt A)^k dt B: Euler's rule", _euler),
)  # fmt: skip


@WHOLE.bug("power_constant", "C̃ taken for C (I − Ā^l) with a constant Ā^l", by="gradient")
def _(right, dk, w, P, Q, B, C, dt, *, l):
    C_tilde = _remembered(w, P, Q, B, C, dt, l)
    dw, dP, dQ, dB, _, ddt = DPLR_KERNEL_ALIASED.bare_vjp(dk, w, P, Q, B, C_tilde, dt, l=l)
    return dw, dP, dQ, dB, right(dk, w, P, Q, B, C, dt, l=l)[4], ddt


ALIASED.plant(
    ("remembered", "C (I − Ā^l) for C", instead(whole)),
    ("next_period_only", "K_k + K_{k+l}, later periods left out",
     lambda right, *x, l: whole(*x, l=2 * l)[..., :l] + whole(*x, l=2 * l)[..., l:]),
)  # fmt: skip

BUGS = [*WHOLE.bugs, *ALIASED.bugs]
