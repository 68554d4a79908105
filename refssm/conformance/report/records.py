"""Results as JSON: one document per run; numbers are finite or null, see results.schema.json."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from typing import Any

from refssm import __version__
from refssm.conformance.judging.result import Result

NUMBERS = ("ratio", "bits", "seconds")
OR_NULL = ("counterexample", "alone", "known", "expires", "looks_like")


def document(results: list[Result], seed: int, profile: str, **more: Any) -> str:
    """The JSON document of a run; `more` are further fields of its head."""
    head = {"refssm": __version__, "seed": seed, "profile": profile, **more}
    return json.dumps({**head, "results": [_record(r) for r in results]}, indent=1)


def _record(result: Result) -> dict:
    record = asdict(replace(result, evidence=None))  # without the arrays for pictures
    del record["evidence"]
    for name in NUMBERS:
        value = float(record[name])
        record[name] = value if math.isfinite(value) else None
    for name in OR_NULL:
        record[name] = record[name] or None
    record["notes"] = list(result.notes)
    return record
