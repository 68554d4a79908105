"""Results as one HTML page that loads nothing else: it contains its style, script and pictures.

Names, paths and messages come from other people, so the template escapes everything except refssm's
own style, script and pictures; a policy in the page makes the browser refuse all else.
"""

import math
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from refssm.conformance.judging.result import Result
from refssm.conformance.report import lines
from refssm.conformance.report.verdict import RunVerdict, severity

ORDER = ("wrong", "error", "inaccurate", "thin", "skipped", "pass")
GRADES = {  # what stands beside a verdict, for those who do not know the letters
    "A": "as accurate as a straightforward program",
    "B": "as accurate as a backward stable program",
    "N": "right in norm: small entries of a row cancel in differences of cumulative sums",
    "C": "only as accurate as TF32 or float16 arithmetic",
    "F": "the error is larger than rounding can explain",
}


@dataclass(frozen=True)
class DrawnPicture:
    """A finished picture: an `<svg>` element, a title, and a description in words."""

    title: str
    told: str
    svg: str


@dataclass(frozen=True)
class Shown:
    """The pictures of one failure, or why there are none."""

    pictures: tuple[DrawnPicture, ...] = ()
    without: str = ""


def page(
    verdict: RunVerdict,
    results: list[Result],
    headers: Iterable[str],
    seconds: float,
    shown: Mapping[int, Shown],
) -> str:
    """The whole page; `shown` maps the position of a failed result to its pictures."""
    kept = files("refssm.conformance.report")
    told = {name: kept.joinpath(name).read_text("utf-8") for name in ("page.css", "page.js")}
    template = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(kept.joinpath("page.html.jinja").read_text("utf-8"))
    numbered = [*enumerate(results, 1)]
    failed = sorted(((n, r) for n, r in numbered if r.failed), key=lambda pair: severity(pair[1]))
    rest = [(n, r) for n, r in numbered if r.verdict == "skipped"]
    rest += [(n, r) for n, r in numbered if not r.failed and r.verdict != "skipped"]
    return template.render(
        css=Markup(told["page.css"]),
        script=Markup(told["page.js"]),
        policy=_policy(told["page.js"]),
        run=_run(headers),
        verdict=verdict,
        seconds=_time(seconds),
        failures=[_failure(n, r, shown.get(n - 1, Shown())) for n, r in failed],
        rows=[_row(n, r) for n, r in [*failed, *rest]],
        declined=any(r.declined for r in results),
        several=len({r.implementation for r in results}) > 1,
        grades=GRADES,
    )


def _policy(script: str) -> str:
    """The content security policy: the browser may use only what the page contains."""
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _run(headers: Iterable[str]) -> dict[str, Any]:
    """The header lines that all targets share, and those of each target."""
    targets = [header.splitlines() for header in headers]
    first = targets[0][1:] if targets else []
    common = [line for line in first if all(line in target[1:] for target in targets)]
    own = [
        (" · ".join(t[0].split("   ")), [line for line in t[1:] if line not in common])
        for t in targets
        if t
    ]
    return {"common": common, "targets": own}


def _time(seconds: float) -> Markup:
    """Seconds as a `<time>` element, the only thing that differs between two runs."""
    return Markup('<time datetime="PT{0:.1f}S">{0:.1f} s</time>').format(seconds)


def _row(n: int, result: Result) -> dict[str, Any]:
    """The data of one row of the table."""
    skipped, graded = result.verdict == "skipped", _graded(result)
    said = [result.message] if skipped else [] if result.failed else lines.below(result)
    return {
        "n": n,
        "result": result,
        "ratio": lines.ratio(result.ratio).removeprefix("ratio ") if graded else "",
        "allowed": f"{result.allowed:g}" if graded else "",
        "bits": f"{math.floor(result.bits)} of {result.digits}" if graded else "",
        "order": {
            "verdict": ORDER.index(result.verdict) if result.verdict in ORDER else len(ORDER),
            "ratio": f"{result.ratio:.6g}" if graded else "-1",
            "bits": f"{result.bits:.6g}" if graded else "-1",
        },
        "seconds": "" if skipped else _time(result.seconds),
        "said": said,
    }


def _graded(result: Result) -> bool:
    return result.grade != "-" and math.isfinite(result.ratio) and lines.graded(result)


def _failure(n: int, result: Result, shown: Shown) -> dict[str, Any]:
    """The data of one failure's section."""
    pictures = [(d, Markup(d.svg)) for d in shown.pictures]
    evidence = result.evidence
    return {
        "n": n,
        "result": result,
        "facts": " · ".join(lines.facts(result).split("   ")[:-1]),
        "seconds": _time(result.seconds),
        "case": lines.case_called(result),
        "smallest": lines.smallest(result),
        "also": [lines.also(result, one) for one in result.also],
        "commands": [line.partition(": ")[::2] for line in lines.again(result)],
        "notes": result.notes,
        "given": evidence.given if evidence else (),
        "pictures": pictures,
        "without": shown.without,
    }
