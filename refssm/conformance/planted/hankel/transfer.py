"""Planted bugs in transfer functions and their gradients."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16, tf32
from refssm.conformance.planted.planting_old import Planting
from refssm.hankel import TRANSFER, TRANSFER_DISCRETE

CONTINUOUS, DISCRETE = (Planting(op, "complex64") for op in (TRANSFER, TRANSFER_DISCRETE))
continuous, discrete = CONTINUOUS.right, DISCRETE.right
names = ("A", "B", "C", "D", "s")


def given(right, **changes):
    """The right function of changed arguments: by name, f(argument)."""

    def form(*args):
        changed = zip(names, args, strict=True)
        return right(*(changes[n](a).astype(a.dtype) if n in changes else a for n, a in changed))

    return form


def after(right, change):
    """The right result, changed."""
    return lambda *args: change(right(*args), *args)


def _forgotten(D):
    return 0 * D


def _twice_D(G, A, B, C, D, s):
    return G + D[..., None]


def _last_state(C):
    return np.where(np.arange(C.shape[-1]) < C.shape[-1] - 1, C, 0)


def _beyond_64(G, *args):
    return np.where(np.arange(G.shape[-1]) < 64, G, 0).astype(G.dtype)


def _real(G, *args):
    return G.real.astype(G.dtype)


def forms(right):
    """Wrong in either time."""
    return {
        "D_forgotten": ("C (…)⁻¹ B without D", given(right, D=_forgotten)),
        "D_doubled": ("D twice", after(right, _twice_D)),
        "D_subtracted": ("−D", given(right, D=np.negative)),
        "A_negated": ("sI + A", given(right, A=np.negative)),
        "A_transposed": ("Aᵀ", given(right, A=lambda A: A.mT)),
        "A_conjugated": ("A*", given(right, A=np.conj)),
        "A_adjoint": ("Aᴴ", given(right, A=lambda A: A.mT.conj())),
        "A_diagonal": ("diag A", given(right, A=lambda A: A * np.eye(A.shape[-1]))),
        "A_lower": ("the lower triangle", given(right, A=np.tril)),
        "C_conjugated": ("C*", given(right, C=np.conj)),
        "B_conjugated": ("B*", given(right, B=np.conj)),
        "s_conjugated": ("the conjugate point", given(right, s=np.conj)),
        "s_negated": ("the other sign of the point", given(right, s=np.negative)),
        "s_shifted": ("the next point", given(right, s=lambda s: np.roll(s, -1, -1))),
        "B_for_C": ("B and C exchanged", lambda A, B, C, D, s: right(A, C, B, D, s)),
        "last_state": ("the last state left out", given(right, C=_last_state)),
        "beyond_64": ("zero beyond 64 points", after(right, _beyond_64)),
        "real_part": ("the real part", after(right, _real)),
        "conjugated": ("G*", after(right, lambda G, *args: G.conj())),
        "doubled": ("2 G, of pairs", after(right, lambda G, *args: 2 * G)),
        "A_in_float16": ("A in float16", given(right, A=float16)),
        "A_in_tf32": ("A in TF32", given(right, A=tf32)),
        "s_in_bfloat16": ("points in bfloat16", given(right, s=bfloat16)),
    }


def _in_eigenbasis(A, B, C, D, s):
    w, V = np.linalg.eig(A.astype(complex))
    left = np.linalg.solve(V + 1e-9 * np.eye(A.shape[-1]), B[..., None])[..., 0]
    v = (C[..., None, :] @ V)[..., 0, :] * left
    G = D[..., None] + (v[..., None, :] / (s[..., None] - w[..., None, :])).sum(-1)
    return G.astype(np.result_type(A, B, C, D, s))


def _shifted_convention(A, B, C, D, z):
    return D[..., None] + (discrete(A, B, C, 0 * D, z) / z)


def _truncated(A, B, C, D, z):
    x, G = B[..., None, :], D[..., None] + 0 * z
    for _ in range(32):
        G = G + (C[..., None, :] * x).sum(-1)
        x = (A[..., None, :, :] @ x[..., None])[..., 0] / z[..., None]
    return G.astype(np.result_type(A, B, C, D, z))


ONLY_CONTINUOUS = {
    "discrete": ("the discrete one", discrete),
    "in_eigenbasis": ("by eigenvectors, of a matrix that may have none", _in_eigenbasis),
    "frequency_for_s": ("iω of what is s already", given(continuous, s=lambda s: 1j * s)),
    "rounded_step": ("points in Hertz", given(continuous, s=lambda s: 2 * np.pi * s)),
}
ONLY_DISCRETE = {
    "continuous": ("D + C (zI − A)⁻¹ B: one step later", continuous),
    "shifted_convention": ("the same, divided after", _shifted_convention),
    "inverted": ("z for 1/z", given(discrete, s=np.reciprocal)),
    "truncated": ("32 terms of the series", _truncated),
}


def plant(planting, own):
    """All of them in one operator."""
    planting.usual()
    for name, (what, form) in (forms(planting.right) | own).items():
        planting.forward(name, what)(form)
    for name, what, changes in GRADIENTS:
        planting.changed_gradient(name, what, **renamed(planting, changes))
    vjp = planting.right_vjp
    planting.gradient("as_jax", "the conjugate convention")(
        lambda *args: tuple(g.conj() for g in vjp(*args))
    )
    planting.gradient("exchanged", "dB and dC exchanged")(lambda *args: _exchanged(vjp(*args)))
    planting.gradient("last_point", "the last point left out")(
        lambda dG, *args: vjp(np.where(np.arange(dG.shape[-1]) < dG.shape[-1] - 1, dG, 0), *args)
    )


def renamed(planting, changes):
    """s is z in the discrete one."""
    last = list(planting.op.inputs)[-1]
    return {last if name == "s" else name: change for name, change in changes.items()}


def _exchanged(gradients):
    dA, dB, dC, dD, ds = gradients
    return dA, dC, dB, dD, ds


GRADIENTS = (
    ("A_transposed", "dA transposed", {"A": lambda g, _: g.mT}),
    ("A_sign", "−dA", {"A": lambda g, _: -g}),
    ("s_sign", "−ds", {"s": lambda g, _: -g}),
    ("s_conjugated", "ds*", {"s": lambda g, _: g.conj()}),
    ("D_forgotten", "dD = 0", {"D": lambda g, _: 0 * g}),
    ("D_doubled", "2 dD", {"D": lambda g, _: 2 * g}),
    ("B_halved", "dB/2", {"B": lambda g, _: g / 2}),
)
plant(CONTINUOUS, ONLY_CONTINUOUS)
plant(DISCRETE, ONLY_DISCRETE)

DEVIATIONS = [*CONTINUOUS.bugs, *DISCRETE.bugs]
