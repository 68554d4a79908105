"""Transfer functions: the gain of a system at one frequency [zhou1996].

    continuous   G(s) = D + C (sI − A)⁻¹ B
    discrete     G(z) = D + C (I − A/z)⁻¹ B

The input e^{st} gives the output G(s) e^{st}, and z^k gives G(z) z^k. In our convention the state
at a step includes that step's input, x_k = A x_{k−1} + B u_k, so G(z) = D + Σ_k C A^k B z^{−k}: at
the roots of unity, D plus the discrete Fourier transform of the kernel. SciPy's recurrence gives D
+ C (zI − A)⁻¹ B, which is one step later.

H-infinity norm, ‖G‖∞ = sup_ω |G(iω)|: Hamiltonian eigenvalues show where |G| crosses a level γ
[bruinsma1990]. |G(iω)| = γ > |D| exactly if iω is an eigenvalue of

    [[F, B Bᴴ/ρ], [−γ² CᴴC/ρ, −Fᴴ]],   F = A + B D* C/ρ,   ρ = γ² − |D|²

Between two such frequencies |G| is above or below γ throughout. The largest value midway is the
next γ; convergence is quadratic.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm._numerics.contraction import einsum
from refssm._numerics.elimination import response, solved
from refssm.domains import (
    contraction_matrices,
    frequencies,
    outer_points,
    projections,
    settling_matrices,
)
from refssm.hankel.gramians import stable_system


def transfer(A, B, C, D, s):
    """G(s) = D + C (sI − A)⁻¹ B.

    Signature ``(n,n),(n),(n),(),(l)->(l)``: `A`, `B`, `C` and `D` of the continuous system, `s` the
    l complex frequencies, iω for a sine; leading axes broadcast. Any of float32, float64,
    longdouble and their complex types; the result has ``np.result_type`` of all. `C` is not
    conjugated. Units: `s` that of `A`, `G` that of `D`. Computed by elimination at every point, O(l
    n³). Errors are measured point by point, as those of a backward stable solve between B and C.

    A point `s` exactly at an eigenvalue of `A` gives infinity or NaN. NaN in `s` stays at its
    point; NaN in other arguments reaches all points. Raises ValueError if sizes disagree, TypeError
    for other types. Source: [zhou1996].

    >>> import refssm
    >>> refssm.transfer([[-1.0]], [1.0], [2.0], 0.5, [0j, 1j])
    array([2.5+0.j, 1.5-1.j])
    """
    M = _shifted(A, s)
    return D[..., None] + response(M, B[..., None, :], C[..., None, :])


def transfer_vjp(dG, A, B, C, D, s):
    """M = sI − A, x = M⁻¹ B, g = M⁻ᴴ C* dG at every point;
    dA = Σ g xᴴ, dB = Σ g, dC = Σ dG x*, dD = Σ dG, ds = −xᴴ g.

    Returns `(dA, dB, dC, dD, ds)`, shaped like the arguments.
    """
    dG = dG.astype(np.result_type(dG, A, B, C, D, s))
    x, g = _both_ways(_shifted(A, s), B, C, dG)
    dA = einsum("...li,...lj->...ij", g, x.conj())
    ds = -(x.conj() * g).sum(-1)
    gradients = (dA, g.sum(-2), _row(dG, x), dG.sum(-1), ds)
    return unbroadcast_each(gradients, (A, B, C, D, s))


def _shifted(A, s):
    """sI − A, (…, l, n, n)."""
    I = np.eye(A.shape[-1], dtype=np.finfo(A.dtype).dtype)
    return s[..., :, None, None] * I - A[..., None, :, :]


def _both_ways(M, B, C, dG):
    """M⁻¹ B and M⁻ᴴ C* dG, (…, l, n)."""
    adjoint = M.conj().swapaxes(-1, -2)
    driven = C.conj()[..., None, :] * dG[..., :, None]
    return solved(M, B[..., None, :, None])[..., 0], solved(adjoint, driven[..., None])[..., 0]


def _row(dG, x):
    """Σ_l dG_l x_l*."""
    return (dG[..., :, None] * x.conj()).sum(-2)


TRANSFER = Operator(
    reference=transfer,
    signature="(n,n),(n),(n),(),(l)->(l)",
    inputs={
        "A": settling_matrices,
        "B": projections,
        "C": projections,
        "D": projections,
        "s": frequencies,
    },
    outputs=("G",),
    batch="d, d, d, d, d",
    traits=frozenset({"linear:B,D", "linear:C,D"}),
    citation="zhou1996",
    tags=("freqresp", "frequency response of a continuous system", "resolvent"),
)
transfer = TRANSFER.checked(transfer)
transfer_vjp = TRANSFER.checked_vjp(transfer_vjp)


def transfer_discrete(A, B, C, D, z):
    """G(z) = D + C (I − A/z)⁻¹ B = D + Σ_k C A^k B z^{−k}.

    Signature ``(n,n),(n),(n),(),(l)->(l)``: `A`, `B`, `C` and `D` of the discrete system, `z` the l
    complex points, e^{iω} for a sine; leading axes broadcast. Types, errors and NaN are those of
    `transfer`, infinite or NaN if `z` is an eigenvalue of `A`; NaN at z = 0. Only `G` and `D` have
    units. K_0 = C B is part of the first output, so G → D + C B for z → ∞. Source: [zhou1996].

    >>> import refssm
    >>> refssm.transfer_discrete([[0.5]], [1.0], [2.0], 0.0, [1 + 0j, -1 + 0j])
    array([4.        +0.j, 1.33333333+0.j])
    """
    M = _damped(A, z)
    return D[..., None] + response(M, B[..., None, :], C[..., None, :])


def transfer_discrete_vjp(dG, A, B, C, D, z):
    """M = I − A/z, x = M⁻¹ B, g = M⁻ᴴ C* dG at every point;
    dA = Σ g xᴴ/z*, dB = Σ g, dC = Σ dG x*, dD = Σ dG, dz = −(A x)ᴴ g / z*².

    Returns `(dA, dB, dC, dD, dz)`, shaped like the arguments.
    """
    dG = dG.astype(np.result_type(dG, A, B, C, D, z))
    x, g = _both_ways(_damped(A, z), B, C, dG)
    r = 1 / z.conj()
    dA = einsum("...li,...lj->...ij", r[..., None] * g, x.conj())
    Ax = einsum("...ij,...lj->...li", A, x)
    dz = -r * (r * (Ax.conj() * g).sum(-1))
    gradients = (dA, g.sum(-2), _row(dG, x), dG.sum(-1), dz)
    return unbroadcast_each(gradients, (A, B, C, D, z))


def _damped(A, z):
    """I − A/z, (…, l, n, n)."""
    I = np.eye(A.shape[-1], dtype=np.finfo(A.dtype).dtype)
    return I - A[..., None, :, :] / z[..., :, None, None]


TRANSFER_DISCRETE = Operator(
    reference=transfer_discrete,
    signature="(n,n),(n),(n),(),(l)->(l)",
    inputs={
        "A": contraction_matrices,
        "B": projections,
        "C": projections,
        "D": projections,
        "z": outer_points,
    },
    outputs=("G",),
    batch="d, d, d, d, d",
    traits=frozenset({"linear:B,D", "linear:C,D"}),
    citation="zhou1996",
    tags=(
        "dfreqresp",
        "frequency response of a discrete system",
        "z-transform",
        "generating function",
    ),
)
transfer_discrete = TRANSFER_DISCRETE.checked(transfer_discrete)
transfer_discrete_vjp = TRANSFER_DISCRETE.checked_vjp(transfer_discrete_vjp)


STEPS = 60  # five or six are enough
ABOVE = 2.0**-40  # a level lies above the largest value found by this fraction


def h_infinity_norm(A, B, C, D):
    """sup_ω |G(iω)|: the largest amplification of a sine; its square is the largest energy gain.

    Signature ``(n,n),(n),(n),()->()`` of a continuous system, all Re λ(A) < 0; leading axes
    broadcast. Computed in double precision. The result is a value of |G|; the supremum exceeds it
    by at most a fraction 2⁻³⁹, plus the rounding errors of nearly double eigenvalues, √u ‖A‖. For a
    discrete system, pass the continuous system of its bilinear map: the norm is the same.

    Raises ValueError if sizes disagree or an eigenvalue is not left of the imaginary axis,
    TypeError for other types. Source: [bruinsma1990].

    >>> from refssm import h_infinity_norm
    >>> round(float(h_infinity_norm([[-0.5]], [2.0], [3.0], 1.0)), 12)
    13.0
    """
    A, B, C = stable_system("h_infinity_norm", A, B, C)
    D = np.asarray(D)
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1], D.shape)
    n = A.shape[-1]
    wide = [x.astype(np.result_type(x, np.float64)) for x in (A, B, C, D)]
    cores = ((n, n), (n,), (n,), ())
    each = [np.broadcast_to(x, batch + core) for x, core in zip(wide, cores, strict=True)]
    norms = np.empty(batch)
    for i in np.ndindex(*batch):
        norms[i] = _supremum(*(x[i] for x in each))
    return norms[()]


def _supremum(A, B, C, D):
    """The norm of one system."""
    poles = np.linalg.eigvals(A)
    resonances = np.concatenate([[0.0], poles.imag, np.abs(poles), -np.abs(poles)])
    largest = max(abs(D), _modulus(A, B, C, D, resonances))
    for _ in range(STEPS):
        crossings = _crossings(A, B, C, D, largest * (1 + ABOVE))
        midways = (crossings[1:] + crossings[:-1]) / 2
        higher = _modulus(A, B, C, D, np.concatenate([crossings, midways]))
        if higher <= largest * (1 + ABOVE):
            break
        largest = higher
    return max(largest, higher) if largest else 0.0


def _modulus(A, B, C, D, frequencies) -> float:
    """The largest |G(iω)| at the given frequencies."""
    M = 1j * frequencies[:, None, None] * np.eye(len(A)) - A
    G = D + (C * np.linalg.solve(M, np.broadcast_to(B[:, None], (*M.shape[:2], 1)))[..., 0]).sum(-1)
    return float(np.abs(G).max(initial=0))


def _crossings(A, B, C, D, level):
    """Frequencies with |G(iω)| = `level`, ascending: eigenvalues near the axis, a few too many."""
    rho = level**2 - abs(D) ** 2
    if not rho > 0:
        return np.zeros(0)
    F = A + np.outer(B, np.conj(D) * C) / rho
    upper = np.concatenate([F, np.outer(B, B.conj()) / rho], axis=1)
    lower = np.concatenate([-(level**2 / rho) * np.outer(C.conj(), C), -F.conj().T], axis=1)
    H = np.concatenate([upper, lower])
    roots = np.linalg.eigvals(H)
    # a double eigenvalue is accurate only to √u; a frequency too many costs an evaluation, a
    # missing one makes the result wrong
    near = np.abs(roots.real) <= 4 * np.sqrt(np.finfo(float).eps) * np.linalg.norm(H)
    return np.sort(roots.imag[near])
