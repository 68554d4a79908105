"""Short convolutions: a few taps over the newest inputs, before a selective scan or a gate.

    y_i = Σ_{j<t} k_j u_{i−j}

`k_0` multiplies the newest input. A framework's Conv1d computes a correlation: its weights are k in
reverse order [gu2023mamba, fu2023h3]. The streaming state is the last t inputs, the newest at the
end.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.domains import resets, signals, taps


def short_convolution(u, k):
    """y_i = Σ_{j<t} k_j u_{i−j}, with u = 0 before the first input.

    Signature ``(l),(t)->(l)``: `u` the signal of one channel, `k` its taps, the first for the
    newest input; `l` time, `t` taps, in any proportion; leading axes broadcast. Any of float32,
    float64, longdouble and their complex types; the result has ``np.result_type(u, k)``. Units:
    those of `u` times those of `k`.

    Raises ValueError if sizes disagree, TypeError for other types. NaN at time j reaches the
    outputs j to j + t − 1. Source: [gu2023mamba, §3.4].

    >>> import refssm
    >>> refssm.short_convolution([1.0, 0.0, 2.0], [3.0, 5.0])
    array([3., 5., 6.])
    """
    l, t = u.shape[-1], k.shape[-1]
    y = np.zeros_like(u, shape=_shape(u, k), dtype=np.result_type(u, k))
    for j in range(min(t, l)):
        y[..., j:] = y[..., j:] + k[..., j, None] * u[..., : l - j]
    return y


def _shape(u, k):
    return (*np.broadcast_shapes(u.shape[:-1], k.shape[:-1]), u.shape[-1])


def short_convolution_vjp(dy, u, k):
    """du_i = Σ_{j<t} k_j* dy_{i+j},  dk_j = Σ_i u_{i−j}* dy_i.

    Returns `(du, dk)`, shaped like `u` and `k`.
    """
    before = np.zeros_like(k)
    du, dk, _ = _pulled_back(dy, None, u, k, before)
    return unbroadcast_each((du, dk), (u, k))


def _pulled_back(dy, ds, u, k, s):
    """Gradients from the cotangents of the outputs and (unless `ds` is None) of the last state."""
    l, t = u.shape[-1], k.shape[-1]
    batch = np.broadcast_shapes(dy.shape[:-1], s.shape[:-1])
    past = np.concatenate(_filled(batch, s, u), axis=-1)  # u_{-t} … u_{l-1}
    kind = np.result_type(dy, u, k, s, *([] if ds is None else [ds]))
    dpast, dk = np.zeros_like(past, dtype=kind), []
    if ds is not None:
        dpast[..., l:] = ds
    for j in range(t):
        window = slice(t - j, t - j + l)
        dpast[..., window] = dpast[..., window] + k[..., j, None].conj() * dy
        dk.append((past[..., window].conj() * dy).sum(-1))
    dk = np.stack(dk, axis=-1) if dk else np.zeros((*batch, 0), kind)
    return dpast[..., t:], dk, dpast[..., :t]


def _filled(batch, *pieces):
    """The pieces, broadcast to the same batch axes; the last axis stays."""
    return [np.broadcast_to(x, (*batch, x.shape[-1])) for x in pieces]


SHORT_CONVOLUTION = Operator(
    reference=short_convolution,
    signature="(l),(t)->(l)",
    inputs={"u": signals, "k": taps},
    batch="b d, d",
    traits=frozenset({"causal", "time-invariant", "state", "linear:u", "linear:k"}),
    citation="gu2023mamba, §3.4",
    tags=(
        "causal_conv1d_fn",
        "causal_conv1d_ref",
        "depthwise conv1d",
        "Mamba conv1d",
        "ggml_ssm_conv",
    ),
)
short_convolution = SHORT_CONVOLUTION.checked(short_convolution)
short_convolution_vjp = SHORT_CONVOLUTION.checked_vjp(short_convolution_vjp)


def short_convolution_packed(u, k, resets):
    """y_i = Σ_{j<t} k_j u_{i−j}, only over inputs since the last reset.

    Signature ``(l),(t),(l)->(l)``: as `short_convolution`, for packed sequences. `resets` is true,
    or an integer that is not 0, at the first step of each; the very first step needs none. Inputs
    before are dropped, not multiplied by 0, so nothing leaks, not even NaN. TypeError if `resets`
    has another type. Source: [lu2023structured].

    >>> import refssm
    >>> refssm.short_convolution_packed([1.0, 1.0, 1.0], [3.0, 5.0], [False, False, True])
    array([3., 8., 3.])
    """
    shape = np.broadcast_shapes(_shape(u, k), (*resets.shape[:-1], u.shape[-1]))
    y = np.zeros_like(u, shape=shape, dtype=np.result_type(u, k))
    for j, same in enumerate(_same_sequence(resets, k.shape[-1])):
        late = k[..., j, None] * u[..., : u.shape[-1] - j]
        y[..., j:] = y[..., j:] + np.where(same, late, 0)
    return y


def _same_sequence(resets, t):
    """For each lag j < t, whether inputs i − j and i ≥ j are of the same sequence."""
    resets = resets != 0
    same = np.ones_like(resets)
    for j in range(min(t, resets.shape[-1])):
        yield same
        same = same[..., 1:] & ~resets[..., 1 : resets.shape[-1] - j]


def short_convolution_packed_vjp(dy, u, k, resets):
    """As in `short_convolution_vjp`; nothing flows back over a reset.

    Returns `(du, dk, None)`, shaped like `u` and `k`.
    """
    l, t = u.shape[-1], k.shape[-1]
    kind = np.result_type(dy, u, k)
    du, dk = np.zeros_like(dy, dtype=kind), []
    for j, same in enumerate(_same_sequence(resets, t)):
        late = np.where(same, dy[..., j:], 0)
        du[..., : l - j] = du[..., : l - j] + k[..., j, None].conj() * late
        product = np.where(same, u[..., : l - j].conj() * dy[..., j:], 0)
        dk.append(product.sum(-1))
    dk += [np.zeros_like(dy, shape=dy.shape[:-1], dtype=kind)] * (t - len(dk))
    dk = np.stack(dk, axis=-1) if dk else np.zeros((*dy.shape[:-1], 0), kind)
    return *unbroadcast_each((du, dk), (u, k)), None


SHORT_CONVOLUTION_PACKED = Operator(
    reference=short_convolution_packed,
    signature="(l),(t),(l)->(l)",
    inputs={"u": signals, "k": taps, "resets": resets},
    batch="b d, d, b",
    traits=frozenset({"causal", "linear:u", "linear:k"}),
    citation="lu2023structured",
    tags=("causal_conv1d_fn seq_idx", "causal_conv1d varlen", "packed depthwise conv1d"),
)
short_convolution_packed = SHORT_CONVOLUTION_PACKED.checked(short_convolution_packed)
short_convolution_packed_vjp = SHORT_CONVOLUTION_PACKED.checked_vjp(short_convolution_packed_vjp)


def short_convolution_stateful(u, k, s0):
    """y_i = Σ_{j<t} k_j u_{i−j}, with u_{−1}, u_{−2}, … from the end of s0, and the last t inputs.

    Signature ``(l),(t),(t)->(l),(t)``: as `short_convolution`; `s0` the t inputs before, the newest
    at the end, in the units of `u`. The first of them is not used; decoders store t inputs anyway.
    The next piece or `short_convolution_step` starts from the returned state. Source: [gu2023mamba,
    §3.4].

    >>> import refssm
    >>> refssm.short_convolution_stateful([2.0], [3.0, 5.0], [7.0, 1.0])
    (array([11.]), array([1., 2.]))
    """
    l, t = u.shape[-1], k.shape[-1]
    batch = np.broadcast_shapes(u.shape[:-1], k.shape[:-1], s0.shape[:-1])
    past = np.concatenate(_filled(batch, s0, u), axis=-1)  # u_{-t} … u_{l-1}
    y = np.zeros_like(past[..., t:], dtype=np.result_type(past, k))
    for j in range(t):
        y = y + k[..., j, None] * past[..., t - j : t - j + l]
    return y, past[..., l:].copy()


def short_convolution_stateful_vjp(dy, ds, u, k, s0):
    """As in `short_convolution_vjp`, with cotangent ds on the last inputs; ds0 gets the rest.

    Returns `(du, dk, ds0)`, shaped like `u`, `k` and `s0`.
    """
    du, dk, ds0 = _pulled_back(dy, ds, u, k, s0)
    return unbroadcast_each((du, dk, ds0), (u, k, s0))


SHORT_CONVOLUTION_STATEFUL = Operator(
    reference=short_convolution_stateful,
    signature="(l),(t),(t)->(l),(t)",
    form="stateful",
    inputs={"u": signals, "k": taps, "s0": signals},
    outputs=("y", "s"),
    batch="b d, d, b d",
    traits=frozenset({"causal", "state", "linear:u,s0", "linear:k->y"}),
    citation="gu2023mamba, §3.4",
    tags=("causal_conv1d_fn initial_states final_states",),
)
short_convolution_stateful = SHORT_CONVOLUTION_STATEFUL.checked(short_convolution_stateful)
short_convolution_stateful_vjp = SHORT_CONVOLUTION_STATEFUL.checked_vjp(
    short_convolution_stateful_vjp
)


def short_convolution_step(u, k, s):
    """s ← (s_1, …, s_{t−1}, u),  y = Σ_{j<t} k_j s_{t−1−j}: one input and the next state.

    Signature ``(),(t),(t)->(),(t)``: as one step of `short_convolution_stateful`. Source:
    [gu2023mamba, §3.4].

    >>> import refssm
    >>> refssm.short_convolution_step(2.0, [3.0, 5.0], [7.0, 1.0])
    (array(11.), array([1., 2.]))
    """
    batch = np.broadcast_shapes(u.shape, s.shape[:-1], k.shape[:-1])
    s = np.concatenate(_filled(batch, s, u[..., None]), axis=-1)[..., 1:].copy()
    y = (k * s[..., ::-1]).sum(-1)
    return y, s


def short_convolution_step_vjp(dy, ds_next, u, k, s):
    """Add k_{t−1−i}* dy to ds'; its last entry is du, the others are ds shifted by one place.

    Returns `(du, dk, ds)`, shaped like `u`, `k` and `s`.
    """
    du, dk, ds = _pulled_back(dy[..., None], ds_next, u[..., None], k, s)
    return unbroadcast_each((du[..., 0], dk, ds), (u, k, s))


SHORT_CONVOLUTION_STEP = Operator(
    reference=short_convolution_step,
    signature="(),(t),(t)->(),(t)",
    form="step",
    inputs={"u": signals, "k": taps, "s": signals},
    outputs=("y", "s_next"),
    batch="b d, d, b d",
    traits=frozenset({"linear:u,s", "linear:k->y"}),
    citation="gu2023mamba, §3.4",
    tags=("causal_conv1d_update", "conv_state"),
)
short_convolution_step = SHORT_CONVOLUTION_STEP.checked(short_convolution_step)
short_convolution_step_vjp = SHORT_CONVOLUTION_STEP.checked_vjp(short_convolution_step_vjp)
