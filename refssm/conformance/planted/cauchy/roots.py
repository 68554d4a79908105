"""Planted bugs in resolvents at roots of unity and in their VJPs."""

import numpy as np

from refssm._numerics.roots import roots_of_unity
from refssm.cauchy import RESOLVENT_AT_ROOTS
from refssm.conformance.planted.cauchy.sums import but_last, differences
from refssm.conformance.planted.planting import Planting, of_each_result, of_result

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
BUGS = AT_ROOTS.bugs
