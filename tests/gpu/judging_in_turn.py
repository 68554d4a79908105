"""`python tests/gpu/judging_in_turn.py [SECONDS]`: the judge's default profile on mirrors, in turn.

As many as the time allows, another order in each rotation, so that several runs judge all of them.
Each family is judged as a user would do it: `refssm verify refssm_gpu.family`. One that does not
end within the time is stopped and has no verdict. The last line says how many were judged, which
failed, and for which no time was left. The exit code is 0 if all that were judged passed, 1 if one
failed, and 124 if none was judged.
"""

import subprocess
import sys
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from rotation import ROTATION, TURNS  # noqa: E402 (its folder is on the path now)

from refssm.catalog import OPERATORS  # noqa: E402

SECONDS = 40.0
PASSED, FAILED, TOO_LATE = 0, 1, 124


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
    end, codes = monotonic() + seconds, {}
    for family in in_turn(families()):
        left = end - monotonic()
        codes[family] = judge(family, left) if left > 1 else None
    judged = {family: code for family, code in codes.items() if code is not None}
    failed = [family for family, code in judged.items() if code != PASSED]
    late = [family for family in codes if family not in judged]
    line = f"{len(judged)} of {len(codes)} families judged with the default profile"
    line += f"; failed: {', '.join(failed)}" if failed else ""
    line += f"; no time left for: {', '.join(late)}" if late else ""
    print(line)  # noqa: T201
    if not judged:
        return TOO_LATE
    return FAILED if failed else PASSED


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:])))
