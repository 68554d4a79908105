"""An implementation to be timed, and where the implementations of an operator come from.

Only what the judge accepts is timed: the verdict of a quick profile, once in a run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from refssm._declaration.implements import Declaration
from refssm._declaration.operator import PACKAGES, Operator
from refssm.conformance.calling.finding import every, sentence
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.calling.worker import Worker
from refssm.conformance.checks.checks import GRADIENT, VALUE, types_of
from refssm.conformance.judging.expected import remembering
from refssm.conformance.judging.result import Result
from refssm.conformance.report.lines import facts, word
from refssm.conformance.running.session import Trial
from refssm.conformance.running.settings import Session, Settings
from refssm.conformance.usage_error import UsageError
from refssm.subjects.libraries import KERNELS, MODULES, SUBJECTS, absent

PEERS = ("jax", "torch", "scipy")  # the libraries of --peers
LIBRARIES = (
    "numpy",
    "scipy",
    "numba",
    *PEERS[:2],
    "triton",
    *KERNELS,
)  # whose versions matter for a time
# beside the mirror on the GPU; each has the device that its functions are called on
ON_CARD = {
    "torch": (MODULES["torch"], "cuda"),
    "jax": (MODULES["jax"], "gpu"),
    **{library: (modules, "cuda") for library, modules in KERNELS.items()},
}
REFERENCE, MIRROR, PEER, YOURS = "reference", "mirror", "peer", "yours"
ON_GPU = "GPU mirror"


@dataclass(frozen=True, eq=False)
class Program:
    """One implementation of an operator."""

    label: str  # in tables: "mirror", "jax: lax_scan", "my_ops.py::linear_scan"
    kind: str  # REFERENCE, MIRROR, ON_GPU, PEER or YOURS
    target: str  # what a child process of the judge imports
    found: Found
    told: Mapping = field(default_factory=dict)  # what replaces parts of the declaration there

    @property
    def op(self) -> Operator:
        """Its operator."""
        return self.found.op

    @property
    def framework(self) -> str:
        """The framework of its arrays."""
        return self.found.declared.framework

    @property
    def library(self) -> str:
        """The library that is measured: numpy, numba, jax, torch, scipy."""
        usual = {REFERENCE: "numpy", MIRROR: "numba", ON_GPU: "cupy", YOURS: self.framework}
        return usual.get(self.kind) or self.label.partition(":")[0]

    @property
    def device(self) -> str:
        """ "cuda" if its arrays are on a card, else ""."""
        declared = self.found.declared
        kind = declared.device.partition(":")[0]
        there = self.kind == ON_GPU or declared.framework == "cupy" or kind in ("cuda", "gpu")
        return "cuda" if there else ""


@dataclass(frozen=True)
class Absent:
    """An implementation that cannot be had here, and why."""

    label: str
    message: str


def ours(op: Operator, device: str = "") -> Iterator[Program]:
    """The reference, and the mirrors that there are; with a device that on the GPU, too."""
    kinds = {"reference": REFERENCE, "jit": MIRROR} | ({"gpu": ON_GPU} if device else {})
    for role, kind in kinds.items():
        if role not in op.lacks:
            vjp = op.vjp(role) if op.differentiable else None
            forward = op.implementation(role)
            declared = getattr(forward, "__refssm__", Declaration())
            found = Found(op, forward, vjp, declared=declared)
            yield Program(kind, kind, f"{PACKAGES[role]}.{op.family}", found)


def peers(op: Operator, device: str = "") -> Iterator[Program | Absent]:
    """The plug-ins of other libraries that implement an operator, on the processor or the card."""
    usual = {library: (MODULES[library], "") for library in PEERS}
    for library, (modules, place) in (ON_CARD if device else usual).items():
        told = {"device": place} if place else {}
        for module in modules:
            target = f"{SUBJECTS}.{module}"
            if not _names(target, op.name):
                continue
            label = f"{library}: {module}"
            reason = absent(library)
            if reason:
                yield Absent(label, reason)
                continue
            try:
                found = [(own, f) for own, f in every(target, told) if f.op is op]
            except UsageError as error:
                yield Absent(label, sentence(error).removeprefix("UsageError: "))
                continue
            for own, f in found:
                yield Program(f"{library}: {own.rpartition('::')[2]}", PEER, own, f, told)


def declared_type(op: Operator, usual: str, own: Sequence[Program]) -> str:
    """The operator's usual type, or another one if the user's own implementations declare that."""
    types = [usual, *(t for t in types_of(op) if t != usual)]
    for program in own:
        declared = program.found.declared.dtypes
        types = [t for t in types if t in declared or not declared] or types
    return types[0]


def missing(device: str = "") -> list[str]:
    """A line for each library of the peers that is not installed."""
    return [reason for library in (ON_CARD if device else PEERS) if (reason := absent(library))]


def _names(target: str, name: str) -> bool:
    """True if a plug-in names an operator. Its text says so without an import of its library."""
    spec = find_spec(target)
    if spec is None or spec.origin is None:
        return False
    text = Path(spec.origin).read_text(encoding="utf-8")
    return f'"{name}"' in text or f"def {name}(" in text


def versions() -> dict[str, str]:
    """The version of each library that is installed."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


GRADIENTS = 5  # cases: the quick profile has none for gradients
TIMEOUT = 60.0


@dataclass(frozen=True)
class Judged:
    """Whether the judge accepts an implementation, and its line."""

    accepted: bool
    line: str
    sliced: bool = False  # it has no batch axes and is called slice by slice
    ratio: float = 0.0  # the largest error of the judge's cases, in units of u·K0
    bits: float = 0.0


class Judge:
    """The verdicts of one run, by implementation, type, and value or gradient."""

    def __init__(self, tick: Callable[[str, int, int], None] = lambda *what: None):
        self.tick = tick
        self.known: dict[tuple, Judged] = {}
        self.expected: dict = {}  # of one operator's cases, which are the same for all
        self.op = ""

    def verdict(self, program: Program, dtype: str, vjp: bool) -> Judged:
        """The verdict on the value, and for a VJP on the gradient, too."""
        value = self._of(program, dtype, False)
        if not value.accepted or not vjp:
            return value
        gradient = self._of(program, dtype, True)
        return replace(gradient, sliced=value.sliced)

    def _of(self, program: Program, dtype: str, vjp: bool) -> Judged:
        key = program.target, program.found.forward, dtype, vjp
        if key not in self.known:
            if self.op != program.op.name:
                self.op, self.expected = program.op.name, {}
            with remembering(self.expected):
                self.known[key] = self._judged(program, dtype, vjp)
        return self.known[key]

    def _judged(self, program: Program, dtype: str, vjp: bool) -> Judged:
        try:
            with _worker(program) as worker:
                results = list(_results(worker, program, dtype, vjp, self.tick))
        except UsageError as error:
            return Judged(False, str(error))
        bad = [r for r in results if r.verdict != "pass"]
        if bad or not results:
            return Judged(False, line(bad[0]) if bad else "the judge has no check for it")
        (first, *_) = results
        return Judged(True, line(first), first.sliced, first.ratio, first.bits)


def line(result: Result) -> str:
    """A result in one line, with what is wrong."""
    text = f"{word(result)} {result.id}: {facts(result)}"
    return f"{text}; {result.message}" if result.failed and result.message else text


def _results(worker, program, dtype, vjp, tick) -> Iterator[Result]:
    rule = GRADIENT if vjp else VALUE
    settings = Settings(
        profile="default" if vjp else "quick",
        cases=GRADIENTS if vjp else 0,
        types=(dtype,),
        only_checks=(rule.name,),
        shrink=False,
        folder=None,
        hints=False,
    )
    session = Session(worker, program.target, settings, tick=tick)
    for offer in worker.found:
        if offer.name == program.op.name and offer.judged:
            yield from Trial(session, offer).run()


@contextmanager
def _worker(program: Program) -> Iterator[InProcess | Worker]:
    """Our own code in this process; other people's in a child, which may crash or hang."""
    if program.kind in (REFERENCE, MIRROR, ON_GPU):
        yield InProcess([program.found])
    else:
        told = dict(program.told) or None
        with Worker(program.target, timeout=TIMEOUT, told=told) as worker:
            yield worker
