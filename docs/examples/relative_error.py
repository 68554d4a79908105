"""A relative error of 100 % can be right, and one of 1e-6 can be wrong.

python docs/examples/relative_error.py
"""

import numpy as np

import refssm
from refssm.conformance.judging.grading import judge
from refssm.scan import LINEAR_SCAN


def main():
    a = np.ones((3, 1), np.float32)
    b = np.array([[1e8], [1.0], [-1e8]], np.float32)
    cancelled = judge(LINEAR_SCAN, refssm.linear_scan, a, b)
    print("float32, 1e8 + 1 - 1e8: got", refssm.linear_scan(a, b)[-1, 0], "want 1.0")
    print("   ", cancelled)

    a, b = np.full((3, 1), 0.5), np.ones((3, 1))
    slightly_off = judge(LINEAR_SCAN, lambda a, b: refssm.linear_scan(a, b) * (1 + 1e-6), a, b)
    print("float64, every value off by 1e-6:")
    print("   ", slightly_off)
    return cancelled, slightly_off


if __name__ == "__main__":
    main()
