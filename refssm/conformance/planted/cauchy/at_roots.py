"""Planted bugs in resolvents at roots of unity and their gradients."""

import numpy as np

from refssm._roots import roots_of_unity
from refssm.cauchy import RESOLVENT_AT_ROOTS
from refssm.conformance.planted.planting import Planting

PLANTING = Planting(RESOLVENT_AT_ROOTS, "complex64")
right, right_vjp = PLANTING.right, PLANTING.right_vjp
forward, gradient = PLANTING.forward, PLANTING.gradient
PLANTING.usual()


def _roots(v, a, l):
    return roots_of_unity(l, np.finfo(np.result_type(v, a)).dtype.type)


def _at(omega, v, a):
    return (v[..., None, :] / (1 - a[..., None, :] * omega[:, None])).sum(-1)


def _by_transform(powers, v, a, l):
    """The transform of Σ v_n powers_n."""
    k = np.arange(l, dtype=a.real.dtype)
    wrapped = (v[..., None] * powers(a[..., None], k, l)).sum(-2)
    return np.fft.fft(wrapped).astype(np.result_type(v, a, np.complex64))


@forward("rounded_root", "nodes as powers of one rounded root")
def _rounded_root(v, a, *, l):
    root = np.repeat(_roots(v, a, l)[1 % max(1, l)], l)
    root[:1] = 1
    return _at(np.cumprod(root), v, a)


forward("nodes_conjugated", "e^(+2πij/l)")(lambda v, a, *, l: _at(_roots(v, a, l).conj(), v, a))
forward("nodes_of_one_more", "nodes of l + 1")(
    lambda v, a, *, l: _at(_roots(v, a, l + 1)[:l], v, a)
)
forward("half_circle", "e^(−πij/l)")(lambda v, a, *, l: _at(_roots(v, a, 2 * l)[:l], v, a))
forward("nodes_shifted", "ω_{j+1} for ω_j")(lambda v, a, *, l: np.roll(right(v, a, l=l), -1, -1))
forward("centred", "frequencies from −l/2 on")(
    lambda v, a, *, l: np.fft.fftshift(right(v, a, l=l), axes=-1)
)
forward("sign", "1 + a ω")(lambda v, a, *, l: right(v, -a, l=l))
forward("poles_conjugated", "a* for a")(lambda v, a, *, l: right(v, a.conj(), l=l))
forward("residues_conjugated", "v* for v")(lambda v, a, *, l: right(v.conj(), a, l=l))
forward("pole_form", "v/(ω − a)")(
    lambda v, a, *, l: (v[..., None, :] / (_roots(v, a, l)[:, None] - a[..., None, :])).sum(-1)
)
forward("doubled", "the factor 2 of pairs")(lambda v, a, *, l: 2 * right(v, a, l=l))
forward("real_part", "only the real part kept")(
    lambda v, a, *, l: right(v, a, l=l).real.astype(np.result_type(v, a, np.complex64))
)
forward("real_result", "a real result for real arguments", dtype="float32")(
    lambda v, a, *, l: right(v, a, l=l).real
)
forward("residues_forgotten", "Σ 1/(1 − a ω)")(lambda v, a, *, l: right(0 * v + 1, a, l=l))
forward("last_mode", "the last mode of several left out")(
    lambda v, a, *, l: right(*(x[..., : max(1, x.shape[-1] - 1)] for x in (v, a)), l=l)
)
forward("poles_clipped", "|a| at most 0.999")(
    lambda v, a, *, l: right(v, a * np.minimum(1, 0.999 / np.maximum(np.abs(a), 0.999)), l=l)
)
forward("wrap_forgotten", "the transform of Σ v a^k, cut at l")(
    lambda v, a, *, l: _by_transform(lambda a, k, l: a**k, v, a, l)
)
forward("wrap_sign", "Σ v a^k/(1 + a^l)")(
    lambda v, a, *, l: _by_transform(lambda a, k, l: a**k / (1 + a**l), v, a, l)
)
forward("wrap_of_one_less", "Σ v a^k/(1 − a^(l−1))")(
    lambda v, a, *, l: _by_transform(lambda a, k, l: a**k / (1 - a ** max(1, l - 1)), v, a, l)
)
forward("inverse_transform", "ifft for fft")(
    lambda v, a, *, l: np.fft.ifft(
        np.fft.ifft(right(v, a, l=l)) * max(1, l)
    ).astype(np.result_type(v, a, np.complex64))
)  # fmt: skip
forward("beyond_1024", "nothing written beyond 1024")(
    lambda v, a, *, l: np.where(np.arange(l) < 1024, right(v, a, l=l), 0)
)


@gradient("as_jax", "the conjugate convention")
def _as_jax(dk, v, a, *, l):
    return tuple(g.conj() for g in right_vjp(dk, v, a, l=l))


@gradient("resolvent_once", "R for R² in da")
def _resolvent_once(dk, v, a, *, l):
    dv, da = right_vjp(dk, v, a, l=l)
    omega = _roots(v, a, l)[:, None]
    R = 1 / (1 - a[..., None, :] * omega)
    wrong = (dk[..., :, None] * (v[..., None, :] * omega * R).conj()).sum(-2)
    wrong = wrong if da.dtype.kind == "c" else wrong.real
    return dv, (wrong + 0 * da).astype(da.dtype)


@gradient("node_forgotten", "da without ω")
def _node_forgotten(dk, v, a, *, l):
    dv, _ = right_vjp(dk, v, a, l=l)
    omega = _roots(v, a, l)
    return dv, right_vjp(dk * omega, v, a, l=l)[1]


@gradient("cotangent_conjugated", "dk* for dk")
def _cotangent_conjugated(dk, v, a, *, l):
    return right_vjp(dk.conj(), v, a, l=l)


@gradient("real_cotangent", "the real part of dk")
def _real_cotangent(dk, v, a, *, l):
    return right_vjp(dk.real.astype(dk.dtype), v, a, l=l)


@gradient("doubled", "the factor 2 once more")
def _doubled(dk, v, a, *, l):
    return right_vjp(2 * dk, v, a, l=l)


@gradient("residue_forgotten", "da without v")
def _residue_forgotten(dk, v, a, *, l):
    return right_vjp(dk, v, a, l=l)[0], right_vjp(dk, 0 * v + 1, a, l=l)[1]


AT_ROOTS = PLANTING.bugs
