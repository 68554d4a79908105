"""Presets of convolutions: a kernel of S4D, and the short filters before a selective scan."""

import numpy as np

from refssm import initial
from refssm.diagonal import diagonal_kernel_zoh
from refssm.presets.preset import Preset

TAPS = 4  # published code of Mamba: d_conv


def _kernel(rng, l):
    system, n = initial.diagonal("lin", n=32), 32
    C, dt = initial.complex_normal(rng, (n,)), initial.steps(rng, ())
    return 2 * np.real(diagonal_kernel_zoh(system["w"], system["B"], C, dt, l=l))


def _long(*kernels):
    def draw(rng, sizes):
        l = sizes["l"]
        return {"u": initial.normal(rng, (l,))} | {k: _kernel(rng, l) for k in kernels}

    return draw


def _short(*states):
    def draw(rng, sizes):
        bound = 1 / np.sqrt(TAPS)  # what PyTorch's `Conv1d` with one channel a group starts from
        k = rng.uniform(-bound, bound, sizes["t"])
        return {"k": k} | {s: initial.state(rng, (sizes["t"],)) for s in states}

    return draw


def _activated(*states):
    """Taps and bias of a Conv1d with one channel a group, as PyTorch starts them."""
    short, bound = _short(*states), 1 / np.sqrt(TAPS)

    def draw(rng, sizes):
        over = (sizes["l"],) if "l" in sizes else ()
        drawn = {"u": initial.normal(rng, over), "bias": rng.uniform(-bound, bound, ())}
        return {**short(rng, sizes), **drawn}

    return draw


def _far_out(*states):
    """Inputs of ±100 and taps of one sign: most outputs are the sum itself, or 0 but for e^−100."""
    usual = _activated(*states)

    def draw(rng, sizes):
        drawn = usual(rng, sizes)
        signs = rng.choice([-1.0, 1.0], drawn["u"].shape)
        return {**drawn, "u": 100 * signs, "k": np.abs(drawn["k"])}

    return draw


def _padded(*states):
    """Zeros after the first half, as after the end of a sequence: outputs there are exactly 0."""

    def draw(rng, sizes):
        l = sizes["l"]
        u = np.where(np.arange(l) < l // 2, initial.normal(rng, (l,)), 0)
        return {"u": u, **_short(*states)(rng, sizes)}

    return draw


def _with_bias(*states):
    return (
        Preset("mamba", f"{MAMBA}, with its bias", _activated(*states), {"t": TAPS}),
        Preset("far-out", f"{MAMBA}, inputs of ±100", _far_out(*states), {"t": TAPS}),
    )


S4D, MAMBA = "a real kernel of S4D-Lin, 64 states", "the short filter of Mamba, 4 taps"
ONE = (Preset("s4d-lin", S4D, _long("k")),)
TWO = (Preset("s4d-lin", S4D, _long("k", "kr")),)
PRESETS = {
    "causal_convolution": ONE,
    "causal_convolution_direct": ONE,
    "circular_convolution": ONE,
    "bidirectional_convolution": TWO,
    "bidirectional_convolution_shifted": TWO,
    "short_convolution": (
        Preset("mamba", MAMBA, _short(), {"t": TAPS}),
        Preset("mamba-padded", f"{MAMBA}, zeros after half", _padded(), {"t": TAPS}),
    ),
    "short_convolution_stateful": (
        Preset("mamba", MAMBA, _short("s0"), {"t": TAPS}),
        Preset("mamba-padded", f"{MAMBA}, zeros after half", _padded("s0"), {"t": TAPS}),
    ),
    "short_convolution_packed": (Preset("mamba", MAMBA, _short(), {"t": TAPS}),),
    "short_convolution_step": (Preset("mamba", MAMBA, _short("s"), {"t": TAPS}),),
    "causal_conv1d": _with_bias(),
    "causal_conv1d_packed": _with_bias(),
    "causal_conv1d_stateful": _with_bias("s0"),
    "causal_conv1d_step": _with_bias("s"),
}
