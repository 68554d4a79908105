"""The keys of `[tool.refssm]`: what each wants, and how its value is read."""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from refssm._declaration.implements import FRAMEWORKS, NUMBERS, TYPES
from refssm._declaration.names import did_you_mean
from refssm.catalog import judged
from refssm.conformance.cases.ranges import split
from refssm.conformance.cases.sizes import core_dims
from refssm.conformance.checks.checks import NAMES, PROFILES
from refssm.conformance.usage_error import UsageError
from refssm.subjects.libraries import NAMES as SUBJECTS


class RefusedValue(ValueError):
    """A value is invalid; the message is a hint, or ""."""


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise RefusedValue("")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    """One string or a list of strings, as a tuple."""
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not value:
        raise RefusedValue("")
    return tuple(_text(item) for item in value)


def _one_of(known: Iterable[str]) -> Callable[[Any], str]:
    def read(value):
        if not isinstance(value, str) or value not in known:
            raise RefusedValue(
                f"; {did_you_mean(value, known)}".rstrip("; ") if isinstance(value, str) else ""
            )
        return value

    return read


def _some_of(known: Iterable[str]) -> Callable[[Any], tuple[str, ...]]:
    return lambda value: tuple(_one_of(known)(item) for item in _texts(value))


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise RefusedValue("")
    return value


def _seed(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise RefusedValue("")
    return value


def _seconds(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0.1 <= value <= 1e6:  # false for NaN
        raise RefusedValue("")
    return float(value)


def _ranges(value: Any) -> tuple[str, ...]:
    known = {name for op in judged() for name in (*op.inputs, *core_dims(op))}
    for text in _texts(value):
        try:
            name, *_ = split(text)
        except UsageError as error:
            raise RefusedValue(f": {re.sub('^--where ', '', str(error))}") from None
        if name not in known:
            raise RefusedValue(f": no operator has an argument or a size {name!r}")
    return _texts(value)


class Key(NamedTuple):
    """A key's description and the function that validates its value."""

    wanted: str
    read: Callable[[Any], Any]


KEYS = {
    "targets": Key("a list of files and modules", _texts),
    "subjects": Key(f"a list of {', '.join(SUBJECTS)}", _some_of(SUBJECTS)),
    "profile": Key(f"one of {', '.join(PROFILES)}", _one_of(PROFILES)),
    "seed": Key("a whole number of 0 or more", _seed),
    "dtypes": Key(f"a list of {', '.join(TYPES)}", _some_of(TYPES)),
    "checks": Key(f"a list of {', '.join(NAMES)}", _some_of(NAMES)),
    "where": Key('a list of "NAME=LOW..HIGH"', _ranges),
    "framework": Key(f"one of {', '.join(FRAMEWORKS)}", _one_of(FRAMEWORKS)),
    "device": Key('a device such as "cuda"', _text),
    "layout": Key('a layout such as "b n l, b n l -> b n l"', _text),
    "vjp": Key("true or false", _flag),
    "ftz": Key("true or false", _flag),
    "deterministic": Key("true or false", _flag),
    "kinds": Key(f"one of {', '.join(NUMBERS)}", _one_of(NUMBERS)),
    "timeout": Key("seconds between 0.1 and 1e6", _seconds),
    "allow-thin": Key("true or false", _flag),
    "known-failures": Key("the path of a file", _text),
}
