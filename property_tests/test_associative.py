from itertools import accumulate, pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import laws

from refssm.associative import (
    affine,
    affine_dense,
    associative_scan,
    blelloch,
    chunked,
    hillis_steele,
    segmented,
    sequential,
)

SCHEDULES = st.sampled_from([sequential, hillis_steele, blelloch]) | st.builds(
    chunked, st.integers(1, 80)
)
WORDS = st.lists(st.text("abc", max_size=2), max_size=70)
SEEDS = st.integers(0, 2**32 - 1)


def words(texts):
    """An array of strings: + joins them, so the order is visible."""
    return np.array(texts, dtype=object)


def small_integers(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.integers(-1, 2, shape) for shape in shapes]


@given(texts=WORDS, schedule=SCHEDULES)
@laws
def test_every_schedule_joins_words_as_they_stand(texts, schedule):
    assert associative_scan(np.add, words(texts), schedule).tolist() == list(accumulate(texts))


@given(seed=SEEDS, l=st.integers(0, 70), n=st.integers(0, 3), schedule=SCHEDULES)
@laws
def test_every_schedule_equals_the_sequential_one_exactly_on_integers(seed, l, n, schedule):
    elements = tuple(small_integers(seed, (l, n), (l, n)))
    matrices = tuple(small_integers(seed, (l, n, n), (l, n)))
    for combine, x in ((affine, elements), (affine_dense, matrices)):
        y, wanted = associative_scan(combine, x, schedule), associative_scan(combine, x)
        assert all(map(np.array_equal, y, wanted))


@given(texts=WORDS, schedule=SCHEDULES, data=st.data())
@laws
def test_a_segmented_scan_equals_scanning_each_piece_alone(texts, schedule, data):
    l = len(texts)
    resets = np.array(data.draw(st.lists(st.booleans(), min_size=l, max_size=l)), bool)
    y = associative_scan(segmented(np.add), (resets, words(texts)), schedule)[1].tolist()
    cuts = [0, *np.flatnonzero(resets).tolist(), l]
    pieces = [texts[start:end] for start, end in pairwise(cuts)]
    assert y == [word for piece in pieces for word in accumulate(piece)]


@given(texts=WORDS, schedule=SCHEDULES, resumed=SCHEDULES, data=st.data())
@laws
def test_a_scan_may_be_cut_anywhere_and_goes_on_from_its_last_element(
    texts, schedule, resumed, data
):
    cut = data.draw(st.integers(0, len(texts)))
    head = associative_scan(np.add, words(texts[:cut]), schedule).tolist()
    tail = associative_scan(np.add, words([*head[-1:], *texts[cut:]]), resumed).tolist()
    assert [*head, *tail[len(head[-1:]) :]] == list(accumulate(texts))


@given(texts=WORDS, schedule=SCHEDULES)
@laws
def test_every_level_holds_words_that_end_where_they_stand(texts, schedule):
    whole, changed = "".join(texts), np.zeros(len(texts), bool)
    ends = np.cumsum([len(text) for text in texts], dtype=int)
    for level in schedule(np.add, words(texts)):
        changed[level.changed] = True
        for text, word, end in zip(texts, level.elements, ends, strict=True):
            assert whole[:end].endswith(word)
            assert word.endswith(text)
    assert changed[1:].all()


@given(seed=SEEDS, n=st.integers(0, 3))
@laws
def test_the_affine_operators_and_their_segmented_forms_are_associative(seed, n):
    resets = [r > 0 for r in small_integers(seed, (9,), (9,), (9,))]
    decays, vectors = (small_integers(seed + 1, *[(9, n)] * 3) for _ in range(2))
    matrices = small_integers(seed + 2, *[(9, n, n)] * 3)
    for combine, parts in (
        (affine, (decays, vectors)),
        (affine_dense, (matrices, vectors)),
        (segmented(affine), (resets, decays, vectors)),
        (segmented(affine_dense), (resets, matrices, vectors)),
    ):
        x, y, z = zip(*parts, strict=True)
        left, right = combine(combine(x, y), z), combine(x, combine(y, z))
        assert all(map(np.array_equal, left, right))
