"""A run of the judge on one target: every implementation in it, check by check."""

from __future__ import annotations

from collections.abc import Iterator

from refssm.conformance.judging.kept import keeping
from refssm.conformance.judging.result import Result
from refssm.conformance.running.settings import Session
from refssm.conformance.running.trial import Trial
from refssm.conformance.usage_error import UsageError


def trials_of(session: Session) -> list[Trial]:
    """One trial per judged implementation; UsageError if none has a requested type."""
    found = [Trial(session, offer) for offer in session.worker.found if offer.judged]
    if found and all(trial.scope.foreign for trial in found):
        raise UsageError(f"{found[0].op} is {found[0].scope.foreign}")
    return found


def results_of(session: Session) -> Iterator[Result]:
    """Judge every implementation in the target; yield each result at once."""
    with keeping(), session.spread(session) as session.source:
        for trial in trials_of(session):
            for result in trial.run():
                yield result
                if result.failed and session.settings.stop_at_failure:
                    return
