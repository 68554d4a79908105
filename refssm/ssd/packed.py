"""State-space duality for packed sequences, and one step at a time for decoding."""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm._numerics.contraction import einsum
from refssm.domains import resets, states
from refssm.ssd.recurrent import SSD_RECURRENT, at_rest, outputs_of, pulled_back, stepped


def ssd_recurrent_packed(x, log_a, B, C, resets):
    """y_t = S_t C_t,  S_t = x_t B_tᵀ where a sequence begins, else as `ssd_recurrent`.

    Signature ``(l,p),(l),(l,n),(l,n),(l)->(l,p)``: `resets` is true, or an integer that is not 0,
    at the first step of each packed sequence; nothing leaks, not even NaN. Source:
    [dao2024mamba2, §8.3].

    >>> import refssm
    >>> one = [[1.0], [1.0]]
    >>> refssm.ssd_recurrent_packed(one, [0.0, 0.0], one, one, [False, True]).ravel()
    array([1., 1.])
    """
    rest = at_rest(x, B)
    S = with_batch(rest, 2, np.broadcast_shapes(rest.shape[:-2], resets.shape[:-1]))
    y, _ = stepped(x, log_a, B, C, S, resets)
    return outputs_of(y, x, log_a, B, C, S, resets)


def ssd_recurrent_packed_vjp(dy, x, log_a, B, C, resets):
    """As in `ssd_recurrent_vjp`; nothing flows back from the first step of a sequence.

    Returns `(dx, dlog_a, dB, dC, None)`, shaped like the arguments.
    """
    rest = at_rest(x, B)
    gradients = pulled_back(dy, rest, x, log_a, B, C, rest, resets)
    return *unbroadcast_each(gradients[:-1], (x, log_a, B, C)), None


SSD_RECURRENT_PACKED = Operator(
    reference=ssd_recurrent_packed,
    signature="(l,p),(l),(l,n),(l,n),(l)->(l,p)",
    inputs={**SSD_RECURRENT.inputs, "resets": resets},
    batch="b g h, b g h, b g, b g, b",
    traits=frozenset({"causal", "linear:x", "linear:B", "linear:C"}),
    citation="dao2024mamba2, §8.3",
    tags=("Mamba-2 recurrence varlen cu_seqlens",),
)
ssd_recurrent_packed = SSD_RECURRENT_PACKED.checked(ssd_recurrent_packed)
ssd_recurrent_packed_vjp = SSD_RECURRENT_PACKED.checked_vjp(ssd_recurrent_packed_vjp)


def ssd_step(x, log_a, B, C, S):
    """S ← e^{log_a} S + x Bᵀ,  y = S C: one step, and the next state.

    Signature ``(p),(),(n),(n),(p,n)->(p),(p,n)``: as one step of `ssd_recurrent_stateful`. Source:
    [dao2024mamba2, §3.2].

    >>> import refssm
    >>> refssm.ssd_step([1.0], 0.0, [1.0], [2.0], [[4.0]])
    (array([10.]), array([[5.]]))
    """
    S = np.exp(log_a)[..., None, None] * S + x[..., :, None] * B[..., None, :]
    y = einsum("...pn,...n->...p", S, C)
    return y, with_batch(S, 2, y.shape[:-1])


def ssd_step_vjp(dy, dS_next, x, log_a, B, C, S):
    """G = dy Cᴴ + dS';  dx = G B*,  dlog_a = Σ (a S)* G,  dB = Gᵀ x*,  dC = S'ᴴ dy,  dS = a* G.

    Returns `(dx, dlog_a, dB, dC, dS)`, shaped like the arguments.
    """
    a = np.exp(log_a)[..., None, None]
    G = dy[..., :, None] * C[..., None, :].conj() + dS_next
    after = a * S + x[..., :, None] * B[..., None, :]
    gradients = (
        einsum("...pn,...n->...p", G, B.conj()),
        ((a * S).conj() * G).sum((-2, -1)),
        einsum("...pn,...p->...n", G, x.conj()),
        einsum("...pn,...p->...n", after.conj(), dy),
        a.conj() * G,
    )
    return unbroadcast_each(gradients, (x, log_a, B, C, S))


SSD_STEP = Operator(
    reference=ssd_step,
    signature="(p),(),(n),(n),(p,n)->(p),(p,n)",
    form="step",
    inputs={**SSD_RECURRENT.inputs, "S": states},
    outputs=("y", "S_next"),
    batch="b g h, b g h, b g, b g, b g h",
    traits=frozenset({"linear:x,S", "linear:B,S", "linear:C->y"}),
    citation="dao2024mamba2, §3.2",
    tags=("selective_state_update of Mamba-2", "Mamba-2 decoding", "SSD one step"),
)
ssd_step = SSD_STEP.checked(ssd_step)
ssd_step_vjp = SSD_STEP.checked_vjp(ssd_step_vjp)
