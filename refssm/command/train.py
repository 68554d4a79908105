"""`refssm train`: train a model of one kind of layer on a task, without autodiff."""

import os
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

TaskName = Annotated[str, typer.Argument(help="The task, such as digits or copying.")]
LayerName = Annotated[str, typer.Option("--layer", help="The kind of layer, such as s5 or s4d.")]
Steps = Annotated[int, typer.Option(min=1, help="Steps of the optimizer.")]
Role = Annotated[str, typer.Option("--ops", help="Operators: reference, jit or gpu.")]
Seed = Annotated[int, typer.Option(min=0, help="The seed of parameters, batches and dropout.")]
Seeds = Annotated[int, typer.Option(min=1, help="Train with so many seeds, from --seed on.")]
Workers = Annotated[int, typer.Option(min=1, help="Processes that share the seeds.")]
Dask = Annotated[str | None, typer.Option("--dask", help="Train on the Dask cluster here.")]
Folder = Annotated[Path, typer.Option(help="Each run has a folder TASK-LAYER-SEED in it.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint.")]
Every = Annotated[int, typer.Option(min=1, help="Steps from one test and checkpoint to the next.")]
Width = Annotated[int, typer.Option("--h", min=1, help="Channels of the model.")]
Depth = Annotated[int, typer.Option(min=1, help="Layers of the model.")]
Size = Annotated[
    list[str] | None, typer.Option("--size", help="A size of the layer, such as n=16; repeatable.")
]
NormName = Annotated[str, typer.Option("--norm", help="layer, rms or batch.")]
PostNorm = Annotated[bool, typer.Option("--post-norm", help="Normalise after each layer.")]
Dropout = Annotated[float, typer.Option(min=0, max=0.95, help="Share of outputs set to zero.")]
Batch = Annotated[int, typer.Option(min=1, help="Examples in a step.")]
Pieces = Annotated[int, typer.Option(min=1, help="Compute a batch in so many pieces.")]
Rate = Annotated[float, typer.Option(min=0, help="The largest learning rate.")]
WarmUp = Annotated[int, typer.Option(min=0, help="Steps in which the rate grows to the largest.")]
Decay = Annotated[float, typer.Option(min=0, help="Weight decay of AdamW.")]
Read = Annotated[
    str | None, typer.Option("--read", help="What the decoder reads: mean, last or each.")
]
Start = Annotated[
    list[str] | None, typer.Option("--start", help="How the layer starts, such as dt_min=1e-4.")
]
TaskSize = Annotated[
    list[str] | None,
    typer.Option("--task-size", help="A size of the task, such as l=128."),
]
Data = Annotated[
    Path | None, typer.Option("--data", help="The folder with a local copy of the task's data set.")
]
Clip = Annotated[float, typer.Option(min=0, help="The largest norm of a gradient.")]


def train(
    task: TaskName,
    layer: LayerName = "s5",
    steps: Steps = 1000,
    ops: Role = "jit",
    seed: Seed = 0,
    seeds: Seeds = 1,
    workers: Workers = 1,
    dask: Dask = None,
    folder: Folder = Path(),
    resume: Resume = False,
    every: Every = 100,
    h: Width = 64,
    depth: Depth = 2,
    size: Size = None,
    norm: NormName = "batch",
    post_norm: PostNorm = False,
    dropout: Dropout = 0.2,
    batch: Batch = 50,
    pieces: Pieces = 1,
    rate: Rate = 4e-3,
    warm_up: WarmUp = 100,
    decay: Decay = 0.05,
    clip: Clip = 1.0,
    read: Read = None,
    start: Start = None,
    task_size: TaskSize = None,
    data: Data = None,
) -> int:
    """Train a model on a task; Ctrl-C saves, and --resume goes on."""
    from refssm.conformance.usage_error import UsageError

    _check_possible(workers, dask, ops)
    from refssm.command.trained import in_turn, spread
    from refssm.training.loop import Plan
    from refssm.training.setup import Setup
    from refssm.training.tasks import TrainingError

    plan = Plan(steps, batch, pieces, rate, warm_up, decay, clip, seed)
    own, of_task = sizes(size or ()), sizes(task_size or (), "--task-size")
    begin = starts(start or ())
    model = (ops, h, depth, norm, not post_norm, dropout, own)
    try:
        files = None if data is None else str(data.resolve())
        setup = Setup(task, layer, *model, plan, read, begin, of_task, files)
        setups = [replace(setup, plan=replace(plan, seed=seed + i)) for i in range(seeds)]
        how = (setups, folder.resolve(), resume, every, _command())
        return in_turn(*how) if workers == 1 and dask is None else spread(*how, workers, dask)
    except TrainingError as error:
        raise UsageError(str(error)) from None


def _check_possible(workers: int, dask: str | None, ops: str) -> None:
    """UsageError for options that exclude each other, and for what is not installed."""
    from refssm.conformance.usage_error import UsageError

    if find_spec("safetensors") is None:
        raise UsageError("train needs safetensors: pip install safetensors scikit-learn")
    if workers > 1 and dask is not None:
        raise UsageError("--workers and --dask: both say where to train; leave one out")
    if ops == "gpu" and os.environ.get("REFSSM_GPU") != "host":
        from refssm_gpu._launching.missing import NoCard, require_card

        try:
            require_card("--ops gpu")
        except NoCard as lack:
            raise UsageError(str(lack)) from None


def sizes(asked, option="--size") -> dict[str, int]:
    """`["n=16"]` as `{"n": 16}`; UsageError for anything that is not a name and a number."""
    from refssm.conformance.usage_error import UsageError

    found = {}
    for text in asked:
        name, _, number = text.partition("=")
        if not (name and number.isascii() and number.isdigit() and int(number)):
            raise UsageError(f"{option} {text}: wanted a name and a positive number, such as n=16")
        found[name] = int(number)
    return found


def starts(asked) -> dict[str, str | float]:
    """`["dt_min=1e-4", "poles=lin"]` as names with a number or a word; UsageError for anything
    else."""
    from refssm.conformance.usage_error import UsageError

    found: dict[str, str | float] = {}
    for text in asked:
        name, _, value = text.partition("=")
        if not (name and value):
            raise UsageError(f"--start {text}: wanted a name and a value, such as dt_min=1e-4")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = value
    return found


def _command() -> str:
    """What the user typed."""
    import shlex

    return shlex.join(["refssm", *sys.argv[1:]])
