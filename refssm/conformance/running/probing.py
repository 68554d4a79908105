"""The first calls of an implementation: which types it accepts, and how it must be called."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import cache, cached_property

from refssm._declaration.layout import canonical, length, parse, sizes_of
from refssm.conformance.calling.calls.fitting import reordered
from refssm.conformance.calling.candidate import (
    OF_DEVICE,
    Candidate,
    FirstCall,
    accepts_mixed_kinds,
)
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.cases.case import Case, ordinary_case
from refssm.conformance.checks.beside_old import Beside
from refssm.conformance.judging.certificate import certify
from refssm.conformance.running.scope import Scope
from refssm.conformance.running.settings import Session
from refssm.conformance.usage_error import UsageError

SMALL_SIZES = (5, 3, 4, 2)
BLOCK_SIZES = (128, 16, 4, 2)  # for implementations that accept only whole blocks
certified = cache(certify)


class Probe:
    """Facts found before the checks, each once; another process may already have found them."""

    def __init__(self, session: Session, scope: Scope, candidate: Candidate):
        self.session, self.scope, self.candidate = session, scope, candidate
        self.learned = session.learned.get(scope.op.name)

    @cached_property
    def refused(self) -> dict[str, str]:
        """For each type, why it is not accepted, or ""."""
        if self.learned:
            self.candidate.sliced = self.learned.sliced
            return self.learned.refused
        self.session.tick(f"{self.scope.op}: the first calls", 0, 0)
        lacks = {t: why for t, why in self.scope.offer.lacks.items() if t in self.scope.types}
        there = [t for t in self.scope.types if t not in lacks]
        small, large = (self._ordinary(there, sizes) for sizes in (SMALL_SIZES, BLOCK_SIZES))
        return self.candidate.probe(small, large) | lacks

    @cached_property
    def accepted(self) -> list[str]:
        """The accepted types; if none is, the first type, so that the report shows its error."""
        there = [t for t in self.scope.types if t not in self.scope.offer.lacks]
        return [t for t in there if not self.refused[t]] or there[:1]

    @cached_property
    def misfit(self) -> str:
        """Why the declared layout does not fit, by the first calls; "" if it may.

        Either an output has other axes, or the calls in all types raise.
        """
        if self.learned:
            return self.learned.misfit
        if not (self.scope.offer.layout and self.accepted and self.candidate.firsts):
            return ""
        firsts = self.candidate.firsts
        first = firsts.get(self.accepted[0])
        if first and first.outcome.misfit:
            return first.outcome.message
        first, *_ = firsts.values()
        raised = all(f.outcome.status == "raised" for f in firsts.values())
        if not raised or first.outcome.message.startswith(OF_DEVICE):
            return ""
        told = f"{first.outcome.message}; in its layout {self._called(first.case)}"
        fits = self._fitting(first.case)
        return told + f"; a layout that fits: {fits} (tried: the shapes fit)" * bool(fits)

    def _fitting(self, case: Case) -> str:
        """The only layout, with the axes in another order, in which a call that raises returns the
        declared shapes; "" if there is none, or several."""
        layout = parse(self.scope.op, self.scope.offer.layout)
        arrays, statics = self.candidate.given(case)
        held, fits = self.candidate.judged_in(next(iter(self.candidate.firsts))), []
        for other in reordered(layout):
            outcome = held.outcome(arrays, statics, layout=str(other))
            if outcome.died:  # another try costs another process
                return ""
            fits += [other] * (outcome.status == "ok")
        return str(fits[0]) if len(fits) == 1 else ""

    def _called(self, case: Case) -> str:
        """The shapes of the arguments of a call, in the declared layout."""
        op, layout = self.scope.op, parse(self.scope.op, self.scope.offer.layout)
        arrays, statics = self.candidate.given(case)
        sizes = sizes_of(op, canonical(op).inputs, arrays, statics)
        named = zip(op.inputs, layout.inputs, strict=True)
        shapes = [f"`{name}` {tuple(length(x, sizes) for x in axes)}" for name, axes in named]
        return f"the arguments have the shapes {', '.join(shapes)}"

    def reason(self, dtype: str) -> str:
        """Why a type is not judged."""
        lacking = self.scope.offer.lacks.get(dtype)
        return lacking or f"{dtype} is not accepted: {self.refused.get(dtype, '')}"

    @cached_property
    def broken(self) -> list[str]:
        """Types whose first call is a failure: it ended the process, or the author declares them.

        If no type is accepted, the checks of the first one say so.
        """
        refused, firsts = self.refused, self.candidate.firsts
        killed = [t for t in firsts if firsts[t].killed]
        declared = [t for t in self.scope.offer.dtypes if refused.get(t)]
        there = [t for t in declared if t not in (*self.accepted, *self.scope.offer.lacks)]
        tried = [t for t in there if t in firsts or self.learned]
        return [t for t in self.scope.types if t in (*killed, *tried)]

    def first_call(self, dtype: str) -> FirstCall:
        """The first call in a type; made again if another process made it."""
        if dtype not in self.candidate.firsts:
            sizes = (SMALL_SIZES, BLOCK_SIZES)
            copy(self.candidate).probe(*(self._ordinary([dtype], each) for each in sizes))
        return self.candidate.firsts[dtype]

    @cached_property
    def mixed(self) -> bool:
        """True if real and complex arguments may be passed together."""
        if self.learned:
            return self.learned.mixed
        if self.scope.only_complex:
            return False
        return accepts_mixed_kinds(self.candidate, self.scope.types, self.refused)

    @cached_property
    def doubt(self) -> str:
        """Why refssm's reference cannot be trusted, or ""."""
        name = self.scope.op.name
        return self.learned.doubt if self.learned else certified(operator_named(name))

    @cached_property
    def older(self) -> Beside | None:
        """The older implementation of the same operator, for `--against`, or None."""
        worker, older = self.session.against, self.session.settings.older
        if worker is None:
            return None
        op = self.scope.op
        offer = next((o for o in worker.found if o.name == op.name), None)
        if offer is None:
            raise UsageError(f"--against {older}: it has no {op} to compare with")
        candidate = Candidate(op, worker, offer)
        candidate.probe(self._ordinary(self.accepted))
        return Beside(candidate, older)

    def _ordinary(self, types, sizes=SMALL_SIZES) -> Mapping:
        """One ordinary case in each type."""
        between = self.session.settings.where.sizes
        return {t: ordinary_case(self.scope.op, t, sizes, between=between) for t in types}
