"""The models whose training steps are timed, and how fast some of them must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from refssm.bench.work.sizes import Bar
from refssm.conformance.usage_error import UsageError
from refssm.layers.catalog import NAMED

CHANNELS, DEPTH, CLASSES = 128, 4, 10


@dataclass(frozen=True)
class Setting:
    """A layer at a size, and its bar beside compiled JAX if it has one."""

    layer: str
    sizes: Mapping[str, int]
    bar: Bar | None = None
    batch: int = 16
    l: int = 1024

    @property
    def name(self) -> str:
        """The name of the work."""
        return f"{self.layer}_training_step"

    @property
    def letters(self) -> dict[str, int]:
        """All sizes by name."""
        rest = {"b": self.batch, "l": self.l, "h": CHANNELS, "depth": DEPTH}
        return {**rest, **self.sizes}


BARRED = {
    "s5": Setting("s5", {"n": 32}, Bar(3, 0, libraries=("jax",))),  # pairs
    "mamba": Setting("mamba", {"n": 16}, Bar(2, 0, libraries=("jax",))),
}
SETTINGS = {name: Setting(name, layer.sizes) for name, layer in NAMED.items()} | BARRED


def asked(names: Sequence[str]) -> list[Setting]:
    """The settings of these layers, or those that have a bar; UsageError names the layers."""
    for name in names:
        if name not in SETTINGS:
            known = ", ".join(SETTINGS)
            raise UsageError(f"no training step of {name!r} is timed; wanted one of {known}")
    return [SETTINGS[name] for name in names or BARRED]


def bar_of(name: str, letters: Mapping[str, int | float]) -> Bar | None:
    """The bar of a training step of this name and size."""
    for setting in BARRED.values():
        if setting.name == name and setting.letters == dict(letters):
            return setting.bar
    return None
