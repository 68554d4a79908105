"""All tasks from local copies by name."""

from collections.abc import Callable

from refssm.training.tasks.local.images import lra_image, lra_pathfinder, scifar, smnist
from refssm.training.tasks.local.speech import speech_commands
from refssm.training.tasks.local.text import lra_listops, lra_retrieval, lra_text
from refssm.training.tasks.task import Task

# each with the folder as its argument, and its sizes as keywords
LOCAL: dict[str, Callable[..., Task]] = {
    "lra-listops": lra_listops,
    "lra-text": lra_text,
    "lra-retrieval": lra_retrieval,
    "lra-image": lra_image,
    "lra-pathfinder": lra_pathfinder,
    "scifar": scifar,
    "smnist": smnist,
    "speech-commands": speech_commands,
}
