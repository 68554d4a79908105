"""Presets of HOPE: normal Markov parameters, log-uniform steps."""

from refssm import initial
from refssm.presets.preset import of_orders

WORDS = "HOPE's parameters, normal with E Σ h² = 1"


def _kernel(rng, sizes):
    return {"h": initial.markov(rng, (sizes["n"],)), "dt": initial.steps(rng, ())}


def _of_state(state):
    def draw(rng, sizes):
        return {**_kernel(rng, sizes), state: initial.state(rng, (sizes["n"],))}

    return draw


KERNELS = of_orders("hope", WORDS, _kernel, (16, 64))
PRESETS = {
    **dict.fromkeys(
        ("hope_kernel", "hope_kernel_aliased", "hope_transfer", "hope_stream"), KERNELS
    ),
    "hope_stream_stateful": of_orders("hope", WORDS, _of_state("x0"), (16, 64)),
    "hope_step": of_orders("hope", WORDS, _of_state("x"), (16, 64)),
}
