"""Normal plus low rank of LagT and of the Fourier windows, whose modes are waves: closed forms.

LagT (α = 0): A + p pᵀ = −β/2 + S with p = √½·1 and S_ik = ½ sign(k − i). A wave v_j = e^{iθj} with
e^{iθn} = −1 changes its sign after n places, as the rows of S do, so it is an eigenvector. Its
eigenvalue is ½ Σ_{0<d<n} e^{iθd} = (i/2) cot(θ/2).

Fourier: A + p pᵀ = S has the blocks [[0, −ω], [ω, 0]], ω = 2πk/w, for the cosine and the sine of
frequency k; the vectors (1, ∓i)/√2 belong to ±iω. Frequency 0 has the constant and the state of sin
0, which never changes: the eigenvalue 0 is double, with eigenvectors e_0 and e_1.
"""

import numpy as np

from refssm._declaration.contract import INVARIANTS
from refssm._declaration.operator import Operator
from refssm.domains import even_mode_orders, laguerre_decays, mode_orders, windows
from refssm.nplr.invariants import system_invariants
from refssm.nplr.modes import Modes, paired


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


NPLR_LAGT = Operator(
    reference=nplr_lagt,
    signature="->(n),(n,1),(n),(n,n)",
    inputs={},
    parameters={"n": mode_orders, "beta": laguerre_decays},
    outputs=("w", "P", "B", "V"),
    contract=INVARIANTS,
    definition=system_invariants,
    citation="gu2022s4, Theorem 1",
    lacks=frozenset({"vjp", "jit", "gpu", "enclosure"}),  # runs once: no mirror needed
    tags=("rank_correction lagt", "normal plus low rank LagT"),
)
nplr_lagt = NPLR_LAGT.checked(nplr_lagt)

NPLR_FOURIER = Operator(
    reference=nplr_fourier,
    signature="->(n),(n,1),(n),(n,n)",
    inputs={},
    parameters={"n": even_mode_orders, "window": windows},
    outputs=("w", "P", "B", "V"),
    contract=INVARIANTS,
    definition=system_invariants,
    citation="gu2023train",
    lacks=frozenset({"vjp", "jit", "gpu", "enclosure"}),  # runs once: no mirror needed
    tags=("rank_correction fourier", "normal plus low rank Fourier"),
)
nplr_fourier = NPLR_FOURIER.checked(nplr_fourier)

NPLR_FOURIER_NAIVE = Operator(
    reference=nplr_fourier_naive,
    signature="->(n),(n,1),(n),(n,n)",
    inputs={},
    parameters={"n": even_mode_orders, "window": windows},
    outputs=("w", "P", "B", "V"),
    contract=INVARIANTS,
    definition=system_invariants,
    citation="gu2023train",
    lacks=frozenset({"vjp", "jit", "gpu", "enclosure"}),  # runs once: no mirror needed
    tags=("normal plus low rank textbook Fourier",),
)
nplr_fourier_naive = NPLR_FOURIER_NAIVE.checked(nplr_fourier_naive)
