"""What the examples run in this suite, not their own programs: a meeting over TCP that fails if a peer is missing.

It is handed to containers as the text of `python -c`, so it is one file and needs the standard library alone.

    meet ADDRESS PORT RANK SIZE   rank 0 takes the calls of the others, and all leave once all are there
    host PORT SIZE                takes the calls of any so many peers, and waits for them for ever
    join ADDRESS PORT             one of those
    call HOSTFILE PORT            calls every host in that file
    answer PORT                   takes calls until SIGTERM
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

TIMEOUT = float(os.environ.get("PATIENCE") or 60)
"""Seconds from a program's start until every peer has to be there. Containers of a released gang start within a few, on
a busy machine one after the other."""
AGAIN, TRY = 0.2, 2.0
"""Seconds between two tries, and that one may take."""
GO = b"go"
MISSED = 3
"""The exit code if a peer was missing; Python ends with 1 for all that nobody has thought of."""


def meet(address: str, port: int, rank: int, size: int) -> str:
    """Raises TimeoutError, naming who is missing."""
    if rank == 0:
        _gather(port, {str(other) for other in range(1, size)}, time.monotonic() + TIMEOUT)
    else:
        _wait_for_go(address, port, str(rank))
    return f"rank {rank} of {size}: all are here"


def host(port: int, size: int) -> str:
    """All of them at the same time: a peer that hangs up is gone."""
    there: dict[socket.socket, str] = {}
    with socket.create_server(("", port)) as server:
        server.settimeout(AGAIN)
        while len(there) < size:
            caller = _next(server)
            if caller is not None:
                there[caller[0]] = caller[1]
            there = {each: name for each, name in there.items() if not _gone(each)}
        for each in there:
            each.sendall(GO)
    return f"all {size} were here at once: {', '.join(sorted(there.values()))}"


def join(address: str, port: int) -> str:
    _wait_for_go(address, port, socket.gethostname())
    return f"{socket.gethostname()}: all are here"


def call(hostfile: str, port: int) -> str:
    hosts = [line.split()[0] for line in Path(hostfile).read_text().splitlines() if line.strip()]
    until = time.monotonic() + TIMEOUT
    for each in hosts:
        _dial(each, port, until).close()
    return f"all {len(hosts)} workers have answered"


def answer(port: int) -> str:
    """For ever."""
    with socket.create_server(("", port)) as server:
        while True:
            server.accept()[0].close()


def _gather(port: int, awaited: set[str], until: float) -> None:
    there: dict[str, socket.socket] = {}
    with socket.create_server(("", port)) as server:
        server.settimeout(AGAIN)
        while there.keys() != awaited:
            if time.monotonic() > until:
                raise TimeoutError(f"missing after {TIMEOUT:.0f}s: {', '.join(sorted(awaited - there.keys()))}")
            caller = _next(server)
            if caller is not None and caller[1] in awaited:
                there[caller[1]] = caller[0]
        for each in there.values():
            each.sendall(GO)


def _next(server: socket.socket) -> tuple[socket.socket, str] | None:
    """Who calls, and under which name; None if nobody does just now."""
    try:
        caller, _ = server.accept()
        caller.settimeout(TIMEOUT)
        return caller, caller.recv(256).decode()
    except OSError:
        return None


def _gone(caller: socket.socket) -> bool:
    """A caller says nothing but its name, so whatever is to be read now is its end."""
    caller.setblocking(False)
    try:
        return caller.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        caller.settimeout(TIMEOUT)


def _wait_for_go(address: str, port: int, name: str) -> None:
    until = time.monotonic() + TIMEOUT
    with _dial(address, port, until) as wire:
        wire.sendall(name.encode())
        wire.settimeout(max(AGAIN, until - time.monotonic()))
        if wire.recv(len(GO)) != GO:
            raise TimeoutError(f"{address}:{port} has hung up: a peer was missing")


def _dial(address: str, port: int, until: float) -> socket.socket:
    """Again and again: its name may not be in DNS yet, and its program may not listen yet."""
    while True:
        try:
            return socket.create_connection((address, port), timeout=TRY)
        except OSError as problem:
            if time.monotonic() > until:
                raise TimeoutError(f"{address}:{port} is missing after {TIMEOUT:.0f}s: {problem}") from problem
            time.sleep(AGAIN)


def main(what: str, *given: str) -> int:
    """The exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    deeds: dict[str, Callable[..., str]] = {it.__name__: it for it in (meet, host, join, call, answer)}
    words = [int(it) if it.isdecimal() else it for it in given]
    print(f"{what} {' '.join(given)}", flush=True)
    try:
        print(deeds[what](*words), flush=True)
    except (TimeoutError, ConnectionError) as missing:
        print(missing, flush=True)
        return MISSED
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
