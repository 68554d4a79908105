"""Planted bugs in the gradients of state-space duality."""

import numpy as np

from refssm.conformance.honest.ssd.forms import CHUNKED, RECURRENT, SEQUENCES, gradient_form
from refssm.conformance.honest.ssd.vjp import through_attention
from refssm.conformance.planted import Deviation
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.ssd.base import earlier
from refssm.ssd import (
    SSD_CHUNKED,
    SSD_CHUNKED_PACKED,
    SSD_CHUNKED_STATEFUL,
    SSD_QUADRATIC,
    SSD_RECURRENT,
    SSD_RECURRENT_PACKED,
    SSD_RECURRENT_STATEFUL,
)

DEVIATIONS = []
STATEFUL = (SSD_RECURRENT_STATEFUL, SSD_CHUNKED_STATEFUL)
PACKED = (SSD_RECURRENT_PACKED, SSD_CHUNKED_PACKED)
ATTENTION = (SSD_QUADRATIC, SSD_CHUNKED)


def planted(name, what, operators, dtype="float32"):
    """Plant one wrong gradient in each of `operators`."""

    def register(whole):
        for op in operators:
            check, vjp = f"gradient[{dtype}]", gradient_form(op, whole)
            DEVIATIONS.append(Deviation(op.name, f"vjp_{name}", check, what, op.reference, vjp))
        return whole

    return register


def adjoint(dy, dS, x, log_a, B, C, S0, resets, chunk=0, *, plain="", carry=None, change=None):
    """All states forwards, all cotangents backwards; its parts have places for bugs.

    `plain` names what is not conjugated, `carry(t, a* G)` the cotangent handed back from step t,
    `change(parts)` returns gradients that differ from the right ones.
    """

    def conj(name, z):
        return z if name in plain.split() else z.conj()

    a, S, before = np.exp(log_a)[..., None, None], S0, []
    for t in range(x.shape[-2]):
        before.append(np.where(resets[..., t, None, None], 0, a[..., t, :, :] * S))
        S = before[-1] + x[..., t, :, None] * B[..., t, None, :]
    back, G = dS, []
    for t in range(x.shape[-2] - 1, -1, -1):
        G.append(back + dy[..., t, :, None] * conj("C", C[..., t, None, :]))
        back = conj("a", a[..., t, :, :]) * G[-1]
        back = np.where(resets[..., t, None, None], 0, back if carry is None else carry(t, back))
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
    told = {"a": a, "G": G, "before": before, "states": states, "dy": dy, "B": B, "C": C, "dS": dS}
    return tuple((parts | (change(parts | told) if change else {})).values())


def _with(**how):
    return lambda *args: adjoint(*args, **how)


for _name, _what in {
    "C": "C for C* in the states' cotangent",
    "a": "a for a* in what is carried back",
    "B": "B for B* in dx",
    "x": "x for x* in dB",
    "S": "S for S* in dC",
    "before": "a S for (a S)* in dlog_a",
}.items():
    _operators = (SSD_RECURRENT, SSD_CHUNKED) if _name in ("a", "before") else (SSD_RECURRENT,)
    planted(f"{_name}_not_conjugated", _what, _operators, "complex64")(_with(plain=_name))


@planted("as_jax", "the conjugate convention", (SSD_RECURRENT, SSD_QUADRATIC), "complex64")
def _as_jax(dy, dS, *args):
    return adjoint(dy.conj(), dS.conj(), *args, plain="C a B x S before")


def _only_first(name, axis):
    """A sum over an axis of the batch taken for its first member alone."""

    def change(p):
        gradient = p[name]
        if gradient.ndim <= -axis:
            return {}
        first = np.arange(gradient.shape[axis]) == 0
        return {name: np.where(first.reshape(-1, *(1,) * (-axis - 1)), gradient, 0)}

    return change


CHANGES = [
    ("dlog_a_missing", "dlog_a = 0", SEQUENCES, lambda p: {"dlog_a": 0 * p["dlog_a"]}),
    ("dlog_a_late", "dlog_a_t of step t − 1", (SSD_RECURRENT, SSD_QUADRATIC),
     lambda p: {"dlog_a": earlier(p["dlog_a"], -1)}),
    ("dlog_a_early", "dlog_a_t of step t + 1", (SSD_RECURRENT, SSD_CHUNKED),
     lambda p: {"dlog_a": np.roll(p["dlog_a"], -1, -1)}),
    ("dlog_a_of_new_state", "Σ S_t* G_t for Σ (a_t S_{t-1})* G_t", SEQUENCES,
     lambda p: {"dlog_a": (p["states"].conj() * p["G"]).sum((-2, -1))}),
    ("da_for_dlog_a", "the derivative by a, not by its logarithm", (SSD_RECURRENT, SSD_CHUNKED),
     lambda p: {"dlog_a": p["dlog_a"] / p["a"][..., 0, 0].conj()}),
    ("dlog_a_of_last_p", "dlog_a of the last number of a head, not of their sum", (SSD_RECURRENT,),
     lambda p: {"dlog_a": (p["before"].conj() * p["G"])[..., -1, :].sum(-1)}),
    ("dlog_a_of_last_n", "dlog_a of the last state, not of their sum", (SSD_CHUNKED,),
     lambda p: {"dlog_a": (p["before"].conj() * p["G"])[..., -1].sum(-1)}),
    ("dB_of_first_head", "dB of the first head of a group", (*RECURRENT, SSD_CHUNKED),
     _only_first("dB", -3)),
    ("dC_of_first_head", "dC of the first head of a group", (*RECURRENT, SSD_CHUNKED),
     _only_first("dC", -3)),
    ("dC_of_state_before", "dC_t with S_{t-1}", (SSD_RECURRENT, SSD_QUADRATIC, SSD_CHUNKED),
     lambda p: {"dC": np.einsum("...pn,...p->...n", p["before"].conj(), p["dy"])}),
    ("dx_local", "dx_t of y_t alone", (SSD_RECURRENT, SSD_QUADRATIC, SSD_CHUNKED),
     lambda p: {"dx": p["dy"] * (p["C"] * p["B"]).sum(-1).conj()[..., None]}),
    ("dB_sign", "dB with the other sign", (SSD_RECURRENT, SSD_QUADRATIC),
     lambda p: {"dB": -p["dB"]}),
    ("dx_in_float16", "dx rounded to float16", (SSD_RECURRENT,),
     lambda p: {"dx": float16(p["dx"])}),
    ("dlog_a_in_bfloat16", "dlog_a rounded to bfloat16", (SSD_RECURRENT, SSD_CHUNKED),
     lambda p: {"dlog_a": bfloat16(p["dlog_a"])}),
    ("dS0_missing", "dS0 = 0", STATEFUL, lambda p: {"dS0": 0 * p["dS0"]}),
    ("dS0_undecayed", "dS0 = G_0", STATEFUL, lambda p: {"dS0": p["G"][..., 0, :, :]}),
    ("dS_undecayed", "dS also added to dS0 as it is", STATEFUL,
     lambda p: {"dS0": p["dS0"] + p["dS"]}),
]  # fmt: skip
for _name, _what, _operators, _change in CHANGES:
    planted(_name, _what, _operators)(_with(change=_change))


@planted("dS_dropped", "the last state has no gradient", STATEFUL)
def _dS_dropped(dy, dS, *args):
    return adjoint(dy, 0 * dS, *args)


@planted("S0_forgotten", "the states computed again as if S0 were 0", STATEFUL)
def _S0_forgotten(dy, dS, x, log_a, B, C, S0, resets, chunk):
    return adjoint(dy, dS, x, log_a, B, C, 0 * S0, resets)


@planted("resets_forgotten", "what is carried back crosses resets", PACKED)
def _resets_forgotten(dy, dS, x, log_a, B, C, S0, resets, chunk):
    dx, _, dB, _, dS0 = adjoint(dy, dS, x, log_a, B, C, S0, np.zeros_like(resets))
    _, dlog_a, _, dC, _ = adjoint(dy, dS, x, log_a, B, C, S0, resets)
    return dx, dlog_a, dB, dC, dS0


@planted("decay_at_reset", "log_a has a gradient where a sequence begins", PACKED)
def _decay_at_reset(dy, dS, x, log_a, B, C, S0, resets, chunk):
    dx, dlog_a, dB, dC, dS0 = adjoint(dy, dS, x, log_a, B, C, S0, resets)
    whole = adjoint(dy, dS, x, log_a, B, C, S0, np.zeros_like(resets))[1]
    return dx, np.where(resets, whole, dlog_a), dB, dC, dS0


@planted("resets_late", "what is carried back stops one step late", PACKED)
def _resets_late(dy, dS, x, log_a, B, C, S0, resets, chunk):
    return adjoint(dy, dS, x, log_a, B, C, S0, earlier(resets, -1))


@planted("carry_lost_64", "the cotangent lost at blocks of 64", (SSD_RECURRENT,))
def _carry_lost_64(*args):
    return adjoint(*args, carry=lambda t, back: back * (t % 64 != 0))


@planted("carry_lost", "the cotangent lost between chunks", CHUNKED)
def _carry_lost(*args):
    return adjoint(*args, carry=lambda t, back: back * (t % args[-1] != 0 or t == 0))


@planted("carry_in_float16", "the cotangent carried in float16", (SSD_RECURRENT,))
def _carry_in_float16(*args):
    return adjoint(*args, carry=lambda t, back: float16(back))


@planted("expanded_cotangent", "a stride of 0 read as contiguous", (SSD_RECURRENT, SSD_CHUNKED))
def _expanded_cotangent(dy, *args):
    memory = np.zeros(dy.size, dy.dtype)
    distinct = dy[tuple(slice(0, 1) if s == 0 else slice(None) for s in dy.strides)]
    memory[: distinct.size] = distinct.ravel()
    return adjoint(memory.reshape(dy.shape), *args)


@planted("exponentiated_then_masked", "0 · ∞ where the exponentials above the diagonal overflow",
         ATTENTION)  # fmt: skip
def _exponentiated_then_masked(dy, dS, x, log_a, B, C, S0, resets, chunk):
    dx, dlog_a, dB, dC, dS0 = through_attention(dy, dS, x, log_a, B, C, S0, resets, chunk)
    c, i = np.cumsum(log_a, axis=-1), np.arange(log_a.shape[-1])
    within = (i[:, None] // chunk == i // chunk) & (i[:, None] < i)
    above = np.where(within, np.exp(c[..., :, None] - c[..., None, :]), 0)  # of one chunk
    masked = 0 * above  # the cotangent of np.where's other branch, times what was exponentiated
    return dx, dlog_a + masked.sum(-1) - masked.sum(-2), dB, dC, dS0
