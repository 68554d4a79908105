"""Planted bugs in the gradients of gated units."""

import numpy as np

from refssm.activations import sigmoid
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.gated_units.forms import MINIMAL, REAL, UNSCALED
from refssm.conformance.planted.gated_units.programs import (
    back_but_for,
    in_gradient_form,
    slope_of,
    slope_of_positive,
)
from refssm.conformance.planted.planting import InEach

SEQUENCES = (*REAL[:4], *UNSCALED, *MINIMAL[:4])
REAL_SOME, MINIMAL_SOME = (*REAL[:3], REAL[4], *UNSCALED), (*MINIMAL[:3], MINIMAL[4])

ADJOINT = InEach(in_gradient_form)
ADJOINT.plant(
    ("carry_constant", "the carry taken as a constant: no gradient from one step to the one before",
     back_but_for(carry=lambda g, t: 0 * g)),
    ("carry_lost_64", "the cotangent lost at blocks of 64",
     back_but_for(carry=lambda g, t: g * (t % 64 != 0))),
    ("carry_in_float16", "the cotangent carried in float16",
     back_but_for(carry=lambda g, t: float16(g))),
    of=SEQUENCES, by="gradient",
)  # fmt: skip
ADJOINT.plant(
    ("root_constant", "the root taken as a constant: no gradient of the decay through it",
     back_but_for(slope=lambda a, root: 0 * root)),
    ("root_slope_sign", "+a²/√(1 − a²) for the derivative of the root",
     back_but_for(slope=lambda a, root: a * a / root)),
    ("root_slope_of_a", "−a/√(1 − a²): the derivative by a, not by log a",
     back_but_for(slope=lambda a, root: -a / root)),
    ("root_slope_clipped", "the root's derivative clipped to 1000",
     back_but_for(slope=lambda a, root: np.maximum(slope_of(a, root), -a * a * 1000))),
    of=REAL_SOME, by="gradient",
)  # fmt: skip
ADJOINT.plant(
    ("slope_below_forgotten", "g'(h) = 1 also below 0", back_but_for(slope=np.ones_like)),
    ("slope_above_forgotten", "g'(h) = σ(h) σ(−h) also above 0",
     back_but_for(slope=lambda h: sigmoid(h) * sigmoid(-h))),
    ("slope_squared", "σ(h)² for σ(h) (1 − σ(h)) below 0", back_but_for(
        slope=lambda h: np.where(h >= 0, 1, sigmoid(h) ** 2).astype(h.dtype))),
    ("slope_zero_below", "g'(h) = 0 below 0, as a ReLU",
     back_but_for(slope=lambda h: np.where(h >= 0, 1, 0).astype(h.dtype))),
    ("slope_doubled", "2 g'(h)", back_but_for(slope=lambda h: 2 * slope_of_positive(h))),
    of=MINIMAL_SOME, by="gradient",
)  # fmt: skip


def _exchanged(one, other):
    def wrong(right, *given):
        gradients = [*right(*given)]
        gradients[one], gradients[other] = gradients[other], gradients[one]
        return tuple(gradients)

    return wrong


CHANGED = InEach(lambda op: lambda wrong: wrong)
CHANGED.plant(
    ("dr_missing", "dr = 0", {"r": lambda g: 0 * g}),
    ("di_missing", "di = 0", {"i": lambda g: 0 * g}),
    ("da_param_missing", "da_param = 0", {"a_param": lambda g: 0 * g}),
    ("dr_without_eight", "dr without the factor 8", {"r": lambda g: g / 8}),
    ("da_param_negative", "da_param with the other sign", {"a_param": np.negative}),
    ("du_in_float16", "du rounded to float16", {"u": float16}),
    ("dr_in_bfloat16", "dr rounded to bfloat16", {"r": bfloat16}),
    ("exchanged", "du and di exchanged", _exchanged(0, 2)),
    of=REAL_SOME, by="gradient",
)  # fmt: skip
CHANGED.plant(
    ("dk_negative", "dk with the other sign", {"k": np.negative}),
    ("dk_missing", "dk = 0", {"k": lambda g: 0 * g}),
    ("dh_in_float16", "dh rounded to float16", {"h": float16}),
    ("exchanged", "dk and dh exchanged", _exchanged(0, 1)),
    of=MINIMAL_SOME, by="gradient",
)  # fmt: skip
CHANGED.plant(
    ("start_missing", "dx0 = 0", {"x0": lambda g: 0 * g}),
    ("start_negative", "dx0 with the other sign", {"x0": np.negative}),
    of=(REAL[1], MINIMAL[1]), by="gradient",
)  # fmt: skip
BUGS = [*ADJOINT.bugs, *CHANGED.bugs]
