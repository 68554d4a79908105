"""Planted bugs in DPLR kernels and their gradients, with and without the factor I − Ā^l."""

import numpy as np

from refssm._powers import through_powers
from refssm._roots import roots_of_unity
from refssm.conformance.planted.planting_old import Planting
from refssm.dplr import DPLR_KERNEL, DPLR_KERNEL_ALIASED
from refssm.dplr.system import bilinear, corrected, matrix

NONE = np.array([], int)
COMPLEX = "complex64"


def _type(*arguments):
    return np.result_type(*arguments)


def _kept(K, dtype):
    return (K if dtype.kind == "c" else K.real).astype(dtype)


def _remembered(w, P, Q, B, C, dt, l):
    """C (I − Ā^l)."""
    return through_powers(*bilinear(w, P, Q, B, dt), C, NONE, l)[0]


def _at(z, w, P, Q, B, C, dt):
    """2 C (D + (1 + z) P Qᴴ)⁻¹ B at nodes z."""
    D = (2 * (1 - z) / dt[..., None])[..., None] - (1 + z)[:, None] * w[..., None, :]
    return 2 * (C[..., None, :] * corrected(D, 1 + z, P, Q, B[..., None, :])).sum(-1)


def _roots(l, *arguments):
    return roots_of_unity(l, np.finfo(_type(*arguments)).dtype.type)


def _powers_of_a_root(l, *arguments):
    """e^(−2πi/l) rounded, then raised to powers: as S4's code has it."""
    root = _roots(l, *arguments)[1 % max(l, 1)]
    return (root ** np.arange(l)).astype(root.dtype)


def _published(z, w, P, Q, B, C, dt):
    """2/(1 + z) C (2/dt (1 − z)/(1 + z) − A)⁻¹ B, in the precision of the arguments."""
    g = 2 / dt[..., None] * ((1 - z) / (1 + z))
    one = np.ones_like(z)
    solved = corrected(g[..., None] - w[..., None, :], one, P, Q, B[..., None, :])
    return 2 / (1 + z) * (C[..., None, :] * solved).sum(-1)


def _other_nodes(nodes, form, remembered):
    """The kernel by a spectrum at other nodes, or in another form."""

    def kernel(w, P, Q, B, C, dt, *, l):
        arguments = w, P, Q, B, C, dt
        if remembered:
            C = _remembered(w, P, Q, B, C, dt, l)
        spectrum = form(nodes(l, *arguments), w, P, Q, B, C, dt)
        return _kept(np.fft.ifft(spectrum), _type(*arguments))

    return kernel


def _half(z, form, l):
    """The first half of the spectrum, from which irfft makes a real kernel."""
    return form[..., : l // 2 + 1]


def _plant_nodes(p: Planting, remembered: bool) -> None:
    """What goes wrong around the circle."""
    both = p.forward

    def by(name, what, nodes, form=_at, dtype=""):
        both(name, what, dtype=dtype)(_other_nodes(nodes, form, remembered))

    by("rounded_root", "nodes as powers of one rounded root", _powers_of_a_root, dtype=COMPLEX)
    by("published_form", "the published form, 0/0 at z = −1", _roots, _published)
    by(
        "published_by_luck", "the published form at powers of a rounded root",
        _powers_of_a_root, _published,
    )  # fmt: skip
    by("time_reversed", "e^(+2πij/l) for nodes", lambda l, *x: _roots(l, *x).conj())
    by("nodes_of_one_more", "nodes of l + 1", lambda l, *x: _roots(l + 1, *x)[:l])
    by("nodes_in_bfloat16", "nodes of eight bits", lambda l, *x: _eight_bits(_roots(l, *x)))

    @both("nyquist_dropped", "K̂(−1) set to zero")
    def _(w, P, Q, B, C, dt, *, l):
        K = p.right(w, P, Q, B, C, dt, l=l)
        if l % 2:
            return K
        spectrum = np.fft.fft(K)
        spectrum[..., l // 2] = 0
        return _kept(np.fft.ifft(spectrum), K.dtype)

    @both("irfft_truncated", "irfft of the first half: one shorter at odd l, repeated here")
    def _(w, P, Q, B, C, dt, *, l):
        K = p.right(w, P, Q, B, C, dt, l=l)
        if l < 3 or l % 2 == 0:
            return K
        short = np.fft.irfft(np.fft.rfft(K.real)).astype(K.real.dtype)
        return np.concatenate([short, short[..., -1:]], axis=-1).astype(K.dtype)

    both("hermitian_taken", "irfft for complex systems too", dtype=COMPLEX)(
        lambda *x, l: np.fft.irfft(np.fft.fft(p.right(*x, l=l))[..., : l // 2 + 1], l).astype(
            _type(*x)
        )
    )
    both("unnormalised", "1/l forgotten")(lambda *x, l: l * p.right(*x, l=l))
    both("normalised_twice", "1/l twice")(lambda *x, l: p.right(*x, l=l) / max(1, l))
    both("reversed", "time backwards")(lambda *x, l: np.flip(p.right(*x, l=l), -1).copy())


def _eight_bits(z):
    scale = z.real.dtype.type(256)
    return (np.round(z * scale) / scale).astype(z.dtype)


def _plant_system(p: Planting) -> None:
    """Right spectra of wrong systems."""
    right, both = p.right, p.forward
    both("q_not_conjugated", "P Qᵀ for P Qᴴ", dtype=COMPLEX)(
        lambda w, P, Q, B, C, dt, *, l: right(w, P, Q.conj(), B, C, dt, l=l)
    )
    both("p_for_q", "P Pᴴ")(lambda w, P, Q, B, C, dt, *, l: right(w, P, P, B, C, dt, l=l))
    both("factors_exchanged", "Q Pᴴ", dtype=COMPLEX)(
        lambda w, P, Q, B, C, dt, *, l: right(w, Q, P, B, C, dt, l=l)
    )
    both("low_rank_added", "diag w + P Qᴴ")(
        lambda w, P, Q, B, C, dt, *, l: right(w, -P, Q, B, C, dt, l=l)
    )
    both("low_rank_forgotten", "diag w alone")(
        lambda w, P, Q, B, C, dt, *, l: right(w, 0 * P, Q, B, C, dt, l=l)
    )
    both("first_rank_only", "one column of several")(
        lambda w, P, Q, B, C, dt, *, l: right(w, P[..., :1], Q[..., :1], B, C, dt, l=l)
    )
    both("c_conjugated", "C* for C", dtype=COMPLEX)(
        lambda w, P, Q, B, C, dt, *, l: right(w, P, Q, B, C.conj(), dt, l=l)
    )
    both("b_conjugated", "B* for B", dtype=COMPLEX)(
        lambda w, P, Q, B, C, dt, *, l: right(w, P, Q, B.conj(), C, dt, l=l)
    )
    both("modes_conjugated", "w* for w", dtype=COMPLEX)(
        lambda w, P, Q, B, C, dt, *, l: right(w.conj(), P, Q, B, C, dt, l=l)
    )
    both("pairs_added", "2 Re, though nobody left out half", dtype=COMPLEX)(
        lambda *x, l: (2 * right(*x, l=l).real).astype(_type(*x))
    )
    both("halved", "the factor 2 of the bilinear map forgotten")(lambda *x, l: right(*x, l=l) / 2)
    both("step_halved", "1/dt for 2/dt")(
        lambda w, P, Q, B, C, dt, *, l: right(w, P, Q, B / 2, C, 2 * dt, l=l)
    )
    both("step_inverted", "1/dt for dt")(
        lambda w, P, Q, B, C, dt, *, l: right(w, P, Q, B, C, 1 / dt, l=l)
    )
    both("input_not_scaled", "B̄ without dt")(
        lambda w, P, Q, B, C, dt, *, l: right(w, P, Q, B / dt[..., None], C, dt, l=l)
    )
    both("last_mode", "the last mode of several left out")(
        lambda w, P, Q, B, C, dt, *, l: right(
            *(x[..., : max(1, w.shape[-1] - 1)] for x in (w,)),
            *(x[..., : max(1, w.shape[-1] - 1), :] for x in (P, Q)),
            *(x[..., : max(1, w.shape[-1] - 1)] for x in (B, C)), dt, l=l,
        )
    )  # fmt: skip

    @both("zero_order_hold", "e^(dt A) for the bilinear map")
    def _(w, P, Q, B, C, dt, *, l):
        h = np.expm1(dt[..., None] * w) / (np.exp(dt[..., None] * w) + 1)
        return right(2 * h / dt[..., None], P, Q, B, C, dt, l=l).astype(_type(w, P, Q, B, C, dt))

    @both("transposed_system", "C Ā^k for (Āᵀ)^k: B and C exchanged, P and Q not", dtype=COMPLEX)
    def _(w, P, Q, B, C, dt, *, l):
        return right(w, P, Q, C, B, dt, l=l)


def _plant_memory_of_c(p: Planting, aliased) -> None:
    right = p.right
    p.forward("aliased", "C for C̃ = C (I − Ā^l)")(lambda *x, l: aliased(*x, l=l))

    def remembered(w, P, Q, B, C, dt, *, l):
        return right(w, P, Q, B, _remembered(w, P, Q, B, C, dt, l), dt, l=l)

    p.forward("remembered_twice", "C̃ made of C̃: the second call of a stateful module")(remembered)

    @p.forward("power_one_less", "C (I − Ā^(l−1))")
    def _(w, P, Q, B, C, dt, *, l):
        C = _remembered(w, P, Q, B, C, dt, l - 1) if l > 1 else C
        return aliased(w, P, Q, B, C, dt, l=l)

    @p.forward("power_of_diagonal", "Ā^l of the diagonal part alone")
    def _(w, P, Q, B, C, dt, *, l):
        C = _remembered(w, 0 * P, Q, B, C, dt, l)
        return aliased(w, P, Q, B, C, dt, l=l)

    @p.forward("power_of_exponential", "I − e^(l dt A) by diagonal modes")
    def _(w, P, Q, B, C, dt, *, l):
        C = -C * np.expm1(l * dt[..., None] * w)
        return aliased(w, P, Q, B, C, dt, l=l).astype(_type(w, P, Q, B, C, dt))


def _plant_gradients(p: Planting) -> None:
    right = p.right_vjp
    p.gradient("as_jax", "the conjugate convention", COMPLEX)(
        lambda *x, l: tuple(g.conj() for g in right(*x, l=l))
    )
    p.gradient("doubled", "the factor 2 once more")(lambda dk, *x, l: right(2 * dk, *x, l=l))
    p.gradient("cotangent_reversed", "correlation for convolution")(
        lambda dk, *x, l: right(np.flip(dk, -1), *x, l=l)
    )
    p.gradient("last_step_dropped", "the last step left out")(
        lambda dk, *x, l: right(np.where(np.arange(l) == l - 1, 0, dk), *x, l=l)
    )
    changes = {
        "dw_sign": ("dw with the other sign", {"w": lambda g, _: -g}),
        "dp_sign": ("dP with the other sign", {"P": lambda g, _: -g}),
        "dq_forgotten": ("dQ = 0: Q taken for a constant", {"Q": lambda g, _: 0 * g}),
        "ddt_forgotten": ("ddt = 0", {"dt": lambda g, _: 0 * g}),
        "db_doubled": ("dB twice", {"B": lambda g, _: 2 * g}),
    }
    for name, (what, change) in changes.items():
        p.changed_gradient(name, what, **change)
    for name in ("C", "Q", "B"):
        p.changed_gradient(f"d{name.lower()}_conjugated", f"d{name}*", COMPLEX, **{
            name: lambda g, _: g.conj()
        })  # fmt: skip

    @p.gradient("dq_of_p", "dQ as dP: Q tied to P")
    def _(dk, w, P, Q, B, C, dt, *, l):
        dw, dP, dQ, dB, dC, ddt = right(dk, w, P, Q, B, C, dt, l=l)
        return dw, dP + dQ, dQ, dB, dC, ddt

    @p.gradient("dt_of_input", "ddt through B̄ alone")
    def _(dk, w, P, Q, B, C, dt, *, l):
        dw, dP, dQ, dB, dC, ddt = right(dk, w, P, Q, B, C, dt, l=l)
        partial = (B.conj() * dB).sum(-1).real / dt
        return dw, dP, dQ, dB, dC, partial.astype(ddt.dtype).reshape(ddt.shape)


WHOLE, ALIASED = Planting(DPLR_KERNEL, "float32"), Planting(DPLR_KERNEL_ALIASED, "float32")
for _p, _remembers in ((WHOLE, True), (ALIASED, False)):
    _p.usual()
    _plant_nodes(_p, _remembers)
    _plant_system(_p)
    _plant_gradients(_p)
_plant_memory_of_c(WHOLE, ALIASED.right)

ALIASED.forward("remembered", "C (I − Ā^l) for C")(WHOLE.right)


@ALIASED.forward("next_period_only", "K_k + K_{k+l}, later periods left out")
def _next_period_only(w, P, Q, B, C, dt, *, l):
    K = WHOLE.right(w, P, Q, B, C, dt, l=2 * l)
    return K[..., :l] + K[..., l:]


@WHOLE.gradient("power_constant", "C̃ taken for C (I − Ā^l) with a constant Ā^l")
def _power_constant(dk, w, P, Q, B, C, dt, *, l):
    C_tilde = _remembered(w, P, Q, B, C, dt, l)
    dw, dP, dQ, dB, _, ddt = ALIASED.right_vjp(dk, w, P, Q, B, C_tilde, dt, l=l)
    return dw, dP, dQ, dB, WHOLE.right_vjp(dk, w, P, Q, B, C, dt, l=l)[4], ddt


@WHOLE.forward("first_step_lost", "C Ā^(k+1) B̄")
def _first_step_lost(w, P, Q, B, C, dt, *, l):
    K = WHOLE.right(w, P, Q, B, C, dt, l=l + 1)
    return K[..., 1:]


@WHOLE.forward("dense_in_time", "(I + dt A)^k dt B: Euler's rule")
def _dense_in_time(w, P, Q, B, C, dt, *, l):
    A, x, K = dt[..., None, None] * matrix(w, P, Q), dt[..., None] * B, []
    for _ in range(l):
        K.append((C * x).sum(-1))
        x = x + (A @ x[..., None])[..., 0]
    return np.stack(K, axis=-1).astype(_type(w, P, Q, B, C, dt))


DEVIATIONS = [*WHOLE.bugs, *ALIASED.bugs]
