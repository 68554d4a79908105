"""Honest Mamba-3: step by step with 2 × 2 matrices, as attention, in chunks, as the public kernels
weigh an input once for both of its terms, and in double precision.
"""

import numpy as np

from honest import Honest
from honest.recurrences import forms_of
from refssm.conformance.planted.mamba3.programs import (
    PARTS,
    RANKS,
    form,
    gradient_form,
    rested,
    steps_of,
)
from refssm.mamba3 import MAMBA3_SISO_RECURRENCE

PLAIN, STATEFUL, PACKED, *_, STEP = MAMBA3_SISO_RECURRENCE.operators


def _share(trap):
    """σ and 1 − σ, both with all digits."""
    small = np.exp(-np.abs(trap))
    one, other = 1 / (1 + small), small / (1 + small)
    return np.where(trap < 0, other, one), np.where(trap < 0, one, other)


def _as_complex(x):
    return x[..., ::2] + 1j * x[..., 1::2]


def _as_pairs(z, like):
    return np.stack([z.real, z.imag], axis=-1).reshape(*z.shape[:-1], -1).astype(like.dtype)


def _moved(now, phase):
    """The next angles, from −π to π."""
    turn = 2 * np.pi
    phase = phase + np.pi * np.tanh(now.angles) * now.dt[..., None]
    return (phase - turn * np.round(phase / turn)).astype(now.angles.dtype)


def _matrices(phase):
    """R(φ) of each pair, 2 × 2."""
    c, s = np.cos(phase), np.sin(phase)
    return np.stack([np.stack([c, -s], axis=-1), np.stack([s, c], axis=-1)], axis=-2)


def _in_pairs(x):
    return x.reshape(*x.shape[:-1], -1, 2)


def _flat(x):
    return x.reshape(*x.shape[:-2], -1)


def matrices(g):
    """Pairs turned by 2 × 2 matrices; the state is (p, n, 2)."""
    phase, S, key, value = g.state
    T, y = np.swapaxes(S, -1, -2), []
    for now in steps_of(g):
        phase, T, key, value = rested(now.resets, phase, T, key, value)
        phase = _moved(now, phase)
        R = _matrices(phase)
        q, k = (_flat((R @ _in_pairs(x)[..., None])[..., 0]) for x in (now.q, now.k))
        own, late = ((x * now.dt)[..., None, None] for x in _share(now.trap))
        T = T + late * value[..., :, None] * key[..., None, :]
        T = np.exp(now.log_g)[..., None, None] * T + own * now.v[..., :, None] * k[..., None, :]
        y.append((T * q[..., None, :]).sum(-1))
        key, value = k, now.v
    return np.stack(y, axis=-2), phase, np.swapaxes(T, -1, -2), key, value


def as_attention(g):
    """All pairs of steps, y_t = Σ_j w_tj (q'_t·k'_j) v_j, with both terms of an input at once."""
    l = g.q.shape[-2]
    if not l or g.resets.any():
        return matrices(g)
    phases, phase = [], g.phase0
    for now in steps_of(g):
        phase = _moved(now, phase)
        phases.append(phase)
    phases = np.stack(np.broadcast_arrays(*phases), axis=-2)
    turn = _matrices(phases)
    q, k = (_flat((turn @ _in_pairs(x)[..., None])[..., 0]) for x in (g.q, g.k))
    share, rest = _share(g.trap)
    own, late = share * g.dt, rest * g.dt
    logs = _spans(g.log_g)
    weights = (
        np.exp(logs[..., 1:])
        * (own + np.concatenate([late[..., 1:], late[..., :1]], -1))[..., None, :]
    )
    diagonal = np.arange(l)
    weights = np.broadcast_to(weights, (*weights.shape[:-2], l, l)).copy()
    weights[..., diagonal, diagonal] = own
    pairs = q @ np.swapaxes(k, -1, -2)  # of a later key, too: 0·NaN would be NaN
    y = _summed(np.where(np.tri(l, dtype=bool), weights * pairs, 0), g.v)
    start = g.S0 + late[..., 0, None, None] * g.key0[..., :, None] * g.value0[..., None, :]
    first = np.exp(logs[..., 0])
    y = y + first[..., None] * (q @ start)
    last = np.swapaxes(weights[..., -1, :, None] * k, -1, -2)
    S = _summed(last, g.v) + first[..., -1, None, None] * start
    return y, phase, S, k[..., -1, :], g.v[..., -1, :]


def _summed(weights, v):
    """Σ_j w_ij v_j where no weight of 0 meets a NaN."""
    if np.isfinite(v).all():
        return weights @ v
    terms = np.where(weights[..., None] == 0, 0, weights[..., None] * v[..., None, :, :])
    return terms.sum(-2)


def _spans(log_g):
    """Σ_{j<s≤t} log_g_s for the step j in columns 1 on, and over all steps up to t in column 0."""
    rows, row = [], np.zeros((*log_g.shape[:-1], log_g.shape[-1] + 1), log_g.dtype)
    column = np.arange(log_g.shape[-1] + 1)
    for t in range(log_g.shape[-1]):
        row = np.where(column <= t, row + log_g[..., t, None], 0).astype(log_g.dtype)
        rows.append(row)
    return np.stack(rows, axis=-2)


def in_chunks(size):
    """Chunks of `size` steps: pairs within, and the state before each."""

    def program(g):
        y, state = [], g.state
        if g.resets.any():  # the state does not pass a reset: each sequence alone
            return matrices(g)
        for start in range(0, g.q.shape[-2], size):
            made, *state = as_attention(g.at(slice(start, start + size)).starting(state))
            y.append(made)
        return np.concatenate(y, axis=-2), *state

    return program


def in_double(g):
    """Double precision inside, rounded once."""
    return matrices(type(g)(*(x if x.dtype == bool else x.astype(np.float64) for x in g)))


def complex_adjoint(cotangents, g):
    """All states forwards, all cotangents backwards, in complex pairs; sums in double precision."""
    wide = type(g)(*(x if x.dtype == bool else x.astype(np.float64) for x in g))
    dy, *carried = (np.asarray(x, np.float64) for x in cotangents)
    saved, state = [], wide.state
    for now in steps_of(wide):
        now.phase, now.S0, now.key, now.value = rested(now.resets, *state)
        now.phase = _moved(now, now.phase)
        now.turn = np.exp(1j * now.phase)
        now.zq, now.zk = (_as_complex(x) * now.turn for x in (now.q, now.k))
        now.qt, now.kt = _as_pairs(now.zq, now.q), _as_pairs(now.zk, now.k)
        now.own, now.late = _share(now.trap)
        now.a = np.exp(now.log_g)
        late, own = (now.late * now.dt)[..., None], (now.own * now.dt)[..., None]
        S = now.S0 + (late * now.key)[..., :, None] * now.value[..., None, :]
        now.S = now.a[..., None, None] * S + (own * now.kt)[..., :, None] * now.v[..., None, :]
        now.held, state = S, (now.phase, now.S, now.kt, now.v)
        saved.append(now)
    rows = []
    for now in saved[::-1]:
        found, carried = _pulled_back(now, dy[..., now.t, :], *carried)
        rows.insert(0, found)
        carried = rested(now.resets, *carried)
    parts = zip(RANKS.items(), zip(*rows, strict=True), strict=True)
    found = {name: np.stack(np.broadcast_arrays(*xs), axis=-r) for (name, r), xs in parts}
    found |= {f"{name}0": x for name, x in zip(PARTS, carried, strict=True)}
    return {name: x.astype(g.v.dtype) for name, x in found.items()}


def _pulled_back(now, dy, dphase, dS, dkey, dvalue):
    """The gradients of one step, and what is carried to the step before."""
    dq = _as_complex((now.S @ dy[..., None])[..., 0])
    G = dS + now.qt[..., :, None] * dy[..., None, :]
    of_v = (G @ now.v[..., None])[..., 0]
    own, late = now.own * now.dt, now.late * now.dt
    dk = _as_complex(dkey + own[..., None] * of_v)
    dv = dvalue + own[..., None] * (now.kt[..., None, :] @ G)[..., 0, :]
    dphase = dphase + (now.zq.conj() * dq).imag + (now.zk.conj() * dk).imag
    dheld = now.a[..., None, None] * G
    dlate = (dheld * now.key[..., :, None] * now.value[..., None, :]).sum((-1, -2))
    down, t = (of_v * now.kt).sum(-1), np.tanh(now.angles)
    gradients = (
        _as_pairs(dq * now.turn.conj(), now.q),
        _as_pairs(dk * now.turn.conj(), now.k),
        dv,
        np.where(now.resets, 0, (dheld * now.held).sum((-1, -2))),
        now.own * down + now.late * dlate + np.pi * (t * dphase).sum(-1),
        now.own * now.late * now.dt * (down - dlate),
        np.pi / np.cosh(np.clip(now.angles, -300, 300)) ** 2 * now.dt[..., None] * dphase,
    )
    dkey = late[..., None] * (dheld @ now.value[..., None])[..., 0]
    dvalue = late[..., None] * (now.key[..., None, :] @ dheld)[..., 0, :]
    return gradients, (dphase, dheld, dkey, dvalue)


def _made(name, whole, operators, vjp=None):
    """One implementation of each of `operators`, from a function of all arguments."""
    return [
        Honest(op.name, name, form(op, whole), gradient_form(op, vjp) if vjp else None)
        for op in operators
    ]


SEQUENCES = PLAIN, STATEFUL, PACKED
IMPLEMENTATIONS = [
    *_made("matrices", matrices, (*SEQUENCES, STEP), complex_adjoint),
    *_made("attention", as_attention, (PLAIN, STATEFUL)),
    *_made("chunks_of_16", in_chunks(16), SEQUENCES),
    *_made("double_inside", in_double, (*SEQUENCES, STEP)),
    *forms_of(MAMBA3_SISO_RECURRENCE),
]
