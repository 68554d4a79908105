"""`make pictures`: draw the pictures of `docs/hankel_and_hope.md`, seed 0."""

from pathlib import Path

from refssm.experiments import convergence, hankel_rank, initialisation, memory, perturbation

FOLDER = Path("docs/gallery")

if __name__ == "__main__":
    for experiment in (hankel_rank, perturbation, memory, initialisation, convergence):
        name = experiment.__name__.rpartition(".")[2]
        experiment.draw(FOLDER / f"experiment_{name}.png", experiment.measured(seed=0))
