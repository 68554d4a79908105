"""Enclosures for refssm.ssd: one sum over the past, the same for every form."""

from flint import arb

from refssm.enclosure.algebra import dot


def ssd_recurrent(x, log_a, B, C):
    """y_i = Σ_{j≤i} (Π_{j<s≤i} e^{log_a_s}) (B_j · C_i) x_j."""
    return _sums(x, log_a, B, C, _rest(x, B), [False] * len(x))


def ssd_recurrent_stateful(x, log_a, B, C, S0):
    """The same plus the decayed S0 C_i; and the last state Σ_j … x_j B_jᵀ."""
    y = _sums(x, log_a, B, C, S0, [False] * len(x))
    return y, _last(x, log_a, B, S0)


def ssd_recurrent_packed(x, log_a, B, C, resets):
    """The sum back to the last reset."""
    return _sums(x, log_a, B, C, _rest(x, B), resets)


def ssd_step(x, log_a, B, C, S):
    """The same for one step."""
    (y,), S_next = ssd_recurrent_stateful([x], [log_a], [B], [C], S)
    return y, S_next


ssd_quadratic = ssd_recurrent


def ssd_chunked(x, log_a, B, C, *, chunk):
    """The same for every chunk size."""
    del chunk
    return ssd_recurrent(x, log_a, B, C)


def ssd_chunked_stateful(x, log_a, B, C, S0, *, chunk):
    """The same for every chunk size."""
    del chunk
    return ssd_recurrent_stateful(x, log_a, B, C, S0)


def ssd_chunked_packed(x, log_a, B, C, resets, *, chunk):
    """The same for every chunk size."""
    del chunk
    return ssd_recurrent_packed(x, log_a, B, C, resets)


def _rest(x, B):
    return [[0] * len(B[0]) for _ in x[0]] if x else []


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


def _last(x, log_a, B, S0):
    """Σ_j (Π_{s>j} a_s) x_j B_jᵀ + (Π_s a_s) S0."""
    left = [_decay(log_a[j + 1 :]) for j in range(len(log_a))]
    start = _decay(log_a)
    return [
        [
            start * s + sum(left[j] * x[j][p] * B[j][n] for j in range(len(x)))
            for n, s in enumerate(S_p)
        ]
        for p, S_p in enumerate(S0)
    ]


def _decay(logs):
    """e^{Σ logs}."""
    return sum(logs, arb(0)).exp()  # pyright: ignore[reportAttributeAccessIssue]
