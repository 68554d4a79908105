"""Programs of transfer functions, of gramians, and their gradients.

Transfer functions: by elimination, scaled afterwards, and by inverses. Gramians: a Schur form,
doubled sums, Newton's iteration; the last two are right for stable systems, a continuous A with
eigenvalues left of the imaginary axis, a discrete one with eigenvalues inside the unit circle.
"""

from functools import partial

import numpy as np

from refssm._numerics.elimination import eliminated
from refssm._numerics.roots import turned
from refssm.conformance.gauges.programs.arithmetic import adjoint, product, times
from refssm.conformance.gauges.programs.pieces import in_pieces, interleaved
from refssm.hankel.diagonal import (
    HANKEL_SINGULAR_VALUES_DIAGONAL,
    pulled_back,
    vectors,
)
from refssm.hankel.energy import H2_NORM
from refssm.hankel.gramians import GRAMIANS, GRAMIANS_DISCRETE, outer
from refssm.hankel.transfer import TRANSFER, TRANSFER_DISCRETE

SMALL = 16  # states whose singular vectors are found three times, by sweeps of NumPy
NEGLIGIBLE = 1e-9
SQUARINGS = 24  # of A: all but modes slower than 2^-24 have decayed
STEPS = 30  # of Newton's iteration, at most
HARDLY = 1 / 16  # what is a little less is measured again before it is refused
NEAR = 1e-4  # so near to its limit, one more step ends the iteration in single precision

# x = M⁻¹ B and g = M⁻ᴴ C* dG at every point


def by_inverses(M, B, C, dG):
    """From one inverse of M."""
    inverse = eliminated(M, np.eye(M.shape[-1], dtype=M.real.dtype))
    driven = C.conj()[..., None, :] * dG[..., :, None]
    return times(inverse, B[..., None, :]), times(adjoint(inverse), driven)


def scaled_later(M, B, C, dG):
    """M⁻ᴴ C* first, then times dG, in the reverse order of the states."""
    M, B, C = M[..., ::-1, ::-1], B[..., ::-1], C[..., ::-1]
    x = eliminated(M, B[..., None, :, None])[..., 0]
    g = eliminated(adjoint(M), C.conj()[..., None, :, None])[..., 0] * dG[..., :, None]
    return x[..., ::-1], g[..., ::-1]


def around(A, s):
    """M = sI − A."""
    return s[..., :, None, None] * np.eye(A.shape[-1], dtype=A.real.dtype) - A[..., None, :, :]


def around_discrete(A, z):
    """M = I − A/z."""
    return np.eye(A.shape[-1], dtype=A.real.dtype) - A[..., None, :, :] / z[..., :, None, None]


def continuous(both):
    """M = sI − A;  dA = Σ g xᴴ, dB = Σ g, dC = Σ dG x*, dD = Σ dG, ds = −xᴴ g."""

    def vjp(dG, A, B, C, D, s):
        x, g = both(around(A, s), B, C, dG)
        dA = np.einsum("...li,...lj->...ij", g, x.conj())
        return dA, g.sum(-2), _row(dG, x), dG.sum(-1), -(x.conj() * g).sum(-1)

    return vjp


def discrete(both):
    """M = I − A/z;  dA = Σ g xᴴ/z*, dz = −(x − B)ᴴ g/z*, the others as before."""

    def vjp(dG, A, B, C, D, z):
        x, g = both(around_discrete(A, z), B, C, dG)
        r = 1 / z.conj()
        dA = np.einsum("...l,...li,...lj->...ij", r, g, x.conj())
        dz = -r * ((x - B[..., None, :]).conj() * g).sum(-1)
        return dA, g.sum(-2), _row(dG, x), dG.sum(-1), dz

    return vjp


def responses(both, points):
    """G = C M⁻¹ B + D, where `points` makes M."""

    def program(A, B, C, D, s):
        x, _ = both(points(A, s), B, C, np.zeros_like(s))
        return (C[..., None, :] * x).sum(-1) + D[..., None]

    return program


def in_another_basis(program):
    """The same of the system in another orthonormal basis of the state: H A H, H B, C H.

    H is symmetric and has no small entries. A Hessenberg form or M = Q R does so, too: errors are
    relative to norms where zeros of A, B and C keep inputs from outputs.
    """

    def program_there(A, B, C, D, s):
        H = hartley(A.shape[-1], A.real.dtype)
        return program(product(H, product(A, H)), times(H, B), times(H, C), D, s)

    return program_there


def where_hardly_reached(program, points):
    """`in_another_basis` where the input hardly reaches the output: zeros, or small entries.

    There Σ |C_n x_n| with x = M⁻¹ B is below `HARDLY` ‖C‖ ‖x‖. The errors of any orthogonal method
    are above those of elimination by the quotient of these two, without limit.
    """

    def program_there(A, B, C, D, s):
        x, size = eliminated(points(A, s), B[..., None, :, None])[..., 0], np.linalg.norm
        moduli = (np.abs(C)[..., None, :] * np.abs(x)).sum(-1)
        hardly = moduli <= HARDLY * size(C, axis=-1)[..., None] * size(x, axis=-1)
        if not hardly.any():
            return None
        rotated = in_another_basis(program)(A, B, C, D, s)
        return np.where(hardly, rotated, program(A, B, C, D, s))

    return program_there


def hartley(n, dtype):
    """H_jk = (cos 2πjk/n + sin 2πjk/n)/√n: symmetric, H² = I."""
    c, s = turned(np.outer(np.arange(n), np.arange(n)), n, np.float64)
    return ((c + s) / np.sqrt(max(n, 1))).astype(dtype)


def _row(dG, x):
    return (dG[..., :, None] * x.conj()).sum(-2)


def _transfers(declared, through):
    of_inverses, later = through(by_inverses), through(scaled_later)
    return {"eliminated": declared, "by_inverses": of_inverses, "scaled_later": later}


# Solutions of A X + X Aᴴ + F = 0 and of X = A X Aᴴ + F


def stein_doubled(A, F):
    """X = Σ_k A^k F Aᴴ^k: X_{2m} = X_m + A^m X_m Aᴴ^m [smith1968]."""
    for _ in range(SQUARINGS):
        F, A = F + product(product(A, F), adjoint(A)), product(A, A)
        if np.abs(A).max(initial=0) < NEGLIGIBLE:  # and A F Aᴴ by its square
            break
    return F


def lyapunov_doubled(A, F):
    """The same sum for the Cayley map (s − A)⁻¹ (s + A), s a mean of the eigenvalues."""
    I, s = _identity(A), _mean_size(A)
    R = eliminated(s * I - A, I)
    return stein_doubled(product(R, s * I + A), 2 * s * product(product(R, F), adjoint(R)))


def lyapunov_by_sign(A, F):
    """A ← ½ (c A + A⁻¹/c) tends to −I, and F to 2 X [roberts1980]."""
    I, near = _identity(A), False
    for step in range(STEPS):
        c = 1 / _mean_size(A) if step < STEPS // 2 and not near else 1
        R = eliminated(A, I)
        F = (c * F + product(product(R, F), adjoint(R)) / c) / 2
        A, last = (c * A + R / c) / 2, near
        near = bool((np.abs(A + I) < NEAR).all())  # the next step squares this distance
        if last:
            break
    return F / 2


def stein_by_sign(A, F):
    """Lyapunov's equation of (A + I)⁻¹ (A − I)."""
    I = _identity(A)
    R = eliminated(A + I, I)
    return lyapunov_by_sign(product(R, A - I), 2 * product(product(R, F), adjoint(R)))


def _identity(A):
    return np.eye(A.shape[-1], dtype=A.real.dtype)


def _mean_size(A):
    """The geometric mean of the eigenvalues' moduli, as a power of two."""
    if A.size == 0:
        return A.real.dtype.type(1)
    size = np.linalg.slogdet(A.astype(np.result_type(A, np.float64)))[1] / A.shape[-1]
    rounded = np.exp2(np.round(np.clip(size / np.log(2), -60, 60)))
    return rounded.astype(A.real.dtype)[..., None, None]


def through_lyapunov(solve):
    """dA = W P + Q V,  dB = W B,  dC = C Vᴴ."""
    return _gradients(solve, lambda W, P, Q, V, A: product(W, P) + product(Q, V))


def through_stein(solve):
    """dA = W A P + Q A V,  dB = W B,  dC = C Vᴴ."""

    def joined(W, P, Q, V, A):
        return product(W, product(A, P)) + product(Q, product(A, V))

    return _gradients(solve, joined)


def _gradients(solve, joined):
    def vjp(dP, dQ, A, B, C):
        back, row = adjoint(A), C.conj()
        P, Q = solve(A, outer(B, B)), solve(back, outer(row, row))
        W, V = solve(back, dP + adjoint(dP)), solve(A, dQ + adjoint(dQ))
        return joined(W, P, Q, V, A), times(W, B), times(V, row).conj()

    return vjp


def energies(solve):
    """√(Bᴴ Q B), from the gramian that the reference of `h2_norm` does not take."""

    def program(A, B, C):
        row = C.conj()
        energy = (B.conj() * times(solve(adjoint(A), outer(row, row)), B)).sum(-1).real
        return np.sqrt(np.maximum(energy, 0 * energy))

    return program


def through_energies(solve):
    """dA = g Q P,  dB = g Q B,  dC = g C P,  g = dh/h."""

    def vjp(dh, A, B, C):
        back, row = adjoint(A), C.conj()
        P, Q = solve(A, outer(B, B)), solve(back, outer(row, row))
        h = energies(solve)(A, B, C)
        g = np.where(h > 0, dh / np.where(h > 0, h, 1), 0)[..., None]
        return g[..., None] * product(Q, P), g * times(Q, B), g * times(P, row).conj()

    return vjp


class KeptVectors:
    """`vectors`, kept until other arrays come: all programs of a case get the same arrays."""

    def __init__(self):
        self.of, self.found = (), ()

    def __call__(self, *arrays):
        if not self.of or any(a is not b for a, b in zip(self.of, arrays, strict=True)):
            self.of, self.found = arrays, vectors(*arrays)
        return self.found


def of_values(cut, found_for):
    """The gradient of singular values for pieces of the cotangent, with the vectors found once."""

    def vjp(dsigma, w, B, C):
        if w.shape[-1] > SMALL:
            return None
        found = found_for(w, B, C)
        return cut(lambda piece, *case: pulled_back(piece, *found, *case))(dsigma, w, B, C)

    return vjp


def _gramians(declared, through, doubled, by_sign):
    """The declared function takes LAPACK's Schur form, as most programs do: it errs more."""
    return {"schur": declared, "doubled": through(doubled), "by_sign": through(by_sign)}


_VECTORS = KeptVectors()
_CONTINUOUS, _DISCRETE = (lyapunov_doubled, lyapunov_by_sign), (stein_doubled, stein_by_sign)
OUTPUTS = {
    op.name: _transfers(op.reference, partial(responses, points=points))
    | {"where_hardly_reached": where_hardly_reached(op.reference, points)}
    for op, points in ((TRANSFER, around), (TRANSFER_DISCRETE, around_discrete))
}
OUTPUTS[H2_NORM.name] = _gramians(H2_NORM.reference, energies, *_CONTINUOUS)
AGAIN_OUTPUTS = {
    op.name: {"in_another_basis": in_another_basis(op.reference)}
    for op in (TRANSFER, TRANSFER_DISCRETE)
}
GRADIENTS = {
    TRANSFER.name: _transfers(TRANSFER.bare_vjp, continuous),
    TRANSFER_DISCRETE.name: _transfers(TRANSFER_DISCRETE.bare_vjp, discrete),
    HANKEL_SINGULAR_VALUES_DIAGONAL.name: {
        "whole": of_values(lambda function: function, _VECTORS),
        "in_pieces": of_values(in_pieces, _VECTORS),
        "interleaved": of_values(interleaved, _VECTORS),
    },
    H2_NORM.name: _gramians(H2_NORM.bare_vjp, through_energies, *_CONTINUOUS),
    GRAMIANS.name: _gramians(GRAMIANS.bare_vjp, through_lyapunov, *_CONTINUOUS),
    GRAMIANS_DISCRETE.name: _gramians(GRAMIANS_DISCRETE.bare_vjp, through_stein, *_DISCRETE),
}
