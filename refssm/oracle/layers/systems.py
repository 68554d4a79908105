"""Oracles for refssm.layers: every layer step by step, from its recurrence.

A signal is a list of l rows of h numbers. Nothing here uses a kernel, a transform or the
eigenvectors of a matrix. A layer from rest is the same from a state of zeros.
"""

# pyright: reportAttributeAccessIssue=false
# (mpmath adds its functions to the context on import)

from mpmath import mp


def lru_layer(u, log_rate, log_phase, log_gamma, B, C, D, W, b):
    """From rest."""
    return lru_layer_stateful(u, log_rate, log_phase, log_gamma, B, C, D, W, b, _zeros(len(B)))[0]


def lru_layer_stateful(u, log_rate, log_phase, log_gamma, B, C, D, W, b, x0):
    """x_k = a x_{k−1} + γ B u_k, y_k = Re(C x_k) + D u_k, then GLU(GELU(y) W + b)."""
    pairs = zip(log_rate, log_phase, strict=True)
    a = [mp.exp(mp.mpc(-mp.exp(rate), mp.exp(phase))) for rate, phase in pairs]
    driven = [[mp.exp(g) * b_nm for b_nm in row] for g, row in zip(log_gamma, B, strict=True)]
    y, x = _diagonal(u, a, driven, C, D, x0, 1)
    return _mixed(y, W, b), x


def s5_layer(u, w, log_dt, B, C, D, W, b):
    """From rest."""
    return s5_layer_stateful(u, w, log_dt, B, C, D, W, b, _zeros(len(w)))[0]


def s5_layer_stateful(u, w, log_dt, B, C, D, W, b, x0):
    """x_k = e^{dt w} x_{k−1} + ((e^{dt w} − 1)/w) B u_k, y_k = 2 Re(C x_k) + D u_k, and the gate
    g σ(g W + b), g = GELU(y)."""
    a, driven = _s5_discrete(w, log_dt, B)
    y, x = _diagonal(u, a, driven, C, D, x0, 2)
    return _gated(y, W, b), x


def s5_bidirectional_layer(u, w, log_dt, B, C, D, W, b):
    """y_k = 2 Re(C [x_k; z_k]) + D u_k, z the state from the end; the gate of `s5_layer`."""
    (a, driven), n = _s5_discrete(w, log_dt, B), len(w)
    past, _ = _diagonal(u, a, driven, [row[:n] for row in C], D, _zeros(n), 2)
    future, _ = _diagonal(u[::-1], a, driven, [row[n:] for row in C], _zeros(len(D)), _zeros(n), 2)
    pairs = zip(past, future[::-1], strict=True)
    return _gated([[p + q for p, q in zip(*rows, strict=True)] for rows in pairs], W, b)


def s5_irregular_layer(u, gaps, w, log_dt, B, C, D, W, b):
    """From rest."""
    return s5_irregular_layer_stateful(u, gaps, w, log_dt, B, C, D, W, b, _zeros(len(w)))[0]


def s5_irregular_layer_stateful(u, gaps, w, log_dt, B, C, D, W, b, x0):
    """As `s5_layer`, with steps g_k dt: x_k = e^{g dt w} x_{k−1} + ((e^{g dt w} − 1)/w) B u_k."""
    y, x = [], x0
    for row, gap in zip(u, gaps, strict=True):
        a, scales = _held(w, [gap * mp.exp(t) for t in log_dt])
        driven = [[s * b_nm for b_nm in row_n] for s, row_n in zip(scales, B, strict=True)]
        rows, x = _diagonal([row], a, driven, C, D, x, 2)
        y += rows
    return _gated(y, W, b), x


def _s5_discrete(w, log_dt, B):
    """e^{dt w}, and ((e^{dt w} − 1)/w) B."""
    a, scales = _held(w, [mp.exp(x) for x in log_dt])
    return a, [[s * b_nm for b_nm in row] for s, row in zip(scales, B, strict=True)]


def s4d_layer(u, log_dt, log_rate, frequency, C, D, W, b):
    """From rest."""
    rest = [_zeros(len(row)) for row in C]
    return s4d_layer_stateful(u, log_dt, log_rate, frequency, C, D, W, b, rest)[0]


def s4d_layer_stateful(u, log_dt, log_rate, frequency, C, D, W, b, x0):
    """In each channel x_k = e^{dt w} x_{k−1} + ((e^{dt w} − 1)/w) u_k, 2 Re(C x_k) + D u_k."""
    columns, states = [], []
    for i, x in enumerate(x0):
        w, dt = _poles(log_rate[i], frequency[i]), mp.exp(log_dt[i])
        a, held = _held(w, [dt] * len(w))
        signal = [[row[i]] for row in u]
        y, x = _diagonal(signal, a, [[s] for s in held], [C[i]], [D[i]], x, 2)
        columns.append([y_k for (y_k,) in y])
        states.append(x)
    return _mixed(_rows(columns, u), W, b), states


def s4_layer(u, log_dt, log_rate, frequency, P, B, C, D, W, b):
    """From rest."""
    rest = [_zeros(len(row)) for row in C]
    return s4_layer_stateful(u, log_dt, log_rate, frequency, P, B, C, D, W, b, rest)[0]


def s4_layer_stateful(u, log_dt, log_rate, frequency, P, B, C, D, W, b, x0):
    """In each channel (I − ½dt A) x_k = (I + ½dt A) x_{k−1} + dt B u_k, y_k = Re(C x_k) + D u_k."""
    columns, states = [], []
    for i, x in enumerate(x0):
        w, half = _poles(log_rate[i], frequency[i]), mp.exp(log_dt[i]) / 2
        A = mp.diag(w) - mp.matrix(P[i]) * mp.matrix(P[i]).H
        ahead, behind = mp.eye(len(w)) - half * A, mp.eye(len(w)) + half * A
        inverse, x, y = ahead**-1, mp.matrix(x), []
        for row in u:
            x = inverse * (behind * x + 2 * half * row[i] * mp.matrix(B[i]))
            y.append(mp.re(mp.fsum(c * s for c, s in zip(C[i], x, strict=True))) + D[i] * row[i])
        columns.append(y)
        states.append(list(x))
    return _mixed(_rows(columns, u), W, b), states


def s4d_bilinear_layer(u, log_dt, log_rate, frequency, C, D, W, b):
    """From rest."""
    rest = [_zeros(len(row)) for row in C]
    return s4d_bilinear_layer_stateful(u, log_dt, log_rate, frequency, C, D, W, b, rest)[0]


def s4d_bilinear_layer_stateful(u, log_dt, log_rate, frequency, C, D, W, b, x0):
    """The recurrence of S4 without its low-rank part, with B = 1 and 2C."""
    P, B = [[[0]] * len(row) for row in C], [[mp.mpf(1)] * len(row) for row in C]
    twice = [[2 * c for c in row] for row in C]
    return s4_layer_stateful(u, log_dt, log_rate, frequency, P, B, twice, D, W, b, x0)


def hope_layer(u, log_dt, markov, D, W, b):
    """From rest."""
    return hope_layer_stateful(u, log_dt, markov, D, W, b, [_zeros(len(h)) for h in markov])[0]


def hope_layer_stateful(u, log_dt, markov, D, W, b, x0):
    """In each channel the cascade of its parameters, and D u_k."""
    channels = zip(log_dt, markov, D, x0, strict=True)
    runs = [_cascade([row[i] for row in u], *of_i) for i, of_i in enumerate(channels)]
    return _mixed(_rows([y for y, _ in runs], u), W, b), [x for _, x in runs]


def _cascade(u, log_dt, markov, d, x):
    """y_k = Σ_j h_j s_{j+1,k} + d u_k, with rotations s_{j+1} = c x_j − ρ s_j,
    x_j ← ρ x_j + c s_j from s_0 = u, where ρ = (1 − dt)/(1 + dt) and ρ² + c² = 1."""
    dt, y = mp.exp(log_dt), []
    rho, c = (1 - dt) / (1 + dt), 2 * mp.sqrt(dt) / (1 + dt)
    for s in u:
        total, turned = d * s, []
        for h_j, x_j in zip(markov, x, strict=True):
            turned.append(rho * x_j + c * s)
            s = c * x_j - rho * s
            total += h_j * s
        y.append(total)
        x = turned
    return y, x


def hope_bidirectional_layer(u, log_dt, markov, D, W, b, log_dt_future, markov_future):
    """The cascade of the past and D u_k; that of the future in reversed time, one step later."""
    columns, none = [], mp.mpf(0)
    channels = zip(log_dt, markov, D, strict=True), zip(log_dt_future, markov_future, strict=True)
    for i, (past, future) in enumerate(zip(*channels, strict=True)):
        signal, rest = [row[i] for row in u], _zeros(len(past[1]))
        later, _ = _cascade(signal[::-1], *future, none, rest)
        pairs = zip(
            _cascade(signal, *past, rest)[0], [*later[:-1][::-1], none], strict=False
        )  # l may be 0
        columns.append([p + q for p, q in pairs])
    return _mixed(_rows(columns, u), W, b)


def mamba_layer(u, W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out):
    """From rest."""
    parameters = W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out
    s0, x0 = [_zeros(len(row)) for row in k], [_zeros(len(row)) for row in log_rate]
    return mamba_layer_stateful(u, *parameters, s0, x0)[0]


def mamba_layer_stateful(
    u, W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out, s0, x0
):
    """Row by row; `s` has the last t inputs of the filter in each channel, the newest last."""
    A = [[-mp.exp(rate) for rate in row] for row in log_rate]
    y, s, x = [], s0, x0
    for row in u:
        both = _product(row, W_in)
        inner, z = both[: len(k)], both[len(k) :]
        s = [[*past[1:], v] for past, v in zip(s, inner, strict=True)]
        filtered = [
            mp.fsum(k_j * v for k_j, v in zip(taps, reversed(past), strict=True)) + bias
            for taps, past, bias in zip(k, s, k_bias, strict=True)
        ]
        v = [_silu(p) for p in filtered]
        low, B, C = (_product(v, W) for W in (W_low, W_B, W_C))
        dt = [_softplus(p + bias) for p, bias in zip(_product(low, W_dt), dt_bias, strict=True)]
        x = [
            [mp.exp(d * q) * state + d * b * v_e for q, state, b in zip(*rows, B, strict=True)]
            for d, v_e, *rows in zip(dt, v, A, x, strict=True)
        ]
        read = [mp.fsum(c * state for c, state in zip(C, row_e, strict=True)) for row_e in x]
        gated = [
            (y_e + D_e * v_e) * _silu(z_e) for y_e, D_e, v_e, z_e in zip(read, D, v, z, strict=True)
        ]
        y.append(_product(gated, W_out))
    return y, s, x


def rnn_layer(u, W_u, W_x, b_x, W, b):
    """From rest."""
    return rnn_layer_stateful(u, W_u, W_x, b_x, W, b, _zeros(len(W_x)))[0]


def rnn_layer_stateful(u, W_u, W_x, b_x, W, b, x0):
    """x_k = tanh(u_k W_u + x_{k−1} W_x + b_x), y_k = x_k W + b."""
    y, x = [], x0
    for row in u:
        given, back = _linear(row, W_u, b_x), _product(x, W_x)
        x = [mp.tanh(p + q) for p, q in zip(given, back, strict=True)]
        y.append(_linear(x, W, b))
    return y, x


def hippo_rnn_layer(u, W_u, W_x, W_c, b_x, w_f, log_dt, W, b):
    """From rest."""
    states = _zeros(len(W_x)), _zeros(len(W_c))
    return hippo_rnn_layer_stateful(u, W_u, W_x, W_c, b_x, w_f, log_dt, W, b, *states)[0]


def hippo_rnn_layer_stateful(u, W_u, W_x, W_c, b_x, w_f, log_dt, W, b, x0, c0):
    """x_k = tanh(u_k W_u + x_{k−1} W_x + c_{k−1} W_c + b_x); c' = A c + B x_k · w_f of LegT."""
    n, x, c, y = len(W_c), x0, c0, []
    root = [mp.sqrt(2 * i + 1) for i in range(n)]
    rows = [[-root[i] * root[k] * (-1) ** max(0, k - i) for k in range(n)] for i in range(n)]
    G = mp.matrix([*([*row, root[i]] for i, row in enumerate(rows)), [0] * (n + 1)])
    held = mp.expm(mp.exp(log_dt) * G).tolist()[:n]  # [Ā, B̄]
    for row in u:
        given = (_linear(row, W_u, b_x), _product(x, W_x), _product(c, W_c))
        x = [mp.tanh(sum(terms)) for terms in zip(*given, strict=True)]
        c = _applied(held, [*c, mp.fdot(x, w_f)])
        y.append(_linear(x, W, b))
    return y, x, c


def _zeros(n):
    return [mp.mpf(0)] * n


def _poles(log_rate, frequency):
    """−e^{log_rate} + i frequency."""
    return [mp.mpc(-mp.exp(r), f) for r, f in zip(log_rate, frequency, strict=True)]


def _held(w, steps):
    """e^{dt w}, and the integral of e^{t w} from 0 to dt."""
    a = [mp.exp(dt * pole) for dt, pole in zip(steps, w, strict=True)]
    held = [mp.expm1(dt * pole) / pole if pole else dt for dt, pole in zip(steps, w, strict=True)]
    return a, held


def _diagonal(u, a, B, C, D, x, times):
    """x_k = a x_{k−1} + B u_k, y_k = `times` Re(C x_k) + D u_k; the rows y, and the last x."""
    y = []
    for row in u:
        x = [a_n * x_n + p for a_n, x_n, p in zip(a, x, _applied(B, row), strict=True)]
        read = zip(_applied(C, x), D, row, strict=True)
        y.append([times * mp.re(c) + d * u_m for c, d, u_m in read])
    return y, x


def _applied(M, x):
    """M x."""
    return [mp.fsum(m * v for m, v in zip(row, x, strict=True)) for row in M]


def _product(x, W):
    """x W."""
    return [mp.fsum(v * row[j] for v, row in zip(x, W, strict=True)) for j in range(len(W[0]))]


def _linear(x, W, b):
    """x W + b."""
    return [p + q for p, q in zip(_product(x, W), b, strict=True)]


def _mixed(y, W, b):
    """GLU(GELU(y) W + b), where GLU(p, q) = p σ(q)."""
    out = []
    for row in y:
        both = _linear([_gelu(x) for x in row], W, b)
        half = len(both) // 2
        pairs = zip(both[:half], both[half:], strict=True)
        out.append([p * _sigmoid(q) for p, q in pairs])
    return out


def _gated(y, W, b):
    """g σ(g W + b), where g = GELU(y)."""
    g = [[_gelu(x) for x in row] for row in y]
    gates = [_linear(row, W, b) for row in g]
    pairs = zip(g, gates, strict=True)
    return [[p * _sigmoid(q) for p, q in zip(*both, strict=True)] for both in pairs]


def _rows(columns, u):
    """Channels as columns; no rows if the signal has none."""
    return [[column[k] for column in columns] for k in range(len(u))]


def _gelu(x):
    """x Φ(x)."""
    return x * mp.erfc(-x / mp.sqrt(2)) / 2


def _sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def _silu(x):
    return x / (1 + mp.exp(-x))


def _softplus(x):
    return mp.log1p(mp.exp(x))
