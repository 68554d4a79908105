"""Text of the long range arena [tay2021lra]: lists, reviews, and pairs of papers.

    lra-listops    basic_train.tsv, basic_test.tsv: columns Source and Target [nangia2018listops]
    lra-text       train/pos, train/neg, test/pos, test/neg: a review in each .txt [maas2011imdb]
    lra-retrieval  new_aan_pairs.train.tsv, ….test.tsv: label, two names, two texts [radev2013aan]

Reviews and papers are read byte by byte; a text longer than l is cut, blanks stand before a shorter
one.
"""

from pathlib import Path

import numpy as np

from refssm.training.tasks.listops import BLANK, TOKENS
from refssm.training.tasks.local.files import content, listed, of_parts, padded, refused, rows
from refssm.training.tasks.task import Examples, Task, sized

SYMBOLS = {token: symbol for symbol, token in enumerate(TOKENS)}
BETWEEN, NOTHING = 256, 257  # after the 256 bytes


def lra_listops(folder: Path, *, l: int = 2048) -> Task:
    """Symbols (l) as those of `listops`, without round brackets; ten classes."""
    sized("lra-listops", {"l": (l, 1)})
    parts = [_lists(folder / f"basic_{part}.tsv", l) for part in ("train", "test")]
    return of_parts("lra-listops", 10, *parts, symbols=len(TOKENS))


def _lists(path: Path, l: int) -> Examples:
    name, wanted = "lra-listops", "a table with the columns Source and Target"
    lists, labels = [], []
    for number, (source, target, *_) in rows(name, path, 2, wanted):
        if number == 1 and source == "Source":
            continue
        tokens = [token for token in source.split() if token not in "()"]
        unknown = [token for token in tokens if token not in SYMBOLS]
        if unknown or target not in TOKENS[:10]:
            came = f"line {number} has {(unknown or [target])[0]!r}"
            raise refused(name, path, came, f"digits and {', '.join(TOKENS[10:15])}, and a digit")
        if len(tokens) > l:
            came = f"line {number} has {len(tokens)} symbols"
            raise refused(name, path, came, f"at most l = {l}")
        lists.append([SYMBOLS[token] for token in tokens])
        labels.append(int(target))
    return Examples(padded(lists, l, BLANK), np.array(labels, int))


def lra_text(folder: Path, *, l: int = 4096) -> Task:
    """Bytes (l) of a review: is it against the film, or for it?"""
    sized("lra-text", {"l": (l, 1)})
    parts = [_reviews(folder / part, l) for part in ("train", "test")]
    return of_parts("lra-text", 2, *parts, symbols=NOTHING + 1)


def _reviews(folder: Path, l: int) -> Examples:
    wanted = "the reviews as files in the folders pos and neg"
    texts, labels = [], []
    for label, kind in enumerate(("neg", "pos")):
        for path in listed("lra-text", folder / kind, "*.txt", wanted):
            texts.append(_bytes(content("lra-text", path, wanted), l))
            labels.append(label)
    return Examples(padded(texts, l, NOTHING), np.array(labels, int))


def lra_retrieval(folder: Path, *, l: int = 4000) -> Task:
    """Bytes (2 l + 1) of two papers with a mark between: does one of them cite the other?"""
    sized("lra-retrieval", {"l": (l, 1)})
    parts = [_papers(folder / f"new_aan_pairs.{part}.tsv", l) for part in ("train", "test")]
    return of_parts("lra-retrieval", 2, *parts, symbols=NOTHING + 1)


def _papers(path: Path, l: int) -> Examples:
    name, wanted = "lra-retrieval", "five columns: 0 or 1, two names, two texts"
    pairs, labels = [], []
    for number, (label, _, _, *texts) in rows(name, path, 5, wanted):
        if label not in ("0", "1", "0.0", "1.0"):
            raise refused(name, path, f"line {number} has the label {label!r}", wanted)
        first, second = (_bytes(text.encode(), l) for text in texts[:2])
        pairs.append([*first, BETWEEN, *second])
        labels.append(int(float(label)))
    return Examples(padded(pairs, 2 * l + 1, NOTHING), np.array(labels, int))


def _bytes(data: bytes, l: int) -> np.ndarray:
    return np.frombuffer(data[:l], np.uint8)
