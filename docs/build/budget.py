"""`make lint` prints it: the lines of `refssm/` and `refssm_gpu/` by room, beside their budget.

A commit that needs more raises the number in `budget.csv` by hand, and says why in the last column.

    python docs/build/budget.py [BUDGET.csv]
"""

import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUDGET = Path(__file__).with_name("budget.csv")
CODE = (".py", ".pyi", ".cuh", ".cu", ".cpp", ".h")
SPLIT = ("refssm/conformance",)  # its folders are rooms of their own


def files() -> list[str]:
    """The files of the packages that Git knows, or all where there is no Git."""
    asked = [
        "git",
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "refssm",
        "refssm_gpu",
    ]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if done.returncode == 0:
        return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]
    found = (p for top in ("refssm", "refssm_gpu") for p in (ROOT / top).rglob("*") if p.is_file())
    return [p.relative_to(ROOT).as_posix() for p in found if "__pycache__" not in p.parts]


def room_of(name: str) -> str:
    """The folder that a file is counted in."""
    *folders, _ = name.split("/")
    return "/".join(folders[: 3 if "/".join(folders[:2]) in SPLIT else 2])


def counted() -> tuple[Counter[str], int]:
    """Lines of code by room, and the number of all files."""
    lines, names = Counter(), files()
    for name in names:
        if name.endswith(CODE):
            text = (ROOT / name).read_text(encoding="utf-8")
            lines[room_of(name)] += text.count("\n")
    return lines, len(names)


def main(path: Path) -> int:
    """Print the table; 1 if a room, the sum or the number of files is above the budget."""
    with path.open(encoding="utf-8", newline="") as file:
        allowed = {row["room"]: int(row["lines"]) for row in csv.DictReader(file)}
    lines, count = counted()
    rows = {**lines, "lines of all rooms": lines.total(), "files": count}
    wrong = []
    for room, number in rows.items():
        most = allowed.get(room, 0)
        sys.stdout.write(f"{number:7} of {most:6}  {room}\n")
        if number > most:
            wrong.append(f"{room}: {number} lines, the budget is {most} ({path.name})")
    gone = [f"{room}: in {path.name}, but there is no such room" for room in {*allowed} - {*rows}]
    for sentence in (*wrong, *gone):
        sys.stderr.write(sentence + "\n")
    return int(bool(wrong or gone))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else BUDGET))
