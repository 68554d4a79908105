"""The presets of each operator, from the families' files."""

from dataclasses import replace

from refssm._declaration.adapted import Adapted, adapters_of
from refssm._declaration.operator import Operator
from refssm.adapters import PAIRS
from refssm.presets import (
    cauchy,
    convolution,
    diagonal,
    discretize,
    dplr,
    hankel,
    hippo,
    hope,
    krylov,
    layers,
    linear_attention,
    norms,
    scan,
    selective_scan,
    ssd,
    vandermonde,
    xlstm,
)
from refssm.presets.preset import Preset
from refssm.presets.recurrences import gated_units, linoss, mamba3

FAMILIES = (
    cauchy, convolution, diagonal, discretize, dplr, gated_units, hankel, hippo, hope, krylov,
    layers, linear_attention, linoss, mamba3, norms, scan, selective_scan, ssd, vandermonde, xlstm,
)  # fmt: skip


OF_PAIRS = "_real", "_pairs"  # how the names of forms for conjugate pairs end


def alike(name: str, presets: tuple[Preset, ...]) -> tuple[Preset, ...]:
    """The presets, if they agree in what the length is: it decides how long their cases are."""
    kinds = sorted({preset.along for preset in presets})
    assert len(kinds) <= 1, f"{name}: `along` must be the same in all presets, got {kinds}"
    return presets


PRESETS = {
    name: alike(name, presets) for family in FAMILIES for name, presets in family.PRESETS.items()
}


def preset_named(op: Operator, name: str) -> Preset | None:
    """The operator's preset of this name, None for ""; LookupError if there is none."""
    if not name:
        return None
    for preset in presets_of(op):
        if preset.name == name:
            return preset
    raise LookupError(f"{op} has no preset {name!r}")


def presets_of(op: Operator) -> tuple[Preset, ...]:
    """All presets of an operator; () if it has none. With `halves`, those of its form for pairs.

    `halves` joins the conjugates to each system: one that has both of each pair already would have
    every mode twice.
    """
    adapters = {adapter.name for adapter in adapters_of(op)}
    return _of_base(op, OF_PAIRS if PAIRS in adapters else ())


def _of_base(op: Operator, endings: tuple[str, ...]) -> tuple[Preset, ...]:
    """The presets of the first form that has some, in the parameters of `op`."""
    if isinstance(op, Adapted) and op.base is not None:
        return tuple(_of_parameters(op, preset) for preset in _of_base(op.base, endings))
    names = (*(f"{op.name}{ending}" for ending in endings), op.name)
    return next((PRESETS[name] for name in names if name in PRESETS), ())


def _of_parameters(op: Adapted, preset: Preset) -> Preset:
    """The preset as parameters of an adapted operator."""
    return replace(preset, draw=lambda rng, sizes: op.of_preset(preset.draw(rng, sizes)))
