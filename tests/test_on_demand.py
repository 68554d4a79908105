"""Names of mirrors that people try first: `refssm.jit.linear_scan`, `refssm_gpu.linear_scan`."""

import subprocess
import sys
from importlib import import_module

import pytest

import refssm
import refssm.jit
import refssm_gpu
from refssm._declaration.names import FAMILY_OF
from refssm.catalog import OPERATORS

PACKAGES = {"jit": refssm.jit, "gpu": refssm_gpu}
each_role = pytest.mark.parametrize("role", PACKAGES)


def named(role):
    """The names of all mirrors of a role, with the operators."""
    for op in OPERATORS:
        if role not in op.lacks:
            yield op.name, op
            if op.differentiable:
                yield f"{op}_vjp", op


@pytest.mark.long
@each_role
def test_every_mirror_is_an_attribute_of_its_package(role):
    found = dict(named(role))
    assert len(found) > 200
    for name, op in found.items():
        function = op.vjp(role) if name.endswith("_vjp") else op.implementation(role)
        assert getattr(PACKAGES[role], name) is function
    assert {*found} == {*dir(PACKAGES[role])} & {*FAMILY_OF}


@each_role
def test_an_operator_without_a_mirror_is_a_sentence_that_names_the_reference(role):
    for op in OPERATORS:
        if role in op.lacks:
            with pytest.raises(AttributeError) as told:
                getattr(PACKAGES[role], op.name)
            package = PACKAGES[role].__name__
            assert f"{told.value}" == (
                f"module '{package}' has no mirror of {op}; refssm.{op} is the reference"
            )


@pytest.mark.parametrize("name", ["softplus", "hippo_from_measure", "associative_scan", "silu_vjp"])
@each_role
def test_what_is_no_operator_has_no_mirror(role, name):
    assert callable(getattr(refssm, name))
    with pytest.raises(AttributeError, match=f"has no mirror of {name}; refssm.{name} is the ref"):
        getattr(PACKAGES[role], name)


@each_role
def test_a_misspelt_name_is_an_error_with_the_nearest_one(role):
    with pytest.raises(AttributeError, match=r"no attribute 'linear_scann'; did you mean linear_s"):
        _ = PACKAGES[role].linear_scann
    assert not hasattr(PACKAGES[role], "__wrapped__")
    assert not hasattr(PACKAGES[role], "nothing_of_that_kind")


@each_role
def test_a_family_with_the_name_of_an_operator_is_importable_and_its_name_is_the_operator(role):
    package = PACKAGES[role]
    family = import_module(f"{package.__name__}.selective_scan")
    assert package.selective_scan is family.selective_scan
    assert callable(package.selective_scan)


@pytest.mark.parametrize(
    ("package", "never"), [("refssm.jit", "numba"), ("refssm_gpu", "cupy"), ("refssm", "numba")]
)
def test_an_import_of_the_package_alone_loads_no_family_and_no_library(package, never):
    code = (
        f"import sys, {package}\n"
        f"loaded = [m for m in sys.modules if m == {never!r} or m.endswith('.scan')]\n"
        "print(loaded, 'refssm.catalog' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.split() == ["[]", "False"]


def test_the_name_of_a_mirror_loads_its_family_only():
    code = (
        "import sys, refssm.jit\n"
        "refssm.jit.cauchy_kernel\n"
        "names = (m.split('.')[2:] for m in sys.modules if m.startswith('refssm.jit.'))\n"
        "print(sorted({family for family, *_ in names if not family.startswith('_')}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.strip() == "['cauchy', 'vandermonde']"  # which it uses


def test_without_cupy_a_mirror_on_the_gpu_is_there_and_its_call_says_what_is_missing():
    code = (
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'cupy' else real(name, *a)\n"
        "import refssm_gpu\n"
        "refssm_gpu.linear_scan([[1.0]], [[1.0]])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 1
    assert "linear_scan runs on a CUDA GPU, and CuPy is not installed: " in done.stderr
