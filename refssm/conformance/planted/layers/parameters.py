"""Planted bugs that each layer can have: in its parameters, their gradients, and its states."""

import numpy as np

from refssm._declaration.operator import Operator
from refssm.catalog import named
from refssm.conformance.planted.planting import (
    FEWER_BITS,
    MEMORY,
    Planting,
    _without_nan,
    every_third_call,
    of_each_result,
)
from refssm.layers import Layer
from refssm.layers.catalog import LAYERS


def planting(name: str) -> Planting:
    """Bugs of one operator, in complex single precision if an argument is complex."""
    op = operator(name)
    of_complex = any(domain.kind == "complex" for domain in op.inputs.values())
    return Planting(op, "complex64" if of_complex else "float32")


def operator(name: str) -> Operator:
    """The operator of this name."""
    op = named(name)
    assert op is not None, name
    return op


def layers() -> tuple[Layer, ...]:
    """All layers."""
    return LAYERS


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
    "a": [("decays_conjugate", "a* for a", np.conj)],
    "weight": [("weights_reversed", "the weights in the other order", reversed_last)],
    "phi": [("taps_reversed", "a correlation in place of a convolution", reversed_last)],
    "M_plus": [("plus_transposed", "the matrices M⁺ are transposed", turned)],
    "M_minus": [("minus_transposed", "the matrices M⁻ are transposed", turned)],
    "gaps": [
        ("gaps_none", "the gaps are not read", np.ones_like),
        ("gaps_late", "each gap after its sample, not before", lambda g: np.roll(g, -1, -1)),
        ("gaps_root", "the root of each gap", np.sqrt),
    ],
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
    "C_shift": [
        ("shift_reversed", "the taps of the shift in the other order", reversed_last),
        ("shift_none", "the keys are not shifted", np.zeros_like),
    ],
    "D_shift": [("shift_skip", "the skip connection of the shift is forgotten", np.zeros_like)],
    "k": [("taps_reversed", "a convolution in place of a correlation", reversed_last)],
    "k_bias": [("filter_bias", "the bias of the filter is forgotten", np.zeros_like)],
    "W_in": [("halves", "x and the gate are exchanged", swapped)],
    "W_low": [("dt_constant", "the step does not depend on the input", np.zeros_like)],
    "W_B": [("B_reversed", "B with its states in the other order", reversed_last)],
    "W_C": [("C_sign", "C with the other sign", np.negative)],
    "dt_bias": [("dt_bias", "the bias of the step is forgotten", np.zeros_like)],
    "W_q": [("queries_sign", "the queries with the other sign", np.negative)],
    "W_k": [("keys_reversed", "the keys with their numbers in the other order", reversed_last)],
    "W_v": [("values_reversed", "the values in the other order", reversed_last)],
    **{
        f"k_{n}": [(f"taps_{n}_reversed", f"a correlation of {n}", reversed_last)]
        for n in ("x", "B", "C")
    },
    **{
        f"bias_{n}": [
            (f"filter_bias_{n}", f"the bias of the filter of {n} is forgotten", np.zeros_like)
        ]
        for n in ("x", "B", "C")
    },
    "scale": [("norm_scale", "the weights of the norm are forgotten", np.ones_like)],
    "bias": [("distances", "the bias of distances is forgotten", np.zeros_like)],
    "near": [("near_reversed", "the finest scale backwards", reversed_last)],
    "far": [("far_sign", "the coarser scales with the other sign", np.negative)],
    "W_now": [("taps_now_sign", "the tap of the present with the other sign", np.negative)],
    "W_past": [("past_unread", "the tap of the past is forgotten", np.zeros_like)],
    "W_wide": [("wide_reversed", "the wide row in the other order", reversed_last)],
    "delta": [
        ("delta_constant", "the input has the weight ½", np.zeros_like),
        ("delta_sign", "1 − p for p", np.negative),
    ],
    "alpha": [
        ("alpha_constant", "the damping is ½", np.zeros_like),
        ("alpha_sign", "1 − σ(α) for σ(α)", np.negative),
        ("alpha_none", "no damping: q = 1 − p", lambda a: 0 * a + a.dtype.type(30)),
    ],
    "beta": [("beta_none", "the input's weights β are forgotten", np.ones_like)],
    "gamma": [("gamma_reversed", "γ in the other order", reversed_last)],
    "omega": [("omega", "the skip connection ω u is forgotten", np.zeros_like)],
    "W_r": [
        ("decay_constant", "the decay does not depend on the input", np.zeros_like),
        ("decay_transposed", "the matrices of the decay's gate are transposed", turned),
    ],
    "b_r": [("decay_bias", "the bias of the decay's gate is forgotten", np.zeros_like)],
    "W_i": [
        ("input_constant", "the gate of the input does not depend on it", np.zeros_like),
        ("input_transposed", "the matrices of the input's gate are transposed", turned),
    ],
    "b_i": [("input_bias", "the bias of the input's gate is forgotten", np.zeros_like)],
    "a_param": [("rate_sign", "−Λ for Λ: σ(Λ) for σ(−Λ) as the decay", np.negative)],
    "b_u": [("bias_u", "the bias before the filter is forgotten", np.zeros_like)],
    "b_gate": [("bias_gate", "the bias of the gate is forgotten", np.zeros_like)],
    "b_out": [("bias_out", "the bias of the output is forgotten", np.zeros_like)],
    "W_z": [("gate_sign", "the gate with the other sign", np.negative)],
    "W_a": [("decay_constant", "the decay does not depend on the input", np.zeros_like)],
    "W_b": [("beta_sign", "1 − β for β", np.negative)],
    "W_gate": [("gate_reversed", "the gates in the other order", reversed_last)],
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

OF_PARAMETERS = []
for _layer in layers():
    _bugs = planting(f"{_layer}_layer")
    _shapes = dict(zip(_bugs.op.inputs, _bugs.op.input_dims, strict=True))
    _gate = GATED if _shapes.get("W") == ("h", "2h") else SQUARE
    for _name in _bugs.op.inputs:
        for _row in [*READ.get(_name, []), *_gate.get(_name, [])]:
            if _row[2] is np.conj and _bugs.op.inputs[_name].kind == "real":
                continue  # which changes nothing
            _bugs.plant((*_row[:2], {_name: _row[2]}))
    _bugs.plant(*SIGNAL, *FEWER_BITS)
    _row = "unrepeatable", "a result that depends on the call", every_third_call()
    _bugs.plant(_row, by="repeat")
    for _check, _row in MEMORY.items():
        _bugs.plant(_row, by=_check)
    _bugs.kept()
    if "transform" not in _bugs.op.traits:
        _bugs.plant(("nan_swallowed", "NaN replaced by zero", _without_nan), by="nan")
    OF_PARAMETERS += _bugs.bugs


def one_of_batch(count: int):
    """The gradients of the parameters from the first member of the batch only; `count` arguments
    are signals."""

    def program(right, dy, *given):
        signals, parameters = given[:count], given[count:]
        one = right(dy[:1], *(s[:1] for s in signals), *parameters)
        return *right(dy, *given)[:count], *one[count:]

    return program


def of_logarithm(place: int):
    """The gradient of e^x in place of that of x."""

    def program(right, dy, *args):
        gradients = list(right(dy, *args))
        gradients[place] = gradients[place] / np.exp(args[place])
        return tuple(gradients)

    return program


ALL = [
    ("detached_u", "the gradient stops before the input", {"u": np.zeros_like}),
    ("halved", "half of every gradient", of_each_result(lambda g: g / 2)),
    ("late", "the cotangent of the step before", {"dy": lambda dy: np.roll(dy, 1, -2)}),
]

OF_GRADIENTS = []
for _layer in layers():
    _gradients = planting(f"{_layer}_layer")
    _alone = one_of_batch(1 + len(_layer.beside))
    _row = "one_of_batch", "the parameters' gradients from one member of the batch", _alone
    _rows = [*ALL, _row]
    for _i, (_name, _domain) in enumerate(_gradients.op.inputs.items()):
        if _name in ("u", "reads"):  # a mask has no gradient: of it there is a bug below
            continue
        _rows.append((f"detached_{_name}", f"no gradient of `{_name}`", {_name: np.zeros_like}))
        if _domain.kind == "complex":
            _what = f"the other convention: d{_name}*"
            _rows.append((f"conjugate_{_name}", _what, {_name: np.conj}))
        if _name.startswith("log_"):
            _rows.append((f"factor_{_name}", f"`{_name}` as if it were e^x", of_logarithm(_i)))
    if "reads" in _gradients.op.inputs:
        _rows.append(("reads_as_scores", "a gradient of `reads`", {"reads": np.ones_like}))
    _gradients.plant(*_rows, by="gradient")
    OF_GRADIENTS += _gradients.bugs


def returned(place: int, change):
    """The right outputs, but for one state: `change` of it and of the one that was given."""

    def program(right, *args):
        outputs = list(right(*args))
        count = len(outputs) - 1
        outputs[place] = change(outputs[place], args[len(args) - count + place - 1])
        return tuple(outputs)

    return program


def one_step_old(count: int):
    """The states before the last step; `count` arguments are signals."""

    def program(right, u, *rest):
        beside, others = rest[: count - 1], rest[count - 1 :]
        y, *after = right(u, *rest)
        if not u.shape[-2]:
            return y, *rest[-len(after) :]
        return y, *right(u[..., :-1, :], *(g[..., :-1] for g in beside), *others)[1:]

    return program


OF_STATES = []
for _layer in layers():
    if not _layer.states:
        continue
    _states = planting(f"{_layer}_layer_stateful")
    for _i, _name in enumerate(_layer.states, start=1):
        _states.plant(
            (f"{_name}_unread", f"the given `{_name}` is not read", {f"{_name}0": np.zeros_like}),
        )
        _states.plant(
            (f"{_name}_lost", f"`{_name}` starts again", returned(_i, lambda s, s0: 0 * s)),
            (f"{_name}_kept", f"`{_name}` does not change", returned(_i, lambda s, s0: s0 + 0 * s)),
            (f"{_name}_sign", f"`{_name}` with the other sign", returned(_i, lambda s, s0: -s)),
            by="state",
        )
        if _states.op.inputs[f"{_name}0"].kind == "complex":
            _states.plant(
                (f"{_name}_real", f"the real part of `{_name}`",
                 returned(_i, lambda s, s0: s.real + 0 * s)),
                by="state",
            )  # fmt: skip
    _old = one_step_old(1 + len(_layer.beside))
    _states.plant(("one_step_old", "the states before the last step", _old), by="state")
    OF_STATES += _states.bugs
