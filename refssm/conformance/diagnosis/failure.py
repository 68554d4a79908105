"""Explain a failure: the smallest failing input, saved to a file, and a hint on its cause."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from refssm._declaration.adapted import adapters_of
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import Case
from refssm.conformance.checks.checks import Check
from refssm.conformance.checks.law import Conduct
from refssm.conformance.diagnosis.hints import flushed, in_tf32, in_wider, masked, of_one_sign
from refssm.conformance.diagnosis.script import STORY, failing_call, script, story
from refssm.conformance.diagnosis.shrinking import never, simplest_values
from refssm.conformance.file_errors import make_folder, whole
from refssm.conformance.judging.evidence import gathered
from refssm.conformance.judging.result import Explained
from refssm.conformance.judging.verdict import Verdict

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
    over: Callable[[], bool] = never,
) -> Explained:
    """What is shown of a failure: message, smallest input, hint, path of the saved inputs.

    With `shrink` the values are made simpler, until `over()` is true. With `first`, the verdict on
    the case before shrinking, also the evidence for pictures.
    """
    (arrays, statics), anything = _failing(check, candidate, case), set()
    if verdict.error:
        hint = ""
    elif check.rule.special:
        hint = hints and masked(check, candidate, arrays, statics)
    elif check.judge_arrays is not None:
        if shrink:
            arguments = arrays, statics
            found = simplest_values(check, candidate, case, arguments, verdict, over)
            arrays, anything, verdict = found
        hint = hints and (
            flushed(check, candidate, case)
            or in_tf32(check, candidate, verdict)
            or in_wider(check, candidate, arrays, statics, accepted, verdict)
        )
        above = hints and of_one_sign(check, candidate, arrays, statics)
        hint = f"{above}{hint or ''}".removesuffix("; ") if above else hint
    else:
        hint = hints and (flushed(check, candidate, case) or f"case: {case}")
    called = _called(check, candidate, case, arrays, statics, verdict)
    words, given = call_in_words(case, *called, anything), (arrays, statics)
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


def call_in_words(case: Case, arrays, statics, anything) -> str:
    """Sizes, then a few words on every argument."""
    core = case.op.sizes(*arrays, **statics)
    stacked = [(f"batch {axis}", n) for axis, n in case.batch.items() if n > 1]
    sizes = " ".join(f"{d}={core[d]}" for d in case.sizes)
    stacked += [(name, statics[name]) for name in case.parameters]
    sizes = " ".join([sizes, *(f"{d}={n}" for d, n in stacked)])
    mixed = len({np.iscomplexobj(a) for a in arrays}) > 1
    shown = [
        show(_parameter(case, name, a), a, name in anything) + (f" ({a.dtype})" if mixed else "")
        for name, a in zip(case.op.inputs, arrays, strict=True)
    ]
    text = f"{sizes}; {', '.join(shown)}" if shown else sizes
    return f"preset {case.preset}: {text}" if case.preset else text


def _parameter(case: Case, name: str, a: np.ndarray) -> str:
    """The name of an argument, or what its adapter has in place of it: "log dt"."""
    complex_numbers = np.iscomplexobj(a) and bool(np.imag(a).any())
    words = (adapter.in_words(name, complex_numbers) for adapter in adapters_of(case.op))
    return next((word for word in words if word != name), name)


def show(name: str, a: np.ndarray, anything: bool) -> str:
    """A few words on one argument; "other values fail too" if other draws of it fail too."""
    return _shown(name, a) + (" (other values fail too)" if anything and a.size else "")


def _shown(name: str, a: np.ndarray) -> str:
    """The values of an array, or what they have in common, in a few words."""
    told = f"{name}=" if name.isidentifier() else f"{name} = "  # "log dt = -18"
    if a.size and (a == a.flat[0]).all():
        return f"{told}{_number(a.flat[0])}" + (" throughout" if a.size > 1 else "")
    usual = np.sort(np.real(a), axis=None)[a.size // 2] if a.size else a.dtype.type(0)
    places = np.flatnonzero(~(a == usual))
    if places.size == 1 and a.size > 4:
        i = tuple(int(j) for j in np.unravel_index(places[0], a.shape))
        place, value = f"[{', '.join(map(str, i))}]", _number(a[i])
        other = f"{name}{place}={value}" if name.isidentifier() else f"{value} at {place}"
        return f"{told}{_number(usual)} but {other}"
    if a.size <= 4:
        return f"{told}[{', '.join(map(_number, a.ravel()))}]"
    return f"{name}: {a.size} numbers from {_number(a.flat[0])}"


def _number(x) -> str:
    if isinstance(x, np.bool_):
        return str(bool(x)).lower()
    x = x + 0.0  # turns −0 into 0
    if np.iscomplexobj(x):
        return _number(x.real) if x.imag == 0 else f"{x.real:.6g}{x.imag:+.6g}j"
    return f"{x:.6g}"


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
