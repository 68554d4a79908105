"""What a wheel and an sdist have, and what they must not have.

    python .ci/contents.py dist/*.whl dist/*.tar.gz

prints a line for each mistake, and ends with 1 if there is one. `make wheel` runs it.
"""

import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

PACKAGES = ("refssm", "refssm_gpu")
BIBLIOGRAPHY = "refssm/references.bib"  # docs/references.bib in a clone
# what no import would miss: one file of each kind
NEEDED = (
    "refssm/py.typed",
    BIBLIOGRAPHY,
    "refssm/command/programs/program.cpp",
    "refssm/conformance/exchange/manifest.schema.json",
    "refssm/conformance/report/page.html.jinja",
    "refssm/conformance/report/results.schema.json",
    "refssm_gpu/_host/cuda_on_host.h",
    "refssm_gpu/kernels/scan/linear_scan.cuh",
)
# without these the tests of an sdist cannot run, or nobody can cite it or read about it
SDIST = (
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "Makefile",
    "README.md",
    "RELEASING.md",
    "SECURITY.md",
    ".github/workflows/ci.yml",
    "docs/examples/chunked_scan_wrong.py",
    "docs/history.md",
    "property_tests/strategies.py",
    "pyproject.toml",
    "tests/conftest.py",
    "tests/vectors/cauchy_kernel.json",
)
STRAY = (".pyc", ".npz", ".so", ".o")


def in_wheel(path: Path) -> set[str]:
    """The names of the files in a wheel."""
    with zipfile.ZipFile(path) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def in_sdist(path: Path) -> set[str]:
    """The names of the files in an sdist, without the folder that all of them are in."""
    with tarfile.open(path) as archive:
        files = (PurePosixPath(member.name) for member in archive if member.isfile())
        return {PurePosixPath(*name.parts[1:]).as_posix() for name in files}


def mistakes(wheel: set[str], sdist: set[str]) -> list[str]:
    """A sentence for each file that is missing, and for each that should not be there."""
    own = {name for name in sdist if name.split("/")[0] in PACKAGES}
    wanted = own | {*NEEDED}
    packaged = {name for name in wheel if ".dist-info/" not in name}
    found = [f"the wheel lacks {name}" for name in sorted(wanted - packaged)]
    found += [f"the wheel has {name}, no file of a package" for name in sorted(packaged - wanted)]
    found += [f"the sdist lacks {name}" for name in SDIST if name not in sdist]
    found += [f"the sdist has {name}" for name in sorted(sdist) if name.endswith(STRAY)]
    return found


def main(paths: list[str]) -> int:
    """Compare one wheel and one sdist; 1 if something is wrong."""
    (wheel,) = (Path(path) for path in paths if path.endswith(".whl"))
    (sdist,) = (Path(path) for path in paths if path.endswith(".tar.gz"))
    there = in_wheel(wheel)
    wrong = mistakes(there, in_sdist(sdist))
    for sentence in wrong:
        sys.stderr.write(sentence + "\n")
    if not wrong:
        told = f"{len(there)} files, types, CUDA sources, schemas, the HTML template, no tests"
        sys.stdout.write(f"{wheel.name}: {told}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
