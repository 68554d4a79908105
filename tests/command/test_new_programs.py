"""`refssm new --framework cpp|js|rust` and `--ci`: what it writes runs."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from judging import run

from refssm.catalog import judged
from refssm.command import foreign

COMPILER = {"cpp": "g++", "js": "node", "rust": "rustc"}
# x_k = a_k x_{k-1} + b_k along the middle axis, in place of the line after "put your kernel here"
KERNELS = {
    "cpp": (
        "const bool done = false;",
        "const std::size_t l = judged.size(\"l\"), n = judged.size(\"n\");\n"
        "    for (std::size_t i = 0; i < x.data.size(); i++)\n"
        "        x.data[i] = i / n % l ? a.data[i] * x.data[i - n] + b.data[i] : b.data[i];\n"
        "    const bool done = true;",
    ),
    "js": (
        "return false;",
        "if (dtype.startsWith(\"complex\")) return false;\n"
        "  for (let i = 0; i < x.data.length; i++)\n"
        "    x.data[i] = Math.floor(i / sizes.n) % sizes.l\n"
        "      ? a.data[i] * x.data[i - sizes.n] + b.data[i] : b.data[i];\n"
        "  return true;",
    ),
    "rust": (
        "let done = false;",
        "let (l, n) = (case.size(\"l\"), case.size(\"n\"));\n"
        "    for i in 0..x.data.len() {\n"
        "        let k = i / n % l;\n"
        "        let before = if k > 0 { a.data[i] * x.data[i - n] } else { T::default() };\n"
        "        x.data[i] = before + b.data[i];\n"
        "    }\n"
        "    let done = true;",
    ),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def built(language, file):
    command = foreign.built(language, file)
    if command:
        done = subprocess.run(command.split(), capture_output=True, encoding="utf-8", check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
@pytest.mark.outside
@pytest.mark.parametrize("language", COMPILER)
def test_a_program_declines_until_a_kernel_is_in_it_and_then_passes(folder, capfd, language):
    if shutil.which(COMPILER[language]) is None:
        pytest.skip(f"needs {COMPILER[language]}")
    result, out, err = run(capfd, "new", "linear_scan", "--framework", language)
    file = f"linear_scan_{language}.{foreign.ENDINGS[language]}"
    assert (result, err) == (0, "")
    assert out.startswith(f"{file} written; next: ")
    assert 'refssm verify --exec "' in out
    built(language, file)
    command = foreign.RUN[language].format(file=file, stem=file.rpartition(".")[0])
    verify = ["verify", "-v", "--exec", command, "--as", "linear_scan", "--cases", "3"]
    verify += ["--check", "value", "--allow-thin"]
    result, out, _ = run(capfd, *verify, "--dtype", "float32")
    assert (result, "declined all cases" in out) == (5, True)
    old, new = KERNELS[language]
    path = folder / file
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    built(language, file)
    types = ["float32", "float64"] + ["complex64"] * (language != "js")
    result, out, _ = run(capfd, *verify, *(word for t in types for word in ("--dtype", t)))
    assert result == 0, out
    assert out.count("pass linear_scan/value") == len(types)


@pytest.mark.parametrize("language", COMPILER)
@pytest.mark.parametrize("op", judged(), ids=str)
def test_a_program_has_the_arguments_of_its_operator(op, language):
    text = foreign.program(op, language, "x")
    assert "@" not in text.replace("checkout@v4", "")
    for name in (*op.inputs, *op.outputs):
        place = {"cpp": f'("{name}")', "js": f"puts.{name};", "rust": f'("{name}")'}[language]
        assert place in text
    names = [*op.inputs, *op.static, *op.outputs]
    assert len({*names}) == len(names)  # each is a variable


@pytest.mark.long
@pytest.mark.outside
@pytest.mark.parametrize(
    "name",
    ["mamba_scan", "dplr_kernel", "linear_scan_packed", "hippo_legt", "ssd_step"],
)
@pytest.mark.parametrize("language", ["cpp", "rust"])
def test_a_program_of_another_operator_compiles(folder, capfd, language, name):
    if shutil.which(COMPILER[language]) is None:
        pytest.skip(f"needs {COMPILER[language]}")
    assert run(capfd, "new", name, "--framework", language)[0] == 0
    built(language, f"{name}_{language}.{foreign.ENDINGS[language]}")


def commands(path):
    """The commands of a CI file: each stands in quotes at the end of a line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [re.fullmatch(r" +- (?:run: )?'(.*)'", line) for line in lines]
    return [match[1].replace("''", "'") for match in found if match]


@pytest.mark.long
@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_the_commands_of_a_ci_file_run(folder, capfd, service):
    words = ["new", "linear_scan", "--ci", service, "--source", "./refssm"]
    result, out, err = run(capfd, *words)
    assert (result, err) == (0, "")
    assert "linear_scan_numpy.py written; next: refssm verify linear_scan_numpy.py" in out
    path = {"github": ".github/workflows/refssm.yml", "gitlab": "refssm.gitlab-ci.yml"}[service]
    assert f"{path} written; " in out
    install, verify = commands(folder / path)
    assert install == "pip install './refssm'"
    program, *rest = verify.split()
    assert program == "refssm"
    assert run(capfd, *rest, "--profile", "quick", "--check", "value")[0] == 0
    # nothing that is there is written over, neither of the two files
    os.remove("linear_scan_numpy.py")
    result, out, err = run(capfd, *words)
    assert (result, out) == (4, "")
    assert f"{path} already exists" in err
    assert not Path("linear_scan_numpy.py").exists()


def test_a_ci_file_compiles_a_program_before_it_is_judged(folder, capfd):
    words = ["new", "linear_scan", "--framework", "rust", "--ci", "gitlab", "--source", "x"]
    assert run(capfd, *words)[0] == 0
    *_, build, verify = commands(Path("refssm.gitlab-ci.yml"))
    assert build == foreign.built("rust", "linear_scan_rust.rs")
    assert verify == 'refssm verify --exec "./linear_scan_rust {case}" --as linear_scan'


WRONG = {
    ("--ci", "jenkins"): "unknown CI 'jenkins'; wanted one of github, gitlab",
    ("--ci", "github"): "--ci wants --source",
}


@pytest.mark.parametrize("words", WRONG)
def test_a_ci_file_that_cannot_be_is_one_sentence_and_nothing_is_written(folder, capfd, words):
    result, out, err = run(capfd, "new", "linear_scan", *words)
    assert (result, out, len(err.splitlines())) == (4, "", 1)
    assert WRONG[words] in err
    assert [*folder.iterdir()] == []
