"""Oracles of layers with kernels of their own: sums over the last inputs, step by step."""

# pyright: reportAttributeAccessIssue=false
# (mpmath adds its functions to the context on import)

from mpmath import mp

from refssm.oracle.layers.systems import _mixed, _product, _sigmoid, _zeros


def long_convolution_layer(u, k, D, W, b):
    """From rest."""
    return long_convolution_layer_stateful(u, k, D, W, b, [_zeros(len(row)) for row in k])[0]


def long_convolution_layer_stateful(u, k, D, W, b, s0):
    """y_i = Σ_{j<t} k_j u_{i−j} + D u_i, then GLU(GELU(y) W + b); also the last t inputs."""
    s, y = s0, []
    for row in u:
        s = [[*past[1:], a] for past, a in zip(s, row, strict=True)]
        y.append([mp.fdot(taps, reversed(past)) + d * a
                  for taps, past, d, a in zip(k, s, D, row, strict=True)])  # fmt: skip
    return _mixed(y, W, b), s


def multiscale_convolution_layer(u, near, far, log_rate, D, W, b):
    """From rest."""
    return long_convolution_layer(u, _multiscale(near, far, log_rate), D, W, b)


def multiscale_convolution_layer_stateful(u, near, far, log_rate, D, W, b, s0):
    """As `long_convolution` with the kernels w_0, a w_1, a² and a³ times the stretched w_2, w_3."""
    return long_convolution_layer_stateful(u, _multiscale(near, far, log_rate), D, W, b, s0)


def _multiscale(near, far, log_rate):
    kernels = []
    for first, others, rate in zip(near, far, log_rate, strict=True):
        a, n, K = mp.exp(-mp.exp(rate)), len(first), [*first]
        for i, factor in enumerate((1, 2, 4), start=1):
            w = others[(i - 1) * n : i * n]
            K += [a**i * _between(w, (2 * j + 1 - factor) / mp.mpf(2 * factor))
                  for j in range(factor * n)]  # fmt: skip
        kernels.append(K)
    return kernels


def _between(w, place):
    """The broken line through w_0, w_1, … at a place, constant beyond its ends."""
    place = min(max(place, mp.mpf(0)), mp.mpf(len(w) - 1))
    left = max(j for j in range(len(w)) if j <= place)
    right = min(left + 1, len(w) - 1)
    return w[left] + (place - left) * (w[right] - w[left])


def dilated_convolution_layer(u, W_now, W_past, b, W_out):
    """From rest."""
    rests = [[_zeros(len(W_out[0])) for _ in range(2**i)] for i in range(3)]
    return dilated_convolution_layer_stateful(*[u, W_now, W_past, b, W_out, *rests])[0]


def dilated_convolution_layer_stateful(u, W_now, W_past, b, W_out, *states):
    """Row by row through three units: z = tanh(a) σ(c) of x_k and x_{k−d}, and x ← x + z W_out."""
    units, out = [list(s) for s in states], []
    for row in u:
        x = row
        for i, s in enumerate(units):
            terms = zip(_product(x, W_now[i]), _product(s[0], W_past[i]), b[i], strict=True)
            both = [mp.fsum(of_number) for of_number in terms]
            half = len(both) // 2
            z = [mp.tanh(a) * _sigmoid(c) for a, c in zip(both[:half], both[half:], strict=True)]
            units[i] = [*s[1:], x]
            x = [a + c for a, c in zip(x, _product(z, W_out[i]), strict=True)]
        out.append([a - c for a, c in zip(x, row, strict=True)])
    return out, *units
