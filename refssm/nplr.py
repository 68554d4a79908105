"""HiPPO matrices as normal plus low rank: A = V (diag w − P Pᴴ) Vᴴ, with unitary V.

S4 computes with this form: (z − A)⁻¹ is a Cauchy kernel plus a correction of the rank of P. Never
diagonalize A itself: the eigenvectors of LegS have a condition number of 1e23 at n = 32.

The judge compares invariants, quantities that no change of basis alters. Eigenvectors have
a free phase, modes a free order, a repeated eigenvalue a free basis, and any unitary matrix may
rotate the columns of P. None of that changes the invariants.

The modes of a real normal matrix ρ I + S with skew S are conjugate pairs, exactly. S has the
eigenvalues ±iσ, and 0 if n is odd. iS is Hermitian, so `eigh` finds them; only σ > 0 is used, the
other half is the conjugate. `eigh` makes the eigenvectors v of iσ and v* of −iσ orthogonal up to
u ‖S‖/σ, which for LegS is 22 n u at n = 64 and 500 n u at 512. Therefore one step of Newton's
iteration for the polar factor orthogonalizes the matrix of √2 Re v, √2 Im v and the real mode.

The Legendre measures, LegS and LegT: with q_i = √(2i+1), p pᵀ (LegT: P Pᵀ with two columns) is
minus the symmetric part of A, up to a multiple of I, so A + P Pᵀ = ρ I + S with skew S:

    LegS  p = q/√2,                     ρ = −½,  S_ik = ½ q_i q_k sign(k − i)
    LegT  P = odd and even half of q/√w,  ρ = 0,  S_ik = q_i q_k sign(k − i)/w for i − k odd

No eigenvector of S is orthogonal to p: it would also be an eigenvector of A = ρ I + S − P Pᵀ with
real part ρ, but A has no such eigenvalue. Nor is one orthogonal to b. In LegS b = √2 p. In LegT an
eigenvector is, up to a phase, real in even and imaginary in odd states; if it were orthogonal to b,
it would be orthogonal to both halves of p.

LagT and the Fourier windows have waves as modes, in closed form. LagT (α = 0): A + p pᵀ = −β/2 + S
with p = √½·1 and S_ik = ½ sign(k − i). A wave v_j = e^{iθj} with e^{iθn} = −1 changes its sign
after n places, as the rows of S do, so it is an eigenvector. Its eigenvalue is
½ Σ_{0<d<n} e^{iθd} = (i/2) cot(θ/2).

Fourier: A + p pᵀ = S has the blocks [[0, −ω], [ω, 0]], ω = 2πk/w, for the cosine and the sine of
frequency k; the vectors (1, ∓i)/√2 belong to ±iω. Frequency 0 has the constant and the state of sin
0, which never changes: the eigenvalue 0 is double, with eigenvectors e_0 and e_1.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from refssm._declaration.contract import INVARIANTS, Invariant
from refssm._declaration.operator import Operator
from refssm.domains import (
    block_counts,
    block_orders,
    even_mode_orders,
    laguerre_decays,
    mode_orders,
    orders,
    windows,
)

MOMENTS = 4


def system_invariants(w, P, B, V, **_):
    """Invariants of A = V (diag w − P Pᴴ) Vᴴ and b = V B, and the moments Bᴴ (diag w − P Pᴴ)^j B.

    The moments do not contain V: they check w, P and B against each other.
    """
    VP, low_rank, b = V @ P, _norm(P) ** 2, _norm(B)
    N, L = V * w @ V.conj().T, VP @ VP.conj().T
    A = _norm(w) + low_rank  # forming A + p pᵀ leaves A's rounding errors there
    x, moments = B, []
    for j in range(MOMENTS):
        factors = j + 2  # each factor has its own error
        moments.append(Invariant(f"moment {j}", np.vdot(B, x), factors * b**2 * A**j))
        x = w * x - P @ (P.conj().T @ x)
    return (
        Invariant("basis VᴴV", V.conj().T @ V, 1.0),
        Invariant("normal part", N, A),
        Invariant("spectrum", w, A, matched=True, ordered=True),
        Invariant("low-rank part", L, low_rank),
        Invariant("matrix A", N - L, A),
        Invariant("input b", V @ B, b),
        *moments,
    )


def normal_invariants(w, V, **_):
    """Invariants of the normal matrix V diag(w) Vᴴ."""
    return (
        Invariant("basis VᴴV", V.conj().T @ V, 1.0),
        Invariant("normal part", V * w @ V.conj().T, _norm(w)),
        Invariant("spectrum", w, _norm(w), matched=True, ordered=True),
    )


def matrix_invariants(A, **_):
    """The matrix A: A + p pᵀ cancels on the diagonal, so its error there is that of A."""
    return (Invariant("matrix", A, _norm(A)),)


def _norm(x):
    return float(np.sqrt((np.abs(x) ** 2).sum()))


class Modes(NamedTuple):
    """The modes with Im w > 0, ascending, and the real mode if there is one."""

    frequencies: np.ndarray  # Im w (n/2)
    upper: np.ndarray  # their eigenvectors (n, n/2)
    middle: np.ndarray  # the real eigenvector (n, n mod 2)

    def poles(self, real_part) -> NDArray[np.complex128]:
        """w, ascending by imaginary part; the real part is exactly `real_part`."""
        none = np.zeros(self.middle.shape[-1])
        w = np.empty(len(self.upper), complex)
        w.real = real_part
        w.imag = np.concatenate([-self.frequencies[::-1], none, self.frequencies])
        return w

    def basis(self) -> np.ndarray:
        """V, with columns in the order of `poles`."""
        return paired(self.upper, self.middle)

    def rotated(self, x) -> np.ndarray:
        """Vᴴx of a real vector x; pairs are exactly conjugate."""
        return paired(x @ self.upper.conj(), x @ self.middle)


def paired(upper, middle) -> np.ndarray:
    """Conjugates of the last axis of `upper` in reverse, `middle`, `upper`."""
    return np.concatenate([upper[..., ::-1].conj(), middle, upper], axis=-1)


def skew_modes(S, b) -> Modes:
    """The modes of a real skew S; vᴴb is real and positive for every eigenvector v.

    S has at most one eigenvalue 0, and no eigenvector is orthogonal to b.
    """
    half = len(S) // 2
    frequencies, vectors = np.linalg.eigh(-1j * S)
    first = len(S) - half
    X = _orthogonalized(_real_basis(vectors[:, half:first], vectors[:, first:]))
    middle = X[:, :1] if first > half else X[:, :0]
    upper = (X[:, first - half : first] + 1j * X[:, first:]) / np.sqrt(2)
    return Modes(
        frequencies[first:], upper * _phases(b @ upper.conj()), middle * _phases(b @ middle)
    )


def _real_basis(middle, upper):
    """The columns of `middle` without their phase, then √2 Re and √2 Im of those of `upper`."""
    turned = middle * _phases(np.sqrt((middle**2).sum(0))).conj()
    return np.concatenate([turned.real, np.sqrt(2) * upper.real, np.sqrt(2) * upper.imag], axis=1)


def _orthogonalized(X):
    """X (3I − XᵀX)/2: an orthogonality error ε becomes ¾ε²."""
    return 1.5 * X - 0.5 * (X @ (X.T @ X))


def _phases(c):
    """c/|c|."""
    return c / np.abs(c)


def nplr_legs(*, n):
    """HiPPO-LegS as A = V (diag w − P Pᴴ) Vᴴ, P = Vᴴp, B = Vᴴb: p_i = √(i+½), b_i = √(2i+1).

    Signature ``->(n),(n,1),(n),(n,n)``: w, P, B, V, complex128. `w` is sorted by its imaginary
    part, ascending; Re w is exactly −½; conjugate pairs are exact, w_{n−1−j} = w_j* and so on; for
    odd n the middle eigenvalue and its vector are real. V is unitary, with phases that make B and P
    = B/√2 real and positive. Units: `w` 1/time, in the logarithm of time.

    Raises ValueError if `n` is not an integer ≥ 1. Source: [gu2022s4, Theorem 1].

    >>> import refssm
    >>> w, P, B, V = refssm.nplr_legs(n=3)
    >>> w.round(4)
    array([-0.5-2.3979j, -0.5+0.j    , -0.5+2.3979j])
    >>> ((V * w - V @ P @ P.conj().T) @ V.conj().T).real.round(4) + 0.0
    array([[-1.    ,  0.    ,  0.    ],
           [-1.7321, -2.    ,  0.    ],
           [-2.2361, -3.873 , -3.    ]])
    """
    b = np.sqrt(2 * np.arange(n) + 1.0)
    modes = skew_modes(_skew_legs(n), b)
    B = np.abs(modes.rotated(b)).astype(complex)
    return modes.poles(-0.5), np.sqrt(0.5) * B[:, None], B, modes.basis()


def nplr_legt(*, n, window=1.0):
    """HiPPO-LegT over a window w as A = V (diag w_n − P Pᴴ) Vᴴ, of rank 2: P = Vᴴp, B = Vᴴb.

    The columns of p are the odd and the even half of √(2i+1)/√w, b_i = √(2i+1)/w.
    Signature ``->(n),(n,2),(n),(n,n)``: as `nplr_legs`, with Re w exactly 0 and B real and
    positive; P is complex. Units: `window` time, `w` 1/time.

    Raises ValueError if `n` is not an integer ≥ 1 or `window` is not a number above 0. Source:
    [gu2022s4, Theorem 1].

    >>> import refssm
    >>> w, P, B, V = refssm.nplr_legt(n=2)
    >>> w.imag.round(4), B.real.round(4)
    (array([-1.7321,  1.7321]), array([1.4142, 1.4142]))
    """
    i, q = np.arange(n), np.sqrt(2 * np.arange(n) + 1.0)
    modes = skew_modes(_skew_legt(n), q)  # of window 1: V does not depend on the window
    halves = np.stack([np.where(i % 2 == parity, q, 0) for parity in (1, 0)])
    P, B = modes.rotated(halves).T / np.sqrt(window), np.abs(modes.rotated(q)) / window + 0j
    slower = modes._replace(frequencies=modes.frequencies / window)
    return slower.poles(0.0), P, B, modes.basis()


def normal_legs(*, n):
    """HiPPO-N, the normal part of LegS: −½ on the diagonal, ½√((2i+1)(2k+1)) sign(k − i) off it.

    Signature ``->(n,n)``, float64. It is A + p pᵀ with p_i = √(i+½). Units: 1/time.

    Raises ValueError if `n` is not an integer ≥ 1. Source: [gu2022s4d].

    >>> import refssm
    >>> refssm.normal_legs(n=2).round(4)
    array([[-0.5  ,  0.866],
           [-0.866, -0.5  ]])
    """
    return _skew_legs(n) - 0.5 * np.eye(n)


def block_diagonal(*, n, blocks):
    """The modes of a block-diagonal matrix with `blocks` copies of HiPPO-N of size n/blocks: w, V.

    Signature ``->(n),(n,n)``, complex128: V diag(w) Vᴴ is the matrix, V⁻¹ = Vᴴ. Block after block,
    each sorted separately, with the phases of `nplr_legs`. Units: `w` 1/time.

    Raises ValueError if `n` or `blocks` is not an integer ≥ 1, or `blocks` does not divide `n`.
    Source: [smith2023s5].

    >>> import refssm
    >>> refssm.block_diagonal(n=4, blocks=2)[0].round(4)
    array([-0.5-0.866j, -0.5+0.866j, -0.5-0.866j, -0.5+0.866j])
    """
    if n % blocks:
        raise ValueError(f"block_diagonal: `blocks` must divide n={n}, got {blocks}")
    size = n // blocks
    w, _, _, V = NPLR_LEGS.reference(n=size)
    block, each = np.arange(blocks), np.zeros((blocks, size, blocks, size), complex)
    each[block, :, block, :] = V
    return np.tile(w, blocks), each.reshape(n, n)


def _skew_legs(n):
    """S_ik = ½ √((2i+1)(2k+1)) sign(k − i)."""
    i = np.arange(n)
    return 0.5 * np.sqrt(np.outer(2 * i + 1.0, 2 * i + 1)) * np.sign(i - i[:, None])


def _skew_legt(n):
    """w S_ik = √((2i+1)(2k+1)) sign(k − i) for odd i − k, else 0."""
    i = np.arange(n)
    return np.where((i - i[:, None]) % 2, 2 * _skew_legs(n), 0)


# what most of them have
_normal_form = partial(
    Operator,
    signature="->(n),(n,1),(n),(n,n)",
    inputs={},
    outputs=("w", "P", "B", "V"),
    contract=INVARIANTS,
    definition=system_invariants,
    lacks=frozenset({"vjp", "jit", "gpu", "enclosure"}),  # runs once: no mirror needed
)

NPLR_LEGS = _normal_form(
    reference=nplr_legs,
    parameters={"n": mode_orders},
    citation="gu2022s4, Theorem 1",
    tags=(
        "make_NPLR_HiPPO",
        "make_DPLR_HiPPO",
        "rank_correction legs",
        "normal plus low rank LegS",
    ),
)
nplr_legs = NPLR_LEGS.checked(nplr_legs)

NPLR_LEGT = _normal_form(
    reference=nplr_legt,
    signature="->(n),(n,2),(n),(n,n)",
    parameters={"n": mode_orders, "window": windows},
    citation="gu2022s4, Theorem 1",
    tags=("rank_correction legt", "normal plus low rank LegT"),
)
nplr_legt = NPLR_LEGT.checked(nplr_legt)

NORMAL_LEGS = _normal_form(
    reference=normal_legs,
    signature="->(n,n)",
    parameters={"n": orders},
    outputs=("A",),
    definition=matrix_invariants,
    citation="gu2022s4d",
    tags=("HiPPO-N", "S4D-LegS matrix"),
)
normal_legs = NORMAL_LEGS.checked(normal_legs)

BLOCK_DIAGONAL = _normal_form(
    reference=block_diagonal,
    signature="->(n),(n,n)",
    parameters={"n": block_orders, "blocks": block_counts},
    outputs=("w", "V"),
    definition=normal_invariants,
    citation="smith2023s5",
    tags=("S5 initialization blocks", "block-diagonal HiPPO-N eigenvalues"),
)
block_diagonal = BLOCK_DIAGONAL.checked(block_diagonal)


def nplr_lagt(*, n, beta=1.0):
    """HiPPO-LagT, α = 0, as A = V (diag w − P Pᴴ) Vᴴ: P = Vᴴp, p = √½·1, and B = Vᴴb, b = √β·1.

    w = −β/2 + (i/2) cot(θ/2), B = √(β/n)/sin(θ/2), P = B/√(2β), for the θ with e^{iθn} = −1.
    Signature ``->(n),(n,1),(n),(n,n)``: w, P, B, V, complex128. `w` is sorted by its imaginary
    part, ascending; Re w is exactly −β/2; conjugate pairs are exact, and for odd n the middle
    eigenvalue and its vector are real; V is unitary, B and P are real and positive. Units: `w` and
    `beta` 1/time, in the time of the Laguerre polynomials.

    Raises ValueError if `n` is not an integer ≥ 1 or `beta` is not a number above 0. Source:
    [gu2022s4, Theorem 1].

    >>> import refssm
    >>> w, P, B, V = refssm.nplr_lagt(n=3)
    >>> w.round(4), B.real.round(4)
    (array([-0.5-0.866j, -0.5+0.j   , -0.5+0.866j]), array([1.1547, 0.5774, 1.1547]))
    """
    odd, real = 2 * np.arange(n) + 1, n % 2
    turns = odd[: n // 2][::-1]
    half_angles = turns * (np.pi / (2 * n))  # θ/2
    phases = np.outer(odd, turns) % (4 * n) * (np.pi / (2 * n))  # θ (j + ½)
    upper = (np.sin(phases) - 1j * np.cos(phases)) / np.sqrt(n)
    middle = (2 - odd % 4)[:, None][:, :real] / np.sqrt(n)  # (−1)^j/√n
    modes = Modes(0.5 / np.tan(half_angles), upper, middle)
    projected = paired(1 / np.sin(half_angles), np.ones(real)) / np.sqrt(n) + 0j  # Vᴴ1
    P, B = np.sqrt(0.5) * projected[:, None], np.sqrt(beta) * projected
    return modes.poles(-beta / 2), P, B, modes.basis()


def nplr_fourier(*, n, window=1.0):
    """The sliding Fourier window w as A = V (diag w_n − P Pᴴ) Vᴴ: P = Vᴴp, p = √(2/w)b, B = 2Vᴴb/w.

    b = (1, 0, √2, 0, √2, …). Signature ``->(n),(n,1),(n),(n,n)``: w, P, B, V, complex128. w_n =
    2πik/w for k = −n/2+1 … −1, 0, 0, 1 … n/2−1; Re w is exactly 0, conjugate pairs are exact. The
    double eigenvalue 0 has the vectors e_0 and e_1; e_1, the state of sin 0, has P = B = 0; all
    other P are √(2/w), all other B 2/w. Units: `window` time, `w` 1/time.

    Raises ValueError if `n` is not an even integer ≥ 2 or `window` is not a number above 0. Source:
    [gu2023train].

    >>> import refssm
    >>> w, P, B, V = refssm.nplr_fourier(n=4, window=2.0)
    >>> w.imag.round(4) + 0.0, B.real
    (array([-3.1416,  0.    ,  0.    ,  3.1416]), array([1., 1., 0., 1.]))
    """
    w, projected, V = _fourier(n, window)
    return w, np.sqrt(2 / window) * projected[:, None], 2 / window * projected, V


def nplr_fourier_naive(*, n, window=1.0):
    """The textbook's Fourier window w as A = V (diag w_n − P Pᴴ) Vᴴ: p = √(1/w)b, B = Vᴴb/w.

    Signature ``->(n),(n,1),(n),(n,n)``: as `nplr_fourier`, but P = √(1/w) and B = 1/w. Raises
    ValueError if `n` is not an even integer ≥ 2 or `window` is not a number above 0. Source:
    [gu2023train].

    >>> import refssm
    >>> refssm.nplr_fourier_naive(n=4, window=2.0)[2].real
    array([0.5, 0.5, 0. , 0.5])
    """
    w, projected, V = _fourier(n, window)
    return w, np.sqrt(1 / window) * projected[:, None], 1 / window * projected, V


def _fourier(n, window):
    """w, Vᴴb and V; the entries of Vᴴb are 1, except 0 for the state of sin 0."""
    k = np.arange(1, n // 2)
    upper = np.zeros((n, len(k)), complex)
    upper[2 * k, k - 1] = np.sqrt(0.5)
    upper[2 * k + 1, k - 1] = -1j * np.sqrt(0.5)
    modes = Modes(2 * np.pi * k / window, upper, np.eye(n)[:, :2])
    projected = np.ones(n, complex)
    projected[n // 2 : n // 2 + 1] = 0
    return modes.poles(0.0), projected, modes.basis()


NPLR_LAGT = _normal_form(
    reference=nplr_lagt,
    parameters={"n": mode_orders, "beta": laguerre_decays},
    citation="gu2022s4, Theorem 1",
    tags=("rank_correction lagt", "normal plus low rank LagT"),
)
nplr_lagt = NPLR_LAGT.checked(nplr_lagt)

NPLR_FOURIER = _normal_form(
    reference=nplr_fourier,
    parameters={"n": even_mode_orders, "window": windows},
    citation="gu2023train",
    tags=("rank_correction fourier", "normal plus low rank Fourier"),
)
nplr_fourier = NPLR_FOURIER.checked(nplr_fourier)

NPLR_FOURIER_NAIVE = _normal_form(
    reference=nplr_fourier_naive,
    parameters={"n": even_mode_orders, "window": windows},
    citation="gu2023train",
    tags=("normal plus low rank textbook Fourier",),
)
nplr_fourier_naive = NPLR_FOURIER_NAIVE.checked(nplr_fourier_naive)
