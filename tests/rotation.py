"""Which tests a run takes. Marks are given here, and pytest's `-m` chooses by them.

    make test       -m short                  every fact, of each list of parameters one twelfth
    make test-turn  -m "turn and not short"   one part in 36 of the rest
    make test-all                             every item

Which part is `REFSSM_ROTATION`, 0 to 35; by default it follows from the commit. An item has the
same turn on every machine, so 36 runs with 36 values take every item. `.ci/run` runs this
file to print the number before anything is installed.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

TURNS = 36
TWELFTHS = 12  # of lists, kinds of planted bugs and honest programs, in the short run
OUTSIDE_TURNS = 3  # for what takes a compiler, a browser or another program
LISTED = 6  # a test function with more items is a list: the short run takes a twelfth of them
SEEDS = 5  # of honest programs; `make soak` takes 1000
ROOT = Path(__file__).parents[1]


def _of_the_commit(root: Path) -> int:
    """The commit's hash modulo 36; 0 where there is no git or no commit."""
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, encoding="ascii")
    except FileNotFoundError:
        return 0
    return int(done.stdout, 16) % TURNS if done.returncode == 0 else 0


def rotation(asked: str, root: Path = ROOT) -> int:
    """The number in `REFSSM_ROTATION`, or what follows from the commit where it is empty."""
    if not asked:
        return _of_the_commit(root)
    if asked not in map(str, range(TURNS)):
        sys.exit(f"REFSSM_ROTATION: wanted a number from 0 to {TURNS - 1}, got {asked!r}")
    return int(asked)


ROTATION = rotation(os.environ.get("REFSSM_ROTATION", ""))
os.environ["REFSSM_ROTATION"] = str(ROTATION)  # for the processes of pytest-xdist


def of_turn(name: str, turns: int = TWELFTHS) -> bool:
    """Whether it is this item's turn: by a checksum of its name, so that neighbours differ."""
    checksum = hashlib.blake2s(name.encode(), digest_size=4)  # crc32 of two names may be related
    return int.from_bytes(checksum.digest()) % turns == ROTATION % turns


def seed_of_turn() -> int:
    """The seed of honest programs in the short run; not 0, which has three times as many cases."""
    return ROTATION % (SEEDS - 1) + 1


def _turned(names: list[str]) -> list[str]:
    """The names in another order for each rotation, as far as there are so many."""
    first = ROTATION * len(names) // TURNS
    return names[first:] + names[:first]


def one_of_each_kind(bugs) -> set[str]:
    """Names of planted bugs: a twelfth of the kinds, each in the first operator that has it.

    A kind is a family and what is wrong; the next eleven rotations have the others. Each goes
    through a family in another order.
    """
    from refssm.catalog import OPERATORS  # `.ci/run` has no refssm yet

    family = {op.name: op.reference.__module__.split(".")[1] for op in OPERATORS}
    members: dict[str, list[str]] = {}
    for op in dict.fromkeys(bug.op for bug in bugs):
        members.setdefault(family[op], []).append(op)
    place = {op: _turned(names).index(op) for names in members.values() for op in names}
    kinds = {}
    for bug in sorted(bugs, key=lambda bug: place[bug.op]):
        if of_turn(f"{family[bug.op]} {bug.what}"):
            kinds.setdefault((family[bug.op], bug.what), str(bug))
    return set(kinds.values())


def mark(items) -> None:
    """Give each item the marks `turn` and `short` if they are due; a second call changes nothing.

    A mark `short` or `long` that a test has from its file is kept.
    """
    count: dict[str, int] = {}
    for item in items:
        function = item.nodeid.partition("[")[0]
        count[function] = count.get(function, 0) + 1
    for item in items:
        name = item.nodeid.partition("@")[0]  # pytest-xdist adds "@group"
        outside = item.get_closest_marker("outside")
        if of_turn(name, OUTSIDE_TURNS if outside else TURNS):
            item.add_marker("turn")
        apart = outside or item.get_closest_marker("long")
        listed = count[item.nodeid.partition("[")[0]] > LISTED
        # another checksum than that of the turns: these have a part in 36 of what is left, too
        if not apart and (not listed or of_turn(f"listed {name}")):
            item.add_marker("short")


def shares(bugs: int, distinct: int) -> str:
    """What the short run and a turn see of planted bugs and honest programs."""
    return (
        f"short: {distinct} distinct planted bugs, a twelfth of the kinds (of {bugs} bugs in all),"
        " honest programs of a twelfth of the operators"
        f" with seed {seed_of_turn()} of {SEEDS} seeds;"
        f" turn: 1/{TURNS} of the other {bugs - distinct} and of the other {SEEDS - 1} seeds"
    )


if __name__ == "__main__":
    print(ROTATION)  # noqa: T201 for `.ci/run`
