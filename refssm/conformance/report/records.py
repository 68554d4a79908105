"""Results as JSON: one document per run, numbers finite or null."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace

from refssm import __version__
from refssm.conformance.result import Result


def document(results: list[Result], seed: int, profile: str) -> str:
    """The whole run."""
    head = {"refssm": __version__, "seed": seed, "profile": profile}
    return json.dumps({**head, "results": [_record(r) for r in results]}, indent=1)


def _record(result: Result) -> dict:
    record = asdict(replace(result, evidence=None))  # arrays are for pictures
    del record["evidence"]
    for name in ("ratio", "bits", "seconds"):
        value = float(record[name])
        record[name] = value if math.isfinite(value) else None
    record["notes"] = list(result.notes)
    record["counterexample"] = result.counterexample or None
    return record
