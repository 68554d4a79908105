"""Oracles of layers of diagonal systems, and of fixed filters, step by step."""

# pyright: reportAttributeAccessIssue=false
# (mpmath adds its functions to the context on import)

from mpmath import mp

from refssm.oracle.layers.systems import (
    _applied,
    _diagonal,
    _gated,
    _held,
    _mixed,
    _poles,
    _product,
    _rows,
    _softplus,
    _zeros,
)


def dss_exp_layer(u, log_dt, log_rate, frequency, C, D, W, b):
    """From rest."""
    rest = [_zeros(len(row)) for row in C]
    return dss_exp_layer_stateful(u, log_dt, log_rate, frequency, C, D, W, b, rest)[0]


def dss_exp_layer_stateful(u, log_dt, log_rate, frequency, C, D, W, b, x0):
    """In each channel x_k = e^{dt w} x_{k−1} + ((e^{dt w} − 1)/w) u_k, Re(C x_k) + D u_k."""
    w, steps = _poles(log_rate, frequency), [mp.exp(x) for x in log_dt]
    systems = [_held(w, [dt] * len(w)) for dt in steps]
    return _bank(u, systems, C, D, W, b, x0)


def _bank(u, systems, C, D, W, b, x0):
    """One system of one input and one output for each channel, each decays and factors of u."""
    columns, states = [], []
    for i, ((a, held), x) in enumerate(zip(systems, x0, strict=True)):
        signal = [[row[i]] for row in u]
        y, x = _diagonal(signal, a, [[s] for s in held], [C[i]], [D[i]], x, 1)
        columns.append([y_k for (y_k,) in y])
        states.append(x)
    return _mixed(_rows(columns, u), W, b), states


def dss_softmax_layer(u, log_dt, w, C, D, W, b):
    """The same with 1/(w Σ_{r<l} e^{dt w r}) in place of (e^{dt w} − 1)/w."""
    systems = []
    for log_step in log_dt:
        a = [mp.exp(mp.exp(log_step) * pole) for pole in w]
        sums = [mp.fsum(_powers(root, len(u))) for root in a]
        systems.append((a, [1 / (pole * s) if s else s for pole, s in zip(w, sums, strict=True)]))
    return _bank(u, systems, C, D, W, b, [_zeros(len(w)) for _ in C])[0]


def _powers(root, l):
    """1, root, root² …"""
    found = [mp.one] * min(1, l)
    while len(found) < l:
        found.append(found[-1] * root)
    return found


def stable_ssm_exp_layer(u, log_dt, weight, C, D, W, b):
    """From rest."""
    return stable_ssm_exp_layer_stateful(u, log_dt, weight, C, D, W, b, _rest(C))[0]


def stable_ssm_exp_layer_stateful(u, log_dt, weight, C, D, W, b, x0):
    """Rates e^weight."""
    return _stable(mp.exp, u, log_dt, weight, C, D, W, b, x0)


def stable_ssm_softplus_layer(u, log_dt, weight, C, D, W, b):
    """From rest."""
    return stable_ssm_softplus_layer_stateful(u, log_dt, weight, C, D, W, b, _rest(C))[0]


def stable_ssm_softplus_layer_stateful(u, log_dt, weight, C, D, W, b, x0):
    """Rates log(1 + e^weight)."""
    return _stable(_softplus, u, log_dt, weight, C, D, W, b, x0)


def stable_ssm_best_layer(u, log_dt, weight, C, D, W, b):
    """From rest."""
    return stable_ssm_best_layer_stateful(u, log_dt, weight, C, D, W, b, _rest(C))[0]


def stable_ssm_best_layer_stateful(u, log_dt, weight, C, D, W, b, x0):
    """Rates 1/(weight² + ½)."""
    return _stable(lambda w: 2 / (2 * w * w + 1), u, log_dt, weight, C, D, W, b, x0)


def _rest(C):
    return [_zeros(len(row)) for row in C]


def _stable(rate, u, log_dt, weight, C, D, W, b, x0):
    """In each channel x_k = e^{−rate dt} x_{k−1} + ((1 − e^{−rate dt})/rate) u_k, C x_k + D u_k."""
    systems = []
    for log_step, row in zip(log_dt, weight, strict=True):
        systems.append(_held([-rate(x) for x in row], [mp.exp(log_step)] * len(row)))
    return _bank(u, systems, C, D, W, b, x0)


def s5_discrete_layer(u, a, B, C, D, W, b):
    """From rest."""
    return s5_discrete_layer_stateful(u, a, B, C, D, W, b, _zeros(len(a)))[0]


def s5_discrete_layer_stateful(u, a, B, C, D, W, b, x0):
    """x_k = a x_{k−1} + B u_k, y_k = 2 Re(C x_k) + D u_k, and the gate of S5."""
    y, x = _diagonal(u, a, B, C, D, x0, 2)
    return _gated(y, W, b), x


def liquid_s4_layer(u, log_dt, log_rate, frequency, B, C, D, W, b):
    """From rest."""
    rest = _rest(C), _zeros(len(D))
    return liquid_s4_layer_stateful(u, log_dt, log_rate, frequency, B, C, D, W, b, *rest)[0]


def liquid_s4_layer_stateful(u, log_dt, log_rate, frequency, B, C, D, W, b, x0, s0):
    """In each channel x_k = a x_{k−1} + B̄ u_k + B̄² u_k u_{k−1}, 2 Re(C x_k) + D u_k, where
    a = (2 + dt w)/(2 − dt w) and B̄ = 2 dt B/(2 − dt w)."""
    columns, states, last = [], [], []
    for i, (x, s) in enumerate(zip(x0, s0, strict=True)):
        w, dt, y = _poles(log_rate[i], frequency[i]), mp.exp(log_dt[i]), []
        a = [(2 + dt * pole) / (2 - dt * pole) for pole in w]
        held = [2 * dt * b_n / (2 - dt * pole) for b_n, pole in zip(B[i], w, strict=True)]
        for row in u:
            now = row[i]
            x = [a_n * x_n + b_n * now + b_n**2 * now * s
                 for a_n, x_n, b_n in zip(a, x, held, strict=True)]  # fmt: skip
            y.append(2 * mp.re(mp.fdot(C[i], x)) + D[i] * now)
            s = now
        columns.append(y)
        states.append(x)
        last.append(s)
    return _mixed(_rows(columns, u), W, b), states, last


def spectral_ssm_layer(u, phi, M_plus, M_minus, D, W, b):
    """From rest."""
    rest = [_zeros(len(phi[0])) for _ in D]
    return spectral_ssm_layer_stateful(u, phi, M_plus, M_minus, D, W, b, rest)[0]


def spectral_ssm_layer_stateful(u, phi, M_plus, M_minus, D, W, b, s0):
    """Σ_i (φ_i * u)_k M⁺_i + (φ⁻_i * u)_k M⁻_i + D u_k, φ⁻_i(j) = (−1)^j φ_i(j)."""
    t, y = len(phi[0]), []
    minus = [[f * (-1) ** j for j, f in enumerate(row)] for row in phi]
    past = [list(row) for row in s0]
    for row in u:
        past = [[*inputs, now] for inputs, now in zip(past, row, strict=True)]
        newest = [inputs[: -t - 1 : -1] for inputs in past]
        total = [d * now for d, now in zip(D, row, strict=True)]
        for filters, M in ((phi, M_plus), (minus, M_minus)):
            for taps, matrix in zip(filters, M, strict=True):
                parts = _product(_applied(newest, taps), matrix)
                total = [p + q for p, q in zip(total, parts, strict=True)]
        y.append(total)
    return _mixed(y, W, b), [inputs[len(u) :] for inputs in past]
