"""Runs in folders: their settings and tests, and runs that differ in nothing but the seed."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from refssm.training import checkpoint
from refssm.training.checkpoint import CheckpointError


class StoredRun(NamedTuple):
    """One run: its settings, and the metrics of each test."""

    settings: Mapping[str, Any]
    tests: Sequence[Mapping[str, Any]]


def read(folder: Path) -> StoredRun:
    """A run in its folder, up to its checkpoint; CheckpointError says what is missing."""
    _, facts = checkpoint.read(folder / "checkpoint.safetensors")
    path, settings = folder / "metrics.jsonl", facts.get("settings")
    if not isinstance(settings, dict):
        raise CheckpointError(f"{folder}: the checkpoint has no settings")
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except FileNotFoundError:
        raise CheckpointError(f"{path}: there are no metrics") from None
    except ValueError:
        raise CheckpointError(f"{path}: not the metrics of a run") from None
    tests = [x for x in lines if "test_loss" in x and x["step"] <= facts["step"]]
    if not tests:
        raise CheckpointError(f"{path}: there was no test yet")
    return StoredRun(settings, tests)


def by_settings(runs: Sequence[StoredRun]) -> dict[str, list[StoredRun]]:
    """Runs that differ in the seed only, under the settings in which these groups differ."""
    groups: dict[str, list[StoredRun]] = {}
    for run in runs:
        key = json.dumps({n: v for n, v in run.settings.items() if n != "seed"}, sort_keys=True)
        groups.setdefault(key, []).append(run)
    firsts = [group[0].settings for group in groups.values()]
    names = [n for n in dict.fromkeys(n for s in firsts for n in s) if n != "seed"]
    differing = [n for n in names if any(s.get(n) != firsts[0].get(n) for s in firsts)]
    return {_label(group[0].settings, differing): group for group in groups.values()}


def _label(settings: Mapping[str, Any], differing: Sequence[str]) -> str:
    """The layer, and each other setting that is not the same everywhere."""
    others = [n for n in differing if n != "layer"]
    told = ", ".join(f"{n} = {_told(settings.get(n))}" for n in others)
    return f"{settings.get('layer')}: {told}" if told else str(settings.get("layer"))


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{n}={v}" for n, v in value.items()) or "usual"
    return "usual" if value is None else str(value)


def curve(runs: Sequence[StoredRun], name: str) -> tuple[list[int], list[list[float]]]:
    """The steps at which all of these runs were tested, and the values of each run there."""
    found = [{line["step"]: line[name] for line in run.tests} for run in runs]
    steps = sorted(set.intersection(*map(set, found)))
    if not steps:
        raise CheckpointError("runs of one kind have no tests at the same steps")
    return steps, [[of[step] for step in steps] for of in found]
