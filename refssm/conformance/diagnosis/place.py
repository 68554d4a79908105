"""The outputs of a failing call that have wrong entries, and where these are."""

from math import gcd

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.standard import Standard

BLOCK = 8  # block lengths must be multiples of this
SEVERAL = 3  # cases, and entries of an axis, that show which ones are wrong
FEW = 4  # at least so many wrong entries are needed to see a pattern


class Wrong:
    """One output of one failing call: its value, the expected one, and which entries are wrong."""

    def __init__(self, y, gauge: Gauge, standard: Standard, name: str, dims):
        self.y, self.want, self.name, self.dims = y, gauge.value, name, dims
        with np.errstate(all="ignore"):
            self.error = np.abs(y - gauge.value).astype(float)
            size = np.maximum(np.abs(gauge.value).astype(float), standard.type.tiny)
            self.k = np.maximum(gauge.k0, size)
            # for arguments rounded to fewer bits; k where k1 is infinite
            k1 = gauge.k1 if gauge.derived_k1 is None else gauge.derived_k1
            self.k1 = np.where(np.isfinite(k1), np.maximum(k1, size), self.k)
            self.bad = ~(self.error <= standard.room * standard.u * self.k + standard.u * size)
        self.judged = np.isfinite(gauge.value) & np.isfinite(gauge.k0)
        self.bad &= self.judged
        self.room = standard.room * standard.u

    def allowed(self, other) -> np.ndarray:
        """The tolerance of an output whose expected value is `other`, a multiple of `want`."""
        usual, size = (
            np.max(np.abs(a), where=self.judged, initial=0.0) for a in (self.want, other)
        )
        more = max(1.0, float(size / usual)) if usual else 1.0
        return self.room * np.maximum(self.k * more, np.abs(other))


def leading(w: Wrong) -> int | None:
    """The axis of time, counted from the end, or None."""
    return w.dims.index("l") - len(w.dims) if "l" in w.dims else None


def place_of(wrong: list[Wrong], right: list[Wrong], op: Operator, vjp: bool) -> str:
    """Text on where errors are along time or another axis, if the same in all cases; else "".

    `right` are outputs of cases that pass.
    """
    timed = [w for w in wrong if leading(w) is not None and w.y.shape[leading(w)] > 1]
    along = [_along(w, leading(w)) for w in timed]
    if timed and len(timed) == len(wrong):
        if _of_transform(op) and _second_half(along):
            return "only the second half is wrong: half of a spectrum, or a convolution that wraps"
        if block := _block(along, _longest(right), "state" in op.traits):
            return block
        if _only_last_step(along):
            return "only the last step is wrong"
    if vjp and "state" in op.traits and (back := _carried_back(along)):
        return back
    for name in _channels(wrong):
        text = _channel(wrong, name)
        if text:
            return text
    return ""


def _longest(right: list[Wrong]) -> int:
    """The most steps of an output that passes."""
    return max((w.y.shape[axis] for w in right if (axis := leading(w)) is not None), default=0)


def _only_last_step(along) -> bool:
    """True if only last steps are wrong, and not in cases of two or three steps alone."""
    return max(a.size for a in along) >= FEW and all(a[-1] and not a[:-1].any() for a in along)


def _carried_back(along) -> str:
    """Text if gradients are wrong up to a border of blocks and right after it, else ""."""
    lasts = [(a.size, a.size - int(a[::-1].argmax())) for a in along if a.any()]
    size = gcd(*(last for _, last in lasts))
    # with blocks of half the size, one of these would be wrong up to a later step
    whole = any(last < n <= last + size and n - last > size // 2 for n, last in lasts)
    if not size or size % BLOCK or not whole or any(last == n for n, last in lasts):
        return ""
    return (
        f"the last wrong step is just before a multiple of {size} in every case: the gradient "
        f"passed from one block of {size} back to the block before is wrong"
    )


def _along(w: Wrong, axis) -> np.ndarray:
    """Which positions along one axis have a wrong entry."""
    others = tuple(i for i in range(w.bad.ndim) if i != w.bad.ndim + axis)
    return w.bad.any(others)


def _judged(w: Wrong, axis) -> np.ndarray:
    """Which positions along one axis have an entry that is judged."""
    others = tuple(i for i in range(w.bad.ndim) if i != w.bad.ndim + axis)
    return np.asarray(w.judged.any(others))


def _of_transform(op: Operator) -> bool:
    """True if programs of this operator may compute a spectrum."""
    return "transform" in op.traits or op.contract.name in ("FFT", "SPECTRUM")


def _second_half(along) -> bool:
    """True if in cases of several lengths the errors begin just at the middle."""
    long = [a for a in along if a.size >= BLOCK]  # in shorter ones the middle is no evidence
    begins = all(a.any() and abs(int(a.argmax()) - a.size / 2) <= 1 for a in long)
    return begins and len({a.size for a in long}) > 1


def _block(along, longest: int, has_state: bool) -> str:
    """Text if all first wrong steps are multiples of one block length, or are equal; else "".

    The first border of blocks may be passed rightly where the state before is zero, so blocks of
    half the size show the same. `longest` is the length of a case that passes.
    """
    along = [a for a in along if a.any()]
    firsts = [int(a.argmax()) for a in along]
    size = gcd(*firsts)
    # a case that is wrong from step 0 on must be shorter than a block
    shorter = all(k or a.size < size for a, k in zip(along, firsts, strict=True))
    if size and size % BLOCK == 0 and shorter:
        started = f"first wrong step {min(k for k in firsts if k)}"
        pairs = list(zip(along, firsts, strict=True))
        if max(firsts) > size and all(_tail(a, k, size) for a, k in pairs):
            return f"only the steps after the last whole block of {size} are wrong ({started})"
        # with a whole block behind the first wrong step it is not the rest that is wrong
        if all(firsts) and any(k == size and a.size > 2 * size for a, k in pairs):
            if has_state:
                return (
                    f"wrong from step {size} on: what goes from one block of {size} to the next, "
                    f"or from the second of {size // 2}, or a limit of {size} steps ({started})"
                )
            return f"the first wrong step is a multiple of {size} in every case ({started})"
    several = len({a.size for a in along}) > 1 and longest <= firsts[0]
    if several and len({*firsts}) == 1 and firsts[0]:
        return f"the first wrong step is step {firsts[0]}, whatever the length"
    return ""


def _tail(bad, first: int, size: int) -> bool:
    """True if exactly the entries from the last multiple of `size` on are wrong."""
    return bool(first == bad.size // size * size < bad.size and bad[first:].all())


def _channels(wrong: list[Wrong]) -> list[str]:
    """The axes, except time, that all outputs have."""
    return [d for d in wrong[0].dims if d != "l" and all(d in w.dims for w in wrong)]


def _channel(wrong: list[Wrong], name: str) -> str:
    """Text if the wrong positions along one axis follow one pattern in every case; else ""."""
    axes = [w.dims.index(name) - len(w.dims) for w in wrong]
    along = [_along(w, axis) for w, axis in zip(wrong, axes, strict=True)]
    if len(along) < SEVERAL or any(a.size < 2 or a.all() for a in along):
        return ""
    if max(a.size for a in along) < SEVERAL:  # of two entries one is wrong by chance
        return ""
    if not all(_judged(w, axis).all() for w, axis in zip(wrong, axes, strict=True)):
        return ""  # where NaN is right an entry shows nothing
    if all(a[-1] and not a[:-1].any() for a in along):
        return f"only the last entry of axis {name} is wrong"
    if all(not a[0] and a[1:].all() for a in along):
        return f"all entries of axis {name} but the first are wrong"
    steps = {int(k) for a in along for k in np.diff(np.flatnonzero(a))}
    if len(steps) == 1 and min(steps) > 1 and max(a.sum() for a in along) > 2:
        return f"only entries of axis {name} that lie {min(steps)} apart are wrong"
    return ""
