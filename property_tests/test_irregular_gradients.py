"""The gradient of S5 with gaps between its samples: the adjoint of the Jacobian, in long double."""

import numpy as np
import pytest
from differences import (
    derivative,
    error_function_of_long_double,
    extended,
    needs_long_double,
)
from layered import OPS, U, each_role, inner, like, size

import refssm
from refssm.layers import s5, s5_irregular

H, N, L = 3, 4, 12
NAMES = [*s5.S5.groups(), "u", "gaps"]
ROUNDINGS = (L + 4) * (L + 10)  # N of `layered`, of the longest chain


def drawn():
    """Parameters, signals and gaps by name, each near what a layer sees."""
    rng = np.random.default_rng(0)
    p = s5.init(rng, h=H, n=N).map(lambda x: x + 0.1 * like(rng, x))
    return {**p.arrays(), "u": rng.standard_normal((2, L, H)), "gaps": rng.exponential(1, (2, L))}


def called(function, given, *first):
    """`function(…, p, u, gaps)` of arguments by name."""
    p = s5_irregular.S5Irregular(**{n: a for n, a in given.items() if n not in ("u", "gaps")})
    return function(*first, p, given["u"], given["gaps"])


@needs_long_double
@each_role
@pytest.mark.parametrize("name", NAMES)
def test_every_gradient_is_right_and_a_thousandth_too_much_is_found(name, role):
    given, rng = drawn(), np.random.default_rng(1)
    dy, t = like(rng, given["u"]), like(rng, given[name])
    of_p, du, dgaps = called(s5_irregular.vjp, given, OPS[role], dy)
    found = {**of_p.arrays(), "u": du, "gaps": dgaps}
    assert [(found[n].shape, found[n].dtype) for n in NAMES] == [
        (given[n].shape, given[n].dtype) for n in NAMES
    ]
    wide = {n: extended(a) for n, a in given.items()}

    def along(e):
        return inner(dy, called(s5_irregular.forward, {**wide, name: wide[name] + e * t}, refssm))

    with error_function_of_long_double():
        exact, uncertain = derivative(along)
    y = called(s5_irregular.forward, given, refssm)
    terms = size(dy, y, [found[n] for n in NAMES], [given[n] for n in NAMES])
    allowed = 2 * ROUNDINGS * U * (terms + float(np.abs(found[name] * t).sum())) + float(uncertain)
    assert abs(exact - inner(found[name], t)) <= allowed
    assert abs(exact - inner(1.001 * found[name], t)) > allowed
