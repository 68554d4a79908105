"""Results as lines: verdict, check, grade, ratio, bits, cases; below a failure, what to do next."""

import math
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from shlex import quote

from rich.console import Console
from rich.text import Text

from refssm import __version__
from refssm._declaration.adapted import taken
from refssm._declaration.implements import Budget
from refssm._declaration.layout import canonical, in_layout
from refssm._declaration.operator import Operator
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Offer
from refssm.conformance.calling.links import switches
from refssm.conformance.cases.drawing import LONG, SIZES, TAME_SIZE
from refssm.conformance.cases.kinds.presets import OfPresets, longest_preset
from refssm.conformance.cases.sizes import core_dims, entries_of, largest
from refssm.conformance.checks.checks import (
    DERIVED_SIZES,
    PROFILES,
    derived,
    has_gradient,
    rule_named,
)
from refssm.conformance.checks.law import Conduct, Law, Rule
from refssm.conformance.judging.result import FAILURES, OTHERWISE, THIN, Also, Result

LIBRARIES = ("numpy", "scipy")
STYLES = {
    "pass": "green",
    "thin": "red",
    "skipped": "yellow",
    "inaccurate": "red",
    "wrong": "red",
    "error": "red",
}
MANY = 1e6  # ratios above it differ in nothing that matters
WORDS = {"pass": "pass", "thin": "thin", "skipped": "skip"}


def console(stream) -> Console:
    """A console that wraps no lines and obeys NO_COLOR."""
    return Console(file=stream, soft_wrap=True, highlight=False, markup=False, emoji=False)


def header(
    target: str,
    profile: str,
    seed: int,
    offers=(),
    narrowed: str = "",
    more: Iterable[str] = (),
) -> str:
    """Target, versions and settings of the run, and what authors declared."""
    machine = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    ran = f"refssm {__version__}, {libraries}, {machine}"
    settings = f"profile {profile}, seed {seed}" + (f", {narrowed}" if narrowed else "")
    ran = ", ".join(part for part in (ran, switches()) if part)
    lines = [f"{target}   {settings}", *more, ran]
    lines += dict.fromkeys(offer.about for offer in offers if offer.about)
    lines += [f"{offer.name}: {told}" for offer in offers if (told := _declared(offer))]
    return "\n".join(lines)


def _declared(offer: Offer) -> str:
    """The declarations of one implementation that differ from the defaults."""
    budget, parts = offer.accuracy, []
    if offer.layout:
        op = in_layout(taken(operator_named(offer.name), offer.adapters), offer.layout)
        parts.append(f"layout {offer.layout}; indices below are in the order {canonical(op)}")
    if budget.computes:
        parts.append(f"computes in {budget.computes}")
    if budget.state:
        parts.append(f"keeps its state in {budget.state}")
    if budget.C != Budget().C:
        parts.append(f"allowed ratio {budget.C:g}")
    if not budget.normwise:
        parts.append("judged entry by entry, never in norm")
    if offer.ftz:
        parts.append("subnormal numbers may be flushed to zero")
    if offer.adapters:
        parts.append(f"adapters {', '.join(map(str, offer.adapters))}: cases are its parameters")
    if offer.kinds != "any":
        parts.append(f"{offer.kinds} numbers only")
    if not offer.deterministic:
        parts.append("equal calls may differ within tolerance")
    if offer.nan_chunk:
        parts.append(f"NaN may spread within chunks of {offer.nan_chunk} steps")
    if offer.lengths:
        parts.append(f"`{offer.lengths}` has the lengths of rows, padded {offer.padding}")
    if offer.own_defaults:
        told = "; ".join(offer.own_defaults)
        parts.append(f"defaults of its own: {told} (cases give every keyword)")
    return ", ".join(parts)


def width(offers, function: str = "") -> int:
    """Width of the column of names; `function` is part of them if there are several."""
    longest = f"::{function}/gradient[complex128]" if function else "/gradient[complex128]"
    return max((len(f"{offer.name}{longest}") for offer in offers if offer.judged), default=0)


def show(result: Result, out: Console, wide: int = 0) -> None:
    """Print one result."""
    out.print(first(result, wide))
    for line in below(result):
        out.print(Text(f"  {line}", style="" if result.failed else "dim"))


def first(result: Result, wide: int = 0, title: str = "") -> Text:
    """The first line of a result; `title` stands in place of operator, check and type."""
    style = "yellow" if result.known or result.tolerated else STYLES[result.verdict]
    text = Text(f"{word(result)} ", style=style)
    text.append(f"{title or result.id:<{wide}} ", style="bold" if result.failed else "")
    return text.append(facts(result))


def word(result: Result) -> str:
    """The first word of a result's line."""
    return "known" if result.known else WORDS.get(result.verdict, "FAIL")


def complain(sentence: str, out: Console) -> None:
    """Print another reason why the run fails."""
    out.print(complaint(sentence))


def complaint(sentence: str) -> Text:
    """The line of another reason why the run fails."""
    return Text("FAIL ", style="red").append(sentence, style="bold")


def facts(result: Result) -> str:
    """Grade, ratio, bits, cases and time, or why the check was skipped."""
    if result.verdict == "skipped":
        return result.message
    parts = [f"{result.verdict}" if result.grade == "-" else f"grade {result.grade}"]
    if math.isfinite(result.ratio) and result.grade != "-" and graded(result):
        allowed = (
            f"{result.allowed:g} for A" if result.grade == "B" else f"allowed {result.allowed:g}"
        )
        parts.append(f"{ratio(result.ratio)} ({allowed})")
        bits = f"{math.floor(result.bits)} bits of {result.digits}"
        parts.append("in norm" if result.grade == "N" else bits)
    return "   ".join([*parts, cases([result]), f"{result.seconds:.1f} s"])


def cases(results: Sequence[Result]) -> str:
    """On how many cases results are, how many of them were declined, and how it was called."""
    drawn, declined = sum(r.examples for r in results), sum(r.declined for r in results)
    told = f"{drawn} case" + "s" * (drawn != 1)
    told += f", declined {declined} of {drawn}" * bool(declined)
    return told + " slice by slice" * any(r.sliced for r in results)


def ratio(value: float) -> str:
    """A ratio in words where its digits mean nothing."""
    return f"ratio {value:.2g}" if value < MANY else "ratio above a million"


def below(result: Result) -> list[str]:
    """The lines below a result: the details of a failure, or the limits of a pass."""
    lines = [f"known until {result.expires}: {result.known}"] * bool(result.known)
    if result.verdict == THIN:
        lines += [result.message, result.hint]
    if result.verdict in FAILURES:
        lines += [result.message] * bool(result.message)
        lines += [f"{OTHERWISE}: {result.convention}"] * bool(result.convention)
        lines += [f"looks like: {result.looks_like}"] * bool(result.looks_like)
        lines += [result.hint] * bool(result.hint)
        lines += [f"{case_called(result)}: {smallest(result)}"] * bool(result.smallest)
        lines += again(result)
        for other in result.also:
            lines += also(result, other)
    lines += remarks(result)
    if result.verdict == "pass" and not result.hint:
        lines.append(f"not tested: {limits(result)}")
    return lines


def remarks(result: Result) -> list[str]:
    """What else there is to say: on grade N, the notes, and the hint of a pass."""
    in_norm = result.grade == "N" and result.verdict != THIN  # a thin one has it as a note
    told = [f"right in norm: {result.message}"] * in_norm
    told += [f"note: {note}" for note in result.notes]
    return told + [result.hint] * bool(result.verdict == "pass" and result.hint)


def case_called(result: Result) -> str:
    """The word for the failing case: "smallest" if shrinking was tried, else "failing"."""
    one_case = isinstance(rule_named(result.check), Conduct)
    return "smallest" if result.shrunk and not one_case else "failing"


def smallest(one: Result | Also) -> str:
    """The smallest failing case, with its own ratio and bits if the worst case has others."""
    if not math.isfinite(one.smallest_ratio) or one.smallest_ratio == one.ratio:
        return one.smallest
    return f"{one.smallest}   ({ratio(one.smallest_ratio)}, {math.floor(one.smallest_bits)} bits)"


def also(result: Result, one: Also) -> list[str]:
    """The lines of another failure of the same check."""
    figures = f", {ratio(one.ratio)}" if math.isfinite(one.ratio) else ""
    what = f" ({one.kind})" if one.kind and not one.message.startswith(one.kind) else ""
    told = [f"also {one.verdict}{what} in {one.failing} of {result.examples}{figures}:"]
    told[0] += f" {one.message}"
    told += [f"  {case_called(result)}: {smallest(one)}"] * bool(one.smallest)
    return told + [f"  {line}" for line in again(result, one)]


def again(result: Result, one: Result | Also | None = None) -> list[str]:
    """The commands that reproduce a failure, or another one, with the judge and without."""
    one = one or result
    if not one.counterexample:
        return []
    of = result.implementation
    target = of if of.startswith("--exec ") else quote(of)  # the command is already quoted
    before = f"{switches()} ".lstrip()
    told = [f"again: {before}refssm replay {quote(one.counterexample)} {target}"]
    if one.alone:
        alone = f"{before}python {quote(one.alone)}"
        told.append(f"alone: {alone} (needs only NumPy and your module)")
    return told


def limits(result: Result) -> str:
    """What a passing check did not test: sizes, of graded checks those of every dimension."""
    op = operator_named(result.operator)
    rule = rule_named(result.check)
    if isinstance(rule, Conduct):
        return "any other case than this ordinary one"
    first = op.leading or core_dims(op)[0]
    entries = entries_of(op, result.dtype, of_gradient=rule.of_gradient)
    others = [f"{dim} above {size}" for dim, size in result.reached.items() if dim != first]
    if isinstance(rule, Law):
        sizes = [s for s in SIZES if not rule.tame or s <= TAME_SIZE]
        longest = largest(op, first, sizes, entries)
        return f"types other than {result.dtype}, {first} above {longest}"
    parts = [_reach(op, rule, result, first, entries)]
    if op.constructor:
        return ", ".join([*parts, f"parameters outside the domains in `refssm show {op}`"])
    parts += others
    if rule.of_gradient and not has_gradient(op, "float64"):
        parts.append("gradients in double precision")
    parts += [] if result.reached else ["batches above 3"]
    return ", ".join([*parts, f"inputs outside the domains in `refssm show {op}`"])


def _reach(op: Operator, rule: Rule, result: Result, first: str, entries: int) -> str:
    """Up to which size of the first dimension cases go: presets, others, those of `thorough`."""
    profile, thorough = PROFILES[result.profile], PROFILES["thorough"]
    long = LONG if first in op.static and not op.contract.stays_short else ()
    # gradients have the same sizes in every profile
    sizes = [SIZES if rule.of_gradient else p.sizes for p in (profile, thorough)]
    if rule.of_gradient and derived(op, result.dtype):
        return f"{first} above {result.reached.get(first, max(DERIVED_SIZES))}"
    usual, most = (largest(op, first, (*some, *long), entries) for some in sizes)
    longest = longest_preset(op, result.dtype, profile.deep) if rule.of_presets else 0
    if rule.of_presets:
        longest = longest or OfPresets(entries).largest(op, result.dtype, first)
    drawn = result.reached.get(first, max(usual, longest))
    if longest > usual and drawn == longest:
        more = f" (thorough: {most})" * (most > usual)
        return f"{first} above {longest} for presets, {usual}{more} for others"
    if op.constructor and first in op.parameters and not result.reached:
        return f"{first} above {max(op.parameters[first].values)}"
    told = f"{first} above {drawn}"
    return told + f" (thorough: {most})" * (most > drawn and not op.constructor)


def graded(result: Result) -> bool:
    """True if the result has a ratio and bits."""
    return math.isfinite(result.bits) and not (result.bits == 0 and result.ratio == 0)
