"""Planted bugs in Hankel singular values of dense systems and their gradients."""

import numpy as np

from refssm._balance import balanced
from refssm._lyapunov import lyapunov, stein
from refssm.conformance.planted.planting_old import Planting
from refssm.hankel import HANKEL_SINGULAR_VALUES
from refssm.hankel.gramians import adjoint, outer

PLANTING = Planting(HANKEL_SINGULAR_VALUES, "complex128")  # single precision sees less
USUAL = Planting(HANKEL_SINGULAR_VALUES, "float32")  # the type of the result
USUAL.usual()
# in single precision the bound is wider than the hundredth by which that bug is off
USUAL.bugs = [bug for bug in USUAL.bugs if bug.name != "unrepeatable"]
right, right_vjp = PLANTING.right, PLANTING.right_vjp
forward, gradient = PLANTING.forward, PLANTING.gradient


def _from_values(change):
    """A change of the right values."""

    def wrong(A, B, C):
        sigma = right(A, B, C)
        return np.abs(change(sigma)).astype(sigma.dtype)

    return wrong


def _of(gramians):
    """The values of other matrices than the gramians."""

    def wrong(A, B, C):
        P, Q = ((X + adjoint(X)) / 2 for X in gramians(A, B, C))
        return balanced(*np.broadcast_arrays(P, Q))[0]

    return wrong


forward("squared", "the eigenvalues of P Q, no root")(_from_values(lambda s: s**2))
forward("root_twice", "√σ")(_from_values(np.sqrt))
forward("ascending", "the smallest first")(_from_values(lambda s: s[..., ::-1]))
forward("normalised", "σ/σ_1")(_from_values(lambda s: s / s[..., :1]))
forward("doubled", "the factor 2 of pairs")(_from_values(lambda s: 2 * s))
forward("halved", "σ/2")(_from_values(lambda s: s / 2))
forward("second_forgotten", "0 for all but the first")(
    _from_values(lambda s: np.where(np.arange(s.shape[-1]), 0, s))
)
forward("swapped", "the two largest exchanged")(
    _from_values(lambda s: np.concatenate([s[..., :2][..., ::-1], s[..., 2:]], axis=-1))
)
forward("transposed", "Aᵀ for A")(lambda A, B, C: right(A.swapaxes(-1, -2).copy(), B, C))
forward("poles_conjugated", "A* for A")(lambda A, B, C: right(A.conj(), B, C))
forward("input_conjugated", "B* for B")(lambda A, B, C: right(A, B.conj(), C))
forward("row_conjugated", "C* for C: Q of C Cᴴ")(lambda A, B, C: right(A, B, C.conj()))
forward("controllability_only", "B for C")(lambda A, B, C: right(A, B + 0 * C, B + 0 * C))
forward("faster", "2A: A P + P Aᴴ taken for one of them")(lambda A, B, C: right(2 * A, B, C))
forward("lyapunov_sign", "A P + P Aᴴ = B Bᴴ")(
    _of(
        lambda A, B, C: (-lyapunov(A, outer(B, B)), lyapunov(adjoint(A), outer(C.conj(), C.conj())))
    )
)
forward("same_side", "Q of A, not of Aᴴ")(
    _of(lambda A, B, C: (lyapunov(A, outer(B, B)), lyapunov(A, outer(C.conj(), C.conj()))))
)
forward("transposed_not_adjoint", "Aᵀ in Q")(
    _of(
        lambda A, B, C: (
            lyapunov(A, outer(B, B)),
            lyapunov(A.swapaxes(-1, -2).copy(), outer(C.conj(), C.conj())),
        )
    )
)
forward("discrete", "the gramians of x_k = A x_{k−1} + B u")(
    _of(
        lambda A, B, C: (
            stein(0.5 * A, outer(B, B)),
            stein(0.5 * adjoint(A), outer(C.conj(), C.conj())),
        )
    )
)
forward("gramian_only", "the eigenvalues of P")(
    lambda A, B, C: balanced(
        *(lyapunov(A, outer(B, B) + 0 * outer(C, C)) for _ in "PQ")
    )[0]
)  # fmt: skip


@gradient("as_jax", "the conjugate convention")
def _as_jax(dsigma, A, B, C):
    return tuple(g.conj() for g in right_vjp(dsigma, A, B, C))


@gradient("squares", "of σ², not of σ")
def _squares(dsigma, A, B, C):
    return right_vjp(2 * dsigma * right(A, B, C), A, B, C)


@gradient("largest_only", "of σ_1 alone")
def _largest_only(dsigma, A, B, C):
    return right_vjp(np.where(np.arange(dsigma.shape[-1]) == 0, dsigma, 0), A, B, C)


PLANTING.changed_gradient("half", "dA of one of the two factors", A=lambda g, _: g / 2)
PLANTING.changed_gradient("sign", "−dA", A=lambda g, _: -g)
PLANTING.changed_gradient("dynamics_fixed", "no gradient of A", A=lambda g, _: 0 * g)
PLANTING.changed_gradient("transposed", "dAᵀ", A=lambda g, _: g.swapaxes(-1, -2).copy())
PLANTING.changed_gradient("input_doubled", "2 dB", B=lambda g, _: 2 * g)
PLANTING.changed_gradient("conjugated", "dC*", C=lambda g, _: g.conj())
PLANTING.changed_gradient("output_fixed", "no gradient of C", C=lambda g, _: 0 * g)

DENSE = [*USUAL.bugs, *PLANTING.bugs]
