"""Folders of cases from a program's view: written once, answered by functions of this process."""

import json

import numpy as np

from refssm.command import code
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.exchange import judging
from refssm.conformance.exchange.files import as_written
from refssm.conformance.exchange.manifest import load
from refssm.conformance.number_types import number_type
from refssm.conformance.running.settings import Session, Settings


def written(folder, *options):
    """A folder of cases written by the command."""
    assert code(["cases", "write", str(folder), *map(str, options)]) == 0
    return folder


def manifest(folder):
    """The manifest as a dictionary."""
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def given(folder, record):
    """The arguments of one case, read from its files."""
    return [np.load(folder / record["id"] / told["file"]) for told in record["inputs"]]


def answer(folder, forward=None, vjp=None, check=""):
    """Write the outputs of all cases, or of one check, from a function or our reference."""
    document = manifest(folder)
    needed = {c for line in document["judged"] if check in line["check"] for c in line["calls"]}
    for record in [case for case in document["cases"] if case["id"] in needed]:
        op = operator_named(record["operator"])
        right = op.implementation("reference") if record["call"] == op.name else op.vjp()
        function = (forward if record["call"] == op.name else vjp) or right
        kind = number_type(record["dtype"])
        arrays = given(folder, record)
        if kind.half:
            arrays = [a.astype(np.float32) if a.dtype == np.float16 else a for a in arrays]
        with np.errstate(all="ignore"):
            y = function(*arrays, **record["statics"])
        outputs = [a for a in (y if isinstance(y, tuple) else (y,)) if a is not None]
        for told, out in zip(record["outputs"], outputs, strict=True):
            rounded = kind.rounded(out, True) if kind.half else out
            np.save(folder / record["id"] / told["file"], as_written(rounded, kind))


def two_small_cases(place):
    """A folder of two small cases with right outputs, and a manifest of these."""
    small = ("--where", "l=1..3", "--where", "n=1..2")
    how = ("--profile", "quick", "--dtype", "float32", "--check", "value", *small)
    folder = written(place, "--operator", "linear_scan", *how)
    answer(folder)
    tree = manifest(folder)
    tree["judged"] = tree["judged"][:2]
    names = {name for line in tree["judged"] for name in (line["drawn"], *line["calls"])}
    tree["cases"] = [case for case in tree["cases"] if case["id"] in names]
    return folder, tree


def judged(folder, *checks, cases=None):
    """The results for a folder, or for loaded `cases`, by check[dtype]."""
    cases = cases or load(folder)
    session = Session(judging.Answers(cases), str(folder), Settings(shrink=False, folder=None))  # pyright: ignore[reportArgumentType]
    lines = judging.chosen(cases, checks=checks)
    return {r.id.split("/")[1]: r for r in judging.judge(session, cases, lines)}
