"""The examples of docs/findings.md, if the stated versions are installed."""

import doctest
import re
import warnings
from importlib import metadata
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "findings.md"
WORDS = {
    "python-control": "control",
    "PyTorch": "torch",
}  # the package name of each library
ALSO = {"control": "slycot", "mamba-ssm": "triton"}  # further packages that its examples need
LIBRARIES = [
    (name, version, body)
    for name, version, body in re.findall(
        r"^## (\S+) (\d\S+)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S
    )
    if ">>> " in body
]


def installed(name: str) -> str:
    """The version of a library without the part after "+"; "" if it is not installed."""
    try:
        return metadata.version(WORDS.get(name, name)).split("+")[0]
    except metadata.PackageNotFoundError:
        return ""


def examples(body: str) -> str:
    """The Python blocks of a section, joined."""
    return "\n\n".join(re.findall(r"```python\n(.*?)```", body, re.S))


@pytest.mark.parametrize(("name", "version", "body"), LIBRARIES, ids=[n for n, *_ in LIBRARIES])
def test_what_a_finding_shows_is_what_happens(name, version, body):
    if installed(name) != version:
        pytest.skip(f"{name} {version} is not installed (but {installed(name) or 'none'})")
    if name == "mamba-ssm":
        pytest.importorskip("selective_scan_cuda", reason="an extension, or an empty file for it")
    also = ALSO.get(WORDS.get(name, name))
    if also and not installed(also):
        pytest.skip(f"{also} is not installed")
    parsed = doctest.DocTestParser().get_doctest(examples(body), {}, name, str(PAGE), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    told: list[str] = []
    with warnings.catch_warnings():  # warnings of the library
        warnings.simplefilter("ignore")
        runner.run(parsed, out=told.append)
    assert runner.tries
    assert not runner.failures, "".join(told)
