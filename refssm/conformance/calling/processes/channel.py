"""Messages between the judge and its child, over one socket, each with a time limit.

Every message begins with a mark, so that bytes of a plug-in that writes to all open descriptors
are noticed. A process that the child forks has its end closed: only the child can answer.
"""

import os
import pickle
import socket
import struct
import time
from typing import Any

HEAD = struct.Struct("!8sQ")
MARK = b"refssm\xff\x00"


class Foreign(Exception):
    """What came is no message."""


class Channel:
    """One end of the connection."""

    def __init__(self, end: socket.socket):
        self._socket = end

    def send(self, message: Any, deadline: float | None = None) -> None:
        """Send a message; TimeoutError after the deadline, by `time.monotonic`."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        for part in (HEAD.pack(MARK, len(data)), data):
            self._limit(deadline)
            self._socket.sendall(part)

    def receive(self, deadline: float | None = None) -> Any:
        """The next message; EOFError at the end, Foreign for anything else."""
        mark, size = HEAD.unpack(self._exactly(HEAD.size, deadline))
        if mark != MARK:
            raise Foreign
        data = self._exactly(size, deadline)
        try:
            return pickle.loads(data)
        except Exception as error:  # whatever a damaged pickle raises
            raise Foreign from error

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def close_in_forks(self) -> None:
        """Close this end in every process that this one forks from now on."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.close)

    def _exactly(self, size: int, deadline: float | None) -> bytearray:
        data = bytearray(size)
        view, place = memoryview(data), 0
        while place < size:
            self._limit(deadline)
            came = self._socket.recv_into(view[place:])
            if not came:
                raise EOFError
            place += came
        return data

    def _limit(self, deadline: float | None) -> None:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
