"""The judged implementation: calls it with arrays and turns the outcome into verdicts."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.calling.implementation import Offer
from refssm.conformance.calling.narrowing import UNSTEADY
from refssm.conformance.calling.one_call import Declined, Outcome
from refssm.conformance.calling.worker import NOT_CALLED
from refssm.conformance.cases.case import Case, ordinary_case
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.agreement import same
from refssm.conformance.judging.expected import expect, judged_type
from refssm.conformance.judging.grading import compare, grade_outputs
from refssm.conformance.judging.verdict import WRITTEN, Verdict, misfit, types_in, worst_of, wrong
from refssm.conformance.number_types import number_type
from refssm.conformance.standard import Standard
from refssm.conformance.usage_error import UsageError


class Broken(Exception):
    """A call gave no usable result; `verdict` is the verdict on it."""

    def __init__(self, verdict: Verdict):
        super().__init__(verdict.message)
        self.verdict = verdict

    def at(self, place: str) -> Broken:
        """The same, with words before its message on which call it was, such as "at l=257 "."""
        return Broken(replace(self.verdict, message=f"{place}{self.verdict.message}"))


def without_result(outcome: Outcome) -> Verdict:
    """The verdict on a call that raised, ended its process, or returned nothing usable."""
    if outcome.status == "malformed":
        return wrong(outcome.message, kind="what it returns")
    return Verdict("F", np.inf, 0.0, outcome.message, error=True, died=outcome.died)


def refuse_unusable(op: Operator, outputs) -> None:
    """Raise Broken unless the outputs of a forward call are arrays, as many as wanted."""
    if len(outputs) != len(op.outputs):
        message = f"returned {len(outputs)} outputs, want {len(op.outputs)}"
        raise Broken(wrong(message, kind="number of outputs"))
    for y, name in zip(outputs, op.outputs, strict=True):
        if not isinstance(y, np.ndarray):
            message = misfit(y, (), np.dtype(float), name)
            raise Broken(wrong(message, kind=f"shape or type of `{name}`"))


class FirstCall(NamedTuple):
    """The first call in one type."""

    case: Case
    outcome: Outcome

    @property
    def killed(self) -> bool:
        """True if it ended the process, or did not return."""
        return self.outcome.died


class Candidate:
    """One implementation of one operator, its worker, and the standard of its outputs."""

    def __init__(self, op: Operator, worker, offer: Offer):
        self.op, self.worker, self.offer = op, worker, offer
        self.has_vjp = offer.has_vjp
        self.sliced = False
        self.held: Standard | None = None  # None: the standard of the arrays' type
        self.between: Mapping = {}  # ranges of sizes, from `--where`
        self.accepted: Collection[str] = ()  # the types that are judged and accepted
        self.length = 0  # the largest leading size of the case, after `only`
        self.firsts: dict[str, FirstCall] = {}  # by type, as `probe` called it

    def judged_in(self, dtype: str) -> Candidate:
        """A copy with the standard of one type and of the author's declared accuracy."""
        other = copy(self)
        other.held = Standard.of(dtype, self.offer.accuracy, self.offer.ftz)
        return other

    def expect(self, arrays, statics, op: Operator | None = None) -> tuple[Gauge, ...]:
        """The gauges of a forward call, by this implementation's standard."""
        return expect(op or self.op, arrays, statics, held=self.held)

    def graded(self, arrays, outputs, gauged, overflow=False, which=()) -> Verdict:
        """The verdict on the outputs of one call, or on those with indices in `which`."""
        return grade_outputs(self.op, arrays, outputs, gauged, overflow, self.held, which)

    def agree(self, arrays, y, other, *bounds, output=0, through=False) -> Verdict:
        """Compare two outputs of this implementation by its tolerance.

        With `through`, one of them was computed from a state that was rounded to the type.
        """
        held = self.held
        if through and held is not None and held.u < held.type.u:
            held = replace(held, computes=held.type)
        return same(self.op, arrays, y, other, *bounds, output=output, held=held)

    def given(self, case: Case) -> tuple[list[np.ndarray], dict]:
        """The case's arguments, projected by the implementation's `only` if it has one."""
        return self.narrowed(case.arrays, case.statics)

    def narrowed(self, arrays, statics, op: Operator | None = None) -> tuple[list, dict]:
        """Arguments projected by the implementation's `only`; raises Declined where it declines."""
        op = op or self.op
        offers = {offer.name: offer for offer in self.worker.found}
        kept = list(arrays), dict(statics)
        if offers[op.name].narrows:
            kept = self.worker.narrow(op.name, *kept)
        if isinstance(kept, Outcome):
            if kept.status == UNSTEADY:
                raise UsageError(f"{op}: {kept.message}")
            if not kept.message.startswith(NOT_CALLED):  # else no call of `only` is to blame
                kept = replace(kept, message=f"`only` {kept.message}")
            raise Broken(without_result(kept))
        if kept is None:
            raise Declined
        if op is self.op and op.leading:
            arrays, statics = kept
            self.length = max(self.length, int(op.sizes(*arrays, **statics)[op.leading]))
        return kept

    def admitted(self, arrays, statics) -> list[np.ndarray]:
        """Arguments that a law made; raises Declined if `only` declines or changes them."""
        kept, told = self.narrowed(arrays, statics)
        if told != dict(statics) or not all(map(_equal, kept, arrays)):
            raise Declined
        return kept

    def outcome(self, arrays, statics, *, name="", **how) -> Outcome:
        """The outcome of one call; never raises for a failed call."""
        name, dtype = name or self.op.name, self.held.type.name if self.held else ""
        return self.worker.call(name, arrays, statics, sliced=self.sliced, dtype=dtype, **how)

    def outputs(self, arrays, statics, **how) -> tuple[np.ndarray, ...]:
        """The outputs of one call; Declined, or Broken if it failed or wrote to its inputs."""
        outcome = self.outcome(arrays, statics, **how)
        if outcome.status == "declined":
            raise Declined
        if outcome.status != "ok":
            raise Broken(without_result(outcome))
        if outcome.changed:
            names = [*(f"d{y}" for y in self.op.outputs if how.get("vjp")), *self.op.inputs]
            changed = ", ".join(f"`{names[i]}`" for i in outcome.changed)
            raise Broken(wrong(f"the call wrote to its input {changed}", kind=WRITTEN))
        return outcome.outputs

    def results(self, arrays, statics, *, op: Operator | None = None, **how) -> tuple:
        """The outputs of one forward call; raises Broken for wrong shapes or types."""
        op = op or self.op
        outputs = self.outputs(arrays, statics, name=op.name, **how)
        refuse_unusable(op, outputs)
        types, shapes = types_in(op, arrays, self.held), op.output_shapes(*arrays, **statics)
        either = any(t.kind == "c" for t in types)
        for y, dtype, shape, name in zip(outputs, types, shapes, op.outputs, strict=True):
            unfit = misfit(y, shape, dtype, name, either)
            if unfit:
                raise Broken(wrong(unfit, kind=f"shape or type of `{name}`"))
        return outputs

    def value(self, arrays, statics, view="") -> Verdict:
        """Grade one forward call."""
        try:
            y = self.outputs(arrays, statics, view=view)
        except Broken as broken:
            return broken.verdict
        return self.graded(arrays, y, self.expect(arrays, statics))

    def gradient(self, cotangents, arrays, statics, view="") -> Verdict:
        """Grade each gradient of one VJP call; the worst verdict."""
        try:
            gradients = self.outputs([*cotangents, *arrays], statics, vjp=True, view=view)
        except Broken as broken:
            return broken.verdict
        return self.graded_gradients(gradients, cotangents, arrays, statics)

    def graded_gradients(self, gradients, cotangents, arrays, statics) -> Verdict:
        """The worst verdict on the gradients of one VJP call."""
        op = self.op
        gauged = expect(op, [*cotangents, *arrays], statics, op.bare_vjp, self.held)
        precision = judged_type([*cotangents, *arrays])
        verdicts = []
        axes = [(*batch, *dims) for batch, dims in zip(op.batch_axes, op.input_dims, strict=True)]
        described = zip(op.inputs, axes, arrays, strict=True)
        described = [(name, dims, a) for name, dims, a in described if name not in op.flags]
        for g, gauge, (name, dims, a) in zip(gradients, gauged, described, strict=True):
            kind = precision if np.iscomplexobj(a) else np.finfo(precision).dtype
            kind = np.dtype(kind)
            verdicts.append(compare(g, gauge, kind, dims, f"d{name}", held=self.held))
        return worst_of(verdicts)

    def probe(self, cases_by_type, larger=None) -> dict[str, str]:
        """For each type, why it is refused or ""; also decides if calls must be slice by slice.

        `cases_by_type` has one small case with batch axes per type. If that is declined, a `larger`
        case is tried.
        """
        refused = {}
        for position, (name, case) in enumerate(cases_by_type.items()):
            held = self.judged_in(name)
            arrays, statics, outcome = held._tried(case)
            if outcome.status == "declined" and larger:
                case = larger[name]
                arrays, statics, outcome = held._tried(case)
            self.firsts[name] = FirstCall(case, outcome)
            refused[name] = outcome.message if _refuses(outcome) else ""
            if outcome.died:  # do not spend the one restart on probing
                return refused | dict.fromkeys(
                    list(cases_by_type)[position + 1 :],
                    "not tried, since another type ended the process",
                )
            if position == 0 and arrays and not self.offer.layout and outcome.status != "declined":
                self.sliced = held._takes_core_arrays_only(arrays, statics, outcome)
                if self.sliced:
                    refused[name] = ""
        return refused

    def _tried(self, case: Case) -> tuple[list[np.ndarray], dict, Outcome]:
        """One call; "declined" also if `only` fails, because the checks will report that."""
        try:
            arrays, statics = self.given(case)
        except (Declined, Broken):
            return case.arrays, case.statics, Outcome("declined")
        return arrays, statics, self.outcome(arrays, statics)

    def _takes_core_arrays_only(self, arrays, statics, outcome: Outcome) -> bool:
        """True if single slices give right results and the batched call does not.

        A batched call with outputs of the right shapes counts as wrong only if it took the batch
        axis for time.
        """
        wanted = self.expect(arrays, statics)
        batched = outcome.outputs
        if [getattr(y, "shape", None) for y in batched] == [g.value.shape for g in wanted]:
            if self.graded(arrays, batched, wanted).ok:
                return False
            if not self._reads_batch_as_time(arrays, statics, batched):
                return False
        self.sliced = True
        alone = self.outcome(arrays, statics)
        self.sliced = False
        return alone.status == "ok" and self.graded(arrays, alone.outputs, wanted).ok

    def _reads_batch_as_time(self, arrays, statics, batched) -> bool:
        """True if the outputs are right with batch and time exchanged, as of a loop over `a[k]`."""
        op = self.op
        time = op.output_dims[0][:1]
        if any(dims[:1] != time for dims in op.input_dims) or any(a.ndim < 2 for a in arrays):
            return False
        turned = [np.swapaxes(a, 0, 1) for a in arrays]
        try:
            op.output_shapes(*turned, **statics)
        except ValueError:  # arguments with different batch axes
            return False
        gauges = [_axes_exchanged(g) for g in self.expect(turned, statics)]
        return self.graded(arrays, batched, gauges).ok


def _equal(a, b) -> bool:
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


# exceptions that show a mistake in the code, not a refused type
MISTAKES = ("IndexError", "NameError", "RecursionError", "UnboundLocalError", "ZeroDivisionError")
OF_DEVICE = ("ran out of the device's memory", "launched a kernel that failed")
FAULTS = ("ended with", *OF_DEVICE)
# exceptions of kernels, by their names: refssm_gpu's host build, compilers, CuPy, PyTorch, Numba
OF_KERNELS = ("HostError", "CompileError", "CompileException", "NVRTCError", "AcceleratorError")
OF_KERNELS += ("CUDARuntimeError", "CUDADriverError", "CudaAPIError")
# and by the words of CUDA's messages, which every framework passes on
WORDS = re.compile(
    r"cuda error|cudaError|CUDA_ERROR_|illegal (memory access|address|instruction)"
    r"|misaligned address|launch fail|device-side assert",
    re.IGNORECASE,
)
# so say cuBLAS and cuDNN of a type that they, or this card, have no product for
LACKS = re.compile(r"(NOT_SUPPORTED|ARCH_MISMATCH|ErrorNotSupported)\b|operation not supported")


def _refuses(outcome: Outcome) -> bool:
    """True if the call raised as libraries do for a type that they do not support.

    Exceptions of `MISTAKES`, an exit code of a program, a kernel that failed or did not compile,
    and what a device lacks are errors; the checks will report them.
    """
    message = outcome.message
    kind = message.removeprefix("raised ").partition(":")[0].split(" (")[0]
    failed = kind in OF_KERNELS or WORDS.search(message)
    failed = failed and not LACKS.search(message)
    stumbled = kind in MISTAKES or message.startswith(FAULTS) or failed
    return outcome.status == "raised" and not stumbled


def _axes_exchanged(gauge):
    """The gauge with the first two axes exchanged: batch axis and first core axis."""
    return gauge.moved(lambda a: np.swapaxes(a, 0, 1))


def accepts_mixed_kinds(candidate: Candidate, types, refused) -> bool:
    """True if a call with real and complex arguments together does not raise."""
    op = candidate.op
    either = tuple(n for n, d in op.inputs.items() if d.kind == "either")
    dtype = next((t for t in types if number_type(t).carrier.kind == "c" and not refused[t]), "")
    if not dtype or not either or len(either) == len(op.inputs) == 1:
        return True
    try:
        case = ordinary_case(op, dtype, real=either[-1:])
        arrays, statics = candidate.given(case)
    except (Declined, Broken):
        return True
    return candidate.judged_in(dtype).outcome(arrays, statics).status != "raised"
