"""An implementation to be timed, and where the implementations of an operator come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from refssm._operator import PACKAGES, Operator
from refssm.conformance.calling.finding import find, sentence
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.libraries import MODULES, SUBJECTS, absent
from refssm.conformance.usage_error import UsageError

PEERS = ("jax", "torch", "scipy")  # the libraries of --peers
LIBRARIES = ("numpy", "scipy", "numba", *PEERS[:2])  # whose versions matter for a time
REFERENCE, MIRROR, PEER, YOURS = "reference", "mirror", "peer", "yours"


@dataclass(frozen=True, eq=False)
class Program:
    """One implementation of an operator."""

    label: str  # in tables: "mirror", "jax: jax_scan", "my_ops.py::linear_scan"
    kind: str  # REFERENCE, MIRROR, PEER or YOURS
    target: str  # what a child process of the judge imports
    found: Found

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
        usual = {REFERENCE: "numpy", MIRROR: "numba", YOURS: self.framework}
        return usual.get(self.kind) or self.label.partition(":")[0]


@dataclass(frozen=True)
class Absent:
    """An implementation that cannot be had here, and why."""

    label: str
    message: str


def ours(op: Operator) -> Iterator[Program]:
    """The reference, and the mirror if there is one."""
    for role, kind in (("reference", REFERENCE), ("jit", MIRROR)):
        if role not in op.lacks:
            vjp = op.vjp(role) if op.differentiable else None
            found = Found(op, op.implementation(role), vjp)
            yield Program(kind, kind, f"{PACKAGES[role]}.{op.family}", found)


def peers(op: Operator) -> Iterator[Program | Absent]:
    """The plug-ins of other libraries that implement an operator."""
    for library in PEERS:
        for module in MODULES[library]:
            target = f"{SUBJECTS}.{module}"
            if not _names(target, op.name):
                continue
            label = f"{library}: {module}"
            reason = absent(library)
            if reason:
                yield Absent(label, reason)
                continue
            try:
                found = [f for f in find(target) if f.op is op]
            except UsageError as error:
                yield Absent(label, sentence(error).removeprefix("UsageError: "))
                continue
            yield from (Program(label, PEER, target, f) for f in found)


def missing() -> list[str]:
    """A line for each library of the peers that is not installed."""
    return [reason for library in PEERS if (reason := absent(library))]


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
