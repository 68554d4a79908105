"""For people who bring an implementation: declare its operator and what it supports, and judge it.

`implements` marks a function, `Budget` declares its accuracy, `check` judges it inside any test
suite. For laws of your own: `cases` is a strategy of Hypothesis that draws the judge's cases,
`expected` is what is right for one, `bound` the allowed error of each entry, and `assert_right`
the judge's verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from refssm._declaration.implements import (
    ARITHMETICS,
    FRAMEWORKS,
    TYPES,
    Arrays,
    Budget,
    Declaration,
    Marked,
    declared_as,
    implements,
)

if TYPE_CHECKING:
    from refssm.conformance.own_laws.drawn import DrawnCase
    from refssm.conformance.own_laws.strategy import Cases

__all__ = [
    "ARITHMETICS",
    "FRAMEWORKS",
    "TYPES",
    "Arrays",
    "Budget",
    "Declaration",
    "Marked",
    "assert_right",
    "bound",
    "cases",
    "check",
    "expected",
    "implements",
]


def check(
    name: str,
    function: Callable,
    *,
    vjp: Callable | bool | None = None,
    profile: str = "default",
    seed: int = 0,
    checks: tuple[str, ...] = (),
    allow_thin: bool = False,
    **declared: Any,
) -> None:
    """Judge `function` as an implementation of `name`; AssertionError with the report if it fails.

    The first line of the error has the worst failure; a line `again:` under each failure has the
    call that judges only that check.

    `vjp` is its gradient as a function, or True for the framework's autodiff; `checks` limits the
    run to some of the checks that `refssm show` lists. A check that could judge fewer than half of
    its cases is a failure too, unless `allow_thin`. Keywords of `implements` are accepted here
    too, and add to or replace what the function declares. It runs in this process, so a debugger
    can stop in it. Raises ValueError if nothing can be judged: no such operator, check or type, or
    all cases declined.

    >>> def test_my_scan():
    ...     check("linear_scan", my_scan, framework="torch", vjp=True)
    """
    from refssm.conformance.running.session import judged_in_process

    __tracebackhide__ = True  # pytest shows the test, not this function
    how = {"profile": profile, "seed": seed, "checks": tuple(checks), "allow_thin": allow_thin}
    given = {"vjp": vjp, "profile": profile, "seed": seed, "allow_thin": allow_thin, **declared}
    if isinstance(vjp, bool):
        declared, vjp = {**declared, "vjp": vjp}, None
    own = getattr(function, "__refssm__", None)
    if isinstance(own, Declaration):
        said = {f: getattr(own, f) for f in Declaration.__dataclass_fields__ if f != "name"}
        declared = {**said, **declared}
    try:
        own = declared_as(name, declared)
    except ValueError as error:
        raise ValueError(f"check: {f'{error}'.removeprefix('implements: ')}") from None
    judged_in_process(name, function, vjp, own, **how, given=given)


def cases(
    name: str,
    dtype: Any = None,
    *,
    where: str | Iterable[str] = (),
    layout: str = "",
    kinds: str = "any",
    tame: bool = False,
    subnormal: bool = True,
    entries: int = 512,
    accuracy: Budget | None = None,
    ftz: bool = False,
) -> Cases:
    """A strategy of Hypothesis: arguments of the operator `name`, as `refssm verify` draws them.

    Call your function as `f(*case.arrays, **case.statics)`.

    dtype       the type, by default the first one of the operator: "float32", or "complex64" for
                operators of complex numbers only. A 16-bit type, "float16" or "bfloat16", has
                float32 arrays of its values.
    where       ranges of arguments and sizes, as of `refssm verify --where`: "dt=1e-3..1e-1", or
                several of them.
    layout      the order of the axes of your function, as in `implements`; by default the
                catalog's, which `refssm show` prints.
    kinds       "complex": no case has real arrays beside complex ones.
    tame        True: no algorithm underflows or overflows, for laws that add or scale arguments.
    subnormal   False: no subnormal numbers, as the judge draws for gradients.
    entries     the largest product of all sizes. Values and bounds of a case usually take some ten
                milliseconds, those of gradients and of double precision more: Hypothesis stops
                after 200 ms, unless you give `settings(deadline=None)`.
    accuracy    a `Budget`, and `ftz=True` allows to flush subnormal numbers, as in `implements`.

    One case in five is a preset, what a model starts from, if the operator has any; of the others
    one in four is close to a structure, such as equal steps. Failures shrink to small sizes and
    simple values. Raises ValueError for an operator, a type or a range that cannot be drawn. It
    needs Hypothesis: `pip install hypothesis`.

    >>> from hypothesis import given
    >>> from refssm import selective_scan
    >>> @given(cases("selective_scan", where="l=1..16"))
    ... def test_silence_stays_silence(case):
    ...     y = selective_scan(*case.changed(u=0 * case.arguments["u"]).arrays)
    ...     assert not y.any()
    >>> test_silence_stays_silence()
    """
    if find_spec("hypothesis") is None:
        raise ModuleNotFoundError("cases needs Hypothesis: pip install hypothesis")
    from refssm.conformance.own_laws.strategy import strategy_of

    how = {"where": where, "layout": layout, "kinds": kinds, "tame": tame, "subnormal": subnormal}
    how |= {"entries": entries, "accuracy": accuracy, "ftz": ftz}
    return strategy_of(name, dtype, how)


def expected(case: DrawnCase, cotangents: Any = None) -> Any:
    """What the operator gives for a case: an array, or a tuple of several outputs.

    The values are not rounded to the type of the case. In single precision and 16-bit types they
    are float64 or complex128, from the reference in double precision; in double precision they are
    long double, from the oracle in mpmath or from balls (python-flint).

    With `cotangents`, one for each output, they are the gradients g = ∂L/∂Re + i ∂L/∂Im, one for
    each argument, and None for flags and offsets. `case.cotangents` are some that the judge draws.

    >>> from hypothesis import given
    >>> @given(cases("linear_scan", tame=True))
    ... def test_the_first_state_is_the_first_input(case):
    ...     assert (expected(case)[..., 0, :] == case.arguments["b"][..., 0, :]).all()
    >>> test_the_first_state_is_the_first_input()
    """
    from refssm.conformance.own_laws import right

    return right.expected(case, cotangents)


def bound(case: DrawnCase, y: Any, cotangents: Any = None, *, grade: str = "A") -> Any:
    """The allowed error of each entry of `y`, which a function returned for a case: C·u·K + u|y|.

    A right entry has `abs(y - expected(case)) <= bound(case, y)`. u is the unit roundoff of the
    type, K the rounding error of a good program at these arguments in units of u, C is 16 or that
    of `accuracy`; the second term is the rounding of the output itself. The array, or the tuple,
    has the shapes of the outputs, float64. Entries that are not judged have an infinite bound:
    where the reference has no finite value or intermediate results may overflow.

    `grade` "A" is the error of a straightforward program. "B" is that of a backward stable one,
    with arguments off by one rounding each; "N" also lets entries cancel in differences of
    cumulative sums, where the operator has such programs. The judge passes these three. "C" is
    inaccurate, as of TF32. With `cotangents`, `y` are the gradients for them.

    Bounds of two results add: that is how a law between calls is written. Raises ValueError if
    `y` has another shape, a narrower type, or NaN where a number is expected, and for operators
    whose outputs are one basis of many: those have no bound of single entries.

    >>> import numpy as np
    >>> from hypothesis import given
    >>> from refssm import linear_scan
    >>> @given(cases("linear_scan", tame=True))
    ... def test_scaling(case):
    ...     double = case.changed(b=2 * case.arguments["b"])
    ...     x, x2 = linear_scan(*case.arrays), linear_scan(*double.arrays)
    ...     assert (np.abs(x2 - 2 * x) <= bound(double, x2) + 2 * bound(case, x)).all()
    >>> test_scaling()
    """
    from refssm.conformance.own_laws import right

    return right.bound(case, y, cotangents, grade)


def assert_right(case: DrawnCase, y: Any, cotangents: Any = None) -> None:
    """AssertionError with the judge's words unless `y` is right for a case: of grade A, B or N.

    It is the check `value` of `refssm verify` for one case, with all contracts: matrices that are
    judged in a norm, and outputs that are one basis of many. With `cotangents`, `y` are gradients.

    >>> from hypothesis import given
    >>> from refssm import linear_scan
    >>> @given(cases("linear_scan"))
    ... def test_the_last_step_is_forgotten(case):
    ...     x = linear_scan(*case.arrays)
    ...     x[..., -1, :] = 0
    ...     assert_right(case, x)
    >>> test_the_last_step_is_forgotten()  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    AssertionError: linear_scan: grade F
    """
    __tracebackhide__ = True
    from refssm.conformance.own_laws import right

    right.assert_right(case, y, cotangents)
