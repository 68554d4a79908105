"""A run in its folder: a checkpoint, and a line of metrics for each step.

    checkpoint.safetensors   the state at the last test
    metrics.jsonl            for each step loss, accuracy, norm of the gradient, rate; test results

A killed run goes on from its checkpoint. Lines of later steps are cut off first. A run may be made
longer: its rate is then that of the longer run.
"""

import json
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from refssm.training import checkpoint
from refssm.training.checkpoint import CheckpointError
from refssm.training.loop import arrays_of, moved, state_of
from refssm.training.optimizer import cosine
from refssm.training.setup import Setup


class Run:
    """A training run, its files and its state."""

    def __init__(self, setup: Setup, folder: Path, every: int = 100):
        self.setup, self.folder, self.every = setup, folder, every
        self.trainer = setup.trainer()
        self.state = self.trainer.start()
        self.earlier: list[list[int]] = []  # (step, steps): to this step it was a shorter run

    @property
    def checkpoint(self) -> Path:
        """The file of the state."""
        return self.folder / "checkpoint.safetensors"

    @property
    def metrics(self) -> Path:
        """The file of loss and accuracy."""
        return self.folder / "metrics.jsonl"

    def check_new(self) -> None:
        """CheckpointError if there is a run in the folder."""
        if self.checkpoint.exists():
            raise CheckpointError(
                f"{self.checkpoint}: there is a run; --resume goes on, another --folder begins anew"
            )

    def begin(self) -> None:
        """Make the folder and its first checkpoint; CheckpointError if there is a run in it."""
        self.check_new()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._tidy()
        self.metrics.write_text("", encoding="utf-8")
        self.save()

    def resume(self) -> None:
        """Take the state of the checkpoint; CheckpointError if it is of another run."""
        arrays, facts = checkpoint.read(self.checkpoint)
        before = self._shorter(facts.get("settings"))
        checkpoint.check_shapes(self.checkpoint, arrays, arrays_of(self.state))
        try:
            earlier = [[int(step), int(steps)] for step, steps in facts.get("earlier", [])]
            state = state_of(arrays, facts["step"], facts["generator"])
            state.rng  # noqa: B018 (NumPy refuses what is not the state of a generator)
            if state.step not in range(self.setup.plan.steps + 1):
                raise ValueError(f"step {state.step!r} of {self.setup.plan.steps}")
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            told = f"{type(error).__name__}: {error}"
            raise CheckpointError(f"{self.checkpoint}: not a checkpoint: {told}") from None
        self.state = moved(state, self.trainer.placed)
        self.earlier = [*earlier, [state.step, before]] if before else earlier
        self._tidy()
        lines = "".join(json.dumps(line) + "\n" for line in self.lines())
        checkpoint.write_whole(self.metrics, lines.encode())

    def _shorter(self, settings: Any) -> int:
        """The length of a run that is shorter and else the same, or 0; CheckpointError for another
        run than this one."""
        got, wanted = self.setup.since(settings), self.setup.facts()
        before, steps = got.get("steps") if isinstance(got, dict) else None, wanted["steps"]
        if (
            isinstance(before, int)
            and 0 < before < steps
            and got | wanted == got | {"steps": steps}
        ):
            return before
        checkpoint.check_settings(self.checkpoint, got, wanted)
        return 0

    def schedule(self) -> str:
        """One sentence about the rate of a run that was lengthened; empty for others."""
        if not self.earlier:
            return ""
        step, before = self.earlier[-1]
        plan = self.setup.plan
        old, new = (
            cosine(step + 1, rate=plan.rate, warm_up=plan.warm_up, steps=steps)
            for steps in (before, plan.steps)
        )
        return (
            f"from step {step + 1} on this is a run of {plan.steps} steps, not {before}: the rate "
            f"follows the half cosine to step {plan.steps}, and is {new:.3g} there, not {old:.3g}"
        )

    def _tidy(self) -> None:
        """Remove what a killed process was writing."""
        for left in self.folder.glob(checkpoint.PARTS):
            left.unlink(missing_ok=True)

    def lines(self) -> list[dict[str, Any]]:
        """The metrics up to the state's step: what was written later does not count."""
        kept = []
        for line in self.metrics.read_bytes().splitlines() if self.metrics.exists() else ():
            try:
                facts = json.loads(line)
            except ValueError:  # the line was cut off
                break
            if not isinstance(facts, dict) or not isinstance(facts.get("step"), int):
                break
            kept.append(facts)
        return [facts for facts in kept if facts["step"] <= self.state.step]

    def steps(self) -> Generator[dict[str, Any], None, None]:
        """Train to the end; the facts of each step as soon as it is done."""
        with self.metrics.open("a", encoding="utf-8") as metrics:
            while self.state.step < self.setup.plan.steps:
                began = time.perf_counter()
                state, facts = self.trainer.step(self.state)
                tested = state.step % self.every == 0 or state.step == self.setup.plan.steps
                if tested:
                    facts |= self.trainer.test(state)
                facts["seconds"] = time.perf_counter() - began
                metrics.write(json.dumps(facts) + "\n")
                self.state = state
                if tested:
                    metrics.flush()  # before the checkpoint, which says that these steps are done
                    os.fsync(metrics.fileno())
                    self.save()
                yield facts

    def save(self) -> None:
        """Write the state to the checkpoint."""
        facts = {
            "step": self.state.step,
            "generator": self.state.generator,
            "settings": self.setup.facts(),
        }
        if self.earlier:
            facts["earlier"] = self.earlier
        stored = moved(self.state, self.trainer.fetched)
        checkpoint.write(self.checkpoint, arrays_of(stored), facts)


def trained(setup: Setup, folder: Path, resume: bool = False, every: int = 100) -> dict[str, Any]:
    """Train to the end without showing progress; the facts of the last step."""
    run = Run(setup, folder, every)
    if resume and run.checkpoint.exists():
        run.resume()
    else:
        run.begin()
    for _ in run.steps():
        pass
    return run.lines()[-1]
