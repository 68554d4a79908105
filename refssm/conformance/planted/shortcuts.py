"""Planted bugs of programs that take a shortcut where an argument nearly has a structure.

They follow from the structured cases that an operator's domains declare, so each is planted in
every operator that it fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from refssm._declaration.operator import Operator
from refssm.domains import Domain, Numbers
from refssm.domains.domain import STRUCTURED_TEXTURES

Shortcut = tuple[str, str, Callable]


def of_arguments(op: Operator) -> Iterator[tuple[str, str, str, Callable]]:
    """For each shortcut its name, a short description, the argument, and what becomes of it."""
    for name, domain in op.inputs.items():
        for texture in STRUCTURED_TEXTURES:
            if texture not in _textures(domain) or texture not in SHORTCUTS:
                continue
            bug, what, change = SHORTCUTS[texture]
            yield f"{name}_{bug}", what.format(name), name, change
        if name == "dt" and "one" in domain.maps and "alike" in _textures(domain):
            yield "dt_about_one", "dt = 1 where np.isclose says so", name, _about_one


def of_keywords(op: Operator) -> Iterator[tuple[str, str, Callable]]:
    """For each keyword with values beside others: a program with the nearest of these others."""
    for name, parameter in op.parameters.items():
        if isinstance(parameter, Numbers) and parameter.close:
            what = f"{name} taken as 0, ½ or 1 where np.isclose says so"
            yield f"{name}_about", what, _nearest(name, parameter.values)


def _textures(domain: Domain) -> set[str]:
    return {texture for textures in domain.structured.values() for texture in textures}


def _nearest(name: str, usual) -> Callable:
    def program(right, *args, **statics):
        near = next((v for v in usual if np.isclose(statics[name], v)), statics[name])
        return right(*args, **{**statics, name: near})

    return program


def _one_for_all(x):
    """The first entry for all entries, if none differs by more than 4 %."""
    if x.size == 0 or np.abs(x - x.flat[0]).max() > 0.04 * np.abs(x.flat[0]):
        return x
    return np.full_like(x, x.flat[0])


def _about_one(dt):
    return np.where(np.isclose(dt, 1), dt.dtype.type(1), dt)


def _diagonal(A):
    """The diagonal alone, if the rest is small."""
    diagonal = A * np.eye(A.shape[-1], dtype=A.dtype)
    return diagonal if np.allclose(A, diagonal, atol=1e-4) else A


def _symmetric(A):
    """The Hermitian part, if it is nearly all."""
    adjoint = A.conj().swapaxes(-1, -2)
    return (A + adjoint) / 2 if np.allclose(A, adjoint, rtol=2e-3) else A


def _flushed(a):
    return np.where(np.abs(a) < 1e-15, 0, a).astype(a.dtype)


def _flushed_logarithm(log_a):
    return np.where(log_a.real < -35, log_a - 1e4, log_a).astype(log_a.dtype)


SHORTCUTS: dict[str, Shortcut] = {
    "alike": (
        "of_first",
        "the first {0} for all where none differs by more than 4 %",
        _one_for_all,
    ),
    "nearly diagonal": ("taken_as_diagonal", "{0} taken as diagonal by np.allclose", _diagonal),
    "nearly symmetric": ("taken_as_symmetric", "{0} taken as symmetric by np.allclose", _symmetric),
    "decayed": ("flushed", "decays below 1e-15 taken as 0", _flushed),
    "lowered": ("flushed", "decays below e^-35 taken as 0", _flushed_logarithm),
}
