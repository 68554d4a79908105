"""Honest programs in JAX and in PyTorch: the plug-ins that `refssm bench --peers` times.

Each is called with NumPy's arrays, and its results are NumPy's: the layout and the framework are
those of the plug-in's declaration, and gradients are by the framework's own differentiation.
"""

from functools import cache, partial

import numpy as np

from honest import Honest
from refssm.conformance.calling.calls.run import CalledOnce
from refssm.conformance.calling.finding import every
from refssm.conformance.calling.implementation import Found
from refssm.conformance.number_types import number_type
from refssm.subjects.libraries import SUBJECTS

FLUSHES = ("jax",)  # XLA flushes subnormal numbers on processors


@cache
def _found(module: str) -> dict[str, Found]:
    """The implementations of a plug-in by operator; imported when the first one is called."""
    return {found.op.name: found for _, found in every(f"{SUBJECTS}.{module}")}


def _called(module: str, name: str, vjp: bool, *arrays, **statics):
    """The outputs or the gradients of one call."""
    found = _found(module)[name]
    arrays = [np.asarray(a) for a in arrays]
    kind = number_type(str(np.result_type(*(a for a in arrays if a.dtype.kind == "f"))))
    run = CalledOnce(found, kind, vjp, sliced=False)
    with found.adapter.inside(kind):
        given = [found.adapter.give(a, kind) for a in run.entering(arrays, statics)]
        _, taken = run.outputs(given, statics)
    results = run.leaving(taken, arrays, statics)
    return results if vjp or len(results) != 1 else results[0]


def in_libraries(family: str, names) -> list[Honest]:
    """The programs in `torch_<family>` and `jax_<family>` of the operators of these names."""
    return [
        Honest(
            name,
            f"{library}_{family}",
            partial(_called, f"{library}_{family}", name, False),
            partial(_called, f"{library}_{family}", name, True),
            needs=library,
            ftz=library in FLUSHES,
        )
        for name in names
        for library in ("torch", "jax")
    ]
