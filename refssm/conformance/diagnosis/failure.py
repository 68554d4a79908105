"""Explain a failure: the smallest failing input, saved to a file, and a hint on its cause."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.drawing import SIZES
from refssm.conformance.checks.checks import Check
from refssm.conformance.checks.law import Conduct
from refssm.conformance.diagnosis.hints import flushed, in_tf32, in_wider, masked, verdict_on
from refssm.conformance.diagnosis.script import STORY, failing_call, script, story
from refssm.conformance.diagnosis.simplest import show, simplified
from refssm.conformance.file_errors import make_folder, whole
from refssm.conformance.judging.evidence import gathered
from refssm.conformance.judging.expected import remembering
from refssm.conformance.judging.result import Explained
from refssm.conformance.judging.verdict import Verdict

TINY = ((1, 1), (2, 1), (2, 2), (3, 2))  # lengths and widths to try first
TINY_SEEDS = 3  # and with so many seeds each
PATIENCE = 15.0  # seconds after which a failure is shown as small as it is by then
CANONICAL = "canonical layout"  # key in saved files: arrays are in the catalog's layout


def explain(
    check: Check,
    candidate: Candidate,
    case: Case,
    verdict: Verdict,
    *,
    accepted,
    shrink,
    folder: Path | None,
    hints: bool,
    call: Mapping,
    first: Verdict | None = None,
) -> Explained:
    """What is shown of a failure: message, smallest input, hint, path of the saved inputs.

    The smallest input fails in the same way as `case`, on which the verdict is `verdict`.

    With `first`, the verdict on the case before shrinking, also the evidence for pictures.
    """
    until = time.monotonic() + PATIENCE
    if shrink and not verdict.died:
        case, verdict = smaller(check, candidate, case, verdict, until)
    (arrays, statics), anything = _failing(check, candidate, case), set()
    if verdict.error:
        hint = ""
    elif check.rule.special:
        hint = hints and masked(check, candidate, arrays, statics)
    elif check.judge_arrays is not None:
        if shrink:
            with remembering():
                found = _simplest(check, candidate, case, arrays, statics, verdict, until)
            arrays, anything, verdict = found
        hint = hints and (
            flushed(check, candidate, case)
            or in_tf32(check, candidate, verdict)
            or in_wider(check, candidate, arrays, statics, accepted, verdict)
        )
    else:
        hint = hints and (flushed(check, candidate, case) or f"case: {case}")
    called = _called(check, candidate, case, arrays, statics, verdict)
    words, given = _in_words(case, *called, anything), (arrays, statics)
    saved, alone, unsaved = save(folder, check, candidate, case, given, call, verdict.message)
    return Explained(
        verdict.message,
        smallest=f"{words} (not saved: {unsaved})" if unsaved else words,
        smallest_ratio=verdict.ratio,
        smallest_bits=verdict.bits,
        hint=hint or "",
        counterexample=saved,
        alone=alone,
        evidence=gathered(check.op, verdict, arrays, statics, first) if first else None,
    )


def smaller(check: Check, candidate: Candidate, case: Case, verdict: Verdict, until=math.inf):
    """A smaller case that fails in the same way, and its verdict; nothing is tried after `until`.

    First tiny sizes are tried, then sizes between those that were drawn.
    """
    for attempt in _tiny(case, candidate.between):
        if time.monotonic() > until:
            break
        again = verdict_on(check, candidate, attempt)
        if again is not None and again.failure == verdict.failure:
            return attempt, again
    for dim, size in case.sizes.items():
        low = max((s for s in SIZES if s < size), default=0)
        low = max(low, int(candidate.between.get(dim, (1, 1))[0]) - 1)
        high = size
        while high - low > 1 and time.monotonic() < until:
            middle = (low + high) // 2
            attempt = replace(case, sizes={**case.sizes, dim: middle})
            again = verdict_on(check, candidate, attempt) if _admitted(attempt) else None
            if again is not None and again.failure == verdict.failure:
                case, verdict, high = attempt, again, middle
            else:
                low = middle
    return case, verdict


def _tiny(case: Case, between) -> Iterator[Case]:
    """Cases of one to three steps, without and then with the batch, each with three seeds."""
    first, *others = case.sizes
    alone = dict.fromkeys(case.batch, 1)
    for batch, (length, width) in product((alone, case.batch), TINY):
        sizes = {first: length, **dict.fromkeys(others, width)}
        sizes = {d: int(max(n, between.get(d, (1, 1))[0])) for d, n in sizes.items()}
        smaller = (sizes, batch) != (case.sizes, case.batch)
        if smaller and all(n <= case.sizes[d] for d, n in sizes.items()):
            seeds = ((case.seed + step) % 2**32 for step in range(TINY_SEEDS))
            attempts = (replace(case, sizes=sizes, batch=batch, seed=seed) for seed in seeds)
            yield from filter(_admitted, attempts)


def _admitted(case: Case) -> bool:
    """True if the operator's parameters and the constructors of its preset allow these sizes."""
    parameters = case.op.parameters
    if not all(
        parameters[d].admits(n, case.sizes) for d, n in case.sizes.items() if d in parameters
    ):
        return False
    if case.preset is None:
        return True
    try:
        # a preset may derive a size from others: `mamba_layer` has twice as many channels inside
        sizes = case.op.sizes(*case.arrays, **case.statics)
    except ValueError:  # no half of a spectrum has an odd number of modes, for example
        return False
    return case.sizes.items() <= sizes.items()


def _failing(check: Check, candidate: Candidate, case: Case) -> tuple[list[np.ndarray], dict]:
    """The arguments with which the case fails: its own, or those that its law made."""
    try:
        return check.rule.failing(candidate, case)
    except (Broken, Declined):
        return case.arrays, case.statics


def _called(check, candidate, case, arrays, statics, verdict: Verdict) -> tuple[list, dict]:
    """The arguments to show: of a check that makes the case longer, those of the call that raised.

    The others are those with which the case fails.
    """
    if not verdict.error or not isinstance(check.rule, Conduct):
        return arrays, statics
    call, _ = failing_call(check, candidate, case, arrays, statics)
    if call is None or call.vjp:
        return arrays, statics
    return call.arguments, call.statics


def _simplest(check, candidate, case, arrays, statics, verdict, until):
    """Simplified arguments, the names of those whose values do not matter, and the verdict."""

    def judged(attempt):
        return check.judge_arrays(candidate, attempt, statics)

    def admitted(attempt):
        """The attempt as `only` returns it; None if it declines it or changes a size."""
        try:
            kept, told = candidate.narrowed(attempt, statics)
        except (Broken, Declined):
            return None
        sizes = [a.shape for a in kept] == [a.shape for a in attempt]
        return kept if sizes and told == statics else None

    def infinite(attempt):
        with np.errstate(all="ignore"):
            sizes = [np.abs(g.value) for g in candidate.grader.expect(attempt, statics)]
        return not all((size <= case.type.max).all() for size in sizes)

    meant = infinite(arrays)

    def fails(attempt):
        if time.monotonic() > until:
            return False
        try:
            alike = judged(attempt).failure == verdict.failure
        except Declined:
            return False
        return alike and (meant or not infinite(attempt))  # at a pole a right program may give NaN

    if not fails(arrays):  # fails only by the exact integer rule, or not in every call
        return arrays, set(), verdict
    arrays, anything = simplified(case, arrays, fails, admitted)
    return arrays, anything, judged(arrays)


def _in_words(case: Case, arrays, statics, anything) -> str:
    """Sizes, then a few words on every argument."""
    core = case.op.sizes(*arrays, **statics)
    stacked = [(f"batch {axis}", n) for axis, n in case.batch.items() if n > 1]
    sizes = " ".join(f"{d}={core[d]}" for d in case.sizes)
    stacked += [(name, statics[name]) for name in case.parameters]
    sizes = " ".join([sizes, *(f"{d}={n}" for d, n in stacked)])
    mixed = len({np.iscomplexobj(a) for a in arrays}) > 1
    shown = [
        show(name, a, name in anything) + (f" ({a.dtype})" if mixed else "")
        for name, a in zip(case.op.inputs, arrays, strict=True)
    ]
    text = f"{sizes}; {', '.join(shown)}" if shown else sizes
    return f"preset {case.preset}: {text}" if case.preset else text


def save(
    folder: Path | None, check: Check, candidate: Candidate, case: Case, given, how, message: str
) -> tuple[str, str, str]:
    """Save the inputs, named by a hash of them, and a script that repeats the call.

    Returns both paths, "" for what was not written, and why it was not written.
    """
    if folder is None:
        return "", "", ""
    arrays, statics = given
    call, by_arrays = failing_call(check, candidate, case, arrays, statics)
    kept = story(check, case, by_arrays, how)
    told = [np.ascontiguousarray(a).tobytes() for a in arrays] or [f"{statics}".encode()]
    digest = hashlib.sha256(b"".join([*told, json.dumps(kept, sort_keys=True).encode()]))
    path = folder / f"{check.op}-{digest.hexdigest()[:8]}.npz"
    alone = folder / f"repro_{digest.hexdigest()[:8]}.py"
    named = dict(zip(check.op.inputs, arrays, strict=True)) | dict(statics)
    named |= {CANONICAL: True} if candidate.offer.layout else {}
    what = f"{check.id}: {message}"
    made = script(candidate, call, what, kept, path.name, str(alone)) if call else None
    text, more = made or ("", {})
    named |= more | {STORY: json.dumps(kept)}
    written: list[str] = []
    try:
        make_folder(folder)
        with whole(path) as partial:
            np.savez(partial, **named)  # pyright: ignore[reportArgumentType]
        written.append(str(path))
        if text:
            with whole(alone) as partial:
                partial.write_text(text, encoding="utf-8")
            written.append(str(alone))
    except OSError as error:  # cannot write here: the report is still printed
        place = alone if written else path
        return (*written, "", "")[0], "", f"{place}: {error.strerror or error}"
    return str(path), str(alone) if text else "", ""
