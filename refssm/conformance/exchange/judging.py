"""`refssm cases judge`: run the checks again, with outputs from the folders of their calls.

Files beside a case, for its author and for the judge: expected values and allowed errors.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.finding import operator_named, short
from refssm.conformance.calling.implementation import Offer
from refssm.conformance.calling.one_call import Declined, Outcome
from refssm.conformance.checks.checks import PROFILES, Check, checks_of, rule_named
from refssm.conformance.checks.linear_laws import of_integers
from refssm.conformance.diagnosis.failure import explain
from refssm.conformance.diagnosis.looks_like import diagnose_heard
from refssm.conformance.diagnosis.transcript import CASES, episode
from refssm.conformance.exchange.call import DECLINED, TypedCall
from refssm.conformance.exchange.files import FileArrays
from refssm.conformance.exchange.manifest import Folder, Stored
from refssm.conformance.exchange.program import Ended, Runner, answer, outputs, remove_answers
from refssm.conformance.file_errors import UNREADABLE, arrays
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.allowed import bounds_of
from refssm.conformance.judging.expected import key_of, remembering
from refssm.conformance.judging.grading import HEADROOM, span_product
from refssm.conformance.judging.result import Explained, Result
from refssm.conformance.judging.verdict import Verdict, says_nothing, worst_of
from refssm.conformance.running.own_faults import guarded
from refssm.conformance.running.session import Trial, trials_of
from refssm.conformance.running.settings import Session
from refssm.conformance.standard import Standard
from refssm.conformance.usage_error import UsageError

GAUGE = "gauge.npz"  # the gauges, for the judge
FIELDS = ("value", "rest", "k0", "k1", "peak", "normwise")


def entrywise(op: Operator, gauged: tuple[Gauge, ...]) -> bool:
    """True if each entry has its own tolerance."""
    return not op.contract.basis_free and all(g.measure is None for g in gauged)


def largest_errors(
    call: TypedCall, arrays, gauged, standard: Standard, *, exact: bool
) -> list[np.ndarray]:
    """For each output the largest |ŷ − y| of each entry that passes with grade A or B.

    Infinity where nothing is judged; zero where the expected value is an exact integer, NaN or
    infinite.
    """
    op, tolerances = call.op, []
    primals = arrays[len(op.outputs) * call.vjp :]
    product = 0.0 if call.vjp else span_product(op, primals)
    overflow_limit = min(standard.type.max, standard.computes.max) / HEADROOM
    for j, (gauge, slot) in enumerate(zip(gauged, call.outputs, strict=True)):
        dtype = standard.type.carrier if standard.type.half else np.dtype(slot.dtype)
        with np.errstate(all="ignore"):
            bounds = bounds_of(gauge, standard, dtype)
            tolerance = bounds.own
        finite = np.isfinite(gauge.value)
        judged = finite & np.isfinite(gauge.k0)
        if exact and j == 0 and of_integers(op, standard, primals, gauge):
            tolerance = np.zeros_like(tolerance)
        nothing = gauge.normwise and says_nothing(gauge.value, bounds.a, judged)
        if max(gauge.peak, product) > overflow_limit or nothing:
            tolerance = np.full_like(tolerance, np.inf)
        else:
            tolerance = np.where(finite, np.where(judged, tolerance, np.inf), 0.0)
        tolerances.append(tolerance)
    return tolerances


def nearest(value: np.ndarray) -> np.ndarray:
    """A value rounded to double precision."""
    return value.astype(np.result_type(np.float64, 1j if np.iscomplexobj(value) else 1.0))


def save(folder: Path, gauged: tuple[Gauge, ...]) -> None:
    """Write the gauges; a long double value is stored as a double and a remainder."""
    named = {}
    for j, g in enumerate(gauged):
        value = nearest(g.value)
        with np.errstate(all="ignore"):
            rest = np.where(np.isfinite(value), g.value - value, 0.0)
        parts = (value, nearest(rest), g.k0, g.k1, g.peak, g.normwise)
        named |= {f"{name}{j}": part for name, part in zip(FIELDS, parts, strict=True)}
    np.savez_compressed(folder / GAUGE, **named)


def load(path: Path, values) -> tuple[Gauge, ...]:
    """The gauges that `save` wrote; `values` is the number of outputs."""
    try:
        stored = arrays(path)
        return tuple(
            Gauge(
                _whole(stored[f"value{j}"], stored[f"rest{j}"]),
                stored[f"k0{j}"],
                stored[f"k1{j}"],
                float(stored[f"peak{j}"]),
                normwise=bool(stored[f"normwise{j}"]),
            )
            for j in range(values)
        )
    except UNREADABLE as error:
        raise UsageError(
            f"{path}: not written by `refssm cases write`: {short(f'{error}')}"
        ) from None


def _whole(value, rest) -> np.ndarray:
    if not rest.any():
        return value
    return value + rest.astype(np.result_type(rest, np.longdouble))


LISTED = 3  # wrong cases to list


class Gauges(dict):
    """Gauges by `key_of`: loaded from files where the folder has them, else computed gauges."""

    def __getitem__(self, key):
        known = super().__getitem__(key)
        return load(*known) if isinstance(known, tuple) and _is_place(known) else known


def _is_place(known: tuple) -> bool:
    return bool(known) and isinstance(known[0], Path)


class Answers:
    """Stands in for an implementation by returning the outputs in the files."""

    def __init__(self, folder: Folder, ran: dict[str, Ended] | None = None):
        self.folder, self.ran = folder, ran or {}
        self.places, self.gauges, self.last = {}, Gauges(), ""
        layouts, ftz = folder.head["layouts"], folder.head["ftz"]
        for stored in folder.cases.values():
            op = stored.call.op
            vjp = op.bare_vjp if stored.call.vjp else None
            standard = Standard.of(stored.call.kind.name, ftz=ftz)
            told = stored.arrays, stored.call.statics, vjp, standard
            self.places[key_of(operator_named(op.name), *told)] = stored
            if gauge := stored.record["gauge"]:
                self.gauges[key_of(op, *told)] = (
                    stored.folder / gauge["file"],
                    len(stored.call.outputs),
                )
        names = dict.fromkeys(stored.call.op.name for stored in folder.cases.values())
        self.found = [
            Offer(n, has_vjp=True, layout=layouts.get(n, ""), ftz=ftz, files=True) for n in names
        ]

    def call(self, name: str, arrays, statics, *, vjp=False, dtype="", **how) -> Outcome:
        """The outputs in the folder of this call; declined if there is no such folder."""
        del how
        op = operator_named(name)
        standard = Standard.of(dtype, ftz=self.folder.head["ftz"])
        key = key_of(op, arrays, statics, op.bare_vjp if vjp else None, standard)
        stored = self.places.get(key)
        if stored is None:
            return Outcome("declined")
        self.last = stored.id
        try:
            return Outcome("ok", self._outputs(stored))
        except Ended as ended:
            return Outcome(ended.status, message=str(ended))

    def _outputs(self, stored: Stored) -> tuple:
        if stored.id in self.ran:
            raise self.ran[stored.id]
        kind, made = stored.call.kind, FileArrays()
        return stored.canonical_outputs(
            [made.take(y, kind) for y in outputs(stored.call, stored.folder)]
        )


def chosen(folder: Folder, operators=(), checks=(), cases=()) -> list[dict]:
    """The requested cases of the manifest; UsageError if there are none."""
    names = {line["operator"] for line in folder.judged}
    for name in operators or ():
        if name not in names:
            raise UsageError(
                f"{folder.path} has no case of {name!r}; it has {', '.join(sorted(names))}"
            )
    known = {line["check"] for line in folder.judged}
    for name in checks or ():
        if name not in known:
            raise UsageError(
                f"{folder.path} has no check {name!r}; it has {', '.join(sorted(known))}"
            )
    for name in cases or ():
        if name not in folder.cases:
            raise UsageError(f"{folder.path} has no case {name!r}")
    lines = [
        line
        for line in folder.judged
        if (not operators or line["operator"] in operators)
        and (not checks or line["check"] in checks)
        and (not cases or {*cases} & {*line["calls"]})
    ]
    if not lines:
        raise UsageError(f"{folder.path}: no case matches these options")
    return lines


def run_all(
    folder: Folder, lines: Iterable[dict], runner: Runner, tick: Callable[[str, int, int], None]
) -> dict[str, Ended]:
    """Run a program on each call that the cases in `lines` of the manifest need.

    Returns how it ended for those calls where it failed. It runs on a copy of the arguments, so
    that it can neither change them nor read the expected outputs.
    """
    needed = list(dict.fromkeys(name for line in lines for name in line["calls"]))
    ended = {}
    for name in needed:
        remove_answers(folder.cases[name].call, folder.cases[name].folder)
    for done, name in enumerate(needed):
        tick(name, done, len(needed))
        stored = folder.cases[name]
        with tempfile.TemporaryDirectory(prefix="refssm-case-") as copy:
            for file in ("case.txt", *(slot.file for slot in stored.call.inputs)):
                shutil.copyfile(stored.folder / file, Path(copy) / file)
            try:
                answer(runner, stored.call, Path(copy))
            except Ended as end:
                ended[name] = end
            for slot in stored.call.outputs:
                if (Path(copy) / slot.file).is_file():
                    shutil.copyfile(Path(copy) / slot.file, stored.folder / slot.file)
        if name in ended and ended[name].status == "declined":
            (stored.folder / DECLINED).write_text(f"{ended[name]}\n", encoding="utf-8")
    return ended


def judge(session: Session, folder: Folder, lines: list[dict]) -> Iterator[Result]:
    """Yield the result of every check in the folder."""
    answers = session.worker
    assert isinstance(answers, Answers)
    by_check: dict[tuple, list[dict]] = {}
    for line in lines:
        key = (line["operator"], line["check"], line["dtype"])
        by_check.setdefault(key, []).append(line)
    by_name = {trial.op.name: trial for trial in trials_of(session)}
    with remembering(answers.gauges):
        for (name, check, dtype), of_check in by_check.items():
            trial, asked = by_name[name], _check(name, check, dtype)
            judged = partial(_judged, trial, asked, folder, of_check, session)
            yield guarded(judged, partial(trial.wording.fault, asked))


def _check(name: str, check: str, dtype: str) -> Check:
    """The check as it is in every profile."""
    op = operator_named(name)
    vjp = rule_named(check).of_gradient
    checks = checks_of(op, PROFILES["thorough"], [dtype], vjp=vjp)
    found = next((c for c in checks if c.name == check), None)
    if found is None:
        raise UsageError(
            f"{op} has no check {check} in {dtype}: another version of refssm wrote it"
        )
    return found


def _judged(trial: Trial, check: Check, folder: Folder, lines, session: Session) -> Result:
    started, wording = time.perf_counter(), trial.wording
    candidate = trial.candidate.judged_in(check.dtype)
    answers = session.worker
    assert isinstance(answers, Answers)
    if not any(_written(folder.cases[name], answers) for line in lines for name in line["calls"]):
        note = f"there is no output for any of {len(lines)} cases"
        return wording.judged(check, Verdict("-", notes=(note,)), started, examples=0)
    declined, failed, verdicts = 0, [], [Verdict("-")]
    for done, line in enumerate(lines):
        session.tick(check.id, done, len(lines))
        case = folder.case(line)
        verdict = _verdict(check, candidate, case)
        if verdict is None:
            declined += 1
        elif verdict.ok:
            verdicts.append(verdict)
        else:
            failed.append((_size(case), done, case, verdict, answers.last))
    counts = len(lines), declined
    if failed:
        heard = [episode(check, candidate, folder.case(line)) for line in lines[:CASES]]
        looks_like = diagnose_heard(check, candidate, heard).text
        failed.sort(key=lambda f: (not f[3].kind.startswith("shape"), *f[:2]))
        verdict, shown = _shown(check, candidate, failed, folder)
        result = wording.judged(check, verdict, started, *counts)
        result = result.explained(replace(shown, looks_like=looks_like))
        return replace(result, notes=(*verdict.notes, _listed(failed, len(lines))))
    verdict = worst_of(verdicts)
    if verdict.grade == "-" and declined == len(lines):
        verdict = Verdict("-", notes=(f"declined all {declined} cases",))
    return wording.judged(check, verdict, started, *counts)


def _verdict(check: Check, candidate: Candidate, case) -> Verdict | None:
    """The verdict on one case, or None if the program declined it."""
    try:
        return check.judge_case(candidate, case)
    except Broken as broken:
        return broken.verdict
    except Declined:
        return None


def _shown(check, candidate, failed, folder: Folder) -> tuple[Verdict, Explained]:
    """The verdict on the first of `failed`, and its explanation: the smallest with a wrong shape,
    which axes of equal lengths hide, else the smallest.
    """
    _, _, case, verdict, place = failed[0]
    shown = explain(
        check, candidate, case, verdict, accepted=[], shrink=False, folder=None, hints=True, call={}
    )
    return verdict, replace(shown, smallest=f"{folder.path / place}: {shown.smallest}")


def _listed(failed, cases: int) -> str:
    """A note that names the failing cases."""
    names = [f[4] for f in failed]
    more = ", …" * (len(names) > LISTED)
    return f"{len(failed)} of {cases} cases fail: {', '.join(names[:LISTED])}{more}"


def _size(case) -> int:
    """The number of entries of all arguments, plus integer keyword arguments."""
    lengths = [n for n in case.statics.values() if isinstance(n, int)]
    return sum(int(np.size(a)) for a in case.arrays) + sum(lengths)


def _written(stored: Stored, answers: Answers) -> bool:
    """True if there is an output, a refusal or an error for a case."""
    names = [slot.file for slot in stored.call.outputs]
    there = any((stored.folder / name).exists() for name in (*names, DECLINED))
    return there or stored.id in answers.ran
