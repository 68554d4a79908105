"""Normwise contracts: error bounds of an elimination, an exponential and a transform."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from honest.discretize.dense import one_solve, twice_the_resolvent
from mpmath import mp
from scipy.linalg import expm_cond

from refssm._declaration import contract as contracts_declared
from refssm._declaration.arguments import several
from refssm._declaration.contract import Contract
from refssm._numerics.expm import expm, expm_derivative
from refssm.catalog import OPERATORS, judged
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.gauges import contracts, gauge
from refssm.conformance.gauges import linalg as tracked_linalg
from refssm.conformance.gauges.contracts import BOUNDS, Bound
from refssm.conformance.gauges.gauge import TrackedCall
from refssm.conformance.gauges.linalg import condition, exponential_bound, frobenius
from refssm.conformance.gauges.tracked import Tracked, tracing
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import grade_outputs, judge
from refssm.conformance.standard import C
from refssm.convolution import CAUSAL_CONVOLUTION
from refssm.discretize import DISCRETIZE_BILINEAR, DISCRETIZE_IMPULSE, DISCRETIZE_ZOH

U = 2.0**-24
NORMWISE = [op for op in OPERATORS if not op.contract.follows_each_operation]
operators = pytest.mark.parametrize("op", NORMWISE, ids=str)
CONTRACTS = [record for record in vars(contracts_declared).values() if isinstance(record, Contract)]
each_contract = pytest.mark.parametrize("contract", CONTRACTS, ids=str)
KINDS = pytest.mark.parametrize("dtype", ["float32", "complex64"])


def matrix(n, dtype, seed, columns=None):
    """Normal random numbers of a type."""
    rng, shape = np.random.default_rng(seed), (n, columns or n)
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return (x if np.dtype(dtype).kind == "c" else x.real).astype(dtype)


def wide(x):
    return x.astype(np.result_type(x, np.float64))


def k0(function, *arrays):
    """The bound of one tracked run from exact inputs, in units of u."""
    with tracing(unit=U, floor=0.0):
        return function(*(Tracked(wide(x)) for x in arrays)).errors[..., 0]


def k1(function, *arrays):
    """The same for inputs with one rounding error."""
    size = [np.abs(wide(x)) for x in arrays]
    errors = [np.stack([0 * s, s], axis=-1) for s in size]
    with tracing(unit=U, floor=0.0):
        return function(*map(Tracked, map(wide, arrays), errors)).errors[..., 1]


def test_each_contract_has_one_bound_and_an_operator_that_declares_it():
    assert {*CONTRACTS} == {*BOUNDS} == {op.contract for op in judged()}
    assert all(vars(contracts_declared)[contract.name] is contract for contract in CONTRACTS)


@each_contract
def test_each_contract_has_words_and_sizes(contract):
    assert len(contract.words) > 20
    sizes = contract.case_entries, contract.double_case_entries, contract.oracle_entries
    assert min(sizes) > 0
    gradients = any(op.differentiable for op in judged() if op.contract is contract)
    assert (contract.gradient_case_entries > 0) == gradients


@pytest.mark.parametrize(
    ("fact", "names"),
    {
        "follows_each_operation": "TRACED SCALED TURNED CHAIN TRIANGULAR",
        "scaled_by_last": "SCALED",
        "turns": "TURNED",
        "stays_short": "NORM GAUSSIAN SINGULAR INVARIANTS",
        "instead_of_entries": "GRAMIANS SOLVE INVARIANTS",
        "judges_whole_matrices": "SOLVE EXPM INVARIANTS",
        "needs_no_value": "SOLVE INVARIANTS",
        "measures_columns": "COLUMNS",
        "basis_free": "INVARIANTS",
        "solved_by_lapack": "GRAMIANS SOLVE",
        "judges_gradients_in_double": "TRACED SCALED TURNED CHAIN NORM GAUSSIAN COLUMNS TRIANGULAR "
        "SINGULAR GRAMIANS FFT SPECTRUM EXPM INVARIANTS",
        "scales_exactly": "TRACED SCALED TURNED CHAIN NORM GAUSSIAN COLUMNS TRIANGULAR SINGULAR "
        "GRAMIANS FFT SOLVE INVARIANTS",
        "nan_may_spread": "TRIANGULAR SOLVE EXPM",
        "may_raise_if_singular": "COLUMNS SOLVE",
    }.items(),
)
def test_a_fact_holds_for_these_contracts_and_no_others(fact, names):
    assert [c.name for c in CONTRACTS if getattr(c, fact)] == names.split()


def test_the_operators_of_fft_are_the_transforms():
    transforms = {op for op in OPERATORS if "transform" in op.traits}
    assert transforms == {op for op in OPERATORS if op.contract is contracts_declared.FFT}


def loosened(bound):
    """A bound that allows a million times the error."""

    def outputs(call):
        return tuple(looser(g, 1e6) for g in bound.outputs(call))

    return Bound(outputs, bound.gradients)


def looser(held, factor):
    """The same gauge with larger bounds."""
    measure = held.measure and replace(held.measure, bound=factor * held.measure.bound)
    if measure and measure.backward is not None:
        measure = replace(measure, backward=factor * measure.backward)
    return replace(held, k0=factor * held.k0, k1=factor * held.k1, measure=measure)


@pytest.mark.parametrize("contract", [c for c in CONTRACTS if not c.basis_free], ids=str)
def test_a_bound_a_million_times_too_large_lets_a_wrong_program_pass(contract, monkeypatch):
    op = next(op for op in judged() if op.contract is contract)
    case = ordinary_case(op, "float64")

    def wrong(*arrays, **statics):
        outputs = [y * (1 + 2.0**-38) for y in several(op.reference(*arrays, **statics))]
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    assert judge(op, wrong, *case.arrays, **case.statics).grade == "C"
    monkeypatch.setitem(contracts.BOUNDS, contract, loosened(BOUNDS[contract]))
    measured = contracts.measured  # where the bound is measured, the derived one is not asked
    monkeypatch.setattr(
        contracts, "measured", lambda *a, **how: tuple(looser(g, 1e6) for g in measured(*a, **how))
    )
    assert judge(op, wrong, *case.arrays, **case.statics).ok


def test_every_file_of_error_rules_is_imported_with_the_judge():
    here = Path(gauge.__file__).parent
    code = f"import sys, {gauge.__name__}; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    rules = {
        path.stem for path in here.glob("*.py") if "FUNCTIONS" in path.read_text(encoding="utf-8")
    }
    assert {f"{gauge.__package__}.{name}" for name in rules} <= {*ran.stdout.split()}


@KINDS
@pytest.mark.parametrize("seed", range(20))
def test_a_solve_in_single_precision_stays_within_its_bounds(dtype, seed):
    M, N = matrix(7, dtype, seed), matrix(7, dtype, 100 + seed, 3)
    error = np.abs(np.linalg.solve(M, N) - np.linalg.solve(wide(M), wide(N)))
    assert (error <= U * k0(np.linalg.solve, M, N)).all()
    moved = M * (1 + U), N * (1 - U)
    error = np.abs(np.linalg.solve(*moved) - np.linalg.solve(wide(M), wide(N)))
    assert (error <= U * k1(np.linalg.solve, M, N)).all()


@KINDS
@pytest.mark.parametrize("seed", range(20))
def test_an_exponential_in_single_precision_stays_within_its_bounds(dtype, seed):
    G, E = 2 * matrix(6, dtype, seed), matrix(6, dtype, 100 + seed)
    assert (np.abs(expm(G) - expm(wide(G))) <= U * k0(expm, G)).all()
    error = np.abs(expm_derivative(G, E) - expm_derivative(wide(G), wide(E)))
    assert (error <= U * k0(expm_derivative, G, E)).all()
    moved = G * np.float32(1 + 2 * U), E * np.float32(1 - U)
    error = np.abs(expm(moved[0]) - expm(wide(G)))
    assert (error <= 2 * U * k1(expm, G)).all()
    error = np.abs(expm_derivative(*moved) - expm_derivative(wide(G), wide(E)))
    assert (error <= 2 * U * k1(expm_derivative, G, E)).all()


def test_bounds_without_their_charge_are_exceeded(monkeypatch):
    monkeypatch.setattr(tracked_linalg, "CHARGE", 1e-3)
    within = []
    for seed in range(20):
        G = 2 * matrix(6, "float32", seed)
        within.append((np.abs(expm(G) - expm(wide(G))) <= U * k0(expm, G)).all())
    assert not all(within)


def test_the_exponential_is_that_of_mpmath():
    for seed in range(5):
        G = 3 * matrix(5, "complex128", seed)
        with mp.workdps(40):
            exact = np.array(mp.expm(mp.matrix(G.tolist())).tolist(), complex)
        assert frobenius(expm(G) - exact) <= C * 2.0**-53 * exponential_bound(G)


def test_the_derivative_of_the_exponential_is_linear_and_a_limit_of_differences():
    G, E = matrix(4, "complex128", 1), matrix(4, "complex128", 2)
    assert np.array_equal(expm_derivative(G, 1024 * E), 1024 * expm_derivative(G, E))
    with mp.workdps(60):
        h = mp.mpf("1e-20")
        ahead, behind = (
            mp.expm(mp.matrix(G.tolist()) + s * mp.matrix(E.tolist())) for s in (h, -h)
        )
        exact = np.array(((ahead - behind) / (2 * h)).tolist(), complex)
    error = np.abs(expm_derivative(G, E) - exact)
    assert (error <= C * 2.0**-53 * k0(expm_derivative, G, E)).all()


def test_members_of_a_batch_have_their_own_exponential_whatever_stands_beside_them():
    G = np.stack([matrix(4, "float64", 3), np.full((4, 4), np.nan), 50 * matrix(4, "float64", 4)])
    E = expm(G)
    assert np.array_equal(E[0], expm(G[0]))
    assert np.array_equal(E[2], expm(G[2]))
    assert np.isnan(E[1]).all()


def test_what_decays_below_u_keeps_digits():
    E = expm(np.diag([-40.0, 0.0]))
    assert 0 < abs(E[0, 0] / np.exp(-40.0) - 1) < 2.0**-20  # e^G − I alone would give 0


@pytest.mark.parametrize("seed", range(10))
def test_the_estimated_condition_number_is_close_below_the_exact_one(seed, monkeypatch):
    G = 2 * matrix(5, "complex128", seed)
    exact = expm_cond(G)
    monkeypatch.setattr(tracked_linalg, "EXACT_CONDITION", 0)
    tracked_linalg._norms_of_exponential.cache_clear()
    estimate = float(condition(G))
    tracked_linalg._norms_of_exponential.cache_clear()
    assert exact / 2 < estimate < exact * (1 + 2.0**-20)


def test_a_matrix_of_zeros_has_condition_one_and_nan_has_none():
    assert condition(np.zeros((3, 3))) == 1
    assert np.isinf(condition(np.full((3, 3), np.nan)))


def test_a_transform_is_measured_by_the_norms_of_its_arguments():
    u, k = np.array([3.0, 4.0]), np.array([0.0, 2.0])
    (gauge,) = BOUNDS[contracts_declared.FFT].outputs(
        TrackedCall(CAUSAL_CONVOLUTION, [u, k], {}, U, 0.0)
    )
    assert gauge.value.tolist() == [0, 6]
    assert gauge.k0.tolist() == [30 * np.sqrt(2)] * 2  # 3 transforms, log2(4) = 2, norms 5 and 2
    assert gauge.k1.tolist() == [30 * np.sqrt(2) + 20] * 2
    dy = np.array([[1.0, 0.0], [0.0, 1.0]])
    vjp = CAUSAL_CONVOLUTION.bare_vjp
    call = TrackedCall(CAUSAL_CONVOLUTION, [dy, u, k], {}, U, 0.0)
    du, dk = BOUNDS[contracts_declared.FFT].gradients(call, vjp)
    assert du.k0.tolist() == [2 * (2 * 3 * np.sqrt(2) + 2 * 2)] * 2  # two sequences share u
    assert dk.k0.tolist() == [2 * (5 * 3 * np.sqrt(2) + 5 * 2)] * 2
    assert dk.value.tolist() == [7, 3]


@operators
def test_a_right_answer_passes_a_slightly_wrong_one_and_nan_do_not(op):
    case = ordinary_case(op, "float64")
    right = op.reference(*case.arrays, **case.statics)
    outputs = several(right)
    gauged = expect(op, case.arrays, case.statics)
    assert grade_outputs(op, case.arrays, outputs, gauged).grade == "A"
    for j in range(len(outputs)):
        slightly = [y * (1 + 2.0**-38) if i == j else y for i, y in enumerate(outputs)]
        verdict = grade_outputs(op, case.arrays, tuple(slightly), gauged)
        assert verdict.grade == "C"
        assert "want" in verdict.message
        poisoned = [y.copy() for y in outputs]
        poisoned[j].flat[-1] = np.nan
        assert grade_outputs(op, case.arrays, tuple(poisoned), gauged).grade == "F"
        # if a kernel is tiny relative to its states, TF32 can have errors twice its size
        far = [2.0**10 * y if i == j else y for i, y in enumerate(outputs)]
        assert grade_outputs(op, case.arrays, tuple(far), gauged).grade == "F"


def test_a_residual_and_a_distance_are_told_with_what_is_allowed():
    # beyond single precision, where no bound can be measured
    A, B, dt = np.array([[-1.0]]), np.array([[1e50]]), np.array(1.0)
    halved = judge(DISCRETIZE_BILINEAR, lambda *_: (np.array([[1 / 3]]), B), A, B, dt)
    assert "got 1e+50, want 6.66667e+49 (residual 5.00e+49 in norm, allowed " in halved.message
    euler = judge(DISCRETIZE_IMPULSE, lambda *_: (1 + A, B), A, B, dt)
    assert "error 3.68e-01 in norm" in euler.message
    assert euler.message.startswith("worst A_bar[0, 0]: got 0, want 0.367879")


@pytest.mark.parametrize("seed", range(20))
def test_a_solve_is_not_blamed_for_the_rounding_of_a_side_that_cancels(seed):
    # I + ½dt A is nearly 0 at dt·A = −2, with an error of u; the soak found this
    rng = np.random.default_rng(seed)
    dt = rng.uniform(0.5, 1, ()).astype(np.float32)
    A = (-(2 + rng.uniform(-1e-3, 1e-3, (1, 1))) / dt).astype(np.float32)
    arrays = A, np.ones((1, 1), np.float32), dt
    for form in (one_solve, twice_the_resolvent, DISCRETIZE_BILINEAR.reference):
        assert judge(DISCRETIZE_BILINEAR, form, *arrays).ok


def test_a_complex_matrix_is_taken_for_a_real_one_beside_a_complex_output():
    A, B, dt = np.array([[-1.0]]), np.array([[1j]]), np.array(1.0)
    y = DISCRETIZE_ZOH.reference(A, B, dt)
    assert judge(DISCRETIZE_ZOH, lambda *_: tuple(x.astype(complex) for x in y), A, B, dt).ok
    real = DISCRETIZE_ZOH.reference(A, B.imag, dt)
    both = tuple(x.astype(complex) for x in real)
    assert not judge(DISCRETIZE_ZOH, lambda *_: both, A, B.imag, dt).ok
