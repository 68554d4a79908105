"""Call an implementation once and describe the outcome, in the child or in this process."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import numpy as np

from refssm.conformance.calling.calls.earlier import Earlier
from refssm.conformance.calling.calls.run import KernelFailed, Misfit, Run, WrongOutputs
from refssm.conformance.calling.finding import sentence, short
from refssm.conformance.calling.implementation import Found
from refssm.conformance.number_types import number_type

LOST = ("crashed", "hung")  # statuses of a call that ended its process
EARLIER = -1  # in `aliased`: the output of an earlier call
REWRITTEN = -2  # there: the numbers of that output, which a later call changed


class Declined(Exception):
    """The implementation does not support this case."""


class Unanswered(BaseException):
    """No exception of an author's: a call elsewhere, as of a program, gave no result."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one call. status: ok, declined, malformed, raised, crashed or hung."""

    status: str
    outputs: tuple = ()
    message: str = ""
    changed: tuple[int, ...] = ()  # arguments that the call wrote to
    aliased: tuple[int, ...] = ()  # arguments whose memory an output shares
    notes: tuple[str, ...] = field(default=())
    misfit: bool = False  # malformed, because the declared layout does not fit

    @property
    def died(self) -> bool:
        """True if the call ended its process, or did not return."""
        return self.status in LOST


def call(
    found: Found,
    arrays,
    statics,
    *,
    dtype="",
    vjp=False,
    sliced=False,
    view="",
    after=None,
    late=False,
    layout="",
) -> Outcome:
    """Call an implementation on views of `arrays`: NumPy outputs, or an error as one sentence.

    With `after` it is first called with these values, and `arrays` are then written into the same
    arguments; the outputs of earlier calls must stay as they are. With `late` the arguments are
    written late, on another stream than the default one. `layout` stands in place of the declared
    one.
    """
    if layout:
        found = replace(found, declared=replace(found.declared, layout=layout))
    made, kind = found.adapter, number_type(dtype or np.result_type(*(arrays or [float])))
    run = Run(found, kind, vjp, sliced)
    try:
        with made.inside(kind), np.errstate(all="ignore"):
            given = [made.give(a, kind, view) for a in run.entering(arrays, statics)]
            before = [made.copied(x) for x in given]
            made.finish()  # what fails after this is work of the call
            earlier = Earlier(run)
            if after is not None:
                given = earlier.calls(run.entering(after, statics), before, statics)
            with made.behind(given) if late else nullcontext(given) as given:
                outputs, taken = run.outputs(given, statics)
            written = _written(run, given, before)
            touched = [EARLIER] * earlier.shared_with(outputs) or [REWRITTEN] * earlier.changed()
    except NotImplementedError as error:
        return Outcome("declined", message=sentence(error))
    except WrongOutputs as error:
        return Outcome("malformed", message=str(error))
    except (KeyboardInterrupt, Unanswered):
        raise
    except BaseException as error:  # the author's, of any class
        return _failed(made, error)
    try:
        answer = run.leaving(taken, arrays, statics)
    except WrongOutputs as error:
        return Outcome("malformed", message=str(error), misfit=isinstance(error, Misfit))
    aliased = [i for i, x in enumerate(given) if any(made.share(x, y) for y in outputs)]
    return Outcome("ok", answer, changed=written, aliased=tuple(aliased or touched))


def _written(run, given, before) -> tuple[int, ...]:
    """The arguments that differ from their copies `before` the call, or were written to."""
    pairs = enumerate(zip(given, before, strict=True))
    return tuple(i for i, (x, y) in pairs if i in run.touched or not run.made.same(x, y))


def _failed(made, error: BaseException) -> Outcome:
    """The outcome of a call that raised, or whose work on a device failed."""
    queued = isinstance(error, KernelFailed)
    cause = error.__cause__ if queued else error
    if made.ran_out(cause):
        return Outcome("raised", message=f"ran out of the device's memory: {short(f'{cause}')}")
    told = f"raised {sentence(error)}"
    if queued:
        first = next(iter(f"{cause}".splitlines()), "")
        told = f"launched a kernel that failed: {short(first)}"
    if made.lost():
        return Outcome("crashed", message=f"{told}; this process can no longer use the device")
    return Outcome("raised", message=told)
