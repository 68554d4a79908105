"""Planted bugs in the VJPs of state-space duality."""

from types import SimpleNamespace

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import InEach, of_each_result
from refssm.conformance.planted.scan.pieces import in_sequences
from refssm.conformance.planted.ssd import programs
from refssm.conformance.planted.ssd.forms import CHUNKED, RECURRENT, SEQUENCES, gradient_form
from refssm.conformance.planted.ssd.operators import (
    CHUNK,
    PACKED,
    PLAIN,
    QUAD,
    REC,
    SEQUENCES_WITH_STATES,
    STATEFUL,
)
from refssm.conformance.planted.ssd.programs import but_for, earlier, unbroken, zero
from refssm.conformance.planted.ssd.right import through_attention


def adjoint(dy, dS, g, *, plain="", carry=lambda back, t: back, change=lambda parts: {}):
    """All states forwards and all cotangents backwards; keywords replace parts.

    `plain` names arguments that are not conjugated, `carry(a* G, t)` changes the cotangent that
    step t passes back, `change(parts)` returns gradients that differ from the right ones.
    """

    def conj(name, z):
        return z if name == plain else z.conj()

    x, log_a, B, C, S, resets, _ = g
    a, before = np.exp(log_a)[..., None, None], []
    for t in range(x.shape[-2]):
        before.append(np.where(resets[..., t, None, None], 0, a[..., t, :, :] * S))
        S = before[-1] + x[..., t, :, None] * B[..., t, None, :]
    back, G = dS, []
    for t in range(x.shape[-2] - 1, -1, -1):
        G.append(back + dy[..., t, :, None] * conj("C", C[..., t, None, :]))
        back = conj("a", a[..., t, :, :]) * G[-1]
        back = np.where(resets[..., t, None, None], 0, carry(back, t))
    G = np.stack(np.broadcast_arrays(*G[::-1]), axis=-3)
    before = np.stack(np.broadcast_arrays(*before), axis=-3)
    states = before + x[..., :, :, None] * B[..., :, None, :]
    parts = {
        "dx": np.einsum("...pn,...n->...p", G, conj("B", B)),
        "dlog_a": (conj("before", before) * G).sum((-2, -1)),
        "dB": np.einsum("...pn,...p->...n", G, conj("x", x)),
        "dC": np.einsum("...pn,...p->...n", conj("S", states), dy),
        "dS0": back,
    }
    told = SimpleNamespace(
        **parts, x=x, a=a, G=G, before=before, states=states, dy=dy, B=B, C=C, dS=dS
    )
    return tuple((parts | change(told)).values())


def _in_form(op):
    """Turn wrong(right, dy, dS, given) -> dx, dlog_a, dB, dC, dS0 into a VJP of an operator."""

    def adapt(wrong):
        def whole(dy, dS, *given):
            return wrong(adjoint, dy, dS, programs.SsdArguments(*given))

        vjp = gradient_form(op, whole)
        return lambda right, *args, **statics: vjp(*args, **statics)

    return adapt


def _told(name, of):
    """One gradient computed from other parts."""
    return but_for(change=lambda parts: {name: of(parts)})


def by_total(p):
    """Σ_{i≥t} e_i = e_t − Σ_{i≤t} e_i + Σ e, for what each step adds to the sums of log_a."""
    y = np.einsum("...pn,...n->...p", p.states, p.C)
    e = (y.conj() * p.dy).sum(-1) - (p.x.conj() * p.dx).sum(-1)
    return e - np.cumsum(e, axis=-1) + e.sum(-1, keepdims=True)


def _only_first_head(name):
    """The gradient from a group's first head instead of the sum over its heads."""

    def first(parts):
        gradient = getattr(parts, name)
        head = np.arange(gradient.shape[-3])[:, None, None] if gradient.ndim > 3 else 0
        return np.where(head == 0, gradient, 0)

    return _told(name, first)


def _resets_forgotten(right, dy, dS, g):
    dx, _, dB, _, dS0 = right(dy, dS, unbroken(g))
    _, dlog_a, _, dC, _ = right(dy, dS, g)
    return dx, dlog_a, dB, dC, dS0


def _decay_at_reset(right, dy, dS, g):
    dx, dlog_a, *others = right(dy, dS, g)
    return dx, np.where(g.resets, right(dy, dS, unbroken(g))[1], dlog_a), *others


def _expanded_cotangent(right, dy, dS, g):
    memory = np.zeros(dy.size, dy.dtype)
    distinct = dy[tuple(slice(0, 1) if s == 0 else slice(None) for s in dy.strides)]
    memory[: distinct.size] = distinct.ravel()
    return right(memory.reshape(dy.shape), dS, g)


def _exponentiated_then_masked(right, dy, dS, g):
    dx, dlog_a, dB, dC, dS0 = through_attention(dy, dS, *g)
    c, i = np.cumsum(g.log_a, axis=-1), np.arange(g.log_a.shape[-1])
    within = (i[:, None] // g.chunk == i // g.chunk) & (i[:, None] < i)
    above = np.where(within, np.exp(c[..., :, None] - c[..., None, :]), 0)  # of one chunk
    masked = 0 * above  # the cotangent of np.where's other branch, times what was exponentiated
    return dx, dlog_a + masked.sum(-1) - masked.sum(-2), dB, dC, dS0


GRADIENTS = InEach(in_sequences(_in_form))
CONSTANT = "the carry taken as a constant: no gradient from one step to the one before"
GRADIENTS.plant(
    (RECURRENT + SEQUENCES_WITH_STATES[:1], "carry_constant", CONSTANT,
     but_for(carry=lambda back, t: 0 * back)),
    ((RECURRENT[1], *SEQUENCES_WITH_STATES[:1]), "carry_constant_but_first", CONSTANT,
     but_for(carry=lambda back, t: back * (t == 0))),
    (SEQUENCES_WITH_STATES[1:], "carry_lost", "the cotangent lost between chunks",
     lambda right, dy, dS, g:
     right(dy, dS, g, carry=lambda back, t: back * (t % g.chunk != 0 or t == 0))),
    by="gradient",
)  # fmt: skip
GRADIENTS.plant(
    (REC, "C_not_conjugated", "C for C* in the states' cotangent", but_for(plain="C")),
    (REC + CHUNK, "a_not_conjugated", "a for a* in what is carried back", but_for(plain="a")),
    (REC, "B_not_conjugated", "B for B* in dx", but_for(plain="B")),
    (REC, "x_not_conjugated", "x for x* in dB", but_for(plain="x")),
    (REC, "S_not_conjugated", "S for S* in dC", but_for(plain="S")),
    (REC + CHUNK, "before_not_conjugated", "a S for (a S)* in dlog_a", but_for(plain="before")),
    (REC + QUAD, "as_jax", "the conjugate convention", of_each_result(np.conj)),
    by="gradient[complex64]",
)
GRADIENTS.plant(
    (SEQUENCES, "dlog_a_missing", "dlog_a = 0", {"log_a": zero}),
    (REC + QUAD, "dlog_a_late", "dlog_a_t of step t − 1", {"log_a": earlier}),
    (REC + CHUNK, "dlog_a_early", "dlog_a_t of step t + 1",
     {"log_a": lambda g: np.roll(g, -1, -1)}),
    (SEQUENCES, "dlog_a_of_new_state", "Σ S_t* G_t for Σ (a_t S_{t-1})* G_t",
     _told("dlog_a", lambda p: (p.states.conj() * p.G).sum((-2, -1)))),
    (REC + CHUNK, "da_for_dlog_a", "the derivative by a, not by its logarithm",
     _told("dlog_a", lambda p: p.dlog_a / p.a[..., 0, 0].conj())),
    (PLAIN, "dlog_a_by_total",
     "sums from the end as e − cumsum(e) + sum(e): their digits cancel in dlog_a",
     _told("dlog_a", by_total)),
    (REC, "dlog_a_of_last_p", "dlog_a of the last number of a head, not of their sum",
     _told("dlog_a", lambda p: (p.before.conj() * p.G)[..., -1, :].sum(-1))),
    (CHUNK, "dlog_a_of_last_n", "dlog_a of the last state, not of their sum",
     _told("dlog_a", lambda p: (p.before.conj() * p.G)[..., -1].sum(-1))),
    *((RECURRENT + CHUNK, f"{name}_of_first_head", f"{name} of the first head of a group",
       _only_first_head(name)) for name in ("dB", "dC")),
    (PLAIN, "dC_of_state_before", "dC_t with S_{t-1}",
     _told("dC", lambda p: np.einsum("...pn,...p->...n", p.before.conj(), p.dy))),
    (PLAIN, "dx_local", "dx_t of y_t alone",
     _told("dx", lambda p: p.dy * (p.C * p.B).sum(-1).conj()[..., None])),
    (REC + QUAD, "dB_sign", "dB with the other sign", {"B": np.negative}),
    (REC, "dx_in_float16", "dx rounded to float16", {"x": float16}),
    (REC + CHUNK, "dlog_a_in_bfloat16", "dlog_a rounded to bfloat16", {"log_a": bfloat16}),
    (STATEFUL, "dS0_missing", "dS0 = 0", {"S0": zero}),
    (STATEFUL, "dS0_undecayed", "dS0 = G_0", _told("dS0", lambda p: p.G[..., 0, :, :])),
    (STATEFUL, "dS_undecayed", "dS also added to dS0 as it is",
     _told("dS0", lambda p: p.dS0 + p.dS)),
    (STATEFUL, "dS_dropped", "the last state has no gradient", {"dS": zero}),
    (STATEFUL, "S0_forgotten", "the states computed again as if S0 were 0",
     lambda right, dy, dS, g: right(dy, dS, g.but(S0=0 * g.S0))),
    (PACKED, "resets_forgotten", "what is carried back crosses resets", _resets_forgotten),
    (PACKED, "decay_at_reset", "log_a has a gradient where a sequence begins", _decay_at_reset),
    (PACKED, "resets_late", "what is carried back stops one step late",
     lambda right, dy, dS, g: right(dy, dS, g.but(resets=earlier(g.resets)))),
    (REC, "carry_lost_64", "the cotangent lost at blocks of 64",
     but_for(carry=lambda back, t: back * (t % 64 != 0))),
    (CHUNKED, "carry_lost", "the cotangent lost between chunks", lambda right, dy, dS, g:
     right(dy, dS, g, carry=lambda back, t: back * (t % g.chunk != 0 or t == 0))),
    (REC, "carry_in_float16", "the cotangent carried in float16",
     but_for(carry=lambda back, t: float16(back))),
    (REC + CHUNK, "expanded_cotangent", "a stride of 0 read as contiguous", _expanded_cotangent),
    (QUAD + CHUNK, "exponentiated_then_masked",
     "0 · ∞ where the exponentials above the diagonal overflow", _exponentiated_then_masked),
    by="gradient",
)  # fmt: skip
