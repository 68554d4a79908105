"""Enclosures for refssm.ssd: one sum over the past for every form, also in Mamba-2's call."""

from flint import arb

from refssm.enclosure.algebra import dot
from refssm.enclosure.recurrence import forms


def _ssd(arguments, S0, resets, **_):
    """y_i = Σ_{j≤i} (Π_{j<s≤i} e^{log_a_s}) (B_j · C_i) x_j, back to the last reset, plus the
    decayed S0 C_i; and the last state Σ_j … x_j B_jᵀ."""
    x, log_a, B, C = arguments
    return _sums(x, log_a, B, C, S0, resets), _last(x, log_a, B, S0, resets)


def _sums(x, log_a, B, C, S0, resets):
    """Row i of the sequence matrix times x, plus the decayed start."""
    a, y = [s.exp() for s in log_a], []
    for i, C_i in enumerate(C):
        row, decay, seen = [0] * len(x[0]), 1, True
        for j in range(i, -1, -1):
            weight = decay * dot(B[j], C_i)
            row = [r + x_p * weight for r, x_p in zip(row, x[j], strict=True)]
            if resets[j]:
                seen = False
                break
            decay *= a[j]
        start = [decay * dot(S_p, C_i) if seen else 0 for S_p in S0]
        y.append([r + s for r, s in zip(row, start, strict=True)])
    return y


def _last(x, log_a, B, S0, resets):
    """Σ_j (Π_{s>j} a_s) x_j B_jᵀ since the last reset, plus (Π_s a_s) S0 if there was none."""
    first = max((t for t, reset in enumerate(resets) if reset), default=-1)
    left = [_decay(log_a[j + 1 :]) for j in range(len(log_a))]
    start = _decay(log_a) if first < 0 else 0
    seen = range(max(first, 0), len(x))
    return [
        [start * s + sum(left[j] * x[j][p] * B[j][n] for j in seen) for n, s in enumerate(S_p)]
        for p, S_p in enumerate(S0)
    ]


def _decay(logs):
    """e^{Σ logs}."""
    return sum(logs, arb(0)).exp()  # pyright: ignore[reportAttributeAccessIssue]


def _mamba2(arguments, S0, resets, *, dt_min=0.0, dt_max=float("inf")):
    """(y_t + D x_t) z_t σ(z_t), with Δ_t A for log_a_t and Δ_t x_t for x_t."""
    x, dt, A, B, C, D, z, dt_bias = arguments
    steps = [_between(_softplus(v + dt_bias), dt_min, dt_max) for v in dt]
    driven = [[step * x_p for x_p in row] for step, row in zip(steps, x, strict=True)]
    y, S = _ssd((driven, [A * step for step in steps], B, C), S0, resets)
    rows = zip(y, x, z, strict=True)
    return [[_gated(*v, D) for v in zip(*row, strict=True)] for row in rows], S


def _softplus(v):
    """v + log(1 + e^{−v})."""
    return v + (-v).exp().log1p()


def _between(step, low, high):
    """The larger of `low` and the step, unless that is above `high`."""
    return arb(low).max(step).min(arb(high))


def _gated(y, x, z, D):
    """Multiply by z σ(z), σ(z) = (1 + tanh z/2)/2."""
    gate = z * (1 + (z / 2).tanh()) / 2
    return gate * y + gate * (D * x)


def _rest(x, log_a, B, C):
    return [[0] * len(B[0]) for _ in x[0]] if x else []


(
    ssd_recurrent,
    ssd_recurrent_stateful,
    ssd_recurrent_packed,
    ssd_recurrent_packed_stateful,
    ssd_recurrent_states,
    ssd_recurrent_reversed,
    ssd_step,
) = forms(_ssd, "1111", _rest)
(
    ssd_chunked,
    ssd_chunked_stateful,
    ssd_chunked_packed,
    ssd_chunked_packed_stateful,
    ssd_chunked_states,
    _,
    _,
) = forms(_ssd, "1111", _rest)
ssd_quadratic = ssd_recurrent


def _rest_of_mamba2(x, dt, A, B, *_):
    return _rest(x, None, B, None)


(
    mamba2_scan,
    mamba2_scan_stateful,
    mamba2_scan_packed,
    mamba2_scan_packed_stateful,
    mamba2_scan_states,
    _,
    mamba2_step,
) = forms(_mamba2, "11011010", _rest_of_mamba2)
