"""Mutations of users' files, as a tree and as bytes, drawn by a seed."""

import copy
import json
import random

from judging import run

ODD = [None, True, 0, -1, 7, 10**30, 2**32, 0.5, float("nan"), float("inf"), "", "x", "..", "a\0b"]
ODD += [
    "\ud800",
    "é" * 40,
    "9" * 5000,
    "0x1p+0",
    "float32",
    "value",
    "strides",
    [],
    {},
    [None],
    {"": 1},
]
RAW = [b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"[" * 3000, b"\xff", b"\0", b"\xed\xa0\x80"]
RAW += [b'"', b",", b"null", b"\xef\xbb\xbf", b"1_0", b"\n", b"#", b"= "]


def places(tree, path=()):
    """Every path inside a tree of JSON."""
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in inside:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def of_tree(tree, rng):
    """A copy of a tree with one place deleted, replaced, doubled, nested or cut."""
    tree = copy.deepcopy(tree)
    *path, key = rng.choice([*places(tree)])
    box = tree
    for step in path:
        box = box[step]
    value, odd = box[key], copy.deepcopy(rng.choice(ODD))
    kind = rng.randrange(6)
    if kind == 0:
        del box[key]
    elif kind == 1:
        box[key] = {"x": value} if rng.random() < 0.5 else [value]
    elif kind == 2 and isinstance(box, list):
        box.insert(key, copy.deepcopy(value))
    elif kind == 2:
        box[f"{key}s"] = copy.deepcopy(value)
    elif kind == 3 and isinstance(value, str | list):
        box[key] = value[:-1]
    else:
        box[key] = odd
    return tree


def of_bytes(text, rng):
    """Bytes cut off, flipped, doubled or overwritten at a random place."""
    text = bytearray(text)
    place, kind = rng.randrange(len(text)), rng.randrange(5)
    if kind == 0:
        del text[place:]
    elif kind == 1:
        text[place] ^= 1 << rng.randrange(8)
    elif kind == 2:
        text[place:place] = text[: rng.randrange(1, 60)]
    elif kind == 3:
        text[place:place] = rng.choice(RAW)
    else:
        del text[place : place + rng.randrange(1, 40)]
    return bytes(text)


def as_json(tree):
    """Bytes of JSON; unpaired surrogates are allowed."""
    return json.dumps(tree).encode("utf-8", "surrogatepass")


def in_one_sentence(capfd, *arguments, named, codes=(4,)):
    """Run the command: exit code 4 and one sentence that names the file, or another of `codes`."""
    result, out, err = run(capfd, *arguments)
    assert result in codes, (result, err)
    if result == 4:
        assert err.startswith("refssm: "), err
        assert err.count("\n") == 1, err
        assert named in err, err
        assert len(err) < 1100, err
    else:
        assert err == ""
    return result, out, err


def seeded(seed, count):
    """Random generators, each with its own seed."""
    return [random.Random(f"{seed} {i}") for i in range(count)]


def toml(value):
    """A value in TOML syntax."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return "1979-05-27" if value is None else json.dumps(value)
