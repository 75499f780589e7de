"""Control planes that all workers of a test run share: each kind is started once, when the first test needs it.

The process that started pytest owns them and starts them in one thread, which lives as long as the process does (a
program of a plane ends with the thread that started it). Workers of pytest-xdist reach that thread by a Unix socket.
"""

import shutil
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from tests.plane import places
from tests.plane.components import Layout
from tests.plane.real import RealPlane


class SharedPlanes:
    """`kinds`: the arguments of RealPlane by the name of the kind."""

    def __init__(self, kinds: Mapping[str, Mapping[str, Any]]) -> None:
        self._kinds = kinds
        self._running: dict[str, RealPlane] = {}
        self._folder = tempfile.mkdtemp(prefix="jobset-gate-planes-")
        self.address = str(Path(self._folder) / "socket")
        self._listener = Listener(self.address, "AF_UNIX", backlog=64)
        self._thread = threading.Thread(target=self._serve, name="control planes", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """All planes are gone when this returns."""
        with suppress(OSError), Client(self.address, "AF_UNIX") as connection:
            connection.send(None)
        self._thread.join()
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self) -> None:
        """One request after the other: a second test that needs the same kind waits until the plane is ready."""
        while True:
            with suppress(EOFError, ConnectionError), self._listener.accept() as connection:
                kind = connection.recv()
                if kind is None:
                    break
                connection.send(self._layout(kind))
        for plane in self._running.values():
            plane.stop()

    def _layout(self, kind: str) -> Layout | Exception:
        try:
            if kind not in self._running:
                self._running[kind] = RealPlane(places.find(), audited=True, **self._kinds[kind]).start()
        except Exception as error:  # noqa: BLE001 - the test that asked raises it
            return error
        return self._running[kind].layout


def attach(address: str, kind: str) -> RealPlane:
    """The shared plane of that kind, in any process of the run. Raises what its start raised."""
    connection: Connection[Any, Any]
    with Client(address, "AF_UNIX") as connection:
        connection.send(kind)
        found = connection.recv()
    if isinstance(found, Exception):
        raise found
    return RealPlane.attached(found)
