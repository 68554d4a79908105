"""`python -m docs.build.profile LAYER`: where the time of a training step goes.

One share of the batch on one core, as in the step that is timed. Products of matrices are counted
by their operations, at the rate at which this core multiplies; the rest is NumPy's own loops and
Python.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable
from operator import itemgetter
from types import SimpleNamespace

import numpy as np

from refssm.bench.training.steps import StartingPoint, model_of
from refssm.bench.work.steps import SETTINGS, Setting
from refssm.jit._compiling.threads import each_on_one_core
from refssm.layers import operators
from refssm.training import shares
from refssm.training.losses import cross_entropy_grad

TURNS = 9  # the median of so many steps


def timed(
    spent: dict[str, float], clock: Callable[[], float] = time.perf_counter
) -> SimpleNamespace:
    """The mirrors, which add the seconds of each call to `spent`."""

    def watched(name: str, function: Callable) -> Callable:
        def call(*args, **keywords):
            begun = clock()
            result = function(*args, **keywords)
            spent[name] += clock() - begun
            return result

        return call

    return SimpleNamespace(**{n: watched(n, f) for n, f in vars(operators("jit")).items()})


def profile(setting: Setting) -> list[tuple[str, float]]:
    """Names and seconds in one share of a step, most first; "all" is the whole of it."""
    given, model = StartingPoint(setting), model_of(setting)
    rows = slice(0, shares.sequences(setting.l))
    u, labels, spent = given.signals[rows], given.labels[rows], defaultdict(float)
    ops, steps = timed(spent), []

    def step(_):
        spent.clear()
        begun = time.perf_counter()
        model.gradients(ops, given.parameters, u, lambda y: cross_entropy_grad(y, labels))
        return time.perf_counter() - begun, dict(spent)

    for _ in range(TURNS):
        steps += each_on_one_core(step, [0])
    whole, of = sorted(steps[1:], key=itemgetter(0))[len(steps) // 2]
    return [("all", whole), *sorted(of.items(), key=itemgetter(1), reverse=True)]


def products(setting: Setting, size: int = 1024) -> tuple[float, float]:
    """Operations of the products of matrices in a share of S5, and operations a second of a core
    for blocks of such products."""
    model = model_of(setting)
    l, h, n = shares.STEPS, model.h, 2 * setting.sizes["n"]
    count = 3 * 2 * l * model.depth * (2 * h * n + h * h)  # forward, and twice for the gradients
    x, y = (np.ones(shape, np.float32) for shape in ((size, h), (h, h)))
    spent = []

    def product(_):
        begun = time.perf_counter()
        np.matmul(x, y)
        return time.perf_counter() - begun

    for _ in range(50):
        spent += each_on_one_core(product, [0])
    return float(count), 2 * size * h * h / float(np.median(spent))


def main(*layers: str) -> None:
    """Print the table of one layer."""
    if len(layers) != 1 or layers[0] not in SETTINGS:
        sys.exit(f"wanted one layer of {', '.join(SETTINGS)}; got {' '.join(layers) or 'none'}")
    setting = SETTINGS[layers[0]]
    for name, seconds in profile(setting):
        sys.stdout.write(f"{name:32}{1e3 * seconds:8.2f} ms\n")
    if setting.layer == "s5":
        count, rate = products(setting)
        text = f"{count / 1e9:.1f} Gflop at {rate / 1e9:.0f} Gflop/s"
        sys.stdout.write(f"{'products of matrices':32}{1e3 * count / rate:8.2f} ms ({text})\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
