"""Normal plus low rank of the Legendre measures, LegS and LegT, and the normal part of LegS.

With q_i = √(2i+1), p pᵀ (LegT: P Pᵀ with two columns) is minus the symmetric part of A, up to a
multiple of I, so A + P Pᵀ = ρ I + S with skew S:

    LegS  p = q/√2,                     ρ = −½,  S_ik = ½ q_i q_k sign(k − i)
    LegT  P = odd and even half of q/√w,  ρ = 0,  S_ik = q_i q_k sign(k − i)/w for i − k odd

No eigenvector of S is orthogonal to p: it would also be an eigenvector of A = ρ I + S − P Pᵀ with
real part ρ, but A has no such eigenvalue. Nor is one orthogonal to b. In LegS b = √2 p. In LegT an
eigenvector is, up to a phase, real in even and imaginary in odd states; if it were orthogonal to b,
it would be orthogonal to both halves of p.
"""

import numpy as np

from refssm._declaration.contract import INVARIANTS
from refssm._declaration.operator import Operator
from refssm.domains import block_counts, block_orders, mode_orders, orders, windows
from refssm.nplr.invariants import (
    matrix_invariants,
    normal_invariants,
    system_invariants,
)
from refssm.nplr.modes import skew_modes


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


NPLR_LEGS = Operator(
    reference=nplr_legs,
    signature="->(n),(n,1),(n),(n,n)",
    inputs={},
    parameters={"n": mode_orders},
    outputs=("w", "P", "B", "V"),
    contract=INVARIANTS,
    definition=system_invariants,
    citation="gu2022s4, Theorem 1",
    lacks=frozenset({"vjp", "jit", "gpu", "enclosure"}),  # runs once: no mirror needed
    tags=(
        "make_NPLR_HiPPO",
        "make_DPLR_HiPPO",
        "rank_correction legs",
        "normal plus low rank LegS",
    ),
)
nplr_legs = NPLR_LEGS.checked(nplr_legs)

NPLR_LEGT = Operator(
    reference=nplr_legt,
    signature="->(n),(n,2),(n),(n,n)",
    inputs={},
    parameters={"n": mode_orders, "window": windows},
    outputs=("w", "P", "B", "V"),
    contract=INVARIANTS,
    definition=system_invariants,
    citation="gu2022s4, Theorem 1",
    lacks=frozenset({"vjp", "jit", "gpu", "enclosure"}),  # runs once: no mirror needed
    tags=("rank_correction legt", "normal plus low rank LegT"),
)
nplr_legt = NPLR_LEGT.checked(nplr_legt)

NORMAL_LEGS = Operator(
    reference=normal_legs,
    signature="->(n,n)",
    inputs={},
    parameters={"n": orders},
    outputs=("A",),
    contract=INVARIANTS,
    definition=matrix_invariants,
    citation="gu2022s4d",
    lacks=frozenset({"vjp", "jit", "gpu", "enclosure"}),  # runs once: no mirror needed
    tags=("HiPPO-N", "S4D-LegS matrix"),
)
normal_legs = NORMAL_LEGS.checked(normal_legs)

BLOCK_DIAGONAL = Operator(
    reference=block_diagonal,
    signature="->(n),(n,n)",
    inputs={},
    parameters={"n": block_orders, "blocks": block_counts},
    outputs=("w", "V"),
    contract=INVARIANTS,
    definition=normal_invariants,
    citation="smith2023s5",
    lacks=frozenset({"vjp", "jit", "gpu", "enclosure"}),  # runs once: no mirror needed
    tags=("S5 initialization blocks", "block-diagonal HiPPO-N eigenvalues"),
)
block_diagonal = BLOCK_DIAGONAL.checked(block_diagonal)
