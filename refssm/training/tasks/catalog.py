"""All tasks by name."""

from collections.abc import Callable

from refssm.training.tasks.digits import digits, permuted_digits
from refssm.training.tasks.task import Task

# each with its sizes as keywords
TASKS: dict[str, Callable[..., Task]] = {"digits": digits, "permuted_digits": permuted_digits}
