"""The result of a check: one line of the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from refssm.conformance.judging.evidence import Evidence
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.standard import C

THIN = "thin"  # right wherever it could be judged, but that was in too few cases
MISFIT = "layout"  # the kind of a failure: the declared layout does not fit the first call
FAILURES = ("inaccurate", "wrong", "error")
# ends of `looks_like` that say how a named bug was found
THIS_BUG, THESE_BUGS = ": this known bug, put", ": each of these known bugs, put"
SO_CHANGED = ": so changed, the reference"  # of an argument, which a program keeps within a limit
OTHERWISE = "another convention"
SPREADS = "NaN spreads within its chunk"  # a cause: without NaN the outputs are right
RIGHT_SO = ": so it is right"  # after the words of a convention


@dataclass(frozen=True)
class Also:
    """Another failure of the same check; `Result` explains the fields."""

    verdict: str
    kind: str
    grade: str
    ratio: float
    bits: float
    failing: int
    message: str
    smallest: str = ""
    smallest_ratio: float = 0.0
    smallest_bits: float = 0.0
    counterexample: str = ""
    alone: str = ""


@dataclass(frozen=True)
class Explained:
    """What a report shows of one failure: its smallest case, saved inputs, the likely cause."""

    message: str
    smallest: str  # the smallest failing input in words
    smallest_ratio: float
    smallest_bits: float
    kind: str = ""  # what is wrong, such as "values of `x`"
    failing: int = 0  # how many of the drawn cases fail in this way
    hint: str = ""
    looks_like: str = ""  # the likely mistake, or the pattern of wrong entries
    convention: str = ""  # see `Result`
    counterexample: str = ""  # path of the saved inputs
    alone: str = ""  # path of a script that repeats the call without refssm
    evidence: Evidence | None = None
    as_wrong: bool = False  # graded C, but judged in other ways it is wrong: an F

    def also(self, verdict: Verdict) -> Also:
        """The failure beside a worse one; `verdict` is the one on the worst case that was drawn."""
        return Also(
            verdict.verdict,
            self.kind,
            "-" if verdict.error else verdict.grade,
            verdict.ratio,
            verdict.bits,
            self.failing,
            self.message,
            self.smallest,
            self.smallest_ratio,
            self.smallest_bits,
            self.counterexample,
            self.alone,
        )


@dataclass(frozen=True)
class Result:
    """One line of the report."""

    operator: str
    implementation: str
    check: str
    dtype: str
    verdict: str  # pass, thin, inaccurate, wrong, error or skipped
    grade: str = "-"  # grade, ratio and bits are those of the worst case that was drawn
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
    function: str = ""  # its name if its file has several functions of one operator
    looks_like: str = ""  # the likely mistake, or the pattern of wrong entries
    kind: str = ""  # of a failure: what is wrong, such as "values of `x`"
    failing: int = 0  # how many of the drawn cases fail in this way
    smallest_ratio: float = 0.0  # of the smallest failing case
    smallest_bits: float = 0.0
    also: tuple[Also, ...] = ()  # other failures of the check, the worst first
    tolerated: bool = False  # thin, and the run allows that
    unjudged: tuple[str, ...] = ()  # arguments of the function that the operator does not have
    convention: str = ""  # the only one of `refssm.adapters` in which the function is right
    # of a pass: the largest size of each dimension that was judged; empty if not known
    reached: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)

    def explained(self, failure: Explained, also: tuple[Also, ...] = ()) -> Result:
        """The result with what is known of its worst failure, and the other failures."""
        return replace(
            self,
            verdict="wrong" if failure.as_wrong else self.verdict,
            grade="F" if failure.as_wrong else self.grade,
            message=failure.message,
            kind=failure.kind,
            failing=failure.failing,
            smallest=failure.smallest,
            smallest_ratio=failure.smallest_ratio,
            smallest_bits=failure.smallest_bits,
            hint=self.hint or failure.hint,
            looks_like=failure.looks_like,
            convention=failure.convention,
            counterexample=failure.counterexample,
            alone=failure.alone,
            evidence=failure.evidence,
            also=also,
        )

    @property
    def id(self) -> str:
        """operator/check[dtype]; operator::function/check[dtype] of one among several."""
        of = f"{self.operator}::{self.function}" if self.function else self.operator
        return f"{of}/{self.check}[{self.dtype}]"

    @property
    def cause(self) -> str:
        """The likely mistake, without the sentence on how it was found; empty if not known."""
        if self.convention:
            return f"{OTHERWISE}: {self.convention.partition(RIGHT_SO)[0]}"
        told = self.looks_like
        for rest in (THIS_BUG, THESE_BUGS, SO_CHANGED):
            told = told.partition(rest)[0]
        return told

    @property
    def failed(self) -> bool:
        """True if this line makes the exit code 1."""
        return self.verdict in (*FAILURES, THIN) and not (self.known or self.tolerated)
