"""What goes wrong in anything made of HOPE's parameters and a step."""

import numpy as np

from refssm.conformance.planted.planting import Planting, of_each_result, of_result


def plant_parameters(p: Planting, constant, beyond=1024) -> None:
    """Other parameters, another step; `constant(x, l)` is that of a system that multiplies by x."""
    p.plant(
        ("index_base", "z'^(−i) for z'^(−(i+1)): h_0 passes at once", lambda right, h, dt, *, l:
         right(h[..., 1:], dt, l=l) + constant(h[..., :1], l)),
        *WRONG,
        ("tail_unwritten", f"nothing written beyond {beyond}",
         of_result(lambda k: np.where(np.arange(k.shape[-1]) < beyond, k, 0))),
    )  # fmt: skip
    p.plant(("parameters_conjugated", "h* for h", {"h": np.conj}), by="value[complex64]")
    p.plant(*GRADIENTS, by="gradient")
    p.plant(*GRADIENTS_COMPLEX, by="gradient[complex64]")


def weighted(weights):
    """Parameters times numbers made of their indices."""
    return lambda h: (h * weights(np.arange(h.shape[-1]))).astype(h.dtype)


def _step(of=np.array, by=np.ones_like):
    """The gradient of the step taken of other parameters, or multiplied by numbers of the step."""
    return lambda right, dk, h, dt, *, l: (
        right(dk, h, dt, l=l)[0], right(dk, of(h), dt, l=l)[1] * by(dt),
    )  # fmt: skip


WRONG = [
    ("one_more", "z'^(−(i+2))",
     {"h": lambda h: np.concatenate([np.zeros_like(h[..., :1]), h], axis=-1)}),
    ("step_inverted", "1/dt for dt", {"dt": lambda dt: 1 / dt}),
    ("step_ignored", "dt = 1", {"dt": np.ones_like}),
    ("step_halved", "the bilinear map of step 2 taken for step 1", {"dt": lambda dt: dt / 2}),
    ("step_clipped", "dt at most 0.1", {"dt": lambda dt: np.minimum(dt, 0.1)}),
    ("step_floored", "dt at least 1e-3", {"dt": lambda dt: np.maximum(dt, 1e-3)}),
    ("step_exponentiated", "log dt taken for dt", {"dt": np.exp}),
    ("sign_alternating", "−z' for z'", {"h": weighted(lambda i: (-1.0) ** i)}),
    ("parameters_reversed", "h_{n−1−i} for h_i", {"h": lambda h: h[..., ::-1]}),
    ("last_parameter", "the last of several left out",
     {"h": lambda h: h[..., : max(1, h.shape[-1] - 1)]}),
    ("tail_of_parameters", "parameters beyond a multiple of 32 left out",
     {"h": lambda h: h[..., : h.shape[-1] // 32 * 32 or h.shape[-1]]}),
    ("recency_bias", "h_i e^(−i/100): a bias of the layer in the operator",
     {"h": weighted(lambda i: np.exp(-i / 100))}),
    ("doubled", "the factor 2 of conjugate pairs", of_result(lambda k: 2 * k)),
]  # fmt: skip
GRADIENTS = [
    ("last_dropped", "the last entry left out",
     {"dk": lambda dk: dk * (np.arange(dk.shape[-1]) < dk.shape[-1] - 1)}),
    ("index_base", "i for i + 1 in ddt", _step(of=weighted(lambda i: i / (i + 1)))),
    ("parameters_forgotten", "ddt without h", _step(of=lambda h: 0 * h + 1)),
    ("doubled", "the factor 2 once more", {"dk": lambda dk: 2 * dk}),
    ("sign_of_map", "ddt with the other sign", {"dt": np.negative}),
    ("logarithmic", "the gradient of log dt", _step(by=lambda dt: dt)),
    ("inverse_forgotten", "ddt without 1/dt", _step(by=lambda dt: dt * dt)),
    ("step_fixed", "no gradient for dt", {"dt": lambda g: 0 * g}),
    ("halved", "½ of 1/(2 dt) once more", {"dt": lambda g: g / 2}),
    ("rotated", "dh one place on", {"h": lambda g: np.roll(g, 1, -1)}),
]  # fmt: skip
GRADIENTS_COMPLEX = [
    ("as_jax", "the conjugate convention", of_each_result(np.conj)),
    ("not_conjugated", "h* for h", lambda right, dk, h, dt, *, l: right(dk, h.conj(), dt, l=l)),
    ("cotangent_conjugated", "dk* for dk", {"dk": np.conj}),
]  # fmt: skip
