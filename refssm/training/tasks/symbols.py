"""Tasks on symbols: recall of what followed, and copying. Each answer follows from the signal.

Symbols are integers, special ones last. Each function has the sizes of the task as keywords; the
usual ones are those of the paper where a small model learns them in minutes. TrainingError names a
size that is too small. Every answer follows from its signal, so the best accuracy is 1; chance is
that of one answer for all signals.
"""

from functools import partial

import numpy as np

from refssm.training.tasks.task import Examples, Task, generated, sized


def induction_head(*, symbols: int = 20, l: int = 30) -> Task:
    """a b ⊢ c d … z ⊢: what followed the first ⊢? [fu2023h3, §3.1]

    symbols − 1 ordinary symbols, uniform; ⊢ stands at one uniform place, and at the end.
    """
    sized("induction_head", {"symbols": (symbols, 3), "l": (l, 3)})
    draw = partial(_induction, symbols=symbols, l=l)
    return _recalled("induction_head", symbols - 1, symbols, draw)


def _induction(rng, count: int, *, symbols: int, l: int) -> Examples:
    trigger, rows = symbols - 1, np.arange(count)
    u = rng.integers(0, trigger, (count, l))
    place = rng.integers(0, l - 2, count)
    u[rows, place] = u[:, -1] = trigger
    return Examples(u, u[rows, place + 1])


def associative_recall(*, symbols: int = 10, pairs: int = 10) -> Task:
    """a 2 c 4 b 3 d 1 a: which value stood after this key? [fu2023h3, §3.1]

    The first half of the symbols are keys, the second are values. Each signal has a map of its own
    from keys to values, uniform, and shows `pairs` uniform keys, each with its value; then one of
    the keys shown, uniform among them. The length is 2 pairs + 1.
    """
    sized("associative_recall", {"symbols": (symbols, 4), "pairs": (pairs, 1)})
    draw = partial(_association, keys=symbols // 2, symbols=symbols, pairs=pairs)
    return _recalled("associative_recall", symbols - symbols // 2, symbols, draw)


def _association(rng, count: int, *, keys: int, symbols: int, pairs: int) -> Examples:
    values = rng.integers(keys, symbols, (count, keys))
    shown = rng.integers(0, keys, (count, pairs))
    present = (shown[..., None] == np.arange(keys)).any(-2)
    asked = np.where(present, rng.random((count, keys)), -1).argmax(-1)[:, None]
    both = np.stack([shown, np.take_along_axis(values, shown, -1)], -1).reshape(count, 2 * pairs)
    answer = np.take_along_axis(values, asked, -1)[:, 0] - keys
    return Examples(np.concatenate([both, asked], -1), answer)


def _recalled(name: str, classes: int, symbols: int, draw) -> Task:
    marks = {"chance": 1 / classes, "best": 1.0}
    return generated(name, classes, draw, read="last", symbols=symbols, marks=marks)


def copying(*, symbols: int = 10, copied: int = 10, blanks: int = 100) -> Task:
    """Symbols, blanks, a mark, blanks: at the last blanks the symbols, in order
    [arjovsky2016unitary, §5.1].

    `copied` uniform symbols of symbols − 2, then `blanks` − 1 blanks, the mark, and a blank for
    each answer: blanks + 2 copied steps. Only these answers count.
    """
    _copied_sizes("copying", symbols, copied, blanks)
    draw = partial(_copying, symbols=symbols, copied=copied, blanks=blanks)
    return _copied("copying", symbols, draw)


def _copying(rng, count: int, *, symbols: int, copied: int, blanks: int) -> Examples:
    u = np.full((count, blanks + 2 * copied), symbols - 2)
    u[:, :copied] = rng.integers(0, symbols - 2, (count, copied))
    u[:, copied + blanks - 1] = symbols - 1
    return _answered(u, u[:, :copied])


def selective_copying(*, symbols: int = 16, copied: int = 16, blanks: int = 112) -> Task:
    """Symbols at random places among blanks, then marks: at the marks the symbols, in order
    [gu2023mamba, §3.1].

    `copied` uniform symbols of symbols − 2 at uniform places among the first blanks + copied steps,
    then `copied` marks. Only the answers at the marks count. Mamba's paper has 4096 steps.
    """
    _copied_sizes("selective_copying", symbols, copied, blanks)
    draw = partial(_selective, symbols=symbols, copied=copied, blanks=blanks)
    return _copied("selective_copying", symbols, draw)


def _selective(rng, count: int, *, symbols: int, copied: int, blanks: int) -> Examples:
    before = copied + blanks
    u = np.full((count, before + copied), symbols - 2)
    given = rng.integers(0, symbols - 2, (count, copied))
    places = np.sort(rng.random((count, before)).argsort(-1)[:, :copied], -1)
    np.put_along_axis(u, places, given, -1)
    u[:, before:] = symbols - 1
    return _answered(u, given)


def _answered(u: np.ndarray, given: np.ndarray) -> Examples:
    """The given symbols as the answers at the last steps, which alone have weight."""
    labels, weights = np.zeros_like(u), np.zeros(u.shape, np.float32)
    labels[:, -given.shape[-1] :] = given
    weights[:, -given.shape[-1] :] = 1
    return Examples(u, labels, weights)


def _copied_sizes(name: str, symbols: int, copied: int, blanks: int) -> None:
    sized(name, {"symbols": (symbols, 3), "copied": (copied, 1), "blanks": (blanks, 1)})


def _copied(name: str, symbols: int, draw) -> Task:
    classes = symbols - 2
    marks = {"chance": 1 / classes, "best": 1.0}
    return generated(name, classes, draw, read="each", symbols=symbols, marks=marks)
