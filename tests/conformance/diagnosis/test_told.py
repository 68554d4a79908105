"""The report of a failure: the smallest case, its values, the reason, the axis; nothing untrue."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from judging import SCAN, judged, plugin, run

from refssm.catalog import OPERATORS
from refssm.conformance.diagnosis.place import Wrong, place_of
from refssm.conformance.diagnosis.shrinking import may_vanish
from refssm.conformance.judging.certificate import certify
from refssm.conformance.judging.expected import expect
from refssm.conformance.report.lines import limits
from refssm.conformance.standard import Standard

CATALOG = {op.name: op for op in OPERATORS}


def reference(name):
    return CATALOG[name].reference


def failed(name, function, dtype="float32", check="value", **settings):
    """The only failing result of a check."""
    settings = {"shrink": True, "profile": "default"} | settings
    wider = [dtype, *({"float32": ["float64"], "complex64": ["complex128"]}.get(dtype, []))]
    result = judged(name, function, check, types=wider, **settings)[0]
    assert result.failed, result
    return result


def leaking_at_64(x, log_a, B, C, resets):
    """Ignores resets at steps 64, 128, …"""
    seen = resets & (np.arange(resets.shape[-1]) % 64 != 0)
    return reference("ssd_recurrent_packed")(x, log_a, B, C, seen)


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "seed"), [("float32", 0), ("complex64", 1)])
def test_a_reset_overlooked_where_a_block_begins_is_seen_with_normal_numbers(seed, dtype):
    kept = failed("ssd_recurrent_packed", leaking_at_64, dtype, seed=seed)
    assert "ftz" not in kept.hint
    assert "l = 64" in kept.message


def forgetful(a, b):
    """Wrong only for numbers so small that a flush to zero would be accepted."""
    x = reference("linear_scan")(a, b)
    tiny = np.abs(b).max(initial=0) < np.finfo(b.real.dtype).tiny
    return 2 * x if tiny else x


def sometimes_double(a, b):
    """Twice the right value from step 64 on, for every magnitude."""
    x = reference("linear_scan")(a, b).copy()
    x[..., 64:, :] *= 2
    return x


@pytest.mark.long
def test_a_flush_is_offered_only_where_normal_numbers_come_out_right():
    tiny = np.float32(1e-39)
    small: dict[str, Any] = {"only": lambda x: {**x, "b": tiny * np.sign(x["b"])}}
    kept = failed("linear_scan", sometimes_double, **small)
    assert "ftz" not in kept.hint
    assert "ftz" in failed("linear_scan", forgetful).hint


@pytest.mark.long
def test_lost_digits_are_not_called_a_wrong_formula():
    def naive(u, dt, A, B, C, D, z, dt_bias, x):
        v = dt + dt_bias
        step = np.where(v > 20, v, np.log(1 + np.exp(v)))
        shifted = np.log(np.expm1(step.astype(np.float64)))  # its softplus is the step
        args = (u, shifted.astype(v.dtype), A, B, C, D, z, 0 * dt_bias, x)
        return reference("mamba_step")(*args)

    def euler(u, dt, A, B, C, D, z, dt_bias, x):
        return reference("mamba_step")(u, dt, A / 2, B, C, D, z, dt_bias, x)

    assert "lost digits, not a wrong formula" in failed("mamba_step", naive).hint
    assert (
        failed("mamba_step", euler).hint
        == "equally wrong in float64: the formula is wrong, this is not rounding"
    )


@pytest.mark.long
def test_nodes_in_single_precision_are_not_called_a_wrong_formula():
    def single_nodes(h, dt, *, l, power=1):
        w = np.exp(2j * np.pi * np.arange(l) / l).astype(np.complex64)
        d = dt.astype(np.float32)[..., None]
        z = ((d - 1) * w + d + 1) / ((1 + d) * w + d - 1)
        return (h[..., None, :] * z[..., None] ** (np.arange(h.shape[-1]) + power)).sum(-1)

    def one_power_more(h, dt, *, l):
        return single_nodes(h, dt, l=l, power=2)

    known: dict[str, Any] = {"only": lambda x: x if x["l"] else None}
    assert failed("hope_transfer", single_nodes, "complex64", **known).hint == (
        "equally wrong in complex128"
    )
    assert "the formula is wrong" in failed("hope_transfer", one_power_more, "complex64").hint


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_a_failure_at_two_steps_is_shown_at_two_steps(dtype):
    def once_more(a, B, C, D, u):
        forward = reference("diagonal_ssm_bidirectional")(a, B, C, D, u)
        return forward + np.roll(u[..., :1] * D[..., :1, :1], 1, axis=-2) * (u.shape[-2] > 1)

    kept = failed("diagonal_ssm_bidirectional", once_more, dtype)
    assert "l=2 " in kept.smallest
    assert "numbers from" not in kept.smallest


def test_what_is_shown_of_an_argument_are_the_values_that_fail(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    text = "def short_convolution(u, k):\n    import refssm\n"
    plugin(tmp_path, text + "    return refssm.short_convolution(u, k[..., ::-1])\n")
    _, out, _ = run(capfd, "verify", "my_ops.py", "--check", "value", "--dtype", "float32")
    assert "smallest: l=1 t=2; u=1, k=[1, 0]" in out


def test_a_smaller_case_stays_inside_the_domain():
    def of_any_step(w, B, dt):
        A_bar, B_bar = reference("discretize_diagonal_zoh")(w, B, dt)
        return A_bar, B_bar / dt[..., None]  # NaN for a step size of 0, which does not occur

    kept = failed("discretize_diagonal_zoh", of_any_step)
    assert not re.search(r"dt=0(?![.\d])", kept.smallest)
    assert not may_vanish(CATALOG["discretize_diagonal_zoh"].inputs["dt"])
    assert may_vanish(CATALOG["linear_scan"].inputs["b"])


@pytest.mark.long
def test_a_simpler_matrix_is_made_admissible_as_drawn_ones_are():
    def of_the_other_sign(A, B, C):
        return tuple(-X for X in reference("gramians")(A, B, C))

    for dtype in ("float32", "complex64"):  # the oracle has no gramian of an unstable system
        kept = failed("gramians", of_the_other_sign, dtype)
        assert re.search(r"A=\[?-\d", kept.smallest)
        assert "NaN" not in kept.message


@pytest.mark.long
def test_a_smaller_case_never_has_more_filters_than_samples():
    def by_eigh(*, l, k):
        sigma, phi = reference("spectral_filters")(l=l, k=k)
        return sigma + 1e-17, phi  # noise that hides small eigenvalues

    kept = failed("spectral_filters", by_eigh, "float64")
    sizes = dict(re.findall(r"(\w)=(\d+)", kept.smallest))
    assert int(sizes["k"]) <= int(sizes["l"])
    assert re.search(r"worst eigenvalue \d+: .*; largest error: got -?[\d.e-]+, want", kept.message)


@pytest.mark.long
def test_sizes_that_were_never_drawn_are_not_promised():
    for name, told in (
        ("gramians", "n above 65,"),
        ("linear_scan", "l above 1537 for presets, 300 (thorough: 8192) for others,"),
    ):
        line = judged(name, reference(name), "value", types=["float32"])[0]
        assert limits(line).startswith(told)


def test_axes_go_by_their_names():
    def doubled(x, log_a, B, C):
        y = reference("ssd_recurrent")(x, log_a, B, C).copy()
        y[:, 1:] *= 2
        return y

    kept = failed("ssd_recurrent", doubled, shrink=False)
    assert "every entry with g = 1 wrong, the last of 2" in kept.message


def test_saved_inputs_serve_functions_of_different_layouts(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    turned = (
        "    x = np.moveaxis(linear_scan_(np.moveaxis(a, 0, 1), np.moveaxis(b, 0, 1), {}), 0, 1)"
    )
    text = SCAN.replace("def linear_scan(a, b)", "def linear_scan_(a, b, state)").replace(
        "    state = 0\n", ""
    )
    text = "from refssm.testing import implements\n" + text
    for name, more, start in (("linear_scan", "", "0"), ("linear_scan_from", ", x0", "x0")):
        layout = "l b n, l b n" + ", b n" * bool(more)
        text += f'\n\n@implements("{name}", layout="{layout} -> l b n")\n'
        text += f"def {name}_(a, b{more}):\n".replace("_(", "_turned(")
        text += turned.format(start) + "\n    return x\n"
    plugin(tmp_path, text)
    rng = np.random.default_rng(1)
    a, b, x0 = rng.random((5, 2, 3)), rng.random((5, 2, 3)), rng.random((2, 3))
    np.savez(tmp_path / "in.npz", a=a, b=b, x0=x0)
    exit_code, out, err = run(capfd, "verify", "-v", "my_ops.py", "--inputs", "in.npz")
    assert exit_code == 0, out + err
    assert out.count("   grade A   ") == 2


@pytest.mark.parametrize(
    ("shape", "told"),
    [((3,), "grade A"), ((2, 2, 1, 3), "`u` has shape (2, 2, 1, 3), wanted the axes b d l")],
)
def test_saved_inputs_get_the_axes_they_lack_and_no_others(
    tmp_path, monkeypatch, capfd, shape, told
):
    monkeypatch.chdir(tmp_path)
    text = "def short_convolution(u, k):\n    import refssm\n"
    plugin(tmp_path, text + "    return refssm.short_convolution(u, k)\n")
    np.savez(tmp_path / "in.npz", u=np.ones(shape), k=np.ones(2))
    _, out, err = run(capfd, "verify", "-v", "my_ops.py", "--inputs", "in.npz")
    assert told in out + err


@pytest.mark.parametrize(
    "name", ["linear_scan_packed", "ssd_recurrent_packed", "mamba_scan_packed"]
)
def test_a_reference_without_resets_is_not_certified(name):
    op = CATALOG[name]

    def ignores(*arguments):
        return op.reference(*arguments[:-1], np.zeros_like(arguments[-1]))

    ignores.__name__, ignores.__module__ = op.name, op.reference.__module__
    assert certify(op) == ""
    assert certify(replace(op, reference=ignores))


def test_a_reference_that_drops_what_chunks_carry_is_not_certified():
    op = CATALOG["ssd_chunked"]

    def dropped(x, log_a, B, C, *, chunk):
        l = x.shape[-2]
        if not 1 < chunk < l:
            return op.reference(x, log_a, B, C, chunk=chunk)
        pieces = [slice(s, s + chunk) for s in range(0, l, chunk)]
        parts = [
            op.reference(x[..., p, :], log_a[..., p], B[..., p, :], C[..., p, :], chunk=chunk)
            for p in pieces
        ]
        return np.concatenate(parts, axis=-2)

    dropped.__name__, dropped.__module__ = op.name, op.reference.__module__
    assert certify(replace(op, reference=dropped))


@pytest.mark.parametrize("lengths", [[257], [257, 300]])
def test_of_a_last_step_that_is_wrong_no_reason_is_given(lengths):
    op = CATALOG["linear_scan"]
    wrong = []
    for l in lengths:
        a, b = np.full((l, 1), 0.5, np.float32), np.ones((l, 1), np.float32)
        x = op.reference(a, b)
        x[-1] = 0
        held = Standard.of("float32")
        (gauge,) = expect(op, [a, b], {}, standard=held)
        wrong.append(Wrong(x, gauge, held, "x", op.output_dims[0]))
    assert place_of(wrong, [], op, False) == "only the last step is wrong"


def at_most_0(x):
    return np.where(np.real(x) > 0, x - np.real(x), x)


SIGNED = "only log_a above 0 is wrong here"


def test_a_guard_against_overflow_is_told_by_the_sign_that_it_guards():
    right = reference("ssd_recurrent")
    result = failed("ssd_recurrent", lambda x, log_a, B, C: right(x, at_most_0(log_a), B, C))
    assert result.hint.startswith(f"right with −|log_a| in the place of log_a: {SIGNED}")


def test_a_gate_that_is_wrong_at_both_signs_is_not_told_as_a_guard():
    right = reference("ssd_recurrent")
    for wrong in (np.zeros_like, np.negative, lambda a: a * a.dtype.type(1.001)):
        result = failed("ssd_recurrent", lambda x, log_a, B, C, f=wrong: right(x, f(log_a), B, C))
        assert SIGNED not in result.hint
