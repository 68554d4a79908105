"""`python -m docs.build.scalings`: a memory's correct digits in single precision, by scaling.

The same memory runs in single and in double precision: zero-order hold, then the recurrence. Its
states are scaled back; the error is relative to the norm of the last state.
"""

import sys

import numpy as np

import refssm

STEPS, ELAPSED = 1024, 4.0
SIZES = (16, 64, 256)
SCALINGS = {  # factors of the orthonormal states, from √(2i+1); LMU's is the third, with signs
    "orthonormal": lambda roots: np.ones_like(roots),
    "1/√(2i+1)": lambda roots: 1 / roots,
    "√(2i+1)": lambda roots: roots,
    "2i+1": lambda roots: roots**2,
}


def digits(measure: str, n: int) -> list[float]:
    """−log₁₀ ‖x̂ − x‖/‖x‖ of the last state for each scaling; x is in double precision."""
    A, B = getattr(refssm, f"hippo_{measure}")(n=n)
    u, dt = np.random.default_rng(1).standard_normal(STEPS // 8).repeat(8), ELAPSED / STEPS
    exact, found = refssm.hippo_project(A, B, u, dt)[-1], []
    for scaling in SCALINGS.values():
        s = scaling(np.sqrt(2 * np.arange(n) + 1.0))
        scaled_A, scaled_B = refssm.hippo_rescale(A, B, s)
        single = (a.astype(np.float32) for a in (scaled_A, scaled_B, u, np.asarray(dt)))
        x = refssm.hippo_project(*single)[-1] / s  # pyright: ignore[reportCallIssue]
        found.append(float(-np.log10(np.linalg.norm(x - exact) / np.linalg.norm(exact))))
    return found


def main() -> None:
    """Print the table."""
    sys.stdout.write(f"| memory | {' | '.join(SCALINGS)} |\n{'|---' * (len(SCALINGS) + 1)}|\n")
    for measure in ("legs", "legt"):
        for n in SIZES:
            row = " | ".join(f"{d:.1f}" for d in digits(measure, n))
            sys.stdout.write(f"| {measure}, n = {n} | {row} |\n")


if __name__ == "__main__":
    main()
