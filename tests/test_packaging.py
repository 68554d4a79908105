"""What pyproject.toml asks for is what the code uses."""

import ast
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from functools import cache
from pathlib import Path

import pytest
from judging import SCAN, plugin

from refssm.subjects.clones import CLONES

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
MODULES = {
    "pillow": "PIL",
    "scikit-learn": "sklearn",  # where a module has another name than its distribution
    "cupy-cuda13x": "cupy",
    "dask": "distributed",
    "python-flint": "flint",
    "s5-pytorch": "s5",
}
WITHOUT_IMPORT = {  # a file, and what in it says that the library is used
    "build": (".ci/wheel", "-m build"),
    "furo": ("docs/site/conf.py", '"furo"'),
    "myst-parser": ("docs/site/conf.py", '"myst_parser"'),
    "sphinx": ("Makefile", "-m sphinx"),
    "sphinx-mathjax-offline": ("docs/site/stage.py", '"sphinx-mathjax-offline'),
    "sphinxcontrib-bibtex": ("docs/site/conf.py", '"sphinxcontrib.bibtex"'),
    "array-api-strict": ("tests/gpu/array_level.py", "array_api_strict"),
    "nvidia-cuda-nvrtc": ("tests/gpu/gate/nvrtc.py", "nvidia-cuda-nvrtc"),  # by ctypes
    "nvidia-nvvm": ("tests/gpu/numba_cuda/lint.py", "nvidia-nvvm"),  # Numba loads it
    "gmpy2": ("docs/large_runs.md", "With gmpy2"),  # mpmath imports it
    "pre-commit": ("CONTRIBUTING.md", "pre-commit install"),
    "pyright": ("Makefile", "$(BIN)/pyright"),
    "pytest-xdist": ("Makefile", "--numprocesses"),
    "ruff": ("Makefile", "$(BIN)/ruff"),
    "twine": (".ci/wheel", "-m twine"),
}
ELSEWHERE = {  # libraries under test that no registry installs in one line: docs/findings.md
    "causal_conv1d",
    "cupyx",  # a part of CuPy
    "lrnnx",
    "mamba_ssm",
    "structured_kernels",
}
ELSEWHERE |= {package for clone in CLONES.values() for package in clone.needs}


def distributions(requirements):
    """Names without versions, extras, and markers; ours are left out."""
    names = {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}
    return names - {PROJECT["name"]}


@cache
def imported(folder):
    """Libraries that the files of a folder import."""
    names = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add((node.module or "").split(".")[0])
    # property_tests imports helpers of tests; files of the package are imported by their whole name
    places = {folder, "tests"} - {"refssm", "refssm_gpu"}
    own = {path.stem for place in places for path in (ROOT / place).rglob("*.py")}
    own |= {path.name for path in (*ROOT.iterdir(), *(ROOT / "tests").iterdir())}
    return names - set(sys.stdlib_module_names) - own - {PROJECT["name"]}


def used():
    """Libraries that the package needs; found when a test asks, not when tests are collected."""
    return imported("refssm") | imported("refssm_gpu") | imported("docs/examples")


def used_in_tests():
    """Libraries that the package or its tests need."""
    return used() | imported("tests") | imported("property_tests")


def module(distribution):
    """The module of a distribution."""
    return MODULES.get(distribution, distribution.replace("-", "_"))


@pytest.mark.parametrize("extra", [*EXTRAS, "default"])
def test_an_extra_lists_only_what_is_used(extra):
    wanted = PROJECT["dependencies"] if extra == "default" else EXTRAS[extra]
    needed = used_in_tests() if extra in ("test", "kernels", "dev") else used()
    unused = {name for name in distributions(wanted) if module(name) not in needed}
    for name in unused & {*WITHOUT_IMPORT}:
        page, words = WITHOUT_IMPORT[name]
        assert words in (ROOT / page).read_text(encoding="utf-8"), name
    assert unused - {*WITHOUT_IMPORT} == set()


def test_every_library_that_is_imported_is_listed():
    every = [PROJECT["dependencies"], *EXTRAS.values()]
    listed = {module(name) for wanted in every for name in distributions(wanted)}
    assert used() - listed - ELSEWHERE == {"pytest"} - listed
    assert used_in_tests() - listed - ELSEWHERE == set()


def test_an_extra_that_is_part_of_another_exists():
    parts = re.findall(r"refssm\[([\w,]+)\]", str(EXTRAS))
    assert {name for part in parts for name in part.split(",")} <= {*EXTRAS}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with an sdist, and the wheel that is built from it."""
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        pytest.skip("no uv here: no wheel is built; `make wheel` builds and checks one")
    place = tmp_path_factory.mktemp("built")
    done = subprocess.run(
        [uv, "build", "--out-dir", place, ROOT], capture_output=True, encoding="utf-8"
    )
    if done.returncode and "hatchling" in done.stderr:
        pytest.skip(f"hatchling cannot be had, so no wheel is built: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="module")
def wheel(built):
    """The wheel, unpacked outside the clone; `make wheel` also installs it."""
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        archive.extractall(built / "unpacked")
    return built / "unpacked"


CONTENTS = runpy.run_path(str(ROOT / ".ci/contents.py"))


@pytest.mark.long
def test_wheel_and_sdist_have_what_they_need_and_nothing_else(built, capfd):
    paths = [str(next(built.glob(ending))) for ending in ("*.whl", "*.tar.gz")]
    assert CONTENTS["main"](paths) == 0
    out, err = capfd.readouterr()
    assert re.match(r"refssm-\S+\.whl: \d+ files, types, CUDA sources", out)
    assert err == ""
    assert len(CONTENTS["in_wheel"](Path(paths[0]))) > 700


@pytest.mark.parametrize(
    ("lost", "added", "said"),
    [
        ("refssm/py.typed", "", "the wheel lacks refssm/py.typed"),
        ("refssm/scan.py", "", "the wheel lacks refssm/scan.py"),
        ("refssm_gpu/kernels/scan/linear_scan.cuh", "",
         "the wheel lacks refssm_gpu/kernels/scan/linear_scan.cuh"),
        ("", "tests/test_scan.py", "the wheel has tests/test_scan.py, no file of a package"),
        ("", "refssm/scan.pyc", "the wheel has refssm/scan.pyc, no file of a package"),
    ],
)  # fmt: skip
def test_a_wheel_that_lacks_a_file_or_has_a_test_is_seen(lost, added, said):
    sdist = {*CONTENTS["SDIST"], *CONTENTS["NEEDED"], "refssm/scan.py"} - {CONTENTS["BIBLIOGRAPHY"]}
    wheel = {*CONTENTS["NEEDED"], "refssm/scan.py", "refssm-1.dist-info/METADATA"}
    assert CONTENTS["mistakes"](wheel, sdist) == []
    assert CONTENTS["mistakes"](wheel - {lost} | {added} - {""}, sdist) == [said]


def test_an_sdist_without_its_tests_or_with_compiled_files_is_seen():
    sdist = {*CONTENTS["SDIST"], *CONTENTS["NEEDED"]} - {CONTENTS["BIBLIOGRAPHY"]}
    planted = sdist - {"tests/conftest.py"} | {"tests/kept.npz"}
    assert CONTENTS["mistakes"]({*CONTENTS["NEEDED"]}, planted) == [
        "the sdist lacks tests/conftest.py", "the sdist has tests/kept.npz"
    ]  # fmt: skip


@pytest.mark.long
def test_an_sdist_runs_its_tests(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(built / "sources", filter="data")
    (folder,) = (built / "sources").iterdir()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [*command, "tests/test_names.py", "tests/test_scan.py", "tests/test_release.py"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^\d\d+ passed", ran.stdout.splitlines()[-1]), ran.stdout


@pytest.mark.long
def test_the_wheel_has_types_citations_and_every_file_of_the_package(wheel):
    assert (wheel / "refssm/py.typed").is_file()
    citations = (ROOT / "docs/references.bib").read_text(encoding="utf-8")
    assert (wheel / "refssm/references.bib").read_text(encoding="utf-8") == citations
    listed = subprocess.run(
        ["git", "ls-files", "refssm", "refssm_gpu"], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    if listed.returncode:
        pytest.skip("no git here: which files belong to the package is unknown")
    assert [name for name in listed.stdout.split() if not (wheel / name).is_file()] == []


@pytest.mark.long
def test_the_wheel_judges_a_plug_in_outside_the_clone(wheel, tmp_path):
    program = "import refssm, sys; from refssm.command import main; print(refssm.__file__); main()"
    options = ["--check", "value", "--dtype", "float32", "--profile", "quick"]
    ran = subprocess.run(
        [sys.executable, "-c", program, "verify", "-v", plugin(tmp_path, SCAN), *options],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(wheel)},
        capture_output=True, encoding="utf-8",
    )  # fmt: skip
    where, *report = ran.stdout.splitlines()
    assert Path(where).is_relative_to(wheel)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert any(line.startswith("pass linear_scan/value[float32]") for line in report)
