import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from refssm.catalog import OPERATORS
from refssm.conformance.vectors import making
from refssm.conformance.vectors.document import hexadecimal
from refssm.conformance.vectors.reading import read

pytestmark = pytest.mark.outside

FOLDER = Path(__file__).parents[2] / "vectors"
SCANS = FOLDER / "linear_scan.json"
PAGE = (Path(__file__).parents[3] / "docs/vectors.md").read_text("utf-8")
EXACT = [-3.0, 0.0, 1 / 3, 5e-324, -(2.0**-1030) / 3, 1.7976931348623157e308]
PROGRAMS = {  # the compiler, if any; the program that prints the bits of each number
    "cpp": (
        ["g++", "{file}", "-o", "{program}"],
        "#include <cstdlib>\n#include <cstring>\n#include <cstdio>\n{read}"
        "int main(int n, char **t) {{ for (int i = 1; i < n; i++) {{ double x = hex(t[i]);"
        " unsigned long long b; std::memcpy(&b, &x, 8);"
        ' std::printf("%016llx\\n", b); }} }}',
    ),
    "rust": (
        ["rustc", "{file}", "-o", "{program}"],
        "{read}fn main() {{ for t in std::env::args().skip(1)"
        ' {{ println!("{{:016x}}", hex(&t).to_bits()); }} }}',
    ),
    "js": (
        ["node"],
        "{read}for (const t of process.argv.slice(2)) {{ const b = Buffer.alloc(8);"
        " b.writeDoubleBE(hex(t)); console.log(b.toString('hex')); }}",
    ),
}


@pytest.mark.parametrize("language", PROGRAMS)
def test_the_page_reads_numbers_in_other_languages(language, tmp_path):
    command, program = PROGRAMS[language]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is absent")
    shown = PAGE.split(f"```{language}\n")[1].split("```")[0]
    file = tmp_path / f"read.{language}"
    file.write_text(program.format(read=shown), encoding="utf-8")
    run_it = [command[0], str(file)]
    if len(command) > 1:
        run_it = [str(tmp_path / "read")]
        built = [part.format(file=file, program=run_it[0]) for part in command]
        subprocess.run(built, check=True, capture_output=True)
    texts = [hexadecimal(x) for x in EXACT]
    printed = subprocess.run(
        [*run_it, *texts], check=True, capture_output=True, encoding="utf-8"
    ).stdout
    assert [bytes.fromhex(line) for line in printed.split()] == [
        struct.pack(">d", x) for x in EXACT
    ]


def test_the_example_in_javascript_judges_a_scan(tmp_path):
    if shutil.which("node") is None:
        pytest.skip("node is absent")
    example = Path(__file__).parents[3] / "docs/examples/read_vectors.js"
    wrong = tmp_path / "wrong.js"
    wrong.write_text(
        example.read_text(encoding="utf-8").replace("+ b[i]", "- b[i]"), encoding="utf-8"
    )
    for script, word in ((example, "right"), (wrong, "wrong")):
        done = subprocess.run(
            ["node", script, SCANS], check=True, capture_output=True, encoding="utf-8"
        )
        assert f"{word} float32-1" in done.stdout


def test_the_page_says_what_the_command_prints():
    for name in ("linear_scan", "mamba_scan"):
        vectors = read(FOLDER / f"{name}.json")
        shown, bugs = sum(len(c.catches) for c in vectors.cases), len(making.planted(vectors.op))
        line = (
            f"{name}.json   {len(vectors.cases)} cases   they show {shown} of {bugs} planted bugs"
        )
        assert line in PAGE
    assert f"{len(making.enclosed())} of {len(OPERATORS)}" in PAGE
    lacking = [op.name for op in OPERATORS if "enclosure" in op.lacks]
    told = PAGE.split("have no vectors:")[1].split("\n\n")[0]
    assert all(f"`{name}`" in told or name.startswith("nplr_") for name in lacking)
