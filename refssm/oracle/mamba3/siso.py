"""Oracles for refssm.mamba3: the step, and its forms."""

from mpmath import mp

from refssm.oracle.building.recurrence import forms


def mamba3_siso_step(q, k, v, log_g, dt, trap, angles, phase, S, key, value, **_):
    """S ← α S + (1 − λ) Δ α key valueᵀ + λ Δ k' vᵀ, y = Sᵀ q', with the angles moved before."""
    phase = [_within_turn(x + mp.pi * mp.tanh(a) * dt) for x, a in zip(phase, angles, strict=True)]
    q, k = _turned(q, phase), _turned(k, phase)
    decay, share = mp.exp(log_g), 1 / (1 + mp.exp(-trap))
    before, now = (1 - share) * dt * decay, share * dt
    S = [
        [
            decay * x + before * key_n * value_p + now * k_n * v_p
            for x, value_p, v_p in zip(row, value, v, strict=True)
        ]
        for row, key_n, k_n in zip(S, key, k, strict=True)
    ]
    y = [mp.fsum(q_n * row[p] for q_n, row in zip(q, S, strict=True)) for p in range(len(v))]
    return y, phase, S, k, v


def _within_turn(x):
    """An angle from 0 to 2π. What is below 0 by the digits of mpmath alone stays there: a
    difference quotient goes through 0, where a turn would be a jump.
    """
    turn = 2 * mp.pi
    return x - turn * mp.floor((x + mp.mpf("1e-20")) / turn)


def _turned(x, phase):
    """Each pair of neighbours, turned by its angle: a complex number times e^{iφ}."""
    z = [
        mp.mpc(first, second) * mp.expj(a)
        for first, second, a in zip(x[::2], x[1::2], phase, strict=True)
    ]
    return [part for number in z for part in (number.real, number.imag)]


def _rest(q, k, v, log_g, dt, trap, angles):
    keys, values, pairs = (len(x[0]) if x else 0 for x in (k, v, angles))
    return [mp.mpf(0)] * pairs, [[0] * values for _ in range(keys)], [0] * keys, [0] * values


(
    mamba3_siso,
    mamba3_siso_stateful,
    mamba3_siso_packed,
    mamba3_siso_packed_stateful,
    mamba3_siso_states,
    _,
) = forms(mamba3_siso_step, "1111111", _rest, parts=4)
