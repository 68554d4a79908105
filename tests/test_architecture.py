import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from honest import implementations

import refssm
from refssm._declaration.operator import PACKAGES
from refssm.catalog import OPERATORS

pytestmark = pytest.mark.short  # cheap, and a later item would come too late

ROOT = Path(__file__).parent.parent
FILES = sorted([*ROOT.glob("refssm/**/*.py"), *ROOT.glob("refssm_gpu/**/*.py")])
CODE = sorted([*FILES, *ROOT.glob("tests/**/*.py"), *ROOT.glob("property_tests/*.py")])
SATELLITES = (
    "enclosure",
    "jit",
    "layers",
    "training",
    "subjects",
    "conformance",
    "bench",
    "gallery",
    "experiments",
)
BELOW_BENCH = ("conformance", "subjects", "jit", "layers", "training")
TABLES = ("clones", "former", "libraries")  # a plug-in is imported by its name, by nobody else
NEVER_LOADED = (
    "numba",
    "matplotlib",
    "mpmath",
    "hypothesis",
    "scipy.linalg",
    "typer",
    "rich",
    "joblib",
    "flint",
)


def imports(path):
    """Dotted names of all imports of a file, at any place."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def violations(path):
    """Imports that are forbidden at the place of the file."""
    role = path.relative_to(ROOT / "refssm").parts[0] if "refssm_gpu" not in path.parts else "gpu"
    names = list(imports(path))
    ours = [n for n in names if n.split(".")[0] in ("refssm", "refssm_gpu")]
    if role == "oracle":
        return foreign(names, "mpmath") + [n for n in ours if part(n) != "oracle"]
    if role == "enclosure":
        return foreign(names, "flint") + [n for n in ours if part(n) != "enclosure"]
    if role in ("jit", "gpu"):
        others = {*SATELLITES, "oracle", "command"} - {role}
        return [n for n in ours if part(n) in others]
    if role == "command":
        return []
    if role in ("gallery", "experiments"):
        below = {"gallery"} if role == "gallery" else {"gallery", "layers", "training", role}
        others = {*SATELLITES, "oracle", "command"} - below
        clock = ("refssm.bench.measuring.timing",) if role == "experiments" else ()
        ours = [n for n in ours if not n.startswith(clock)] if clock else ours
        return foreign(names, "matplotlib") + [n for n in ours if part(n) in others]
    if role == "subjects":  # of the judge a plug-in sees what authors see: refssm.testing
        others = {*SATELLITES, "oracle", "command"} - {"subjects"}
        mine = {"testing", "adapters"} if path.stem in TABLES else set()
        return [n for n in ours if part(n) in others | mine]
    if role == "conformance":
        return [n for n in ours if part(n) in ("bench", "command")] + plugins(ours)
    if role == "bench":
        others = {*SATELLITES, "oracle", "command"} - {"bench", *BELOW_BENCH}
        drawn = [n for n in names if n.split(".")[0] == "matplotlib"]
        return drawn + [n for n in ours if part(n) in others] + plugins(ours)
    if role in ("layers", "training"):
        others = {*SATELLITES, "oracle", "command"} - {"layers", role}
        data = (
            ("PIL", "sklearn", "matplotlib") if role == "training" else ()
        )  # they ship the data of tasks
        return foreign(names, "safetensors", *data) + [n for n in ours if part(n) in others]
    if path.name == "testing.py":  # the only root file that may import satellites, lazily
        return foreign(names) + [n for n in _at_import(path) if part(n) in SATELLITES]
    if path.parts[-2:] == ("presets", "layers.py"):  # what a layer's own `init` draws
        return foreign(names) + [n for n in ours if part(n) in set(SATELLITES) - {"layers"}]
    if path.parts[-2:] == ("_declaration", "layout.py"):  # it reads layouts by einops' parser
        return foreign(names, "einops") + [n for n in ours if part(n) in SATELLITES]
    return foreign(names) + [n for n in ours if part(n) in SATELLITES]


def foreign(names, *allowed):
    """Libraries that the root must not import."""
    outside = {n.split(".")[0] for n in names} - set(sys.stdlib_module_names)
    return sorted(outside - {"numpy", "scipy", "refssm", *allowed})


def plugins(names):
    """Imports of plug-ins for libraries."""
    parts = [n.split(".") for n in names if part(n) == "subjects"]
    return [n for n in parts if len(n) > 2 and n[2] not in TABLES]


def _at_import(path):
    """Names imported at module import, not inside a function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [n.module or "" for n in tree.body if isinstance(n, ast.ImportFrom)]


def part(name):
    """The second part of a dotted name, if it has one."""
    return name.partition(".")[2].partition(".")[0]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_nothing_imports_upwards(path):
    assert violations(path) == []


def test_the_import_walk_sees_a_forbidden_import(tmp_path, monkeypatch):
    planted = {
        "refssm/oracle/bad.py": "from refssm.scan import linear_scan",
        "refssm/enclosure/bad.py": "from refssm.oracle.scan import linear_scan",
        "refssm/enclosure/worse.py": "import mpmath",
        "refssm/bad.py": "import numba",
        "refssm/worse.py": "def f():\n    from refssm.conformance import judge",
        "refssm/gallery/bad.py": "from refssm.conformance.judging.grading import judge",
        "refssm/gallery/worse.py": "import rich",
        "refssm/experiments/bad.py": "from refssm.conformance.judging.grading import judge",
        "refssm/experiments/worse.py": "from refssm.command import plot",
        "refssm/experiments/worst.py": "from refssm.bench.run import Bench",
        "refssm/layers/bad.py": "from refssm.training.loop import Plan",
        "refssm/layers/worse.py": "from refssm.jit.scan import linear_scan",
        "refssm/training/bad.py": "from refssm.command import train",
        "refssm/training/worse.py": "import torch",
        "refssm/gallery/worst.py": "from refssm.training.loop import Plan",
        "refssm/jit/bad.py": "from refssm.conformance.judging.grading import judge",
        "refssm/conformance/bad.py": "import refssm.command",
        "refssm/conformance/worse.py": "def f():\n    from refssm.bench.run import Bench",
        "refssm/conformance/worst.py": "from refssm.subjects.jax_scan import linear_scan",
        "refssm/subjects/bad.py": "from refssm.conformance.judging.grading import judge",
        "refssm/subjects/clones.py": "from refssm.testing import implements",
        "refssm/scan/worst.py": "from refssm.subjects.clones import module",
        "refssm/bench/bad.py": "from refssm.command import plot",
        "refssm/bench/worse.py": "from refssm.gallery import bench",
        "refssm/bench/worst.py": "import matplotlib",
        "refssm/layers/worst.py": "import sklearn",
        "refssm/testing.py": "from refssm.conformance.running.session import judged_in_process",
    }
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    for name, text in planted.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        assert violations(path), name


@pytest.mark.parametrize("role", [*PACKAGES, "vjp"])
@pytest.mark.parametrize("op", OPERATORS, ids=str)
def test_every_operator_has_every_role_or_lists_it_as_lacking(op, role):
    if role == "enclosure":
        pytest.importorskip("flint", reason="enclosures need python-flint: '.[flint]'")
    try:
        found = op.vjp() if role == "vjp" else op.implementation(role)
    except (ModuleNotFoundError, AttributeError):
        found = None
    assert callable(found) != (role in op.lacks)


def test_the_reference_is_honest_and_the_mirror_is_where_there_is_one():
    rows = Counter((h.op, "mirror" if h.mirror else h.name) for h in implementations())
    assert len({str(h) for h in implementations()}) == len(implementations())
    for op in OPERATORS:
        assert rows[op.name, "reference"] == 1
        assert rows[op.name, "mirror"] == ("jit" not in op.lacks)


@pytest.mark.parametrize("op", OPERATORS, ids=str)
def test_every_operator_has_its_files_its_section_and_its_names(op):
    for place in ("tests/test_{}.py", "docs/operators/{}.md"):
        assert (ROOT / place.format(op.family)).is_file()
    pages = [place.format(op.family) for place in ("{}.md", "{}_*.md")]  # one page, or several
    found = [path for page in pages for path in sorted(ROOT.glob(f"docs/operators/{page}"))]
    page = "\n".join(path.read_text(encoding="utf-8") for path in found)
    assert re.search(rf"^##? .*`?{op.name}`?$", page, re.MULTILINE)
    names = {op.name} | ({f"{op.name}_vjp"} if "vjp" not in op.lacks else set())
    assert names <= set(refssm.__all__)


@pytest.mark.parametrize("family", sorted({op.family for op in OPERATORS}))
def test_the_pages_of_a_family_name_its_gpu_mirror_if_there_is_one(family):
    pages = [
        p for pat in ("{}.md", "{}_*.md") for p in ROOT.glob("docs/operators/" + pat.format(family))
    ]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    mirrored = [op for op in OPERATORS if op.family == family and "gpu" not in op.lacks]
    assert (f"refssm_gpu.{family}" in text) == bool(mirrored)
    assert "no GPU mirror" not in " ".join(text.split()) or not mirrored


NO_MIRROR = re.compile(r"no (GPU )?mirror|no mirror on the GPU|not on the GPU", re.IGNORECASE)


def sections_without_mirror(text):
    """The operators whose sections on a page say that they have no mirror on the GPU."""
    for section in re.split(r"^##? ", text, flags=re.MULTILINE):
        heading, _, body = section.partition("\n")
        name = heading.split()[-1].strip("`") if heading.split() else ""
        if NO_MIRROR.search(" ".join(body.split())):
            yield from (op for op in OPERATORS if op.name == name)


def test_no_section_says_that_an_operator_has_no_mirror_that_has_one():
    pages = sorted(ROOT.glob("docs/operators/*.md"))
    told = [op for p in pages for op in sections_without_mirror(p.read_text(encoding="utf-8"))]
    assert told
    assert [op.name for op in told if "gpu" not in op.lacks] == []
    planted = (
        "# Scans\n\n## One step: `linear_step`\n\nThere is no GPU\nmirror.\n\n## `dense_scan`\n"
    )
    assert [op.name for op in sections_without_mirror(planted)] == ["linear_step"]


def test_importing_refssm_loads_no_heavy_library():
    code = f"import refssm, sys; print([m for m in {NEVER_LOADED} if m in sys.modules])"
    for use in ("", "refssm.linear_scan; refssm.cauchy_kernel; "):
        loaded = subprocess.run(
            [sys.executable, "-c", code.replace("print", use + "print")],
            capture_output=True, encoding="utf-8", check=True,
        )  # fmt: skip
        assert loaded.stdout.strip() == "[]"


@pytest.mark.parametrize("path", CODE, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_and_functions_stay_small(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 500
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 62, node.name


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_optional_import_and_no_silent_except(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Try):
            statements = [*node.body]
            assert not any(isinstance(s, ast.Import | ast.ImportFrom) for s in statements)
            assert all(handler.type is not None for handler in node.handlers)


def test_every_citation_key_resolves():
    bibliography = (ROOT / "docs/references.bib").read_text(encoding="utf-8")
    known = set(re.findall(r"^@\w+\{([^,]+),", bibliography, re.MULTILINE))
    cited = set()  # `ag1988/dss` is the name of a repository
    for path in [*FILES, *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]:
        cited |= set(
            re.findall(r"\b([a-z]+(?:19|20)\d\d[a-z0-9]*)\b(?!/)", path.read_text(encoding="utf-8"))
        )
    assert cited, "the citation pattern finds nothing"
    assert cited <= known


def test_nothing_refers_to_the_workplace_it_was_made_in():
    for path in [*CODE, *ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), ROOT / "pyproject.toml"]:
        if path != Path(__file__):
            assert "../shared" not in path.read_text(encoding="utf-8"), path
