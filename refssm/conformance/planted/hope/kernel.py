"""Planted bugs in HOPE's kernels, the true and the aliased one, and their gradients."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, single
from refssm.conformance.planted.hope.base import plant_gradients, plant_parameters
from refssm.conformance.planted.planting_old import Planting
from refssm.hope import HOPE_KERNEL, HOPE_KERNEL_ALIASED, HOPE_TRANSFER
from refssm.hope.impulses import all_pass_responses, pole

WHOLE, ALIASED = Planting(HOPE_KERNEL, "float32"), Planting(HOPE_KERNEL_ALIASED, "float32")
transfer = HOPE_TRANSFER.reference


def _type(h, dt):
    return np.result_type(h, dt)


def _kept(K, h, dt):
    """The real part where the arguments are real."""
    dtype = _type(h, dt)
    return (K if dtype.kind == "c" else K.real).astype(dtype)


def _impulse(x, l):
    """x at time 0."""
    return x * (np.arange(l) == 0)


def _plant_both(p: Planting) -> None:
    """What goes wrong in either kernel."""
    p.usual()
    plant_parameters(p, _impulse, beyond=64)
    plant_gradients(p)
    right, both = p.right, p.forward
    both("reversed", "time backwards")(lambda h, dt, *, l: right(h, dt, l=l)[..., ::-1].copy())
    both("one_late", "K_{k−1} for K_k")(lambda h, dt, *, l: np.roll(right(h, dt, l=l), 1, -1))
    both("last_step", "the last step unwritten")(
        lambda h, dt, *, l: right(h, dt, l=l) * (np.arange(l) < l - 1).astype(dt.dtype)
    )
    both("real_part", "only the real part kept", dtype="complex64")(
        lambda h, dt, *, l: right(h, dt, l=l).real.astype(_type(h, dt))
    )
    both("first_lost", "K_0 = 0, as for dt = 1")(
        lambda h, dt, *, l: right(h, dt, l=l) * (np.arange(l) > 0).astype(dt.dtype)
    )


_plant_both(WHOLE)
_plant_both(ALIASED)


def _cascade(stages):
    """A kernel of other stages: `stages(rho, s) -> s` in double precision."""

    def kernel(h, dt, *, l):
        rho = pole(dt.astype(float))[..., None]
        s = np.broadcast_to((np.arange(l) == 0).astype(float), (*dt.shape, l))
        K = np.zeros((*np.broadcast_shapes(h.shape[:-1], dt.shape), l), _type(h, dt))
        for j in range(h.shape[-1]):
            s = stages(rho, s)
            K = K + h[..., j, None] * s
        return K.astype(_type(h, dt))

    return kernel


def _leaky(rho, x):
    """y_k = ρ y_{k−1} + x_k."""
    y = np.zeros(np.broadcast_shapes(rho.shape, x.shape))
    for k in range(x.shape[-1]):
        y[..., k] = (rho[..., 0] * y[..., k - 1] if k else 0) + x[..., k]
    return y


def _late(x):
    """x_{k−1}."""
    return np.concatenate([0 * x[..., :1], x[..., :-1]], axis=-1)


STAGES = {
    "low_passes": ("(1 − ρ) x/(1 − ρx): no all-pass", lambda r, s: (1 - r) * _leaky(r, _late(s))),
    "zeros_forgotten": ("x/(1 − ρx)", lambda r, s: _leaky(r, _late(s))),
    "poles_forgotten": ("x − ρ: a kernel of length n", lambda r, s: _late(s) - r * s),
    "sign_of_zero": ("(x + ρ)/(1 − ρx)", lambda r, s: _leaky(r, _late(s) + r * s)),
    "numerator_reversed": ("(1 − ρx)/(1 − ρx): nothing", lambda r, s: _leaky(r, s - r * _late(s))),
    "stage_negative": ("(ρ − x)/(1 − ρx)", lambda r, s: _leaky(r, r * s - _late(s))),
}
for _name, (_what, _stage) in STAGES.items():
    WHOLE.forward(_name, _what)(_cascade(_stage))

WHOLE.forward("aliased", "the l-point inverse transform")(ALIASED.right)
WHOLE.forward("fir", "h_{k−1}, though dt is not 1")(
    lambda h, dt, *, l: HOPE_KERNEL.reference(h, 0 * dt + 1, l=l)
)


@WHOLE.forward("truncated", "nothing beyond n steps")
def _truncated(h, dt, *, l):
    return WHOLE.right(h, dt, l=l) * (np.arange(l) <= h.shape[-1]).astype(dt.dtype)


@WHOLE.forward("twice_as_long", "the inverse transform of 2l samples")
def _twice_as_long(h, dt, *, l):
    return _kept(np.fft.ifft(transfer(h, dt, l=2 * l))[..., :l] if l else h[..., :0], h, dt)


@WHOLE.forward("states_in_bfloat16", "the states of the stages in eight bits")
def _states_in_bfloat16(h, dt, *, l):
    s = bfloat16(all_pass_responses(dt, h.shape[-1] + 1, l)[..., 1:, :])
    return (h[..., None] * s).sum(-2).astype(_type(h, dt))


@WHOLE.forward("pole_in_single", "ρ in single precision for double", dtype="float64")
def _pole_in_single(h, dt, *, l):
    return WHOLE.right(h, single(dt).astype(dt.dtype), l=l)


ALIASED.forward("true_kernel", "the first l steps, not wrapped")(WHOLE.right)
ALIASED.forward("unnormalised", "1/l forgotten")(lambda h, dt, *, l: l * ALIASED.right(h, dt, l=l))
ALIASED.forward("normalised_twice", "1/l twice")(
    lambda h, dt, *, l: ALIASED.right(h, dt, l=l) / max(l, 1)
)
ALIASED.forward("forward_transform", "fft/l for ifft: time reversed")(
    lambda h, dt, *, l: _kept(np.fft.fft(transfer(h, dt, l=l)) / l if l else h[..., :0], h, dt)
)
ALIASED.forward("hermitian_taken", "irfft for a complex h too", dtype="complex64")(
    lambda h, dt, *, l: np.fft.irfft(transfer(h, dt, l=l)[..., : l // 2 + 1], l).astype(
        _type(h, dt)
    )
)


@ALIASED.forward("two_halves", "half as many samples, once more in reverse")
def _two_halves(h, dt, *, l):
    first = transfer(h, dt, l=(l + 1) // 2)
    G = np.concatenate([first, first[..., : l // 2][..., ::-1]], axis=-1)
    return _kept(np.fft.ifft(G) if l else G, h, dt)


@ALIASED.forward("nyquist_dropped", "0 at ω = −1")
def _nyquist_dropped(h, dt, *, l):
    G = transfer(h, dt, l=l)
    if l % 2 == 0 and l:
        G[..., l // 2] = 0
    return _kept(np.fft.ifft(G) if l else G, h, dt)


@ALIASED.forward("next_period_only", "K_k + K_{k+l}, later periods left out")
def _next_period_only(h, dt, *, l):
    K = WHOLE.right(h, dt, l=2 * l)
    return K[..., :l] + K[..., l:]


@ALIASED.gradient("transform_forgotten", "1/l without the transform of dk")
def _transform_forgotten(dk, h, dt, *, l):
    sent = (dk / max(l, 1)).astype(np.result_type(dk, np.complex64))
    return HOPE_TRANSFER.bare_vjp(sent, h, dt, l=l)


@ALIASED.gradient("inverse_transform", "ifft(dk) for fft(dk)/l")
def _inverse_transform(dk, h, dt, *, l):
    return HOPE_TRANSFER.bare_vjp(np.fft.ifft(dk), h, dt, l=l)


@WHOLE.gradient("differences_reversed", "s_{j+1} − s_{j−1}: ddt of the inverted step")
def _differences_reversed(dk, h, dt, *, l):
    dh, ddt = WHOLE.right_vjp(dk, h, dt, l=l)
    return dh, -ddt


@WHOLE.gradient("aliased", "the gradient of the aliased kernel")
def _aliased(dk, h, dt, *, l):
    return ALIASED.right_vjp(dk, h, dt, l=l)


DEVIATIONS = [*WHOLE.bugs, *ALIASED.bugs]
