import numpy as np
import pytest

from refssm.conformance.judging.wrong_entries import describe


def bad(*places, shape=(10,)):
    """A mask that is True only at the given indices."""
    mask = np.zeros(shape, bool)
    for place in places:
        mask[place] = True
    return mask


SENTENCES = {
    "all": (bad(...), "every entry is wrong"),
    "a single number": (np.ones((), bool), "every entry is wrong"),
    "one": (bad(3), "every entry with l = 3 wrong, one of 10, no other"),
    "the first": (bad(0), "every entry with l = 0 wrong, one of 10, no other"),
    "the last": (bad(9), "every entry with l = 9 wrong, the last of 10, no other"),
    "from one on": (bad(slice(6, None)), "every entry with l ≥ 6 wrong, none before"),
    "up to one": (bad(slice(0, 4)), "every entry with l ≤ 3 wrong, none after"),
    "between": (bad(slice(2, 5)), "every entry with 2 ≤ l ≤ 4 wrong, no other"),
    "every third": (bad(slice(1, None, 3)), "every entry with l = 1, 4, … wrong, no other"),
    "scattered": (bad([1, 2, 6]), "3 of 10 entries are wrong"),
}


@pytest.mark.parametrize(("mask", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_the_pattern_along_time_is_said_in_a_sentence(mask, sentence):
    assert describe(mask, ("l",)) == sentence


def test_every_entry_is_said_only_where_it_is_every_entry():
    mask = bad((slice(6, None), slice(0, 2)), shape=(10, 3))
    assert describe(mask, ("l", "n")) == "entries with l ≥ 6 wrong, none before"
    mask = bad((slice(6, None), slice(None)), shape=(10, 3))
    assert describe(mask, ("l", "n")) == "every entry with l ≥ 6 wrong, none before"


def test_an_axis_that_is_wrong_throughout_is_left_to_the_next():
    mask = bad((slice(None), 1), shape=(10, 3))
    assert describe(mask, ("l", "n")) == "every entry with n = 1 wrong, one of 3, no other"
    mask = bad((slice(None), 2), shape=(10, 3))
    assert describe(mask, ("l", "n")) == "every entry with n = 2 wrong, the last of 3, no other"


def test_leading_axes_are_batch_axes_by_number():
    mask = bad((..., 1, slice(None), slice(None)), shape=(2, 3, 4, 5))
    sentence = "every entry with batch axis 1 = 1 wrong, one of 3, no other"
    assert describe(mask, ("l", "n")) == sentence
    assert describe(bad(0, shape=(2, 5)), ("l",)).startswith("every entry with batch axis 0 = 0 ")


def test_a_diagonal_is_counted():
    assert describe(np.eye(4, dtype=bool), ("l", "n")) == "4 of 16 entries are wrong"


def test_an_axis_of_length_one_says_nothing():
    mask = bad((0, 2), shape=(1, 4))
    assert describe(mask, ("l", "n")) == "every entry with n = 2 wrong, one of 4, no other"
