"""Streams: a function of device arrays works on the caller's current stream.

The call is made under another current stream than the default one. This stream is busy, and writes
the arguments when it is done. A function that launches on the default stream, or on one of its own
without waiting, reads them too early.
"""

from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.cases.case import Case
from refssm.conformance.checks.law import conduct
from refssm.conformance.judging.verdict import Verdict, wrong

WRONG = (
    "wrong under another current stream than the default one: the function does not launch on the "
    "current stream, or does not wait for it"
)


@conduct()
def stream(candidate: Candidate, case: Case) -> Verdict:
    """On a CUDA device the outputs are right, and finished, on whichever stream is current."""
    arrays, statics = candidate.given(case)
    wanted = candidate.grader.expect(arrays, statics)
    plain = candidate.grader.outputs(arrays, candidate.results(arrays, statics), wanted)
    if not plain.ok:
        return plain  # wrong on the default stream, too
    try:
        verdict = candidate.grader.outputs(
            arrays, candidate.results(arrays, statics, late=True), wanted
        )
    except Broken as broken:
        if broken.verdict.error:
            raise
        return wrong(f"{WRONG}; {broken.verdict.message}")
    return plain if verdict.ok else wrong(f"{WRONG}; {verdict.message}", verdict.damage)
