"""`refssm new`: the plug-in file runs, for every operator and framework."""

import ast

import pytest
from judging import run

from refssm.catalog import OPERATORS
from refssm.command.new import plugin as written


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize("name", ["linear_scan", "vandermonde_kernel", "cauchy_kernel"])
def test_a_new_file_passes_before_anything_is_put_into_it(folder, capfd, name):
    result, out, _ = run(capfd, "new", name)
    assert (result, out) == (0, f"{name}_numpy.py written; next: refssm verify {name}_numpy.py\n")
    result, out, _ = run(capfd, "verify", "-v", f"{name}_numpy.py", "--profile", "quick")
    assert result == 0
    single = "complex64" if name == "cauchy_kernel" else "float32"
    assert f"pass {name}/value[{single}]" in out
    assert f"{name}: layout " in out
    path = folder / f"{name}_numpy.py"
    path.write_text(
        path.read_text(encoding="utf-8").replace("return ", "return 2 * "), encoding="utf-8"
    )
    assert run(capfd, "verify", path.name, "--profile", "quick", "--check", "value")[0] == 1


def test_a_file_that_is_there_is_not_written_over(folder, capfd):
    assert run(capfd, "new", "linear_scan", "-o", "mine.py")[0] == 0
    (folder / "mine.py").write_text("mine", encoding="utf-8")
    result, _, err = run(capfd, "new", "linear_scan", "-o", "mine.py")
    assert result == 4
    assert err.strip() == "refssm: mine.py already exists; --force overwrites it"
    assert (folder / "mine.py").read_text(encoding="utf-8") == "mine"
    assert run(capfd, "new", "linear_scan", "-o", "mine.py", "--force")[0] == 0
    assert "def linear_scan(a, b):" in (folder / "mine.py").read_text(encoding="utf-8")


NO_FILE = {
    "operator": (("liner_scan",), "did you mean linear_scan?"),
    "framework": (
        ("linear_scan", "--framework", "mlx"),
        "unknown framework 'mlx'; wanted one of numpy, torch, jax, cupy, cpp, js, rust",
    ),
    "folder": (("linear_scan", "-o", "nowhere/x.py"), "nowhere/x.py: No such file or directory"),
}


@pytest.mark.parametrize("what", NO_FILE)
def test_a_new_file_that_cannot_be_is_one_sentence(folder, capfd, what):
    arguments, sentence = NO_FILE[what]
    result, _, err = run(capfd, "new", *arguments)
    assert result == 4
    assert sentence in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("framework", ["numpy", "torch", "jax", "cupy"])
@pytest.mark.parametrize("op", OPERATORS, ids=str)
def test_a_new_file_compiles_and_names_its_framework(op, framework):
    text = written(op, framework, "x.py")
    compile(text, "x.py", "exec")
    body = ast.parse(text).body
    names = [name.name for node in body if isinstance(node, ast.Import) for name in node.names]
    assert {name.partition(".")[0] for name in names} - {"numpy"} == {"refssm", framework} - {
        "numpy"
    }
    assert (f'framework="{framework}"' in text) == (framework != "numpy")
    (function,) = (node for node in body if isinstance(node, ast.FunctionDef))
    assert function.name == op.name
    assert [a.arg for a in function.args.args] == list(op.inputs)
    assert [a.arg for a in function.args.kwonlyargs] == list(op.static)
