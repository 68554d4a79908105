"""Conditions between numbers: arguments made from another argument, and whole arrays.

The right factors of a low-rank part follow the left ones. What a check makes of the arguments of a
case must satisfy the same conditions, or a right program may be refused outside of its domain.
"""

from collections.abc import Iterable

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.number_types import NumberType


def following(leader, factors, kind: NumberType, *, entry_by_entry: bool = False) -> np.ndarray:
    """Each column of `leader` times the first entry of the same column of `factors`, rounded.

    Or each entry times its own factor. Where `factors` lacks a batch axis of `leader`, the first
    member of that axis is used.
    """
    if entry_by_entry:
        return kind.rounded(leader.astype(np.float64) * factors, real=True)
    own = _of_batch(leader, factors)
    product = own.astype(np.result_type(own, np.float64)) * factors[..., :1, :]
    return kind.rounded(product, real=not np.iscomplexobj(product))


def _of_batch(leader, follower) -> np.ndarray:
    """The leader's members that a follower with its own batch axes follows."""
    missing = leader.ndim - follower.ndim
    own = leader[(0,) * missing] if missing > 0 else leader[(None,) * -missing]
    return own[tuple(slice(n) if n == 1 else slice(None) for n in follower.shape[:-2])]


def within(op: Operator, arrays, kind: NumberType) -> bool:
    """True if the conditions of the operator's domains on whole arguments hold.

    Ranges of single numbers are not looked at.
    """
    named = dict(zip(op.inputs, arrays, strict=True))
    for name, domain in op.inputs.items():
        if domain.holds is not None and not domain.holds(named[name]):
            return False
        if domain.follows:
            leader, follower = named[domain.follows], named[name]
            if not (_opposes(leader, follower) if domain.entry_by_entry
                    else _follows(leader, follower, kind.u)):  # fmt: skip
                return False
    return True


def _opposes(leader, follower) -> bool:
    """True if each entry is the leader's times a number between −1 and 0."""
    return bool(((leader * follower <= 0) & (np.abs(follower) <= np.abs(leader))).all())


def _follows(leader, follower, u: float) -> bool:
    """True if each column is a multiple of the leader's, by a number whose real part is ≥ 0."""
    own = _of_batch(leader, follower).astype(complex)
    square = (np.abs(own) ** 2).sum(-2, keepdims=True)
    number = (own.conj() * follower).sum(-2, keepdims=True) / np.where(square > 0, square, 1)
    # a rounding of each product, and those of the number
    allowed = 8 * u * np.abs(follower).max(-2, keepdims=True, initial=0)
    near = np.abs(follower - number * own) <= allowed
    return bool(near.all() and (number.real >= -8 * u * np.abs(number)).all())


def together(op: Operator) -> Iterable[tuple[str, ...]]:
    """The arguments, those that follow another one together with it: they change together."""
    followers = {name: domain.follows for name, domain in op.inputs.items() if domain.follows}
    for name in op.inputs:
        if name not in followers:
            yield (name, *(other for other, leader in followers.items() if leader == name))


def changed_alone(op: Operator, arrays, kind: NumberType) -> Iterable[tuple[str, np.ndarray]]:
    """New values of what multiplies another argument entry by entry, beside the old ones of that.

    A number −η of b = −a ∘ η becomes −(1 − η), rounded: a difference may have more bits.
    """
    named = dict(zip(op.inputs, arrays, strict=True))
    for name, domain in op.inputs.items():
        if domain.follows and domain.entry_by_entry:
            leader, follower = (named[n].astype(np.float64) for n in (domain.follows, name))
            yield name, kind.rounded(-(leader + follower), real=True)
