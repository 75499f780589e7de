"""Ports of loopback for programs that cannot say which one they were given."""

import socket
from contextlib import suppress
from random import SystemRandom

_NOBODYS = range(10_000, 32_000)
"""Below those that a kernel gives to outgoing connections, which come and go all the time."""


def free_ports(count: int) -> list[int]:
    """Distinct ones that nobody listens on at this moment."""
    found: list[int] = []
    for port in SystemRandom().sample(_NOBODYS, len(_NOBODYS)):
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            break
    return found


def free_port() -> int:
    return free_ports(1)[0]
