import inspect

import numpy as np
import pytest

from refssm._numerics.expm import expm
from refssm._numerics.overridable import overridable


class Other:
    """An array of another library; it returns what it was called with."""

    def __array_function__(self, function, types, args, keywords):
        return function, types, args, keywords


@overridable
def product(x, y, *, power=1):
    """x y^power."""
    return x * y**power


def test_numpy_arrays_and_numbers_run_the_function_itself():
    assert product(2.0, np.float64(3)) == 6
    assert product(np.array([1, 2]), 3, power=2).tolist() == [9, 18]


@pytest.mark.parametrize("place", [0, 1])
def test_an_array_of_another_type_answers_instead_wherever_it_stands(place):
    other = Other()
    args = tuple(other if i == place else np.ones(2) for i in range(2))
    assert product(*args, power=3) == (product, (Other,), args, {"power": 3})
    ones = np.ones(2)
    assert product(ones, y=other) == (product, (Other,), (ones,), {"y": other})


def test_the_first_of_several_others_answers():
    class Later(Other):
        pass

    assert product(Other(), Later())[1] == (Other,)


def test_a_function_keeps_its_name_its_docstring_and_its_signature():
    assert (product.__name__, product.__doc__) == ("product", "x y^power.")
    assert str(inspect.signature(product)) == "(x, y, *, power=1)"
    assert (expm.__name__, expm.__module__) == ("expm", "refssm._numerics.expm")
