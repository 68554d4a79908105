"""The two connections between the judge and its child, as this system can make them.

A child inherits descriptors of pipes and of the log. Windows has no such descriptors: there one
socket of this machine serves both ways, and the child's output goes to the log from the start.
"""

from __future__ import annotations

import io
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Sequence
from hmac import compare_digest
from multiprocessing.connection import Connection
from shlex import quote
from typing import IO, NamedTuple

MODULE = "refssm.conformance.calling.child"
SECRET = "REFSSM_CHILD_SECRET"  # the name of a variable: other users see arguments
WAIT_SECONDS = 0.1


SWITCHES = ("REFSSM_GPU",)  # of the environment, which the child inherits: what they say is judged


def switches() -> str:
    """The switches that are set, as a shell takes them: "REFSSM_GPU=host", or nothing."""
    return " ".join(f"{s}={quote(os.environ[s])}" for s in SWITCHES if os.environ.get(s))


class Link(NamedTuple):
    """The child, and the judge's ends of the connections."""

    process: subprocess.Popen
    requests: Connection
    answers: Connection


def inherits_descriptors() -> bool:
    """Whether `pass_fds` is there."""
    return os.name == "posix"


def start(log: IO[bytes], folder: str | None) -> Link:
    """Start a child that prints into a log."""
    return (_by_pipes if inherits_descriptors() else _by_socket)(log, folder)


def _by_pipes(log, folder) -> Link:
    down_read, down_write = os.pipe()
    up_read, up_write = os.pipe()
    passed = down_read, up_write, log.fileno()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", MODULE, *map(str, passed)],
        pass_fds=passed,
        stdin=subprocess.DEVNULL,
        cwd=folder,
    )
    os.close(down_read)
    os.close(up_write)
    return Link(
        process, Connection(down_write, readable=False), Connection(up_read, writable=False)
    )


def _by_socket(log, folder) -> Link:
    secret = secrets.token_hex()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_SECONDS)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, str(server.getsockname()[1])],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, SECRET: secret},
        )
        connection = _accepted(server, process, secret)
    return Link(process, connection, connection)


def _accepted(server, process, secret) -> Connection:
    """The child's connection; a closed one where it ended before, as a pipe would be."""
    while process.poll() is None:
        try:
            accepted, _ = server.accept()
        except TimeoutError:
            continue
        accepted.setblocking(True)
        connection = Connection(accepted.detach())
        if connection.poll(1) and compare_digest(connection.recv_bytes(100), secret.encode()):
            return connection
        connection.close()
    here, there = socket.socketpair()
    there.close()
    return Connection(here.detach())


def join(arguments: Sequence[str]) -> tuple[Connection, Connection]:
    """The child's ends: requests and answers; all that is printed goes to the log."""
    if len(arguments) == 1:
        connection = Connection(socket.create_connection(("127.0.0.1", int(arguments[0]))).detach())
        connection.send_bytes(os.environ.pop(SECRET).encode())
        requests = answers = connection
    else:
        reading, writing, log = map(int, arguments)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        requests, answers = Connection(reading, writable=False), Connection(writing, readable=False)
    for stream in (sys.stdout, sys.stderr):  # whatever the locale: the judge reads UTF-8
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return requests, answers


def printed(log: IO[bytes]) -> str:
    """What a child printed; where it can only be read by moving, the child has ended."""
    if hasattr(os, "pread"):  # its place in the file is the child's, too
        text = os.pread(log.fileno(), os.fstat(log.fileno()).st_size, 0)
    else:
        log.seek(0)
        text = log.read()
    return text.decode(errors="replace")
