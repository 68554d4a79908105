"""Every .cuh is read for offsets of 32 bits: no small test can see them, and a card has no check.
Structs of sizes are read, too: a launcher's record must have the same fields.

A block's number and a size need 64 bits: `blockIdx.x * 256` wraps, whatever takes it. The rules
read text, not types: they see what a kernel's author would write by mistake.
"""

import re
import sys

import numpy as np
import pytest
from gpu.gate.collected import kernels

from refssm_gpu._launching.kernel import KERNELS, inlined

FILES = sorted(KERNELS.rglob("*.cuh"))
BOUNDED = re.compile(r"\b(?:least|min|inside)\((?:[^()]|\([^()]*\))*\)")  # at most their constant
SIZE = r"\bsizes?\.(?!(?:mask|at_rest)\b)\w+"  # flags are none
BLOCK = r"(?:blockIdx|gridDim)\.[xyz]"
PRIMARY = (
    r"[\w.:]+(?:<[\w ]+>)?(?:\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))?|\((?:[^()]|\([^()]*\))*\)"
)
AFTER = re.compile(rf"{BLOCK}\s*[*/%]\s*({PRIMARY})")
BEFORE = re.compile(rf"({PRIMARY})\s*\*\s*{BLOCK}")
NARROW = re.compile(r"\b(?:const\s+)?(?:unsigned int|unsigned|int)\s+(\w+\s*=[^;]*)[;:]")
LATER = re.compile(r"\b(?:unsigned int|unsigned|int)\s+(\w+(?:\s*,\s*\w+)*)\s*;")
WIDE = re.compile(r"\blong long\b[\s&*]*((?:[^;(){}]|\([^;{}]*?\))*)")

ACROSS, N, P = (f"{name} = static_cast<int>(size.{name})" for name in ("across", "n", "p"))
FEW, ALONE = "the launcher gives 32 at most", "one size alone: offsets take that of 64 bits"
# file, what the rules report there, and why it is right
EXCEPTIONS = {
    ("cauchy_moments.cuh", ACROSS): FEW,
    ("dplr_gradients.cuh", ACROSS): FEW,
    ("vandermonde_moments.cuh", "blockIdx.x * 2"): "fewer than 2^31 blocks: twice fits unsigned",
    ("ssd_forward.cuh", N): ALONE,
    ("ssd_back.cuh", P): ALONE,
    ("ssd_back.cuh", N): ALONE,
}


def complaints(text, included=""):
    """What in a file is an offset, or a part of one, that may not fit into 32 bits."""
    text = _plain(text)
    before = _plain(included)
    declared = _declared(before + text)
    found = []
    for pattern in (AFTER, BEFORE):
        for m in pattern.finditer(text):
            if not _is_wide(m[1], declared, len(before) + m.start()):
                found.append(" ".join(m[0].split()))
    names = {name for m in LATER.finditer(text) for name in re.findall(r"\w+", m[1])}
    written = [part for m in NARROW.finditer(text) for part in _parts(m[1])]
    written += [m[0] for m in re.finditer(r"\b\w+\s*=(?!=)[^;]*", text) if _name(m[0]) in names]
    return [*found, *(part for part in written if _too_large(part))]


def _plain(text):
    """The text without its comments."""
    return re.sub(r"//[^\n]*", "", text)


def _too_large(declared):
    """Whether what initializes a number of 32 bits may not fit."""
    value = BOUNDED.sub("", declared.partition("=")[2])
    product = re.search(r"threadIdx\.[xyz]\s*\*|\*\s*threadIdx\.[xyz]", value)
    return bool(product or re.search(rf"{BLOCK}|{SIZE}", value))


def _declared(text):
    """Where each name is declared, and whether in 64 bits: variables, members and functions."""
    found = {}
    for pattern, wide in ((WIDE, True), (NARROW, False)):
        for m in pattern.finditer(text):
            for part in _parts(m[1]):
                found.setdefault(_name(part), []).append((m.start(), wide))
    return {name: sorted(places) for name, places in found.items()}


def _is_wide(operand, declared, place):
    """Whether an operand of a product is of 64 bits: by the last declaration of its name before."""
    if re.match(rf"\d+LL$|static_cast<long long>|{SIZE}", operand):
        return True
    if operand.startswith("("):
        inner = re.finditer(PRIMARY, operand[1:-1])
        return any(_is_wide(m[0], declared, place) for m in inner)
    places = declared.get(operand.partition("(")[0].rpartition(".")[2], [(0, False)])
    return ([places[0]] + [p for p in places if p[0] < place])[-1][1]


def _name(declarator):
    """The name in "a = b", "a(int b)" or "a"."""
    match = re.match(r"\s*(\w+)", declarator)
    return match[1] if match else ""


def _parts(declarators):
    """ "a = f(b, c), d = e" at its outer commas."""
    depth, parts = 0, [""]
    for letter in declarators:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [" ".join(part.split()) for part in parts]


def everything_before(path):
    """What a file includes, with the file itself."""
    return inlined(path.relative_to(KERNELS).as_posix())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_offsets_in_a_kernels_source_are_of_64_bits(path):
    found = complaints(path.read_text(encoding="utf-8"), everything_before(path))
    assert [text for text in found if (path.name, text) not in EXCEPTIONS] == []


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (
            "diagonal/modes.cuh",
            "const long long i = blockIdx.x * 128LL",
            "const int i = blockIdx.x",
        ),
        ("diagonal/averages.cuh", "blockIdx.x * 128LL", "blockIdx.x * 128"),
        ("hope/hope_stream.cuh", "static_cast<long long>(blockIdx.x)", "blockIdx.x"),
        (
            "vandermonde/vandermonde.cuh",
            "const long long row = blockIdx",
            "const int row = blockIdx",
        ),
        ("ssd/ssd_steps.cuh", "blockIdx.x % groups * (", "blockIdx.x % 8 * ("),
    ],
)
def test_an_offset_of_32_bits_planted_in_a_kernel_is_seen(file, old, new):
    text, before = (KERNELS / file).read_text(encoding="utf-8"), inlined(file)
    assert old in text
    assert len(complaints(text.replace(old, new), before)) > len(complaints(text, before))


def test_each_exception_is_still_needed():
    texts = {
        path.name: complaints(path.read_text(encoding="utf-8"), everything_before(path))
        for path in FILES
    }
    assert [(f, text) for f, text in EXCEPTIONS if text not in texts[f]] == []


@pytest.mark.parametrize(
    "wrong",
    [
        "const int at = blockIdx.x * 256 + threadIdx.x;",
        "const long long at = blockIdx.x * 256 + threadIdx.x;",  # wraps before it is widened
        "const int at = 2, first = blockIdx.x;",
        "unsigned at = gridDim.x * 256u;",
        "y[blockIdx.x * 256 + threadIdx.x] = 0;",
        "y[BLOCK * blockIdx.x + threadIdx.x] = 0;",
        "const int at = threadIdx.x * stride;",
        "const int n = size.n;",
        "const int at = row * size.n + threadIdx.x;",
        "const int at = static_cast<int>(size.l);",
        "int at; at = blockIdx.y * size.span;",
        "for (int i = blockIdx.x; i < n; ++i) {}",
        "const int rows = 4; y[blockIdx.x % rows * TILE] = 0;",
    ],
)
def test_an_offset_of_32_bits_is_seen(wrong):
    assert complaints(f"__global__ void f(float* y, int n) {{ {wrong} }}") != []


@pytest.mark.parametrize(
    "right",
    [
        "const long long at = blockIdx.x * 256LL + threadIdx.x;",
        "const long long at = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;",
        "const long long tiles = size.l / 2, first = blockIdx.x % tiles * TILE;",
        "const long long row = blockIdx.x / size.tiles, at = row * gridDim.y + blockIdx.y;",
        "const long long row = blockIdx.x;",
        "const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;",
        "const int count = static_cast<int>(min(size.n - first, (long long)SLICE));",
        "const unsigned bits = size.mask >> 2 & 3u;",
        "// const int at = blockIdx.x * 256 + threadIdx.x;",
    ],
)
def test_an_offset_of_64_bits_passes(right):
    assert complaints(f"__global__ void f(float* y) {{ {right} }}") == []


# ---- structs of sizes

TYPES = {"long long": "int64", "unsigned": "uint32", "int": "int32"}


def structs(text):
    """The fields of each struct of sizes in a source: names and NumPy's types, in order."""
    for body in re.findall(r"struct \w*sizes \{(.*?)\};", _plain(text), re.DOTALL):
        declared = re.findall(r"(long long|unsigned|int) ([^;]+);", body)
        yield [(name, TYPES[kind]) for kind, names in declared for name in names.split(", ")]


def records():
    """The fields of each record that a launcher passes."""
    kernels()  # imports all launchers
    ours = [module for name, module in sys.modules.items() if name.startswith("refssm_gpu.")]
    dtypes = {id(x): x for module in ours for x in vars(module).values() if isinstance(x, np.dtype)}
    for made in dtypes.values():
        yield [(name, made[name].name) for name in made.names or ()]


def test_each_record_has_the_fields_of_a_struct_in_its_order():
    """The host build compares their sizes in bytes: two fields exchanged would pass it."""
    found = [fields for path in FILES for fields in structs(path.read_text(encoding="utf-8"))]
    assert len(found) > 10
    assert sorted(found) == sorted(fields for fields in records() if fields)


def test_a_struct_is_read_with_its_comments():
    text = "struct scan_sizes {\n    long long l, n;  // of; a row\n    unsigned mask;\n};"
    assert [*structs(text)] == [[("l", "int64"), ("n", "int64"), ("mask", "uint32")]]
