"""Connect to a Dask cluster by its scheduler's address; an error is one sentence."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from refssm.conformance.usage_error import UsageError

SECONDS = 10  # time limit for the scheduler's answer


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the cluster; UsageError if there is no scheduler or no worker."""
    if find_spec("distributed") is None:
        raise UsageError("--dask needs Dask: pip install 'dask[distributed]'")
    from distributed import Client

    try:
        asyncio.run(_reached(address))  # a client that cannot connect hangs when it is deleted
        with warnings.catch_warnings():  # on versions: refssm compares those that matter
            warnings.simplefilter("ignore")
            client = Client(address, timeout=SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError, ImportError) as error:
        why = " ".join(str(error).split()) or f"no answer within {SECONDS:g} s"
        told = f"no scheduler answers: {why}"
        raise UsageError(f"--dask {address!r}: {told}") from None
    with client:
        if not client.ncores():
            raise UsageError(f"--dask {address!r}: the cluster has no workers")
        yield client


async def _reached(address: str) -> None:
    """Raise an exception unless a scheduler answers."""
    from distributed import Security, rpc

    secret = Security().get_connection_args("client")
    async with rpc(address, timeout=SECONDS, connection_args=secret) as server:
        told: Any = await asyncio.wait_for(server.identity(), SECONDS)
    if told.get("type") != "Scheduler":
        raise ValueError(f"it is a {told.get('type')}")
