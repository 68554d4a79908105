"""Processes for many tasks: of this machine by joblib's loky, or of a Dask cluster.

This file imports nothing of the judge, so that processes can start before this one has imported it.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from importlib import import_module
from multiprocessing import resource_tracker
from typing import Any

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor

from refssm.conformance.calling.processes.parent import end_with
from refssm.conformance.usage_error import UsageError


class Crew:
    """Processes, and how tasks reach them."""

    def __init__(self, backend: str, jobs: int, **options):
        self.backend, self.jobs, self.options = backend, jobs, options
        self.starting: Any = ()

    def start(self, module: str) -> None:
        """Start processes of this machine: they import `module` while this one goes on."""
        count = self.jobs if self.jobs > 0 else os.cpu_count() or 1
        self.starting = self._run(_imported, [(module,)] * count)

    def each(self, function: Callable, tasks: Iterable[tuple]) -> Generator[Any, None, None]:
        """The result of `function` for each task, in order of completion."""
        results = self.starting
        try:
            for _ in results:
                pass
            self.starting = ()
            results = self._run(function, tasks)
            for result in results:  # noqa: UP028 (which would close them before `finally` does)
                yield result
        except BrokenExecutor:
            raise UsageError(
                "--workers: a process was killed, perhaps because memory was full; "
                "use fewer processes; --resume continues the run"
            ) from None
        finally:
            _close(results)

    def close(self) -> None:
        """Forget processes that were started and got no task."""
        _close(self.starting)

    def _run(self, function: Callable, tasks: Iterable[tuple]) -> Any:
        with parallel_config(self.backend, n_jobs=self.jobs, **self.options):
            how: Any = {"return_as": "generator_unordered", "batch_size": 1, "max_nbytes": None}
            run = Parallel(**how)
        with _uninterrupted() if self.backend == "loky" else nullcontext():
            return run(delayed(function)(*task) for task in tasks)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits; processes that start meanwhile never get it, not even as they import."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # its start, by the first process, would end the waiting
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _imported(module: str) -> None:
    """Import a module that the tasks need."""
    import_module(module)


def _close(results: Any) -> None:
    with warnings.catch_warnings():  # tasks after a failure are cancelled
        warnings.filterwarnings("ignore", ".*tasks? .* been", UserWarning)
        if results:
            results.close()


@contextmanager
def local(workers: int) -> Iterator[Crew]:
    """Processes of this machine, each with one thread for linear algebra."""
    with warnings.catch_warnings():
        # loky restarts processes that have grown: no verdict depends on it
        warnings.filterwarnings("ignore", "A worker stopped", UserWarning)
        try:
            follow = partial(_follow, os.getpid())
            crew = Crew("loky", workers, inner_max_num_threads=1, initializer=follow)
            with closing(crew):
                yield crew
        finally:
            get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _follow(first: int) -> None:
    """Ignore Ctrl-C, which the first process handles, and end with that process."""
    # Windows: a virtual environment's interpreter is a child of its launcher
    end_with(first if os.name == "posix" else os.getppid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
