import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import cotangents, examples, laws

from refssm.catalog import OPERATORS
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, judge
from refssm.discretize import DISCRETIZE_BILINEAR, DISCRETIZE_DIAGONAL_BILINEAR, DISCRETIZE_ZOH

TYPES = ("float32", "complex128")  # both precisions, real and complex
DISCRETIZATIONS = {op.name: op for op in OPERATORS if op.family == "discretize"}
DIAGONAL = [op for name, op in DISCRETIZATIONS.items() if "diagonal" in name]
MATRIX = [DISCRETIZATIONS[op.name.replace("diagonal_", "")] for op in DIAGONAL]
ALPHA = 0.25  # of the generalized bilinear map
STATES, INPUTS = 3, 2  # upper limits: the condition number of an exponential is slow to compute
TEXTURES = ("each", "diagonal", "lower", "gaps")
each_type = pytest.mark.parametrize("dtype", TYPES)
all_rules = pytest.mark.parametrize("op", MATRIX + DIAGONAL, ids=str)
both_kinds = pytest.mark.parametrize(
    ("op", "diagonal"), list(zip(MATRIX, DIAGONAL, strict=True)), ids=[str(op) for op in MATRIX]
)


@st.composite
def systems(draw, op, dtype, textures=TEXTURES, **narrowed):
    """One small system without leading axes, and its example."""
    example = draw(examples(op, dtype, max_dims=0, textures=textures, **narrowed))
    A, B, dt = example.arrays
    small, few = slice(STATES), (slice(STATES), slice(INPUTS))
    if op in DIAGONAL:
        return (A[small], B[few], dt[small]), example
    return (A[small, small], B[few], dt), example


def statics(op):
    """The keyword arguments of `op`."""
    return dict.fromkeys(op.static, ALPHA)


def run(op, *arrays):
    """The reference, with its argument checks."""
    return op.implementation("reference")(*arrays, **statics(op))


def verdict_on(op, value, *arrays):
    """The judge's verdict on `value` as what `op` returns."""
    return judge(op, lambda *_, **__: value, *arrays, **statics(op))


def _stacked(first, second):
    return np.concatenate([first, second])


def beside(op, first, second):
    """Concatenate two diagonals, or put two matrices on the block diagonal."""
    if op in DIAGONAL:
        return np.concatenate([first, second])
    corner = np.zeros((len(first), len(second)), first.dtype)
    return np.block([[first, corner], [corner.T, second]])


@all_rules
@each_type
@given(data=st.data())
@laws
def test_the_order_of_the_states_does_not_matter(op, dtype, data):
    (A, B, dt), example = data.draw(systems(op, dtype))
    order = example.generator(50).permutation(len(B))
    back = np.argsort(order)
    if op in DIAGONAL:
        A_bar, *held = run(op, A[order], B[order], dt[order])
        A_bar = A_bar[back]
    else:
        A_bar, *held = run(op, A[order][:, order], B[order], dt)
        A_bar = A_bar[back][:, back]
    verdict = verdict_on(op, (A_bar, *(B_bar[back] for B_bar in held)), A, B, dt)
    assert verdict.ok, verdict


@all_rules
@each_type
@given(data=st.data())
@laws
def test_systems_side_by_side_are_discretized_each_by_itself(op, dtype, data):
    (A, B, dt), example = data.draw(systems(op, dtype, mixed=False))
    generator = example.generator(51)
    order = generator.permutation(len(B))
    other = A[order] if op in DIAGONAL else A[order][:, order].T.copy()
    first, second = run(op, A, B, dt), run(op, other, 2 * B, dt)
    both = beside(op, first[0], second[0]), *map(_stacked, first[1:], second[1:])
    step = np.concatenate([dt, dt]) if op in DIAGONAL else dt
    verdict = verdict_on(op, both, beside(op, A, other), np.concatenate([B, 2 * B]), step)
    assert verdict.ok, verdict


@all_rules
@each_type
@given(data=st.data())
@laws
def test_the_columns_of_b_do_not_touch_each_other_nor_a_bar(op, dtype, data):
    (A, B, dt), _ = data.draw(systems(op, dtype))
    A_bar, *held = run(op, A, B, dt)
    columns = [run(op, A, B[:, j : j + 1], dt) for j in range(B.shape[1])]
    for one, *_ in columns if op.name != "discretize_foh" else []:  # its exponential contains B
        assert np.array_equal(one, A_bar)
    held = [np.concatenate([c[j + 1] for c in columns], axis=1) for j in range(len(held))]
    verdict = verdict_on(op, (A_bar, *held), A, B, dt)
    assert verdict.ok, verdict


@both_kinds
@each_type
@given(data=st.data())
@laws
def test_a_diagonal_matrix_is_discretized_as_its_diagonal(op, diagonal, dtype, data):
    (w, B, dt), _ = data.draw(systems(diagonal, dtype))
    step = dt[0]
    a_bar, *held = run(diagonal, w, B, np.full_like(dt, step))
    verdict = verdict_on(op, (np.diag(a_bar), *held), np.diag(w), B, np.asarray(step))
    assert verdict.ok, verdict


@both_kinds
@each_type
@given(data=st.data())
@laws
def test_the_gradients_of_a_diagonal_matrix_are_those_of_its_diagonal(op, diagonal, dtype, data):
    (w, B, dt), example = data.draw(systems(diagonal, dtype))
    dt = np.full_like(dt, dt[0])
    da_bar, *others = cotangents(example, run(diagonal, w, B, dt))
    dw, dB, ddt = diagonal.vjp()(da_bar, *others, w, B, dt, **statics(diagonal))
    own = expect(diagonal, [da_bar, *others, w, B, dt], statics(diagonal), diagonal.bare_vjp)
    matrices = [np.diag(da_bar), *others, np.diag(w), B, np.asarray(dt[0])]
    theirs = expect(op, matrices, statics(op), op.bare_vjp)
    # dA has more entries off the diagonal; the single dt collects the parts of all states
    reduced = [(dw, own[0].k0), (dB, own[1].k0), (np.sum(ddt, keepdims=True), own[2].k0.sum())]
    taken = [np.diag, np.asarray, np.atleast_1d]
    for (value, k), gauge, of in zip(reduced, theirs, taken, strict=True):
        k = of(gauge.k0) + k
        verdict = compare(value, Gauge(of(gauge.value), k, k, gauge.peak), value.dtype)
        assert verdict.ok, verdict


@each_type
@given(data=st.data(), sixteenths=st.integers(1, 15))
@laws
def test_zero_order_hold_over_two_steps_is_the_hold_over_their_sum(dtype, data, sixteenths):
    (A, B, dt), _ = data.draw(systems(DISCRETIZE_ZOH, dtype))
    dt = np.exp2(np.round(np.log2(dt)))  # the parts of the step are then exact
    s, t = dt * dt.dtype.type(sixteenths / 16), dt * dt.dtype.type(1 - sixteenths / 16)
    (As, Bs), (At, Bt) = run(DISCRETIZE_ZOH, A, B, s), run(DISCRETIZE_ZOH, A, B, t)
    ks, kt, k = (expect(DISCRETIZE_ZOH, (A, B, h))[0].k0.max() for h in (s, t, dt))
    sizes = [np.linalg.norm(x) for x in (At, As, Bs)]
    for value, total, left in zip(
        (At @ As, At @ Bs + Bt), expect(DISCRETIZE_ZOH, (A, B, dt)), sizes[1:], strict=True
    ):
        carried = sizes[0] * ks + kt * left + len(A) * sizes[0] * left + kt  # and of the product
        tolerance = np.full(value.shape, k + carried)
        verdict = compare(value, Gauge(total.value, tolerance, tolerance, total.peak), value.dtype)
        assert verdict.ok, verdict


@all_rules
@each_type
@given(data=st.data(), k=st.integers(-8, 8))
@laws
def test_the_unit_of_time_is_free_exactly(op, dtype, data, k):
    (A, B, dt), _ = data.draw(systems(op, dtype))
    scale = np.finfo(dtype).dtype.type(2.0**k)
    driven = B if "impulse" in op.name else B * scale  # impulses have no duration
    for value, other in zip(run(op, A, B, dt), run(op, A * scale, driven, dt / scale), strict=True):
        assert np.array_equal(value, other)


@all_rules
@given(data=st.data())
@laws
def test_a_conjugate_system_gives_conjugate_matrices(op, data):
    (A, B, dt), _ = data.draw(systems(op, "complex128"))
    value = tuple(y.conj() for y in run(op, A.conj(), B.conj(), dt))
    verdict = verdict_on(op, value, A, B, dt)
    assert verdict.ok, verdict


@all_rules
@each_type
@given(data=st.data(), steps=st.integers(2, 4))
@laws
def test_a_leading_axis_of_the_step_gives_one_system_for_each(op, dtype, data, steps):
    (A, B, dt), _ = data.draw(systems(op, dtype))
    several = np.stack([dt / 2**i for i in range(steps)])
    together = run(op, A, B, several)
    for i in range(steps):
        verdict = verdict_on(op, tuple(y[i] for y in together), A, B, several[i])
        assert verdict.ok, verdict


@pytest.mark.parametrize("op", [DISCRETIZE_BILINEAR, DISCRETIZE_DIAGONAL_BILINEAR], ids=str)
@given(data=st.data())
@laws
def test_the_bilinear_map_sends_the_left_half_plane_into_the_unit_disc(op, data):
    maps = (
        "minus one",
        "near",
        "one",
        "halves",
    )  # dt·w near 1, where no rounding gives exactly 1
    (w, B, dt), _ = data.draw(
        systems(DISCRETIZE_DIAGONAL_BILINEAR, "complex128", ("each",), maps=maps)
    )
    for modes, inside in ((w, True), (-w, False)):
        arrays = (modes, B, dt) if op in DIAGONAL else (np.diag(modes), B, dt[0])
        A_bar, _ = run(op, *arrays)
        moduli = np.abs(A_bar if op in DIAGONAL else np.diag(A_bar))
        assert ((moduli < 1) == inside).all()
