"""Planted bugs in how a layer reads its arguments, by the name of the parameter."""

from __future__ import annotations

import numpy as np

from refssm.conformance.planted.layers.every_layer import layers, planting
from refssm.conformance.planted.planting import (
    FEWER_BITS,
    MEMORY,
    _without_nan,
    every_third_call,
)


def swapped(a):
    """The halves of the last axis in the other order."""
    return np.roll(a, a.shape[-1] // 2, axis=-1)


def turned(a):
    """The transposed matrix, if it is square, else its rows in the other order."""
    return a.swapaxes(-1, -2).copy() if a.shape[-1] == a.shape[-2] else a[..., ::-1, :].copy()


def plain(a):
    """Such that e^x becomes |x|: what a forgotten exponential reads, without its sign."""
    return np.log(np.maximum(np.abs(a), a.dtype.type(1e-6)))


def reversed_last(a):
    """The last axis in the other order."""
    return a[..., ::-1].copy()


# by parameter: the name of the bug, what it is, and how the argument changes
READ = {
    "D": [("skip", "the skip connection D u is forgotten", np.zeros_like)],
    "b": [("bias", "the bias is forgotten", np.zeros_like)],
    "b_x": [("bias_inside", "the bias inside tanh is forgotten", np.zeros_like)],
    "W_u": [("input_sign", "the input with the other sign", np.negative)],
    "W_x": [
        ("recurrence_transposed", "the recurrent matrix is transposed", turned),
        ("memoryless", "the recurrent matrix is forgotten", np.zeros_like),
    ],
    "W_c": [("memory_unread", "the memory is not read", np.zeros_like)],
    "w_f": [("memory_empty", "nothing is written into the memory", np.zeros_like)],
    "w": [("poles_conjugate", "w* for w", np.conj)],
    "log_dt": [
        ("dt_plain", "dt is not exponentiated", plain),
        ("dt_doubled", "twice the step", lambda x: x + x.dtype.type(np.log(2))),
    ],
    "log_rate": [
        ("rate_plain", "the rate is not exponentiated", plain),
        ("rate_sign", "e^{−x} for e^x", np.negative),
    ],
    "log_phase": [("phase_plain", "the phase is not exponentiated", plain)],
    "log_gamma": [("gamma", "the factor γ of the input is forgotten", np.zeros_like)],
    "frequency": [
        ("frequency_sign", "w* for w", np.negative),
        ("frequency_none", "the imaginary part of the poles is forgotten", np.zeros_like),
    ],
    "P": [
        ("low_rank", "the low-rank part is forgotten", np.zeros_like),
        ("low_rank_conjugate", "P* for P", np.conj),
    ],
    "B": [("B_conjugate", "B* for B", np.conj)],
    "C": [
        ("C_conjugate", "C* for C", np.conj),
        ("C_doubled", "the factor 2 of conjugate pairs once too often", lambda x: 2 * x),
    ],
    "markov": [("markov_reversed", "the parameters in the other order", reversed_last)],
    "k": [("taps_reversed", "a convolution in place of a correlation", reversed_last)],
    "k_bias": [("filter_bias", "the bias of the filter is forgotten", np.zeros_like)],
    "W_in": [("halves", "x and the gate are exchanged", swapped)],
    "W_low": [("dt_constant", "the step does not depend on the input", np.zeros_like)],
    "W_B": [("B_reversed", "B with its states in the other order", reversed_last)],
    "W_C": [("C_sign", "C with the other sign", np.negative)],
    "dt_bias": [("dt_bias", "the bias of the step is forgotten", np.zeros_like)],
    "W_out": [("out_rows", "the rows of the last matrix in another order", turned)],
}
GATED = {"W": [("wrong_half", "the gate is the first half", swapped)]}
SQUARE = {"W": [("transposed", "the matrix of the gate is transposed", turned)]}
SIGNAL = [
    ("late", "the input of the step before", {"u": lambda u: np.roll(u, 1, -2)}),
    ("backwards", "time runs backwards", {"u": lambda u: u[..., ::-1, :].copy()}),
    ("first_of_batch", "the first member for all", {"u": lambda u: np.repeat(u[:1], len(u), 0)}),
    ("channels", "the channels in the other order", {"u": lambda u: u[..., ::-1].copy()}),
]

for _name in ("log_dt", "markov"):
    READ[f"{_name}_future"] = [(f"{n}_future", w, change) for n, w, change in READ[_name]]

BUGS = []
for _layer in layers():
    _bugs = planting(f"{_layer}_layer")
    _shapes = dict(zip(_bugs.op.inputs, _bugs.op.input_dims, strict=True))
    _gate = GATED if _shapes.get("W") == ("h", "2h") else SQUARE
    for _name in _bugs.op.inputs:
        for _row in [*READ.get(_name, []), *_gate.get(_name, [])]:
            _bugs.plant((*_row[:2], {_name: _row[2]}))
    _bugs.plant(*SIGNAL, *FEWER_BITS)
    _row = "unrepeatable", "a result that depends on the call", every_third_call()
    _bugs.plant(_row, by="repeat")
    for _check, _row in MEMORY.items():
        _bugs.plant(_row, by=_check)
    _bugs.kept()
    if "transform" not in _bugs.op.traits:
        _bugs.plant(("nan_swallowed", "NaN replaced by zero", _without_nan), by="nan")
    BUGS += _bugs.bugs
