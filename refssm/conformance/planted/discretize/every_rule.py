"""Mistakes in any discretization, dense or diagonal: functions of A or w, B and dt."""

import numpy as np

from refssm.conformance.planted.planting import Planting, of_each_result, of_result


def of_inputs(change):
    """Every B̄ changed; Ā is right."""
    return of_result(lambda A_bar, *B_bars: (A_bar, *map(change, B_bars)))


def with_step(change):
    """All results, or all gradients, changed by a function of dt and them."""
    return lambda right, *args, **statics: change(args[-1], *right(*args, **statics))


def without_last(y, rank=2):
    """The result without its last state."""
    y = y.copy()
    y[(..., -1, *(slice(None),) * (rank - 1))] = 0
    return y


def through_input(change):
    """The gradients of A and dt for changed cotangents of B̄; the gradient of B is right."""

    def vjp(right, dA_bar, *others, **statics):
        *dB_bars, A, B, dt = others
        dA, _, ddt = right(dA_bar, *map(change, dB_bars), A, B, dt, **statics)
        return dA, right(dA_bar, *others, **statics)[1], ddt

    return vjp


def gain_not_conjugated(right, dA_bar, dB_bar, A, B, dt):
    """The gradient of B for the conjugate of A; those of A and dt are right."""
    dA, _, ddt = right(dA_bar, dB_bar, A, B, dt)
    return dA, right(dA_bar, dB_bar, A.conj(), B, dt)[1], ddt


def resolvent_sign(right, dA_bar, dB_bar, A, B, dt):
    """Gradients of the bilinear map with the resolvent of −A."""
    dA, dB, _ = right(dA_bar, dB_bar, -A, B, dt)
    return dA, dB, right(-dA_bar, dB_bar, -A, B, dt)[2]  # dĀ/ddt has A itself as a factor


DIGITS_OF_ONE = (
    "digits_of_one", "B̄ with the absolute error of a number near 1, as after Ā − I",
    of_inputs(lambda y: (y + y.real.dtype.type(1)) - y.real.dtype.type(1)),
)  # fmt: skip
INPUT_IGNORED = through_input(lambda d: 0 * d)
STATE_IGNORED = {"dA_bar": lambda d: 0 * d}
SWAPPED = of_result(lambda *results: results[::-1])
MOST_RULES = [  # all but the diagonal forms of zero-order hold and of the bilinear map
    ("first_step", "the first step for all",
     {"dt": lambda dt: np.broadcast_to(dt.ravel()[0], dt.shape)}),
    ("inputs_rolled", "the columns of B̄ rolled", of_inputs(lambda y: np.roll(y, 1, -1))),
]  # fmt: skip


def planted(op, state="A"):
    """The bugs of any discretization; `state` is the name of A or w in their descriptions."""
    p, first = Planting(op, "float32"), next(iter(op.inputs))
    p.usual()
    p.plant(
        ("sign", f"−{state} for {state}", {first: np.negative}),
        ("half_step", "dt/2 for dt", {"dt": lambda dt: dt / 2}),
        ("step_squared", "dt² for dt", {"dt": np.square}),
        ("step_forgotten", "dt = 1", {"dt": lambda dt: 0 * dt + 1}),
        ("input_doubled", "2 B̄", of_inputs(lambda y: 2 * y)),
    )
    p.plant(
        ("conjugate", f"{state}* for {state}", {first: np.conj}),
        ("input_conjugate", "B* for B", {"B": np.conj}),
        ("real_part", f"Re {state} for {state}", {first: lambda A: A.real.astype(A.dtype)}),
        by="value[complex64]",
    )
    p.plant(("step_missing", "no gradient of dt", {"dt": lambda g: 0 * g}), by="gradient")
    p.plant(
        ("conjugate", f"d{state}* for d{state}", {first: np.conj}),
        ("as_jax", "the conjugate convention", of_each_result(np.conj)),
        by="gradient[complex64]",
    )
    return p
