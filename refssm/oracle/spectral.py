"""Oracle for refssm.spectral: eigenvectors of the matrix, with enough digits for the last one."""

# pyright: reportAttributeAccessIssue=false
# (mpmath adds its functions to the context on import)

from mpmath import mp

FALLING = 4  # extra digits per eigenvalue


def spectral_filters(*, l, k):
    """Z_ij = 2/((i+j)³ − (i+j)) = Σ σ φ φᵀ; descending, the first entry of each φ positive."""
    with mp.workdps(mp.dps + FALLING * l):
        Z = mp.matrix(l)
        for i in range(l):
            for j in range(l):
                s = mp.mpf(i + j + 2)
                Z[i, j] = 2 / (s**3 - s)
        sigma, V = mp.eigsy(Z)
        top = [l - 1 - i for i in range(k)]
        phi = [[V[j, i] * mp.sign(V[0, i]) for j in range(l)] for i in top]
        return [sigma[i] for i in top], phi
