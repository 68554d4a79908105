"""What is wrong with a layout that no operator has, and the nearest one that it could be.

A guess only keeps what was written: known axes stay where they are, unknown ones become those that
are missing, and what is still missing stands where other arrays have it.
"""

import re
from collections import Counter
from collections.abc import Sequence

Axes = Sequence[str]


def wrong_axes(name: str, got: Axes, wanted: Axes) -> str:
    """How the axes of one array differ from the wanted ones: "`m` is no axis of `a`, …"."""
    has, want = Counter(got), Counter(wanted)
    told = [f"`{axis}` is no axis of `{name}`" for axis in has if axis not in want]
    for axis, n in want.items():
        if has[axis] < n:
            told.append(f"`{axis}` is missing" + " once" * (n > 1 and has[axis] > 0))
        elif has[axis] > n:
            told.append(f"`{axis}` is there {_times(has[axis])}, wanted {_times(n)}")
    return ", ".join(told)


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n} times")


def nearest(text: str, inputs: Sequence[Axes], outputs: Sequence[Axes], batch: Axes) -> str:
    """A layout for arrays with these axes, as near as possible to a text; "" if none is.

    Batch axes that the text names nowhere stay left out.
    """
    sides = [re.split("[,;]", side) for side in re.split("->|=>|→", text)]
    if [*map(len, sides)] != [len(inputs), len(outputs)]:
        return ""
    wants = [*inputs, *outputs]
    known = {axis: axis for want in wants for axis in want}
    groups = [_tokens(group, known) for side in sides for group in side]
    named = {token for group in groups for token in group}
    kept = []
    for group, want in zip(groups, wants, strict=True):
        strange = [t for t in group if t not in (*known, *"1()")]
        absent = Counter(want) - Counter(t for t in group if t in known)
        there = [axis for axis in want if axis in named or axis not in batch]
        enough = len(strange) >= absent.total()  # a stranger for each: `batch l n` is b l n
        kept.append(want if enough else there)
    made = [_mended(g, want, groups) for g, want in zip(groups, kept, strict=True)]
    texts = [re.sub(r"\( | (?=\))", lambda m: m[0].strip(), " ".join(g)) for g in made]
    return f"{', '.join(texts[: len(inputs)])} -> {', '.join(texts[len(inputs) :])}"


def _tokens(group: str, known: dict[str, str]) -> list[str]:
    """Axes and brackets of a group; "bln" is b l n and "B" is b, where those are axes."""
    tokens = []
    for token in re.findall(r"\w+|[()]", group):
        if token.lower() in known:
            tokens.append(token if token in known else token.lower())
        elif all(c.lower() in known for c in token):
            tokens += [c if c in known else c.lower() for c in token]
        else:
            tokens.append(token)
    level = [tokens[: i + 1].count("(") - tokens[: i + 1].count(")") for i in range(len(tokens))]
    balanced = all(0 <= n <= 1 for n in level) and not (level and level[-1])
    return tokens if balanced else [t for t in tokens if t not in "()"]


def _mended(group: list[str], want: Axes, others: list[list[str]]) -> list[str]:
    """The group with each wanted axis as often as it is wanted, and no other."""
    left, made = Counter(want), []
    for token in group:
        spare = token not in ("1", "(", ")")
        if spare and left[token] > 0:
            left[token] -= 1
        elif spare:
            token = "" if token in want else "?"
        made += [token] * bool(token)
    absent = [*(left + Counter()).elements()]
    while absent and "?" in made:
        made[made.index("?")] = absent.pop(0)
    made = [token for token in made if token != "?"]
    for axis in absent:
        model = next((o for o in others if axis in o), want)
        before = [t for t in model[: list(model).index(axis)] if t in made and t not in ("(", ")")]
        place = len(made) - made[::-1].index(before[-1]) if before else 0
        while made[:place].count("(") > made[:place].count(")"):
            place += 1
        made.insert(place, axis)
    return made
