"""The models whose training steps are timed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from refssm.conformance.usage_error import UsageError
from refssm.layers.catalog import NAMED

CHANNELS, DEPTH, CLASSES = 128, 4, 10


@dataclass(frozen=True)
class Setting:
    """A layer at a size."""

    layer: str
    sizes: Mapping[str, int]
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


WITH_PEER = {"s5": Setting("s5", {"n": 32}), "mamba": Setting("mamba", {"n": 16})}  # s5: pairs
SETTINGS = {name: Setting(name, layer.sizes) for name, layer in NAMED.items()} | WITH_PEER


def asked(names: Sequence[str]) -> list[Setting]:
    """The settings of these layers, or those with a peer; UsageError names the layers."""
    for name in names:
        if name not in SETTINGS:
            known = ", ".join(SETTINGS)
            raise UsageError(f"no training step of {name!r} is timed; wanted one of {known}")
    return [SETTINGS[name] for name in names or WITH_PEER]
