"""`python -m docs.build.front`: the kernel and the report of the first page, `docs/index.md`.

The kernel is a file of `docs/examples`, the report what the command prints about it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE, KERNEL = Path("docs/index.md"), Path("docs/examples/chunked_scan_wrong.py")
COMMAND = ("verify", KERNEL.as_posix(), "--dtype", "float32", "--check", "value")


def page(text: str, report: str) -> str:
    """The page with the function of the file and with this report."""
    function = KERNEL.read_text(encoding="utf-8").partition("\ndef ")[2]
    shown = f"$ refssm {' '.join(COMMAND)}\n{report}"
    return _put(_put(text, "kernel", f"```python\ndef {function}```"), "report", f"```\n{shown}```")


def report() -> str:
    """What the command prints, down to the smallest failing input."""
    command = [sys.executable, "-m", "refssm", *COMMAND]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.stdout.startswith("WRONG: "), done.stderr
    verdict, failure, *_ = done.stdout.split("\n\n")
    return f"{verdict}\n\n{failure.partition('  again: ')[0]}"


def timeless(text: str) -> str:
    """A report without seconds."""
    return re.sub(r",? +\d+(\.\d+)? s\b", "", text)


def _put(text: str, name: str, block: str) -> str:
    begin, end = f"<!-- {name}: begin, by python -m docs.build.front -->", f"<!-- {name}: end -->"
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{block}\n{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), report()), encoding="utf-8")
