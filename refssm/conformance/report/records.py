"""Results as JSON: one document per run; numbers are finite or null, see results.schema.json."""

import json
import math
from dataclasses import asdict, replace
from typing import Any

from refssm import __version__
from refssm.conformance.judging.result import Also, Result
from refssm.conformance.report import lines

# the version of results.schema.json; 1 had none, no `thin`, no `also`, no grade N; 2 had no
# `unjudged` and no `convention`
SCHEMA = 3
NUMBERS = ("ratio", "bits", "seconds", "smallest_ratio", "smallest_bits")
OR_NULL = (
    "counterexample",
    "alone",
    "again",
    "known",
    "expires",
    "looks_like",
    "convention",
    "function",
)


def document(results: list[Result], seed: int, profile: str, **more: Any) -> str:
    """The JSON document of a run; `more` are further fields of its head."""
    head = {"schema": SCHEMA, "refssm": __version__, "seed": seed, "profile": profile}
    head |= {"config": None, "interrupted": False, "known_failures": None, "complaints": []} | more
    return json.dumps({**head, "results": [_record(r) for r in results]}, indent=1)


def _record(result: Result) -> dict:
    # without the arrays for pictures, and without sizes that only a line of text has
    record = asdict(replace(result, evidence=None, reached={}))
    del record["evidence"], record["reached"]
    record |= {"notes": list(result.notes), "unjudged": list(result.unjudged)}
    record["again"] = _again(result)
    record["also"] = [_plain({**asdict(one), "again": _again(result, one)}) for one in result.also]
    return _plain(record)


def _again(result: Result, one: Also | None = None) -> str:
    """The command that judges a failure once more, or ""."""
    return next(iter(lines.again(result, one)), "").removeprefix("again: ")


def _plain(record: dict) -> dict:
    """The record with null for numbers that are not finite and for texts that are not there."""
    for name in {*NUMBERS} & {*record}:
        value = float(record[name])
        record[name] = value if math.isfinite(value) else None
    for name in {*OR_NULL} & {*record}:
        record[name] = record[name] or None
    return record
