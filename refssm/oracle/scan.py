"""Oracles for refssm.scan."""


def linear_scan(a, b):
    """x_k = a_k x_{k-1} + b_k, x_{-1} = 0."""
    return linear_scan_from(a, b, [0] * len(b[0]) if b else [])


def linear_scan_from(a, b, x0):
    """x_k = a_k x_{k-1} + b_k, x_{-1} = x0."""
    x = [x0]
    for a_k, b_k in zip(a, b, strict=True):
        x.append([s * t + r for s, t, r in zip(a_k, x[-1], b_k, strict=True)])
    return x[1:]
