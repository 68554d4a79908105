"""Presets of oscillators: springs, steps and matrices as LinOSS starts, and undamped ones."""

import numpy as np

from refssm import initial
from refssm.presets.preset import of_orders


def _drawing(springs, steps, matrices=None):
    """Arguments from (rng, n): squares of frequencies, and steps."""
    matrices = matrices or _uniform

    def draw(rng, sizes):
        n, m, p = (sizes[d] for d in "nmp")
        over = (sizes["l"],) if "l" in sizes else ()
        drawn = {"A": springs(rng, n), "dt": steps(rng, n), "u": initial.normal(rng, (*over, m))}
        drawn |= {"B": matrices(rng, (n, m), m), "C": matrices(rng, (p, n), n)}
        drawn |= {name: initial.state(rng, (2, n)) for name in ("x0", "x")}
        return drawn | {"resets": initial.packed(rng, over)}

    return draw


def _uniform(rng, shape, count):
    """Real and imaginary parts between ±1/√count [rusch2024linoss]."""
    parts = rng.uniform(-1, 1, (2, *shape)) / np.sqrt(max(count, 1))
    return parts[0] + 1j * parts[1]


def _uniform_reals(rng, shape, count):
    """The real parts alone, for types that are real."""
    return _uniform(rng, shape, count).real


def _starting(rng, n):
    return rng.uniform(0, 1, n)


def _steps(rng, n):
    """σ of a number between 0 and 1."""
    return 1 / (1 + np.exp(-rng.uniform(0, 1, n)))


def _slow(rng, n):
    """Periods of thousands of steps, nearly undamped."""
    return 10 ** rng.uniform(-6, -4, n)


def _stiff(rng, n):
    """Below 4, where the explicit steps are still stable."""
    return rng.uniform(3, 3.9, n)


def _edge(rng, n):
    """4, where both eigenvalues of an explicit step of 1 are −1, and its last digits."""
    return 4 - rng.choice([0, 2.0**-22, 2.0**-8], n)


def _ones(rng, n):
    return np.ones(n)


LINOSS = tuple(
    preset
    for name, summary, draw, orders in (
        ("linoss", "oscillators as LinOSS starts", _drawing(_starting, _steps), (16, 64)),
        ("slow", "periods beyond the sequence", _drawing(_slow, _steps), (16,)),
        ("stiff", "steps near the limit of stability", _drawing(_stiff, _ones), (16,)),
        (
            "edge",
            "steps at this limit, B and C real",
            _drawing(_edge, _ones, _uniform_reals),
            (16,),
        ),
    )
    for preset in of_orders(name, summary, draw, orders, along="scan")
)
PRESETS = {
    f"linoss_{variant}{form}": LINOSS
    for variant in ("im", "imex")
    for form in ("", "_stateful", "_packed", "_step")
}
