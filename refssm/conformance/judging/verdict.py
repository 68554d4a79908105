"""A verdict, and functions to reach one: shape and type, NaN and infinity, the worst of several."""

from dataclasses import dataclass, field, replace

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.judging.wrong_entries import Damage
from refssm.conformance.standard import C, Standard

RANKS = "-ABNCF"  # grades, from the best to the worst; "-": nothing was judged
WRITTEN = "a written input"  # the kind of the verdict on a call that changed its arguments


@dataclass(frozen=True)
class Verdict:
    """How far a result is from the exact one, and the worst entry."""

    grade: str  # A, B, N, C, F, or "-" if nothing could be judged
    ratio: float = 0.0  # the largest |difference| / (u·K0); of N, by the K0 of the second gauge
    bits: float = np.inf
    message: str = ""
    notes: tuple[str, ...] = ()
    error: bool = False  # there is no result: exception, crash or hang
    allowed: float = C
    damage: Damage | None = field(default=None, compare=False, repr=False)  # only of a failure
    kind: str = ""  # of a failure: what is wrong, such as "values of `x`"
    length: int = 0  # the leading size of the judged case, if it is known
    died: bool = False  # the call ended its process or hung: another try costs another process

    @property
    def ok(self) -> bool:
        """True for grades A, B and N, and if nothing was judged."""
        return self.grade in "ABN-"

    @property
    def verdict(self) -> str:
        """pass, inaccurate, wrong or error."""
        if self.error:
            return "error"
        return "pass" if self.ok else "inaccurate" if self.grade == "C" else "wrong"

    @property
    def failure(self) -> tuple[str, str]:
        """The kind of failure; shrinking keeps it, and other kinds are listed apart."""
        return self.verdict, self.kind or (exception_in(self.message) if self.error else "")

    def __str__(self):
        allowed = f"ratio {self.ratio:.2g} (allowed {self.allowed:g})"
        return f"grade {self.grade}   {allowed}   {self.message}".strip()


def wrong(message: str, damage: Damage | None = None, kind: str = "") -> Verdict:
    """An F without a distance, as for a wrong shape or type, a misplaced NaN, or an exception."""
    return Verdict("F", np.inf, 0.0, message, damage=damage, kind=kind)


def exception_in(message: str) -> str:
    """ "raised ValueError" of "raised ValueError: …"; of another message, its beginning."""
    return message.partition(":")[0].partition(" (")[0]


def misfit(actual, shape, dtype, name, either=False) -> str:
    """Why `actual` cannot be compared (not an array, wrong shape or type, too narrow), or "".

    `either` accepts a complex array for a real output, which is no mistake if another output is
    complex.
    """
    if not isinstance(actual, np.ndarray):
        if sentence := getattr(actual, "sentence", ""):
            return f"`{name}` {sentence}"
        came = getattr(actual, "type", type(actual).__name__)
        return f"`{name}` is a{'n' * (came[0] in 'aeio')} {came}, want an array"
    if actual.shape != shape:
        return f"`{name}` has shape {actual.shape}, want {shape}"
    if actual.dtype.kind not in ("fc" if either and dtype.kind == "f" else dtype.kind):
        return f"`{name}` has type {actual.dtype}, want {dtype}"
    if actual.dtype.itemsize < dtype.itemsize:
        return f"`{name}` has the narrower type {actual.dtype}, want {dtype}"
    return ""


def kind_of(x) -> np.ndarray:
    """0 finite, 1 infinite, 2 NaN; complex is infinite if either part is, else NaN if either is."""
    parts = (x.real, x.imag) if np.iscomplexobj(x) else (x,)
    infinite = np.any([np.isinf(p) for p in parts], axis=0)
    undefined = np.any([np.isnan(p) for p in parts], axis=0)
    return np.where(infinite, 1, np.where(undefined, 2, 0))


CLASSES = ("finite", "infinite", "NaN")
BEYOND = "not judged where terms cancel to less than their rounding errors: no digits are left"


def says_nothing(value, allowed, judged) -> bool:
    """True if an output of zeros would pass, although not all values are zero."""
    size = np.where(judged, np.abs(value), 0.0)
    return bool(size.any() and (size <= np.where(judged, allowed, np.inf)).all())


def told_apart(got, want) -> tuple[str, str]:
    """Two numbers as text, with enough digits to show that they differ."""
    for digits in (6, 9, 12, 17):
        texts = f"{got:.{digits}g}", f"{want:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


def worst_of(verdicts) -> Verdict:
    """The verdict with the lowest grade, then the largest ratio, and the notes of all."""
    verdicts = list(verdicts)
    decisive = max(verdicts, key=lambda v: (RANKS.index(v.grade), v.ratio))
    notes = tuple(dict.fromkeys(note for v in verdicts for note in v.notes))
    return replace(decisive, notes=notes)


def types_in(op: Operator, arrays, standard: Standard | None) -> tuple[np.dtype, ...]:
    """The output types; an operator without array inputs answers in the judged type.

    Where that has 16 bits, an argument of a wider type asks for no wider result.
    """
    if standard is not None and standard.type.half:
        arrays = [a.astype(np.float32) if a.dtype == np.float64 else a for a in arrays]
    types = op.output_types(*arrays)
    if not op.constructor or standard is None:
        return types
    precision = np.finfo(standard.type.carrier).dtype
    return tuple(np.result_type(precision, 1j) if t.kind == "c" else precision for t in types)
