"""Judge a saved failure again: by the same check, on the same arrays or the same case."""

import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from refssm.conformance.calling.candidate import Broken
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.diagnosis.script import case_of
from refssm.conformance.judging.certificate import certified
from refssm.conformance.judging.result import Result
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.running.own_arrays import arguments
from refssm.conformance.running.own_faults import fault, guarded
from refssm.conformance.running.session import Trial, trials_of
from refssm.conformance.running.settings import Session
from refssm.conformance.usage_error import UsageError


def again(session: Session, path: Path, given: Mapping[str, np.ndarray], kept: Mapping) -> Result:
    """The result of the same check; UsageError if the target lacks the operator or the check."""
    name, dtype = kept["operator"], kept["dtype"]
    trial = next((t for t in trials_of(session) if t.op.name == name), None)
    if trial is None:
        raise UsageError(f"{session.target} has no {name} to replay {path} with")
    if trial.offer.absent:
        raise UsageError(trial.offer.absent)
    assert trial.probe.accepted  # the probe finds out how to call it
    check = next((c for c in trial.checks([dtype]) if c.name == kept["check"]), None)
    if check is None:
        raise UsageError(f"{session.target} has no {name}/{kept['check']}[{dtype}] to replay")
    started, doubt = time.perf_counter(), certified(trial.op)
    if doubt:
        verdict = Verdict("F", np.inf, 0.0, f"not judged: {doubt}", error=True)
    else:
        verdict = guarded(lambda: _verdict(trial, check, path, given, kept), fault)
    return trial.wording.judged(check, verdict, started, hint=f"inputs: {path}")


def _verdict(trial: Trial, check, path: Path, given, kept) -> Verdict:
    candidate = trial.candidate.judged_in(check.dtype)
    try:
        if kept["case"] is not None:
            return check.judge_case(candidate, case_of(trial.op, kept, path))
        arrays, statics, _ = arguments(trial.op, given, path, (check.dtype,))
        return check.judge_arrays(candidate, *candidate.narrowed(arrays, statics))
    except Declined:
        return Verdict("-", notes=("the implementation declined these inputs",))
    except Broken as broken:
        return broken.verdict
    except np.linalg.LinAlgError as error:  # the reference fails
        raise UsageError(f"{path}: {error}") from None
