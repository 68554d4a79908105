"""A failing call as a script of its own: NumPy, the author's module, and the file beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from string import Template

import numpy as np

from refssm._contract import Contract
from refssm.conformance.calling import Run
from refssm.conformance.candidate import Broken, Candidate
from refssm.conformance.cases import Case
from refssm.conformance.checks import Check
from refssm.conformance.diagnosis.suspects import expected, graded
from refssm.conformance.diagnosis.transcript import Call, Listening
from refssm.conformance.found import Found
from refssm.conformance.gauge import Gauge
from refssm.conformance.layout import arranged, canonical
from refssm.conformance.standard import Standard, number_type
from refssm.conformance.sweep import Declined
from refssm.testing import Declaration

# how a framework's arrays are made of NumPy's, and back
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

python $name    NumPy and your module only; the exit code is 1 while the result is wrong.
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
outputs = [take(y) for y in (returned if isinstance(returned, (tuple, list)) else [returned])]
bad = 0
for name, i in $outputs:
    y, want, allowed = outputs[i], data[f"want/{i}"], data[f"allowed/{i}"]
    if y.shape != want.shape:
        sys.exit(f"{name} has shape {y.shape}, want {want.shape}")
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
) -> tuple[Call | None, bool]:
    """The first call that does not give what it should; whether its arrays alone make it fail."""
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


def _wrong_one(candidate: Candidate, calls: list[Call]) -> Call | None:
    """The first of the calls with a result that the judge refuses."""
    for call in calls:
        if call.outcome.status == "ok" and not call.view:
            right = expected(candidate, call)
            outputs = call.outcome.outputs
            fits = len(right) == len(outputs) and all(
                isinstance(y, np.ndarray) and y.dtype.kind in "fc" and y.shape == g.value.shape
                for y, g in zip(outputs, right, strict=True)
            )
            if fits and not graded(candidate, call, outputs, right).ok:
                return call
    return None


def script(
    candidate: Candidate, call: Call, what: str, kept: Mapping, data: str, name: str
) -> tuple[str, dict[str, np.ndarray]] | None:
    """The text of the script and the arrays it needs; None where it would not be the same call."""
    op, offer = candidate.op, candidate.offer
    function = offer.functions[call.vjp]
    measured = op.contract in (Contract.INVARIANTS, Contract.SOLVE, Contract.EXPM) and not call.vjp
    loops = candidate.sliced or offer.loops
    half = number_type(kept["dtype"]).half
    if not function.isidentifier() or measured or half or (loops and call.vjp):
        return None
    declared = Declaration(op.name, layout=offer.layout)
    run = Run(
        Found(op, print, None, declared=declared), number_type(kept["dtype"]), call.vjp, loops
    )
    given = run.entering(call.arguments)
    gauged = expected(candidate, call)
    held = candidate.held or Standard.of(kept["dtype"])
    wants = [_told(run, i, g, held, y) for i, (g, y) in enumerate(_pairs(gauged, call))]
    if loops:
        given, wants = _one_slice(run, given, wants, call)
    imports, give, take = GIVE[offer.framework]
    saved = {f"call/{i}": a for i, a in enumerate(given)}
    for i, (want, allowed) in zip(run.asked, wants, strict=True):
        saved |= {f"want/{i}": want, f"allowed/{i}": allowed}
    target, _, _ = kept["target"].partition("::")
    target = target if target.endswith(".py") else target.partition(":")[0]
    text = SCRIPT.substitute(
        what=what,
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
        statics="".join(f", {k}={v!r}" for k, v in call.statics.items()),
        outputs=repr(list(zip(run.names, run.asked, strict=True))),
    )
    return text, saved


def _pairs(gauged, call: Call):
    return zip(gauged, call.outcome.outputs, strict=True)


def _told(run, i, gauge: Gauge, held: Standard, y) -> tuple[np.ndarray, np.ndarray]:
    """What is right, and how far a result may be from it, in the author's axes."""
    size = np.maximum(np.abs(gauge.value), held.type.tiny)
    k = np.fmax(gauge.k0, np.where(np.isfinite(gauge.k1), gauge.k1, gauge.k0))
    allowed = held.room * held.u * k + held.u_out(y.dtype) * size
    want = gauge.value
    if run.layout is None:
        return want, allowed.astype(float)
    wanted = (*run.looped(run.answers[i]), *run.answer_axes[i])
    usual = run.answers[i][len(run.answers[i]) - want.ndim :]
    return arranged(want, usual, wanted), arranged(allowed.astype(float), usual, wanted)


def _one_slice(run, given, wants, call: Call):
    """The slice with the worst entry, of everything."""
    layout = run.layout
    ranks = [len(axes) for axes in (run.answer_axes if layout else run.found.op.output_dims)]
    want, _ = wants[0]
    lead = want.ndim - ranks[0]
    y = call.outcome.outputs[0]
    if layout is not None:
        usual = canonical(run.found.op).outputs[0]
        y = arranged(y, usual[len(usual) - y.ndim :], (*run.looped(usual), *run.answer_axes[0]))
    with np.errstate(all="ignore"):
        far = np.nan_to_num(np.abs(y - want) / wants[0][1], nan=np.inf, posinf=np.inf)
    i = tuple(int(k) for k in np.unravel_index(int(np.argmax(far)), far.shape))[:lead]
    parts = []
    for x, rank in zip(given, run.ranks, strict=True):
        shape = x.shape[: x.ndim - rank]
        place = tuple(
            0 if n == 1 else j for n, j in zip(shape, i[len(i) - len(shape) :], strict=True)
        )
        parts.append(x[place])
    return parts, [(w[i], a[i]) for w, a in wants]
