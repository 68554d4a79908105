"""A run that writes a checkpoint after every step, for `test_killed.py`: starts or resumes it."""

import sys
from pathlib import Path

from training.small import setup

from refssm.training.run import Run

if __name__ == "__main__":
    folder, steps = Path(sys.argv[1]), int(sys.argv[2])
    run = Run(setup(steps, dropout=0.2), folder, every=1)
    if run.checkpoint.exists():
        run.resume()
    else:
        run.begin()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for _ in run.steps():
        pass
