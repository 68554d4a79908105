"""Honest mLSTM: in logarithms of all pairs, in chunks, without units, and step by step."""

import numpy as np

from honest import Honest
from honest.recurrences import forms_of
from refssm.conformance.planted.xlstm.programs import (
    form,
    gradient_form,
    recurrence,
    rested,
    steps_of,
)
from refssm.conformance.planted.xlstm.through_m import differentiated
from refssm.xlstm import XLSTM, XLSTM_CHUNKED

PLAIN, STATEFUL, PACKED, *_, STEP = XLSTM.operators


def _kept(x, resets, rank):
    return np.where(resets[(..., *[None] * rank)], 0, x)


def turned_state(g):
    """S as (p, n) with s as one more row, and the output by its logarithm's own branch."""
    T, m, y = _together(g.S0, g.s0), g.m0, []
    for now in steps_of(g):
        T, m = _kept(T, now.resets, 2), _kept(m, now.resets, 0)
        b = now.log_f + m
        later = np.where(b > now.i, b, now.i)
        later = np.where(np.isnan(b) | np.isnan(now.i), np.nan, later).astype(T.dtype)
        new = np.concatenate([now.v, np.ones_like(now.v[..., :1])], axis=-1)
        new = np.exp(now.i - later)[..., None] * new
        T = np.exp(b - later)[..., None, None] * T + new[..., :, None] * now.k[..., None, :]
        m, read = later, (T @ now.q[..., :, None])[..., 0]
        y.append(_divided(read, m))
    T, m = np.broadcast_to(T, (*m.shape, *T.shape[-2:])), np.broadcast_to(m, T.shape[:-2])
    return np.stack(y, axis=-2), np.swapaxes(T[..., :-1, :], -1, -2).copy(), T[..., -1, :], m


def _together(S, s):
    return np.concatenate([np.swapaxes(S, -1, -2), s[..., None, :]], axis=-2)


def _divided(read, m):
    """The first entries over the larger of the last one and e^{−m}."""
    a = np.abs(read[..., -1:])
    with np.errstate(over="ignore"):
        floor = np.exp(-m)[..., None]
    return read[..., :-1] / np.where(a < floor, floor, a)


def as_attention(g):
    """All pairs of steps: weights e^{D_ij − max_j D_ij}, with D_ij = i_j + Σ_{j<t≤i} log_f_t."""
    l = g.q.shape[-2]
    if not l:
        return turned_state(g)
    D = _logarithms(g)
    carried = _of_start(g)  # log of the weight of the first state
    most = np.maximum(D.max(-1), carried)
    pairs = g.q @ np.swapaxes(g.k, -1, -2)  # of a later key, too: 0·NaN would be NaN
    weights = np.where(np.isneginf(D), 0, np.exp(D - most[..., None]) * pairs)
    first = np.exp(carried - most)[..., None]
    num = _weighed(weights, g.v, D) + first * (g.q @ g.S0)
    a = weights.sum(-1) + first[..., 0] * (g.q @ g.s0[..., None])[..., 0]
    read = np.concatenate([num, a[..., None]], axis=-1)
    return _divided(read, most), *_last(g, D, carried, most)


def _weighed(weights, v, D):
    """Σ_j w_ij v_j over the past: no NaN of a later value meets a zero."""
    later = np.isneginf(D)
    if np.isfinite(v).all():
        return weights @ v
    terms = np.where(later[..., None], 0, weights[..., None] * v[..., None, :, :])
    return terms.sum(-2)


def _logarithms(g):
    """D_ij, −∞ for later j and for those of sequences before."""
    l, rows = g.q.shape[-2], []
    batch = np.broadcast_shapes(g.i.shape[:-1], g.log_f.shape[:-1], g.resets.shape[:-1])
    row = np.full((*batch, l), -np.inf, g.i.dtype)
    for t in range(l):
        here = np.arange(l) == t
        row = np.where(g.resets[..., t, None], -np.inf, row + g.log_f[..., t, None])
        row = np.where(np.arange(l) < t, row, -np.inf)
        row = np.where(here, g.i[..., t, None], row).astype(g.i.dtype)
        rows.append(row)
    return np.stack(rows, axis=-2)


def _of_start(g):
    """m0 + Σ_{t≤i} log_f_t; 0 decays from a reset on, with no state."""
    m, logs = g.m0, []
    for t in range(g.q.shape[-2]):
        m = np.where(g.resets[..., t], 0, m) + g.log_f[..., t]
        logs.append(m)
    return np.stack(np.broadcast_arrays(*logs), axis=-1)


def _last(g, D, carried, most):
    """The last state, by the last row."""
    w = np.exp(D[..., -1, :] - most[..., -1, None])[..., None] * g.k
    f = np.exp(carried[..., -1] - most[..., -1])
    S = np.swapaxes(w, -1, -2) @ g.v + f[..., None, None] * g.S0
    return S, w.sum(-2) + f[..., None] * g.s0, np.broadcast_to(most[..., -1], S.shape[:-2])


def in_chunks(size):
    """Chunks of `size` steps: pairs within, and the state before each."""

    def program(g):
        y, state = [], (g.S0, g.s0, g.m0)
        if g.resets.any():  # the state does not pass a reset: each sequence alone
            return turned_state(g)
        for start in range(0, g.q.shape[-2], size):
            piece = g.at(slice(start, start + size)).but(S0=state[0], s0=state[1], m0=state[2])
            made, *state = as_attention(piece)
            y.append(made)
        return np.concatenate(y, axis=-2), *state

    return program


def in_double(g):
    """Double precision inside, rounded once."""
    return turned_state(type(g)(*(x if x.dtype == bool else x.astype(np.float64) for x in g)))


def without_units(g):
    """In double precision without any m: e^i and e^{log_f} as they are. The state comes back in
    units of its largest entry.
    """
    wide = type(g)(*(x if x.dtype == bool else x.astype(np.float64) for x in g))
    unit = np.exp(wide.m0)
    S, s, y = wide.S0 * unit[..., None, None], wide.s0 * unit[..., None], []
    for now in steps_of(wide):
        S, s, _ = rested(now.resets, S, s, unit)
        f, g_now = np.exp(now.log_f)[..., None], np.exp(now.i)[..., None]
        S = f[..., None] * S + (g_now * now.k)[..., :, None] * now.v[..., None, :]
        s = f * s + g_now * now.k
        a = np.abs((s * now.q).sum(-1))[..., None]
        y.append((S * now.q[..., :, None]).sum(-2) / np.maximum(a, 1))
    most = np.maximum(np.abs(S).max((-1, -2), initial=0), np.abs(s).max(-1, initial=0))
    usual = np.isfinite(most) & (most > 0)
    m = np.log(np.where(usual, most, 1)).astype(np.float32).astype(np.float64)
    down = np.exp(-m)
    return np.stack(y, axis=-2), S * down[..., None, None], s * down[..., None], m


def _no_tiny_state(case):
    """The case with 0 for states below 1e-280, which lose digits where nothing has units."""
    tiny = {name: case[name] for name in ("S0", "s0", "S", "s") if name in case}
    return case | {name: np.where(np.abs(x) < 1e-280, 0, x) for name, x in tiny.items()}


def states_saved(cotangents, g):
    """All states forwards, all cotangents backwards; m is a constant, whatever its cotangent is."""
    dy, dS, ds, _ = cotangents
    state, saved = (g.S0, g.s0, g.m0), []
    for now in steps_of(g):
        S, s, m = rested(now.resets, *state)
        b = now.log_f + m
        later = np.maximum(b, now.i)
        now.f, now.w, now.old = np.exp(b - later), np.exp(now.i - later), (S, s)
        S = now.f[..., None, None] * S + (now.w[..., None] * now.k)[..., None] * now.v[..., None, :]
        s = now.f[..., None] * s + now.w[..., None] * now.k
        now.S, now.s, now.m, state = S, s, later, (S, s, later)
        saved.append(now)
    G, h, rows = dS, ds, []
    for now in saved[::-1]:
        a = (now.s * now.q).sum(-1)
        floor = np.exp(-now.m)
        larger = np.abs(a) >= floor
        d = np.where(larger, np.abs(a), floor)
        dnum = dy[..., now.t, :] / d[..., None]
        dd = -(dnum * (now.q[..., None, :] @ now.S)[..., 0, :]).sum(-1) / d
        da = np.where(larger, np.where(a < 0, -dd, dd), 0 * dd)
        G = G + now.q[..., :, None] * dnum[..., None, :]
        h = h + now.q * da[..., None]
        dk = ((G @ now.v[..., :, None])[..., 0] + h) * now.w[..., None]
        dq = (now.S @ dnum[..., :, None])[..., 0] + now.s * da[..., None]
        dv = (now.k[..., None, :] @ G)[..., 0, :] * now.w[..., None]
        G, h = now.f[..., None, None] * G, now.f[..., None] * h
        df = (G * now.old[0]).sum((-1, -2)) + (h * now.old[1]).sum(-1)
        rows.insert(0, (dq, dk, dv, (dk * now.k).sum(-1), np.where(now.resets, 0, df)))
        G, h, _ = rested(now.resets, G, h, 0 * now.m)
    names, ranks = ("q", "k", "v", "i", "log_f"), (2, 2, 2, 1, 1)
    parts = zip(names, ranks, zip(*rows, strict=True), strict=True)
    found = {name: np.stack(np.broadcast_arrays(*xs), axis=-r) for name, r, xs in parts}
    dm = (G * g.S0).sum((-1, -2)) + (h * g.s0).sum(-1)
    return found | {"S0": G, "s0": h, "m0": dm}


def _made(name, whole, operators, vjp=None, only=None):
    """One implementation of each of `operators`, from a function of all arguments."""
    return [
        Honest(op.name, name, _without_eps(form(op, whole)),
               _without_eps(gradient_form(op, vjp)) if vjp else None, only)
        for op in operators
    ]  # fmt: skip


def _without_eps(program):
    """The program, which has eps = 0."""
    return lambda *args, eps, chunk=0: program(*args)


def _of_size(op):
    """Chunks of the size that is asked for."""
    return lambda *args, eps, chunk: form(op, in_chunks(chunk))(*args)


SEQUENCES, CHUNKED = (PLAIN, STATEFUL, PACKED), XLSTM_CHUNKED.operators[:3]
IMPLEMENTATIONS = [
    *_made("turned_state", turned_state, (*SEQUENCES, STEP), states_saved),
    *_made("through_m", recurrence, (PLAIN, STATEFUL, STEP), differentiated),
    *_made("attention", as_attention, (PLAIN, STATEFUL)),
    *_made("chunks_of_16", in_chunks(16), SEQUENCES),
    *_made("double_inside", in_double, (*SEQUENCES, STEP)),
    *_made("without_units", without_units, (*SEQUENCES, STEP), only=_no_tiny_state),
    *forms_of(XLSTM),
    *_made("turned_state", turned_state, CHUNKED, states_saved),
    *_made("chunks_of_32", in_chunks(32), CHUNKED),
    *_made("double_inside", in_double, CHUNKED),
    *(Honest(op.name, "chunks", _of_size(op)) for op in CHUNKED),
    *forms_of(XLSTM_CHUNKED, XLSTM.step),
]
