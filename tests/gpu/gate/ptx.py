"""PTX, the text between C++ and machine code: its functions, and instructions that we refuse."""

from __future__ import annotations

import re
from functools import cached_property

_FUNCTION = re.compile(
    r"^(?:\.(?:visible|weak|extern)\s+)*\.(?:entry|func)\b\s*(?:\([^)]*\)\s*)?(?P<name>[\w$]+)"
    r"(?P<head>[^;{]*)\{(?P<body>.*?)^\}",
    re.MULTILINE | re.DOTALL,
)
_PARAMETER = re.compile(r"\.param (?:\.align \d+ )?\.[a-z](\d+)[^,[]*?(?:\[(\d+)\])?(?:,|\s*\))")
_THREADS = re.compile(r"\.maxntid (\d+)")
_LOAD = re.compile(r"\bld\.global(?:\.[a-z]\w*)*?(?:\.v(\d))?\.[a-z](\d+)\b")
_ASYNC = re.compile(r"\bcp\.async\.c[ag]\.shared\.global[\w.:]* \[[^]]*\], \[[^]]*\], (\d+)")
# π/2 · 2^-64: how sinf and cosf reduce arguments beyond 10^5, in a branch that others do not enter
_REDUCTION = re.compile(
    r"cvt\.rn\.f64\.s64[^;]*;\s*mul\.f64[^;]*0d3BF921FB54442D19;\s*cvt\.rn(?:\.ftz)?\.f32\.f64[^;]*;"
)
_DOUBLE = re.compile(r"(?<![\w.])(?!ld\.|st\.|mov\.)[a-z]\w*\.(?:\w+\.)*f64\b")
# none of these comes from a function of the library in single precision but cbrtf's first guess
_FAST = re.compile(r"\b(?:div\.full|(?:div|sqrt|sin|cos|lg2|tanh)\.approx)[\w.]*")
REDUCTION_FRAME = 32  # bytes of local memory, in that branch
TRIGONOMETRY = "__internal_trig_reduction_slowpathd"  # of sin and cos in double precision
TRIGONOMETRY_FRAME = 40  # bytes of local memory, in a branch for arguments beyond 10^5


class Text:
    """The PTX of one kernel, with the functions that it calls."""

    def __init__(self, ptx: str, entry: str):
        found = {match["name"]: match for match in _FUNCTION.finditer(ptx)}
        self.entry, self.functions = found[entry], [entry]
        for name in self.functions:  # grows while it is walked
            words = set(re.findall(r"[\w$]+", found[name]["body"]))
            self.functions += sorted(words & set(found) - set(self.functions))
        self.body = "\n".join(found[name]["body"] for name in self.functions)

    @cached_property
    def parameters(self) -> tuple[int, ...]:
        """The size of each parameter in bytes."""
        found = _PARAMETER.findall(self.entry["head"])
        return tuple(int(bits) // 8 * int(count or 1) for bits, count in found)

    @cached_property
    def block(self) -> int:
        """The threads of a block that `__launch_bounds__` says; 0 if it is missing."""
        found = _THREADS.search(self.entry["head"])
        return int(found[1]) if found else 0

    @cached_property
    def loads(self) -> tuple[int, ...]:
        """The bytes of each load from global memory, in the order of the text."""
        plain = [int(n or 1) * int(bits) // 8 for n, bits in _LOAD.findall(self.body)]
        return (*plain, *map(int, _ASYNC.findall(self.body)))

    @cached_property
    def double(self) -> tuple[str, ...]:
        """The instructions that compute in double precision."""
        return tuple(sorted(set(_DOUBLE.findall(_REDUCTION.sub("", self.body)))))

    @cached_property
    def fast(self) -> tuple[str, ...]:
        """Approximations that only intrinsics or fast-math options make."""
        return tuple(sorted(set(_FAST.findall(self.body))))

    @property
    def frame(self) -> int:
        """The bytes of local memory that functions of the library need."""
        double = TRIGONOMETRY_FRAME if TRIGONOMETRY in self.functions else 0
        return double + REDUCTION_FRAME * len(_REDUCTION.findall(self.body))
