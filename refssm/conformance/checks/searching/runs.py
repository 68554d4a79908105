"""One run of Hypothesis: a fixed count, one seed, no database, nothing from the environment."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.configuration import set_hypothesis_home_dir, storage_directory
from hypothesis.internal.conjecture import providers

from refssm.conformance.cases.case import Case


def draw(strategy, observe: Callable[[Case], None], count: int, seed_: int, shrink: bool) -> None:
    """One run of Hypothesis; with `shrink`, it makes the first case smaller that raises."""
    run = given(strategy)(lambda case: observe(case))
    run = settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
        suppress_health_check=[*HealthCheck],  # pyright: ignore[reportArgumentType]
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
    )(run)
    seed(seed_)(run)()


@contextmanager
def repeatable() -> Iterator[None]:
    """Hypothesis without numbers from loaded modules and without a folder of its own."""
    with _no_hypothesis_folder(), _no_constants():
        yield


@contextmanager
def _no_constants() -> Iterator[None]:
    """Keep Hypothesis from drawing numbers found in loaded modules: they depend on imports."""
    provider: Any = getattr(providers, "HypothesisProvider", None)
    drawn = getattr(provider, "_maybe_draw_constant", None)  # missing in older versions
    if drawn is not None:
        provider._maybe_draw_constant = lambda *_, **__: None
    try:
        yield
    finally:
        if drawn is not None:
            provider._maybe_draw_constant = drawn


@contextmanager
def _no_hypothesis_folder() -> Iterator[None]:
    """Let Hypothesis write its caches to a folder that is deleted afterwards."""
    here: Any = storage_directory(intent_to_write=False)
    before = getattr(here, "home_directory", here)  # older versions return the path itself
    with tempfile.TemporaryDirectory(prefix="refssm-hypothesis-") as folder:
        set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            set_hypothesis_home_dir(before)
