"""`PYTHONPATH=tests python -m docs.build.curves [FOLDER …]`: the figures of `docs/training.md`.

Without folders it trains every layer on digits; with folders of finished runs it takes their
results, those of `refssm train` with its usual options. Both are stored in `docs/training.json`.
What stands between the two marks of the page is written by this program; people write the rest.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from statistics import mean, stdev

from selftest.stored import table

from refssm.bench.measuring.timing import cores, processor
from refssm.conformance.record_lines import record_lines
from refssm.conformance.spreading.crew import local
from refssm.experiments import digits
from refssm.training import checkpoint
from refssm.training.setup import Setup

PAGE, RUNS = Path("docs/training.md"), Path("docs/training.json")
PICTURE = Path("docs/pictures/training.svg")
BEGIN = "<!-- written by make experiments-quick: begin -->\n"
END = "<!-- written by make experiments-quick: end -->\n"


def page(text: str, written: str) -> str:
    """The page with another text between its marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE}: no marks {BEGIN.strip()} and {END.strip()}")
    return f"{before}{BEGIN}\n{written}\n{END}{after}"


def written(stored: dict) -> str:
    """The tables of stored runs as Markdown, with the machine and the settings."""
    result = [digits.TrainedLayer(**run) for run in stored["runs"]]
    model = ", ".join(f"{n} = {v}" for n, v in (stored["model"] | stored["plan"]).items())
    by_name = {name: [r.seconds for r in runs] for name, runs in digits.by_layer(result).items()}
    times = ", ".join(f"{name} {sum(s) / len(s):.0f}" for name, s in by_name.items())
    minutes = f"{stored['minutes']:.1f} minutes with {stored['workers']} processes"
    parts = [f"Machine: {stored['machine']}. All runs took {minutes}.", f"Every model: {model}."]
    parts.append(f"Seconds of a run: {times}.")
    for found in digits.tables(result):
        parts += [f"{found.title}:", table(found.columns, found.rows)]
    parts.append(f"![curves of all layers]({PICTURE.relative_to(PAGE.parent)})")
    return "\n\n".join([*parts, *_usual(stored["usual"])]) + "\n"


def text(stored: dict) -> str:
    """Stored runs as JSON, one run a line."""
    return record_lines(stored, ("runs", "usual"))


def _usual(runs: list[dict]) -> list[str]:
    """The table of runs with the usual options."""
    rows, kinds = [], sorted({(run["task"], run["layer"]) for run in runs})
    for task, layer in kinds:
        its = [r for r in runs if (r["task"], r["layer"]) == (task, layer)]
        found = [100 * r["accuracy"] for r in its]
        deviation = f" ± {stdev(found):.1f}" if len(found) > 1 else ""
        rows.append((
            f"`refssm train {task} --layer {layer}`", ", ".join(str(r["seed"]) for r in its),
            f"{mean(found):.1f}{deviation}", f"{min(found):.1f} to {max(found):.1f}",
            str(its[0]["steps"]), f"{mean(r['seconds'] for r in its) / 60:.1f}",
        ))  # fmt: skip
    head = ("command", "seeds", "test accuracy, %", "range", "steps", "minutes a run")
    return ["With the usual options:", table(head, rows)]


def finished(folder: Path) -> dict:
    """The result of a run with the usual options, from its folder."""
    _, facts = checkpoint.read(folder / "checkpoint.safetensors")
    told, usual = facts["settings"], Setup(facts["settings"]["task"], facts["settings"]["layer"])
    other = {n for n, v in usual.facts().items() if n != "seed" and told[n] != v}
    text = (folder / "metrics.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    if other or len(lines) != told["steps"]:
        raise ValueError(f"{folder}: not finished, or not with the usual {', '.join(other)}")
    kept = {name: told[name] for name in ("task", "layer", "seed", "steps")}
    seconds = sum(line["seconds"] for line in lines)
    return {**kept, "accuracy": lines[-1]["test_accuracy"], "seconds": seconds}


def run(workers: int) -> dict:
    """Train every layer with every seed, in so many processes."""
    began = time.perf_counter()
    with local(workers) as crew:
        found = digits.measured(seed=0, each=crew.each, track=_told)
    minutes = (time.perf_counter() - began) / 60
    plan = {n: getattr(digits.PLAN, n) for n in ("steps", "batch", "rate", "warm_up", "decay")}
    told = {"machine": f"{processor()}, {cores()} cores", "workers": workers, "minutes": minutes}
    return {**told, "model": digits.MODEL, "plan": plan, "runs": [r._asdict() for r in found]}


def _told(results):
    """Print each run when it is done."""
    for found in results:
        accuracy = f"test accuracy {found.tests[-1]['test_accuracy']:.4f}"
        sys.stdout.write(f"{found.layer} {found.seed}: {accuracy}, {found.seconds:.1f} s\n")
        sys.stdout.flush()
        yield found


def write(folders: list[str]) -> None:
    """Run the experiment, or take runs from folders; write numbers, picture and page."""
    stored = json.loads(RUNS.read_text(encoding="utf-8")) if RUNS.exists() else {"usual": []}
    if folders:
        stored["usual"] = [finished(Path(folder)) for folder in folders]
    else:
        stored = {**run(cores()), "usual": stored["usual"]}
    checkpoint.write_whole(RUNS, text(stored).encode())
    digits.draw(PICTURE, [digits.TrainedLayer(**r) for r in stored["runs"]])
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), written(stored)), encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1:])
