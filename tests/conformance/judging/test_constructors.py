"""Operators without array arguments, and outputs that are right in any basis."""

import re
from dataclasses import replace

import numpy as np
import pytest
from calls import CONSTRUCTORS, statics
from judging import plugin, run

from refssm import oracle
from refssm._declaration.arguments import several
from refssm._declaration.contract import INVARIANTS, Invariant
from refssm._declaration.operator import Operator
from refssm.conformance.gauges.contracts import bounds
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import grade_outputs
from refssm.conformance.judging.invariants import distance, matching
from refssm.conformance.standard import Standard
from refssm.domains import Counts, Numbers

each = pytest.mark.parametrize("op", CONSTRUCTORS, ids=str)
DOUBLE, SINGLE = Standard.of("float64"), Standard.of("float32")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(op, **numbers):
    return several(op.implementation("reference")(**statics(op, 4) | numbers))


@each
def test_outputs_have_the_declared_sizes_in_double_precision(op):
    shapes = op.output_shapes(**statics(op, 4))
    assert [y.shape for y in made(op)] == shapes
    assert [y.dtype for y in made(op)] == list(op.output_types())
    assert all(y.dtype in (np.float64, np.complex128) for y in made(op))


@each
def test_two_calls_share_no_memory(op):
    for first, second in zip(made(op), made(op), strict=True):
        assert np.array_equal(first, second)
        assert not np.shares_memory(first, second)
        first[...] = 0  # the next caller must not see this
    assert all(y.any() for y in made(op)[:1])


@each
def test_numbers_out_of_bounds_and_sizes_that_are_none_are_refused_by_name(op):
    for name in op.static:
        declared = op.parameters.get(name)
        wanted = "an integer >= 0" if declared is None else declared.wanted
        for bad in (-1, None, "3", np.nan):
            if declared is not None and declared.admits(bad):
                continue
            message = f"{op}: `{name}` must be {wanted}, got {bad!r}"
            with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
                made(op, **{name: bad})


@each
def test_an_argument_by_position_or_an_unknown_keyword_is_refused_with_the_call(op):
    for args, more in (((4,), {}), ((), {"order": 4})):
        with pytest.raises(TypeError, match=re.escape(op.call)):
            op.implementation("reference")(*args, **statics(op, 4) | more)


@pytest.mark.long
@each
def test_every_value_that_is_drawn_is_admitted_and_small_ones_agree_with_the_oracle(op):
    for name, declared in op.parameters.items():
        assert all(declared.admits(value) for value in declared.values), name
        for value in sorted(set(declared.values))[:4]:
            numbers = {n: d.values[0] for n, d in op.parameters.items()} | {name: value}
            outputs = several(op.reference(**numbers))
            gauged = expect(op, [], numbers)
            if op.contract.basis_free and numbers.get("n", 4) <= 4:
                exact = oracle.evaluate(op, **numbers)
                gauged = tuple(replace(g, value=e) for g, e in zip(gauged, exact, strict=True))
            verdict = grade_outputs(op, [], outputs, gauged)
            assert verdict.grade == "A", verdict


def test_a_default_is_used_where_a_keyword_is_left_out():
    operators = [op for op in CONSTRUCTORS if "window" in op.parameters]
    assert operators
    for op in operators:
        whole, short = (op.implementation("reference")(n=4, **w) for w in ({}, {"window": 1.0}))
        assert all(map(np.array_equal, whole, short))


@pytest.mark.long
def test_single_precision_is_judged_where_it_is_declared_and_refused_elsewhere(folder, capfd):
    text = "import numpy as np\nimport refssm\nfrom refssm.testing import implements\n{}"
    text += "def hippo_legs(*, n):\n    A, B = refssm.hippo_legs(n=n)\n"
    text += "    return A.astype('f'), B.astype('f')\n"
    name = plugin(folder, text.format("@implements('hippo_legs', dtypes=('float32',))\n"))
    result, out, _ = run(capfd, "verify", "-v", name, "--check", "value")
    assert (result, "pass hippo_legs/value[float32]" in out) == (0, True)
    name = plugin(folder, text.format(""))
    result, out, _ = run(capfd, "verify", name, "--check", "value")
    assert result == 1
    assert "`A` has the narrower type float32, want float64" in out
    assert "smallest: n=1\n" in out


@pytest.mark.long
def test_the_smallest_case_of_a_constructor_is_one_that_it_admits(folder, capfd):
    text = "import refssm\ndef hippo_fourier(*, n, window):\n"
    text += "    A, B = refssm.hippo_fourier(n=n, window=window)\n    return A, 2 * B\n"
    name = plugin(folder, text)
    result, out, _ = run(capfd, "verify", name, "--check", "value")
    assert result == 1
    assert "smallest: n=2 window=" in out
    again = next(line for line in out.splitlines() if "again: refssm " in line).split("refssm ")[1]
    assert run(capfd, *again.split())[0] == 1


def rotation(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def decomposition(*, n):
    """w and V of the skew matrix with eigenvalues ±i."""
    V = np.array([[1, 1], [-1j, 1j]]) / np.sqrt(2)
    return np.array([1j, -1j]), V


def _unchanged(w, V):
    Vh = np.conj(V.T)
    return (
        Invariant("VVᴴ", V @ Vh, 1.0),
        Invariant("A = V diag(w) Vᴴ", V * w @ Vh, 2.0),
        Invariant("spectrum", w, 1.0, matched=True),
    )


DECOMPOSITION = Operator(
    decomposition,
    "->(n),(n,n)",
    {},
    parameters={"n": Counts("two", (2,))},
    outputs=("w", "V"),
    definition=_unchanged,
    contract=INVARIANTS,
    lacks=frozenset({"vjp", "jit", "gpu"}),
)
RIGHT = decomposition(n=2)


def graded(w, V, op=DECOMPOSITION, standard=None):
    gauged = bounds(op, [], {"n": 2}, None, unit=2.0**-53, floor=0.0)
    return grade_outputs(
        op, [], (np.asarray(w, complex), np.asarray(V, complex)), gauged, standard=standard
    )


def test_any_phase_and_any_order_of_the_modes_is_right():
    w, V = RIGHT
    assert graded(w, V).ratio == 0
    assert graded(w, V * np.exp([0.3j, 2j])).grade == "A"
    assert graded(w[::-1], V[:, ::-1]).grade == "A"


@pytest.mark.parametrize("how", ["order", "scale", "conjugate", "transposed", "late", "nan"])
def test_vectors_that_belong_to_other_values_or_are_no_basis_are_wrong(how):
    w, V = RIGHT
    wrong = {
        "order": (w[::-1], V),
        "scale": (w, V * [1, 1 + 2.0**-40]),
        "conjugate": (w, V.conj()),
        "transposed": (w, V.T),
        "late": (w * (1 + 2.0**-40), V),
        "nan": (w, V * [1, np.nan]),
    }[how]
    verdict = graded(*wrong)
    assert not verdict.ok
    assert verdict.message.startswith("worst ")


def test_what_is_right_in_single_precision_is_inaccurate_in_double_and_names_the_invariant():
    w, V = RIGHT
    rounded = (V * (1 + 2.0**-25)).astype(complex)
    assert graded(w, rounded).grade == "C"
    assert graded(w, rounded).message.startswith("worst VVᴴ: the error is ")
    precise = Standard.of("complex64")
    assert graded(w, rounded, standard=precise).grade == "A"


def test_spectra_are_compared_after_the_best_matching():
    a, b = np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 2.5])
    assert matching(a, b).tolist() == [1, 2, 0]
    got, want = (Invariant("spectrum", x, 1.0, matched=True) for x in (a, b))
    assert distance(got, want) == 0.5
    assert distance(got._replace(value=a * np.nan), want._replace(matched=False)) != 0.5


def test_n_in_an_output_only_may_be_a_parameter_and_digits_are_sizes():
    even = Operator(
        lambda *, n, alpha: (np.zeros(n), np.zeros((n, 2)), np.zeros((n, 1))),
        "->(n),(n,2),(n,1)",
        {},
        parameters={
            "n": Counts("even", (2, 4), "an even integer >= 2", multiple=2),
            "alpha": Numbers("a half", (0.5,), "a half", 0.5, 0.5),
        },
        outputs=("a", "b", "c"),
    )
    assert even.static == ("n", "alpha")
    assert even.output_shapes(n=4, alpha=0.5) == [(4,), (4, 2), (4, 1)]
    with pytest.raises(ValueError, match="must be an even integer >= 2, got 3"):
        even.output_shapes(n=3, alpha=0.5)


@pytest.mark.long
@pytest.mark.parametrize("name", ["hippo_legs", "hippo_lagt", "nplr_legs"])
def test_a_new_file_of_a_constructor_runs_and_passes(folder, capfd, name):
    assert run(capfd, "new", name, "--output", "mine.py")[0] == 0
    result, out, _ = run(capfd, "verify", "-v", "mine.py", "--profile", "quick")
    assert result == 0
    assert f"pass {name}/value[" in out
    assert "gradient" not in out  # there is no gradient
