"""Enclosures for refssm.vandermonde: powers of e^x."""


def vandermonde_kernel(v, x, *, l):
    """k_j = Σ_n v_n q_n^j, q_n = e^{x_n}."""
    q = [x_n.exp() for x_n in x]
    return [sum(v_n * q_n**j for v_n, q_n in zip(v, q, strict=True)) for j in range(l)]


def vandermonde_kernel_real(v, x, *, l):
    """k_j = Σ_n 2 (Re v_n Re q_n^j − Im v_n Im q_n^j)."""
    q = [x_n.exp() for x_n in x]
    powers = [[q_n**j for q_n in q] for j in range(l)]
    return [
        2 * sum(v_n.real * p.real - v_n.imag * p.imag for v_n, p in zip(v, row, strict=True))
        for row in powers
    ]
