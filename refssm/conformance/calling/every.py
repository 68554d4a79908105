"""Every implementation in an author's file, also several of one operator.

`find` wants one of each operator, because a verdict belongs to an operator. A comparison of an
author's variants wants all of them.
"""

from __future__ import annotations

from pathlib import Path

from refssm.catalog import judged
from refssm.conformance.calling.finding import (
    _check_arity,
    _defined_in,
    _found,
    _is_file,
    _load_file,
    _load_module,
    _operator_name,
    _split,
    _told,
    find,
)
from refssm.conformance.calling.implementation import Found
from refssm.conformance.usage_error import Several


def every(target: str, told: dict | None = None) -> list[tuple[str, Found]]:
    """Implementations in a target, each with a target of its own, which finds it again alone.

    `told` overrides parts of the authors' declarations.
    """
    path, _, function = _split(target)
    if function or not path.strip():
        return _alone(target, told)
    module = _load_file(Path(path)) if _is_file(path) else _load_module(path)
    named = {op.name: op for op in judged()}
    pairs = []
    for name, forward in vars(module).items():
        op = named.get(_operator_name(forward) or name) if callable(forward) else None
        if op is None or not _defined_in(module, forward):
            continue
        own = getattr(module, f"{name}_vjp", None) or getattr(module, f"{op.name}_vjp", None)
        found = _found(op, forward, own)
        _check_arity(path, found)
        pairs.append((f"{path}::{name}", _told(found, told) if told else found))
    if not pairs:
        find(target)  # raises an error with the functions that are there
    return pairs


def _alone(target: str, told: dict | None) -> list[tuple[str, Found]]:
    """The function that a target names, or the functions of an operator that it names."""
    try:
        return [(target, found) for found in find(target, told=told) if found.judged]
    except Several as several:
        return [pair for part, _ in several.parts for pair in _alone(part, told)]
