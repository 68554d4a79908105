"""State-space duality in its attention form: a masked matrix of weights, row by row.

    y_i = Σ_{j≤i} e^{T_ij} (C_i · B_j) x_j,    T_ij = log_a_{j+1} + … + log_a_i

The exponents are segment sums; each row is the row above plus one more term. Differences of one
cumulative sum would lose digits as the sum grows [dao2024mamba2, §5.2]. All sums come before the
exponentials, so no ∞·0 can occur.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.contraction import einsum
from refssm.scan.blocks import no_resets
from refssm.ssd.recurrent import SSD_RECURRENT, at_rest, outputs_of


def attended(x, log_a, B, C, S, resets):
    """Outputs of one chunk that begins with the state S, and its last state."""
    y, l = [], x.shape[-2]
    if not l:
        return y, S
    T = np.zeros_like(log_a[..., :1])  # log_a_0 + … + log_a_i: the log of S's decay
    kept = np.ones((*resets.shape[:-1], 1), bool)  # True while it is the same sequence
    for i in range(l):
        T = np.concatenate([T + log_a[..., i, None], np.zeros_like(log_a[..., :1])], axis=-1)
        same = kept & (resets[..., i, None] == 0)
        kept = np.concatenate([same, np.ones_like(kept[..., :1])], axis=-1)
        weights = np.exp(np.where(kept, T, 0))  # (…, 1 + i + 1): of S, then of x_0 … x_i
        scores = einsum("...jn,...n->...j", B[..., : i + 1, :], C[..., i, :])
        past = np.where(kept[..., 1:, None], x[..., : i + 1, :], 0)  # selected: avoids 0·NaN
        scores = np.where(kept[..., 1:], weights[..., 1:] * scores, 0)
        row = einsum("...j,...jp->...p", scores, past)
        start = np.where(kept[..., :1, None], S, 0)
        read = einsum("...pn,...n->...p", start, C[..., i, :])
        y.append(weights[..., :1] * read + row)
    return y, _ended(weights, start, past, B, kept)


def _ended(weights, start, past, B, kept):
    """S_l = e^{T_l} S + Σ_j e^{T_lj} x_j B_jᵀ."""
    B = np.where(kept[..., 1:, None], B, 0)
    added = einsum("...jp,...jn->...pn", weights[..., 1:, None] * past, B)
    return weights[..., :1, None] * start + added


def ssd_quadratic(x, log_a, B, C):
    """y_i = Σ_{j≤i} e^{log_a_{j+1} + … + log_a_i} (C_i · B_j) x_j.

    Signature ``(l,p),(l),(l,n),(l,n)->(l,p)``: the same function as `ssd_recurrent`, in O(l²)
    operations. Arguments, types, units and errors are those of `ssd_recurrent`. Source:
    [dao2024mamba2, §5.2].

    >>> import refssm
    >>> refssm.ssd_quadratic([[1.0], [2.0]], [0.0, 0.0], [[1.0], [1.0]], [[1.0], [1.0]]).ravel()
    array([1., 3.])
    """
    S = at_rest(x, B)
    resets = no_resets(x.shape[-2])
    y, _ = attended(x, log_a, B, C, S, resets)
    return outputs_of(y, x, log_a, B, C, S, resets)


def ssd_quadratic_vjp(dy, x, log_a, B, C):
    """The gradients of `ssd_recurrent`, because it is the same function.

    Returns `(dx, dlog_a, dB, dC)`, shaped like the arguments.
    """
    return SSD_RECURRENT.bare_vjp(dy, x, log_a, B, C)


SSD_QUADRATIC = Operator(
    reference=ssd_quadratic,
    signature=SSD_RECURRENT.signature,
    inputs=SSD_RECURRENT.inputs,
    batch=SSD_RECURRENT.batch,
    traits=frozenset({"causal", "matrix-product", "linear:x", "linear:B", "linear:C"}),
    definition=SSD_RECURRENT.reference,  # same function: a loop must pass too
    citation="dao2024mamba2, §5.2",
    lacks=frozenset({"jit"}),
    tags=("segsum", "structured masked attention", "parallel_simple_gla", "1-semiseparable matrix"),
)
ssd_quadratic = SSD_QUADRATIC.checked(ssd_quadratic)
ssd_quadratic_vjp = SSD_QUADRATIC.checked_vjp(ssd_quadratic_vjp)
