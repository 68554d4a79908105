"""accelerated-scan's `scalar.scan`: its Triton kernels in the interpreter, 32 steps in a block."""

from refssm.subjects.clones import module
from refssm.subjects.triton_interpreter import SCAN, few, in_blocks
from refssm.testing import implements

scalar = module("proger-accelerated-scan", "accelerated_scan.scalar")
in_blocks(scalar, "forward_scan", "backward_scan", BLOCK=32)


@implements(
    "linear_scan",
    framework="torch",
    vjp=True,
    dtypes=("float32", "float16"),
    only=few(SCAN, b=2, n=2, l=80),
    layout="b n l, b n l -> b n l",
)
def linear_scan(a, b):
    """scan(forget, inputs) of (B, C, T)."""
    return scalar.scan(a.contiguous(), b.contiguous())
