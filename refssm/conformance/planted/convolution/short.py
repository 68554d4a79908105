"""Planted bugs in short convolutions: the order of taps, lengths below t, the streaming state."""

import numpy as np

from refssm.broadcasting import unbroadcast, unbroadcast_each
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting_old import Planting
from refssm.convolution import (
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
)


def past_of(s, u):
    """The t inputs before and those now, along time."""
    batch = np.broadcast_shapes(s.shape[:-1], u.shape[:-1])
    return np.concatenate([np.broadcast_to(x, (*batch, x.shape[-1])) for x in (s, u)], axis=-1)


def filtered(past, k):
    """y_i = Σ_j k_j past_{t+i−j}, for every i from 0."""
    t = k.shape[-1]
    l = past.shape[-1] - t
    batch = np.broadcast_shapes(past.shape[:-1], k.shape[:-1])
    y = np.zeros((*batch, l), np.result_type(past, k))
    for j in range(t):
        y = y + k[..., j, None] * past[..., t - j : t - j + l]
    return y


def streaming(k, s, u):
    """The outputs without a bug."""
    return filtered(past_of(s, u), k)


def newest(k, s, u):
    """The state without a bug: the last t inputs, the newest last."""
    return past_of(s, u)[..., u.shape[-1] :].copy()


def delayed(k):
    """One zero in front."""
    return np.concatenate([0 * k[..., :1], k[..., :-1]], axis=-1)


def _circular(k, s, u):
    """The end of the signal before its beginning."""
    wrapped = np.concatenate([u] * (k.shape[-1] // u.shape[-1] + 1), axis=-1)
    return filtered(past_of(s + wrapped[..., -k.shape[-1] :], u), k)


def _anticausal(k, s, u):
    """Half of the padding behind, as `padding="same"` has it."""
    late = (k.shape[-1] - 1) // 2
    past = np.concatenate([past_of(s, u), np.zeros_like(u, shape=(*u.shape[:-1], late))], axis=-1)
    return filtered(past[..., late:], k)


def _short_refused(k, s, u):
    if u.shape[-1] < k.shape[-1]:
        raise ValueError("fewer samples than taps")
    return streaming(k, s, u)


def _short_cut(k, s, u):
    """Where the taps are more than the samples, as many of them as samples, from the wrong end."""
    cut = max(k.shape[-1] - u.shape[-1], 0)
    return streaming(np.roll(_kept(k, slice(cut, None)), -cut, axis=-1), s, u)


def _kept(k, which):
    """Some of the taps, the others zero."""
    kept = np.zeros_like(k)
    kept[..., which] = k[..., which]
    return kept


def _in_blocks(k, s, u):
    """Blocks of 64 samples apart: the taps do not reach over their edges."""
    cuts = [u[..., i : i + 64] for i in range(0, u.shape[-1], 64)]
    return np.concatenate([streaming(k, 0 * s if i else s, c) for i, c in enumerate(cuts)], -1)


OUTPUTS = {
    "taps_reversed": ("a correlation: the last tap for the newest input",
        lambda k, s, u: streaming(k[..., ::-1], s, u)),
    "one_step_late": ("Σ_j k_j u_{i−1−j}", lambda k, s, u: streaming(delayed(k), s, u)),
    "first_tap_lost": ("Σ_{j>0} k_j u_{i−j}",
        lambda k, s, u: streaming(_kept(k, slice(1, None)), s, u)),
    "last_tap_lost": ("the last tap dropped",
        lambda k, s, u: streaming(_kept(k, slice(max(k.shape[-1] - 1, 1))), s, u)),
    "four_taps": ("taps beyond the fourth dropped",
        lambda k, s, u: streaming(_kept(k, slice(4)), s, u)),
    "blocks_apart": ("blocks of 64 samples convolved apart", _in_blocks),
    "circular": ("the end wraps around onto the beginning", _circular),
    "anticausal": ("padding on both sides", _anticausal),
    "signal_reversed": ("u backwards", lambda k, s, u: streaming(k, s, u[..., ::-1])),
    "short_refused": ("fewer samples than taps raise", _short_refused),
    "short_cut": ("the last l taps used where samples are fewer", _short_cut),
    "skip_added": ("u added", lambda k, s, u: streaming(k, s, u) + u),
    "state_in_bfloat16": ("the kept inputs in bfloat16",
        lambda k, s, u: filtered(bfloat16(past_of(s, u)), k)),
}  # fmt: skip
OUTPUTS_COMPLEX = {
    "conjugate_taps": ("k* for k", lambda k, s, u: streaming(k.conj(), s, u)),
    "conjugate_signal": ("u* for u", lambda k, s, u: streaming(k, s.conj(), u.conj())),
}
FROM = {
    "start_dropped": ("s0 taken as zero", lambda k, s, u: streaming(k, 0 * s, u)),
    "start_reversed": ("s0 with the newest first", lambda k, s, u: streaming(k, s[..., ::-1], u)),
    "start_one_late": (
        "s0 taken for the inputs up to the one before the last",
        lambda k, s, u: streaming(k, np.roll(s, 1, axis=-1), u),
    ),
    "start_one_early": (
        "s0's first t − 1 entries used, not its last",
        lambda k, s, u: streaming(k, _first_used(s), u),
    ),
    "start_ignored_in_batch_of_one": (
        "s0 taken as zero where the batch is 1",
        lambda k, s, u: streaming(k, s * (s.shape[0] != 1), u),
    ),
}
STATES = {
    "state_reversed": ("the newest first", lambda k, s, u: newest(k, s, u)[..., ::-1]),
    "state_one_late": ("without the newest input",
        lambda k, s, u: newest(k, s, u[..., :-1]) if u.shape[-1] else newest(k, s, u)),
    "state_weighted": ("the inputs times the taps", lambda k, s, u: k * newest(k, s, u)),
    "state_not_updated": ("s0 returned", lambda k, s, u: past_of(s, u[..., :0]).copy()),
    "state_not_updated_if_short": ("s0 returned where samples are fewer than taps",
        lambda k, s, u: newest(k, s, u if u.shape[-1] >= k.shape[-1] else u[..., :0])),
    "state_padded_if_short": ("zeros for s0 where samples are fewer than taps",
        lambda k, s, u: newest(k, 0 * s, u)),
    "state_of_beginning": ("the first t inputs",
        lambda k, s, u: past_of(s, u)[..., -u.shape[-1] :][..., : k.shape[-1]]
        if u.shape[-1] >= k.shape[-1] else newest(k, s, u)),
    "state_in_half": ("the state rounded to float16", lambda k, s, u: float16(newest(k, s, u))),
}  # fmt: skip


def _first_used(s):
    return np.concatenate([s[..., :1], s[..., :-1]], axis=-1)


def as_called(op, outputs=streaming, state=newest):
    """Outputs and state as functions of (k, s, u), called as the operator is."""
    if op is SHORT_CONVOLUTION:
        return lambda u, k: _typed(op, outputs(k, np.zeros_like(k, u.dtype), u), u, k)
    if op is SHORT_CONVOLUTION_STEP:
        return lambda u, k, s: (
            _typed(op, outputs(k, s, u[..., None])[..., 0], u, k, s),
            state(k, s, u[..., None]),
        )
    return lambda u, k, s: (_typed(op, outputs(k, s, u), u, k, s), state(k, s, u))


def _typed(op, y, *args):
    return y.astype(op.output_types(*args)[0])


def back(dy, ds, u, k, s, *, turned=False, conj=np.conj, early=False, first=0):
    """Gradients of outputs and state, with parts exchangeable."""
    l, t, past = u.shape[-1], k.shape[-1], past_of(s, u)
    dpast, dk = np.zeros(past.shape, np.result_type(dy, past, k)), []
    if ds is not None:
        window = slice(t) if early else slice(l, None)
        dpast[..., window] = ds
    for j in range(t):
        window = slice(t - j, t - j + l)
        dpast[..., window] += conj(k[..., (t - 1 - j) if turned else j, None]) * dy
        dk.append((conj(past[..., window]) * dy)[..., first * (t - 1) :].sum(-1))
    return unbroadcast_each((dpast[..., t:], np.stack(dk, axis=-1), dpast[..., :t]), (u, k, s))


def vjp_as_called(op, pull):
    """A function of (dy, ds, u, k, s) to (du, dk, ds), called as the operator's VJP is."""
    if op is SHORT_CONVOLUTION:
        return lambda dy, u, k: pull(dy, None, u, k, np.zeros_like(k, u.dtype))[:2]
    if op is SHORT_CONVOLUTION_STATEFUL:
        return pull

    def step(dy, ds, u, k, s):
        du, dk, ds = pull(dy[..., None], ds, u[..., None], k, s)
        return du[..., 0], dk, ds

    return step


def _weights_reversed(*args):
    du, dk, ds = back(*args)
    return du, dk[..., ::-1], ds


def _weights_late(*args):
    du, dk, ds = back(*args)
    return du, delayed(dk), ds


def _first_of_batch(dy, ds, u, k, s):
    du, _, ds0 = back(dy, ds, u, k, s)
    alone = [x[:1] if x.ndim > k.ndim else x for x in (dy, u, s)]
    return du, back(alone[0], None, alone[1], k, alone[2])[1], ds0


def _as_jax(*args):
    return tuple(g.conj() for g in back(*args))


GRADIENTS = {
    "weights_reversed": ("dk with the newest lag last", _weights_reversed),
    "weights_one_late": ("dk_j of lag j − 1", _weights_late),
    "weights_of_first_batch": ("dk of the first sequence only", _first_of_batch),
    "taps_reversed": ("du by a convolution, not a correlation",
        lambda *args: back(*args, turned=True)),
    "sign": ("du with the other sign", lambda *args: ((g := back(*args))[0] * -1, *g[1:])),
    "float16": ("the cotangent in float16",
        lambda dy, *args: back(float16(dy), *args)),
}  # fmt: skip
ALONG_TIME = {
    "weights_miss_beginning": ("dk without the first t − 1 outputs",
        lambda *args: back(*args, first=1)),
    "last_step_dropped": ("the last cotangent left out",
        lambda dy, *args: back(dy * (np.arange(dy.shape[-1]) < dy.shape[-1] - 1), *args)),
}  # fmt: skip
GRADIENTS_COMPLEX = {
    "not_conjugated": ("k and u for k* and u*", lambda *args: back(*args, conj=np.asarray)),
    "as_jax": ("the conjugate convention", _as_jax),
}
STATE_GRADIENTS = {
    "start_missing": ("ds0 = 0", lambda *args: (*(g := back(*args))[:2], 0 * g[2])),
    "state_dropped": ("the last state's cotangent dropped",
        lambda dy, ds, *args: back(dy, 0 * ds, *args)),
    "state_at_beginning": ("the last state's cotangent sent to s0",
        lambda *args: back(*args, early=True)),
    "start_reversed": ("ds0 with the newest first",
        lambda *args: (*(g := back(*args))[:2], g[2][..., ::-1])),
    "state_reversed": ("the last state's cotangent with the newest first",
        lambda dy, ds, *args: back(dy, ds[..., ::-1], *args)),
    "start_in_weights": ("dk as if s0 were zero",
        lambda dy, ds, u, k, s: ((g := back(dy, ds, u, k, s))[0],
            unbroadcast(back(dy, ds, u, k, 0 * s)[1], k), g[2])),
}  # fmt: skip

# one step does not show them
ALONG_TIME_ONLY = (
    "signal_reversed",
    "blocks_apart",
    "anticausal",
    "circular",
    "state_of_beginning",
)


def _plant(p: Planting) -> None:
    one, streams = p.op is SHORT_CONVOLUTION_STEP, p.op is not SHORT_CONVOLUTION
    for name, (what, outputs) in (OUTPUTS | (FROM if streams else {})).items():
        if not (one and name in ALONG_TIME_ONLY):
            p.forward(name, what)(as_called(p.op, outputs))
    for name, (what, outputs) in OUTPUTS_COMPLEX.items():
        p.forward(name, what, dtype="complex64")(as_called(p.op, outputs))
    for name, (what, state) in (STATES if streams else {}).items():
        if not (one and name in ALONG_TIME_ONLY):
            p.forward(name, what, "value" if one else "state")(as_called(p.op, state=state))
    if not one:
        p.forward("nan_spread", "0 · NaN of the future reaches the past", "nan")(
            as_called(p.op, lambda k, s, u: streaming(k, s, u + 0 * u.sum(-1, keepdims=True)))
        )
    gradients = GRADIENTS | (STATE_GRADIENTS if streams else {}) | ({} if one else ALONG_TIME)
    for name, (what, pull) in gradients.items():
        p.gradient(name, what)(vjp_as_called(p.op, pull))
    for name, (what, pull) in GRADIENTS_COMPLEX.items():
        p.gradient(name, what, "complex64")(vjp_as_called(p.op, pull))


DEVIATIONS = []
for _op in (SHORT_CONVOLUTION, SHORT_CONVOLUTION_STATEFUL, SHORT_CONVOLUTION_STEP):
    _p = Planting(_op, "float32")
    _p.usual()
    _plant(_p)
    DEVIATIONS += _p.bugs
