"""Plug-ins whose call starts processes, or does to its own process what no call should.

Each is the body of a call with one step, what becomes of that call, and words of its message.
"""

PLUGIN = """
import contextlib, ctypes, multiprocessing, os, signal, subprocess, sys, time
import numpy as np

SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(1000)"]

def sleep():
    time.sleep(1000)

def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            sleep()
        os._exit(0)
    os.wait()

def everywhere(data):
    for descriptor in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(descriptor, data)

def linear_scan(a, b):
    if b.shape[-2] == 1:
        {body}
    x = np.empty_like(b, dtype=np.result_type(a, b))
    state = 0
    for k in range(b.shape[-2]):
        state = a[..., k, :] * state + b[..., k, :]
        x[..., k, :] = state
    return x
"""
HUNG = ("hung", "did not return within 2 s")
RIGHT = ("ok", "")
CALLS = {
    "a fork that hangs": ("if os.fork() == 0: sleep()", *RIGHT),
    "a fork, whose parent ends": (
        "if os.fork(): os._exit(0)\n        sleep()",
        *("crashed", "ended the process with exit code 0"),
    ),
    "a fork, and both hang": ("os.fork(); sleep()", *HUNG),
    "a fork, and both return": ("os.fork()", *RIGHT),
    "a fork below Python": ("ctypes.CDLL(None).fork(); sleep()", *HUNG),
    "a fork that hangs in a chain": (
        "if os.fork() == 0:\n            while True:\n                if os.fork(): os._exit(0)",
        *RIGHT,
    ),
    "a command in the background": ("os.system('sleep 1000 & echo')", *RIGHT),
    "a command that hangs": ("os.system('sleep 1000 & sleep 1000')", *HUNG),
    "a process with our descriptors": (
        "subprocess.Popen(SLEEP, close_fds=False, start_new_session=True); sleep()", *HUNG,
    ),
    "a process of multiprocessing": (
        "multiprocessing.get_context('fork').Process(target=sleep).start(); sleep()", *HUNG,
    ),
    "a daemon": ("daemon()", *RIGHT),
    "a daemon, then the end": ("daemon(); os._exit(3)", "crashed", "with exit code 3"),
    "a daemon, then a hang": ("daemon(); sleep()", *HUNG),
    "a session of its own": ("os.setsid()", "raised", "raised PermissionError"),
    "no SIGTERM": ("signal.signal(signal.SIGTERM, signal.SIG_IGN); sleep()", *HUNG),
    "a stop": ("os.kill(os.getpid(), signal.SIGSTOP)", *HUNG),
    "its end": ("os._exit(0)", "crashed", "ended the process with exit code 0"),
    "a kill": ("os.kill(os.getpid(), 9)", "crashed", "killed the process by SIGKILL"),
    "a kill of its group": ("os.kill(0, 9)", "crashed", "killed the process by SIGKILL"),
    "a kill of its parent": (
        "os.kill(os.getppid(), 9); sleep()",
        *("crashed", "lost the process that would end what it starts"),
    ),
    "no descriptors": ("os.closerange(0, 4096)", "crashed", "ended the process with exit code 1"),
    "none but the output": (
        "os.closerange(3, 4096)", *("crashed", "(it printed: the connection to the judge was clos"),
    ),
    "no descriptors, and a hang": (
        "os.closerange(0, 4096); sleep()", *("crashed", "closed the connection to the judge"),
    ),
    "SystemExit": ("raise SystemExit(3)", "raised", "raised SystemExit: 3 (my_ops.py:"),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", *("raised", "raised KeyboardInterrupt (my_")),
    "much output": ("while True: print('x' * 100000)", *HUNG),
    "much output below Python": ("while True: os.write(2, b'x' * 100000)", *HUNG),
    "a question": ("input()", "raised", "raised EOFError"),
    "another folder": ("os.chdir('/')", *RIGHT),
    "bytes for everybody": (
        "everywhere(b'not yours')", *("crashed", "wrote to the connection to the judge"),
    ),
    "endless bytes for everybody": (
        "while True: everywhere(b'\\xff' * 4096)",
        *("crashed", "wrote to the connection to the judge"),
    ),
}  # fmt: skip
LOADS = {
    "a daemon": ("daemon()\n1 / 0", "importing it raised ZeroDivisionError"),
    "a daemon, then the end": ("daemon()\nos._exit(3)", "ended the process with exit code 3"),
    "a daemon, then a hang": ("daemon()\nsleep()", "importing it did not return within 2.5 s"),
    "a fork, and both hang": ("os.fork()\nsleep()", "importing it did not return within 2.5 s"),
    "a fork, whose parent ends": (
        "if os.fork(): os._exit(0)\nsleep()", "importing it ended the process with exit code 0",
    ),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", "importing it raised KeyboardInterrupt"),
    "bytes for everybody": (
        "everywhere(b'not yours')", "importing it wrote to the connection to the judge",
    ),
}  # fmt: skip
