"""Nested operations on lists of digits: what is the result? [nangia2018listops; tay2021lra]

    [MAX 2 9 [MIN 4 7 ] 0 ]  is  9

An expression is a digit, or with probability 1/4, and above the greatest depth only, an operation
MIN, MAX, MED (the median, rounded down) or SM (the sum modulo 10) of 2 to `most` expressions, all
uniform. As in the long range arena, only expressions whose length is between a quarter of l and l
are taken, and there are no round brackets. Shorter ones have blanks before them.
"""

from functools import partial

import numpy as np

from refssm.training.tasks.task import Examples, Task, TrainingError, generated, sized

OPERATIONS = ("[MIN", "[MAX", "[MED", "[SM")
TOKENS = (*(str(d) for d in range(10)), *OPERATIONS, "]", " ")  # a symbol is a place in this list
CLOSE, BLANK = 14, 15
NESTED = 0.25  # the probability of an operation
DRAWN = 10000  # expressions, before it is said that they are too short


def listops(*, l: int = 256, depth: int = 10, most: int = 10) -> Task:
    """Symbols (l), the last of them `]`; ten classes, which follow from the signal."""
    sized("listops", {"l": (l, 8), "depth": (depth, 2), "most": (most, 2)})
    draw = partial(_drawn, l=l, depth=depth, most=most)
    marks = {"best": 1.0}
    task = generated("listops", 10, draw, symbols=len(TOKENS), marks=marks)
    marks["chance"] = float(np.bincount(task.test_labels).max() / len(task.test_labels))
    return task


def _drawn(rng, count: int, *, l: int, depth: int, most: int) -> Examples:
    signals, labels = np.full((count, l), BLANK), np.zeros(count, int)
    for i in range(count):
        found = expression(rng, l, depth, most)
        signals[i, -len(found) :] = found
        labels[i] = value_of(found)
    return Examples(signals, labels)


def expression(rng, l: int, depth: int, most: int) -> list[int]:
    """The symbols of one expression with l/4 to l of them; others are drawn again. TrainingError if
    none of many has so many."""
    for _ in range(DRAWN):
        found = _grown(rng, l, depth, most)
        if l / 4 <= len(found) <= l:
            return found
    rare = f"of {DRAWN} expressions none has {l / 4:g} to {l} symbols"
    raise TrainingError(f"listops: {rare}; wanted more than depth={depth} or most={most}")


def _grown(rng, l: int, depth: int, most: int) -> list[int]:
    """The symbols of one expression from left to right; one above l symbols is not finished."""
    found, open_ = [], [1]  # how many expressions each open list still wants, the outermost first
    chance, digits = rng.random(l + 1), rng.integers(0, 10, l + 1)
    kinds, sizes = rng.integers(10, 14, l + 1), rng.integers(2, most + 1, l + 1)
    while len(open_) > 1 or open_[0]:
        if len(found) > l:
            return found
        if not open_[-1]:
            open_.pop()
            found.append(CLOSE)
            continue
        open_[-1] -= 1
        at = len(found)
        if len(open_) <= depth - 1 and (chance[at] < NESTED or not at):
            found.append(kinds[at])
            open_.append(sizes[at])
        else:
            found.append(digits[at])
    return found


def value_of(symbols) -> int:
    """The result of an expression."""
    lists: list[list[int]] = [[]]
    for symbol in symbols:
        if symbol < 10:
            lists[-1].append(int(symbol))
        elif symbol == CLOSE:
            kind, *values = lists.pop()
            lists[-1].append(_result(kind, values))
        elif symbol != BLANK:
            lists.append([int(symbol)])
    return lists[0][0]


def _result(kind: int, values: list[int]) -> int:
    match OPERATIONS[kind - 10]:
        case "[MIN":
            return min(values)
        case "[MAX":
            return max(values)
        case "[MED":
            return int(np.median(values))
        case _:
            return sum(values) % 10
