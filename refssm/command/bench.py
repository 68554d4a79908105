"""`refssm bench`: time, memory and accuracy of implementations, side by side."""

import os
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

NOTHING, REFUSED = 5, 1

Targets = Annotated[
    list[str] | None,
    typer.Argument(help="Operators, or your own file.py, file.py::function or module."),
]
Sizes = Annotated[
    str, typer.Option(help="small, paper, large (8 times its batch) or one (a batch of one).")
]
Device = Annotated[
    str, typer.Option(help="gpu: time the mirrors on the GPU, too; peers are then on the card.")
]
Peers = Annotated[
    bool, typer.Option("--peers", help="Time JAX, PyTorch and SciPy, too; on a card also Mamba's.")
]
Vjp = Annotated[bool, typer.Option("--vjp", help="Time the gradients, too.")]
Dtype = Annotated[str, typer.Option(help="The type of the inputs; else what you declare.")]
Seconds = Annotated[
    float,
    typer.Option(min=0, max=3600, help="Time for each implementation and size; at least 7 rounds."),
]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the run to this file.")]
PlotFile = Annotated[
    Path | None, typer.Option("--plot", help="Draw accuracy against time: a PNG or SVG file.")
]
AgainstFile = Annotated[
    Path | None, typer.Option("--against", help="Compare with an older run, written by --json.")
]
Layers = Annotated[
    bool,
    typer.Option(
        "--layers", help="Time training steps: targets are layers; without one, s5 and mamba."
    ),
]
Growth = Annotated[
    bool, typer.Option("--growth", help="Also time the mirrors at lengths from 2^10 to 2^20.")
]


def bench(
    targets: Targets = None,
    sizes: Sizes = "small",
    peers: Peers = False,
    vjp: Vjp = False,
    dtype: Dtype = "",
    seconds: Seconds = 0.0,
    json: JsonFile = None,
    plot: PlotFile = None,
    against: AgainstFile = None,
    growth: Growth = False,
    layers: Layers = False,
    device: Device = "",
) -> int:
    """Time implementations side by side: time, memory, accuracy; what is wrong is not timed."""
    from refssm.bench.results import document
    from refssm.bench.run import BenchSettings
    from refssm.bench.work import steps
    from refssm.bench.work.targets import asked
    from refssm.command.checked import today
    from refssm.conformance.file_errors import check_writable

    _check(sizes, dtype)
    _check_device(device, layers, growth)
    for path, option in ((json, "--json"), (plot, "--plot")):
        if path is not None:
            check_writable(path, option)
    if plot is not None:
        from refssm.command.plot import check_picture

        check_picture(plot)
    old = document.read(against) if against is not None else None
    settings = steps.asked(targets or ()) if layers else []
    wanted = [] if layers else asked(map(today, targets or ()), sizes, device)
    run = _BenchRun(BenchSettings(sizes, peers, vjp, dtype, seconds, device))
    with run.bar:
        # a card may be lent for a limited time: the file has what was measured until then
        run.time(wanted, json if device else None)
        run.train(settings)
        if growth:
            run.grow(wanted)
    found = run.document()
    if old is not None:
        _compare(old, found)
    if json is not None:
        document.write(json, found)
    if plot is not None:
        _draw(plot, found)
    return run.code


def _check(sizes: str, dtype: str) -> None:
    """UsageError for an unknown size or type."""
    from refssm.bench.work.sizes import SIZES
    from refssm.conformance.number_types import NUMBER_TYPES
    from refssm.conformance.usage_error import UsageError

    if sizes not in SIZES:
        raise UsageError(f"unknown sizes {sizes!r}; wanted one of {', '.join(SIZES)}")
    types = [name for name, kind in NUMBER_TYPES.items() if not kind.half]
    if dtype and dtype not in types:
        raise UsageError(f"unknown type {dtype!r}; wanted one of {', '.join(types)}")


def _check_device(device: str, layers: bool, growth: bool) -> None:
    """UsageError for an unknown device, or where there is no card."""
    from refssm.conformance.usage_error import UsageError

    if device not in ("", "gpu"):
        raise UsageError(f"unknown device {device!r}; wanted gpu, or nothing for the processor")
    if not device:
        return
    if layers or growth:
        option = "--layers" if layers else "--growth"
        raise UsageError(f"{option} times programs of the processor; leave out --device gpu")
    if os.environ.get("REFSSM_GPU") == "host":
        raise UsageError("--device gpu: REFSSM_GPU=host runs kernels on the processor; unset it")
    from refssm_gpu._launching.missing import NoCard, require_card

    try:
        require_card("--device gpu")
    except NoCard as lack:
        raise UsageError(str(lack)) from None


class _BenchRun:
    """One run: what it printed and found so far."""

    def __init__(self, settings):
        from refssm.bench.measuring.timing import described, rates
        from refssm.bench.programs.program import Judge, missing
        from refssm.bench.results import lines
        from refssm.bench.run import Bench
        from refssm.command.spoken import ProgressBar

        self.bar, self.groups, self.grown = ProgressBar(), [], []
        self.started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.bar.tick("measuring the machine")
        self.machine, self.rates = described(settings.peers), rates()
        card = _card() if settings.device else None
        if card is not None:
            self.bar.tick("measuring the card")
            self.machine |= {"card": card.facts()}
            self.rates = replace(self.rates, card=card.rates())
        judge = Judge(self.bar.tick)
        self.bench = Bench(settings, self.bar.tick, time.perf_counter, judge, card=card)
        self.say(*lines.head(self.machine, self.rates))
        self.say(*(missing(settings.device) if settings.peers else ()))

    def say(self, *texts: str) -> None:
        """Print lines; hides the progress bar first."""
        if texts:
            self.bar.hide()
            typer.echo("\n".join(texts))

    def time(self, wanted, output: Path | None = None) -> None:
        """Time the operators; prints the rows of each as soon as they are there.

        `output` is written after each.
        """
        from refssm.bench.results import document

        try:
            for group in self.bench.groups(wanted):
                self.groups.append(group)
                self._show(group)
                if output is not None:
                    document.write(output, self.document())
        except KeyboardInterrupt:
            if self.bench.partial is not None:
                self._show(self.bench.partial)
            raise

    def train(self, settings) -> None:
        """Time training steps."""
        from refssm.bench.training.steps import groups

        options = self.bench.settings
        for group in groups(settings, options.peers, options.budget, self.bar.tick):
            self.groups.append(group)
            self._show(group)

    def _show(self, group) -> None:
        from refssm.bench.results.lines import table

        self.say("", *table(group, self.rates))

    def grow(self, wanted) -> None:
        """Time the mirrors at many lengths."""
        from refssm.bench.growth import growth_of, lines

        operators = [op for op, _ in wanted]
        for found in growth_of(operators, self.bench.judge, self.bar.tick):
            self.grown.append(found)
            self.say(*lines([found]))

    def document(self):
        """The run as one value."""
        from refssm.bench.results.document import Document

        command = " ".join(["refssm", *sys.argv[1:]])
        grown = [g.record for g in self.grown]
        return Document(self.started, command, self.machine, self.rates, self.groups, grown)

    @property
    def code(self) -> int:
        """1 if one of the user's own functions was not timed, 5 if nothing was."""
        rows = [row for group in self.groups for row in group.rows]
        if any(row.kind == "yours" and not row.timed for row in rows):
            return REFUSED
        return 0 if self.grown or any(row.timed for row in rows) else NOTHING


def _card():
    """The card of this machine; CuPy is there."""
    from refssm.bench.measuring.card import BenchCard

    return BenchCard()


def _compare(old, new) -> None:
    """Print each row of two runs: faster, slower, same or undecided."""
    from refssm.bench.results import document
    from refssm.bench.results.lines import aligned, times

    said = [f"against the run of {old.started}"]
    said += [f"  {line}" for line in document.differences(dict(old.machine), new.machine)]
    rows = list(document.compared(old, new.groups))
    cells = [(r.call, r.size, r.label, r.word, times(r.speed) if r.speed else r.message)
             for r in rows]  # fmt: skip
    said += [f"  {line}" for line in aligned(cells)] if cells else []
    typer.echo("\n".join(["", *said, document.counts(rows) or "no row to compare"]))


def _draw(output: Path, run) -> None:
    """Draw accuracy against time."""
    from refssm.bench.results.rows import panels
    from refssm.conformance.usage_error import UsageError
    from refssm.gallery import bench as gallery

    found = panels(run.groups)
    if not found:
        raise UsageError(f"--plot {output}: nothing was timed, so nothing is drawn")
    try:
        gallery.draw(output, found)
    except OSError as error:
        raise UsageError(f"{output}: {error.strerror}") from None
    typer.echo(str(output))
