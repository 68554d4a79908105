"""`make pictures`: draw the pictures of `docs/gallery`."""

from pathlib import Path

from refssm.gallery import basis, kernels, memory, spectrum

FOLDER, STATES = Path("docs/gallery"), 64

if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for measure in memory.MEASURES:
        memory.draw(FOLDER / f"memory_{measure}.png", measure, STATES)
    for measure in basis.MEASURES:
        basis.draw(FOLDER / f"basis_{measure}.png", measure, 32)
    kernels.draw(FOLDER / "kernels.png", STATES)
    spectrum.draw(FOLDER / "spectrum.png", STATES)
