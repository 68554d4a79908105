"""What tests of the array-level mirrors share: which they are, arguments, another array library.

array_api_strict has the array API standard and nothing else. What runs on its arrays uses no
function of NumPy's own, so it runs on CuPy's arrays unchanged.
"""

import inspect
from typing import Any

import numpy as np
from on_target import given, taken

from refssm.catalog import OPERATORS
from refssm.conformance.cases.case import ordinary_case

# of which no operator has a kernel
FAMILIES = ("discretize", "hankel", "hippo", "krylov", "linoss")
OTHERS = (
    "bidirectional_convolution",
    "bidirectional_convolution_shifted",
    "causal_convolution",
    "chunk_gates",
    "chunk_inverse",
    "chunk_outputs",
    "chunk_outputs_keyed",
    "chunk_products",
    "chunk_products_keyed",
    "chunk_states",
    "chunk_states_keyed",
    "chunk_writes",
    "chunk_writes_keyed",
    "circular_convolution",
    "dplr_kernel",
    "dplr_kernel_aliased",
    "gated_delta_gates",
    "hope_recency_exponential",
    "hope_recency_power",
    "kimi_gates",
    "kimi_gates_bounded",
    "shift_kernel",
)
MIRRORED = [op for op in OPERATORS if "gpu" not in op.lacks]
ARRAY_LEVEL = [op for op in MIRRORED if op.family in FAMILIES or op.name in OTHERS]


def arguments(op, dtype="complex128", sizes=(5, 3, 4, 2)):
    """Ordinary arguments with a batch, and keywords; of rank 3: smaller ranks may have kernels."""
    case = ordinary_case(op, dtype, sizes=sizes, between={"r": (3, 3)})
    return case.arrays, case.statics


def bare(op, vjp=False):
    """The mirror without the checks of its arguments, which want CuPy's or NumPy's arrays."""
    return inspect.unwrap(op.vjp("gpu") if vjp else op.implementation("gpu"))


def cotangents(op, arrays, statics):
    """Outputs' shapes and types, filled with seeded numbers."""
    rng = np.random.default_rng(1)
    with np.errstate(all="ignore"):
        y = bare(op)(*arrays, **statics)
    y = y if isinstance(y, tuple) else (y,)
    drawn = [rng.standard_normal((2, *x.shape)) for x in y]
    return [
        (re + 1j * im if x.dtype.kind == "c" else re).astype(x.dtype)
        for (re, im), x in zip(drawn, y, strict=True)
    ]


def called(function, *args, **statics) -> Any:
    """A mirror's outputs as NumPy arrays, with the arguments where the mirrors take them."""
    arrays = [given(x)[0] if isinstance(x, np.ndarray) else x for x in args]
    with np.errstate(all="ignore"):
        return taken(function(*arrays, **statics))
