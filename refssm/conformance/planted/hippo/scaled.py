"""Planted bugs in steps of a memory whose time is stretched, and in their VJPs."""

from functools import partial

import numpy as np

from refssm.conformance.planted.hippo.constructors import of_keywords, without
from refssm.conformance.planted.planting import Planting, of_result
from refssm.discretize import DISCRETIZE_ZOH
from refssm.hippo import HIPPO_SCALED_BACKWARD, HIPPO_SCALED_BILINEAR, HIPPO_SCALED_EULER
from refssm.hippo.scaled import systems

EULER, BILINEAR, BACKWARD = OF_STEPS = [
    Planting(op, "float32")
    for op in (HIPPO_SCALED_EULER, HIPPO_SCALED_BILINEAR, HIPPO_SCALED_BACKWARD)
]


def _by(alpha):
    """The step with another weight of the new state."""

    def step(right, *arrays, p):
        M, side = systems(*arrays, p=p, alpha=alpha)
        batch = np.broadcast_shapes(M.shape[:-2], side.shape[:-2])
        return np.linalg.solve(M, np.broadcast_to(side, (*batch, *side.shape[-2:])))

    return step


def _held(right, A, B, x, u, time, *, p):
    A_bar, B_bar = DISCRETIZE_ZOH.reference(A, B[..., None], 1 / (p * time))
    return A_bar @ x + B_bar * u[..., None, :]


def _unscaled_input(right, A, B, x, u, time, *, p):
    return right(A, B * (p * time)[..., None], x, u, time, p=p)


def _input_outside(right, A, B, x, u, time, *, p):
    """The input added after the step: h B u is not solved."""
    h = 1 / (p * time)
    return right(A, 0 * B, x, u, time, p=p) + (h[..., None] * B)[..., None] * u[..., None, :]


for _p in OF_STEPS:
    _p.usual()
    _p.plant(
        ("transposed", "Aᵀ for A", {"A": lambda A: A.mT}),
        ("sign", "−A for A", {"A": np.negative}),
        ("input_sign", "−B for B", {"B": np.negative}),
        ("state_forgotten", "x = 0", {"x": lambda x: 0 * x}),
        ("input_forgotten", "u = 0", {"u": lambda u: 0 * u}),
        ("next_time", "t + 1 for t", {"time": lambda t: t + 1}),
        ("unscaled", "t = 1", {"time": lambda t: 0 * t + 1}),
        ("time_squared", "t² for t", {"time": np.square}),
        ("power_ignored", "p = 1", of_keywords(p=lambda p: 1.0)),
        ("power_inverted", "1/p for p", of_keywords(p=lambda p: 1 / p)),
        ("signals_rolled", "samples of other signals", {"u": lambda u: np.roll(u, 1, -1)}),
        ("input_unscaled", "B u for h B u", _unscaled_input),
        ("held", "zero-order hold of A/t", _held),
        ("last_state", "the last state not written", of_result(
            lambda x: without(x, np.s_[..., -1:, :]))),
        ("beyond_16", "states beyond 16 not written", of_result(
            lambda x: without(x, np.s_[..., 16:, :]))),
    )  # fmt: skip
    _p.plant(
        ("conjugate", "A* for A", {"A": np.conj}),
        ("input_conjugate", "u* for u", {"u": np.conj}),
        by="value[complex64]",
    )
    _p.plant(
        ("transposed", "dAᵀ for dA", {"A": lambda g: g.mT.copy()}),
        ("input_missing", "no gradient of B", {"B": lambda g: 0 * g}),
        ("state_missing", "no gradient of x", {"x": lambda g: 0 * g}),
        ("signals_rolled", "du of other signals", {"u": lambda g: np.roll(g, 1, -1)}),
        ("time_missing", "no gradient of the time", {"time": lambda g: 0 * g}),
        ("time_sign", "+h/t for −h/t", {"time": np.negative}),
        ("not_adjoint", "A for Aᴴ", lambda right, dx, A, *others, p:
         right(dx, A.mT.conj().copy(), *others, p=p)),
        by="gradient",
    )  # fmt: skip
    _p.plant(("as_jax", "dA* for dA", {"A": np.conj}), by="gradient[complex64]")

_euler, _bilinear, _backward = (partial(_by, alpha) for alpha in (0, 0.5, 1))
EULER.plant(
    ("bilinear", "the bilinear rule", _bilinear()), ("backward", "backward Euler", _backward())
)
BILINEAR.plant(
    ("euler", "Euler's rule", _euler()),
    ("backward", "backward Euler", _backward()),
    ("input_outside", "h B u added after the solve", _input_outside),
)
BACKWARD.plant(
    ("euler", "Euler's rule", _euler()),
    ("bilinear", "the bilinear rule", _bilinear()),
    ("input_outside", "h B u added after the solve", _input_outside),
)
