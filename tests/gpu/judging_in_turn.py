"""`python tests/gpu/judging_in_turn.py [SECONDS]`: the judge's default profile on mirrors, in turn.

As many as the time allows, another order in each rotation, so that several runs judge all of them.
Each is judged as a user would: `refssm verify refssm_gpu.family::name`. The last line says how many
were judged; the exit code is 1 if one failed.
"""

import subprocess
import sys
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from rotation import ROTATION, TURNS  # noqa: E402 (its folder is on the path now)

from refssm.catalog import OPERATORS  # noqa: E402

SECONDS = 50.0
PASSED = 0


def in_turn(names: list[str], rotation: int = ROTATION) -> list[str]:
    """The names, from another place on in each rotation."""
    first = rotation * len(names) // TURNS
    return names[first:] + names[:first]


def families() -> list[str]:
    """The families that have mirrors."""
    found = [op.family for op in OPERATORS if "gpu" not in op.lacks]
    return list(dict.fromkeys(found))


def judge(family: str, seconds: float) -> int | None:
    """The exit code of the judge; None if the time was over."""
    command = [sys.executable, "-m", "refssm", "verify", f"refssm_gpu.{family}", "--workers", "8"]
    try:
        return subprocess.run(command, cwd=ROOT, timeout=seconds, check=False).returncode
    except subprocess.TimeoutExpired:
        return None


def main(seconds: float = SECONDS) -> int:
    """Judge until the time is over."""
    end, failed, done = monotonic() + seconds, [], 0
    for family in in_turn(families()):
        left = end - monotonic()
        code = judge(family, left) if left > 1 else None
        if code is None:
            break
        done += 1
        if code != PASSED:
            failed.append(family)
    told = f"; failed: {', '.join(failed)}" if failed else ""
    print(f"{done} of {len(families())} families judged with the default profile{told}")  # noqa: T201
    return 1 if failed or not done else 0


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:])))
