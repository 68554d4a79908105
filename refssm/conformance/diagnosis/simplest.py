"""After Hypothesis' shrinking: make each array as simple as the failure allows, and describe it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from refssm.conformance.cases.case import Case
from refssm.conformance.cases.limits import may_hold
from refssm.domains import Domain

REDRAWS = 3
VANISHING = frozenset({"gaps", "impulse", "late"})


Arrays = list[np.ndarray]


def simplified(
    case: Case,
    arrays,
    fails: Callable[[Arrays], bool],
    admitted: Callable[[Arrays], Arrays | None] = lambda attempt: attempt,
):
    """Arrays replaced by zeros, ones, a constant or one entry, if the failure stays.

    Also the names of the arrays whose values do not matter: the failure stays for other draws of
    them. `admitted` returns an attempt as the implementation accepts it, or None.
    """
    arrays, anything = list(arrays), set()
    for i, (name, domain) in enumerate(case.op.inputs.items()):
        if _any_draw_fails(case, arrays, i, fails, admitted):
            anything.add(name)
        for simpler in _simpler(arrays[i]):
            if domain.kind == "offsets":
                break  # most of the simple arrays are no offsets
            if simpler.dtype.kind not in "bi":
                fitted = domain.fit(simpler) if domain.fit else simpler
                simpler = case.type.rounded(fitted, real=not np.iscomplexobj(simpler))
            zero = not (simpler.all() or may_vanish(domain))
            if zero or not may_hold(domain, simpler, arrays[i]):
                continue  # outside the domain, as a time step of 0, or outside `--where`
            if np.array_equal(simpler, arrays[i]):
                break  # those that follow are less simple
            attempt = admitted([*arrays[:i], simpler, *arrays[i + 1 :]])
            if attempt is None or all(map(np.array_equal, attempt, arrays)):
                continue
            if fails(attempt):
                arrays = attempt
                break
    return arrays, anything


def may_vanish(domain: Domain) -> bool:
    """True if the domain contains 0."""
    corner = np.zeros(1)
    zeros = (domain.draw(name, corner, corner, domain.real) == 0 for name in domain.maps)
    return not VANISHING.isdisjoint(domain.textures) or any(z.all() for z in zeros)


def _any_draw_fails(case, arrays, i, fails, admitted):
    for step in range(1, REDRAWS + 1):
        other = replace(case, seed=(case.seed + step * 7919) % 2**32).arrays[i]
        if other.shape != arrays[i].shape or np.array_equal(other, arrays[i]):
            return False
        attempt = admitted([*arrays[:i], other, *arrays[i + 1 :]])
        if attempt is None or not fails(attempt):
            return False
    return True


def _simpler(a):
    """Simpler arrays of the same shape and type, the simplest first."""
    yield np.zeros_like(a)
    yield np.ones_like(a)
    if a.size == 0:
        return
    for digits in (1, 2) if a.dtype.kind not in "bi" else ():
        constant = _few_digits(a.flat[0], digits)
        yield np.full_like(a, constant)
    largest = int(np.argmax(np.abs(a)))
    for place, number in ((0, 1), (0, a.flat[0]), (largest, a.flat[largest])):
        single = np.zeros_like(a)
        single.flat[place] = number
        yield single


def _few_digits(x, digits):
    """x rounded to few decimal digits, in each part."""
    if np.iscomplexobj(x):
        return complex(_few_digits(x.real, digits), _few_digits(x.imag, digits))
    return float(f"{float(x):.{digits - 1}e}")


def show(name: str, a: np.ndarray, anything: bool) -> str:
    """A few words on one argument; "other values fail too" if other draws of it fail too."""
    return _shown(name, a) + (" (other values fail too)" if anything and a.size else "")


def _shown(name: str, a: np.ndarray) -> str:
    """The values of an array, or what they have in common, in a few words."""
    if a.size and (a == a.flat[0]).all():
        return f"{name}={_number(a.flat[0])}" + (" throughout" if a.size > 1 else "")
    usual = np.sort(np.real(a), axis=None)[a.size // 2] if a.size else a.dtype.type(0)
    places = np.flatnonzero(~(a == usual))
    if places.size == 1 and a.size > 4:
        i = tuple(int(j) for j in np.unravel_index(places[0], a.shape))
        return f"{name}={_number(usual)} but {name}[{', '.join(map(str, i))}]={_number(a[i])}"
    if a.size <= 4:
        return f"{name}=[{', '.join(map(_number, a.ravel()))}]"
    return f"{name}: {a.size} numbers from {_number(a.flat[0])}"


def _number(x) -> str:
    if isinstance(x, np.bool_):
        return str(bool(x)).lower()
    x = x + 0.0  # turns −0 into 0
    if np.iscomplexobj(x):
        return _number(x.real) if x.imag == 0 else f"{x.real:.6g}{x.imag:+.6g}j"
    return f"{x:.6g}"
