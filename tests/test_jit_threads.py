# pyright: reportPrivateImportUsage=false
# (Numba makes the attributes of its config when it is imported)

import multiprocessing
import os
import threading
import time

import numba
import numpy as np
import pytest

from refssm.jit._compiling import threads
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.threads import Threaded, over_threads


@gufunc("(l),(l,n),(n)->(l),(n)", kinds=("f4", "f8"))
def weighted(u, B, C, y, last):
    """y_k = u_k Σ_n B_kn C_n, and the last row of B."""
    for k in range(u.size):
        y[k] = 0
        for n in range(C.size):
            y[k] += u[k] * B[k, n] * C[n]
    for n in range(C.size):
        last[n] = B[-1, n]


@pytest.fixture
def four(monkeypatch):
    """Four threads, whatever the machine has; and pieces of any size."""
    monkeypatch.setattr(threads, "threads", lambda: 4)
    monkeypatch.setattr(threads, "SMALL", 1)


def arrays(*batches, l=17, n=5, dtype="f4"):
    draw = np.random.default_rng(0).standard_normal
    cores = ((l,), (l, n), (n,))
    return [draw((*b, *core)).astype(dtype) for b, core in zip(batches, cores, strict=True)]


BATCHES = {
    "one axis": ((13,), (13,), (13,)),
    "a shared array": ((13,), (), (13,)),
    "an axis of length 1": ((3, 11), (3, 1), (11,)),
    "the first axis is the longest": ((9, 2), (9, 1), ()),
    "fewer rows than threads": ((2,), (2,), (2,)),
}


@pytest.mark.parametrize("batches", BATCHES.values(), ids=BATCHES)
@pytest.mark.usefixtures("four")
def test_a_batch_in_pieces_is_the_batch_bit_by_bit(batches):
    given = arrays(*batches)
    for mine, serial in zip(weighted(*given), weighted.kernel(*given), strict=True):
        assert mine.dtype == serial.dtype
        np.testing.assert_array_equal(mine, serial)


@pytest.mark.usefixtures("four")
def test_views_and_read_only_arrays_are_split_where_they_are():
    u, B, C = arrays((26,), (13,), (13,))
    u, C = u[::-2], C[..., ::-1]
    u.flags.writeable = False
    expected = weighted.kernel(u, B, C)
    for mine, serial in zip(weighted(u, B, C), expected, strict=True):
        np.testing.assert_array_equal(mine, serial)


@pytest.mark.usefixtures("four")
def test_types_are_those_that_numpy_chooses():
    u, B, C = arrays((13,), (13,), (13,))
    assert [y.dtype for y in weighted(u, B.astype("f8"), C)] == [np.float64, np.float64]


@pytest.mark.usefixtures("four")
def test_a_wrong_split_is_seen(monkeypatch):
    """The check itself: the last piece is forgotten."""
    true = threads._split

    def planted(*what):
        return [*true(*what)[:-1], true(*what)[-1][:0]]

    given = arrays((12,), (12,), (12,))
    monkeypatch.setattr(threads, "_split", planted)
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(weighted(*given)[0], weighted.kernel(*given)[0])


def test_every_item_is_done_once_and_in_its_place(four):
    assert over_threads(lambda i: i * i, range(50)) == [i * i for i in range(50)]
    assert over_threads(str, []) == []


def test_no_more_threads_work_than_numba_allows(monkeypatch):
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 1)
    who = over_threads(lambda _: threading.get_ident(), range(8))
    assert set(who) == {threading.get_ident()}


def test_the_number_of_threads_is_numbas_own(monkeypatch):
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 3)
    monkeypatch.setattr(numba, "threading_layer", _not_started)
    assert threads.threads() == 3
    monkeypatch.setattr(numba, "threading_layer", lambda: "omp")
    monkeypatch.setattr(numba, "get_num_threads", lambda: 2)
    assert threads.threads() == 2


def _not_started():
    raise ValueError("Threading layer is not initialized.")


def test_an_error_in_one_item_is_raised_and_ends_the_work(four):
    done = []

    def fails(i):
        if i == 3:
            raise RuntimeError("the fourth")
        time.sleep(0.001)
        done.append(i)

    with pytest.raises(RuntimeError, match="the fourth"):
        over_threads(fails, range(1000))
    assert len(done) < 999


def test_items_may_use_threads_themselves(four):
    nested = over_threads(lambda i: sum(over_threads(lambda j: i * j, range(5))), range(20))
    assert nested == [10 * i for i in range(20)]


def test_warnings_that_the_caller_has_silenced_stay_silent(four):
    with np.errstate(all="ignore"):
        over_threads(lambda _: np.float64(1) / np.zeros(1), range(20))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(four):
    over_threads(abs, range(20))  # the parent's threads exist now
    child = multiprocessing.get_context("fork").Process(target=over_threads, args=(abs, range(20)))
    child.start()
    child.join(30)
    assert child.exitcode == 0


def test_the_wrapper_reads_signatures_with_empty_and_repeated_cores():
    kernel = Threaded(None, "(n,n),(),(l)->(l,n),()")
    assert kernel.inputs == [("n", "n"), (), ("l",)]
    assert kernel.outputs == [("l", "n"), ()]


@pytest.mark.usefixtures("four")
def test_a_kernel_called_alone_uses_one_thread(monkeypatch):
    calls, given = [], arrays((8,), (8,), (8,))
    monkeypatch.setattr(threads, "over_threads", lambda *what: calls.append(over_threads(*what)))
    with threads.alone():
        weighted(*given)
    assert not calls


@pytest.mark.usefixtures("four")
def test_a_list_worked_off_alone_asks_for_no_other_thread(monkeypatch):
    asked, pool = [], threads._pool
    monkeypatch.setattr(threads, "_pool", lambda: asked.append(1) or pool())
    with threads.alone():
        assert over_threads(str, range(3)) == ["0", "1", "2"]
    assert not asked
    over_threads(str, range(3))
    assert asked


@pytest.mark.usefixtures("four")
def test_a_kernel_called_again_uses_several_threads(monkeypatch):
    calls, given = [], arrays((8,), (8,), (8,))
    monkeypatch.setattr(threads, "over_threads", lambda *what: calls.append(over_threads(*what)))
    with threads.alone():
        pass
    weighted(*given)
    assert len(calls) == 1
