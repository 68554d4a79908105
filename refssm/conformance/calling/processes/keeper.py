"""The keeper: a small process between the judge and a program, which ends all that it started.

`python -I -S keeper.py SOCKET`: the descriptor of a socket to the judge. It runs one program at a
time, as the leader of a session and process group of its own. When the program has ended, or the
judge asks for the end, or the judge is gone, all that the program started is killed. On Linux the
kernel makes the keeper the parent of every orphan among them (it is a "subreaper"), so that a
daemon is found too; elsewhere the process group is killed and no more.

It runs nothing of an author's and imports the standard library only, so it starts fast.
"""

import contextlib
import ctypes
import os
import select
import signal
import socket
import struct
import sys
import time

HEAD = struct.Struct("!I")  # the length of a request; 0: end what runs
REPLY = struct.Struct("!ci")  # what happened, and its number
STARTED, RUNS, FAILED, ENDED = b"s", b"r", b"f", b"e"  # process, process, errno, exit code
DESCRIPTORS = 4  # at most so many come with a request: output, and what the program gets as 3, 4, …
ABOVE = 64  # the numbers under which they are kept until the program has them
SECONDS = 3.0  # after so long what cannot be killed (it waits for a device) is left to the kernel
PAUSE = 0.01
SET_PDEATHSIG, SET_CHILD_SUBREAPER = 1, 36  # of prctl


class Gone(Exception):
    """The judge has ended."""


def moved(descriptor: int, number: int) -> int:
    """The descriptor under another number, out of the way of 3, 4, …; programs inherit neither."""
    os.dup2(descriptor, number, inheritable=False)
    os.close(descriptor)
    return number


class Keeper:
    """Runs programs for the judge, one at a time."""

    def __init__(self, judge: socket.socket):
        self.judge, self.process, self.code = judge, 0, None
        self.prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
        self.finds_orphans = bool(self.prctl) and self.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
        self.woken, wake = os.pipe()
        for end in (self.woken, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):  # as if the judge were gone
            signal.signal(number, lambda number, frame: judge.shutdown(socket.SHUT_RD))

    def serve(self) -> None:
        """Run what the judge asks for until it is gone."""
        with contextlib.suppress(Gone):
            while True:
                words, descriptors = self.request()
                if words:
                    self.run(words, descriptors)

    def request(self) -> tuple[list[bytes], list[int]]:
        """The words of a command and its descriptors; no words: end what runs."""
        head, came, *_ = socket.recv_fds(self.judge, HEAD.size, DESCRIPTORS)
        if len(head) < HEAD.size:
            raise Gone
        descriptors = [moved(d, ABOVE + i) for i, d in enumerate(came)]
        (left,), body = HEAD.unpack(head), b""
        while left > len(body):
            part = self.judge.recv(left - len(body))
            if not part:
                raise Gone
            body += part
        return body.split(b"\0") if body else [], descriptors

    def reply(self, what: bytes, number: int) -> None:
        """Tell the judge what happened; that it is gone is noticed by the next request."""
        with contextlib.suppress(OSError):
            self.judge.sendall(REPLY.pack(what, number))

    def run(self, words: list[bytes], descriptors: list[int]) -> None:
        """Run one program until it ends, or the judge wants its end; leave nothing of it."""
        error = self.start(words, descriptors)
        for d in descriptors:
            os.close(d)
        if error:
            os.waitpid(self.process, 0)
            self.reply(FAILED, error)
            return
        self.reply(RUNS, self.process)
        try:
            self.watch()
        finally:
            self.end()
        self.reply(ENDED, -signal.SIGKILL if self.code is None else self.code)

    def start(self, words: list[bytes], descriptors: list[int]) -> int:
        """Start a program: 0, or the errno that says why it cannot run."""
        here, there = socket.socketpair()
        keeper = moved(there.detach(), ABOVE + DESCRIPTORS)
        self.code, self.process = None, os.fork()
        if self.process == 0:
            here.close()
            try:
                self.become(words, descriptors, keeper)
            except OSError as error:
                os.write(keeper, HEAD.pack(error.errno or 1))
            finally:
                os._exit(127)
        os.close(keeper)
        with here:  # the judge knows the number before the program can do anything
            self.reply(STARTED, self.process)
            with contextlib.suppress(OSError):
                here.sendall(b"go")
                told = here.recv(HEAD.size)  # nothing if the program runs
                return HEAD.unpack(told)[0] if told else 0
        return 0  # it was killed at once

    def become(self, words: list[bytes], descriptors: list[int], keeper: int) -> None:
        """In the new process: become the program, unless the keeper is gone."""
        os.setsid()
        if self.prctl:
            self.prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # if somebody kills the keeper
        if not os.read(keeper, 2):
            return
        output, *others = descriptors
        for number, d in [(1, output), (2, output), *enumerate(others, 3)]:
            os.dup2(d, number)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
            signal.signal(number, signal.SIG_DFL)
        os.execvp(words[0], words)

    def watch(self) -> None:
        """Wait until the program has ended or the judge wants its end."""
        while self.code is None:
            ready, _, _ = select.select([self.judge, self.woken], [], [])
            self.reap()
            if self.judge in ready:
                self.request()
                return

    def reap(self) -> bool:
        """Collect children that have ended; True if others are left."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.woken, 4096)
        while True:
            try:
                ended, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if ended == 0:
                return True
            if ended == self.process:
                self.code = os.waitstatus_to_exitcode(status)

    def end(self) -> None:
        """Kill the program and all that it started."""
        until = time.monotonic() + SECONDS
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process, signal.SIGKILL)
        while self.reap() and time.monotonic() < until:
            # Children only: no stranger has their numbers before they are reaped. What a child
            # leaves behind becomes a child, too, and is killed in the next round.
            for child in self.children():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
            select.select([self.woken], [], [], PAUSE)

    def children(self) -> list[int]:
        """This process's children."""
        if not self.finds_orphans:
            return [self.process]
        parents = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
        return [process for process, parent in parents.items() if parent == os.getpid()]


if __name__ == "__main__":
    keeper_socket = socket.socket(fileno=int(sys.argv[1]))
    keeper_socket.set_inheritable(False)
    Keeper(keeper_socket).serve()
