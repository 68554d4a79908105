import numpy as np
import pytest
from timed import AcceptsAll, Clock, program

from refssm.bench import growth
from refssm.bench.growth import Growth, growth_of, lines
from refssm.bench.programs.program import MIRROR
from refssm.scan import LINEAR_SCAN, LINEAR_STEP

LENGTHS = (16, 32, 64, 128)


def grown(monkeypatch, power, lengths=LENGTHS, seconds=1e-4):
    clock = Clock(look=0)

    def mirror(a, b):
        clock.now += seconds * b.shape[-2] ** power
        return b

    monkeypatch.setattr(growth, "ours", lambda op: [program(mirror, "mirror", MIRROR)])
    (found,) = growth_of([LINEAR_SCAN, LINEAR_STEP], AcceptsAll(), clock=clock, lengths=lengths)
    return found


@pytest.mark.parametrize("power", [1, 1.5])
def test_the_slope_is_the_power_of_the_length(monkeypatch, power):
    found = grown(monkeypatch, power)
    assert found.slope == pytest.approx(power, rel=1e-6)
    assert found.lengths == LENGTHS
    assert found.message == ""


def test_the_slope_of_the_longer_half_leaves_out_the_start(monkeypatch):
    lengths = tuple(2**k for k in range(4, 12))
    found = Growth("x", "float32", lengths, tuple(max(l, 256) * 1e-6 for l in lengths))
    assert found.late == pytest.approx(1)
    assert found.slope is not None
    assert found.slope < 0.6


def test_what_would_take_too_long_is_not_tried(monkeypatch):
    found = grown(monkeypatch, 2, seconds=1e-3)
    assert found.lengths == (16, 32, 64)  # four times 4 s is above 5 s
    assert found.message == "stopped at l = 64: 4.1 s"


def test_a_length_that_raises_ends_the_growth(monkeypatch):
    def mirror(a, b):
        if b.shape[-2] > 16:
            raise MemoryError("no room")
        return b

    monkeypatch.setattr(growth, "ours", lambda op: [program(mirror, "mirror", MIRROR)])
    (found,) = growth_of([LINEAR_SCAN], AcceptsAll(), lengths=LENGTHS)
    assert found.lengths == (16,)
    assert found.slope is None
    assert found.message.startswith("l = 32 raised MemoryError: no room")


def test_a_line_has_the_slope_and_both_ends():
    found = Growth("linear_scan", "float32", (1024, 2048, 4096), (1e-3, 2e-3, 4e-3))
    assert found.slope == pytest.approx(1)
    (line,) = lines([found])
    assert line == "linear_scan   float32   slope 1.00   l = 1024: 1.00e-03 s, l = 4096: 4.00e-03 s"
    assert np.isfinite(found.record["slope"])
