"""Search the catalog by words: each operator's name, tags, arguments and formula.

A word of the query counts as much as it is rare, times the weight of the place where it stands. One
that an operator lacks counts against it. Where more than half is lacking, it does not fit, unless
the query holds a whole name or tag of two words or more.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from math import log

from refssm._declaration.operator import Operator
from refssm.catalog import joined, judged

# how much a word says that stands in the name, in a tag, …; the first place that has it counts
WEIGHTS = {"name": 3.0, "tag": 3.0, "argument": 2.0, "family": 1.0, "docstring": 0.5}
# words of a sentence that say nothing about an operator
SILENT = """a all an and another as at by code custom do find for from function have here how i
implementation implements in is it jax library me mine model module my of on one op operator or our
own paper python pytorch repo test that the this to torch use using want what which with without"""
EMPTY = frozenset(SILENT.split())
WEAK, WEAKLY = frozenset({"kernel", "layer", "scan"}), 0.4  # they stand in many names
STEM, ENDING = 4, 6  # letters that two forms of one word share; and those of their endings
SIMILAR, OF_STEM = 0.82, 0.8  # the least likeness of a misspelt word; that of another form
# for a query that is a tag or a name; for all words of a tag; for a word more in a name
WHOLE, ALL_OF_TAG, EXTRA = 100.0, 1.0, 0.2
LACKING = 0.5  # of a word that others have: against the operator
ENOUGH = 0.5  # of the query's words, each as it is rare: an operator that has fewer does not fit
MOST, FAR = 8, 0.25  # how many hits; hits below this part of the best score are left out


@dataclass(frozen=True)
class Hit:
    """An operator that fits the words of a query."""

    op: Operator
    score: float
    words: tuple[tuple[str, str], ...]  # each word that matched, and where: "s4d", "tag S4D kernel"
    fits: bool = True  # it has enough of the words

    @property
    def why(self) -> str:
        """Which words matched, and where, in one line."""
        places: dict[str, list[str]] = {}
        for word, place in self.words:
            places.setdefault(place, []).append(word)
        return "; ".join(f"{', '.join(words)}: {place}" for place, words in places.items())


@dataclass(frozen=True)
class SearchResult:
    """The answer to a query: hits, best first; words that match nothing, with the nearest ones."""

    hits: tuple[Hit, ...]
    missing: tuple[str, ...]
    near: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """True if an operator fits; else the hits are the nearest ones."""
        return bool(self.hits) and self.hits[0].fits


def search(query: str, most: int = MOST) -> SearchResult:
    """The operators that fit the words of a query, best first."""
    typed = dict(_typed(query))
    words = {w: t for w, t in typed.items() if w not in EMPTY}
    likenesses = {word: _alike(word) for word in words}
    hits = [hit for entry in _index() if (hit := _hit(entry, words, likenesses))]
    best = max((hit.score for hit in hits), default=0.0)
    least = min(best, FAR * best)
    hits = [_prized_if_whole(hit, query) for hit in hits if hit.score >= least]
    hits.sort(key=lambda hit: -hit.score)
    missing = tuple(typed for word, typed in words.items() if not likenesses[word])
    near = [w for m in missing[:1] for w in difflib.get_close_matches(m.lower(), _frequencies())]
    return SearchResult(tuple(hits[:most]), missing, tuple(near))


@dataclass(frozen=True)
class _Entry:
    """The words of one operator, with the place of each."""

    op: Operator
    places: dict[str, tuple[float, str]]  # a word: its weight, and the place in words


@cache
def _index() -> tuple[_Entry, ...]:
    return tuple(_Entry(op, _places(op)) for op in judged())


def _places(op: Operator) -> dict[str, tuple[float, str]]:
    """Each word that stands in the declaration or the docstring, and the best place of it."""
    doc = op.reference.__doc__ or ""
    # parameters of a layer are all told in its docstring
    texts = [("name", op.name, "its name"), *(("tag", tag, f'called "{tag}"') for tag in op.tags)]
    texts += [("argument", name, "an argument") for name in (*op.inputs, *op.static)]
    texts += [("family", op.family, "its family"), ("docstring", doc, "its docstring")]
    places: dict[str, tuple[float, str]] = {}
    for kind, text, told in texts:
        for word in _forms(text):
            places.setdefault(word, (WEIGHTS[kind], told))
    return places


@cache
def _frequencies() -> Counter[str]:
    """How many operators have a word."""
    return Counter(word for entry in _index() for word in entry.places)


def _prized_if_whole(hit: Hit, query: str) -> Hit:
    """The hit, with a higher score if the query is a whole name or tag of the operator."""
    equal = any(joined(name) == joined(query) for name in (hit.op.name, *hit.op.tags))
    return replace(hit, score=hit.score + WHOLE * equal, fits=hit.fits or equal)


def _hit(entry: _Entry, words: dict[str, str], likenesses) -> Hit | None:
    """How well an operator fits; None if no word does."""
    score, matched, had, lacked, strange = 0.0, [], 0.0, 0.0, 0.0
    for word, typed in words.items():
        found = [
            (entry.places[w][0] * like, w) for w, like in likenesses[word] if w in entry.places
        ]
        if not found:
            lacks = _told_by(word, likenesses[word])
            if likenesses[word]:
                lacked += lacks
            else:  # nobody has it: that says nothing of which operator is nearest
                strange += lacks
            continue
        weight, there = max(found)
        had += _told_by(word, likenesses[word])
        score += weight * _rarity(there) * (WEAKLY if word in WEAK else 1.0)
        matched.append((typed, entry.places[there][1]))
    if not matched:
        return None
    given, whole = {w for word in words for w, _ in likenesses[word]}, False
    for name in (entry.op.name, *entry.op.tags):
        inside = {*_parts(name)} - EMPTY
        if inside <= given:
            score += ALL_OF_TAG * sum(map(_rarity, inside))
            whole |= len(inside) > 1
    score -= EXTRA * sum(part not in given for part in _parts(entry.op.name)) + LACKING * lacked
    return Hit(entry.op, score, tuple(matched), whole or had >= ENOUGH * (had + lacked + strange))


def _told_by(word: str, likenesses) -> float:
    """How much a word of the query says: as much as it is rare; one that nobody has, most."""
    rarity = _rarity(likenesses[0][0]) if likenesses else log(1 + len(_index()))
    return rarity * (WEAKLY if word in WEAK else 1.0)


def _rarity(word: str) -> float:
    return log(1 + len(_index()) / max(1, _frequencies()[word]))


def _alike(word: str) -> list[tuple[str, float]]:
    """The words of the catalog that a word may mean, and how alike each is."""
    known = _frequencies()
    if word in known:
        same = [(word, 1.0)]
    else:
        near = difflib.get_close_matches(word, known, n=3, cutoff=SIMILAR) if len(word) > 3 else []
        same = [(w, difflib.SequenceMatcher(None, word, w).ratio()) for w in near]
    stems = [w for w in known if w != word and _one_stem(word, w)]
    return [*same, *((w, OF_STEM) for w in stems if w not in dict(same))]


def _one_stem(one: str, other: str) -> bool:
    """ "kernels" and "kernel", "discretization" and "discretize": they differ in an ending."""
    shorter, longer = sorted((one, other), key=len)
    common = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    )
    endings = shorter[common:] + longer[common:]
    return STEM <= common >= len(shorter) - 1 and len(endings) <= ENDING and endings.isalpha()


def _typed(text: str) -> Iterable[tuple[str, str]]:
    """The words of a query, joined where they have a hyphen or _, and as they were typed.

    "rg-lru" is "rglru" because the catalog has that word; of others the parts count.
    """
    for chunk in text.split():
        whole, parts = joined(chunk), _parts(chunk)
        if whole in _frequencies() or len(parts) < 2:
            yield whole, chunk
        else:
            yield from zip(parts, parts, strict=True)


def _forms(text: str) -> Iterable[str]:
    """The words under which a text is found: its parts, and each chunk joined."""
    for chunk in text.split():
        yield from (w for w in dict.fromkeys([joined(chunk), *_parts(chunk)]) if w not in EMPTY)


def _parts(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())
