"""A process that must not outlive the one that started it, however that ends."""

import os
import signal
import threading
import time

WATCH_SECONDS = 1.0


def end_with(parent: int) -> None:
    """End this process when its parent is gone, even during a call: a killed parent cannot.

    On Windows a parent's number stays: a process in the middle of a call goes on to its end.
    """
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
