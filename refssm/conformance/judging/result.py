"""The result of a check: one line of the report."""

from __future__ import annotations

from dataclasses import dataclass, field

from refssm.conformance.judging.evidence import Evidence
from refssm.conformance.standard import C

FAILURES = ("inaccurate", "wrong", "error")


@dataclass(frozen=True)
class Result:
    """One line of the report."""

    operator: str
    implementation: str
    check: str
    dtype: str
    verdict: str  # pass, inaccurate, wrong, error or skipped
    grade: str = "-"
    ratio: float = 0.0
    bits: float = 0.0
    examples: int = 0
    declined: int = 0
    seconds: float = 0.0
    message: str = ""
    smallest: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()
    sliced: bool = False  # it has no batch axes and was called slice by slice
    counterexample: str = ""  # path of the saved inputs
    evidence: Evidence | None = field(default=None, compare=False, repr=False)  # optional
    allowed: float = C  # the largest ratio that passes
    digits: int = 0  # significand bits of the arithmetic
    alone: str = ""  # path of a script that repeats the call without refssm
    seed: int = 0
    profile: str = "default"
    shrunk: bool = True  # whether shrinking was tried
    known: str = ""  # the reason, if the failure is in the list of known failures
    expires: str = ""  # the last day of that list's entry
    looks_like: str = ""  # the likely mistake, or the pattern of wrong entries

    @property
    def id(self) -> str:
        """operator/check[dtype]."""
        return f"{self.operator}/{self.check}[{self.dtype}]"

    @property
    def failed(self) -> bool:
        """True if this line makes the exit code 1."""
        return self.verdict in FAILURES and not self.known
