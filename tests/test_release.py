"""A release: papers agree on its version, the changelog is short, what is written down runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from judging import LATE, plugin

from refssm import __version__

ROOT = Path(__file__).parent.parent
MOST_LINES = 120
HEADING = r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$"
# a paper, and what stands before the version in it
PAPERS = {
    "CHANGELOG.md": r"\A[^#]*# Changelog\s(?:[^#]|#(?! ))*?^## ",
    "CITATION.cff": "^version: ",
    "README.md": "^refssm ",
    "SECURITY.md": "latest release, ",
    "docs/history.md": r"\A[^#]*# History\s(?:[^#]|#(?! ))*?^## ",
}


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def versions(papers):
    """The version in each of the papers: all that stand there."""
    number = r"(\d+\.\d+\.\d+)\b"
    return {
        name: re.findall(before + number, papers[name], re.MULTILINE)
        for name, before in PAPERS.items()
    }


def test_every_paper_has_the_version_of_the_package():
    papers = {name: text(name) for name in PAPERS}
    assert versions(papers) == {name: [__version__] for name in PAPERS}
    for name in PAPERS:
        planted = {**papers, name: papers[name].replace(__version__, "0.0.7")}
        assert versions(planted)[name] == ["0.0.7"]


def test_the_day_is_the_same_in_changelog_history_and_citation():
    dates = [re.findall(HEADING, text(name), re.MULTILINE) for name in ("CHANGELOG.md",
             "docs/history.md")]  # fmt: skip
    assert dates[0] == dates[1]
    (_, day), *_ = dates[0]
    assert f"\ndate-released: {day}\n" in text("CITATION.cff")
    assert len(dates[0]) >= 2


def long_entries(changelog):
    """Second lines of entries, and lines that are too long to be read at a glance."""
    return [x for x in changelog.splitlines() if x.startswith(" ") or len(x) > 150]


def test_the_changelog_has_one_line_for_each_change_and_few_of_them():
    changelog = text("CHANGELOG.md")
    assert len(changelog.splitlines()) <= MOST_LINES
    assert long_entries(changelog) == []
    assert long_entries("- one line\n  and a second") == ["  and a second"]
    assert "(docs/history.md)" in changelog


def test_the_entries_of_both_releases_are_under_topics():
    new, old = re.split(r"^## .*$", text("CHANGELOG.md"), flags=re.MULTILINE)[1:]
    topics = [topic.partition("\n") for topic in new.split("\n### ")[1:]]
    assert len(topics) >= 5
    assert all(entries.strip().startswith("- ") for _, _, entries in topics)
    assert topics[0][0] == "What you may have to change"
    assert old.strip().startswith("- ")


RELEASING = text("RELEASING.md")


def commands(page):
    """The commands of a page's blocks of code, without their comments."""
    blocks = re.findall(r"^```\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).splitlines()
    return [re.split(r" {2,}#", line)[0].strip() for line in lines]


def test_the_commands_of_a_release_come_in_order():
    every = "\n".join(commands(RELEASING))
    order = [
        "tests/test_release.py", "make tables", "git commit", "make lint", "make test-all",
        "make wheel", "bin/refssm doctor", "bin/refssm verify", "git tag", "twine upload",
    ]  # fmt: skip
    places = [every.index(words) for words in order]
    assert places == sorted(places)


def test_each_target_and_file_of_the_release_exists():
    targets = set(re.findall(r"^([\w./-]+):", text("Makefile"), re.MULTILINE))
    wanted = {w for line in commands(RELEASING) for w in re.findall(r"\bmake (\S+)", line)}
    assert len(wanted) >= 6
    assert wanted - targets == set()
    files = set(re.findall(r"`((?:[\w.]+/)*[\w.]+\.\w+)`", RELEASING))
    assert {name for name in files if not (ROOT / name).exists()} == set()
    assert {*PAPERS, "refssm/__init__.py"} <= files
    examples = {w for line in commands(RELEASING) for w in re.findall(r"docs/examples/\S+", line)}
    assert examples
    assert {name for name in examples if not (ROOT / name).is_file()} == set()


WORKFLOWS = (".github/workflows/ci.yml", "docs/examples/refssm.yml")


def faults(workflow):
    """What GitHub would refuse in a workflow, and what would not run."""
    yaml = pytest.importorskip("yaml", reason="Dask brings it: pip install pyyaml")
    try:
        parsed = yaml.safe_load(workflow)
    except yaml.YAMLError as error:
        return [str(error).partition("\n")[0]]
    found = [] if True in parsed and "name" in parsed else ["no name, or no event"]  # on: is true
    for name, job in parsed.get("jobs", {"": {}}).items():
        if not {"runs-on", "steps", "timeout-minutes"} <= {*job}:
            found.append(f"{name}: no machine, no time limit, or no steps")
        for step in job.get("steps", ()):
            if ("run" in step) == ("uses" in step):
                found.append(f"{name}: a step without run or uses, or with both: {step}")
            if not re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/x@v1")):
                found.append(f"{name}: {step['uses']} is no action of GitHub's with a version")
    return found


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_is_one_that_github_reads(name):
    assert faults(text(name)) == []
    assert "permissions:\n  contents: read\n" in text(name)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("jobs:", "jobs", "while scanning"),
        ("on: [push, pull_request]\n", "", "no name, or no event"),
        ("    runs-on: ubuntu-latest\n", "", "verify: no machine"),
        ("actions/checkout@v4", "actions/checkout", "verify: actions/checkout is no action"),
        ("- uses: actions/checkout@v4", "- name: check out", "verify: a step without run"),
    ],
)
def test_a_workflow_with_a_mistake_is_seen(right, wrong, said):
    workflow = text("docs/examples/refssm.yml")
    assert right in workflow
    assert faults(workflow.replace(right, wrong))[0].startswith(said)


def test_the_workflow_of_this_project_runs_what_its_makefile_has():
    workflow = text(".github/workflows/ci.yml")
    runs = re.findall(r"- run: (?:VERSIONS='\S+ \S+ \S+' )?(.*)", workflow)
    assert runs == [".ci/run", "make test-versions", "make wheel"]
    assert (ROOT / ".ci/run").stat().st_mode & 0o100
    versions = re.findall(r'"([\w.]+)"', workflow)
    assert {"3.11", "3.12", "3.13", "oldest"} == {*versions}
    assert "VERSIONS:-3.11 3.12 3.13 oldest" in text(".ci/test-versions")


@pytest.mark.long
def test_the_commands_of_the_workflow_to_copy_judge_and_leave_both_reports(tmp_path):
    workflow, page = text("docs/examples/refssm.yml"), text("docs/pytest.md")
    install, *judge = re.findall(r"- run: (.*)", workflow)
    assert install.startswith('pip install "$REFSSM" ')
    kernels = re.findall(r"^  KERNELS: (\S+)", workflow, re.MULTILINE)[0]
    marked = LATE.replace("def linear_scan", f"{MARK}def test_scan")
    plugin(tmp_path, marked, kernels)
    names = {**os.environ, "KERNELS": kernels, "PYTHONPATH": str(ROOT), "CI": "1"}
    for command in judge:
        assert command.replace('"$KERNELS"', kernels) in page
        program, words = command.split(maxsplit=1)
        ran = subprocess.run(
            ["bash", "-c", f"'{sys.executable}' -m {program} {words}"],
            cwd=tmp_path, env=names, capture_output=True, encoding="utf-8",
        )  # fmt: skip
        assert ran.returncode == 1, ran.stdout + ran.stderr
    kept = re.findall(r"^            (\S+)$", workflow, re.MULTILINE)
    assert [name for name in kept if not (tmp_path / name).exists()] == []
    assert "test_scan" in (tmp_path / "refssm.xml").read_text(encoding="utf-8")
    assert "<svg" in (tmp_path / "refssm.html").read_text(encoding="utf-8")
    assert [*(tmp_path / ".refssm").glob("*.npz")]


MARK = """import pytest

@pytest.mark.refssm("linear_scan", dtypes=("float32",), checks=("value",))
"""
