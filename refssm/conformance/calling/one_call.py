"""One call of an implementation, or one question to its `only`: what came of it.

A child process makes them, or this process (`InProcess`).
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.calling.calls.earlier import Earlier
from refssm.conformance.calling.calls.run import CalledOnce, KernelFailed, Misfit, WrongOutputs
from refssm.conformance.calling.finding import sentence, short
from refssm.conformance.calling.implementation import Found
from refssm.conformance.number_types import judged_type, number_type

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
    lengths=None,
) -> Outcome:
    """Call an implementation on views of `arrays`: NumPy outputs, or an error as one sentence.

    With `after` it is first called with these values, and `arrays` are then written into the same
    arguments; the outputs of earlier calls must stay as they are. With `late` the arguments are
    written late, on another stream than the default one. `layout` stands in place of the declared
    one. `lengths` has the steps of each row, if they are not those of the arrays.
    """
    if layout:
        found = replace(found, declared=replace(found.declared, layout=layout))
    made, kind = found.adapter, number_type(dtype or judged_type(arrays))
    run = CalledOnce(found, kind, vjp, sliced)
    try:
        with made.inside(kind), np.errstate(all="ignore"):
            given = [made.give(a, kind, view) for a in run.entering(arrays, statics)]
            run.give_lengths(arrays, statics, lengths)
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


UNSTEADY = "unsteady"  # the status of an `only` that cannot be relied on

Kept = tuple[list[np.ndarray], dict] | None  # arrays and keyword arguments; None if declined


def narrowed(only: Callable, op: Operator, arrays, statics) -> Kept | Outcome:
    """A case as `only` returns it, None if it declines, or an Outcome if it cannot be used.

    `only` is asked three times: the same case must give the same answer, and a case that it
    returned must come back unchanged. Else the cases of a report would not be those of the calls.
    The sizes of what it returns must agree, if those of the case do: the check `shapes` asks for
    others.
    """
    names = list(op.inputs)
    try:
        kept, again = (_asked(only, names, arrays, statics) for _ in range(2))
        differ = _difference(names, kept, again)
        if differ:
            told = f"`only` must give the same answer whenever it is asked; {differ} differs"
            return Outcome(UNSTEADY, message=told)
        if kept is None:
            return None
        disagree = _disagreement(op, *kept)
        if disagree and not _disagreement(op, arrays, statics):
            told = f"`only` must return the arguments of one call: {disagree}"
            return Outcome(UNSTEADY, message=told)
        ordinary = all(a.dtype.kind in "bi" or np.isfinite(a).all() for a in kept[0])
        # what clips or symmetrizes a NaN need not do it twice alike
        differ = _difference(names, kept, _asked(only, names, *kept)) if ordinary else ""
    except Exception as error:
        return Outcome("raised", message=f"raised {sentence(error)}")
    if differ:
        told = "`only` must not change a case that it has returned, nor decline it; asked with its"
        return Outcome(UNSTEADY, message=f"{told} own result, {differ} differs")
    return kept


def narrowed_by(found: Found, arrays, statics) -> Kept | Outcome:
    """A case as the `only` of an implementation returns it: see `narrowed`."""
    assert found.declared.only is not None
    return narrowed(found.declared.only, found.op, arrays, statics)


def _asked(only: Callable, names: list[str], arrays, statics: dict) -> Kept:
    """One answer; `only` may write into its copies."""
    given = dict(zip(names, (np.array(a) for a in arrays), strict=True)) | statics
    kept = only(given)
    if kept is None:
        return None
    told = {name: _alike(kept.get(name, n), n) for name, n in statics.items()}
    return [np.asarray(kept[name]) for name in names], told


def _alike(number, given):
    """`number` as an int if `given` is an int and the value is whole, else as a float."""
    whole = isinstance(given, int | np.integer) and number == int(number)
    return int(number) if whole else float(number)


def _disagreement(op: Operator, arrays, statics: dict) -> str:
    """Why these cannot be the arguments of one call, or ""."""
    try:
        op.sizes(*arrays, **statics)
    except ValueError as error:
        return str(error).removeprefix(f"{op}: ")
    return ""


def _difference(names: list[str], one: Kept, other: Kept) -> str:
    """The first argument that differs, as text, or ""; "whether it declines" if one is None."""
    if one is None or other is None:
        return "" if one is other else "whether it declines"
    for name, a, b in zip(names, one[0], other[0], strict=True):
        inexact = a.dtype.kind in "fc" and b.dtype.kind in "fc"
        if a.dtype != b.dtype or not np.array_equal(a, b, equal_nan=inexact):
            return f"`{name}`"
    return next((f"`{name}`" for name in one[1] if one[1][name] != other[1][name]), "")


class Closed(AbstractContextManager):
    """Is closed at the end of a `with` block."""

    def close(self) -> None:
        """Nothing to close."""

    def __exit__(self, *exception):
        self.close()


class InProcess(Closed):
    """The interface of `Worker` without a child, for debuggers; saves inputs before each call."""

    def __init__(self, found: Iterable[Found], folder: Path | None = None):
        self._named, self._folder = {f.op.name: f for f in found}, folder
        self.found = [f.offer for f in self._named.values()]

    def call(self, name: str, arrays, statics, **how) -> Outcome:
        """Save the inputs and call the implementation in this process."""
        if self._folder is not None:
            numbered = {f"arg{i}": a for i, a in enumerate(arrays)}
            with suppress(OSError):  # a full disk: the call is judged all the same
                self._folder.mkdir(exist_ok=True)
                np.savez(self._folder / f"{name}-last.npz", **numbered)  # pyright: ignore[reportArgumentType]
        return call(self._named[name], [a.copy() for a in arrays], statics, **how)

    def narrow(self, name: str, arrays, statics):
        """Project a case by the implementation's `only`."""
        return narrowed_by(self._named[name], [a.copy() for a in arrays], statics)
