"""Training steps timed side by side: for each setting, our operators and JAX, in one run.

A model has one kind of layer, four blocks of 128 channels, and ten classes. A step is the loss, all
gradients, and AdamW's update. Signals and parameters are drawn once.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module

import numpy as np

from refssm.bench.measuring import timing
from refssm.bench.measuring.timing import Clock, TimingPlan, peak_of
from refssm.bench.programs.program import MIRROR, PEER, REFERENCE
from refssm.bench.results.rows import FAILED, SKIPPED, Row, Work, WorkRows
from refssm.bench.run import Ready, SideBySide, Tick
from refssm.bench.work.steps import CHANNELS, CLASSES, DEPTH, Setting
from refssm.conformance.calling.finding import sentence
from refssm.layers import operators
from refssm.layers.catalog import NAMED
from refssm.layers.model import Model
from refssm.subjects.libraries import absent
from refssm.training import shares
from refssm.training.losses import cross_entropy, cross_entropy_grad
from refssm.training.optimizer import AdamW

RATE = 1e-3


def model_of(setting: Setting) -> Model:
    """The model of a setting."""
    layer = NAMED[setting.layer]
    return Model(layer, inputs=1, outputs=CLASSES, h=CHANNELS, depth=DEPTH, sizes=setting.sizes)


@dataclass
class StartingPoint:
    """What all implementations start from."""

    setting: Setting
    signals: np.ndarray = field(init=False)
    labels: np.ndarray = field(init=False)
    parameters: dict[str, np.ndarray] = field(init=False)

    def __post_init__(self):
        rng = np.random.default_rng(0)
        self.parameters = model_of(self.setting).init(rng)
        shape = (self.setting.batch, self.setting.l, 1)
        self.signals = rng.standard_normal(shape).astype(np.float32)
        self.labels = rng.integers(0, CLASSES, self.setting.batch)


def step_of(given: StartingPoint, role: str) -> Callable[[], float]:
    """One step on the operators of this role; each call continues from the last one."""
    model, ops, optimizer = model_of(given.setting), operators(role), AdamW()
    parameters, moments, count = given.parameters, optimizer.start(given.parameters), 0

    def cotangent(y, rows):
        return cross_entropy_grad(y, given.labels[rows], len(given.labels))

    def step() -> float:
        nonlocal parameters, moments, count
        y, gradients, _ = shares.gradients(model, ops, parameters, given.signals, cotangent)
        count += 1
        parameters, moments = optimizer.update(parameters, gradients, moments, count, RATE)
        return cross_entropy(y, given.labels)

    return step


SLOW = 5.0  # seconds: what takes longer has one round
PAUSE = 0.03  # seconds: threads of the library before spin for a while
IN_TURN = 3  # steps in a timing: in training, a step finds caches as the last one left them


def groups(
    settings: Sequence[Setting],
    peers: bool,
    budget: float,
    tick: Tick = lambda *what: None,
    clock: Clock = time.perf_counter,
) -> Iterator[WorkRows]:
    """The rows of each setting: reference, mirror, and JAX if `peers`."""
    for setting in settings:
        given = StartingPoint(setting)
        work = Work(setting.name, setting.letters, "float32", vjp=False)
        how = int(budget / 4), tick, clock
        run = SideBySide(work, [_made(work, *one, *how) for one in _programs(given, peers)])
        run.run(tick, clock, partial(time.sleep, PAUSE))
        yield run.group()


def _programs(given: StartingPoint, peers: bool):
    """Row and function that makes a step, for each implementation."""
    for role, kind, library in (("reference", REFERENCE, "numpy"), ("jit", MIRROR, "numba")):
        yield Row(kind, kind, library), partial(step_of, given, role)
    if not peers:
        return
    reason = absent("jax")
    if reason:
        yield Row("jax", PEER, "jax", SKIPPED, reason), None
        return
    theirs = import_module("refssm.bench.training.jax_models")
    models = theirs.LAYERS.get(given.setting.layer, {})
    if not models:
        told = f"refssm.bench has no model of {given.setting.layer} in JAX"
        yield Row("jax", PEER, "jax", SKIPPED, told), None
    for name, layer in models.items():
        arrays = given.parameters, given.signals, given.labels
        made = partial(theirs.step_of, layer, DEPTH, *arrays, RATE)
        yield Row(f"jax: {name}", PEER, "jax"), made


def _made(work: Work, row: Row, make, rounds: int, tick: Tick, clock: Clock) -> Ready | Row:
    """The call, its plan, and the row with its peak memory; a row if it cannot be timed."""
    if make is None:
        return row
    tick(f"{work.name}: first step of {row.label}", 0, 0)
    try:
        step = make()
        step()  # compiles
        begun = clock()
        peak = peak_of(step)
        slow = clock() - begun > SLOW
    except Exception as error:
        return replace(row, status=FAILED, message=f"raised {sentence(error)}")
    least, in_turn = (1, 1) if slow else (timing.LEAST, IN_TURN)
    plan = TimingPlan(max(least, rounds), in_turn)
    return Ready(lambda i: step(), plan, replace(row, peak=peak))
