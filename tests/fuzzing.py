"""Made inputs of the command: command lines, settings, manifests, plug-ins, files of arrays."""

import io
import json

import numpy as np
from hypothesis import strategies as st
from malformed import ODD, as_json, of_bytes, of_tree, toml
from numpy.lib import format as npy

WORDS = ["verify", "replay", "cases", "vectors", "list", "show", "new", "plot", "bench", "judge"]
WORDS += ["lint", "check", "write", "memory", "basis", "--", "-", "my_ops.py", "linear_scan", "x"]
NAMES = ["targets", "subjects", "profile", "seed", "timeout", "dtypes", "checks", "where", "vjp"]
NAMES += ["framework", "device", "layout", "ftz", "deterministic", "kinds", "allow-thin"]
NAMES += ["known-failures", "", "seeds", "a.b", "\u00e9"]
ODD_TEXTS = ["", " ", "-1", "nan", "1e9", "1e999", "0x10", "..", "/", "a\0b", "\ud800", "é", "*"]
ODD_TEXTS += ["[red]", "{case}", "%s", "l=1..3", "l=3..1", "l=..", "=", "b n l -> b n l", "->", "'"]
ODD_TEXTS += ["float32", "value", "my_ops.py::linear_scan", "my_ops.py:", "::", "x" * 3000, "tpu"]
DEPTHS = (1, 2, 30, 900, 990, 3000)  # brackets; Python's limit is 1000 calls

texts = st.sampled_from(ODD_TEXTS) | st.text(max_size=8)
seeds = st.randoms(use_true_random=False)


def command_lines(options):
    """Words of a command line; `options` are those that its subcommands know."""
    unknown = st.builds("--{}".format, texts)
    option = st.sampled_from(options) | unknown
    paired = st.builds("{}={}".format, option, texts)
    return st.lists(st.sampled_from(WORDS) | option | paired | texts, max_size=9)


def _nested(depth, left, right):
    return left * depth + right * depth


def _lines(table):
    return "".join(f"{json.dumps(key)} = {toml(value)}\n" for key, value in table.items())


values = st.recursive(
    st.sampled_from([None, True, 0, -1, 7, 10**30, 0.5, float("nan"), float("inf")]) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=5,
)
tables = st.dictionaries(st.sampled_from(NAMES), values, min_size=1, max_size=4)
headings = st.sampled_from(["[tool.refssm]", "[[tool.refssm]]", "[tool]", "[tool.refssm.seed]", ""])


def _settings(heading, table, rng, depth):
    text = f"{heading}\n{_lines(table)}".encode("utf-8", "surrogatepass")
    kind = rng.randrange(5)
    if kind == 0:
        return of_bytes(text, rng)
    if kind == 1:
        return f"[tool.refssm]\nseed = {_nested(depth, '[', ']')}\n".encode()
    if kind == 2:
        return f"[tool.refssm.seed{'.a' * depth}]\n".encode()
    return text


settings = st.builds(_settings, headings, tables, seeds, st.sampled_from(DEPTHS))


def manifests(tree):
    """Manifests with something changed in `tree`: a value, a byte, or the depth."""

    def changed(rng, depth, times):
        mutant = tree
        for _ in range(times):
            mutant = of_tree(mutant, rng)
        kind = rng.randrange(4)
        if kind == 0:
            return of_bytes(as_json(mutant), rng)
        if kind == 1:
            deep = json.dumps({**tree, "seed": "HERE"})
            return deep.replace('"HERE"', _nested(depth, "[", "]")).encode()
        return as_json(mutant)

    return st.builds(changed, seeds, st.sampled_from(DEPTHS), st.integers(1, 3))


BODIES = [
    "return None", "return 1", "return b[..., 0]", "return a, b", "return object()", "return 'x'",
    "return b.tolist()", "return b.astype(object)", "return np.zeros(b.shape, 'M8[s]')",
    "return np.full(b.shape, np.nan)", "raise KeyError(b)", "raise BaseException('\\ud800')",
    "raise NotImplementedError", "return Odd()", "return linear_scan", "return {}", "yield b",
    "return np.ma.masked_array(b, b > 0)", "a[...] = 0; return b", "return np.float32(1)",
    "return b.view(np.recarray)", "raise Loud()", "return np.lib.stride_tricks.as_strided(b, (2,))",
    "raise SystemExit", "raise MemoryError", "raise RecursionError", "return linear_scan(a, b)",
]  # fmt: skip
SIGNATURES = [
    "a, b",
    "a",
    "",
    "*a",
    "a, b, c",
    "a, b, /",
    "*, a, b",
    "a, b, **more",
    "b, a",
    "a, b=0",
]
MARKS = [
    "", "@implements('linear_scan')", "@implements('no_such')", "@implements(3)", "@implements",
    "@implements('linear_scan', layout='b n')", "@implements('linear_scan', layout='l, l -> l')",
    "@implements('linear_scan', layout=7)", "@implements('linear_scan', dtypes='float32')",
    "@implements('linear_scan', dtypes=('float8',))", "@implements('linear_scan', framework='tpu')",
    "@implements('linear_scan', device=3)", "@implements('linear_scan', only=lambda case: 3)",
    "@implements('linear_scan', only=lambda case: {})", "@implements('linear_scan', only=7)",
    "@implements('linear_scan', kinds='odd')", "@implements('linear_scan', ftz='yes')",
    "@implements('cauchy_kernel')", "@staticmethod", "@property", "@Odd", "@lambda f: None",
    "@lambda f: 3", "@lambda f: np", "@functools.cache", "@functools.partial", "@Loud", "@no_such",
]  # fmt: skip
LAST = [
    "", "1 / 0", "raise SystemExit(3)", "raise KeyboardInterrupt" * 0, "linear_scan = 3",
    "linear_scan_vjp = 3", "linear_scan_vjp = linear_scan", "def linear_scan_vjp(dx, a, b): pass",
    "def linear_scan_vjp(*a): return a", "cauchy_kernel = linear_scan", "__getattr__ = 3",
    "linear_scan.__refssm__ = 3", "linear_scan.__signature__ = 3", "linear_scan.__name__ = 'é'",
    "linear_scan_from = Odd()", "__name__ = 3", "del linear_scan", "import no_such_library", "(",
    "raise BaseException", "raise Loud()", "__all__ = 7", "__path__ = 3", 
    "linear_scan.__module__ = 3",
    "\0", "# \ud800", "class linear_scan: pass", "linear_scan_vjp = Odd()",
]  # fmt: skip
HEAD = """
import functools
import numpy as np
from refssm.testing import implements

class Odd:
    def __init__(self, *given): pass
    def __getattr__(self, name): raise ValueError(name)
    def __call__(self, *given): return self
    def __array__(self, *given, **more): raise TypeError("no array")
    def __repr__(self): raise ZeroDivisionError

class Loud(Exception):
    def __str__(self): raise ValueError
"""


def _plugin(mark, signature, body, last):
    text = f"{HEAD}\n{mark}\ndef linear_scan({signature}):\n    {body}\n\n{last}\n"
    return text.encode("utf-8", "surrogatepass")


plugins = st.builds(
    _plugin,
    *(st.sampled_from(parts) for parts in (MARKS, SIGNATURES, BODIES, LAST)),
)

shapes = st.lists(st.sampled_from([0, 1, 2, 3, 10**4, 10**9, 10**15, 2**63, -1]), max_size=4)
kinds = st.sampled_from(["<f4", ">f8", "<c8", "|O", "|V2", "<M8[s]", "<U3", "|b1", "<f2", "x"])


def _header(shape, kind, columns):
    stream = io.BytesIO()
    told = {"descr": kind, "fortran_order": columns, "shape": tuple(shape)}
    npy.write_array_header_1_0(stream, told)
    return stream.getvalue() + bytes(64)


def _arrays(rng, header, odd, zipped):
    stream, a = io.BytesIO(), np.full((1, 4, 2), 0.5, np.float32)
    if not zipped:
        return header if rng.random() < 0.5 else of_bytes(header, rng)
    with np.errstate(all="ignore"):
        a = [a, a[0], a[None], a.astype(int), a * np.nan, np.array(odd, object).astype("U9")][
            rng.randrange(6)
        ]
    np.savez(stream, a=a, b=np.full((1, 4, 2), 0.5, np.float32), c=np.array(3))
    whole = stream.getvalue()
    return of_bytes(whole, rng) if rng.random() < 0.6 else whole


arrays = st.builds(
    _arrays,
    seeds,
    st.builds(_header, shapes, kinds, st.booleans()),
    st.sampled_from([odd for odd in ODD if isinstance(odd, int | float) or odd is None]),
    st.booleans(),
)
