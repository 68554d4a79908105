"""What goes wrong in anything made of HOPE's parameters and a step."""

import numpy as np

from refssm.conformance.planted.planting_old import Planting

COMPLEX = "complex64"


def _tail(h):
    """Parameters up to a multiple of 32."""
    return h[..., : h.shape[-1] // 32 * 32 or h.shape[-1]]


def _before(h):
    """A zero before the first parameter."""
    return np.concatenate([np.zeros_like(h[..., :1]), h], axis=-1)


def plant_parameters(p: Planting, constant, beyond=1024) -> None:
    """Other parameters, another step; `constant(x, l)` is that of a system that multiplies by x."""
    right, both = p.right, p.forward
    both("index_base", "z'^(−i) for z'^(−(i+1)): h_0 passes at once")(
        lambda h, dt, *, l: right(h[..., 1:], dt, l=l) + constant(h[..., :1], l)
    )
    both("one_more", "z'^(−(i+2))")(lambda h, dt, *, l: right(_before(h), dt, l=l))
    both("step_inverted", "1/dt for dt")(lambda h, dt, *, l: right(h, 1 / dt, l=l))
    both("step_ignored", "dt = 1")(lambda h, dt, *, l: right(h, np.ones_like(dt), l=l))
    both("step_halved", "the bilinear map of step 2 taken for step 1")(
        lambda h, dt, *, l: right(h, dt / 2, l=l)
    )
    both("step_clipped", "dt at most 0.1")(
        lambda h, dt, *, l: right(h, np.minimum(dt, 0.1).astype(dt.dtype), l=l)
    )
    both("step_floored", "dt at least 1e-3")(
        lambda h, dt, *, l: right(h, np.maximum(dt, 1e-3).astype(dt.dtype), l=l)
    )
    both("step_exponentiated", "log dt taken for dt")(lambda h, dt, *, l: right(h, np.exp(dt), l=l))
    both("sign_alternating", "−z' for z'")(
        lambda h, dt, *, l: right(h * (-1.0) ** np.arange(h.shape[-1]), dt, l=l).astype(
            right(h, dt, l=l).dtype
        )
    )
    both("parameters_reversed", "h_{n−1−i} for h_i")(
        lambda h, dt, *, l: right(h[..., ::-1], dt, l=l)
    )
    both("last_parameter", "the last of several left out")(
        lambda h, dt, *, l: right(h[..., : max(1, h.shape[-1] - 1)], dt, l=l)
    )
    both("tail_of_parameters", "parameters beyond a multiple of 32 left out")(
        lambda h, dt, *, l: right(_tail(h), dt, l=l)
    )
    both("recency_bias", "h_i e^(−i/100): a bias of the layer in the operator")(
        lambda h, dt, *, l: right(
            (h * np.exp(-np.arange(h.shape[-1]) / 100)).astype(h.dtype), dt, l=l
        )
    )
    both("doubled", "the factor 2 of conjugate pairs")(lambda h, dt, *, l: 2 * right(h, dt, l=l))
    both("parameters_conjugated", "h* for h", dtype=COMPLEX)(
        lambda h, dt, *, l: right(h.conj(), dt, l=l)
    )
    both("tail_unwritten", f"nothing written beyond {beyond}")(
        lambda h, dt, *, l: np.where(np.arange(l) < beyond, right(h, dt, l=l), 0)
    )


def plant_gradients(p: Planting) -> None:
    """What goes wrong in any of their gradients."""
    right = p.right_vjp

    @p.gradient("as_jax", "the conjugate convention", COMPLEX)
    def _(*args, l):
        return tuple(g.conj() for g in right(*args, l=l))

    @p.gradient("not_conjugated", "h* for h", COMPLEX)
    def _(dk, h, dt, *, l):
        return right(dk, h.conj(), dt, l=l)

    @p.gradient("cotangent_conjugated", "dk* for dk", COMPLEX)
    def _(dk, h, dt, *, l):
        return right(dk.conj(), h, dt, l=l)

    @p.gradient("last_dropped", "the last entry left out")
    def _(dk, h, dt, *, l):
        return right(dk * (np.arange(l) < l - 1).astype(dt.dtype), h, dt, l=l)

    @p.gradient("index_base", "i for i + 1 in ddt")
    def _(dk, h, dt, *, l):
        i = np.arange(h.shape[-1])
        lowered = (h * (i / (i + 1))).astype(h.dtype)
        return right(dk, h, dt, l=l)[0], right(dk, lowered, dt, l=l)[1]

    @p.gradient("parameters_forgotten", "ddt without h")
    def _(dk, h, dt, *, l):
        return right(dk, h, dt, l=l)[0], right(dk, 0 * h + 1, dt, l=l)[1]

    p.gradient("doubled", "the factor 2 once more")(
        lambda dk, h, dt, *, l: right(2 * dk, h, dt, l=l)
    )
    p.changed_gradient("sign_of_map", "ddt with the other sign", dt=lambda g, dt: -g)
    p.changed_gradient("logarithmic", "the gradient of log dt", dt=lambda g, dt: g * dt)
    p.changed_gradient("inverse_forgotten", "ddt without 1/dt", dt=lambda g, dt: g * dt * dt)
    p.changed_gradient("step_fixed", "no gradient for dt", dt=lambda g, dt: 0 * g)
    p.changed_gradient("halved", "½ of 1/(2 dt) once more", dt=lambda g, dt: g / 2)
    p.changed_gradient("rotated", "dh one place on", h=lambda g, dt: np.roll(g, 1, -1))
