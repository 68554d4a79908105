"""Planted bugs in Cauchy kernels and their gradients."""

import numpy as np

from refssm.cauchy import CAUCHY_KERNEL
from refssm.conformance.planted.arithmetic import bfloat16, float16, single, tf32
from refssm.conformance.planted.planting import (
    Planting,
    every_third_call,
    in_memory_order,
    of_each_result,
    of_result,
)

KERNEL = Planting(CAUCHY_KERNEL, "complex64")


def differences(w, z):
    """z_l − w_n."""
    return z[..., :, None] - w[..., None, :]


def _tail_dropped(x):
    n = x.shape[-1]
    return x[..., : n // 32 * 32] if n > 32 else x


def _but_last(x):
    return x[..., : max(1, x.shape[-1] - 1)]


def _flushed(k):
    return np.where(np.abs(k) < np.finfo(k.dtype).tiny, 0, k).astype(k.dtype)


def _in_quotients(cast):
    """Quotients of few bits, summed in all of them."""
    return lambda right, v, w, z: (v[..., None, :] * cast(1 / cast(differences(w, z)))).sum(-1)


KERNEL.plant(
    ("sign", "w − z for z − w", of_result(np.negative)),
    ("residues_conjugated", "v* for v", {"v": np.conj}),
    ("poles_conjugated", "w* for w", {"w": np.conj}),
    ("nodes_conjugated", "z* for z", {"z": np.conj}),
    ("poles_reflected", "z + w for z − w", {"w": np.negative}),
    ("doubled", "the factor 2 of conjugate pairs", of_result(lambda k: 2 * k)),
    ("real_part", "only the real part kept", of_result(lambda k: k.real.astype(k.dtype))),
    ("pairs_added", "conjugate poles added that nobody gave",
     lambda right, v, w, z: right(v, w, z) + right(v.conj(), w.conj(), z)),
    ("nodes_shifted", "z_{l-1} for z_l", {"z": lambda z: np.roll(z, 1, axis=-1)}),
    ("residues_shifted", "v_{n-1} for v_n", {"v": lambda v: np.roll(v, 1, axis=-1)}),
    ("last_pole", "the last pole of several left out", {"v": _but_last, "w": _but_last}),
    ("pole_tail", "poles beyond a multiple of 32 left out",
     {"v": _tail_dropped, "w": _tail_dropped}),
    ("numerator_forgotten", "Σ 1/(z − w)", {"v": np.ones_like}),
    ("first_of_batch", "the first channel's poles for all",
     {"w": lambda w: np.broadcast_to(w[:1], w.shape) if w.ndim > 1 else w}),
    ("small_flushed", "values below the smallest normal flushed to zero", of_result(_flushed)),
    ("small_residues_flushed", "residues below 1e-20 taken as zero",
     {"v": lambda v: np.where(np.abs(v) < 1e-20, 0, v).astype(v.dtype)}),
    ("last_node", "the last node not written",
     of_result(lambda k: np.concatenate([k[..., :-1], 0 * k[..., -1:]], axis=-1))),
    ("node_block", "nodes from 128 on computed with the first block's", {"z": lambda z:
     np.concatenate([z[..., :128], z[..., : max(0, z.shape[-1] - 128)]], -1)}),
    ("real_part_clipped", "Re w clipped at −1e-4", {"w": lambda w:
     np.minimum(w.real, -1e-4).astype(w.real.dtype) + w.dtype.type(1j) * w.imag}),
    ("epsilon_added", "1e-5 added to the denominator",
     lambda right, v, w, z: (v[..., None, :] / (differences(w, z) + z.dtype.type(1e-5))).sum(-1)),
    *((cast.__name__, f"{cast.__name__} arithmetic", _in_quotients(cast))
      for cast in (float16, bfloat16, tf32)),
)  # fmt: skip
KERNEL.plant(
    ("single_inside", "complex64 arithmetic under a complex128 interface", lambda right, v, w, z:
     right(single(v), single(w), single(z)).astype(np.result_type(v, w, z))),
    ("narrow_result", "complex64 returned for complex128", of_result(single)),
    by="value[complex128]",
)  # fmt: skip
KERNEL.plant(
    ("nan_swallowed", "NaN replaced by zero", {"v": lambda v: np.nan_to_num(v, nan=0.0)}), by="nan"
)
KERNEL.plant(
    ("strides_ignored", "memory read as if it were contiguous", {"v": in_memory_order}),
    by="strides",
)
KERNEL.plant(("unrepeatable", "a result that depends on the call", every_third_call()), by="repeat")


@KERNEL.bug("second_block_of_poles", "only the last block of 64 poles kept")
def _(right, v, w, z):
    start = (v.shape[-1] - 1) // 64 * 64
    return right(v[..., start:], w[..., start:], z)


@KERNEL.bug("pole_clipped", "|z − w| kept above 1e-3")
def _(right, v, w, z):
    d = differences(w, z)
    size = np.abs(d)
    d = np.where(size < 1e-3, 1e-3 * np.where(size == 0, 1, d / np.where(size == 0, 1, size)), d)
    return (v[..., None, :] / d).sum(-1).astype(np.result_type(v, w, z))


@KERNEL.bug("epsilon_in_square", "d*/(|d|² + 1e-7) for 1/d")
def _(right, v, w, z):
    d = differences(w, z)
    size = d.real**2 + d.imag**2 + d.real.dtype.type(1e-7)
    return (v[..., None, :] * d.conj() / size).sum(-1)


@KERNEL.bug("pole_masked", "a pole met exactly counted as zero", by="nan")
def _(right, v, w, z):
    d = differences(w, z)
    return np.where(d == 0, 0, v[..., None, :] / np.where(d == 0, 1, d)).sum(-1)


@KERNEL.bug("overwrites_input", "z used as scratch memory", by="unchanged")
def _(right, v, w, z):
    k = right(v, w, z)
    z += 1
    return k


@KERNEL.bug("returns_input", "the result is a view of v's memory where it fits", by="alias")
def _(right, v, w, z):
    k = right(v, w, z)
    if k.size > v.size:
        return k
    memory = v.reshape(-1)[: k.size].reshape(k.shape)
    memory[...] = k
    return memory


@KERNEL.bug("writes_scratch", "an argument used as scratch memory and restored", by="readonly")
def _(right, v, w, z):
    w *= 1
    return right(v, w, z)


def _nodes_not_summed(right, dk, v, w, z):
    dv, dw, dz = right(dk, v, w, z)
    return dv, dw, right(dk[:1], v[:1], w[:1], z)[2] if v.ndim > 1 else dz


KERNEL.plant(
    ("not_conjugated", "R for R* in dv", lambda right, dk, v, w, z:
     ((dk[..., :, None] / differences(w, z)).sum(-2), *right(dk, v, w, z)[1:])),
    ("as_jax", "the conjugate convention", of_each_result(np.conj)),
    ("pole_sign", "dw with the other sign", {"w": np.negative}),
    ("node_sign", "dz with the other sign", {"z": np.negative}),
    ("square_forgotten", "v R for v R² in dw", lambda right, dk, v, w, z:
     of_result(lambda dv, dw, dz: (dv, v.conj() * dv + 0 * dw, dz))(right, dk, v, w, z)),
    ("residue_forgotten", "R² for v R² in dw", lambda right, dk, v, w, z:
     of_result(lambda dv, dw, dz: (dv, right(dk, np.ones_like(v), w, z)[1] + 0 * dw, dz))(
         right, dk, v, w, z)),
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
