"""Honest projections: by powers, trees, kernels, quadrature, differences and exponentials."""

import numpy as np
from scipy import special

from honest import Honest
from honest.discretize.rules import by_scipy, pade_of
from honest.scan.dense import SCANS, doubling
from refssm._numerics.broadcasting import unbroadcast
from refssm._numerics.expm import expm
from refssm.discretize import DISCRETIZE_ZOH
from refssm.discretize.hold import zoh_exponent
from refssm.hippo import HIPPO_PROJECT, HIPPO_PROJECT_LEGS


def augmented(exponential):
    """Ā and B̄ as blocks of one exponential."""

    def held(A, B, dt):
        n, E = A.shape[-1], exponential(zoh_exponent(A, B[..., None], dt))
        return E[..., :n, :n], E[..., :n, n]

    return held


def run(held, scan):
    """The states by `scan`, with Ā and B̄ from `held`."""

    def project(A, B, u, dt):
        A_bar, B_bar = held(A, B, dt)
        return scan(A_bar, B_bar[..., None, :] * u[..., None])

    return project


def squared(F):
    """(e^{F/2})²."""
    half = expm(F / 2)
    return half @ half


def as_kernel(A, B, u, dt):
    """x_k = Σ_j Ā^j B̄ u_{k−j}."""
    A_bar, column = augmented(expm)(A, B, dt)
    batch = np.broadcast_shapes(column.shape[:-1], u.shape[:-1])
    x = np.zeros((*batch, u.shape[-1], A.shape[-1]), np.result_type(column, u))
    for j in range(u.shape[-1]):
        x[..., j:, :] += column[..., None, :] * u[..., : u.shape[-1] - j, None]
        column = (A_bar @ column[..., None])[..., 0]
    return x


def in_double(op):
    """The reference in double precision, rounded at the end."""

    def wide(*args, **statics):
        y = op.reference(*(a.astype(np.result_type(a, np.float64)) for a in args), **statics)
        types = op.output_types(*args)
        if len(types) > 1:
            return tuple(a.astype(t) for a, t in zip(y, types, strict=True))
        return y.astype(types[0])

    return wide


def adjoint_by_doubling(dx, A, B, u, dt):
    """States and adjoint by doubling; through the hold by the reference's VJP."""
    A_bar, B_bar = augmented(expm)(A, B, dt)
    back = np.broadcast_to(A_bar, (*dx.shape[:-2], *A_bar.shape[-2:])).mT.conj()
    g = doubling(back, dx[..., ::-1, :])[..., ::-1, :]
    x = run(augmented(expm), doubling)(A, B, u, dt)
    dA_bar = g[..., 1:, :].mT @ x[..., :-1, :].conj()
    dB_bar = (g * u[..., None].conj()).sum(-2)
    du = (g @ B_bar.conj()[..., None])[..., 0]
    hold = DISCRETIZE_ZOH.bare_vjp(dA_bar, dB_bar[..., None], A, B[..., None], dt)
    return hold[0], hold[1][..., 0], unbroadcast(du, u), hold[2]


def by_quadrature(k, n, real):
    """½√(2i+1) ∫ P_i over each of k + 1 equal parts, by Gauss quadrature that is exact here."""
    nodes, weights = np.polynomial.legendre.leggauss(n // 2 + 1)
    x = (2 * np.arange(k + 1)[:, None] + 1 + nodes) / (k + 1) - 1
    P = np.polynomial.legendre.legvander(x, max(n - 1, 0))[..., :n]
    mean = (weights[:, None] * P).sum(-2) / 2 / (k + 1)
    return (np.sqrt(2 * np.arange(n) + 1) * mean).astype(real)


def by_differences(k, n, real):
    """The same integrals, from SciPy's polynomials at the ends of the parts, in the given type."""
    x = (2 * np.arange(k + 2, dtype=real) / (k + 1) - 1)[:, None]
    i = np.arange(1, n, dtype=real)
    ends = special.eval_legendre(i + 1, x) - special.eval_legendre(i - 1, x)
    parts = np.diff(ends, axis=0) / (2 * np.sqrt(2 * i + 1))
    return np.concatenate([np.full((k + 1, 1), 1 / real.type(k + 1)), parts], -1)[:, :n]


def weighted(pieces):
    """The integrals of `pieces` times the inputs."""

    def project(u, *, n):
        c = np.zeros((*u.shape, n), u.dtype)
        for k in range(u.shape[-1]):
            c[..., k, :] = u[..., : k + 1] @ pieces(k, n, np.finfo(u.dtype).dtype)
        return c

    def vjp(dc, u, *, n):
        du = np.zeros(dc.shape[:-1], dc.dtype)
        for k in range(u.shape[-1]):
            du[..., : k + 1] += dc[..., k, :] @ pieces(k, n, np.finfo(u.dtype).dtype).T
        return (unbroadcast(du, u),)

    return project, vjp


def legs(n, real):
    """LegS's A and B."""
    i = np.arange(n)
    B = np.sqrt(2 * i + 1.0)
    return (-np.tril(np.outer(B, B), -1) - np.diag(i + 1.0)).astype(real), B.astype(real)


def by_exponentials(exponential):
    """c_k = e^{A log((k+1)/k)} c_{k−1} + … u_k, in the given type."""

    def project(u, *, n):
        real = np.finfo(u.dtype).dtype
        A, B = legs(n, real)
        G = zoh_exponent(A, B[:, None], np.ones((), real))
        c = np.zeros((*u.shape, n), u.dtype)
        c[..., 0, :1] = u[..., :1]
        if n:
            c[..., 0, 1:] += 0 * u[..., :1]  # NaN reaches all
        for k in range(1, u.shape[-1]):
            E = exponential(G * np.log1p(1 / real.type(k))).astype(real)
            c[..., k, :] = c[..., k - 1, :] @ E[:n, :n].T + E[:n, n] * u[..., k, None]
        return c

    return project


def by_jumps(u, *, n):
    """c = −Σ_j (u_{j+1} − u_j) ∫ P_i from the start to j + 1, by summation by parts."""
    real = np.finfo(u.dtype).dtype
    c = np.zeros((*u.shape, n), u.dtype)
    for k in range(u.shape[-1]):
        until = np.cumsum(by_quadrature(k, n, np.dtype(float)), axis=0).astype(real)
        jumps = u[..., :k] - u[..., 1 : k + 1]
        c[..., k, :] = jumps @ until[:k] + u[..., k, None] * until[k]
    return c


QUADRATURE, DIFFERENCES = weighted(by_quadrature), weighted(by_differences)
ANY, LEGS = HIPPO_PROJECT, HIPPO_PROJECT_LEGS
IMPLEMENTATIONS = [
    Honest(ANY.name, "doubling", run(augmented(expm), doubling), adjoint_by_doubling),
    *(Honest(ANY.name, name, run(augmented(expm), scan)) for name, scan in SCANS.items()),
    Honest(ANY.name, "pade", run(augmented(pade_of), SCANS["by_matmul"])),
    Honest(ANY.name, "halved", run(augmented(squared), SCANS["by_matmul"])),
    Honest(ANY.name, "kernel", as_kernel),
    Honest(ANY.name, "in_double", in_double(ANY)),
    Honest(LEGS.name, "quadrature", *QUADRATURE),
    Honest(LEGS.name, "differences", *DIFFERENCES),
    Honest(LEGS.name, "jumps", by_jumps),
    Honest(LEGS.name, "exponentials", by_exponentials(expm)),
    Honest(LEGS.name, "scipy_expm", by_exponentials(by_scipy)),
    Honest(LEGS.name, "in_double", in_double(LEGS)),
]
