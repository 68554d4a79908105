"""The connection between the judge and its child, as this system can make it.

A child inherits one end of a pair of sockets. Windows has no such descriptors: there the child
calls a port of this machine.
"""

import io
import os
import secrets
import socket
import sys
from collections.abc import Sequence
from hmac import compare_digest
from shlex import quote
from typing import NamedTuple

from refssm.conformance.calling.processes.channel import Channel
from refssm.conformance.calling.processes.kept import Alone, KeeperHandle, Running, has_groups
from refssm.conformance.calling.processes.tail import Tail

MODULE = "refssm.conformance.calling.child"
SECRET = "REFSSM_CHILD_SECRET"  # the name of a variable: other users see arguments
WAIT_SECONDS = 0.1
PORT = "port"


SWITCHES = ("REFSSM_GPU",)  # of the environment, which the child inherits: what they say is judged


def switches() -> str:
    """The switches that are set, as a shell takes them: "REFSSM_GPU=host", or nothing."""
    return " ".join(f"{s}={quote(os.environ[s])}" for s in SWITCHES if os.environ.get(s))


class Link(NamedTuple):
    """The child, the judge's end of the connection, and what the child prints."""

    runs: KeeperHandle | Alone
    process: Running
    channel: Channel
    printed: Tail

    def close(self) -> None:
        """End the child, with all that it started."""
        self.process.end()
        self.channel.close()
        self.runs.close()


def inherits_descriptors() -> bool:
    """Whether a child can get an open socket."""
    return has_groups()


def start(folder: str | None) -> Link:
    """Start a child."""
    return (_by_descriptor if inherits_descriptors() else _by_port)(folder)


def _by_descriptor(folder) -> Link:
    runs, printed = KeeperHandle(folder), Tail()
    here, there = socket.socketpair()
    with there:
        process = runs.start([*_command(), "3"], printed.write, there.fileno())
    printed.start()
    return Link(runs, process, Channel(here), printed)


def _by_port(folder) -> Link:
    """Start the process, which connects to a port of this machine and shows the secret."""
    runs, printed, secret = Alone(folder), Tail(), secrets.token_hex()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_SECONDS)
        words = [*_command(), PORT, str(server.getsockname()[1])]
        process = runs.start(words, printed.write, more={SECRET: secret})
        printed.start()
        return Link(runs, process, Channel(_accepted(server, process, secret)), printed)


def _command() -> list[str]:
    return [sys.executable, "-P", "-m", MODULE]


def _accepted(server: socket.socket, process: Running, secret: str) -> socket.socket:
    """The child's connection; a closed one where it ended before, as a pair of sockets would be."""
    while process.wait(0) is None:
        try:
            accepted, _ = server.accept()
        except TimeoutError:
            continue
        accepted.settimeout(1)
        try:
            if compare_digest(accepted.recv(len(secret)), secret.encode()):
                return accepted
        except OSError:
            pass
        accepted.close()
    here, there = socket.socketpair()
    there.close()
    return here


def join(arguments: Sequence[str]) -> Channel:
    """The child's end; a process that the child forks has none."""
    *how, number = arguments
    if how == [PORT]:
        end = socket.create_connection(("127.0.0.1", int(number)))
        end.sendall(os.environ.pop(SECRET).encode())
    else:
        end = socket.socket(fileno=int(number))
        end.set_inheritable(False)  # programs that the child starts get none, too
    channel = Channel(end)
    channel.close_in_forks()
    for stream in (sys.stdout, sys.stderr):  # whatever the locale: the judge reads UTF-8
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return channel
