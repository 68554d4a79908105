"""Honest layers: refssm's own on its compiled operators, one step at a time, and in chunks.

A layer that is not causal has no steps; another program of its system is there instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

import refssm
from honest import Honest, reference
from refssm._declaration.operator import Operator
from refssm.activations import gelu, glu, sigmoid
from refssm.catalog import named, resumed
from refssm.convolution.whole import shifted_sum
from refssm.layers import Layer, operators
from refssm.layers.catalog import LAYERS

CHUNK = 16
jit = cache(lambda: operators("jit"))


def _compiled(layer: Layer) -> tuple[Callable, Callable]:
    """Forward and VJP on `refssm.jit`."""
    count = 1 + len(layer.beside)

    def forward(*given):
        return layer.forward(jit(), layer.kind(*given[count:]), *given[:count])

    def vjp(dy, *given):
        gradients, *dread = layer.vjp(jit(), dy, layer.kind(*given[count:]), *given[:count])
        return *dread, *gradients.arrays().values()

    return forward, vjp


def _in_pieces(layer: Layer, length: int) -> Callable:
    """From rest, `length` steps a call, each from the state that the last one returned."""

    def forward(*given):
        count = 1 + len(layer.beside)
        read, p = given[:count], layer.kind(*given[count:])
        return _run(layer, p, read, layer.rest(p, read[0].shape[:-2]), length)[0]

    return forward


def _resumed_in_pieces(layer: Layer, length: int) -> Callable:
    """The same from given states, which it returns too."""

    def stateful(*given):
        first, last = 1 + len(layer.beside), len(given) - len(layer.states)
        p = layer.kind(*given[first:last])
        y, after = _run(layer, p, given[:first], given[last:], length)
        return y, *(np.array(s) for s in after)

    return stateful


def _run(layer, p, read, state, length):
    """The outputs of all pieces, and the last state."""
    u, *beside = read
    outputs = [u[..., :0, :]]
    for first in range(0, u.shape[-2], length):
        piece = slice(first, first + length)
        given = (u[..., piece, :], *(x[..., piece] for x in beside), tuple(state))
        y, state = layer.stateful(jit(), p, *given)
        outputs.append(y)
    return np.concatenate(outputs, axis=-2), state


def programs(layer: Layer) -> Iterator[Honest]:
    """All honest implementations of a layer's operators."""
    whole = _operator(f"{layer}_layer")
    yield reference(whole)
    yield Honest(whole.name, "compiled", *_compiled(layer))
    if not layer.causal:
        yield Honest(whole.name, "direct", DIRECT[layer.name])
        return
    stateful = resumed(whole)
    assert stateful is not None
    yield reference(stateful)
    for name, length in (("steps", 1), ("chunks", CHUNK)):
        yield Honest(whole.name, name, _in_pieces(layer, length))
        yield Honest(stateful.name, name, _resumed_in_pieces(layer, length))


def _s5_by_the_operator(u, w, log_dt, B, C, D, W, b):
    """Both scans and the output by one operator on complex numbers."""
    a, B_bar = refssm.discretize_diagonal_zoh(w, B, np.exp(log_dt))
    system = a, B_bar, 2 * C, np.diag(D).astype(C.dtype), u.astype(C.dtype)
    g = gelu(refssm.diagonal_ssm_bidirectional(*system).real)
    return g * sigmoid(g @ W + b)


def _hope_by_sums(u, log_dt, markov, D, W, b, log_dt_future, markov_future):
    """Both kernels by the compiled operator, and the sums over past and future without FFT."""
    ut, l = np.swapaxes(u, -1, -2), u.shape[-2]
    K = jit().hope_kernel(markov, np.exp(log_dt), l=l)
    back = jit().hope_kernel(markov_future, np.exp(log_dt_future), l=l)
    y = shifted_sum(ut, K, back) + D[:, None] * ut
    return glu(gelu(np.swapaxes(y, -1, -2)) @ W + b)


def _softmax_of_all_steps(u, log_dt, w, C, D, W, b):
    """The softmax of dt w k over all k, from its largest modulus, and the sum without FFT."""
    k, ut = np.arange(u.shape[-2], dtype=u.dtype), np.swapaxes(u, -1, -2)
    z = (np.exp(log_dt)[:, None] * w)[..., None]
    ahead = np.where(z.real > 0, k[::-1] * -1, k)  # of a growing mode from the end
    e = np.exp(z * ahead)
    K = (C[..., None] / w[:, None] * (e / e.sum(-1, keepdims=True))).sum(-2).real
    y = jit().causal_convolution_direct(ut, K) + D[:, None] * ut
    return glu(gelu(np.swapaxes(y, -1, -2)) @ W + b)


DIRECT = {
    "s5_bidirectional": _s5_by_the_operator,
    "hope_bidirectional": _hope_by_sums,
    "dss_softmax": _softmax_of_all_steps,
}


def _operator(name: str) -> Operator:
    op = named(name)
    assert op is not None
    return op


IMPLEMENTATIONS = [honest for layer in LAYERS for honest in programs(layer)]
