"""The text of a kernel with its headers in it.

CuPy keeps compiled kernels by the text that it gets and does not look into included files, so a
changed header would be missed: the compiler gets one text.
"""

import re
from functools import cache
from pathlib import Path

KERNELS = Path(__file__).parents[1] / "kernels"
INCLUDE = re.compile(r'^#include "([\w./]+)"\n', re.MULTILINE)


@cache
def inlined(name: str) -> str:
    """The file `name` of the folder of kernels; each of our headers once, where it is first."""
    return _inlined(KERNELS / name, set())


def _inlined(path: Path, seen: set[Path]) -> str:
    def text(match: re.Match[str]) -> str:
        header = (path.parent / match[1]).resolve()
        if not header.is_relative_to(KERNELS.resolve()):  # the host build's own header
            return match[0]
        if header in seen:
            return ""
        seen.add(header)
        return _inlined(header, seen)

    seen.add(path.resolve())
    return INCLUDE.sub(text, path.read_text(encoding="utf-8").replace("#pragma once\n", ""))
