"""Enclosures for refssm.mamba3: sums over the past, with both weights of an input at once.

The input of step j enters at step j with λ_j Δ_j and at the next one with (1 − λ_{j+1}) Δ_{j+1}
α_{j+1}, which has the decay of that step, so that at step t > j it has

    e^{G_t − G_j} (λ_j Δ_j + (1 − λ_{j+1}) Δ_{j+1}),    G_t = Σ_{j≤t} log_g_j

Its key, as a complex number for each pair, is k_j e^{iφ_j}, φ_j = φ_0 + Σ π tanh(angles) Δ.
"""

from flint import acb, arb

from refssm.enclosure.recurrence import forms


def _sums(arguments, state, resets, **_):
    """The outputs, and the last state."""
    q, k, v, *_ = arguments
    rest = _zero(*map(len, (state[0], state[2], state[3])))
    y, phase, turned = [], list(state[0]), []
    for t in range(len(q)):
        phase = _phase([0] * len(phase) if resets[t] else phase, arguments, t)
        turned.append(_turned(k[t], phase))
        S = _state(arguments, turned, rest if True in map(bool, resets[: t + 1]) else state, resets)
        read = _turned(q[t], phase)
        y.append(
            [_sum(a * row[p] for a, row in zip(read, S, strict=True)) for p in range(len(v[t]))]
        )
    if not q:
        return y, state
    return y, (phase, S, turned[-1], v[len(q) - 1])


def _phase(phase, arguments, t):
    """The angles after step t, with few whole turns: any number of them is right."""
    *_, dt, _, angles = arguments
    moved = [x + arb.pi() * arb(a).tanh() * dt[t] for x, a in zip(phase, angles[t], strict=True)]
    return [_within_turn(x) for x in moved]


def _within_turn(x):
    """From 0 to 2π by the middle of the ball, or a little below 0."""
    turns = ((x.mid() + arb("1e-20")) / (2 * arb.pi())).mid().floor()
    return x - 2 * arb.pi() * turns.unique_fmpz()


def _state(arguments, turned, state, resets):
    """S after the steps of `turned`, each input with its own weight."""
    _, _, v, log_g, dt, trap, _ = arguments
    _, S, key, value = state
    decay, late, terms = arb(1), arb(0), []
    for j in range(len(turned) - 1, -1, -1):
        share = 1 / (1 + (-arb(trap[j])).exp())
        terms.append((decay * (share * dt[j] + late), turned[j], v[j]))
        late = (1 - share) * dt[j]
        decay = decay * arb(log_g[j]).exp()
        if resets[j]:
            break
    else:
        terms.append((decay * late, key, value))
    return [
        [decay * x + _sum(w * a[n] * b[p] for w, a, b in terms) for p, x in enumerate(row)]
        for n, row in enumerate(S)
    ]


def _turned(x, phase):
    """Each pair of neighbours times e^{iφ}, as a complex number."""
    pairs = zip(x[::2], x[1::2], phase, strict=True)
    z = [acb(first, second) * acb(0, a).exp() for first, second, a in pairs]
    return [part for number in z for part in (number.real, number.imag)]


def _sum(terms):
    return sum(terms, arb(0))


def _zero(pairs, keys, values):
    return [arb(0)] * pairs, [[arb(0)] * values for _ in range(keys)], [0] * keys, [0] * values


def _rest(q, k, v, log_g, dt, trap, angles):
    return _zero(*(len(x[0]) if x else 0 for x in (angles, k, v)))


(
    mamba3_siso,
    mamba3_siso_stateful,
    mamba3_siso_packed,
    mamba3_siso_packed_stateful,
    mamba3_siso_states,
    _,
    mamba3_siso_step,
) = forms(_sums, "1111111", _rest, parts=4)
