"""A model of the GPU mirror's traffic at the sizes of `paper`.

    PYTHONPATH=tests python -m gpu.gate.traffic

For each operator with a GPU mirror and its VJP: the launches of a call, the bytes of its inputs and
outputs, the bytes that its kernels read and write, and the share of a card's bandwidth that a
model expects. The model knows nothing of arithmetic (`tests/gpu/gate/expected.py`), so there is a
share only where memory bounds each kernel; elsewhere "flops", "special functions", "latency" or
"launch" says what bounds one of them. "array code" stands where kernels move less than the call
needs. Nothing is measured, and no card is needed; NVRTC is, to compile the kernels. Arguments
name operators; without any, those are shown that launch kernels of ours: the model knows nothing of
array code, which would be computed at full size on the processor. A "+ 1" under launches is one
that is not counted, because it runs only for rows that a usual call does not have; lines below the
table name these kernels and rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import numpy as np
from gpu.gate.expected import CARDS, NOTE, Expected, expected
from gpu.gate.nvrtc import NoCompiler

from refssm._declaration.operator import Operator
from refssm._declaration.signature import length_of
from refssm.bench.results.lines import aligned
from refssm.bench.work.sizes import Size, size_of
from refssm.catalog import OPERATORS
from refssm.conformance.number_types import number_type
from refssm_gpu._launching.kernel import BOUNDS

HEADS = ("function", "size", "type", "launches", "needed MB", "moved MB", *(c.name for c in CARDS))


def zeros(op: Operator, size: Size) -> list[np.ndarray]:
    """Arguments of these sizes; the model does not look at their values."""
    arrays, carrier = [], number_type(size.dtype).carrier
    for i, (name, domain) in enumerate(op.inputs.items()):
        leading = [size.batch.get(axis, 1) for axis in op.batch_axes[i]]
        shape = (*leading, *(length_of(dim, size.core) for dim in op.input_dims[i]))
        kind = (
            np.dtype(carrier.char.lower()) if domain.real else carrier
        )  # "F" is complex, "f" real
        arrays.append(np.zeros(shape, bool if name in op.discrete else kind))
    return arrays


def models(op: Operator, which: str = "paper") -> list[tuple[str, Size, list[Expected]]]:
    """The function's name, its size and its model on each card; the same of its VJP."""
    size = size_of(op, which)
    arrays = zeros(op, size)
    statics = {n: size.core[n] for n in op.static if n in size.core} | size.given
    shapes, kinds = op.output_shapes(*arrays, **statics), op.output_types(*arrays)
    cotangents = [np.zeros(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
    calls = [(op.name, op.implementation("gpu"), arrays)]
    if op.differentiable:
        calls.append((f"{op.name}_vjp", op.vjp("gpu"), [*cotangents, *arrays]))
    return [
        (name, size, [expected(function, given, statics, card) for card in CARDS])
        for name, function, given in calls
    ]


def _cells(name: str, size: Size, found: Sequence[Expected]) -> tuple[str, ...]:
    first = found[0]
    shares = [_shown(e) for e in found]
    megabytes = [f"{n / 1e6:.1f}" for n in (first.needed, first.moved)]
    beside = len(first.launches) - len(first.counted)
    counts = f"{len(first.counted)} + {beside}" if beside else f"{len(first.counted)}"
    return (name, str(size), size.dtype, counts, *megabytes, *shares)


def _shown(found: Expected) -> str:
    """The share of bandwidth, or why the model has none."""
    if found.moved < found.needed:
        return "array code"
    return f"{found.share:.2f}" if found.bound == BOUNDS[0] else found.bound


def uncounted(found: Iterable[Expected]) -> list[str]:
    """A sentence for each kernel whose launches are not counted."""
    kernels = [x.kernel for e in found for x in e.launches if x.for_marked]
    told = (f"{k.name} runs only for rows {k.marked.rows}" for k in kernels if k.marked)
    return [f"not counted: {line}" for line in dict.fromkeys(told)]


def launches(op: Operator) -> bool:
    """Whether a call of the mirror starts kernels of ours; asked at a small size."""
    size = size_of(op, "small")
    statics = {n: size.core[n] for n in op.static if n in size.core} | size.given
    r = np.random.default_rng(0)  # solvers refuse matrices of zeros
    given = [r.uniform(0.1, 0.9, x.shape).astype(x.dtype) for x in zeros(op, size)]
    return bool(expected(op.implementation("gpu"), given, statics, CARDS[0]).launches)


def main(names: Sequence[str]) -> int:
    """Print the table."""
    mirrored = [op for op in OPERATORS if "gpu" not in op.lacks and not op.constructor]
    unknown = set(names) - {op.name for op in mirrored}
    if unknown:
        print(f"no GPU mirror of {', '.join(sorted(unknown))}", file=sys.stderr)  # noqa: T201
        return 2
    try:
        shown = [op for op in mirrored if op.name in names or (not names and launches(op))]
        made = [model for op in shown for model in models(op)]
    except NoCompiler as lack:
        print(lack, file=sys.stderr)  # noqa: T201
        return 2
    table = [HEADS, *(_cells(*model) for model in made)]
    below = uncounted(model for *_, found in made for model in found)
    head = f"Expected share of peak bandwidth where memory bounds, else what does: {NOTE}."
    print(head, *aligned(table), *below, sep="\n")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
