"""Planted bugs in HOPE's kernels, the true and the aliased one, and in their VJPs."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, single
from refssm.conformance.planted.hope.transfer import plant_parameters, two_halves, without_nyquist
from refssm.conformance.planted.planting import Planting, instead, of_result
from refssm.hope import HOPE_KERNEL, HOPE_KERNEL_ALIASED, HOPE_TRANSFER
from refssm.hope.impulses import all_pass_responses, pole

WHOLE, ALIASED = Planting(HOPE_KERNEL, "float32"), Planting(HOPE_KERNEL_ALIASED, "float32")
whole, transfer = HOPE_KERNEL.reference, HOPE_TRANSFER.reference


def _transformed(spectrum, inverse=np.fft.ifft):
    """The inverse transform of spectrum(h, dt, l); its real part if the arguments are real."""

    def kernel(right, h, dt, *, l):
        K, dtype = inverse(spectrum(h, dt, l))[..., :l] if l else h[..., :0], np.result_type(h, dt)
        return (K if dtype.kind == "c" else K.real).astype(dtype)

    return kernel


for _p in (WHOLE, ALIASED):
    _p.usual()
    plant_parameters(_p, lambda x, l: x * (np.arange(l) == 0), beyond=64)  # x at time 0
    _p.plant(
        ("reversed", "time backwards", of_result(lambda K: K[..., ::-1].copy())),
        ("one_late", "K_{k−1} for K_k", of_result(lambda K: np.roll(K, 1, -1))),
        ("last_step", "the last step unwritten",
         of_result(lambda K: K * (np.arange(K.shape[-1]) < K.shape[-1] - 1))),
        ("first_lost", "K_0 = 0, as for dt = 1",
         of_result(lambda K: K * (np.arange(K.shape[-1]) > 0))),
    )  # fmt: skip
    _p.plant(("real_part", "only the real part kept", of_result(lambda K: K.real.astype(K.dtype))),
             by="value[complex64]")  # fmt: skip


def _cascade(stage):
    """The kernel of stages (a + b x)/(1 − c x) with a, b, c = stage(ρ), in double precision."""

    def kernel(right, h, dt, *, l):
        a, b, c = stage(pole(dt.astype(float)))
        s = np.zeros((l, *dt.shape))
        s[:1] = 1
        K = np.zeros((*np.broadcast_shapes(h.shape[:-1], dt.shape), l), np.result_type(h, dt))
        for j in range(h.shape[-1]):
            s = a * s + b * np.concatenate([0 * s[:1], s[:-1]])
            for k in range(1, l):
                s[k] += c * s[k - 1]
            K = K + h[..., j, None] * np.moveaxis(s, 0, -1)
        return K.astype(np.result_type(h, dt))

    return kernel


WHOLE.plant(
    ("low_passes", "(1 − ρ) x/(1 − ρx): no all-pass", _cascade(lambda rho: (0, 1 - rho, rho))),
    ("zeros_forgotten", "x/(1 − ρx)", _cascade(lambda rho: (0, 1, rho))),
    ("poles_forgotten", "x − ρ: a kernel of length n", _cascade(lambda rho: (-rho, 1, 0))),
    ("sign_of_zero", "(x + ρ)/(1 − ρx)", _cascade(lambda rho: (rho, 1, rho))),
    ("numerator_reversed", "(1 − ρx)/(1 − ρx): nothing", _cascade(lambda rho: (1, -rho, rho))),
    ("stage_negative", "(ρ − x)/(1 − ρx)", _cascade(lambda rho: (rho, -1, rho))),
    ("aliased", "the l-point inverse transform", instead(HOPE_KERNEL_ALIASED.reference)),
    ("fir", "h_{k−1}, though dt is not 1", {"dt": lambda dt: 0 * dt + 1}),
    ("truncated", "nothing beyond n steps", lambda right, h, dt, *, l:
     np.where(np.arange(l) <= h.shape[-1], right(h, dt, l=l), 0)),
    ("twice_as_long", "the inverse transform of 2l samples",
     _transformed(lambda h, dt, l: transfer(h, dt, l=2 * l))),
    ("states_in_bfloat16", "the states of the stages in eight bits", lambda right, h, dt, *, l:
     (h[..., None] * bfloat16(all_pass_responses(dt, h.shape[-1] + 1, l)[..., 1:, :])).sum(-2)
     .astype(np.result_type(h, dt))),
)  # fmt: skip
WHOLE.plant(("pole_in_single", "ρ in single precision for double",
             {"dt": lambda dt: single(dt).astype(dt.dtype)}), by="value[float64]")  # fmt: skip
WHOLE.plant(
    ("differences_reversed", "s_{j+1} − s_{j−1}: ddt of the inverted step", {"dt": np.negative}),
    ("aliased", "the gradient of the aliased kernel", instead(HOPE_KERNEL_ALIASED.bare_vjp)),
    by="gradient",
)
ALIASED.plant(
    ("true_kernel", "the first l steps, not wrapped", instead(whole)),
    ("unnormalised", "1/l forgotten", of_result(lambda K: K.shape[-1] * K)),
    ("normalised_twice", "1/l twice", of_result(lambda K: K / max(K.shape[-1], 1))),
    ("forward_transform", "fft/l for ifft: time reversed",
     _transformed(lambda h, dt, l: transfer(h, dt, l=l), lambda G: np.fft.fft(G) / G.shape[-1])),
    ("two_halves", "half as many samples, once more in reverse",
     _transformed(lambda h, dt, l: two_halves(transfer, h, dt, l=l))),
    ("nyquist_dropped", "0 at ω = −1",
     _transformed(lambda h, dt, l: without_nyquist(transfer(h, dt, l=l)))),
    ("next_period_only", "K_k + K_{k+l}, later periods left out",
     lambda right, *x, l: whole(*x, l=2 * l)[..., :l] + whole(*x, l=2 * l)[..., l:]),
)  # fmt: skip
ALIASED.plant(
    ("hermitian_taken", "irfft for a complex h too", lambda right, h, dt, *, l:
     np.fft.irfft(transfer(h, dt, l=l)[..., : l // 2 + 1], l).astype(np.result_type(h, dt))),
    by="value[complex64]",
)  # fmt: skip
ALIASED.plant(
    ("transform_forgotten", "1/l without the transform of dk", lambda right, dk, *x, l:
     HOPE_TRANSFER.bare_vjp((dk / max(l, 1)).astype(np.result_type(dk, "c8")), *x, l=l)),
    ("inverse_transform", "ifft(dk) for fft(dk)/l", lambda right, dk, *x, l:
     HOPE_TRANSFER.bare_vjp(np.fft.ifft(dk), *x, l=l)),
    by="gradient",
)  # fmt: skip
