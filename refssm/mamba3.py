"""Mamba-3 with one input and one output per head: a trapezoid of two inputs, and turned keys.

    φ_t = φ_{t-1} + π tanh(angles_t) Δ_t,    q'_t = R(φ_t) q_t,    k'_t = R(φ_t) k_t
    S_t = α_t S_{t-1} + (1 − λ_t) Δ_t α_t k'_{t-1} v_{t-1}ᵀ + λ_t Δ_t k'_t v_tᵀ,    y_t = S_tᵀ q'_t
    α = e^{log_g},    λ = σ(trap)

One head of Mamba-3 [lahoti2026mamba3]. R(φ) turns each pair of neighbours by its own angle; log_g
is A Δ. A state has four parts: the angles φ, S, the last turned keys and the last values. First one
step, as in decoding; the other forms follow from it.
"""

from functools import partial
from typing import Any

import numpy as np

from refssm._declaration.contract import TURNED
from refssm._declaration.recurrence import Pair, Recurrence, State
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm._numerics.circle import kept, moment, pi_as, summed_angles, turned, within_turn
from refssm._numerics.contraction import einsum
from refssm.activations import sigmoid
from refssm.domains import (
    decays_of_steps,
    phases,
    real_states,
    steps_of_phases,
    trapezoids,
    turned_keys,
    turned_queries,
    turning_rates,
    values,
)
from refssm.scan.blocks import no_resets
from refssm.scan.linear import MARKS
from refssm.xlstm import SWEEP


def _outer(k, v):
    """k vᵀ."""
    return k[..., :, None] * v[..., None, :]


def _weights(log_g, dt, trap):
    """α, (1 − λ) Δ α and λ Δ."""
    a, share = np.exp(log_g), sigmoid(trap)
    return a, (1 - share) * dt * a, share * dt


def _moved(angles, dt, phase):
    """φ + π tanh(angles) Δ, without whole turns."""
    return within_turn(phase + pi_as(angles) * np.tanh(angles) * dt[..., None])


def mamba3_siso_step(q, k, v, log_g, dt, trap, angles, phase, S, key, value):
    """φ' = φ + π tanh(angles) Δ,  S ← α S + (1 − λ) Δ α key valueᵀ + λ Δ k' vᵀ,  y = Sᵀ q',
    with q' = R(φ') q, k' = R(φ') k: one step, and the next state (φ', S, k', v).

    Signature ``(2n),(2n),(p),(),(),(),(n),(n),(2n,p),(2n),(p)->(p),(n),(2n,p),(2n),(p)``: as one
    step of `mamba3_siso_stateful`; types, units and errors are the same. Source:
    [lahoti2026mamba3].

    >>> import refssm
    >>> y, phase, S, key, value = refssm.mamba3_siso_step(
    ...     [1.0, 0.0], [2.0, 0.0], [3.0], 0.0, 1.0, 0.0, [0.0],
    ...     [0.0], [[1.0], [0.0]], [1.0, 0.0], [4.0])
    >>> y, phase, S.ravel(), key, value
    (array([6.]), array([0.]), array([6., 0.]), array([2., 0.]), array([3.]))
    """
    phase = _moved(angles, dt, phase)
    c, s = np.cos(phase), np.sin(phase)
    q, k = turned(q, c, s), turned(k, c, s)
    a, before, now = _weights(log_g, dt, trap)
    S = a[..., None, None] * S + _outer(before[..., None] * key, value)
    S = S + _outer(now[..., None] * k, v)
    y = einsum("...np,...n->...p", S, q)
    batch = y.shape[:-1]
    S, v = with_batch(S, 2, batch), with_batch(v, 1, batch)
    return y, with_batch(phase, 1, batch), S, with_batch(k, 1, batch), v


def mamba3_siso_step_vjp(
    dy, dphase_next, dS_next, dkey_next, dvalue_next,
    q, k, v, log_g, dt, trap, angles, phase, S, key, value,
):  # fmt: skip
    """G = q' dyᵀ + dS',  dq' = S' dy,  dk' = dkey' + λ Δ G v,  dv = dvalue' + λ Δ Gᵀ k',
    dkey = β G value,  dvalue = β Gᵀ key,  dS = α G,  with β = (1 − λ) Δ α, b = keyᵀ G value and
    w = k'ᵀ G v:  dlog_g = α ΣS∘G + β b,  dtrap = λ (1 − λ) Δ (w − α b),
    dφ' = dphase' + q' × dq' + k' × dk',  dt = λ w + (1 − λ) α b + π Σ tanh(angles) dφ',
    dangles = π (1 − tanh²) Δ dφ',  dphase = dφ',  dq = R(φ')ᵀ dq',  dk = R(φ')ᵀ dk';
    x × dx is x_0 dx_1 − x_1 dx_0 of each pair.

    Returns `(dq, dk, dv, dlog_g, ddt, dtrap, dangles, dphase, dS, dkey, dvalue)`, shaped like the
    arguments.
    """
    given = q, k, v, log_g, dt, trap, angles, phase, S, key, value
    phase = _moved(angles, dt, phase)
    c, s = np.cos(phase), np.sin(phase)
    q, k = turned(q, c, s), turned(k, c, s)
    share, (a, before, now) = sigmoid(trap), _weights(log_g, dt, trap)
    S_next = a[..., None, None] * S + _outer(before[..., None] * key, value)
    S_next = S_next + _outer(now[..., None] * k, v)
    G = q[..., :, None] * dy[..., None, :] + dS_next
    of_v, of_value = (einsum("...np,...p->...n", G, x) for x in (v, value))
    w, b = (k * of_v).sum(-1), (key * of_value).sum(-1)
    dq = einsum("...np,...p->...n", S_next, dy)
    dk = dkey_next + now[..., None] * of_v
    dphase = dphase_next + moment(q, dq) + moment(k, dk)
    t = np.tanh(angles)
    rate = pi_as(angles) * t
    gradients = (
        turned(dq, c, -s),
        turned(dk, c, -s),
        dvalue_next + now[..., None] * einsum("...np,...n->...p", G, k),
        a * (S * G).sum((-1, -2)) + before * b,
        share * w + (1 - share) * a * b + (rate * dphase).sum(-1),
        share * (1 - share) * dt * (w - a * b),
        pi_as(angles) * ((1 - t) * (1 + t)) * dt[..., None] * dphase,
        dphase,
        a[..., None, None] * G,
        before[..., None] * of_value,
        before[..., None] * einsum("...np,...n->...p", G, key),
    )
    return unbroadcast_each(gradients, given)


PARTS = (1, 2, 1, 1)  # core axes of each part of the state


class BeforeInput:
    """The recurrence as linear attention over what it has before its own input.

    U_t = α_t (U_{t-1} + (λ_{t-1} Δ_{t-1} + (1 − λ_t) Δ_t) k'_{t-1} v_{t-1}ᵀ) has no input of step
    t: it is gated linear attention with the keys and the values of the step before. Then y_t is
    U_tᵀ q'_t + λ_t Δ_t (q'_t·k'_t) v_t, and S_t is U_t + λ_t Δ_t k'_t v_tᵀ. A first state S_0 is
    U_0: its own input is in it. With leading axes `batch`, all arguments get them: gradients are
    summed over those that an argument lacks once, at the end.
    """

    def __init__(
        self, arguments, state, resets, *, batch=(), attention: Any = SWEEP, angles=summed_angles
    ):
        self.attention, self.primals = attention, arguments
        arguments = [*map(partial(_over, batch), arguments, (2, 2, 2, 1, 1, 1, 2))]
        self.arguments = q, k, v, log_g, dt, trap, rates = arguments
        self.begins = no_resets(q.shape[-2]) if resets is None else resets != 0
        self.first = state or _at_rest(k, v, rates)
        self.state = phase, self.S, key, value = [*map(partial(_over, batch), self.first, PARTS)]
        self.t, self.share = np.tanh(rates), sigmoid(trap)
        self.rate = pi_as(rates) * self.t
        self.phase = angles(self.rate * dt[..., None], phase, self.begins)
        self.c, self.s = np.cos(self.phase), np.sin(self.phase)
        self.q, self.k = (turned(x, self.c, self.s) for x in (q, k))
        self.now, self.qk = self.share * dt, (self.q * self.k).sum(-1)
        self.key = _earlier(self.k, key, self.begins)
        self.value = _earlier(v, value, self.begins)
        gate = np.where(self.begins, 0, log_g)
        before = _earlier(self.now[..., None], np.zeros_like(dt, shape=1), self.begins)[..., 0]
        self.a, self.weight = np.exp(gate), before + (1 - self.share) * dt
        writes = (self.a * self.weight)[..., None] * self.key
        self.given = self.q, writes, self.value, gate

    def run(self):
        """The outputs, and the last state."""
        y, U = self.attention.run(self.given, self.S, self.begins)
        v = self.arguments[2]
        y = y + (self.now * self.qk)[..., None] * v
        phase, _, key, value = self.state
        if y.shape[-2]:
            U = U + self.now[..., -1, None, None] * _outer(self.k[..., -1, :], v[..., -1, :])
            phase, key, value = self.phase[..., -1, :], self.k[..., -1, :], v[..., -1, :]
        last = ((phase, 1), (U, 2), (key, 1), (value, 1))
        return y, *(with_batch(x, rank, y.shape[:-2]) for x, rank in last)

    def back_from(self, dy, *last):
        """`back`, also without cotangents of a last state."""
        if not last:
            cores = (x.shape[x.ndim - r :] for x, r in zip(self.state, PARTS, strict=True))
            last = [np.zeros_like(dy, shape=(*dy.shape[:-2], *core)) for core in cores]
        return self.back(dy, *last)

    def back(self, dy, dphase, dS, dkey, dvalue):
        """Gradients for the arguments and the state."""
        if not dy.shape[-2]:
            zeros = [np.zeros_like(x) for x in self.primals]
            return *zeros, *unbroadcast_each((dphase, dS, dkey, dvalue), self.first)
        _, _, v, _, dt, *_ = self.arguments
        dq, dwrites, dvalues, dlog_g, dS0 = self.attention.back(
            (dy, dS), self.given, self.S, self.begins
        )
        own, dwrite = (dy * v).sum(-1), (dwrites * self.key).sum(-1)
        dlate, last = self.a * dwrite, self.now[..., -1, None]
        of_v = einsum("...np,...p->...n", dS, v[..., -1, :])
        of_k = einsum("...np,...n->...p", dS, self.k[..., -1, :])
        of_now = (of_v * self.k[..., -1, :]).sum(-1, keepdims=True)
        decayed = (self.a * self.weight)[..., None]
        dk, dkey0 = _later(decayed * dwrites, dkey + last * of_v, self.begins)
        dv, dvalue0 = _later(dvalues, dvalue + last * of_k, self.begins)
        dnow = self.qk * own + _later(dlate[..., None], of_now, self.begins)[0][..., 0]
        dqk = (self.now * own)[..., None]
        dq, dk = dq + dqk * self.k, dk + dqk * self.q
        dphases, dphase0 = self._carried(moment(self.q, dq) + moment(self.k, dk), dphase)
        c, s = self.c, -self.s
        gradients = (
            turned(dq, c, s),
            turned(dk, c, s),
            dv + (self.now * self.qk)[..., None] * dy,
            dlog_g + np.where(self.begins, 0, self.weight * dlate),
            self.share * dnow + (1 - self.share) * dlate + (self.rate * dphases).sum(-1),
            self.share * (1 - self.share) * dt * (dnow - dlate),
            pi_as(dt) * ((1 - self.t) * (1 + self.t)) * dt[..., None] * dphases,
        )
        first = unbroadcast_each((dphase0, dS0, dkey0, dvalue0), self.first)
        return *unbroadcast_each(gradients, self.primals), *first

    def _carried(self, moments, dphase):
        """The cotangents of the angles, each of all steps from its own on; and of the first."""
        found = []
        for t in range(moments.shape[-2] - 1, -1, -1):
            dphase = dphase + moments[..., t, :]
            found.insert(0, dphase)
            dphase = kept(dphase, self.begins, t)
        return np.stack(found, axis=-2), dphase


def _over(batch, x, core: int):
    """x with these leading axes, if there are any."""
    return with_batch(x, core, batch) if batch else x


def _at_rest(k, v, angles):
    """Zeros for each part of the state."""
    n, p, pairs = k.shape[-1], v.shape[-1], angles.shape[-1]
    return tuple(np.zeros_like(k, shape=shape) for shape in (pairs, (n, p), n, p))


def _earlier(x, first, begins):
    """What x was one step before: `first` before step 0, exactly 0 where a sequence begins."""
    x = _joined(first[..., None, :], x)[..., : x.shape[-2], :]
    return np.where(begins[..., None], 0, x)


def _later(d, last, begins):
    """The cotangents of x and of `first`, from those of `_earlier`; `last` are added at the end."""
    d = _joined(np.where(begins[..., None], 0, d), last[..., None, :])
    return d[..., 1:, :], d[..., 0, :]


def _joined(x, y):
    """x, then y along time."""
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return np.concatenate([with_batch(x, 2, batch), with_batch(y, 2, batch)], axis=-2)


def _run(arguments, state, resets):
    """The outputs, and the last state if there is a first one."""
    y, *last = BeforeInput(arguments, state, resets).run()
    return (y,) if state is None else (y, *last)


def _back(cotangents, arguments, state, resets):
    """Gradients for the arguments and the state."""
    batch = cotangents[0].shape[:-2]
    return BeforeInput(arguments, state, resets, batch=batch).back_from(*cotangents)


MAMBA3_SISO_RECURRENCE = Recurrence(
    name="mamba3_siso",
    step=Pair(mamba3_siso_step, mamba3_siso_step_vjp),
    run=_run,
    back=_back,
    signature="(l,2n),(l,2n),(l,p),(l),(l),(l),(l,n)->(l,p)",
    inputs={
        "q": turned_queries,
        "k": turned_keys,
        "v": values,
        "log_g": decays_of_steps,
        "dt": steps_of_phases,
        "trap": trapezoids,
        "angles": turning_rates,
    },
    batch="b g, b g, b g h, b g h, b g h, b g h, b g h",
    state=(
        State("phase", "n", "b g h", phases),
        State("S", "2n,p", "b g h", real_states),
        State("key", "2n", "b g h", turned_keys),
        State("value", "p", "b g h", values),
    ),
    marks=MARKS,
    linear=("v,S,value->y", "v,S,value->S", "k,S,key->y", "k,S,key->S", "q->y"),
    contract=TURNED,
    doc="""y_t = S_tᵀ q'_t,  S_t = α_t S_{t-1} + β_t k'_{t-1} v_{t-1}ᵀ + γ_t k'_t v_tᵀ from rest.

    α = e^{log_g}, β = (1 − λ) Δ α, γ = λ Δ, λ = σ(trap), Δ = dt; q' and k' are q and k, each pair
    of neighbours turned by its angle, the sum of π tanh(angles) Δ up to the step. Signature
    ``(l,2n),(l,2n),(l,p),(l),(l),(l),(l,n)->(l,p)``: `q` the queries of one head, `k` its keys,
    both with their biases, `v` its values, `log_g` the logarithms of its decays, A Δ, at most 0,
    `dt` its steps after the softplus, `trap` what the logistic function makes the share of a step's
    own input, `angles` the rates of turning before the tanh, 0 for a pair that does not turn; `l`
    time, `n` pairs of keys, `p` values; leading axes broadcast: heads of a group are a leading
    axis, which has length 1 in shared `q` and `k`. Angles of a state are from 0 to 2π; a result
    with other whole turns is as right. Any of float32, float64 and longdouble; the result has their
    ``np.result_type``. Units: Δ a time, `y` those of Δ·q·k·v.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [lahoti2026mamba3].
    """,
    vjp_doc="""As in `mamba3_siso_step_vjp`, from the last step to the first.

    With w_t = λ_{t-1} Δ_{t-1} + (1 − λ_t) Δ_t, U_t = α_t (U_{t-1} + w_t k'_{t-1} v_{t-1}ᵀ) and
    y_t = U_tᵀ q'_t + λ_t Δ_t (q'_t·k'_t) v_t, it is that of gated linear attention for U; the angle
    of a step has the cotangents q' × dq' + k' × dk' of all later steps of its sequence.""",
    examples={
        "plain": """
        >>> one, zero = [[1.0, 0.0], [1.0, 0.0]], [0.0, 0.0]
        >>> refssm.mamba3_siso(one, one, [[2.0], [4.0]], zero, [1.0, 1.0], zero, [[0.0], [0.0]])
        array([[1.],
               [4.]])
        """,
        "stateful": """
        >>> y, phase, S, key, value = refssm.mamba3_siso_stateful(
        ...     [[1.0, 0.0]], [[2.0, 0.0]], [[3.0]], [0.0], [1.0], [0.0], [[0.0]],
        ...     [0.0], [[1.0], [0.0]], [1.0, 0.0], [4.0])
        >>> y, phase, S.ravel(), key, value
        (array([[6.]]), array([0.]), array([6., 0.]), array([2., 0.]), array([3.]))
        """,
        "packed": """
        >>> one, zero = [[1.0, 0.0], [1.0, 0.0]], [0.0, 0.0]
        >>> refssm.mamba3_siso_packed(
        ...     one, one, [[2.0], [4.0]], zero, [1.0, 1.0], zero, [[0.0], [0.0]], [False, True])
        array([[1.],
               [2.]])
        """,
        "packed_stateful": """
        >>> one, zero, none = [[1.0, 0.0], [1.0, 0.0]], [0.0, 0.0], [[0.0], [0.0]]
        >>> y, phase, S, key, value = refssm.mamba3_siso_packed_stateful(
        ...     one, one, [[2.0], [4.0]], zero, [1.0, 1.0], zero, none,
        ...     none, [[[1.0], [0.0]], [[0.0], [0.0]]], one, [[0.0], [2.0]], [1, 2])
        >>> y.ravel(), S[:, 0, 0], value.ravel()
        (array([2., 3.]), array([2., 3.]), array([2., 4.]))
        """,
        "states": """
        >>> one, zero, none = [[1.0, 0.0], [1.0, 0.0]], [0.0, 0.0], [[0.0], [0.0]]
        >>> y, phase, S, key, value = refssm.mamba3_siso_states(
        ...     one, one, [[2.0], [4.0]], zero, [1.0, 1.0], zero, none,
        ...     [0.0], [[1.0], [0.0]], [1.0, 0.0], [0.0], [0, 1])
        >>> S[:, 0, 0], value.ravel()
        (array([1., 2.]), array([0., 2.]))
        """,
    },
    citation="lahoti2026mamba3",
    citation_of_packed="lahoti2026mamba3",
    tags={
        "plain": ("mamba3_siso_combined", "Mamba-3", "Mamba-3 SISO", "mamba3_siso_fwd_ref"),
        "stateful": (
            "mamba3_siso_combined return_final_states",
            "Mamba-3 prefill",
            "mamba3_siso_step_ref",
        ),
        "packed": ("Mamba-3 varlen",),
        "packed_stateful": ("mamba3_siso_combined cu_seqlens Input_States",),
        "states": ("Mamba-3 with states at places",),
        "step": ("mamba3_siso_step", "Mamba-3 decoding"),
    },
)
(
    MAMBA3_SISO,
    MAMBA3_SISO_STATEFUL,
    MAMBA3_SISO_PACKED,
    MAMBA3_SISO_PACKED_STATEFUL,
    MAMBA3_SISO_STATES,
    MAMBA3_SISO_STEP,
) = MAMBA3_SISO_RECURRENCE.operators
(
    (mamba3_siso, mamba3_siso_vjp),
    (mamba3_siso_stateful, mamba3_siso_stateful_vjp),
    (mamba3_siso_packed, mamba3_siso_packed_vjp),
    (mamba3_siso_packed_stateful, mamba3_siso_packed_stateful_vjp),
    (mamba3_siso_states, mamba3_siso_states_vjp),
    (mamba3_siso_step, mamba3_siso_step_vjp),
) = MAMBA3_SISO_RECURRENCE.public()
