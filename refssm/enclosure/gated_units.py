"""Enclosures for refssm.gated_units: every state as the sum of the decayed inputs.

x_t = Σ_{s≤t} e^{L_t − L_s} b_s, with L the sums of the logarithms of the decays.
"""

from refssm.enclosure.recurrence import forms


def _decayed(logs, b, x0, resets):
    """The sums, from the first input of each sequence; a state of None is not there."""
    x = []
    for t in range(len(b)):
        first = max((s for s in range(t + 1) if resets[s]), default=-1)
        begun, state = max(first, 0), x0 if first < 0 else None
        x.append([_sum(logs, b, begun, t, n, state) for n in range(len(b[t]))])
    return x


def _sum(logs, b, begun, t, n, x0):
    """Σ_s e^{log a_{s+1} + … + log a_t} b_s, and x0 decayed by all of them."""
    total, past = b[t][n], logs[t][n]
    for s in range(t - 1, begun - 1, -1):
        total += past.exp() * b[s][n]
        past = past + logs[s][n]
    return total if x0 is None else total + past.exp() * x0[n]


def _softplus(x):
    """log(1 + e^x) = log(2 cosh(x/2)) + x/2."""
    return (2 * (x / 2).cosh()).log() + x / 2


def _real_gated(whole):
    """`whole`: a sequence begins with i u."""

    def sums(arguments, x0, resets):
        u, r, i, a_param = arguments
        rates = [8 * _softplus(p) for p in a_param]
        logs = [[-rate * g for rate, g in zip(rates, r_t, strict=True)] for r_t in r]
        b = []
        for t, log_a in enumerate(logs):
            begins = whole and (resets[t] or (t == 0 and x0 is None))
            roots = [1 if begins else _root(a) for a in log_a]
            b.append([w * g * v for w, g, v in zip(roots, i[t], u[t], strict=True)])
        x = _decayed(logs, b, x0, resets)
        return x, x[-1] if x else x0

    return sums


def _root(log_a):
    """√(1 − a²) = √(a (1/a − a))."""
    return (-2 * log_a.exp() * log_a.sinh()).sqrt()


def _minimal_gated(arguments, x0, resets):
    k, h = arguments
    logs = [[-_softplus(k_n) for k_n in k_t] for k_t in k]
    b = [
        [(1 + (k_n / 2).tanh()) / 2 * _positive(h_n) for k_n, h_n in zip(k_t, h_t, strict=True)]
        for k_t, h_t in zip(k, h, strict=True)
    ]
    x = _decayed(logs, b, x0, resets)
    return x, x[-1] if x else x0


def _positive(h):
    return h + 0.5 if h >= 0 else (1 + (h / 2).tanh()) / 2


def _forms(sums, varying):
    """From rest, from a state, packed, packed from states, one step."""
    plain, stateful, packed, packed_stateful, *_, step = forms(sums, varying, lambda *_: None)
    return (
        plain,
        lambda *arguments: stateful(*arguments)[0],
        packed,
        lambda *arguments: packed_stateful(*arguments)[0],
        lambda *arguments: step(*arguments)[0],
    )


rg_lru, rg_lru_from, rg_lru_packed, rg_lru_packed_from, rg_lru_step = _forms(
    _real_gated(whole=False), "1110"
)
rg_lru_unscaled_start, _, rg_lru_unscaled_start_packed, _, _ = _forms(
    _real_gated(whole=True), "1110"
)
min_gru, min_gru_from, min_gru_packed, min_gru_packed_from, min_gru_step = _forms(
    _minimal_gated, "11"
)
