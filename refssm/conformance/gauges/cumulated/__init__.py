"""The second gauge: what programs by differences of cumulative sums over the whole row attain.

`FORMS` names the cumulated form of each operator with one decay per step, forward and VJP; for
short convolutions, the form by transforms, which is right in norm, too. Judged
programs that exceed the bounds of the reference, but not those of this form, get grade N, "right in
norm". The form is run on tracked arrays only if a result exceeds the first bounds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from refssm._declaration.adapted import through
from refssm._declaration.arguments import several
from refssm._declaration.recurrence import Recurrence
from refssm.conformance.gauges.cumulated.gated_linear import GatedLinear, ReadingFirst
from refssm.conformance.gauges.cumulated.gated_units import MinimalGated, RealGated
from refssm.conformance.gauges.cumulated.mamba2 import Mamba2Scans
from refssm.conformance.gauges.cumulated.mamba3 import TurnedSums
from refssm.conformance.gauges.cumulated.scan import Scans
from refssm.conformance.gauges.cumulated.selective import SelectiveScans
from refssm.conformance.gauges.cumulated.ssd import Dual
from refssm.conformance.gauges.cumulated.sums import CUMULATED, OF_TERMS, Way
from refssm.conformance.gauges.cumulated.transforms import Transformed
from refssm.conformance.gauges.cumulated.xlstm import Mlstm
from refssm.conformance.gauges.gauge import Cumulated, Gauges, TrackedCall
from refssm.gated_units.minimal_gated import MINIMAL_GATED
from refssm.gated_units.real_gated import REAL_GATED, UNSCALED_START
from refssm.linear_attention.chunked import GATED_LINEAR_CHUNKED
from refssm.linear_attention.gated_linear import GATED_LINEAR
from refssm.linear_attention.rwkv6 import RWKV6_RECURRENCE
from refssm.linear_attention.rwkv6_chunked import RWKV6_BY_CHUNKS
from refssm.mamba3 import MAMBA3_SISO_RECURRENCE
from refssm.scan.linear import LINEAR
from refssm.selective_scan.mamba import MAMBA
from refssm.selective_scan.selective import SELECTIVE
from refssm.ssd.chunked import CHUNKED
from refssm.ssd.mamba2 import MAMBA2
from refssm.ssd.recurrent import SSD
from refssm.xlstm import XLSTM, XLSTM_CHUNKED

RECURRENCES = (
    LINEAR,
    SELECTIVE,
    MAMBA,
    SSD,
    CHUNKED,
    MAMBA2,
    GATED_LINEAR,
    GATED_LINEAR_CHUNKED,
    RWKV6_RECURRENCE,
    RWKV6_BY_CHUNKS,
    REAL_GATED,
    UNSCALED_START,
    MINIMAL_GATED,
    XLSTM,
    XLSTM_CHUNKED,
    MAMBA3_SISO_RECURRENCE,
)
_SCANS = ("linear_scan", "linear_scan_from", "linear_scan_packed")
_VARYING = ("diagonal_ssm_varying", "diagonal_ssm_varying_stateful")
_SELECTIVE = tuple(
    f"{kind}_scan{of}" for kind in ("selective", "mamba") for of in ("", "_stateful", "_packed")
)


class Form(NamedTuple):
    """An operator and its VJP in one way."""

    forward: Callable
    vjp: Callable


def forms_of(way: Way) -> dict[str, Form]:
    """Each operator with one decay per step, and its VJP, in this way."""
    whole = _whole_rows(way)
    by_pieces = (_by_pieces(recurrence, whole) for recurrence in RECURRENCES)
    return whole | {name: form for forms in by_pieces for name, form in forms.items()}


def _by_pieces(recurrence: Recurrence, forms: Mapping[str, Form]) -> dict[str, Form]:
    """The forms that run piece by piece, from those from rest and from a state."""
    plain, stateful = (forms[op.name] for op in recurrence.operators[:2])
    timed = next(i for i, dims in enumerate(recurrence.operators[0].input_dims) if "l" in dims)

    def run(arguments, state, resets, **statics):
        if not arguments[timed].size:  # nothing is summed
            return recurrence.run(arguments, state, resets, **statics)
        if state is None:
            return several(plain.forward(*arguments, **statics))
        return several(stateful.forward(*arguments, *_parts(state), **statics))

    def back(cotangents, arguments, state, resets, **statics):
        if not arguments[timed].size:
            return recurrence.back(cotangents, arguments, state, resets, **statics)
        if state is None:
            return plain.vjp(*cotangents, *arguments, **statics)
        return stateful.vjp(*cotangents, *arguments, *_parts(state), **statics)

    return {name: Form(*pair) for name, pair in recurrence.by_pieces(run, back).items()}


def _parts(state) -> tuple:
    """A state of one part or several, as arguments."""
    return state if isinstance(state, tuple) else (state,)


def _whole_rows(way: Way) -> dict[str, Form]:
    """The forms over whole rows."""
    duals, keyed = _of_states(Dual(way)), _of_states(GatedLinear(way))
    gated = _of_states(Mlstm(way))
    first = _of_states(ReadingFirst(way))
    return {
        **{name: _form(Scans(way), name) for name in (*_SCANS, *_VARYING)},
        **{name: _form(SelectiveScans(way), name) for name in _SELECTIVE},
        **{f"ssd_recurrent{of}": form for of, form in duals.items()},
        "ssd_quadratic": duals[""],
        **{f"ssd_chunked{of}": _without_chunk(form) for of, form in duals.items()},
        **{f"gated_linear_recurrence{of}": form for of, form in keyed.items()},
        **{f"gated_linear_recurrence_chunked{of}": _without_chunk(f) for of, f in keyed.items()},
        **{f"rwkv6{of}": form for of, form in first.items()},
        **{f"rwkv6_chunked{of}": _without_chunk(form) for of, form in first.items()},
        **_of_units(way),
        **{f"mamba2_scan{of}": form for of, form in _of_states(Mamba2Scans(way)).items()},
        **{f"mamba3_siso{of}": form for of, form in _of_states(TurnedSums(way)).items()},
        **{f"mlstm{of}": form for of, form in gated.items()},
        **{f"mlstm_chunked{of}": form for of, form in gated.items()},
        "short_convolution": _form(Transformed(), "plain"),
        "short_convolution_stateful": _form(Transformed(), "stateful"),
        "causal_conv1d": _form(Transformed(), "activated"),
        "causal_conv1d_stateful": _form(Transformed(), "activated_stateful"),
    }


def _of_states(family) -> dict[str, Form]:
    """The forms from rest, from a state and packed, by the ends of their names."""
    names = {"": "whole", "_stateful": "stateful", "_packed": "packed"}
    return {of: _form(family, name) for of, name in names.items()}


def _of_units(way: Way) -> dict[str, Form]:
    """Those of gated units, whose forms from a state return all states."""
    families = {
        "rg_lru": RealGated(way),
        "rg_lru_unscaled_start": RealGated(way, unscaled=True),
        "min_gru": MinimalGated(way),
    }
    found = {
        f"{name}{of.replace('stateful', 'from')}": form
        for name, family in families.items()
        for of, form in _of_states(family).items()
    }
    found.pop("rg_lru_unscaled_start_from")  # that is `rg_lru_from`
    return found


def _form(family, name: str) -> Form:
    return Form(getattr(family, name), getattr(family, f"{name}_vjp"))


def _without_chunk(form: Form) -> Form:
    """The same function for every size of the chunks."""
    return Form(*(lambda *arrays, f=f, chunk: f(*arrays) for f in form))


FORMS = forms_of(CUMULATED)
_OF_TERMS = forms_of(OF_TERMS)


@dataclass(frozen=True)
class _FormRun:
    """One run of a form on tracked arrays, for all outputs of a call."""

    call: TrackedCall
    form: Callable

    @cached_property
    def bounds(self) -> list[np.ndarray]:
        """K0 of each output."""
        return [gauge.k0 for gauge in self.call.tracked(self.form)]


def beside(call: TrackedCall, gauged: Gauges, *, of_vjp: bool) -> Gauges:
    """The gauges, each with that of its cumulated form if the operator has a cumulated form."""
    if call.op.name not in FORMS:
        return gauged
    forms = (FORMS[call.op.name], _OF_TERMS[call.op.name])
    whole, terms = (
        _FormRun(call, through(call.op, form.vjp if of_vjp else form.forward, of_vjp))
        for form in forms
    )
    return tuple(
        replace(g, cumulated=Cumulated(lambda j=j: whole.bounds[j], lambda j=j: terms.bounds[j]))
        for j, g in enumerate(gauged)
    )
