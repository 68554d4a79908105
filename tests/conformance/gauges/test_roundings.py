"""Programs with roundings up or down: what one lucky rounding on all copies would refuse."""

from typing import Any, cast

import numpy as np
import pytest
from honest.dplr.kernel import eigenvectors
from selftest.bounds import case_of, cotangents

from refssm._declaration.arguments import several
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.gauges import contracts
from refssm.conformance.gauges.gauge import wide
from refssm.conformance.gauges.programs import AGAIN_GRADIENTS, AGAIN_OUTPUTS, measured
from refssm.conformance.gauges.programs.arithmetic import neighbour
from refssm.conformance.gauges.programs.measured import Stochastic, stochastic
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, judge
from refssm.hope.circle import half_angles
from refssm.presets.catalog import presets_of


def test_a_number_becomes_one_of_its_two_neighbours_and_an_exact_one_stays():
    exact = np.concatenate([np.full(100, 1 - 2**-26), np.full(100, 0.75)])
    rounded = neighbour(exact, np.float32, np.random.default_rng(3))
    assert set(rounded[:100].tolist()) == {1.0, 1 - 2**-24}
    assert (rounded[100:] == 0.75).all()


def test_parts_of_a_complex_number_are_rounded_apart():
    exact = np.full(200, complex(1 - 2**-26, 0.75))
    rounded = neighbour(exact, np.complex64, np.random.default_rng(3))
    assert rounded.dtype == np.complex64
    assert set(rounded.real.tolist()) == {1.0, 1 - 2**-24}
    assert (rounded.imag == 0.75).all()


def at_random(*numbers, dtype=np.float32):
    return stochastic(np.array(numbers, dtype), np.random.default_rng(3))


def test_each_operation_rounds_up_or_down_at_random():
    x = at_random(*[3] * 100)
    assert set((1 / x).tolist()) == {
        np.float32(1 / 3),
        np.nextafter(np.float32(1 / 3), 0, dtype="f"),
    }
    assert ((x - 1) / 4 == 0.5).all()  # exact
    turned = 1j / x
    assert turned.dtype == np.complex64
    assert len(set(turned.tolist())) == 2


def test_what_is_no_ufunc_and_what_is_written_in_place_rounds_at_random_afterwards():
    x = at_random(1, 2)
    for y in (
        np.stack([x, x]),
        np.fft.fft(x),
        np.einsum("i,i->i", x, x),
        x.real,
        x.sum(keepdims=True),
    ):
        assert isinstance(y, Stochastic)
        assert y.rng is x.rng
    thirds = at_random(*[1] * 100)
    thirds /= 3
    assert isinstance(thirds, Stochastic)
    assert len(set(thirds.tolist())) == 2


def test_other_types_do_not_round_at_random():
    flags, wide_ = at_random(1, 2) > 1, at_random(1, 3).astype(float)
    assert flags.tolist() == [False, True]
    assert (1 / wide_).tolist() == [1, 1 / 3]
    assert not isinstance(stochastic(np.ones(2), np.random.default_rng(0)), Stochastic)


def test_a_gradient_over_a_small_step_is_right_though_the_pole_is_rounded(monkeypatch):
    """Of ρ = (1 − dt)/(1 + dt), all copies have one rounding in single precision, a good one."""
    op, dt = operator_named("hope_stream"), np.array(169e-6)
    case = [np.ones(3), np.array([0, 1.0, 6, -4]), dt, np.array([0, 0, 1.0])]
    found = np.asarray(op.bare_vjp(*case)[1])

    def accepted():
        gauge = expect(op, case, {}, op.bare_vjp)[1]
        return compare(found, gauge, found.dtype, name="ddt").ok

    assert accepted()
    monkeypatch.setattr(measured, "AT_RANDOM", 0)
    assert not accepted()


def same(found, wanted):
    for y, of in zip(several(found), several(wanted), strict=True):
        if of is None:  # the gradient of flags
            continue
        y = y if np.iscomplexobj(of) else y.real
        assert np.abs(y - of).max() <= 1e-9 * np.abs(of).max()


@pytest.mark.parametrize("name", AGAIN_OUTPUTS)
def test_in_double_precision_such_a_program_has_the_values_of_the_reference(name):
    op = operator_named(name)
    case = case_of(op, presets_of(op)[0])
    assert case is not None
    arrays = wide(case.arrays)
    wanted = op.reference(*arrays, **case.statics)
    for program in AGAIN_OUTPUTS[name].values():
        same(program(*arrays, **case.statics), wanted)


@pytest.mark.parametrize("name", AGAIN_GRADIENTS)
def test_in_double_precision_such_a_program_has_the_gradients_of_the_reference(name):
    op = operator_named(name)
    case = case_of(op, presets_of(op)[0])
    assert case is not None
    arrays = wide([*cotangents(op, case), *case.arrays])
    wanted = op.bare_vjp(*arrays, **case.statics)
    for program in AGAIN_GRADIENTS[name].values():
        same(program(*arrays, **case.statics), wanted)


def one_state(name="dplr_kernel"):
    """A mode with |λ| near 1, P and Q of rank 3; I − Ā needs no rounding that an input moves."""
    P = np.array([[-0.5, -0.85186976, 0.5]], np.float32)
    w, B, dt = -np.ones(1, np.float32), np.array([-7], np.float32), np.float32(2**-10)
    return operator_named(name), [w, P, P, B, B, np.asarray(dt)]


def test_a_power_of_one_rounded_number_near_1_is_right(monkeypatch):
    op, arrays = one_state()
    K = eigenvectors(*arrays, l=1025)
    assert judge(op, lambda *_, **__: K, *arrays, l=1025).ok
    monkeypatch.setattr(measured, "AT_RANDOM", 0)
    assert not judge(op, lambda *_, **__: K, *arrays, l=1025).ok


def test_the_sine_of_a_rounded_angle_beside_pi_is_right(monkeypatch):
    op, l = operator_named("hope_transfer"), 5
    h, dt, dk = np.ones(1, np.float32), np.asarray(np.float32(2**-7)), np.zeros(l, np.complex64)
    dk[3] = 1j
    c, s = half_angles(l, h.astype(float), dt.astype(float))
    angle = 2 * np.arctan2(s, dt * c).astype(np.float32).astype(float)
    slope = 1j * np.sin(angle) / dt * np.exp(-1j * angle)
    ddt = np.asarray((dk * slope.conj()).sum().real, np.float32)

    def accepted():
        gauge = expect(op, [dk, h, dt], {"l": l}, op.bare_vjp)[1]
        return compare(ddt, gauge, ddt.dtype, name="ddt").ok

    assert accepted()
    monkeypatch.setattr(contracts, "AGAIN_GRADIENTS", cast(Any, {}))
    assert not accepted()
