"""Validate JSON values; an error names the key, the wanted and the actual value."""

from __future__ import annotations

import json
import re

from refssm.conformance.vectors.document import hexadecimal

FLOAT = re.compile(r"-?0x[01](\.[0-9a-f]+)?p[+-][0-9]{1,4}")
LONGEST = 60  # characters of a value in a message


class Malformed(Exception):
    """A value in the file is wrong; the message names its place."""


def number_of(value, at: str) -> float:
    """A finite number from its canonical hexadecimal text."""
    if not isinstance(value, str) or not FLOAT.fullmatch(value):
        raise Malformed(f"{at}: wanted a hexadecimal number like '-0x1.8p+1', got {told(value)}")
    try:
        x = float.fromhex(value)
    except OverflowError:
        raise Malformed(f"{at}: wanted a number of double precision, got {value}") from None
    if hexadecimal(x) != value:
        raise Malformed(f"{at}: wanted the spelling {hexadecimal(x)}, got {value}")
    return x


def keyed(given, at: str, keys) -> dict:
    """An object with exactly these keys."""
    if not isinstance(given, dict):
        raise Malformed(f"{at}: wanted an object, got {told(given)}")
    absent = next((key for key in keys if key not in given), None)
    if absent is not None:
        raise Malformed(f"{at}: wanted the key {absent!r}, got {told(list(given))}")
    unknown = next((key for key in given if key not in keys), None)
    if unknown is not None:
        listed = ", ".join(keys) or "no key"
        raise Malformed(f"{at}: wanted {listed}, got also the key {unknown!r}")
    return given


def listed(value, at: str) -> list:
    """A list."""
    if not isinstance(value, list):
        raise Malformed(f"{at}: wanted a list, got {told(value)}")
    return value


def text_of(value, at: str) -> str:
    """A non-empty string."""
    if not isinstance(value, str) or not value:
        raise Malformed(f"{at}: wanted a text, got {told(value)}")
    return value


def whole(value, at: str, most: int = 2**31) -> int:
    """An integer from 0 to `most` − 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < most:
        raise Malformed(f"{at}: wanted a whole number from 0 to {most - 1}, got {told(value)}")
    return value


def told(value) -> str:
    """A value as short text."""
    try:
        text = json.dumps(value, ensure_ascii=True)
    except RecursionError:
        return "brackets nested too deeply"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
