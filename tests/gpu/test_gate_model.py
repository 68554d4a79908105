import os

import gpu.gate.traffic as bench
import numpy as np
import pytest
from compiling import kernel, needs_compiler
from gpu.gate.collected import kernels
from gpu.gate.compiled import compiled
from gpu.gate.expected import LATENCY, expected, time_of
from gpu.gate.flight import under_way
from gpu.gate.occupancy import CARDS, occupancy
from gpu.gate.recording import Launch, constness, names, recorded

from refssm_gpu._launching.kernel import MarkedRows
from refssm_gpu.scan.linear import linear_scan, linear_scan_vjp

A100, H100, H200 = CARDS
COPIED = kernel("good.cuh", "copied")
ROUNDED = 8 * np.finfo(float).eps  # a time is one product or quotient of at most eight numbers


@pytest.mark.parametrize(
    ("card", "registers", "block", "shared", "blocks", "limit"),
    [  # by hand, from the table in the Programming Guide
        (A100, 32, 128, 0, 16, "warps"),
        (A100, 64, 256, 0, 4, "registers"),
        (A100, 255, 256, 0, 1, "registers"),  # 8 warps of 8192 words
        (H100, 168, 128, 0, 3, "registers"),  # 3 warps of 5376 words in each quarter
        (H100, 32, 32, 0, 32, "blocks"),
        (A100, 32, 128, 100 * 1024, 1, "shared memory"),
        (H100, 32, 128, 100 * 1024, 2, "shared memory"),
        (A100, 32, 128, 163 * 1024, 1, "shared memory"),
        (A100, 255, 1024, 0, 0, "registers"),
    ],
)
def test_a_multiprocessor_holds_as_many_blocks_as_the_guide_says(
    card, registers, block, shared, blocks, limit
):
    held = occupancy(card, registers, block, shared)
    assert (held.blocks, held.limit) == (blocks, limit)
    assert held.share == blocks * block / 2048


@pytest.mark.parametrize(
    ("body", "bytes_"),
    [
        ("ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1];\nadd.f32 %f5, %f1, %f2;", 16),
        ("ld.global.f32 %f1, [%rd1];\nadd.f32 %f2, %f1, %f1;\nld.global.f32 %f3, [%rd1];", 4),
        ("ld.global.f32 %f1, [%rd1];\nld.global.nc.f64 %fd3, [%rd1];\nadd.f32 %f2, %f1, %f1;", 12),
        ("ld.global.f32 %f1, [%rd1];\nmov.f32 %f2, %f1;\nld.global.f32 %f3, [%rd1];", 8),
        ("@%p1 ld.global.u8 %r1, [%rd1];\nst.global.u8 [%rd2], %r1;\nld.global.u8 %r2, [%rd1];", 1),
        ("ld.global.u64 %rd3, [%rd1];\nld.global.f32 %f1, [%rd3];", 8),  # a pointer is waited for
        ("ld.shared.f32 %f1, [%r1];\nld.param.u64 %rd1, [p];", 0),
        (
            "cp.async.cg.shared.global [%r1], [%rd1], 16;\ncp.async.commit_group ;\n"
            "cp.async.ca.shared.global [%r1], [%rd1], 8;\ncp.async.commit_group ;\n"
            "cp.async.wait_group 1;\ncp.async.ca.shared.global [%r1], [%rd1], 4;",
            24,
        ),
    ],
)
def test_bytes_are_under_way_until_something_uses_them(body, bytes_):
    assert under_way(body) == bytes_


def test_pointers_to_const_are_read_others_written_and_values_neither():
    assert constness(COPIED) == (True, False, None)


@needs_compiler
@pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)
def test_a_copy_with_enough_threads_reaches_the_whole_bandwidth(card):
    made = compiled(COPIED, card.architecture).instances[0]
    held = occupancy(card, made.registers, 128, 0).blocks * card.multiprocessors
    size = 16 * 128 * held
    launch = Launch(COPIED, ("float32",), (10 * held,), 0, 10 * size, 10 * size)
    # read and written at once: twice the bytes that are under way
    rate = min(card.bandwidth, 2 * size / LATENCY)
    assert abs(time_of(launch, card) - 20 * size / rate) <= ROUNDED * 20 * size / rate
    assert rate == card.bandwidth


@needs_compiler
def test_one_block_is_as_fast_as_its_threads_can_ask():
    launch = Launch(COPIED, ("float32",), (1,), 0, 2048, 2048)
    assert abs(time_of(launch, H100) - LATENCY) <= ROUNDED * LATENCY


@needs_compiler
def test_a_last_wave_of_few_blocks_costs_more_than_its_bytes():
    made = compiled(COPIED, "sm_90").instances[0]
    held = occupancy(H200, made.registers, 128, 0).blocks * H200.multiprocessors
    full, more = (
        time_of(Launch(COPIED, ("float32",), (n,), 0, 2048 * n, 2048 * n), H200)
        for n in (held, held + 1)
    )
    assert abs(more - full - LATENCY) <= 2 * ROUNDED * more  # of both times


@needs_compiler
def test_a_launch_is_written_down_with_the_bytes_of_each_array_once():
    a, b = np.zeros(4096, np.float32), np.zeros(4096, np.float32)
    with recorded(H100) as launches:
        COPIED(("float32",), (8,), a, b, np.int64(1024))
        COPIED(("float32",), (0,), a, b, np.int64(0))
    (launch,) = launches
    assert (launch.read, launch.written, launch.blocks) == (a.nbytes, b.nbytes, 8)


@needs_compiler
@pytest.mark.parametrize(
    "arguments",
    [
        (np.zeros(4, np.float32), np.zeros(4, np.float32), np.int32(1)),
        (np.zeros(4, np.float32), np.zeros(4, np.float32)),
    ],
    ids=["a narrower integer", "one too few"],
)
def test_arguments_of_other_sizes_than_the_parameters_are_refused(arguments):
    wanted = r"copied<float32> wants 3 parameters of \(8, 8, 8\) bytes"
    with recorded(H100), pytest.raises(ValueError, match=wanted):
        COPIED(("float32",), (1,), *arguments)


@needs_compiler
def test_more_shared_memory_than_a_card_has_is_refused():
    arguments = (np.zeros(4, np.float32), np.zeros(4, np.float32), np.int64(1))
    with recorded(H100):
        COPIED(("float32",), (1,), *arguments, shared=227 * 1024)
        with pytest.raises(ValueError, match=r"wants 232449 bytes of shared memory a block, sm_90"):
            COPIED(("float32",), (1,), *arguments, shared=227 * 1024 + 1)


def test_recording_leaves_the_environment_as_it_was(monkeypatch):
    monkeypatch.setenv("REFSSM_GPU", "")
    with recorded(H100):
        assert os.environ["REFSSM_GPU"] == "host"
    assert os.environ["REFSSM_GPU"] == ""


@needs_compiler
@pytest.mark.long
def test_a_scan_with_rows_enough_moves_its_bytes_once_and_its_vjp_scans_again():
    a = np.zeros((256, 256, 256), np.float32)  # 1024 blocks
    forward = expected(linear_scan, (a, a.copy()), {}, A100)
    assert forward.moved == forward.needed == 3 * a.nbytes
    backward = expected(linear_scan_vjp, (a, a.copy(), a.copy()), {}, A100)
    assert backward.needed == 5 * a.nbytes
    assert [launch.kernel.name for launch in backward.launches] == [
        "linear_scan",
        "linear_scan_back",
    ]


def twice(declared, marks):
    """The model of a call that launches two kernels: a copy, and one that gets these marks."""
    a, b = np.zeros(1024, np.float32), np.zeros(1024, np.float32)

    def call(a, b):
        COPIED(("float32",), (2,), a, b, np.int64(256))
        declared(("float32",), (8,), a, marks, b)
        return ()

    return expected(call, (a, b), {}, H100)


@needs_compiler
def test_a_launch_for_marked_rows_is_not_counted_unless_all_rows_are_computed():
    marks, rows = np.zeros(8, np.uint32), MarkedRows("marks", "with a mark")
    declared = kernel("marked.cuh", "again", marked=rows)
    once, all_rows = twice(declared, marks), twice(declared, None)
    assert [len(x.launches) for x in (once, all_rows)] == [2, 2]
    assert (once.moved, all_rows.moved) == (8192, 2 * 8192)
    assert once.seconds == time_of(once.launches[0], H100) < all_rows.seconds
    # planted: the same kernel without the declaration
    undeclared = twice(kernel("marked.cuh", "again"), marks)
    assert undeclared.moved == 2 * 8192 + marks.nbytes
    assert undeclared.share < once.share


@needs_compiler
def test_marks_that_the_kernel_does_not_have_are_refused():
    declared = kernel("marked.cuh", "again", marked=MarkedRows("mark", "with a mark"))
    wanted = "again has no parameter `mark`, which its Kernel declares as the marks of rows; "
    with pytest.raises(ValueError, match=f"{wanted}it has a, marks, b"):
        twice(declared, None)


def test_every_kernel_that_reads_marks_of_rows_declares_them():
    assert reading_marks([kernel("marked.cuh", "again")]) == {"again"}
    declared = {k.name for k in kernels() if k.marked}
    assert declared == reading_marks(kernels()) == {"ssd_steps", "ssd_steps_back"}


def reading_marks(found):
    """The names of the kernels that have a parameter `const … marks`."""
    parameters = {k.name: zip(names(k), constness(k), strict=True) for k in found}
    return {name for name, of in parameters.items() if ("marks", True) in of}


@needs_compiler
def test_the_table_says_what_is_not_counted(capsys):
    assert bench.main(["ssd_step"]) == 0
    assert "not counted" not in capsys.readouterr().out  # a step computes every row
    assert bench.main(["ssd_recurrent"]) == 0
    said = capsys.readouterr().out
    assert " 3 + 1 " in said
    line = "not counted: ssd_steps runs only for rows whose results by chunks are not finite"
    assert line in said.splitlines()
