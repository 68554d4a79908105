"""`PYTHONPATH=tests python -m docs.build.claims [NAME …]`: the tables of `docs/experiments.md`.

It runs the experiments about claims, all or those named, stores what they found in
`docs/experiments.json`, draws their pictures, and writes what stands between the two marks of the
page. Models that were trained before are read from `runs/`: an interrupted run goes on.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from selftest.stored import table, today

from refssm.bench.measuring.timing import cores, processor
from refssm.conformance.record_lines import record_lines
from refssm.conformance.spreading.crew import local
from refssm.experiments.catalog import TRAINED, all_experiments, module_of
from refssm.training import checkpoint

PAGE, STORED, PICTURES = (
    Path("docs/experiments.md"), Path("docs/experiments.json"), Path("docs/gallery"),
)  # fmt: skip
BEGIN = "<!-- written by make experiments: begin -->\n"
END = "<!-- written by make experiments: end -->\n"
SEEDS = 3


def claimed() -> list[str]:
    """The experiments that are about a claim."""
    return [name for name in all_experiments() if hasattr(module_of(name), "CLAIM")]


def run(name: str, workers: int) -> dict[str, Any]:
    """One experiment: its tables and findings as texts, and its picture."""
    from refssm.experiments.trained.trials import tried, with_seeds

    experiment, began = module_of(name), time.perf_counter()
    if name in TRAINED:
        trials = with_seeds(experiment.trials(quick=False), range(SEEDS))
        with local(workers) as crew:
            folder = (Path("runs") / name).resolve()
            runs = tried(trials, folder, each=crew.each, track=_told)
        result = experiment.measured(runs)
        minutes = sum(r.seconds for r in runs) / 60
        trained = f"{len(runs)} models, {minutes:.0f} minutes of one process"
    else:
        result = experiment.measured(seed=0)
        trained = f"{(time.perf_counter() - began) / 60:.1f} minutes"
    experiment.draw(PICTURES / f"experiment_{name.replace('-', '_')}.png", result)
    date, commit = today()
    return {
        "name": name,
        "time": trained,
        "machine": f"{processor()}, {cores()} cores",
        "date": date,
        "commit": commit,
        "tables": [[t.title, t.columns, t.rows] for t in experiment.tables(result)],
        "findings": [[f.held, f.told] for f in experiment.findings(result)],
    }


def _told(results):
    """Print each model when it is trained."""
    for found in results:
        sys.stdout.write(f"{found.name} {found.seed}: {found.seconds:.1f} s\n")
        sys.stdout.flush()
        yield found


def written(stored: list[dict]) -> str:
    """What the experiments found, as Markdown: first all claims, then each with its tables."""
    rows = []
    for run in stored:
        held = sum(held for held, _ in run["findings"])
        claim = module_of(run["name"]).CLAIM
        link = f"[`{run['name']}`](#{run['name']})"
        rows.append((link, f"{claim.told} [{claim.source}]", f"{held} of {len(run['findings'])}"))
    parts = [table(("experiment", "what is said", "sentences that held"), rows)]
    for run in stored:
        parts += [f"## {run['name']}", *_section(run)]
    return "\n\n".join(parts) + "\n"


def _section(run: dict) -> list[str]:
    """The claim, the tables, the sentences and the picture of one experiment."""
    experiment = module_of(run["name"])
    claim = experiment.CLAIM
    about = (experiment.__doc__ or "").strip().partition("\n\n")
    parts = [f"Said: {claim.told} [{claim.source}].", about[0]]
    parts += [about[2]] if about[2] else []
    for title, columns, rows in run["tables"]:
        parts += [f"{title}:", table(tuple(columns), [tuple(row) for row in rows])]
    parts.append("\n".join(f"- **{'held' if h else 'not held'}**: {t}" for h, t in run["findings"]))
    picture = f"gallery/experiment_{run['name'].replace('-', '_')}.png"
    parts.append(f"![{run['name']}]({picture})")
    parts.append(f"{run['time']}; {run['machine']}; {run['date']}, after {run['commit']}.")
    return parts


def page(text: str, stored: list[dict]) -> str:
    """The page with another text between its marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE}: no marks {BEGIN.strip()} and {END.strip()}")
    return f"{before}{BEGIN}\n{written(stored)}\n{END}{after}"


def stored_runs() -> list[dict]:
    """What is stored, in the order of the catalog."""
    if not STORED.exists():
        return []
    found = {run["name"]: run for run in json.loads(STORED.read_text(encoding="utf-8"))["runs"]}
    return [found[name] for name in all_experiments() if name in found]


def keep(runs: list[dict]) -> None:
    """Store these runs in the place of older ones of their names, and write the page."""
    found = {run["name"]: run for run in [*stored_runs(), *runs]}
    ordered = [found[name] for name in all_experiments() if name in found]
    text = record_lines({"runs": ordered}, ("runs", "tables", "findings"))
    checkpoint.write_whole(STORED, text.encode())
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), stored_runs()), encoding="utf-8")


if __name__ == "__main__":
    for _name in sys.argv[1:] or claimed():
        keep([run(_name, cores())])
