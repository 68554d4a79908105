"""`refssm doctor`: guesses that it has tried, commands that run, tests that run."""

import os
import shlex
import subprocess
import sys

import pytest
from judging import run

NUMPY = '''
import os
import time

import numpy as np


def scan(gates, tokens):
    """Time last, as in accelerated-scan."""
    x = np.array(tokens, dtype=np.result_type(gates, tokens))
    for k in range(1, x.shape[-1]):
        x[..., k] += gates[..., k] * x[..., k - 1]
    return x


def forgetful_scan(gates, tokens):
    x = np.array(tokens, dtype=np.result_type(gates, tokens))
    return x


def cauchy(v, z, w):
    return (v[..., None, :] / (z[..., :, None] - w[..., None, :])).sum(-1)


def load_data(path):
    return open(path)


class Layer:
    pass
'''
CHUNKED = """
import numpy as np


def ssd_minimal_discrete(X, A, B, C, block_len):
    assert X.shape[1] % block_len == 0
    S, ys = 0, []
    for i in range(X.shape[1]):
        S = np.exp(A[:, i, :, None, None]) * S + X[:, i, ..., None] * B[:, i, :, None]
        ys.append((S * C[:, i, :, None]).sum(-1))
    return np.stack(ys, 1) if ys else X, S
"""
HARMFUL = """
import os
import time


def fftconv(u, k):
    time.sleep(60)


def pscan(a, x):
    os.abort()


def linear_scan(a, b):
    raise ValueError("no kernel for this card")
"""
TORCH = '''
import torch
import torch.nn.functional as F


def selective_scan_ref(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
    if delta_bias is not None:
        delta = delta + delta_bias[..., None]
    if delta_softplus:
        delta = F.softplus(delta)
    x, ys = 0, []
    for i in range(u.shape[2]):
        decay = torch.exp(delta[:, :, i, None] * A)
        x = decay * x + (delta * u)[:, :, i, None] * B[:, None, :, i]
        ys.append((x * C[:, None, :, i]).sum(-1))
    y = torch.stack(ys, dim=2)
    y = y if D is None else y + u * D[..., None]
    return y if z is None else y * F.silu(z)


def s4d_kernel(log_dt, C, log_A_real, A_imag, L):
    dt, C = torch.exp(log_dt), torch.view_as_complex(C)
    A = -torch.exp(log_A_real) + 1j * A_imag
    dtA = A * dt.unsqueeze(-1)
    K = torch.exp(dtA.unsqueeze(-1) * torch.arange(L))
    return 2 * torch.einsum("hn, hnl -> hl", C * (torch.exp(dtA) - 1.0) / A, K).real


def ssd_minimal(X, A, B, C):
    """Heads beside each other, and a result that is no output."""
    S, ys = 0, []
    for i in range(X.shape[1]):
        S = torch.exp(A[:, i, :, None, None]) * S + X[:, i, ..., None] * B[:, i, :, None]
        ys.append((S * C[:, i, :, None]).sum(-1))
    return torch.stack(ys, 1), S


def causal_conv1d_ref(x, weight, bias=None):
    width = weight.shape[-1]
    y = F.conv1d(x, weight.unsqueeze(1), bias, padding=width - 1, groups=x.shape[1])
    return y[..., : x.shape[-1]]
'''
JAX = """
import jax
import jax.numpy as jnp


def discretize_zoh(Lambda, B_tilde, Delta):
    Lambda_bar = jnp.exp(Lambda * Delta)
    return Lambda_bar, (1 / Lambda * (Lambda_bar - 1))[..., None] * B_tilde
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def written(text, name="my_ops.py"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path

    return written


def of(out, function):
    """The lines about one function."""
    return next(part for part in out.split("\n\n") if part.startswith((f"{function}(", function)))


@pytest.mark.long
def test_right_wrong_and_foreign_functions_are_told_apart(folder, capfd):
    folder(NUMPY)
    result, out, err = run(capfd, "doctor", "my_ops.py")
    assert (result, err) == (0, "")
    assert "linear_scan, fits: two small cases agree in float32" in of(out, "scan")
    assert '--as linear_scan --layout "b n l, b n l -> b n l"' in of(out, "scan")
    assert "linear_scan, likely: it runs" in of(out, "forgetful_scan")
    assert "worst x[0, " in of(out, "forgetful_scan")
    assert "cauchy_kernel, fits" in of(out, "cauchy")  # by names, in another order
    assert "test_my_ops.py::test_cauchy" in of(out, "cauchy")
    assert "unknown: no operator" in of(out, "load_data")
    assert "a class: write a function of the operator's arguments" in of(out, "Layer")
    assert "return cauchy(v, z, w)" in out
    assert "load_data" not in out.partition("# test_my_ops.py")[2]


@pytest.mark.long
def test_functions_that_hang_or_crash_do_not_end_it_and_nothing_is_claimed_of_them(folder, capfd):
    folder(HARMFUL)
    result, out, err = run(capfd, "doctor", "my_ops.py", "--timeout", "3")
    assert (result, err) == (5, "")
    assert "the last call did not return within 15 s" in of(out, "fftconv")
    assert "the last call killed the process by SIGABRT" in of(out, "pscan")
    assert "unsure: only its name and its arguments fit, no call returned" in of(out, "pscan")
    assert "raised ValueError: no kernel for this card (my_ops.py:15)" in of(out, "linear_scan")
    assert "refssm verify" not in out
    assert "import pytest" not in out


@pytest.mark.long
def test_the_commands_and_the_tests_that_it_writes_run(folder, capfd):
    path = folder(NUMPY)
    result, out, _ = run(capfd, "doctor", "my_ops.py", "--write", "test_my_ops.py")
    assert result == 0
    assert out.endswith("test_my_ops.py written; next: pytest test_my_ops.py\n")
    for function, code in (("scan", 0), ("cauchy", 0), ("forgetful_scan", 1)):
        (line,) = [x for x in of(out, function).splitlines() if "refssm verify" in x]
        words = shlex.split(line)[1:]
        assert run(capfd, *words, "--profile", "quick", "--check", "value")[0] == code
    tests = pytest_run(path, "test_my_ops.py", "-k", "value")
    assert "1 failed" in tests or "4 failed" in tests, tests
    assert "error" not in tests.lower(), tests
    assert "passed" in tests


@pytest.mark.long
def test_a_function_of_whole_chunks_gets_a_chunk_that_divides_the_length(folder, capfd):
    path = folder(CHUNKED)
    result, out, _ = run(capfd, "doctor", "my_ops.py", "--write", "test_it.py")
    assert result == 0
    assert "ssd_chunked, fits" in out
    assert "it wants whole chunks" in out
    text = (path / "test_it.py").read_text(encoding="utf-8")
    assert "import math\n\nimport pytest\n" in text
    assert "return ssd_minimal_discrete(x, log_a, B, C, math.gcd(chunk, x.shape[1]))[0]" in text
    tests = pytest_run(path, "test_it.py", "-k", "value")
    assert "failed" not in tests, tests
    assert "passed" in tests


def pytest_run(path, *words):
    """The output of pytest in a folder, with refssm's plug-in."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    command += ["--refssm-profile", "quick", "-p", "refssm.conformance.pytest_plugin"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    made = subprocess.run(
        command, cwd=path, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    return made.stdout + made.stderr


TORCH_GUESSES = {
    "selective_scan_ref": (
        "mamba_scan, fits",
        "b d l, b d l, d n, b n l, b n l, d, b d l, d -> b d l",
        "delta_softplus=True",
    ),
    "s4d_kernel": (
        "diagonal_kernel_zoh_real, fits",
        'kinds="complex"',
        "view_as_real(C * B)",
        'adapters=(log_dt(), neg_exp("w")),',
        "from refssm.adapters import log_dt, neg_exp",
        "s4d_kernel(dt, torch.view_as_real(C * B), w.real, w.imag, l)",
    ),
    "ssd_minimal": ("ssd_recurrent, fits", "b l g p, b l g, b l g n", "C)[0]"),
    "causal_conv1d_ref": ("short_convolution, fits", "reverse order", "k.flip(-1)"),
}


@pytest.mark.long
@pytest.mark.parametrize("function", TORCH_GUESSES)
def test_functions_of_public_torch_code_are_recognized(folder, capfd, function):
    pytest.importorskip("torch", reason="needs torch")
    folder(TORCH)
    result, out, _ = run(capfd, "doctor", f"my_ops.py::{function}")
    assert result == 0
    told, *texts = TORCH_GUESSES[function]
    assert told in of(out, function)
    for text in texts:
        assert text in out
    assert "vjp=True" in out


@pytest.mark.long
def test_a_function_with_the_name_of_another_operator_is_recognized_by_its_values(folder, capfd):
    pytest.importorskip("jax", reason="needs jax")
    folder(JAX)
    result, out, _ = run(capfd, "doctor", "my_ops.py")
    assert result == 0
    assert "discretize_diagonal_zoh, fits" in of(out, "discretize_zoh")
    assert "--as discretize_diagonal_zoh --framework jax" in out


def test_a_file_that_is_there_is_not_written_over(folder, capfd):
    path = folder(NUMPY)
    (path / "test_my_ops.py").write_text("mine", encoding="utf-8")
    result, out, err = run(capfd, "doctor", "my_ops.py", "--write", "test_my_ops.py")
    assert (result, out) == (4, "")
    assert "test_my_ops.py already exists" in err
    assert (path / "test_my_ops.py").read_text(encoding="utf-8") == "mine"


def test_a_target_that_is_not_there_is_one_sentence(folder, capfd):
    folder(NUMPY)
    for target in ("none.py", "no_module_of_this_name"):
        result, out, err = run(capfd, "doctor", target)
        assert (result, out, len(err.splitlines())) == (4, "", 1)
    result, _, err = run(capfd, "doctor", "my_ops.py::scann")
    assert (result, "did you mean scan?" in err) == (4, True)
