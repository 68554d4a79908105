import numpy as np
import pytest
from calls import WITH_ARGUMENTS

from refssm._numerics.balance import balanced
from refssm._numerics.circle import summed_angles, within_turn
from refssm._numerics.elimination import response
from refssm._numerics.elimination import solved as eliminated
from refssm._numerics.expm import expm, expm_derivative
from refssm._numerics.lyapunov import lyapunov, stein
from refssm._numerics.polynomials import legendre, recurrence
from refssm._numerics.powers import states
from refssm._numerics.scales import (
    as_excess,
    as_remains,
    as_scale,
    in_units,
    larger_vjp,
    parted,
)
from refssm._numerics.takagi import takagi
from refssm._numerics.triangular import unit_lower_inverse
from refssm.activations import clip_vjp, sigmoid
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.gauges.contracts import bounds
from refssm.conformance.gauges.cumulated.mamba3 import plain_angles
from refssm.conformance.gauges.cumulated.sums import decayed_sums, prefix_sums, without_errors
from refssm.conformance.gauges.gauge import gauges
from refssm.conformance.gauges.tracked import FUNCTIONS, UFUNCS, Tracked, lifted, tracing
from refssm.dplr.aliased import dplr_aliased_spectrum
from refssm.dplr.kernel import dplr_spectrum
from refssm.dplr.system import around_the_circle
from refssm.hippo.memory import exponential_states, held_input, held_states
from refssm.hope.allpass import cascade
from refssm.hope.circle import all_pass, powers, slope
from refssm.hope.impulses import all_pass_responses
from refssm.kalman.filtering import filtered
from refssm.layers._namespaces import (
    cascade_response,
    convolution,
    corrected,
    corrected_from,
    corrected_vjp,
)
from refssm.layers._parts.ssm import complexes, reals
from refssm.linoss import swung

U, U_DOUBLE = 2.0**-24, 2.0**-53
LABELS = np.arange(1.0, 25.0).reshape(2, 3, 4)


def labelled(values=LABELS):
    """A tracked array whose errors are 2 and 3 times its values, so each identifies the other."""
    return Tracked(values.copy(), np.stack([2 * values, 3 * values], axis=-1).astype(float))


def moves_alike(y, expected):
    """Assert that the values are as expected, and that each error moved with its value."""
    assert np.array_equal(y.value, expected)
    assert y.errors.shape == (*y.value.shape, 2)
    assert np.array_equal(y.errors[..., 0], 2 * y.value)
    assert np.array_equal(y.errors[..., 1], 3 * y.value)


MOVES = {
    np.moveaxis: (0, -1),
    np.swapaxes: (-1, 0),
    np.transpose: ((2, 0, 1),),
    np.broadcast_to: ((5, 2, 3, 4),),
    np.reshape: ((4, 6),),
    np.expand_dims: (-1,),
    np.squeeze: (),
    np.flip: (1,),
    np.repeat: (2, 1),
    np.tile: ((2, 1),),
    np.roll: (1, -1),
    np.tril: (),
    np.triu: (1,),
    np.diagonal: (0, 1, 2),
    np.copy: (),
    np.take: ([2, 0], -1),
    np.take_along_axis: (np.array([[[2, 0, 1, 1]], [[0, 0, 2, 1]]]), 1),
}


@pytest.mark.parametrize("function", MOVES, ids=lambda f: f.__name__)
def test_a_structural_function_moves_errors_with_entries(function):
    arguments = MOVES[function]
    moves_alike(function(labelled(), *arguments), function(LABELS, *arguments))


@pytest.mark.parametrize("function", [np.stack, np.concatenate], ids=lambda f: f.__name__)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_arrays_put_together_keep_their_errors(function, axis):
    expected = function([LABELS, -LABELS], axis=axis)
    moves_alike(function([labelled(), labelled(-LABELS)], axis=axis), expected)
    mixed = function([labelled(), 0 * LABELS], axis=axis)
    moves_alike(mixed, function([LABELS, 0 * LABELS], axis=axis))


def test_broadcast_arrays_takes_plain_arrays_too():
    first, second = np.broadcast_arrays(labelled(), np.zeros((5, 1, 1, 4)))
    moves_alike(first, np.broadcast_to(LABELS, (5, 2, 3, 4)))
    moves_alike(second, np.zeros((5, 2, 3, 4)))


@pytest.mark.parametrize("shape", [(), (4,), (3, 1), (2, 1, 4), (5, 1, 1, 1)], ids=str)
def test_where_takes_the_errors_of_the_chosen_entry(shape):
    rng = np.random.default_rng(1)
    other = -(1 + rng.random(shape))
    for condition in (rng.random((2, 3, 4)) < 0.5, rng.random(4) < 0.5, True):
        moves_alike(
            np.where(condition, labelled(), labelled(other)), np.where(condition, LABELS, other)
        )
        moves_alike(np.where(condition, labelled(), 0.0), np.where(condition, LABELS, 0.0))


INDICES = {
    "integer": 1,
    "negative": -1,
    "slice": slice(0, 1),
    "ellipsis": ...,
    "last axis": (..., 2),
    "new axis": (..., None, slice(None)),
    "new last axis": (..., None),
    "leading": (slice(None), 1),
    "middle": (..., slice(None, -1), slice(None)),
    "entry": (1, 2, 3),
    "list": ([1, 0],),
    "mask": LABELS[..., 0] > 5,
    "full mask": LABELS > 5,
    "mask of trailing axes": (..., LABELS[0, 0] > 2),
}
indexed = pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)


@indexed
def test_an_index_of_the_values_is_an_index_of_the_errors(index):
    moves_alike(labelled()[index], LABELS[index])


@indexed
def test_an_assignment_writes_values_and_errors(index):
    x, expected = labelled(), LABELS.copy()
    x[index] = labelled(-LABELS)[index]
    expected[index] = -LABELS[index]
    moves_alike(x, expected)
    x[index] = 0.0
    expected[index] = 0
    moves_alike(x, expected)


def test_a_part_written_to_is_written_in_the_whole():
    x = labelled()
    x[0][1] = 0.0
    assert not x.value[0, 1].any()
    assert not x.errors[0, 1].any()


def test_methods_and_properties_keep_errors():
    z = labelled(LABELS)
    moves_alike(z.copy(), LABELS)
    moves_alike(z.reshape(6, 4), LABELS.reshape(6, 4))
    moves_alike(z.swapaxes(0, 2), LABELS.swapaxes(0, 2))
    moves_alike(z.T, LABELS.T)
    moves_alike(z.astype(np.longdouble), LABELS)
    moves_alike(z.real, LABELS)
    moves_alike(z.conj(), LABELS)
    assert (z.shape, z.ndim, z.size, z.dtype, len(z)) == ((2, 3, 4), 3, 24, LABELS.dtype, 2)
    copied = z.copy()
    copied[0] = 0.0
    moves_alike(z, LABELS)


def test_the_parts_of_a_complex_number_are_off_by_no_more_than_its_modulus():
    z = Tracked(np.array([3 + 4j]), np.array([[5.0, 10.0]]))
    for part, value in ((z.real, 3), (z.imag, 4), (np.real(z), 3), (np.imag(z), 4)):
        assert part.value == value
        assert part.errors.tolist() == [[5.0, 10.0]]
    assert z.conj().value == 3 - 4j
    assert np.iscomplexobj(z)
    assert not np.iscomplexobj(z.real)


def test_shapes_types_and_fresh_arrays_are_answered():
    z = labelled()
    assert (np.shape(z), np.ndim(z), np.size(z)) == ((2, 3, 4), 3, 24)
    assert np.result_type(z, np.dtype("complex64")) == np.complex128
    assert np.result_type(np.ones(1, np.complex64), z) == np.complex128
    for make in (np.empty_like, np.zeros_like):
        fresh = make(z, dtype=complex, shape=(2, 2))
        assert not fresh.value.any()
        assert not fresh.errors.any()
        assert (fresh.shape, fresh.dtype) == ((2, 2), complex)
        assert make(z).shape == z.shape


def test_result_type_takes_a_scalar_type():
    assert np.result_type(labelled(), np.complex64) == np.complex128


def test_every_structural_function_is_tested_here():
    numeric = {np.sum, np.einsum, np.cumsum}
    asked = {np.shape, np.ndim, np.size, np.iscomplexobj, np.result_type, np.real, np.imag}
    asked |= {np.argmax}
    made = {np.empty_like, np.zeros_like, np.broadcast_arrays, np.where, np.stack, np.concatenate}
    solved = {np.linalg.solve, expm, expm_derivative}  # tests/test_contracts.py
    held = {held_states, held_input, exponential_states}  # tests/test_hippo_reconstruct.py
    polynomials = {legendre, recurrence}  # there too
    around = {states, around_the_circle, np.fft.fft}  # tests/test_roots.py
    spectra = {dplr_spectrum, dplr_aliased_spectrum}  # test_tracked_kernels.py
    circle = {all_pass, all_pass_responses, powers, slope}  # test_hope_rules.py
    sums = {prefix_sums, decayed_sums, without_errors}  # tests/conformance/gauges/test_cumulated.py
    stages = {cascade}  # tests/conformance/gauges/test_tracked_allpass.py
    values = {takagi, balanced}  # tests/conformance/gauges/test_tracked_spectra.py
    # tests/test_{hankel_gramians,tracked_systems}.py
    systems = {lyapunov, stein, response, eliminated}
    chained = {np.split, np.diag, np.ones_like, np.fft.ifft}  # test_tracked_layers.py
    chained |= {np.arange, np.asarray, np.eye, np.ones, np.zeros}
    chained |= {convolution, cascade_response, reals, complexes, sigmoid}
    chained |= {clip_vjp, filtered}  # tests/test_{ssd_mamba2,kalman}.py
    chained |= {unit_lower_inverse}  # test_triangular.py
    chained |= {as_scale, in_units, as_excess, swung}  # test_tracked_recurrences.py
    chained |= {within_turn, summed_angles, plain_angles}  # there too
    chained |= {larger_vjp, as_remains, parted}  # tests/test_xlstm.py
    chained |= {corrected, corrected_from, corrected_vjp}  # test_columns.py
    known = {*MOVES, *chained, *numeric, *asked, *made, *solved, *held, *polynomials, *around}
    known |= {*spectra, *circle, *stages, *values, *systems, *sums}
    assert set(FUNCTIONS) == known


def test_the_largest_entry_is_where_the_largest_value_is():
    assert np.array_equal(np.argmax(labelled(-LABELS), axis=-1), np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: np.tan(x), r"numpy.tan \(__call__\)"),
        (lambda x: x % 2, r"numpy.remainder \(__call__\)"),
        (lambda x: np.add.reduce(x), r"numpy.add \(reduce\)"),
        (lambda x: np.add(x, 1, dtype=float), r"numpy.add \(__call__\)"),
        (lambda x: np.median(x), "numpy.median"),
        (lambda x: np.linalg.inv(x), "numpy.inv"),
        (lambda x: np.cumsum(x), "numpy.cumsum without an axis"),
        (lambda x: np.einsum("ijk,ijk", x, x), "numpy.einsum without '->'"),
        (lambda x: x @ LABELS[0, 0], "numpy.matmul of vectors"),
        (lambda x: np.log1p(x * 1j), "numpy.log1p of complex numbers"),
        (lambda x: x**0.5, "numpy.power but with constant integer exponents"),
        (lambda x: 2.0**x, "numpy.power but with constant integer exponents"),
    ],
)
def test_a_function_without_a_rule_raises_and_is_named(call, name):
    with pytest.raises(TypeError, match=f"no error rule for {name}"):
        call(labelled())


def test_a_tracked_array_does_not_become_a_plain_one():
    with pytest.raises(TypeError, match="no error rule"):
        np.asarray(labelled())
    plain = np.zeros(24)
    with pytest.raises(TypeError, match="no error rule"):
        plain[:] = labelled().reshape(24)


LOSSY = {
    "reciprocal": (lambda x: 1 / x, 0),
    "numpy.reciprocal": (np.reciprocal, 0),
    "negative power": (lambda x: x**-2, 0),
    "log": (np.log, 0),
    "log2": (np.log2, 0),
    "sqrt": (np.sqrt, 0),
    "log1p": (np.log1p, -1),
}


@pytest.mark.parametrize(("function", "singularity"), LOSSY.values(), ids=LOSSY)
def test_an_operand_without_digits_has_no_bound(function, singularity):
    distance = 2.0**-10
    around = distance / U * np.array([0.25, 0.49, 0.5, 0.51, 4.0])
    x = Tracked(np.full(5, singularity + distance), np.stack([0 * around, around], axis=-1))
    with tracing(unit=U, floor=0.0):
        y = function(x)
    assert np.isinf(y.errors[:, 1]).tolist() == [False, False, True, True, True]
    assert np.isfinite(y.errors[:, 0]).all()


def test_an_exact_zero_has_all_its_digits():
    with tracing(unit=U, floor=0.0):
        y = np.sqrt(Tracked(np.zeros(1)))
    assert y.errors.tolist() == [[0.0, 0.0]]


def test_einsum_counts_the_terms_of_a_broadcast_label():
    (first,) = gauges(lambda x, y: np.einsum("i,i->", x, y), np.ones(3), np.ones(1), unit=U)
    (second,) = gauges(lambda x, y: np.einsum("i,i->", y, x), np.ones(3), np.ones(1), unit=U)
    assert first.k0 == second.k0


def test_the_peak_is_the_largest_finite_modulus_of_any_intermediate():
    x = np.array([3.0, -4.0, np.inf])
    (gauge,) = gauges(lambda x: (1e6 * x - 1e6 * x) + x, x, unit=U)
    assert gauge.peak == 4e6
    (scalar,) = gauges(lambda x: 7 * x / 0, np.array(2.0), unit=U)
    assert scalar.peak == 14


def test_a_gauge_is_never_below_the_value_and_undefined_bounds_are_infinite():
    (gauge,) = gauges(lambda x: x, np.array([3.0, -2.0]), unit=U)
    assert gauge.k0.tolist() == [3, 2]
    (gauge,) = gauges(lambda x: 0 / (x - 1), np.ones(1) + 2.0**-40, unit=U)
    assert gauge.k0 == 0
    assert np.isinf(gauge.k1).all()


def test_tracing_nests_and_ends():
    from refssm.conformance.gauges import tracked

    outer = tracked._trace
    with tracing(unit=U, floor=1.0), tracing(unit=U, floor=2.0) as inner:
        assert tracked._trace is inner
    assert tracked._trace is outer
    assert lifted(lifted(1.0)).value == 1
    assert np.add in UFUNCS


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("op", WITH_ARGUMENTS, ids=str)
def test_every_reference_and_every_vjp_traces_to_its_own_value(op, dtype):
    case = ordinary_case(op, dtype)
    u, statics = 2.0**-24, case.statics
    y = op.reference(*case.arrays, **statics)
    outputs = y if isinstance(y, tuple) else (y,)
    forward = bounds(op, case.arrays, statics, None, unit=u, floor=0.0)
    pulled = op.bare_vjp(*outputs, *case.arrays, **statics)
    backwards = bounds(op, [*outputs, *case.arrays], statics, op.bare_vjp, unit=u, floor=0.0)
    pulled = [g for g in pulled if g is not None]
    for gauge, value in zip((*forward, *backwards), (*outputs, *pulled), strict=True):
        assert (np.abs(gauge.value - value) <= 2 * U_DOUBLE * gauge.k0).all()  # x**2 is not x*x
        assert (gauge.k1 >= gauge.k0).all()
        assert np.isfinite(gauge.k1).all()
