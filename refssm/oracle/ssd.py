"""Oracles for refssm.ssd: one function for every form."""

from mpmath import mp


def ssd_recurrent(x, log_a, B, C):
    """y_t = S_t C_t, S_t = e^{log_a_t} S_{t-1} + x_t B_tᵀ, S_{-1} = 0."""
    return _scan(x, log_a, B, C, _at_rest(x, B), [False] * len(x))[0]


def ssd_recurrent_stateful(x, log_a, B, C, S0):
    """The same from S_{-1} = S0; and the last state."""
    return _scan(x, log_a, B, C, S0, [False] * len(x))


def ssd_recurrent_packed(x, log_a, B, C, resets):
    """The same from rest, and from rest again at each reset."""
    return _scan(x, log_a, B, C, _at_rest(x, B), resets)[0]


def ssd_step(x, log_a, B, C, S):
    """One step."""
    a = mp.exp(log_a)
    S = [
        [a * s + x_p * b for s, b in zip(row, B, strict=True)]
        for row, x_p in zip(S, x, strict=True)
    ]
    return [mp.fsum(s * c for s, c in zip(row, C, strict=True)) for row in S], S


def ssd_quadratic(x, log_a, B, C):
    """y_i = Σ_{j≤i} e^{log_a_{j+1} + … + log_a_i} (C_i · B_j) x_j."""
    decays, y = [mp.exp(a) for a in log_a], []
    for i, C_i in enumerate(C):
        row, weight = [mp.mpf(0)] * len(x[0]), mp.mpf(1)
        for j in range(i, -1, -1):  # a sum of logarithms for each pair would take l³ additions
            pair = weight * mp.fdot(C_i, B[j])
            row = [r + pair * x_p for r, x_p in zip(row, x[j], strict=True)]
            weight *= decays[j]
        y.append(row)
    return y


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


def _scan(x, log_a, B, C, S, resets):
    y = []
    for x_t, log_a_t, B_t, C_t, reset in zip(x, log_a, B, C, resets, strict=True):
        y_t, S = ssd_step(x_t, log_a_t, B_t, C_t, [[0] * len(B_t) for _ in x_t] if reset else S)
        y.append(y_t)
    return y, S


def _at_rest(x, B):
    return [[0] * len(B[0]) for _ in x[0]] if x else []
