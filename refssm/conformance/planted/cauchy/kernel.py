"""Planted bugs in Cauchy kernels and their gradients; the rest in `cauchy_at_roots`."""

import numpy as np

from refssm.cauchy import CAUCHY_KERNEL
from refssm.conformance.planted import Deviation
from refssm.conformance.planted.arithmetic import bfloat16, float16, single, tf32
from refssm.conformance.planted.cauchy.at_roots import AT_ROOTS

FORWARD, GRADIENTS = [], []
right, right_vjp = CAUCHY_KERNEL.reference, CAUCHY_KERNEL.bare_vjp


def planted(table, name, caught_by, what):
    """Register a wrong kernel or a wrong gradient."""

    def register(function):
        table.append((name, caught_by, what, function))
        return function

    return register


def forward(name, what, caught_by="value[complex64]"):
    """A wrong kernel."""
    return planted(FORWARD, name, caught_by, what)


def gradient(name, what, caught_by="gradient[complex64]"):
    """A wrong gradient."""
    return planted(GRADIENTS, name, caught_by, what)


def differences(w, z):
    """z_l − w_n."""
    return z[..., :, None] - w[..., None, :]


forward("sign", "w − z for z − w")(lambda v, w, z: -right(v, w, z))
forward("residues_conjugated", "v* for v")(lambda v, w, z: right(v.conj(), w, z))
forward("poles_conjugated", "w* for w")(lambda v, w, z: right(v, w.conj(), z))
forward("nodes_conjugated", "z* for z")(lambda v, w, z: right(v, w, z.conj()))
forward("poles_reflected", "z + w for z − w")(lambda v, w, z: right(v, -w, z))
forward("doubled", "the factor 2 of conjugate pairs")(lambda v, w, z: 2 * right(v, w, z))
forward("real_part", "only the real part kept")(
    lambda v, w, z: right(v, w, z).real.astype(np.result_type(v, w, z))
)
forward("pairs_added", "conjugate poles added that nobody gave")(
    lambda v, w, z: right(v, w, z) + right(v.conj(), w.conj(), z)
)
forward("nodes_shifted", "z_{l-1} for z_l")(lambda v, w, z: right(v, w, np.roll(z, 1, axis=-1)))
forward("residues_shifted", "v_{n-1} for v_n")(lambda v, w, z: right(np.roll(v, 1, axis=-1), w, z))
forward("last_pole", "the last pole of several left out")(
    lambda v, w, z: right(v[..., : max(1, v.shape[-1] - 1)], w[..., : max(1, w.shape[-1] - 1)], z)
)
forward("pole_tail", "poles beyond a multiple of 32 left out")(
    lambda v, w, z: right(*(_tail_dropped(x) for x in (v, w)), z)
)
forward("numerator_forgotten", "Σ 1/(z − w)")(lambda v, w, z: right(np.ones_like(v), w, z))
forward("first_of_batch", "the first channel's poles for all")(
    lambda v, w, z: right(v, np.broadcast_to(w[:1], w.shape) if w.ndim > 1 else w, z)
)
forward("single_inside", "complex64 arithmetic under a complex128 interface", "value[complex128]")(
    lambda v, w, z: right(single(v), single(w), single(z)).astype(np.result_type(v, w, z))
)
forward("narrow_result", "complex64 returned for complex128", "value[complex128]")(
    lambda v, w, z: single(right(v, w, z))
)
forward("small_flushed", "values below the smallest normal flushed to zero")(
    lambda v, w, z: _flushed(right(v, w, z))
)
forward("small_residues_flushed", "residues below 1e-20 taken as zero")(
    lambda v, w, z: right(np.where(np.abs(v) < 1e-20, 0, v).astype(v.dtype), w, z)
)
forward("nan_swallowed", "NaN replaced by zero", "nan[complex64]")(
    lambda v, w, z: right(np.nan_to_num(v, nan=0.0), w, z)
)
forward("strides_ignored", "memory read as if it were contiguous", "strides[complex64]")(
    lambda v, w, z: right(v.ravel(order="K").reshape(v.shape), w, z)
)


def _tail_dropped(x):
    n = x.shape[-1]
    return x[..., : n // 32 * 32] if n > 32 else x


def _flushed(k):
    return np.where(np.abs(k) < np.finfo(k.dtype).tiny, 0, k).astype(k.dtype)


for _name, _cast in {"float16": float16, "bfloat16": bfloat16, "tf32": tf32}.items():
    forward(_name, f"{_name} arithmetic")(
        lambda v, w, z, cast=_cast: (v[..., None, :] * cast(1 / cast(differences(w, z)))).sum(-1)
    )


@forward("last_node", "the last node not written")
def _last_node(v, w, z):
    k = right(v, w, z)
    k[..., -1] = 0
    return k


@forward("second_block_of_poles", "only the last block of 64 poles kept")
def _second_block_of_poles(v, w, z):
    start = (v.shape[-1] - 1) // 64 * 64
    return right(v[..., start:], w[..., start:], z)


@forward("node_block", "nodes from 128 on computed with the first block's")
def _node_block(v, w, z):
    return right(v, w, np.concatenate([z[..., :128], z[..., : max(0, z.shape[-1] - 128)]], -1))


@forward("pole_clipped", "|z − w| kept above 1e-3")
def _pole_clipped(v, w, z):
    d = differences(w, z)
    size = np.abs(d)
    d = np.where(size < 1e-3, 1e-3 * np.where(size == 0, 1, d / np.where(size == 0, 1, size)), d)
    return (v[..., None, :] / d).sum(-1).astype(np.result_type(v, w, z))


@forward("real_part_clipped", "Re w clipped at −1e-4")
def _real_part_clipped(v, w, z):
    return right(v, np.minimum(w.real, -1e-4).astype(w.real.dtype) + w.dtype.type(1j) * w.imag, z)


@forward("epsilon_added", "1e-5 added to the denominator")
def _epsilon_added(v, w, z):
    return (v[..., None, :] / (differences(w, z) + z.dtype.type(1e-5))).sum(-1)


@forward("epsilon_in_square", "d*/(|d|² + 1e-7) for 1/d")
def _epsilon_in_square(v, w, z):
    d = differences(w, z)
    size = d.real**2 + d.imag**2 + d.real.dtype.type(1e-7)
    return (v[..., None, :] * d.conj() / size).sum(-1)


@forward("pole_masked", "a pole met exactly counted as zero", "nan[complex64]")
def _pole_masked(v, w, z):
    d = differences(w, z)
    return np.where(d == 0, 0, v[..., None, :] / np.where(d == 0, 1, d)).sum(-1)


@forward("overwrites_input", "z used as scratch memory", "unchanged[complex64]")
def _overwrites_input(v, w, z):
    k = right(v, w, z)
    z += 1
    return k


@forward("returns_input", "the result is a view of v's memory where it fits", "alias[complex64]")
def _returns_input(v, w, z):
    k = right(v, w, z)
    if k.size > v.size:
        return k
    memory = v.reshape(-1)[: k.size].reshape(k.shape)
    memory[...] = k
    return memory


@forward("writes_scratch", "an argument used as scratch memory and restored", "readonly[complex64]")
def _writes_scratch(v, w, z):
    w *= 1
    return right(v, w, z)


@forward("unrepeatable", "a result that depends on the call", "repeat[complex64]")
def _unrepeatable(v, w, z):
    _CALLS[0] += 1
    return right(v, w, z) * (1 if _CALLS[0] % 3 else 1.01)


_CALLS = [0]


@gradient("not_conjugated", "R for R* in dv")
def _not_conjugated(dk, v, w, z):
    _, dw, dz = right_vjp(dk, v, w, z)
    return (dk[..., :, None] / differences(w, z)).sum(-2), dw, dz


@gradient("as_jax", "the conjugate convention")
def _as_jax(dk, v, w, z):
    return tuple(g.conj() for g in right_vjp(dk, v, w, z))


@gradient("pole_sign", "dw with the other sign")
def _pole_sign(dk, v, w, z):
    dv, dw, dz = right_vjp(dk, v, w, z)
    return dv, -dw, dz


@gradient("node_sign", "dz with the other sign")
def _node_sign(dk, v, w, z):
    dv, dw, dz = right_vjp(dk, v, w, z)
    return dv, dw, -dz


@gradient("square_forgotten", "v R for v R² in dw")
def _square_forgotten(dk, v, w, z):
    dv, dw, dz = right_vjp(dk, v, w, z)
    return dv, v.conj() * dv + 0 * dw, dz


@gradient("residue_forgotten", "R² for v R² in dw")
def _residue_forgotten(dk, v, w, z):
    dv, dw, dz = right_vjp(dk, v, w, z)
    return dv, right_vjp(dk, np.ones_like(v), w, z)[1] + 0 * dw, dz


@gradient("nodes_not_summed", "dz of the first channel only, though z is shared by all")
def _nodes_not_summed(dk, v, w, z):
    dv, dw, dz = right_vjp(dk, v, w, z)
    first = right_vjp(dk[:1], v[:1], w[:1], z)[2] if v.ndim > 1 else dz
    return dv, dw, first


@gradient("real_gradients", "gradients reduced to their real parts")
def _real_gradients(dk, v, w, z):
    return tuple(g.real.astype(g.dtype) for g in right_vjp(dk, v, w, z))


@gradient("last_node_dropped", "the last node left out of dv and dw")
def _last_node_dropped(dk, v, w, z):
    dv, dw, _ = right_vjp(dk[..., :-1], v, w, z[..., :-1])
    return dv, dw, right_vjp(dk, v, w, z)[2]


@gradient("tf32", "TF32 arithmetic")
def _tf32(dk, v, w, z):
    return tuple(tf32(g) for g in right_vjp(tf32(dk), v, w, z))


DEVIATIONS = [
    *(Deviation("cauchy_kernel", n, c, w, f) for n, c, w, f in FORWARD),
    *(Deviation("cauchy_kernel", f"vjp_{n}", c, w, right, f) for n, c, w, f in GRADIENTS),
    *AT_ROOTS,
]
