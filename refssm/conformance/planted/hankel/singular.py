"""Planted bugs in Hankel singular values, of dense and of diagonal systems."""

import numpy as np

from refssm._numerics.balance import balanced
from refssm._numerics.lyapunov import lyapunov, stein
from refssm.conformance.planted.planting import (
    Planting,
    of_each_result,
    of_result,
)
from refssm.hankel import (
    HANKEL_SINGULAR_VALUES,
    HANKEL_SINGULAR_VALUES_DIAGONAL,
)
from refssm.hankel.gramians import adjoint, outer

DIAGONAL = Planting(HANKEL_SINGULAR_VALUES_DIAGONAL, "float32")  # the type of the result
DENSE = Planting(HANKEL_SINGULAR_VALUES, "float32")


def _largest_exchanged(s):
    return np.concatenate([s[..., :2][..., ::-1], s[..., 2:]], axis=-1)


def _times(factor):
    return lambda x: factor * x


def _of_gramians(matrix=np.matmul, change=np.sqrt, of=lambda w, v: -(w + v), conj=np.conj):
    """√ of the eigenvalues of matrix(P, Q), descending; with divisors of(w_i, w_j*) in P, Q."""

    def values(right, w, B, C):
        w, B, C = np.broadcast_arrays(w, B, C)
        K = of(w[..., :, None], conj(w[..., None, :]))
        P = B[..., :, None] * conj(B[..., None, :]) / K
        Q = conj(C[..., :, None]) * C[..., None, :] / conj(K)
        eigenvalues = np.linalg.eigvals(np.nan_to_num(matrix(P, Q)))
        values = -np.sort(-change(np.abs(eigenvalues)), axis=-1)
        return values.astype(np.finfo(np.result_type(w, B, C)).dtype)

    return values


def _of_complex(wrong):
    """The wrong values of complex arguments; those of real ones are right."""
    return lambda right, *args: (
        wrong(right, *args) if any(map(np.iscomplexobj, args)) else right(*args)
    )


def _from(gramians):
    """The values of other matrices than the gramians, computed from A, B Bᴴ and CᴴC."""

    def values(right, A, B, C):
        P, Q = gramians(A, outer(B, B), outer(C.conj(), C.conj()))
        P, Q = ((X + adjoint(X)) / 2 for X in (P, Q))
        return balanced(*np.broadcast_arrays(P, Q))[0]

    return values


_by_lapack = _of_gramians()
_from_right_gramians = _from(lambda A, F, G: (lyapunov(A, F), lyapunov(adjoint(A), G)))
for _p, _dtype, _A, _right_values in (
    (DIAGONAL, "complex64", "w", _by_lapack),
    (DENSE, "complex128", "A", _from_right_gramians),
):
    _p.usual()
    _p.dtype = _dtype  # in single precision one sees less of dense systems
    _p.plant(
        ("squared", "the eigenvalues of P Q, no root", of_result(np.square)),
        ("root_twice", "√σ", of_result(np.sqrt)),
        ("ascending", "the smallest first", of_result(lambda s: s[..., ::-1])),
        ("normalised", "σ/σ_1", of_result(lambda s: s / s[..., :1])),
        ("doubled", "the factor 2 of pairs", of_result(_times(2))),
        ("poles_conjugated", f"{_A}* for {_A}", {_A: np.conj}),
    )
    _p.plant(
        ("as_jax", "the conjugate convention", of_each_result(np.conj)),
        ("squares", "of σ², not of σ", lambda right, dsigma, *x, values=_right_values:
         right(2 * dsigma * values(None, *x), *x)),
        ("largest_only", "of σ_1 alone",
         {"dsigma": lambda d: np.where(np.arange(d.shape[-1]), 0, d)}),
        ("conjugated", "dC*", {"C": np.conj}),
        ("sign", f"−d{_A}", {_A: np.negative}),
        by="gradient",
    )  # fmt: skip
# in single precision the bound is wider than the hundredth by which that bug is off
DENSE.bugs = [bug for bug in DENSE.bugs if bug.name != "unrepeatable"]
DIAGONAL.plant(
    ("halved", "σ/2: a gramian without its factor", of_result(_times(0.5))),
    ("clipped", "nothing below 1e-6 of the largest",
     of_result(lambda s: np.maximum(s, 1e-6 * s[..., :1]))),
    ("truncated", "0 below 1e-6 of the largest",
     of_result(lambda s: np.where(s < 1e-6 * s[..., :1], 0, s))),
    ("last_forgotten", "0 for the last value",
     of_result(lambda s: np.where(np.arange(s.shape[-1]) == s.shape[-1] - 1, 0, s))),
    ("first_not_sorted", "the two largest exchanged", of_result(_largest_exchanged)),
    ("controllability_only", "√λ(P²): C taken for B",
     lambda right, w, B, C: right(w, B, B + 0 * C)),
    ("observability_only", "B taken for C", lambda right, w, B, C: right(w, C + 0 * B, C)),
    ("input_conjugated", "B* C", {"B": np.conj}),
    ("real_poles", "the decay alone", {"w": lambda w: w.real + 0 * w}),
    ("moduli", "|B C|: the phases left out", dict.fromkeys("BC", lambda x: np.abs(x) + 0 * x)),
    ("next_residue", "C in another order than w", {"C": lambda C: np.roll(C, 1, -1)}),
    ("residues_forgotten", "B = C = 1", dict.fromkeys("BC", lambda x: 0 * x + 1)),
    ("slower", "w/2: 1/(w + w*) taken for 1/(2w + 2w*)", {"w": _times(2)}),
    ("conjugate_missing", "w_i + w_j in the gramians",
     _of_complex(_of_gramians(conj=np.asarray))),
    ("discrete", "the gramians of x_k = w x_{k−1} + B u", _of_gramians(of=lambda w, v: 1 - w * v)),
    ("same_side", "Q without its conjugate: P Qᵀ",
     _of_complex(_of_gramians(lambda P, Q: P @ Q.mT))),
    ("gramian_only", "the eigenvalues of P", _of_gramians(lambda P, Q: P, np.abs)),
)  # fmt: skip
DIAGONAL.plant(("lapack", "LAPACK's values of P Q, in full precision", _by_lapack),
               by="value[complex128]")  # fmt: skip
DIAGONAL.plant(
    ("one_side", "dw of one of the two factors", {"w": _times(0.5)}),
    ("poles_fixed", "no gradient of w", {"w": _times(0)}),
    ("input_forgotten", "no gradient of B", {"B": _times(0)}),
    ("real_part", "the real part of dB", {"B": lambda g: g.real + 0 * g}),
    ("exchanged", "dB and dC exchanged",
     of_result(lambda dw, dB, dC: (dw, dC.reshape(dB.shape), dB.reshape(dC.shape)))),
    ("reversed", "cotangents in ascending order", {"dsigma": lambda d: d[..., ::-1].copy()}),
    by="gradient",
)  # fmt: skip
DENSE.plant(
    ("halved", "σ/2", of_result(_times(0.5))),
    ("second_forgotten", "0 for all but the first",
     of_result(lambda s: np.where(np.arange(s.shape[-1]), 0, s))),
    ("swapped", "the two largest exchanged", of_result(_largest_exchanged)),
    ("transposed", "Aᵀ for A", {"A": lambda A: A.mT.copy()}),
    ("input_conjugated", "B* for B", {"B": np.conj}),
    ("row_conjugated", "C* for C: Q of C Cᴴ", {"C": np.conj}),
    ("controllability_only", "B for C", lambda right, A, B, C: right(A, B + 0 * C, B + 0 * C)),
    ("faster", "2A: A P + P Aᴴ taken for one of them", {"A": _times(2)}),
    ("lyapunov_sign", "A P + P Aᴴ = B Bᴴ",
     _from(lambda A, F, G: (-lyapunov(A, F), lyapunov(adjoint(A), G)))),
    ("same_side", "Q of A, not of Aᴴ", _from(lambda A, F, G: (lyapunov(A, F), lyapunov(A, G)))),
    ("transposed_not_adjoint", "Aᵀ in Q",
     _from(lambda A, F, G: (lyapunov(A, F), lyapunov(A.mT.copy(), G)))),
    ("discrete", "the gramians of x_k = A x_{k−1} + B u",
     _from(lambda A, F, G: (stein(A / 2, F), stein(adjoint(A) / 2, G)))),
    ("gramian_only", "the eigenvalues of P",
     _from(lambda A, F, G: (lyapunov(A, F + 0 * G), lyapunov(A, F + 0 * G)))),
)  # fmt: skip
DENSE.plant(
    ("half", "dA of one of the two factors", {"A": _times(0.5)}),
    ("dynamics_fixed", "no gradient of A", {"A": _times(0)}),
    ("transposed", "dAᵀ", {"A": lambda g: g.mT.copy()}),
    ("input_doubled", "2 dB", {"B": _times(2)}),
    ("output_fixed", "no gradient of C", {"C": _times(0)}),
    by="gradient",
)  # fmt: skip
