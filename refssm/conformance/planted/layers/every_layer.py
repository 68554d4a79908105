"""What the files of planted bugs in layers share: the operators of each layer, and their types."""

from __future__ import annotations

from refssm._declaration.operator import Operator
from refssm.catalog import named
from refssm.conformance.planted.planting import Planting
from refssm.layers import Layer
from refssm.layers.catalog import LAYERS


def planting(name: str) -> Planting:
    """Bugs of one operator, in complex single precision if an argument is complex."""
    op = operator(name)
    of_complex = any(domain.kind == "complex" for domain in op.inputs.values())
    return Planting(op, "complex64" if of_complex else "float32")


def operator(name: str) -> Operator:
    """The operator of this name."""
    op = named(name)
    assert op is not None, name
    return op


def layers() -> tuple[Layer, ...]:
    """All layers."""
    return LAYERS
