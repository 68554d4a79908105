"""Planted bugs in transfer functions and their gradients."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16, tf32
from refssm.conformance.planted.planting import Planting, instead, of_each_result, of_result
from refssm.hankel import TRANSFER, TRANSFER_DISCRETE

CONTINUOUS, DISCRETE = (Planting(op, "complex64") for op in (TRANSFER, TRANSFER_DISCRETE))


def _but_last(x):
    return np.where(np.arange(x.shape[-1]) < x.shape[-1] - 1, x, 0)


for _p, _s in ((CONTINUOUS, "s"), (DISCRETE, "z")):  # the point's name
    _p.usual()
    _p.plant(
        ("D_forgotten", "C (…)⁻¹ B without D", {"D": lambda D: 0 * D}),
        ("D_doubled", "D twice", {"D": lambda D: 2 * D}),
        ("D_subtracted", "−D", {"D": np.negative}),
        ("A_negated", "sI + A", {"A": np.negative}),
        ("A_transposed", "Aᵀ", {"A": lambda A: A.mT}),
        ("A_conjugated", "A*", {"A": np.conj}),
        ("A_adjoint", "Aᴴ", {"A": lambda A: A.mT.conj()}),
        ("A_diagonal", "diag A", {"A": lambda A: np.where(np.eye(A.shape[-1]), A, 0)}),
        ("A_lower", "the lower triangle", {"A": np.tril}),
        ("C_conjugated", "C*", {"C": np.conj}),
        ("B_conjugated", "B*", {"B": np.conj}),
        ("s_conjugated", "the conjugate point", {_s: np.conj}),
        ("s_negated", "the other sign of the point", {_s: np.negative}),
        ("s_shifted", "the next point", {_s: lambda s: np.roll(s, -1, -1)}),
        ("B_for_C", "B and C exchanged", lambda right, A, B, C, D, s: right(A, C, B, D, s)),
        ("last_state", "the last state left out", {"C": _but_last}),
        ("beyond_64", "zero beyond 64 points",
         of_result(lambda G: np.where(np.arange(G.shape[-1]) < 64, G, 0))),
        ("real_part", "the real part", of_result(lambda G: G.real.astype(G.dtype))),
        ("conjugated", "G*", of_result(np.conj)),
        ("doubled", "2 G, of pairs", of_result(lambda G: 2 * G)),
        ("A_in_float16", "A in float16", {"A": float16}),
        ("A_in_tf32", "A in TF32", {"A": tf32}),
        ("s_in_bfloat16", "points in bfloat16", {_s: bfloat16}),
    )  # fmt: skip
    _p.plant(
        ("A_transposed", "dA transposed", {"A": lambda g: g.mT}),
        ("A_sign", "−dA", {"A": np.negative}),
        ("s_sign", "−ds", {_s: np.negative}),
        ("s_conjugated", "ds*", {_s: np.conj}),
        ("D_forgotten", "dD = 0", {"D": lambda g: 0 * g}),
        ("D_doubled", "2 dD", {"D": lambda g: 2 * g}),
        ("B_halved", "dB/2", {"B": lambda g: g / 2}),
        ("as_jax", "the conjugate convention", of_each_result(np.conj)),
        ("exchanged", "dB and dC exchanged", of_result(lambda dA, dB, dC, *x: (dA, dC, dB, *x))),
        ("last_point", "the last point left out", {"dG": _but_last}),
        by="gradient",
    )  # fmt: skip


def _in_eigenbasis(right, A, B, C, D, s):
    w, V = np.linalg.eig(A.astype(complex))
    left = np.linalg.solve(V + 1e-9 * np.eye(A.shape[-1]), B[..., None])[..., 0]
    v = (C[..., None, :] @ V)[..., 0, :] * left
    G = D[..., None] + (v[..., None, :] / (s[..., None] - w[..., None, :])).sum(-1)
    return G.astype(np.result_type(A, B, C, D, s))


def _truncated(right, A, B, C, D, z):
    x, G = B[..., None, :], D[..., None] + 0 * z
    for _ in range(32):
        G = G + (C[..., None, :] * x).sum(-1)
        x = (A[..., None, :, :] @ x[..., None])[..., 0] / z[..., None]
    return G.astype(np.result_type(A, B, C, D, z))


CONTINUOUS.plant(
    ("discrete", "the discrete one", instead(TRANSFER_DISCRETE.reference)),
    ("in_eigenbasis", "by eigenvectors, of a matrix that may have none", _in_eigenbasis),
    ("frequency_for_s", "iω of what is s already", {"s": lambda s: 1j * s}),
    ("rounded_step", "points in Hertz", {"s": lambda s: 2 * np.pi * s}),
)
DISCRETE.plant(
    ("continuous", "D + C (zI − A)⁻¹ B: one step later", instead(TRANSFER.reference)),
    ("shifted_convention", "the same, divided after", lambda right, A, B, C, D, z:
     D[..., None] + right(A, B, C, 0 * D, z) / z),
    ("inverted", "z for 1/z", {"z": np.reciprocal}),
    ("truncated", "32 terms of the series", _truncated),
)  # fmt: skip
