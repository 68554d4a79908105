"""How long a user waits for the judge's first sentence, and for its last: programs of others.

    PYTHONPATH=tests python -m selftest.waiting
    PYTHONPATH=tests python -m selftest.waiting --record  # writes its part of docs/judge_times.md;
                                                          # rows of others stay

Each function is judged as it is, and with every output multiplied by 1.25: alone on the machine,
in the profiles `quick` and `default`, with an empty cache folder. The first sentence is that of
`--verbose`, which prints each check as soon as it ended.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from selftest import stored
from selftest.times import PAGE, WAITING

SUBJECTS = (  # module, function, operator in words
    ("scipy", "fftconvolve", "SciPy's convolution by FFT"),
    ("torch_scans", "selective_scan", "a selective scan in blocks, PyTorch"),
    ("torch_scans", "ssd_chunked", "SSD by chunks, PyTorch"),
    ("torch_recurrences", "gated_delta_rule_chunked", "a gated delta rule by chunks, PyTorch"),
    ("jax_scans", "ssd_chunked", "SSD by chunks, JAX"),
    ("jax_recurrences", "kimi_delta_rule_chunked", "Kimi's delta rule by chunks, JAX"),
    ("transformers", "mamba2_scan", "Mamba-2's fallback in transformers"),
    ("mamba", "selective_scan_ref", "Mamba's reference, PyTorch"),
)
WRONG = """\
import functools, importlib

right = importlib.import_module("refssm.subjects.{module}").{function}


@functools.wraps(right)
def {function}(*args, **keywords):
    y = right(*args, **keywords)
    return tuple(1.25 * part for part in y) if isinstance(y, tuple) else 1.25 * y


{function}.__module__ = __name__
"""


class Waited(NamedTuple):
    """Seconds until the first line on a check, and until the end; `failed` by the judge."""

    first: float
    last: float
    failed: bool


def waited(target: str, profile: str, folder: Path) -> Waited:
    """Judge one target with nothing kept."""
    command = [sys.executable, "-m", "refssm", "verify", target, "--profile", profile]
    command += ["--verbose", "--no-config", "--workers", "1"]
    environment = os.environ | {"REFSSM_CACHE_DIR": str(folder / "cache"), "PYTHONUNBUFFERED": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started, first = time.perf_counter(), 0.0
    how: dict = {"env": environment, "cwd": folder, "encoding": "utf-8"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, **how) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if not first and line.startswith(("pass ", "FAIL ")):
                first = time.perf_counter() - started
        process.wait()
    if process.returncode > 1:
        raise RuntimeError(f"{target} ended with exit code {process.returncode}")
    return Waited(first, time.perf_counter() - started, process.returncode == 1)


def name(module: str, function: str, words: str) -> str:
    """The first cell of a subject's row."""
    return f"{words} (`{module}::{function}`)"


def row(module: str, function: str, words: str, folder: Path) -> tuple[str, ...]:
    """The cells of one subject; RuntimeError if the wrong program passes."""
    folder = folder / f"{module}_{function}"
    folder.mkdir()
    text = WRONG.format(module=module, function=function)
    (folder / "wrong.py").write_text(text, encoding="utf-8")
    right, wrong = f"refssm.subjects.{module}::{function}", f"wrong.py::{function}"
    cells = [name(module, function, words)]
    for target, is_wrong in ((right, False), (wrong, True)):
        for profile in ("quick", "default"):
            found = waited(target, profile, folder)
            if is_wrong and not found.failed:
                raise RuntimeError(f"{words}: outputs times 1.25 passed")
            cells.append(f"{found.first:.0f}, {found.last:.0f}")
    return tuple(cells)


def read(page: str) -> list[tuple[str, ...]]:
    """The rows of a page's part."""
    lines = page.partition(WAITING)[2].splitlines()
    rows = [tuple(line.strip("| ").split(" | ")) for line in lines if line.startswith("| ")]
    return rows[2:]  # without the head and the line below it


def table(rows: list[tuple[str, ...]], note: str, kept: list[tuple[str, ...]]) -> str:
    """The part of the page: these rows, and kept rows of other programs, as in `SUBJECTS`."""
    date, commit = stored.today()
    cells = {old[0]: old for old in kept} | {new[0]: (*new, commit) for new in rows}
    head = ("program", "right, quick", "right, default", "wrong, quick", "wrong, default", "after")
    told = f"Last rows: {date}, one process, {os.cpu_count()} cores, Python "
    told += f"{platform.python_version()}{f'; {note}' if note else ''}"
    ordered = [cells[name(*subject)] for subject in SUBJECTS if name(*subject) in cells]
    return f"{WAITING}\n\n{TEXT}\n{told}.\n\n{stored.table(head, ordered)}\n"


def recorded(page: str, rows: list[tuple[str, ...]], note: str) -> str:
    """The page with these rows; those of other programs stay."""
    part = table(rows, note, read(page))
    return f"{page.partition(WAITING)[0].rstrip()}\n\n{part}"


def there() -> Iterator[tuple[str, str, str]]:
    """The subjects whose library is installed."""
    for subject in SUBJECTS:
        needed = {"jax_scans": "jax", "jax_recurrences": "jax", "scipy": "scipy"}
        if find_spec(needed.get(subject[0], "torch")) is not None:
            yield subject


def main(
    only: Annotated[str, typer.Option(help="Part of a module's name.")] = "",
    record: Annotated[bool, typer.Option(help="Write the part of the page.")] = False,
    note: Annotated[str, typer.Option(help="A remark on the machine, for the page.")] = "",
) -> None:
    """Print the seconds of each subject: the first sentence, the end."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="refssm-waiting-") as folder:
        for subject in there():
            if only in subject[0]:
                rows.append(row(*subject, Path(folder)))
                typer.echo("   ".join(rows[-1]), err=True)
    if record:
        text = recorded(PAGE.read_text(encoding="utf-8"), rows, note)
        PAGE.write_text(text, encoding="utf-8")


TEXT = """\
This part is written by `PYTHONPATH=tests python -m selftest.waiting --record`. Each cell has two
numbers: seconds until the first sentence on a check, and until the end. The wrong programs multiply
every output by 1.25, so their gradients are wrong, too. The time includes the start of Python and
of the library, in the judge's process and in the child that runs the function. The last column is
the last commit before the measurement.
"""


if __name__ == "__main__":
    typer.run(main)
