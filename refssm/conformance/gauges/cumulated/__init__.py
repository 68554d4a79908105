"""The second gauge: what programs by differences of cumulative sums over the whole row attain.

`FORMS` names the cumulated form of each operator with one decay per step, forward and VJP. Judged
programs that exceed the bounds of the reference, but not those of this form, get grade N, "right in
norm". The form is run on tracked arrays only if a result exceeds the first bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from refssm.conformance.gauges.cumulated import scan, selective, ssd
from refssm.conformance.gauges.gauge import Call, Gauges


class Form(NamedTuple):
    """The cumulated form of an operator and its VJP."""

    forward: Callable
    vjp: Callable


def _of(family, *names: str) -> dict[str, Form]:
    return {name: Form(getattr(family, name), getattr(family, f"{name}_vjp")) for name in names}


def _without_chunk(form: Form) -> Form:
    """The same function for every size of the chunks."""
    return Form(*(lambda *arrays, f=f, chunk: f(*arrays) for f in form))


_SSD = {
    "": Form(ssd.whole, ssd.whole_vjp),
    "_stateful": Form(ssd.stateful, ssd.stateful_vjp),
    "_packed": Form(ssd.packed, ssd.packed_vjp),
}
FORMS: dict[str, Form] = {
    **_of(scan, "linear_scan", "linear_scan_from", "linear_scan_packed"),
    **_of(scan, "diagonal_ssm_varying", "diagonal_ssm_varying_stateful"),
    **_of(selective, "selective_scan", "selective_scan_stateful", "selective_scan_packed"),
    **_of(selective, "mamba_scan", "mamba_scan_stateful", "mamba_scan_packed"),
    **{f"ssd_recurrent{of}": form for of, form in _SSD.items()},
    "ssd_quadratic": _SSD[""],
    **{f"ssd_chunked{of}": _without_chunk(form) for of, form in _SSD.items()},
}


@dataclass(frozen=True)
class _Run:
    """One run of a form on tracked arrays, for all outputs of a call."""

    call: Call
    form: Callable

    @cached_property
    def bounds(self) -> list[np.ndarray]:
        """K0 of each output."""
        return [gauge.k0 for gauge in self.call.tracked(self.form)]


def beside(call: Call, gauged: Gauges, *, of_vjp: bool) -> Gauges:
    """The gauges, each with its second one if the operator has a cumulated form."""
    form = FORMS.get(call.op.name)
    if form is None:
        return gauged
    run = _Run(call, form.vjp if of_vjp else form.forward)
    return tuple(replace(g, second=lambda j=j: run.bounds[j]) for j, g in enumerate(gauged))
