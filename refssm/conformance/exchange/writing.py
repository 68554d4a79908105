"""`refssm cases write`: the judge's cases as folders of .npy files, and one manifest.

The checks run as always, with refssm's own reference as the implementation; every call that they
make becomes a folder. `refssm cases judge` runs the checks again and finds the outputs there.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from refssm import __version__
from refssm._declaration.arguments import several
from refssm._declaration.layout import (
    NO_SIZES,
    Layout,
    arranged,
    canonical,
    in_layout,
    parse,
    sizes_of,
)
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Offer
from refssm.conformance.calling.one_call import Outcome
from refssm.conformance.cases.case import Case
from refssm.conformance.checks.checks import GRADIENT, Check
from refssm.conformance.exchange import files, judging
from refssm.conformance.exchange.call import TypedCall, described
from refssm.conformance.exchange.manifest import CHECKS, FORMAT, NAME, VERSION
from refssm.conformance.judging.certificate import certified
from refssm.conformance.judging.expected import expect, key_of, remembering
from refssm.conformance.number_types import number_type
from refssm.conformance.running.session import Trial, trials_of
from refssm.conformance.running.settings import Session, Settings
from refssm.conformance.running.sweeping import first_seed
from refssm.conformance.usage_error import UsageError


class CatalogCall(NamedTuple):
    """One call, with arrays in the catalog's layout."""

    name: str
    vjp: bool
    arrays: list[np.ndarray]
    statics: dict


class CallRecorder:
    """Stands in for an implementation: calls the reference and records the calls."""

    def __init__(self, offers: list[Offer]):
        self.found, self.asked, self.unanswered = offers, [], False

    def call(self, name: str, arrays, statics, *, vjp=False, **how) -> Outcome:
        """The reference's outputs."""
        del how
        op = operator_named(name)
        self.asked.append(CatalogCall(name, vjp, [*arrays], dict(statics)))
        function = op.vjp() if vjp else op.implementation("reference")
        try:
            y = function(*arrays, **statics)
        except np.linalg.LinAlgError as error:  # NaN made a matrix singular
            self.unanswered = True
            return Outcome("raised", message=f"raised LinAlgError: {error}")
        return Outcome("ok", tuple(a for a in several(y) if a is not None))


@dataclass(frozen=True)
class Wanted:
    """What to write."""

    operators: tuple[str, ...]
    settings: Settings
    vjp: bool = False
    ftz: bool = False
    layout: str = ""

    def offers(self) -> list[Offer]:
        """One offer per operator; UsageError if one of them cannot be written."""
        for check in self.settings.only_checks:
            if check not in CHECKS:
                listed = ", ".join(CHECKS)
                raise UsageError(f"--check {check}: files can only be judged by {listed}")
        gradients = self.vjp or GRADIENT.name in self.settings.only_checks
        for name in self.operators:
            layout_of(name, self.layout)
            if gradients and not operator_named(name).differentiable:
                raise UsageError(f"{name} has no gradient")
        return [
            Offer(name, has_vjp=gradients, layout=self.layout, ftz=self.ftz, files=True)
            for name in dict.fromkeys(self.operators)
        ]


def layout_of(name: str, text: str) -> Layout | None:
    """The layout of files, or None; UsageError if it omits an axis."""
    if not text:
        return None
    try:
        op = in_layout(operator_named(name), text)
        layout = parse(op, text)
    except ValueError as error:
        raise UsageError(f"--layout: {error}") from None
    if layout.omitted:
        left = ", ".join(layout.omitted)
        raise UsageError(
            f"--layout {text!r} leaves out the axis {left}: a file has the whole batch "
            f"({canonical(operator_named(name))}); `refssm verify --exec` calls slice by slice"
        )
    return layout


class Writer:
    """Writes cases into a folder, then the manifest."""

    def __init__(self, folder: Path, wanted: Wanted):
        self.folder, self.wanted = folder, wanted
        self.recorder = CallRecorder(wanted.offers())
        self.cases: list[dict] = []
        self.judged: list[dict] = []
        self.places: dict = {}  # folder names by call

    def write(self, tick: Callable[[str, int, int], None]) -> None:
        """Write all checks of all operators, then the manifest."""
        recorder: Any = self.recorder
        for trial in trials_of(Session(recorder, "", self.wanted.settings)):
            doubt = certified(operator_named(trial.op.name))
            if doubt or trial.scope.foreign:
                raise UsageError(
                    f"{trial.op}: no cases can be written: {doubt or trial.scope.foreign}"
                )
            for check in trial.checks(trial.scope.types):
                if check.name in CHECKS:
                    self._check(trial, check, tick)
        if not self.judged:
            raise UsageError("nothing to write: these operators have none of these checks")
        self._manifest()

    def _check(self, trial: Trial, check: Check, tick) -> None:
        """Write the cases of one check: those that `refssm verify` draws with the same seed."""
        candidate = trial.candidate.judged_in(check.dtype)
        seed = first_seed(check, self.wanted.settings.seed)
        # programs in other languages rarely accept real and complex arguments together
        drawing = check.cases(mixed=False, between=self.wanted.settings.where.sizes)
        for done, case in enumerate(drawing.all_cases(check.count, seed)):
            tick(check.id, done, check.count)
            self.recorder.asked, self.recorder.unanswered = [], False
            with remembering():
                verdict = check.judge_case(candidate, case)
                if not verdict.ok:
                    raise RuntimeError(f"{check.id}: refssm's reference fails: {verdict} ({case})")
                if self.recorder.asked and not self.recorder.unanswered:
                    self._keep(check, candidate, case)

    def _keep(self, check: Check, candidate, case: Case) -> None:
        """Write the folders of one case, and its line of the manifest."""
        asked, count = [*self.recorder.asked], len(case.op.inputs)
        drawn = [one for one in asked if _equal(one.arrays[len(one.arrays) - count :], case.arrays)]
        if not drawn:  # a law changed the arguments: store the original ones too
            drawn = [CatalogCall(check.op.name, False, case.arrays, case.statics)]
        exact = case.exact and check.rule.exact
        calls = [self._place(check, candidate, one, exact) for one in asked]
        self.judged.append(
            {
                "operator": check.op.name,
                "check": check.name,
                "dtype": check.dtype,
                "drawn": self._place(check, candidate, drawn[0], exact),
                "calls": list(dict.fromkeys(calls)),
                "sizes": {d: int(n) for d, n in case.sizes.items()},
                "batch": {d: int(n) for d, n in case.batch.items()},
                "parameters": _plain(case.parameters),
                "knobs": {name: asdict(knob) for name, knob in case.knobs.items()},
                "seed": case.seed,
                **({"preset": case.preset.name} if case.preset else {}),
            }
        )

    def _place(self, check: Check, candidate, one: CatalogCall, exact: bool) -> str:
        """The folder of one call, written if it is new."""
        op, standard = operator_named(one.name), candidate.standard
        vjp = op.bare_vjp if one.vjp else None
        key = key_of(op, one.arrays, one.statics, vjp, standard)
        if key not in self.places:
            start = f"{op}-{check.name}-{check.dtype}"
            number = sum(case["id"].startswith(f"{start}-") for case in self.cases) + 1
            self.places[key] = f"{start}-{number:03d}"
            kind, layout = number_type(check.dtype), layout_of(op.name, self.wanted.layout)
            given, sizes = [files.as_written(a, kind) for a in one.arrays], NO_SIZES
            op = in_layout(op, self.wanted.layout)
            if layout:
                usual = canonical(op)
                axes = [
                    (usual.outputs * one.vjp + usual.inputs),
                    (layout.outputs * one.vjp + layout.inputs),
                ]
                sizes = sizes_of(op, axes[0], given, one.statics)
                given = [arranged(a, *pair) for a, *pair in zip(given, *axes, strict=True)]
            call = described(op, one.vjp, kind, given, _plain(one.statics), layout, sizes)
            gauged = expect(op, one.arrays, one.statics, vjp, standard)
            folder = self.folder / self.places[key]
            folder.mkdir()
            call.write(folder, given, check.name)
            self.cases.append(
                self._record(folder, check, call, layout, one, gauged, standard, exact)
            )
        return self.places[key]

    def _record(
        self, folder: Path, check, call: TypedCall, layout, one, gauged, standard, exact
    ) -> dict:
        """The manifest's record of a folder; writes expected values and allowed errors."""
        entrywise, op = judging.entrywise(call.op, gauged), call.op
        most: list = [None] * len(gauged)
        if entrywise and not check.rule.special:
            most = judging.largest_errors(call, one.arrays, gauged, standard, exact=exact)
        usual = canonical(op)
        axes = usual.outputs if not call.vjp else _of_gradients(op, usual.inputs)
        outputs = []
        for slot, gauge, bound, own in zip(call.outputs, gauged, most, axes, strict=True):
            stem = slot.file.removesuffix(".npy")
            stored = {"want": judging.nearest(gauge.value), "allowed": bound}
            told = _told(slot)
            for what, a in stored.items():
                name = f"{stem}.{what}.npy"
                if a is not None:
                    a = arranged(a, own[len(own) - a.ndim :], slot.axes) if layout else a
                    files.write(folder / name, a)
                told[what] = None if a is None else _stored(folder / name)
            outputs.append(told)
        if entrywise:
            judging.save(folder, gauged)
        inputs = [
            {**_told(slot), "sha256": files.digest(folder / slot.file)} for slot in call.inputs
        ]
        return {
            "id": folder.name,
            "operator": op.name,
            "call": call.name,
            "check": check.name,
            "dtype": call.kind.name,
            "statics": dict(call.statics),
            "contract": "entrywise" if entrywise else "normwise",
            **({"merged": dict(call.sizes)} if call.sizes else {}),
            "inputs": inputs,
            "outputs": outputs,
            "gauge": _stored(folder / judging.GAUGE) if entrywise else None,
        }

    def _manifest(self) -> None:
        wanted = self.wanted
        document = {
            "format": FORMAT,
            "version": VERSION,
            "refssm": __version__,
            "numpy": np.__version__,
            "profile": wanted.settings.profile,
            "seed": wanted.settings.seed,
            "ftz": wanted.ftz,
            "layouts": dict.fromkeys(wanted.operators, wanted.layout) if wanted.layout else {},
            "cases": self.cases,
            "judged": self.judged,
        }
        (self.folder / NAME).write_text(
            json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8"
        )


def _of_gradients(op, axes):
    """The axes of the arguments that have a gradient."""
    return [a for name, a in zip(op.inputs, axes, strict=True) if name not in op.discrete]


def _equal(arrays, others) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(arrays, others, strict=True))


def _plain(numbers) -> dict[str, int | float]:
    """The numbers as Python numbers."""
    return {name: getattr(n, "tolist", lambda n=n: n)() for name, n in numbers.items()}


def _told(slot) -> dict:
    told = {"name": slot.name, "file": slot.file, "dtype": slot.dtype}
    return told | {"shape": [*map(int, slot.shape)], "axes": [*slot.axes]}


def _stored(path: Path) -> dict:
    return {"file": path.name, "sha256": files.digest(path)}
