"""A recorded series: the potential of a nerve cell's membrane, which matplotlib ships.

12,000 samples, without units or a rate; a current makes the cell fire once in about 143 samples.
Of the part in which it fires steadily, samples 1,500 to 7,200, the last quarter is the test. Mean
and deviation are those of the training part.
"""

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from refssm.training.tasks.task import Examples, Task, TrainingError, sized

FIRST, LAST = 1500, 7200
SPLIT = FIRST + 3 * (LAST - FIRST) // 4
COUNT = 12000
PERIOD = 143  # the lag at which the training part is most like itself
APART = 16  # samples from one window of the test to the next


def membrane(*, l: int = 256, ahead: int = 16) -> Task:
    """Signals (l, 1) of windows, and at each step the sample `ahead` steps later.

    The first half of the steps does not count: there too little is known. The figure is the error
    relative to the answer 0, the mean of the training part. The baselines answer with the last
    sample, and with the sample one period of 143 before the wanted one; the best is not known.
    """
    sized("membrane", {"l": (l, 16), "ahead": (ahead, 1)})
    if l + ahead > LAST - SPLIT:
        raise TrainingError(f"membrane: wanted l + ahead ≤ {LAST - SPLIT}, got {l} + {ahead}")
    x = potential()
    early, late = x[FIRST:SPLIT], x[SPLIT:LAST]
    early, late = ((a - early.mean()) / early.std() for a in (early, late))

    def draw(rng, count):
        return _windows(early, rng.integers(0, len(early) - l - ahead + 1, count), l, ahead)

    test = _windows(late, np.arange(0, len(late) - l - ahead + 1, APART), l, ahead)
    return Task(
        "membrane", 1, test.signals[:0], test.labels[:0], test.signals, test.labels,
        read="each", loss="squared", weights=test.weights[:0], test_weights=test.weights,
        draw=draw, marks=_marks(late, ahead),
    )  # fmt: skip


def potential() -> np.ndarray:
    """All samples; TrainingError without matplotlib, or if its file is another one."""
    if find_spec("matplotlib") is None:
        raise TrainingError("membrane: the series is in matplotlib: pip install matplotlib")
    return _loaded()


@cache
def _loaded() -> np.ndarray:
    from matplotlib.cbook import get_sample_data

    opened: Any = get_sample_data("membrane.dat")
    with opened as file:
        found = np.frombuffer(file.read(), "<f4")
    if found.shape != (COUNT,):
        raise TrainingError(f"membrane: matplotlib's file has {found.size} samples, wanted {COUNT}")
    return found


def _windows(x, begin, l: int, ahead: int) -> Examples:
    at = begin[:, None] + np.arange(l)
    weights = np.broadcast_to(np.arange(l) >= l // 2, at.shape).astype(np.float32)
    return Examples(x[at][..., None], x[at + ahead][..., None], weights)


def _marks(x, ahead: int) -> dict[str, float]:
    """Errors of the answer 0 and of both baselines over the series from its second period on."""
    wanted = x[PERIOD:]

    def error(answers):
        return float(np.sqrt(((answers - wanted) ** 2).sum() / (wanted**2).sum()))

    marks = {"chance": 1.0}
    if ahead <= PERIOD:
        marks["the last sample"] = error(x[PERIOD - ahead : len(x) - ahead])
        marks["a period before"] = error(x[:-PERIOD])
    return marks
