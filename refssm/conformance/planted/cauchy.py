"""Planted bugs in Cauchy kernels and in resolvents at roots of unity."""

import numpy as np

from refssm._numerics.pairs import folded, paired
from refssm._numerics.roots import roots_of_unity
from refssm.cauchy import CAUCHY_KERNEL, CAUCHY_KERNEL_PAIRS, RESOLVENT_AT_ROOTS
from refssm.conformance.planted.arithmetic import bfloat16, float16, single, tf32
from refssm.conformance.planted.planting import (
    MEMORY,
    Epsilon,
    Planting,
    but_last,
    every_third_call,
    in_memory_order,
    instead,
    of_each_result,
    of_result,
)

*_, _returning_argument = MEMORY["alias"]


def differences(w, z):
    """z_l − w_n."""
    return z[..., :, None] - w[..., None, :]


def _summed(inverse):
    """Σ v inverse(z − w)."""
    return lambda right, v, w, z: (v[..., None, :] * inverse(differences(w, z))).sum(-1)


def _nodes_not_summed(right, dk, v, w, z):
    dv, dw, dz = right(dk, v, w, z)
    return dv, dw, right(dk[:1], v[:1], w[:1], z)[2] if v.ndim > 1 else dz


def _wrong_values(p):
    """Mistakes in the arguments and the result of any sum."""
    p.plant(
        ("sign", "w − z for z − w", of_result(np.negative)),
        ("residues_conjugated", "v* for v", {"v": np.conj}),
        ("poles_conjugated", "w* for w", {"w": np.conj}),
        ("nodes_conjugated", "z* for z", {"z": np.conj}),
        ("poles_reflected", "z + w for z − w", {"w": np.negative}),
        ("doubled", "the factor 2 of conjugate pairs", of_result(lambda k: 2 * k)),
        ("real_part", "only the real part kept", of_result(lambda k: k.real.astype(k.dtype))),
        ("nodes_shifted", "z_{l-1} for z_l", {"z": lambda z: np.roll(z, 1, axis=-1)}),
        ("residues_shifted", "v_{n-1} for v_n", {"v": lambda v: np.roll(v, 1, axis=-1)}),
        ("last_pole", "the last pole of several left out", dict.fromkeys("vw", but_last)),
        ("pole_tail", "poles beyond a multiple of 32 left out",
         dict.fromkeys("vw", lambda x: x[..., : x.shape[-1] // 32 * 32 or x.shape[-1]])),
        ("second_block_of_poles", "only the last block of 64 poles kept",
         dict.fromkeys("vw", lambda x: x[..., (x.shape[-1] - 1) // 64 * 64 :])),
        ("numerator_forgotten", "Σ 1/(z − w)", {"v": np.ones_like}),
        ("first_of_batch", "the first channel's poles for all",
         {"w": lambda w: np.broadcast_to(w[:1], w.shape) if w.ndim > 1 else w}),
        ("small_flushed", "values below a thousand times the smallest normal flushed to zero",
         of_result(lambda k: np.where(np.abs(k) < 1e3 * np.finfo(k.dtype).tiny, 0, k))),
        ("small_residues_flushed", "residues below 1e-20 taken as zero",
         {"v": lambda v: np.where(np.abs(v) < 1e-20, 0, v)}),
        ("last_node", "the last node not written",
         of_result(lambda k: np.concatenate([k[..., :-1], 0 * k[..., -1:]], axis=-1))),
        ("node_block", "nodes from 128 on computed with the first block's", {"z": lambda z:
         np.concatenate([z[..., :128], z[..., : max(0, z.shape[-1] - 128)]], -1)}),
        ("real_part_clipped", "Re w clipped at −1e-4",
         {"w": lambda w: np.minimum(w.real, -1e-4) + 1j * w.imag}),
    )  # fmt: skip
    p.plant(
        ("single_inside", "complex64 arithmetic under a complex128 interface",
         lambda right, *x: right(*map(single, x)).astype(np.result_type(*x))),
        ("narrow_result", "complex64 returned for complex128", of_result(single)),
        by="value[complex128]",
    )  # fmt: skip


def _wrong_quotients(p):
    """Mistakes in 1/(z − w)."""
    p.plant(
        ("pole_clipped", "|z − w| kept above 1e-3", _summed(lambda d:
         1 / np.where(np.abs(d) < 1e-3, 1e-3 * np.exp(1j * np.angle(d)), d))),
        ("epsilon_added", "1e-5 added to the denominator",
         Epsilon(1e-5, lambda e: _summed(lambda d: 1 / (d + e)))),
        ("epsilon_in_square", "d*/(|d|² + 1e-7) for 1/d",
         Epsilon(1e-7, lambda e: _summed(lambda d: d.conj() / (d.real**2 + d.imag**2 + e)))),
        # quotients of few bits, summed in all of them
        *((bits.__name__, f"{bits.__name__} arithmetic", _summed(lambda d, to=bits: to(1 / to(d))))
          for bits in (float16, bfloat16, tf32)),
    )  # fmt: skip
    p.plant(
        ("pole_masked", "a pole met exactly counted as zero",
         _summed(lambda d: np.where(d == 0, 0, 1 / np.where(d == 0, 1, d)))),
        by="nan",
    )  # fmt: skip


def _wrong_conduct(p):
    """Mistakes with memory, with the batch and with what is kept."""
    for check, *row in (
        ("nan", "nan_swallowed", "NaN replaced by zero", {"v": np.nan_to_num}),
        ("strides", "strides_ignored", "memory read as if it were contiguous",
         {"v": in_memory_order}),
        ("repeat", "unrepeatable", "a result that depends on the call", every_third_call()),
        ("readonly", "writes_scratch", "an argument used as scratch memory and restored",
         {"w": lambda w: np.multiply(w, 1, out=w)}),
        ("unchanged", "overwrites_input", "z used as scratch memory",
         lambda right, v, w, z: (right(v, w, z), np.add(z, 1, out=z))[0]),
        ("alias", "returns_input", "the result is a view of v's memory where it fits",
         lambda right, v, w, z: _returning_argument(lambda v: right(v, w, z), v)),
    ):  # fmt: skip
        p.plant(row, by=check)
    p.kept()
    p.shortcuts()


def _wrong_gradients(p):
    """Mistakes in the gradients of any sum."""
    p.plant(
        ("as_jax", "the conjugate convention", of_each_result(np.conj)),
        ("pole_sign", "dw with the other sign", {"w": np.negative}),
        ("node_sign", "dz with the other sign", {"z": np.negative}),
        ("nodes_not_summed", "dz of the first channel only, though z is shared by all",
         _nodes_not_summed),
        ("real_gradients", "gradients reduced to their real parts",
         of_each_result(lambda g: g.real.astype(g.dtype))),
        ("last_node_dropped", "the last node left out of dv and dw", lambda right, dk, v, w, z:
         (*right(dk[..., :-1], v, w, z[..., :-1])[:2], right(dk, v, w, z)[2])),
        ("tf32", "TF32 arithmetic",
         lambda right, dk, v, w, z: of_each_result(tf32)(right, tf32(dk), v, w, z)),
        by="gradient",
    )  # fmt: skip


def _wrong_derivatives(p):
    """Mistakes in the derivatives of v/(z − w)."""
    p.plant(
        ("not_conjugated", "R for R* in dv", lambda right, dk, v, w, z:
         ((dk[..., :, None] / differences(w, z)).sum(-2), *right(dk, v, w, z)[1:])),
        ("square_forgotten", "v R for v R² in dw", lambda right, dk, v, w, z:
         of_result(lambda dv, dw, dz: (dv, v.conj() * dv + 0 * dw, dz))(right, dk, v, w, z)),
        ("residue_forgotten", "R² for v R² in dw", lambda right, dk, v, w, z:
         (right(dk, v, w, z)[0], right(dk, np.ones_like(v), w, z)[1], right(dk, v, w, z)[2])),
        by="gradient",
    )  # fmt: skip


def _of_both_halves(wrong):
    """A wrong sum over all poles, or a wrong gradient of it, as one of conjugate pairs."""

    def of_pairs(right, *args):
        *dk, v, w, z = args
        if not dk:
            return wrong(CAUCHY_KERNEL.reference, paired(v), paired(w), z)
        dv, dw, dz = wrong(CAUCHY_KERNEL.bare_vjp, *dk, paired(v), paired(w), z)
        return folded(dv), folded(dw), dz

    return of_pairs


def _parts_of_pair(v, w, z):
    """z Re v, Re v w, Re v w*, and (z − w)(z − w*)."""
    v, w, z = v[..., None, :], w[..., None, :], z[..., :, None]
    return z * v.real, (v * w).real, (v * w.conj()).real, (z - w) * (z - w.conj())


def _as_fraction(wrong):
    """A wrong sum of 2 (z Re v − Re v w*) / ((z − w)(z − w*))."""

    def of_pairs(right, v, w, z):
        return (2 * wrong(*_parts_of_pair(v, w, z))).sum(-1).astype(np.result_type(v, w, z))

    return of_pairs


def _half_alone(times):
    """dv and dw of the stored half, multiplied."""

    def gradients(right, dk, v, w, z):
        dv, dw, _ = CAUCHY_KERNEL.bare_vjp(times * dk, v, w, z)
        return dv, dw, right(dk, v, w, z)[2]

    return gradients


def _partner_as_it_is(right, dk, v, w, z):
    dv, dw, dz = CAUCHY_KERNEL.bare_vjp(dk, paired(v), paired(w), z)
    n = v.shape[-1]
    return dv[..., :n] + dv[..., n:], dw[..., :n] + dw[..., n:], dz


KERNEL, PAIRS = Planting(CAUCHY_KERNEL, "complex64"), Planting(CAUCHY_KERNEL_PAIRS, "complex64")
SUMS_OF_PAIRS = Planting(CAUCHY_KERNEL_PAIRS, "complex64", adapt=_of_both_halves)
for _p, _sums in ((KERNEL, KERNEL), (PAIRS, SUMS_OF_PAIRS)):
    _wrong_values(_p)
    _wrong_quotients(_sums)
    _wrong_conduct(_p)
    _wrong_gradients(_p)
    _wrong_derivatives(_sums)
half = CAUCHY_KERNEL.reference
KERNEL.plant(
    ("pairs_added", "conjugate poles added that nobody gave",
     lambda right, v, w, z: right(v, w, z) + right(v.conj(), w.conj(), z)),
)  # fmt: skip
PAIRS.plant(
    ("half_alone", "the stored half alone", instead(half)),
    ("real_part_of_half", "2 Re of the half's own sum, right at real nodes", lambda right, *x:
     (2 * half(*x).real).astype(np.result_type(*x))),
    ("half_doubled", "twice the half's own sum", lambda right, *x: 2 * half(*x)),
    ("partner_of_v", "(v, v) for (v, v*)", lambda right, v, w, z:
     half(v, w, z) + half(v, w.conj(), z)),
    ("partner_of_w", "(w, w) for (w, w*)", lambda right, v, w, z:
     half(v, w, z) + half(v.conj(), w, z)),
    ("partner_subtracted", "the half minus its partner", lambda right, v, w, z:
     half(v, w, z) - half(v.conj(), w.conj(), z)),
    ("real_poles_once", "a pole on the real axis counted once", lambda right, v, w, z:
     right(np.where(w.imag == 0, v / 2, v), w, z)),
    ("fraction_of_product", "Re v w for Re v w* in the numerator",
     _as_fraction(lambda zv, vw, vw_conj, pair: (zv - vw) / pair)),
    ("fraction_halved", "the factor 2 of the numerator forgotten",
     _as_fraction(lambda zv, vw, vw_conj, pair: (zv - vw_conj) / (2 * pair))),
)  # fmt: skip
PAIRS.plant(
    ("half_alone", "dv and dw of the stored half alone", _half_alone(1)),
    ("half_doubled", "dv and dw of the stored half, twice", _half_alone(2)),
    ("partner_as_it_is", "the partner's gradient not conjugated", _partner_as_it_is),
    ("nodes_of_half", "dz of the stored half", lambda right, dk, v, w, z:
     (*right(dk, v, w, z)[:2], CAUCHY_KERNEL.bare_vjp(dk, v, w, z)[2])),
    by="gradient",
)  # fmt: skip
OF_SUMS = [*KERNEL.bugs, *PAIRS.bugs, *SUMS_OF_PAIRS.bugs]


AT_ROOTS = Planting(RESOLVENT_AT_ROOTS, "complex64")


def _roots(v, a, l):
    return roots_of_unity(l, np.finfo(np.result_type(v, a)).dtype.type)


def _at(nodes):
    """Σ v/(1 − a ω) at other nodes."""

    def program(right, v, a, *, l):
        omega = nodes(l, lambda l: _roots(v, a, l))[:, None]
        return (v[..., None, :] / (1 - a[..., None, :] * omega)).sum(-1)

    return program


def _by_transform(powers):
    """The transform of Σ v_n powers_n."""

    def program(right, v, a, *, l):
        k = np.arange(l, dtype=a.real.dtype)
        wrapped = (v[..., None] * powers(a[..., None], k, l)).sum(-2)
        return np.fft.fft(wrapped).astype(np.result_type(v, a, np.complex64))

    return program


AT_ROOTS.usual()
AT_ROOTS.plant(
    ("rounded_root", "nodes as powers of one rounded root",  # products of 1, ω, ω, …
     _at(lambda l, roots: np.cumprod(roots(l)[np.minimum(np.arange(l), 1)]))),
    ("nodes_conjugated", "e^(+2πij/l)", _at(lambda l, roots: roots(l).conj())),
    ("nodes_of_one_more", "nodes of l + 1", _at(lambda l, roots: roots(l + 1)[:l])),
    ("half_circle", "e^(−πij/l)", _at(lambda l, roots: roots(2 * l)[:l])),
    ("nodes_shifted", "ω_{j+1} for ω_j", of_result(lambda k: np.roll(k, -1, -1))),
    ("centred", "frequencies from −l/2 on", of_result(lambda k: np.fft.fftshift(k, axes=-1))),
    ("sign", "1 + a ω", {"a": np.negative}),
    ("poles_conjugated", "a* for a", {"a": np.conj}),
    ("residues_conjugated", "v* for v", {"v": np.conj}),
    ("pole_form", "v/(ω − a)", lambda right, v, a, *, l:
     (v[..., None, :] / differences(a, _roots(v, a, l))).sum(-1)),
    ("doubled", "the factor 2 of pairs", of_result(lambda k: 2 * k)),
    ("real_part", "only the real part kept", of_result(lambda k: k.real.astype(k.dtype))),
    ("residues_forgotten", "Σ 1/(1 − a ω)", {"v": lambda v: 0 * v + 1}),
    ("last_mode", "the last mode of several left out", dict.fromkeys("va", but_last)),
    ("poles_clipped", "|a| at most 0.999",
     {"a": lambda a: a * np.minimum(1, 0.999 / np.maximum(np.abs(a), 0.999))}),
    ("wrap_forgotten", "the transform of Σ v a^k, cut at l", _by_transform(lambda a, k, l: a**k)),
    ("wrap_sign", "Σ v a^k/(1 + a^l)", _by_transform(lambda a, k, l: a**k / (1 + a**l))),
    ("wrap_of_one_less", "Σ v a^k/(1 − a^(l−1))",
     _by_transform(lambda a, k, l: a**k / (1 - a ** max(1, l - 1)))),
    ("inverse_transform", "ifft for fft",
     of_result(lambda k: np.fft.ifft(np.fft.ifft(k) * k.shape[-1]))),
    ("beyond_1024", "nothing written beyond 1024",
     of_result(lambda k: np.where(np.arange(k.shape[-1]) < 1024, k, 0))),
)  # fmt: skip
AT_ROOTS.plant(
    ("real_result", "a real result for real arguments", of_result(np.real)), by="value[float32]"
)


def _resolvent_once(right, dk, v, a, *, l):
    dv, da = right(dk, v, a, l=l)
    omega = _roots(v, a, l)[:, None]
    R = 1 / (1 - a[..., None, :] * omega)
    wrong = (dk[..., :, None] * (v[..., None, :] * omega * R).conj()).sum(-2)
    wrong = wrong if da.dtype.kind == "c" else wrong.real
    return dv, (wrong + 0 * da).astype(da.dtype)


AT_ROOTS.plant(
    ("as_jax", "the conjugate convention", of_each_result(np.conj)),
    ("resolvent_once", "R for R² in da", _resolvent_once),
    ("node_forgotten", "da without ω", lambda right, dk, v, a, *, l:
     (right(dk, v, a, l=l)[0], right(dk * _roots(v, a, l), v, a, l=l)[1])),
    ("residue_forgotten", "da without v", lambda right, dk, v, a, *, l:
     (right(dk, v, a, l=l)[0], right(dk, 0 * v + 1, a, l=l)[1])),
    ("cotangent_conjugated", "dk* for dk", {"dk": np.conj}),
    ("real_cotangent", "the real part of dk", {"dk": lambda dk: dk.real.astype(dk.dtype)}),
    ("doubled", "the factor 2 once more", {"dk": lambda dk: 2 * dk}),
    by="gradient",
)  # fmt: skip
OF_ROOTS = AT_ROOTS.bugs


BUGS = [*OF_SUMS, *OF_ROOTS]
