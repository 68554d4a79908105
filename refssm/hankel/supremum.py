"""H-infinity norm: Hamiltonian eigenvalues show where |G| crosses a level γ [bruinsma1990].

    ‖G‖∞ = sup_ω |G(iω)|,   G(s) = D + C (sI − A)⁻¹ B

|G(iω)| = γ > |D| exactly if iω is an eigenvalue of

    [[F, B Bᴴ/ρ], [−γ² CᴴC/ρ, −Fᴴ]],   F = A + B D* C/ρ,   ρ = γ² − |D|²

Between two such frequencies |G| is above or below γ throughout. The largest value midway is the
next γ; convergence is quadratic.
"""

import numpy as np

from refssm.hankel.gramians import stable_system

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
