"""Training keeps the states at block boundaries, so a long sequence fits into memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="this system does not tell the peak of a process")
ROOT = Path(__file__).parents[2]
STEP = """
import json, resource, sys
import numpy as np
from refssm.layers import operators
from refssm.layers.catalog import NAMED
from refssm.layers.model import Model
from refssm.training import shares
from refssm.training.losses import cross_entropy_grad

UNIT = 1 if sys.platform == "darwin" else 1024

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT

before, l, batch = peak(), int(sys.argv[1]), 4
model = Model(NAMED["s5"], 1, 10, h=128, depth=4, sizes={"n": 32})
rng = np.random.default_rng(0)
p, u = model.init(rng), rng.standard_normal((batch, l, 1)).astype(np.float32)
labels = np.arange(batch)

def cotangent(y, rows):
    return cross_entropy_grad(y, labels[rows], batch)

y, gradients, _ = shares.gradients(model, operators("jit"), p, u, cotangent)
finite = all(bool(np.isfinite(g).all()) for g in gradients.values())
print(json.dumps({"before": before, "peak": peak(), "finite": finite}))
"""


def measured(l):
    command = [sys.executable, "-c", STEP, str(l)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, cwd=ROOT)
    return json.loads(done.stdout)


@pytest.mark.long
def test_a_step_of_four_layers_of_s5_at_16384_stays_below_2_gigabytes(record_property):
    found = measured(2**14)
    record_property("peak", found["peak"])
    assert found["finite"]
    assert found["peak"] < 2e9
