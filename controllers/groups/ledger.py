"""Whose minimum was bound in a rush: noted in one object for many groups at a time, till their own homes tell it (G4).

A successor has to know it: it might else take back a group that has lost a pod since. While many groups are placed, a
write for each of them would take the API server's time from placing; one for all of them every so often does not. It
is there only as long as there is something on it.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
import structlog

from controllers.ticks import ticks
from jobset_gate import names
from jobset_gate.groups import read_homes
from jobset_gate.groups.model import Key
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Forbidden, KubeError, NotFound, NotLeader
from jobset_gate.kube.resources import CONFIGMAPS

EVERY: Final = 0.5
"""Seconds between two writes."""

MOST: Final = 5000
"""Groups on it, of about a hundred bytes each: an object has room for a million."""

READ_AGAIN: Final = 2.0
"""Seconds until it is read again, where that has failed."""

REST: Final = 60.0
"""Seconds for which nothing is noted after a write that has failed."""

Decision = tuple[int, float]
"""The generation, and when it was decided."""

# As on all that is decided of groups: an uninstallation finds it by that.
_LABELS: Final = {names.GANG_RECORD: names.GANG_RECORD_VALUE, names.MANAGED_BY_LABEL: names.PROGRAM}

_log = structlog.get_logger(__name__)


class _Stored(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


class Ledger:
    """`wake` is told of each group that was noted in vain: it has to be written down where it belongs, at once."""

    def __init__(
        self, client: Client, namespace: str, wake: Callable[[Key], None], *, clock: Callable[[], float] = ticks
    ) -> None:
        """`clock` is one that nobody sets."""
        self._client, self._namespace, self._wake, self._clock = client, namespace, wake, clock
        self._noted: dict[Key, tuple[Decision, float]] = {}
        self._stored = False
        """Whether the object is there, as far as is known."""
        self._work = asyncio.Event()
        self._rests_until = 0.0

    def note(self, key: Key, decision: Decision, met: float) -> bool:
        """This decision's minimum was bound then. False: nothing can be noted now."""
        if self._clock() < self._rests_until or (key not in self._noted and len(self._noted) >= MOST):
            return False
        if self._noted.get(key) != (decision, met):
            self._noted[key] = decision, met
            self._work.set()
        return True

    def met(self, key: Key, decision: Decision) -> float | None:
        """When this decision's minimum was bound, as far as it was noted."""
        known = self._noted.get(key)
        return known[1] if known is not None and known[0] == decision else None

    def strike(self, key: Key) -> None:
        """It stands where it belongs, or nothing is left of the group."""
        if self._noted.pop(key, None) is not None and not self._noted:
            self._work.set()

    async def catch_up(self) -> Sequence[Key]:
        """Reads what the last leader has noted, before any group is taken back. Gives the groups that are to be looked
        at: nothing may be left of one, or its record may tell by now.
        """
        while True:
            try:
                found = await self._client.get(CONFIGMAPS, names.GANG_LEDGER, self._namespace, type=_Stored)
            except (NotFound, Forbidden):  # who may not read it, has not written it either
                return []
            except NotLeader:
                raise
            except KubeError as error:
                _log.warning("ledger not read", error=str(error))
                await asyncio.sleep(READ_AGAIN)
            else:
                self._stored = True
                self._noted |= _read((found.data or {}).get(names.KEY_LEDGER, ""))
                self._work.set()  # perhaps there is nothing on it
                return list(self._noted)

    async def run(self) -> None:
        """Writes what was noted until cancelled, or until this process no longer leads (NotLeader)."""
        while True:
            await self._work.wait()
            self._work.clear()
            try:
                await self._write()
            except NotLeader:
                raise
            except KubeError as error:
                _log.warning("ledger not written", error=str(error))
                self._give_up()
            await asyncio.sleep(EVERY)

    # --- Details -----------------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        if self._noted:
            await self._put(_render(self._noted))
        elif self._stored:
            self._stored = False
            with suppress(NotFound):
                await self._client.delete(CONFIGMAPS, names.GANG_LEDGER, self._namespace)

    async def _put(self, text: str) -> None:
        data = {names.KEY_LEDGER: text}
        try:
            await self._client.patch(
                CONFIGMAPS,
                names.GANG_LEDGER,
                self._namespace,
                body={"data": data},
                patch=PatchType.MERGE,
                type=msgspec.Raw,
            )
        except NotFound:
            await self._client.create(CONFIGMAPS, _body(data), self._namespace, type=msgspec.Raw)
        self._stored = True

    def _give_up(self) -> None:
        """What was noted may not stand there; each group is written down by itself."""
        self._rests_until = self._clock() + REST
        for key in list(self._noted):
            self._wake(key)


def _body(data: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": names.GANG_LEDGER, "labels": _LABELS},
        "data": data,
    }


def _render(noted: dict[Key, tuple[Decision, float]]) -> str:
    lines = {read_homes.text_of(key): (*decision, met) for key, (decision, met) in noted.items()}
    return msgspec.json.encode(lines).decode()


def _read(text: str) -> dict[Key, tuple[Decision, float]]:
    """What nobody of us has written says nothing."""
    try:
        lines = msgspec.json.decode(text or "{}", type=dict[str, tuple[int, float, float]])
    except msgspec.DecodeError as error:
        _log.warning("ledger not understood", error=str(error))
        return {}
    read = ((read_homes.key_of(said), line) for said, line in lines.items())
    return {key: ((generation, at), met) for key, (generation, at, met) in read if key is not None}
