"""What a check came to: one line of the report."""

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
    sliced: bool = False  # it takes core arrays only and was called slice by slice
    counterexample: str = ""  # path of the saved inputs
    evidence: Evidence | None = field(default=None, compare=False, repr=False)  # if asked for
    allowed: float = C  # what the ratio may be
    digits: int = 0  # bits of the arithmetic
    alone: str = ""  # path of a script that calls with them, without refssm
    seed: int = 0
    profile: str = "default"
    shrunk: bool = True  # whether smaller cases were tried
    known: str = ""  # the reason, where the failure is on the author's list
    expires: str = ""  # the last day that it is known
    looks_like: str = ""  # the mistake, or the pattern of the damage

    @property
    def id(self) -> str:
        """operator/check[dtype]."""
        return f"{self.operator}/{self.check}[{self.dtype}]"

    @property
    def failed(self) -> bool:
        """Whether this line makes the exit code 1."""
        return self.verdict in FAILURES and not self.known
