"""Arrays close to a structure for which programs take shortcuts, and one strong decay.

The shortcuts are those of `np.allclose` and `np.isclose`: a matrix taken as diagonal or symmetric,
a step taken as 1, one step for all members of a batch. A decay that is taken as 0 shows only where
nothing comes after it: an impulse at the first step, and the strong decay at the second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.number_types import NumberType
from refssm.domains.domain import DECAYING_TEXTURES, Numbers

# Single precision sees what is larger; np.isclose has an rtol above 2^-17, an atol above 2^-30.
# Double precision sees less, too: a program that allows less takes these for equal all the same
ALIKE = {"single": (2.0**-5, 2.0**-17), "double": (2.0**-30,)}
OFF_DIAGONAL = {"single": (2.0**-17,), "double": (2.0**-36,)}
ASYMMETRIC = {"single": (2.0**-10,), "double": (2.0**-26,)}
BENDS = (5.0, 6.0, 7.0, 8.0, 8.5, 9.0, 10.0, 15.0, 20.0)
STRONG = 30.0, 80.0, 100.0  # rate · dt: from, to in single precision, to in double precision


def kinds_of(op: Operator, gradient=False) -> tuple[str, ...]:
    """The kinds of structured cases that an operator has: "close", "strong", both or none.

    Beside a strong decay all gradients of decays are small, and differences keep no digit of them.
    """
    of_inputs = {kind for domain in op.inputs.values() for kind in domain.structured}
    textures = {t for d in op.inputs.values() for t in d.structured.get("strong", ())}
    decaying = op.leading == "l" and not gradient and textures & set(DECAYING_TEXTURES)
    kinds = of_inputs - {"bend"} - (set() if decaying else {"strong"})
    return tuple(sorted(kinds | {"close"} if any(map(beside, op.parameters.values())) else kinds))


def beside(parameter) -> tuple:
    """The values of a keyword beside those for which programs take shortcuts."""
    return parameter.close if isinstance(parameter, Numbers) else ()


def arranged(x: np.ndarray, texture: str, rank: int, rng, kind: NumberType) -> np.ndarray:
    """Drawn values with one of the structured textures; others as they are."""
    if texture not in TEXTURES or x.size == 0:
        return x
    return TEXTURES[texture](x, rank, rng, kind)


def _of(sizes, kind: NumberType, rng) -> float:
    return rng.choice(sizes["double" if kind.u < 2.0**-50 else "single"])


def _alike(x, rank, rng, kind):
    del rank
    return x.reshape(-1)[0] * (1 - _of(ALIKE, kind, rng) * rng.random(x.shape))


def _ten(x, rank, rng, kind):
    turning = 1j * x.reshape(-1)[0].imag if np.iscomplexobj(x) else 0
    return turning + _alike(np.full(x.shape, -10.0), rank, rng, kind)


def _nearly_diagonal(x, rank, rng, kind):
    del rank
    return x * np.where(np.eye(x.shape[-1]) > 0, 1, _of(OFF_DIAGONAL, kind, rng))


def _nearly_symmetric(x, rank, rng, kind):
    """Hermitian, but for a small part of the upper triangle and of the diagonal."""
    del rank
    off = _of(ASYMMETRIC, kind, rng)
    i, k = np.indices(x.shape[-2:])
    diagonal = x.real + 1j * off * x.imag if np.iscomplexobj(x) else x
    above = x.conj().swapaxes(-1, -2) * (1 + off)
    return np.where(i > k, x, np.where(i < k, above, diagonal))


def _zero_pivot(x, rank, rng, kind):
    """Blocks ((t, −4), (4, −t − 1)), t = 2 and 1 in any order, whose eigenvalues have Re = −½.

    The first pivot of I − A/t is 0, and its determinant is 16/t². The rest is diagonal and damped.
    """
    del rank, kind
    n, A = x.shape[-1], np.zeros_like(x)
    j = np.arange(n)
    A[..., j, j] = -np.abs(x[..., j, j])
    for i, t in zip(range(0, n - 1, 2), rng.permutation([1, 2]), strict=False):
        A[..., i : i + 2, i : i + 2] = [[t, -4], [4, -t - 1]]
    return A


def _first(x, rank, rng, kind):
    del rng, kind
    return np.where(_along(x, rank) == 0, x, 0)


def _at_second(change: Callable) -> Callable:
    """A strong decay at the second step; each array has its own."""

    def arrange(x, rank, rng, kind):
        low, single, double = STRONG
        strength = low + (double - low if kind.u < 2.0**-50 else single - low) * rng.random()
        return np.where(_along(x, rank) == 1, change(x, strength), x)

    return arrange


def _along(x, rank):
    """The index of each entry along the first core axis."""
    return np.arange(x.shape[-rank]).reshape(-1, *(1,) * (rank - 1))


def _bend(x, rank, rng, kind):
    """Just above places at which programs replace a softplus by its argument."""
    del rank, kind
    return rng.choice(BENDS, x.shape) + 0.25 * rng.random(x.shape)


TEXTURES: Mapping[str, Callable] = {
    "bend": _bend,
    "alike": _alike,
    "ten": _ten,
    "nearly diagonal": _nearly_diagonal,
    "nearly symmetric": _nearly_symmetric,
    "zero pivot": _zero_pivot,
    "first": _first,
    "decayed": _at_second(lambda x, strength: x * np.exp(-strength)),
    "lowered": _at_second(lambda x, strength: x - strength),
    "stretched": _at_second(lambda x, strength: 0 * x + strength / 10),
}
