"""`refssm doctor`: selective scans as people write them, what is in the way, and CI files."""

import json

import pytest
from judging import run
from test_doctor import NUMPY, folder, of

__all__ = ["folder"]  # a fixture

SINGLE = """
import numpy as np


def selective_scan(u, delta, A_log, B, C, D):
    '''As in minimal Mambas: time before channels, single precision inside.'''
    f = np.float32
    dt, A, x, ys = delta.astype(f), -np.exp(A_log.astype(f)), 0, []
    for i in range(u.shape[1]):
        z = dt[:, i, :, None]
        x = np.exp(z * A) * x + z * B[:, i, None].astype(f) * u[:, i, :, None].astype(f)
        ys.append((x * C[:, i, None].astype(f)).sum(-1))
    y = np.stack(ys, 1) if ys else u
    return (y + u * D).astype(u.dtype)


def linear_scan(gates, tokens, window):
    return tokens


class Module:
    def forward(self, u):
        return u

    def parameters(self):
        return []

    def __call__(self, u):
        return self.forward(u)


layer = Module()
"""


def written(folder, capfd, source, name):
    """What the doctor says of a function, and the tests that it writes."""
    path = folder(source)
    result, out, _ = run(capfd, "doctor", "my_ops.py", "--write", "test_my_ops.py")
    assert result == 0
    told = of(out, name)
    assert told.endswith(f"refssm verify test_my_ops.py::test_{name}")
    return told, (path / "test_my_ops.py").read_text(encoding="utf-8")


def judged(capfd, *how):
    """The results of these tests: the marks say operator, layout and types."""
    how = ("--check", "value", "--profile", "quick", "--json", *how)
    result, out, err = run(capfd, "verify", "test_my_ops.py", *how)
    assert (result, err) == (0, "")
    return {(line["operator"], line["dtype"]) for line in json.loads(out)["results"]}


@pytest.mark.long
def test_a_skip_connection_and_the_logarithm_of_A_are_understood_and_types_are_declared(
    folder, capfd
):
    told, text = written(folder, capfd, SINGLE, "selective_scan")
    assert "selective_scan, fits: two small cases agree in float32, not in float64" in told
    assert "it gets D = 0" in told
    assert "return selective_scan(u, dt, A, B, C, D=A[..., 0] * 0)" in text
    assert 'adapters=(neg_exp("A"),),' in text
    assert 'dtypes=("float32",),' in text
    assert judged(capfd) == {("selective_scan", "float32")}


def test_what_is_unknown_says_what_is_in_the_way(folder, capfd):
    folder(SINGLE)
    _, out, _ = run(capfd, "doctor", "my_ops.py::linear_scan")
    told = of(out, "linear_scan")
    assert "unknown: by its name linear_scan, but it wants `window`" in told
    assert told.endswith("write a function of (a, b) that calls it")
    _, out, _ = run(capfd, "doctor", "my_ops.py::layer")
    assert "a module with parameters: write a function" in of(out, "layer")


@pytest.mark.long
def test_it_writes_a_ci_file_that_runs_the_tests(folder, capfd):
    path = folder(SINGLE)
    ci = ("--ci", "github", "--source", "./refssm")
    result, out, _ = run(
        capfd, "doctor", "my_ops.py::selective_scan", "--write", "test_ops.py", *ci
    )
    assert result == 0
    assert out.endswith(".github/workflows/refssm.yml written; commit it: it runs at each push\n")
    text = (path / ".github" / "workflows" / "refssm.yml").read_text(encoding="utf-8")
    assert "- run: 'pip install ''./refssm'' pytest'\n" in text
    assert text.endswith("- run: 'pytest test_ops.py'\n")


WRONG_CI = {
    ("--ci", "github"): "--ci runs the tests: it wants --write FILE, too",
    ("--ci", "jenkins", "--write", "t.py"): "unknown CI 'jenkins'; wanted one of github, gitlab",
    ("--ci", "gitlab", "--write", "t.py"): "--ci wants --source",
}


@pytest.mark.parametrize("options", WRONG_CI, ids=" ".join)
def test_a_ci_file_that_cannot_be_is_one_sentence(options, folder, capfd):
    folder(NUMPY)
    result, out, err = run(capfd, "doctor", "my_ops.py", *options)
    assert (result, out) == (4, "")
    assert WRONG_CI[options] in err


MAMBA2 = """
import numpy as np


def mamba2_chunk_scan(x, dt, A, B, C, chunk_size, D=None, dt_bias=None):
    '''(b, l, H, p), (b, l, H), (H), (b, l, g, n): heads of a group are neighbours.'''
    heads, S, ys = x.shape[2] // B.shape[2], 0, []
    B, C = (np.repeat(a, heads, axis=2) for a in (B, C))
    for i in range(x.shape[1]):
        decay = np.exp(dt[:, i] * A)[..., None, None]
        S = decay * S + (dt[:, i, :, None] * x[:, i])[..., None] * B[:, i, :, None]
        ys.append((S * C[:, i, :, None]).sum(-1))
    return np.stack(ys, 1) if ys else x
"""


@pytest.mark.long
def test_the_arguments_of_mamba_2_are_understood(folder, capfd):
    told, text = written(folder, capfd, MAMBA2, "mamba2_chunk_scan")
    assert "ssd_chunked, fits" in told
    assert "from refssm.adapters import dt_and_A" in text
    assert "adapters=(dt_and_A(),)," in text
    assert 'layout="b l (g h) p, b l (g h), (g h), b l g n, b l g n -> b l (g h) p",' in text
    assert "def test_mamba2_chunk_scan(x, dt, A, B, C, *, chunk):" in text
    assert {op for op, _ in judged(capfd, "--where", "dt=0.1..1")} == {"ssd_chunked"}


FIRST_ONLY = """
import numpy as np

first = []

def linear_scan_of_mine(a, b):
    x = np.zeros_like(b)
    state = 0
    for k in range(b.shape[-2]):
        x[..., k, :] = state = a[..., k, :] * state + b[..., k, :]
    first[:] = first or [a.tobytes()]
    return x if a.tobytes() == first[0] else x + 1
"""
RESET = """
import numpy as np

def chunked_linear_scan(a, b):
    x = np.zeros_like(b)
    for k in range(b.shape[-2]):
        before = x[..., k - 1, :] if k % 64 else 0
        x[..., k, :] = a[..., k, :] * before + b[..., k, :]
    return x
"""


@pytest.mark.long
def test_a_scan_that_is_wrong_behind_64_steps_fits_and_nothing_says_that_it_is_right(folder, capfd):
    folder(RESET)
    result, out, err = run(capfd, "doctor", "my_ops.py")
    assert (result, err) == (0, "")
    assert "linear_scan, fits: two small cases agree in float32, float64" in out
    assert "sure" not in out


@pytest.mark.long
def test_a_function_that_agrees_in_one_case_only_does_not_fit(folder, capfd):
    folder(FIRST_ONLY)
    _, out, err = run(capfd, "doctor", "my_ops.py")
    assert err == ""
    assert "fits" not in out.partition("operators fit")[0]
    assert "linear_scan, likely: it runs" in out
