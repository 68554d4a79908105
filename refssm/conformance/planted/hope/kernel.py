"""Planted bugs in HOPE's kernels, the true and the aliased one, and their gradients."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, single
from refssm.conformance.planted.hope.parameters import plant_parameters, without_nyquist
from refssm.conformance.planted.planting import Planting, instead, of_result
from refssm.hope import HOPE_KERNEL, HOPE_KERNEL_ALIASED, HOPE_TRANSFER
from refssm.hope.impulses import all_pass_responses, pole

WHOLE, ALIASED = Planting(HOPE_KERNEL, "float32"), Planting(HOPE_KERNEL_ALIASED, "float32")
transfer = HOPE_TRANSFER.reference


def _type(h, dt):
    return np.result_type(h, dt)


def _transformed(spectrum, inverse=np.fft.ifft):
    """The inverse transform of spectrum(h, dt, l); its real part where the arguments are real."""

    def kernel(right, h, dt, *, l):
        G, dtype = spectrum(h, dt, l), _type(h, dt)
        K = inverse(G)[..., :l] if l else h[..., :0]
        return (K if dtype.kind == "c" else K.real).astype(dtype)

    return kernel


def _where(keep):
    """The right kernel where keep(k) is true of the time, and 0 elsewhere."""
    return of_result(lambda K: np.where(keep(np.arange(K.shape[-1]), K.shape[-1]), K, 0))


for _p in (WHOLE, ALIASED):
    _p.usual()
    plant_parameters(_p, lambda x, l: x * (np.arange(l) == 0), beyond=64)  # x at time 0
    _p.plant(
        ("reversed", "time backwards", of_result(lambda K: K[..., ::-1].copy())),
        ("one_late", "K_{k−1} for K_k", of_result(lambda K: np.roll(K, 1, -1))),
        ("last_step", "the last step unwritten", _where(lambda k, l: k < l - 1)),
        ("first_lost", "K_0 = 0, as for dt = 1", _where(lambda k, l: k > 0)),
    )
    _p.plant(
        ("real_part", "only the real part kept", of_result(lambda K: K.real.astype(K.dtype))),
        by="value[complex64]",
    )


def _cascade(stages):
    """A kernel of other stages: `stages(rho, s) -> s` in double precision."""

    def kernel(right, h, dt, *, l):
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


def _states_in_bfloat16(right, h, dt, *, l):
    s = bfloat16(all_pass_responses(dt, h.shape[-1] + 1, l)[..., 1:, :])
    return (h[..., None] * s).sum(-2).astype(_type(h, dt))


WHOLE.plant(
    ("low_passes", "(1 − ρ) x/(1 − ρx): no all-pass",
     _cascade(lambda r, s: (1 - r) * _leaky(r, _late(s)))),
    ("zeros_forgotten", "x/(1 − ρx)", _cascade(lambda r, s: _leaky(r, _late(s)))),
    ("poles_forgotten", "x − ρ: a kernel of length n", _cascade(lambda r, s: _late(s) - r * s)),
    ("sign_of_zero", "(x + ρ)/(1 − ρx)", _cascade(lambda r, s: _leaky(r, _late(s) + r * s))),
    ("numerator_reversed", "(1 − ρx)/(1 − ρx): nothing",
     _cascade(lambda r, s: _leaky(r, s - r * _late(s)))),
    ("stage_negative", "(ρ − x)/(1 − ρx)", _cascade(lambda r, s: _leaky(r, r * s - _late(s)))),
    ("aliased", "the l-point inverse transform", instead(HOPE_KERNEL_ALIASED.reference)),
    ("fir", "h_{k−1}, though dt is not 1", {"dt": lambda dt: 0 * dt + 1}),
    ("truncated", "nothing beyond n steps", lambda right, h, dt, *, l:
     _where(lambda k, l: k <= h.shape[-1])(right, h, dt, l=l)),
    ("twice_as_long", "the inverse transform of 2l samples",
     _transformed(lambda h, dt, l: transfer(h, dt, l=2 * l))),
    ("states_in_bfloat16", "the states of the stages in eight bits", _states_in_bfloat16),
)  # fmt: skip
WHOLE.plant(
    ("pole_in_single", "ρ in single precision for double",
     {"dt": lambda dt: single(dt).astype(dt.dtype)}),
    by="value[float64]",
)  # fmt: skip
WHOLE.plant(
    ("differences_reversed", "s_{j+1} − s_{j−1}: ddt of the inverted step", {"dt": np.negative}),
    ("aliased", "the gradient of the aliased kernel", instead(HOPE_KERNEL_ALIASED.bare_vjp)),
    by="gradient",
)


def _two_halves(h, dt, l):
    first = transfer(h, dt, l=(l + 1) // 2)
    return np.concatenate([first, first[..., : l // 2][..., ::-1]], axis=-1)


def _two_periods(right, h, dt, *, l):
    K = HOPE_KERNEL.reference(h, dt, l=2 * l)
    return K[..., :l] + K[..., l:]


ALIASED.plant(
    ("true_kernel", "the first l steps, not wrapped", instead(HOPE_KERNEL.reference)),
    ("unnormalised", "1/l forgotten", of_result(lambda K: K.shape[-1] * K)),
    ("normalised_twice", "1/l twice", of_result(lambda K: K / max(K.shape[-1], 1))),
    ("forward_transform", "fft/l for ifft: time reversed",
     _transformed(lambda h, dt, l: transfer(h, dt, l=l), lambda G: np.fft.fft(G) / G.shape[-1])),
    ("two_halves", "half as many samples, once more in reverse", _transformed(_two_halves)),
    ("nyquist_dropped", "0 at ω = −1",
     _transformed(lambda h, dt, l: without_nyquist(transfer(h, dt, l=l)))),
    ("next_period_only", "K_k + K_{k+l}, later periods left out", _two_periods),
)  # fmt: skip
ALIASED.plant(
    ("hermitian_taken", "irfft for a complex h too", lambda right, h, dt, *, l:
     np.fft.irfft(transfer(h, dt, l=l)[..., : l // 2 + 1], l).astype(_type(h, dt))),
    by="value[complex64]",
)  # fmt: skip


@ALIASED.bug("transform_forgotten", "1/l without the transform of dk", by="gradient")
def _(right, dk, h, dt, *, l):
    sent = (dk / max(l, 1)).astype(np.result_type(dk, np.complex64))
    return HOPE_TRANSFER.bare_vjp(sent, h, dt, l=l)


@ALIASED.bug("inverse_transform", "ifft(dk) for fft(dk)/l", by="gradient")
def _(right, dk, h, dt, *, l):
    return HOPE_TRANSFER.bare_vjp(np.fft.ifft(dk), h, dt, l=l)
