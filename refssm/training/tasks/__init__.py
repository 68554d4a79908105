"""Tasks that need no download: `TASKS` has them by name, a file each says how they are made."""

from refssm.training.tasks.catalog import TASKS
from refssm.training.tasks.task import Examples, Task, TrainingError, generated

__all__ = ["TASKS", "Examples", "Task", "TrainingError", "generated"]
