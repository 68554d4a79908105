"""A failing call as a script that needs only NumPy, the author's module and the data file.

The record of a failure, saved with its inputs, from which it can be judged again.
"""

import json
import math
import os
from collections.abc import Mapping
from copy import copy
from dataclasses import asdict
from pathlib import Path
from string import Template

import numpy as np

from refssm._declaration.adapted import with_steps
from refssm._declaration.implements import FRAMEWORKS, KINDS, TYPES, Declaration
from refssm._declaration.layout import arranged, canonical
from refssm._declaration.operator import Operator
from refssm.conformance.calling.calls.run import CalledOnce, all_steps
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.finding import operator_named, short
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.links import switches
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import Case, Knob
from refssm.conformance.cases.ranges import Where, parse
from refssm.conformance.cases.stacking import free_arguments
from refssm.conformance.checks.checks import NAMES, Check
from refssm.conformance.diagnosis.transcript import Listening, SpokenCall, expected, graded
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.verdict import misfit, types_in
from refssm.conformance.number_types import judged_type, number_type
from refssm.conformance.standard import Standard
from refssm.conformance.usage_error import UsageError
from refssm.presets.catalog import preset_named

STORY = "__refssm__"  # the record's key in a file whose other keys are argument names
FORMAT = 1
KEYS = {"operator", "check", "dtype", "target", "as", "told", "where", "against", "case"}
KEYS |= {"seed", "profile"}
FRAMED = [("framework", name) for name in FRAMEWORKS]
LARGEST = 2**27  # the largest size of an argument to draw again


def story(check: Check, case: Case, by_arrays: bool, call: Mapping) -> dict:
    """The record: the check, how the function was called, and the case if arrays are not enough."""
    kept = {"format": FORMAT, "operator": check.op.name, "check": check.name, "dtype": check.dtype}
    drawn = {
        "sizes": dict(case.sizes),
        "batch": dict(case.batch),
        "knobs": {name: asdict(knob) for name, knob in case.knobs.items()},
        "seed": case.seed,
        "parameters": dict(case.parameters),
        "preset": case.preset.name if case.preset else "",
    }
    return {**kept, **call, "case": None if by_arrays else drawn}


def told(path: Path, given: Mapping[str, np.ndarray]) -> dict:
    """The record in a file; UsageError if there is none or it is invalid."""
    if STORY not in given:
        raise UsageError(f"{path} has no saved failure: judge its arrays by verify --inputs {path}")
    try:
        kept = json.loads(str(given[STORY][()]))
        if not isinstance(kept, dict) or kept.get("format") != FORMAT:
            raise ValueError("unknown format")
        absent = KEYS - set(kept)
        if absent:
            raise ValueError(f"{min(absent)!r} is missing")
        _doubted(kept)
        return kept
    except (ValueError, TypeError, IndexError, RecursionError) as error:
        why = short(f"{error}")
        raise UsageError(f"{path}: the saved failure cannot be read: {why}") from None


def _doubted(kept: Mapping) -> None:
    """Raise ValueError if a field of the record has a wrong type or value."""
    words = ("operator", "check", "dtype", "target", "as", "against", "profile")
    for key in words:
        if not isinstance(kept[key], str):
            raise ValueError(f"`{key}` is {kept[key]!r}, wanted a string")
    if kept["dtype"] not in TYPES or kept["check"] not in NAMES:
        raise ValueError(f"unknown check {kept['check']!r} in {kept['dtype']!r}")
    if not isinstance(kept["seed"], int):
        raise ValueError(f"`seed` is {kept['seed']!r}, wanted a whole number")
    where, told = kept["where"], kept["told"]
    if not (isinstance(where, list) and isinstance(told, dict)):
        raise ValueError("`told` or `where` has a wrong type")
    usual = told.get("usual", {})
    for key, value in [*told.items(), *(usual.items() if isinstance(usual, dict) else [("", "")])]:
        known = isinstance(value, KINDS.get(key, ())) or (key, value) in FRAMED
        if key != "usual" and not known:
            raise ValueError(f"`told` has an unknown {key}={value!r}")


def where_of(kept: Mapping, path: Path) -> Where:
    """The ranges of `--where` in the record."""
    try:
        if kept["as"]:
            operator_named(kept["as"])
        op = operator_named(str(kept["operator"]))
        # an adapter may have changed the arguments; the record does not have it
        return parse([str(text) for text in kept["where"]], [op, *with_steps(op)])
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def case_of(op: Operator, kept: Mapping, path: Path) -> Case:
    """The case of the record, drawn again; UsageError if that is impossible."""
    kind, drawn = number_type(str(kept["dtype"])), kept["case"] or {}
    try:
        sizes, batch = (
            {str(k): int(n) for k, n in drawn[name].items()} for name in ("sizes", "batch")
        )
        preset = preset_named(op, str(drawn.get("preset", "")))
        drawn_by_knobs = free_arguments(op, preset) if preset else op.inputs
        knobs = {name: Knob(**drawn["knobs"][name]) for name in drawn_by_knobs}
        case = Case(
            op,
            kind.carrier,
            sizes,
            batch,
            knobs,
            int(drawn["seed"]),
            kind if kind.half else None,
            dict(drawn["parameters"]),
            preset,
        )
        if math.prod(max(n, 1) for n in (*sizes.values(), *batch.values())) > LARGEST:
            raise ValueError("its sizes are larger than those of any case")
        op.sizes(*case.arrays, **case.statics)
    except (TypeError, LookupError, ValueError, AttributeError, ArithmeticError) as error:
        told = short(f"{type(error).__name__}: {error}")
        raise UsageError(f"{path}: the saved case cannot be generated again: {told}") from None
    return case


# per framework: import, conversion from NumPy, conversion to NumPy
GIVE = {
    "numpy": ("", "a.copy()", "np.asarray(y)"),
    "torch": (
        "import torch\n",
        "torch.from_numpy(a.copy()).to(DEVICE or 'cpu')",
        "y.detach().resolve_conj().cpu().numpy()",
    ),
    "jax": (
        "import jax\n\njax.config.update('jax_enable_x64', True)\n",
        "jax.device_put(a)",
        "np.asarray(y)",
    ),
    "cupy": ("import cupy\n", "cupy.asarray(a)", "cupy.asnumpy(y)"),
}
SCRIPT = Template('''"""$what

${before}python $name    NumPy and your module only; the exit code is 0 when the result is right.
"""

import importlib
import importlib.util
import pathlib
import sys

import numpy as np
$imports
HERE, TARGET, DEVICE = pathlib.Path(__file__).resolve().parent, $target, $device
if TARGET.endswith(".py"):
    path = (HERE / TARGET).resolve()
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
else:
    sys.path.insert(0, str(HERE.parent))
    module = importlib.import_module(TARGET)


def give(a):
    return $give


def take(y):
    return $take


data = np.load(HERE / $data)
arguments = [give(data[f"call/{i}"]) for i in range($arguments)]
returned = getattr(module, $function)(*arguments$statics)
for i, a in enumerate(arguments):
    if not np.array_equal(take(a), data[f"call/{i}"], equal_nan=True):
        sys.exit(f"the call wrote to its argument {i}")
if $several and not (isinstance(returned, (tuple, list)) and len(returned) == $returned):
    sys.exit("the call returned something else than a tuple of $returned outputs")
outputs = [take(y) for y in (returned if $several else [returned])]
bad = 0
for name, i, kinds, dtype in $outputs:
    y, want, allowed = outputs[i], data[f"want/{i}"], data[f"allowed/{i}"]
    if y.shape != want.shape:
        sys.exit(f"{name} has shape {y.shape}, want {want.shape}")
    if y.dtype.kind not in kinds or y.dtype.itemsize < np.dtype(dtype).itemsize:
        sys.exit(f"{name} has type {y.dtype}, want {dtype}")
    with np.errstate(all="ignore"):
        finite = np.isfinite(want)
        wrong = np.where(finite, ~(np.abs(y - want) <= allowed), np.isnan(y) != np.isnan(want))
        wrong |= ~finite & (np.isfinite(y) | (np.isinf(y) != np.isinf(want)))
    for place in np.argwhere(wrong)[:10]:
        at = tuple(int(k) for k in place)
        print(f"{name}{list(at)}: got {y[at]}, want {want[at]} ± {allowed[at]:.1e}")
    bad += int(wrong.sum())
    print(f"{name}: {int(wrong.sum())} of {wrong.size} entries are wrong")
sys.exit(bad > 0)
''')


def failing_call(
    check: Check, candidate: Candidate, case: Case, arrays, statics
) -> tuple[SpokenCall | None, bool]:
    """The first failing call of a check, and whether its arrays alone make it fail.

    The call is None if no call can be repeated by a script.
    """
    heard, by_arrays = copy(candidate), False
    listening = heard.worker = Listening(candidate.worker, candidate.op.name)
    try:
        if check.judge_arrays is not None:
            by_arrays = not check.judge_arrays(heard, arrays, statics).ok
        if not by_arrays:
            check.judge_case(heard, case)
    except (Broken, Declined):
        pass
    return _wrong_one(candidate, listening.calls), by_arrays


def _wrong_one(candidate: Candidate, calls: list[SpokenCall]) -> SpokenCall | None:
    """The first failing call that a script can repeat, or None."""
    return next((call for call in calls if _shown(call) and _refused(candidate, call)), None)


def _shown(call: SpokenCall) -> bool:
    """True if a script can repeat the call: it ends, and needs no views and no other call."""
    alone = not call.view and call.after is None
    return alone and call.outcome.status not in ("declined", "hung")


def _refused(candidate: Candidate, call: SpokenCall) -> bool:
    """True if the call failed or its result is out of tolerance."""
    op, outcome = candidate.op, call.outcome
    try:
        op.output_shapes(*call.arguments[call.vjp * len(op.outputs) :], **call.statics)
    except ValueError:  # inconsistent sizes, as of check `shapes`, should raise
        return False
    if outcome.status != "ok" or outcome.changed or _unfit(candidate, call):
        return True
    return not graded(candidate, call, outcome.outputs, expected(candidate, call)).ok


def _unfit(candidate: Candidate, call: SpokenCall) -> bool:
    """True if an output is not an array, or has a wrong shape or type."""
    outputs = call.outcome.outputs
    right, types = expected(candidate, call), _types(candidate, call)
    if len(outputs) != len(right):
        return True
    either = not call.vjp and any(t.kind == "c" for t in types)
    return any(
        misfit(y, g.value.shape, dtype, "", either)
        for y, g, dtype in zip(outputs, right, types, strict=True)
    )


def _types(candidate: Candidate, call: SpokenCall) -> tuple[np.dtype, ...]:
    """The types of the outputs, or of the gradients."""
    op = candidate.op
    if not call.vjp:
        return types_in(op, call.arguments, candidate.standard)
    precision = np.dtype(judged_type(call.arguments))
    arrays = zip(op.inputs, call.arguments[len(op.outputs) :], strict=True)
    kinds = [np.iscomplexobj(a) for name, a in arrays if name not in op.discrete]
    return tuple(precision if kind else np.finfo(precision).dtype for kind in kinds)


def script(
    candidate: Candidate, call: SpokenCall, what: str, kept: Mapping, data: str, name: str
) -> tuple[str, dict[str, np.ndarray]] | None:
    """The text of the script and its arrays; None if a script could not make the same call."""
    op, offer = candidate.op, candidate.offer
    function = offer.functions[call.vjp]
    measured = op.contract.judges_whole_matrices and not call.vjp
    loops = candidate.sliced or offer.loops
    half = number_type(kept["dtype"]).half
    unasked = offer.layout and call.outcome.status == "malformed"  # maybe never called
    if not function.isidentifier() or measured or half or (loops and call.vjp) or unasked:
        return None
    declared = Declaration(op.name, layout=offer.layout, adapters=offer.adapters)
    run = CalledOnce(
        Found(op, print, None, declared=declared), number_type(kept["dtype"]), call.vjp, loops
    )
    given = run.entering(call.arguments, call.statics)
    standard = candidate.standard or Standard.of(kept["dtype"])
    types, fits = _types(candidate, call), not _unfit(candidate, call)
    came = [y.dtype for y in call.outcome.outputs] if fits else types
    gauged = zip(expected(candidate, call), came, strict=True)
    wants = [_told(run, i, g, standard, dtype) for i, (g, dtype) in enumerate(gauged)]
    if loops and not fits:
        return None
    if loops:
        given, wants = _one_slice(run, given, wants, call)
    imports, give, take = GIVE[offer.framework]
    saved = {f"call/{i}": a for i, a in enumerate(given)}
    for i, (want, allowed) in zip(run.asked, wants, strict=True):
        saved |= {f"want/{i}": want, f"allowed/{i}": allowed}
    target, _, _ = kept["target"].partition("::")
    target = target if target.endswith(".py") else target.partition(":")[0]
    either = not call.vjp and any(t.kind == "c" for t in types)
    kinds = ["fc" if either and t.kind == "f" else t.kind for t in types]
    text = SCRIPT.substitute(
        what=_within_quotes(what),
        before=f"{switches()} ".lstrip(),
        name=name,
        imports=imports,
        target=repr(
            os.path.relpath(target, Path(name).parent) if target.endswith(".py") else target
        ),
        device=repr(kept["told"].get("device", "")),
        give=give,
        take=take,
        data=repr(data),
        arguments=len(given),
        function=repr(function),
        statics="".join(f", {k}={v}" for k, v in _keywords(candidate, call).items()),
        several=run.returned > 1 or call.vjp,
        returned=run.returned,
        outputs=repr([*zip(run.names, run.asked, kinds, map(str, types), strict=True)]),
    )
    return text, saved


def _keywords(candidate: Candidate, call: SpokenCall) -> dict[str, str]:
    """The keyword arguments as text; where the function takes lengths of rows, all steps."""
    op, told = candidate.op, {name: repr(value) for name, value in call.statics.items()}
    if name := candidate.offer.lengths:
        arrays = call.arguments[call.vjp * len(op.outputs) :]
        rows, steps = all_steps(op, arrays, call.statics)
        told[name] = f"give(np.full({rows}, {steps}))"
    return told


def _within_quotes(what: str) -> str:
    """The message with characters escaped, as part of a docstring."""
    plain = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in what)
    return plain.replace("\\", "\\\\").replace('"', "'")


def _told(run, i, gauge: Gauge, standard: Standard, dtype) -> tuple[np.ndarray, np.ndarray]:
    """The expected output and its tolerance, with axes in the author's layout."""
    size = np.maximum(np.abs(gauge.value), standard.type.tiny)
    k = np.fmax(gauge.k0, np.where(np.isfinite(gauge.k1), gauge.k1, gauge.k0))
    allowed = standard.room * standard.u * k + standard.u_out(dtype) * size
    want = gauge.value
    if run.layout is None:
        return want, allowed.astype(float)
    wanted = (*run.looped(run.answers[i]), *run.answer_axes[i])
    usual = run.answers[i][len(run.answers[i]) - want.ndim :]
    return arranged(want, usual, wanted), arranged(allowed.astype(float), usual, wanted)


def _one_slice(run, given, wants, call: SpokenCall):
    """The arguments and outputs of the slice that has the worst entry of any output."""
    outputs = run.answer_axes if run.layout else run.found.op.output_dims
    ranks = [len(axes) for axes in outputs]
    worst, i = -1.0, (0,) * (wants[0][0].ndim - ranks[0])
    for j, (y, (want, allowed)) in enumerate(zip(call.outcome.outputs, wants, strict=True)):
        if not want.size:  # of a length of 0
            continue
        if run.layout is not None:
            usual = canonical(run.found.op).outputs[j]
            y = arranged(y, usual[len(usual) - y.ndim :], (*run.looped(usual), *run.answer_axes[j]))
        with np.errstate(all="ignore"):
            far = np.nan_to_num(np.abs(y - want) / allowed, nan=np.inf, posinf=np.inf)
        if far.max() > worst:
            place = np.unravel_index(int(np.argmax(far)), far.shape)
            worst, i = far.max(), tuple(map(int, place))[: want.ndim - ranks[j]]
    parts = []
    for x, rank in zip(given, run.ranks, strict=True):
        shape = x.shape[: x.ndim - rank]
        place = tuple(
            0 if n == 1 else j for n, j in zip(shape, i[len(i) - len(shape) :], strict=True)
        )
        parts.append(x[place])
    return parts, [(w[i], a[i]) for w, a in wants]
