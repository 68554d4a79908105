"""S4's kernels of conjugate pairs, of which one mode each is stored [gu2022s4, §3.2].

    K_k = C₂ Ā₂^k B̄₂,   A₂ = diag w₂ − P₂ Q₂ᴴ,   k = 0 … l−1

with w₂ = (w, w*), and P₂, Q₂, B₂ and C₂ likewise. A₂ maps (x, x*) to (y, y*) with

    y = diag w x − 2 P Re(Qᴴ x)

so the kernel is real, K_k = 2 Re C x_k. Low rank couples the halves: with P it is not 2 Re of the
half's own kernel.
"""

from refssm._declaration.contract import SPECTRUM
from refssm._declaration.operator import Operator
from refssm._numerics.pairs import folded, paired
from refssm.domains import (
    damped_modes,
    input_matrices,
    low_rank,
    low_rank_multiples,
    modes,
    projections,
    steps,
)
from refssm.dplr.aliased import DPLR_KERNEL_ALIASED, dplr_aliased_spectrum
from refssm.dplr.kernel import DPLR_KERNEL, dplr_spectrum


def both_halves(w, P, Q, B, C):
    """w₂, P₂, Q₂, B₂ and C₂."""
    return paired(w), paired(P, -2), paired(Q, -2), paired(B), paired(C)


def of_stored(dw, dP, dQ, dB, dC, ddt):
    """The gradients of the stored half, and of dt."""
    return folded(dw), folded(dP, -2), folded(dQ, -2), folded(dB), folded(dC), ddt


def dplr_kernel_real(w, P, Q, B, C, dt, *, l):
    """K_k = 2 Re C Ā^k B̄, k = 0 … l−1, of A x = diag w x − 2 P Re(Qᴴ x) under the bilinear map.

    Signature ``(n),(n,r),(n,r),(n),(n),()->(l)``: arguments, units and errors are those of
    `dplr_kernel`; `n` counts the stored modes. It is `dplr_kernel` of (w, w*), (P, P*), (Q, Q*),
    (B, B*) and (C, C*), which is not twice the real part of that of w, P, Q, B and C unless r = 0.
    A mode on the real axis counts twice, too. The result is real, in the precision of the
    arguments. Source: [gu2022s4, §3.2].

    >>> import refssm
    >>> w, P, B, C = [-0.5 + 3j], [[1.0 - 1j]], [1.0], [1.0 + 2j]
    >>> refssm.dplr_kernel_real(w, P, P, B, C, 0.5, l=3).round(6)
    array([-0.296296, -1.033118, -0.162253])
    """
    return DPLR_KERNEL.reference(*both_halves(w, P, Q, B, C), dt, l=l).real.copy()


def dplr_real_spectrum(w, P, Q, B, C, dt, *, l):
    """The transfer function of the whole system, times I − Ā₂^l."""
    return dplr_spectrum(*both_halves(w, P, Q, B, C), dt, l=l)


def dplr_kernel_real_vjp(dk, w, P, Q, B, C, dt, *, l):
    """Each gradient is that of the stored half in `dplr_kernel_vjp` plus the other's conjugate.

    Returns `(dw, dP, dQ, dB, dC, ddt)`, shaped like the arguments.
    """
    return of_stored(*DPLR_KERNEL.bare_vjp(dk, *both_halves(w, P, Q, B, C), dt, l=l))


DPLR_KERNEL_REAL = Operator(
    reference=dplr_kernel_real,
    signature="(n),(n,r),(n,r),(n),(n),()->(l)",
    inputs={
        "w": modes,
        "P": low_rank,
        "Q": low_rank_multiples,
        "B": input_matrices,
        "C": projections,
        "dt": steps,
    },
    outputs=("k",),
    batch="d, d, d, d, d, d",
    traits=frozenset({"linear:B", "linear:C", "causal"}),
    definition=dplr_real_spectrum,
    contract=SPECTRUM,
    citation="gu2022s4, §3.2",
    tags=("SSMKernelDPLR", "SSKernelNPLR", "S4 kernel conjugate pairs low rank"),
)
dplr_kernel_real = DPLR_KERNEL_REAL.checked(dplr_kernel_real)
dplr_kernel_real_vjp = DPLR_KERNEL_REAL.checked_vjp(dplr_kernel_real_vjp)


def dplr_kernel_aliased_real(w, P, Q, B, C, dt, *, l):
    """K_k = Σ_{m≥0} k_{k + ml}, k = 0 … l−1, of the kernel k that `dplr_kernel_real` cuts at l.

    Signature ``(n),(n,r),(n,r),(n),(n),()->(l)``: arguments and units are those of
    `dplr_kernel_real`, errors those of `dplr_kernel_aliased`, which this is for (w, w*), (P, P*),
    (Q, Q*), (B, B*) and (C, C*). The result is real. Source: [gu2022s4, §3.2].

    >>> import refssm
    >>> w, P, B, C = [-0.5 + 3j], [[1.0 - 1j]], [1.0], [1.0 + 2j]
    >>> refssm.dplr_kernel_aliased_real(w, P, P, B, C, 0.5, l=2).round(6)
    array([-0.416667, -0.916667])
    """
    return DPLR_KERNEL_ALIASED.reference(*both_halves(w, P, Q, B, C), dt, l=l).real.copy()


def dplr_aliased_real_spectrum(w, P, Q, B, C, dt, *, l):
    """The transfer function of the whole system."""
    return dplr_aliased_spectrum(*both_halves(w, P, Q, B, C), dt, l=l)


def dplr_kernel_aliased_real_vjp(dk, w, P, Q, B, C, dt, *, l):
    """As in `dplr_kernel_real_vjp`, from the gradients of `dplr_kernel_aliased`.

    Returns `(dw, dP, dQ, dB, dC, ddt)`, shaped like the arguments.
    """
    return of_stored(*DPLR_KERNEL_ALIASED.bare_vjp(dk, *both_halves(w, P, Q, B, C), dt, l=l))


DPLR_KERNEL_ALIASED_REAL = Operator(
    reference=dplr_kernel_aliased_real,
    signature="(n),(n,r),(n,r),(n),(n),()->(l)",
    inputs={
        "w": damped_modes,
        "P": low_rank,
        "Q": low_rank_multiples,
        "B": input_matrices,
        "C": projections,
        "dt": steps,
    },
    outputs=("k",),
    batch="d, d, d, d, d, d",
    traits=frozenset({"linear:B", "linear:C"}),
    definition=dplr_aliased_real_spectrum,
    contract=SPECTRUM,
    citation="gu2022s4, §3.2",
    tags=("S4 kernel conjugate pairs without truncation", "stored C_tilde of halves"),
)
dplr_kernel_aliased_real = DPLR_KERNEL_ALIASED_REAL.checked(dplr_kernel_aliased_real)
dplr_kernel_aliased_real_vjp = DPLR_KERNEL_ALIASED_REAL.checked_vjp(dplr_kernel_aliased_real_vjp)
