"""Seconds and memory of layers beside S4D, their growth with l and n, and a step beside a pass.

A pass is the output and all gradients of one layer with 128 channels, for one sequence in single
precision, on the operators of `refssm.jit`, as `refssm train --ops jit` runs them. N is the number
of states of each channel of S4D, S4 and HOPE, 64. S5 has one system for all channels: with P = N
it has 64 states, with P = H as many as channels. S4D and S5 store one of each conjugate pair.
Attention sees the whole sequence; it stops where its weights need gigabytes. Layers of one length
are timed in turn, in at least five rounds; a ratio is that of the medians, with the interval of the
paired rounds. Memory is the peak of the process in one pass, beyond what was there before.

The paper of S4 says that it generates 60 times as fast as Transformers. Here each layer is beside
itself: one step from a state, and another pass, without gradients, over the whole sequence, which a
model without a state needs for every token. A step alone discretizes the system again, which for
S4's dense matrices costs more than all else; a piece of 64 steps does it once. The times are those
of these programs on this machine, not of the papers' on their cards.

This must run alone: other programs on the same cores change what it measures.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from refssm.bench.measuring.timing import TimingPlan, interleaved, median, one, peak_of, ratio
from refssm.experiments.claims import Claim, Finding
from refssm.experiments.systems import Table, told
from refssm.gallery.drawing import figure, styled, written
from refssm.layers import operators
from refssm.layers.catalog import NAMED

CLAIM = Claim(
    "the cost of state-space layers grows like l log l or less, that of attention faster; S5 is "
    "faster than S4D; a step is 60 times as fast as another pass",
    "gu2022s4, smith2023s5",
)
CHANNELS, STATES = 128, 64
LAYERS = {
    "S4D": "s4d", "S4": "s4", "S5, P = N": "s5", "S5, P = H": "s5", "HOPE": "hope",
    "Mamba": "mamba", "attention": "attention",
}  # fmt: skip
PAIRED = ("s4d", "s5")  # their n counts one of each conjugate pair
GROWING = ("S4D", "S4", "S5, P = N", "HOPE")
LONGEST = 4096  # of attention: 4 heads have 268 MB of weights, and 4.3 GB at 16384
PIECE = 64
BUDGET, ROUNDS = 1.0, 5  # seconds of each call, and its least number of rounds
GENERATION = 60
KINDS = ("step", "piece", "forward")


class Timings(NamedTuple):
    """Seconds of each round of a call, and the bytes of its peak; None: not counted."""

    seconds: list[float]
    peak: int | None = None

    def median(self) -> float:
        """The median of the rounds."""
        return median(self.seconds).value


class LayerCosts(NamedTuple):
    """Passes by (name, l); by (name, states) at one length; there steps, pieces of them, and passes
    without gradients, by (name, kind)."""

    lengths: tuple[int, ...]
    sizes: tuple[int, ...]
    at: int
    passes: dict[tuple[str, int], Timings]
    growth: dict[tuple[str, int], Timings]
    steps: dict[tuple[str, str], Timings]


def measured(*, seed, quick=False, track=iter) -> LayerCosts:
    """Passes of every layer and length, of some layers and sizes, and steps of every layer."""
    lengths, sizes = ((32, 64), (8, 16)) if quick else ((1024, 4096, 16384), (32, 64, 128, 256))
    h, n, budget = (8, 8, 0.0) if quick else (CHANNELS, STATES, BUDGET)
    ops, at, result = operators("jit"), lengths[1], ({}, {}, {})
    work = [*((0, l) for l in lengths), *((1, size) for size in sizes), (2, at)]
    for part, size in track(work):
        calls = {}
        if part == 0:
            for name in LAYERS:
                if name != "attention" or size <= LONGEST:
                    calls[name, size] = partial(gradients, ops, *given(name, h, n, size, seed))
        elif part == 1:
            for name in GROWING:
                calls[name, size] = partial(gradients, ops, *given(name, h, size, at, seed))
        else:
            for name in LAYERS:
                made = generation(ops, *given(name, h, n, at, seed)[:3])
                calls |= {(name, kind): call for kind, call in made.items()}
        found = timed([*calls.values()], budget)
        result[part].update(zip(calls, found, strict=True))
    return LayerCosts(lengths, sizes, at, *result)


def given(name, h, states, l, seed):
    """A layer, its parameters, a sequence and a cotangent, in single precision."""
    layer, rng = NAMED[LAYERS[name]], np.random.default_rng(seed)
    states = h if name == "S5, P = H" else states
    usual = {"n": states // 2 if layer.name in PAIRED else states}
    sizes = {"mamba": {}, "attention": {"t": l}}.get(layer.name, usual)
    p = layer.init(rng, h=h, **sizes).map(_single)
    u, dy = rng.standard_normal((2, l, h)).astype(np.float32)
    return layer, p, u, dy


def _single(x):
    return x.astype(np.complex64 if np.iscomplexobj(x) else np.float32)


def gradients(ops, layer, p, u, dy):
    """A pass: the gradients of all parameters and of u."""
    q, back = layer.prepared(ops, p, u.shape[-2])
    _, through = layer.run(ops, q, u)
    dq, du = through(dy)
    return back(dq), du


def generation(ops, layer, p, u) -> dict[str, Callable]:
    """One step from a state, a piece of steps, and the output of the whole sequence."""
    state, piece = layer.rest(p), u[:PIECE]
    return {
        "step": lambda: layer.step(ops, p, u[0], state),
        "piece": lambda: layer.stateful(ops, p, piece, state),
        "forward": lambda: layer.forward(ops, p, u),
    }


def timed(calls: Sequence[Callable], budget: float) -> list[Timings]:
    """The rounds of each call, interleaved, after one that compiles; and each one's peak."""
    numbered = [lambda i, call=call: call() for call in calls]
    plans = []
    for call in numbered:
        call(0)
        plans.append(TimingPlan.of(one(call, 1, 0), budget, ROUNDS))
    times = interleaved(numbered, plans)
    for error in times.failed.values():
        raise error
    peaks = [peak_of(call) for call in calls]
    return [Timings(*pair) for pair in zip(times.seconds, peaks, strict=True)]


def exponent(sizes: Sequence[int], costs: Sequence[Timings]) -> float:
    """The power of the size by which medians grow: least squares on logarithms."""
    return _power(sizes, [c.median() for c in costs])


def _power(sizes, values) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def _by_length(result: LayerCosts, name: str) -> tuple[list[int], list[Timings]]:
    lengths = [l for l in result.lengths if (name, l) in result.passes]
    return lengths, [result.passes[name, l] for l in lengths]


def tables(result: LayerCosts) -> list[Table]:
    """Times and peaks relative to S4D, by length; times by states; steps beside passes."""
    times, peaks, growth, steps = [], [], [], []
    for name in LAYERS:
        power = f"{exponent(*_by_length(result, name)):.2f}"
        times.append((name, *(_relative(result, name, l) for l in result.lengths), power))
        peaks.append((name, *(_peak(result, name, l) for l in result.lengths)))
        step, piece, forward = (1e3 * result.steps[name, kind].median() for kind in KINDS)
        each = (step, piece / PIECE, forward, *factors(result, name))
        steps.append((name, *(told(x) for x in each)))
    for name in GROWING:
        costs = [result.growth[name, n] for n in result.sizes]
        power = f"{exponent(result.sizes, costs):.2f}"
        growth.append((name, *(told(1e3 * c.median()) for c in costs), power))
    heads = tuple(f"l = {l}" for l in result.lengths)
    of = ("", "step", f"one of {PIECE}", "pass", "pass / step", f"pass / one of {PIECE}")
    sized = f"ms of a pass at l = {result.at}, by the number of states"
    return [
        Table("Time of a pass over S4D's (interval)", ("", *heads, "exponent"), times),
        Table("Peak memory of a pass over S4D's", ("", *heads), peaks),
        Table(sized, ("N =", *map(str, result.sizes), "exponent"), growth),
        Table(f"ms of a step, and of a pass without gradients, l = {result.at}", of, steps),
    ]


def _relative(result: LayerCosts, name: str, l: int) -> str:
    """A time over S4D's, with its interval; S4D's own in ms."""
    if (name, l) not in result.passes:
        return ""
    mine, base = result.passes[name, l], result.passes["S4D", l]
    if name == "S4D":
        return f"{1e3 * mine.median():.3g} ms"
    found = ratio(mine.seconds, base.seconds)
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def _peak(result: LayerCosts, name: str, l: int) -> str:
    """A peak over S4D's; S4D's own in MB; empty if one was not counted, or is below a page."""
    mine, base = (result.passes.get((key, l), Timings([])).peak for key in (name, "S4D"))
    if not mine or not base:
        return ""
    return f"{mine / 2**20:.3g} MB" if name == "S4D" else f"{mine / base:.2f}"


def factors(result: LayerCosts, name: str) -> tuple[float, float]:
    """A pass over a step alone, and over one of a piece."""
    step, piece, forward = (result.steps[name, kind].median() for kind in KINDS)
    return forward / step, forward * PIECE / piece


def findings(result: LayerCosts) -> list[Finding]:
    """S5 beside S4D; growth with l and with n; steps beside passes."""
    found, of = [], ", ".join(map(str, result.lengths))
    for name in ("S5, P = N", "S5, P = H"):
        pairs = [(result.passes[name, l], result.passes["S4D", l]) for l in result.lengths]
        ratios = [ratio(mine.seconds, base.seconds) for mine, base in pairs]
        each = ", ".join(f"{r.value:.2f}" for r in ratios)
        sentence = f"{name} needs {each} of the time of S4D at l = {of}"
        found.append(Finding(all(r.high < 1 for r in ratios), sentence))
    for name in LAYERS:
        lengths, costs = _by_length(result, name)
        grown, linear = exponent(lengths, costs), _power(lengths, lengths * np.log(lengths))
        held = grown > linear if name == "attention" else grown <= linear
        sentence = f"{name} grows like l^{grown:.2f}, l log l like l^{linear:.2f}"
        found.append(Finding(held, f"{sentence}, for l from {lengths[0]} to {lengths[-1]}"))
    for name in GROWING:
        grown = exponent(result.sizes, [result.growth[name, n] for n in result.sizes])
        told_of = f"N from {result.sizes[0]} to {result.sizes[-1]}"
        sentence = f"{name} grows like N^{grown:.2f}, for {told_of}: no faster than N"
        found.append(Finding(grown <= 1, sentence))
    for name in LAYERS:
        alone, in_piece = factors(result, name)
        sentence = (
            f"{name}: a pass over {result.at} steps takes {told(alone)} times as long as a step, "
            f"{told(in_piece)} times as long as one of {PIECE}"
        )
        found.append(Finding(alone >= GENERATION, sentence))
    return found


def draw(output: Path, result: LayerCosts) -> Path:
    """Seconds of a pass against l, and against the number of states."""
    with styled():
        made, axes = figure(1, 2, (8.0, 4.0))
        colours = {name: f"C{i}" for i, name in enumerate(LAYERS)}
        for name, colour in colours.items():
            lengths, costs = _by_length(result, name)
            axes[0, 0].loglog(lengths, [c.median() for c in costs], f"{colour}.-", label=name)
        for name in GROWING:
            costs = [result.growth[name, n].median() for n in result.sizes]
            axes[0, 1].loglog(result.sizes, costs, f"{colours[name]}.-")
        axes[0, 0].set_xlabel("l")
        axes[0, 1].set_xlabel(f"N states, l = {result.at}")
        axes[0, 0].set_ylabel("seconds of a pass")
        for axis in axes[0]:
            axis.set_xscale("log", base=2)
        axes[0, 0].legend(frameon=False)
        return written(made, output)
