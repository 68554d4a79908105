"""Planted bugs in H2 norms, of dense and of diagonal systems."""

import numpy as np

from refssm._numerics.lyapunov import lyapunov, stein
from refssm.conformance.planted.planting import Planting, of_each_result, of_result
from refssm.hankel import H2_NORM, H2_NORM_DIAGONAL
from refssm.hankel.gramians import adjoint, outer

DENSE = Planting(H2_NORM, "float32")
DIAGONAL = Planting(H2_NORM_DIAGONAL, "float32")


def _times(factor):
    return lambda x: factor * x


def _form(P, x):
    """x P xᴴ."""
    return (x[..., None, :] @ P @ x.conj()[..., :, None])[..., 0, 0]


def _from(gramian, energy=lambda P, B, C: _form(P, C)):
    """√ of an energy from another matrix than the gramian of A and B."""

    def norm(right, A, B, C):
        h = right(A, B, C)
        return np.sqrt(np.abs(energy(gramian(A, B), B, C))).astype(h.dtype)

    return norm


def _over(sums, conj=np.conj):
    """√|Σ_ij v_i v_j*/sums(w_i, w_j*)|."""

    def norm(right, w, B, C):
        v, x = B * C, w + 0 * (B * C)
        K = sums(x[..., :, None], conj(x)[..., None, :])
        energy = (v[..., :, None] * conj(v)[..., None, :] / K).sum((-2, -1))
        return np.sqrt(np.abs(energy)).astype(right(w, B, C).dtype)

    return norm


def _lyapunov(A, B):
    return lyapunov(A, outer(B, B))


for _p, _A, _wide in ((DENSE, "A", "complex128"), (DIAGONAL, "w", "complex64")):
    _p.usual()
    _p.plant(
        ("squared", "the energy, no root", of_result(np.square)),
        ("root_twice", "√ of the norm", of_result(np.sqrt)),
        ("halved", "h/2", of_result(_times(0.5))),
        ("doubled", "the factor 2 of pairs", of_result(_times(2))),
        ("pairs", "√2 h: the energy doubled", of_result(_times(2**0.5))),
        ("in_hertz", "h/√(2π): an integral over frequencies in radians",
         of_result(_times((2 * np.pi) ** -0.5))),
        ("faster", "2A: one of two terms left out", {_A: _times(2)}),
        ("off_by_a_hundredth", "h too large by 1e-2", of_result(_times(1.01))),
    )  # fmt: skip
    _p.plant(
        ("poles_conjugated", f"{_A}* for {_A}", {_A: np.conj}),
        ("input_conjugated", "B* for B", {"B": np.conj}),
        by=f"value[{_wide}]",
    )
    _p.plant(
        ("of_the_energy", "dh 2h: the energy's", lambda right, dh, *x, op=_p.op:
         right(2 * dh * op.reference(*x), *x)),
        ("halved", "without the factor 2 of a square", of_each_result(_times(0.5))),
        ("poles_fixed", f"no gradient of {_A}", {_A: _times(0)}),
        ("poles_sign", f"−d{_A}", {_A: np.negative}),
        ("input_forgotten", "no gradient of B", {"B": _times(0)}),
        ("output_doubled", "2 dC", {"C": _times(2)}),
        by="gradient",
    )  # fmt: skip
    _p.plant(("as_jax", "the conjugate convention", of_each_result(np.conj)),
             by="gradient[complex64]")  # fmt: skip
DENSE.plant(
    ("transposed", "Aᵀ for A", {"A": lambda A: A.mT.copy()}),
    ("lyapunov_forgotten", "|C B|", _from(outer)),
    ("discrete", "of x_k = A x_{k−1} + B u", _from(lambda A, B: stein(A / 4, outer(B, B)))),
    ("trace", "√tr P: C taken for the identity",
     _from(_lyapunov, lambda P, B, C: np.trace(P, axis1=-2, axis2=-1) + 0 * C.sum(-1))),
    ("input_twice", "√(Bᴴ P B)",
     _from(_lyapunov, lambda P, B, C: _form(P, B.conj()) + 0 * C.sum(-1))),
    ("diagonal_only", "√Σ P_ii |C_i|²",
     _from(_lyapunov, lambda P, B, C: (np.einsum("...ii->...i", P) * np.abs(C) ** 2).sum(-1))),
    ("same_side", "P of Aᴴ", _from(lambda A, B: lyapunov(adjoint(A), outer(B, B)))),
)  # fmt: skip
DENSE.plant(("row_conjugated", "C* for C", {"C": np.conj}), by="value[complex128]")
DENSE.plant(
    ("transposed", "dAᵀ", {"A": lambda g: g.mT.copy()}),
    ("exchanged", "dB and dC exchanged", of_result(lambda dA, dB, dC: (dA, dC, dB))),
    by="gradient",
)
DIAGONAL.plant(
    ("diagonal_only", "√Σ |v_i|²/(−2 Re w_i)",
     _over(lambda a, b: np.where(np.eye(a.shape[-2]) > 0, -(a + b), np.inf))),
    ("residues_forgotten", "B = C = 1", dict.fromkeys("BC", lambda x: 0 * x + 1)),
    ("moduli", "|B C|: the phases left out", dict.fromkeys("BC", lambda x: np.abs(x) + 0 * x)),
    ("next_residue", "C in another order than w", {"C": lambda C: np.roll(C, 1, -1)}),
    ("discrete", "of x_k = w x_{k−1} + B u", _over(lambda a, b: 1 - a * b)),
    ("last_forgotten", "the last pole left out",
     {"C": lambda C: np.where(np.arange(C.shape[-1]) < C.shape[-1] - 1, C, 0)}),
)  # fmt: skip
DIAGONAL.plant(
    ("real_poles", "the decay alone", {"w": lambda w: w.real + 0 * w}),
    ("conjugate_missing", "v_i v_j/(w_i + w_j)", _over(lambda a, b: -(a + b), np.asarray)),
    by="value[complex64]",
)
DIAGONAL.plant(
    ("one_side", "dw of one of the two factors", {"w": _times(0.5)}),
    ("exchanged", "dB and dC exchanged",
     of_result(lambda dw, dB, dC: (dw, dC.reshape(dB.shape), dB.reshape(dC.shape)))),
    by="gradient",
)  # fmt: skip
