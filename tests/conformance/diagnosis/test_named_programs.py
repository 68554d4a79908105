"""Wrong programs as their authors write them, and the names that a report gives to their mistakes.

None of them uses the planted bugs' own building blocks.
"""

import numpy as np
import pytest
from judging import looks_like

from refssm._numerics.broadcasting import unbroadcast
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings

pytestmark = pytest.mark.usefixtures("their_warnings_are_not_ours")


def right(name):
    return operator_named(name).reference


def scanned(steps, inputs=lambda dt: dt, states=lambda n: n):
    """A loop over time; `steps` changes dt, `inputs` the dt beside u, `states` the count of n."""

    def program(u, dt, A, B, C):
        kind, dt = np.result_type(u, dt, A, B, C), steps(dt)
        n = states(A.shape[-1])
        x, y = 0, []
        for k in range(u.shape[-1]):
            step = dt[..., k, None]
            x = np.exp(step * A[..., :n]) * x + inputs(step) * u[..., k, None] * B[..., k, :n]
            y.append((C[..., k, :n] * x).sum(-1))
        return np.stack(y, -1).astype(kind)

    return program


def step_before(dt):
    late = dt.copy()
    late[..., 1:] = dt[..., :-1]
    return late


def bilinear_of_conjugate(w, B, dt):
    half = dt * w / 2
    solved = 1 / (1 - np.conj(half))
    return (1 + half) * solved, (dt * solved)[..., None] * B


def first_128(u, k):
    y = np.zeros(np.broadcast_shapes(u.shape, k.shape), np.result_type(u, k))
    for lag in range(min(128, u.shape[-1])):
        y[..., lag:] += k[..., lag, None] * u[..., : u.shape[-1] - lag]
    return y


def never_by_zero(w, B, C, dt, *, l):
    dt = dt[..., None]
    gain = B * C * np.expm1(dt * w) / (w + np.asarray(1e-8, dt.dtype))
    powers = np.exp((dt * w)[..., None] * np.arange(l).astype(dt.dtype))
    return (gain[..., None] * powers).sum(-2).astype(np.result_type(w, B, C, dt))


PROGRAMS = {
    "dt of the step before": (
        ("selective_scan", scanned(step_before)),
        "dt_(k−1) for dt_k, in the decay and in the input",
    ),
    "a range of steps": (
        ("selective_scan", scanned(lambda dt: np.minimum(np.maximum(dt, 1e-3), 0.1))),
        "dt clipped to the range from 1e-3 to 0.1",
    ),
    "vectors of 4": (
        ("selective_scan", scanned(lambda dt: dt, states=lambda n: n // 4 * 4 or n)),
        "entries of the state beyond a multiple of 4 left out",
    ),
    "the other side of the map": (
        ("discretize_diagonal_bilinear", bilinear_of_conjugate, "value", "complex64"),
        "1 − ½z* for 1 − ½z",
    ),
    "128 lags": (("causal_convolution_direct", first_128), "taps beyond 128 dropped"),
    "an epsilon": (
        ("diagonal_kernel_zoh", never_by_zero),
        "1e-8 added to the denominator w",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(("given", "what"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_mistake_in_a_program_of_its_own_is_named(given, what):
    assert looks_like(*given).startswith(what)


@pytest.mark.long
def test_a_kernel_cut_after_128_lags_is_shown_at_the_first_length_at_which_ones_are_wrong():
    found = Found(operator_named("causal_convolution_direct"), first_128, None)
    how = {"only_checks": ("value",), "types": ("float32",), "folder": None, "hints": False}
    line, *_ = results_of(Session(InProcess([found]), "", Settings(**how)))
    # of ones, 128 for 129 is within a part in 128, which is "inaccurate"; 128 for 130 is wrong
    assert line.smallest == "l=130; u=1 throughout, k=1 throughout"


def bilinear_gradients(sign, conjugate):
    """The VJP by hand, with the sign in 1 − ½z and the conjugates given."""

    def vjp(dA_bar, dB_bar, w, B, dt):
        slope = 1 / (1 - sign * dt * w / 2)
        through = (np.conj(B) * dB_bar).sum(-1)
        square = np.conj(slope * slope)
        dw = dt * square * dA_bar + dt * dt * square * through / 2
        ddt = np.conj(w) * square * dA_bar + square * through
        dB = conjugate((dt * slope)[..., None]) * dB_bar
        ddt = ddt if np.iscomplexobj(dt) else ddt.real
        dw, dB = (g if np.iscomplexobj(a) else g.real for g, a in ((dw, w), (dB, B)))
        return tuple(unbroadcast(g, a) for g, a in ((dw, w), (dB, B), (ddt, dt)))

    return vjp


MAP = "discretize_diagonal_bilinear"


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_sign_in_the_gradients_of_the_bilinear_map_is_named(dtype):
    told = looks_like(MAP, right(MAP), "gradient", dtype, bilinear_gradients(-1, np.conj))
    assert told.startswith("1 + ½z for 1 − ½z in the backward pass")


@pytest.mark.long
def test_one_gradient_without_its_conjugate_is_named_by_that_gradient():
    forgotten = bilinear_gradients(1, lambda a: a)
    told = looks_like(MAP, right(MAP), "gradient", "complex64", forgotten)
    assert told.startswith("w for w* in dB")


def test_one_gradient_that_is_a_conjugate_is_named():
    def vjp(*given):
        dw, dB, ddt = operator_named(MAP).bare_vjp(*given)
        return dw, np.conj(dB), ddt

    told = looks_like(MAP, right(MAP), "gradient", "complex64", vjp)
    assert told == "every entry of `dB` is the conjugate of the right value"


def detached(size):
    """Gradients of a scan in blocks whose carry is detached, as by .detach() in a loop."""

    def vjp(dx, a, b):
        decays, inputs = np.broadcast_arrays(a, b)
        x = right("linear_scan")(decays, inputs)
        g, da, l = np.zeros_like(x), np.zeros_like(x), x.shape[-2]
        dx = np.broadcast_to(dx, x.shape)
        for k in reversed(range(l)):
            follows = k + 1 < l and (k + 1) % size
            g[..., k, :] = dx[..., k, :]
            if follows:
                g[..., k, :] += np.conj(decays[..., k + 1, :]) * g[..., k + 1, :]
            if k:
                da[..., k, :] = np.conj(x[..., k - 1, :]) * g[..., k, :]
        return unbroadcast(da, a), unbroadcast(g, b)

    return vjp


@pytest.mark.long
@pytest.mark.parametrize("size", [32, 64, 128])
def test_a_carry_without_a_gradient_is_named_with_the_length_of_its_blocks(size):
    told = looks_like("linear_scan", right("linear_scan"), "gradient", vjp=detached(size))
    named = f"passed from one block of {size} back to the block before"
    assert named in told or f"no gradient passes the borders of chunks of {size}" in told


def by_chunks(u, dt, A, B, C):
    """Chunks of 64 as people write them; the state decays by what the chunk before summed up."""
    kind = np.result_type(u, dt, A, B, C)
    shape = np.broadcast_shapes(u.shape[:-1], dt.shape[:-1], A.shape[:-1], B.shape[:-2])
    h, decay, y = np.zeros((*shape, A.shape[-1]), kind), 1, []
    for start in range(0, u.shape[-1], 64):
        x, summed = np.zeros_like(h), 0
        for k in range(start, min(start + 64, u.shape[-1])):
            step = dt[..., k, None]
            x = np.exp(step * A) * x + step * u[..., k, None] * B[..., k, :]
            summed = summed + step
            y.append(((x + np.exp(summed * A) * h) * C[..., k, :]).sum(-1))
        h, decay = x + decay * h, np.exp(summed * A)
    return np.stack(y, -1).astype(kind) if y else np.zeros((*shape, 0), kind)


@pytest.mark.long
def test_a_carry_with_the_decay_of_the_chunk_before_is_named():
    told = looks_like("selective_scan", by_chunks)
    assert told.startswith("the carry of a chunk of 64 decays as in the chunk before")
