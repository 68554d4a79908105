"""All tasks by name."""

import inspect
from collections.abc import Callable, Mapping

from refssm.training.tasks.digits import digits, permuted_digits
from refssm.training.tasks.listops import listops
from refssm.training.tasks.membrane import membrane
from refssm.training.tasks.noise import delay, padded_digits
from refssm.training.tasks.pathfinder import pathfinder
from refssm.training.tasks.pendulum import pendulum
from refssm.training.tasks.symbols import (
    associative_recall,
    copying,
    induction_head,
    selective_copying,
)
from refssm.training.tasks.task import Task
from refssm.training.tasks.tones import tones

# each with its sizes as keywords
TASKS: dict[str, Callable[..., Task]] = {
    made.__name__: made
    for made in (
        digits, permuted_digits, padded_digits, induction_head, associative_recall, copying,
        selective_copying, delay, pendulum, tones, listops, pathfinder, membrane,
    )
}  # fmt: skip


def sizes_of(make: Callable[..., Task]) -> Mapping[str, int]:
    """The sizes of a task and their usual values."""
    given = inspect.signature(make).parameters.items()
    return {name: p.default for name, p in given if p.kind is p.KEYWORD_ONLY}
