"""Decisions, from their choice till they are written: what they promise is nobody else's meanwhile (G3)."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from controllers.gates import LookAgain
from controllers.groups.lobby import Lobby, View
from controllers.groups.records import InDoubt, Records
from controllers.groups.setbacks import EXCUSED, Setbacks
from jobset_gate.groups.candidates import Check, Open, Opened
from jobset_gate.groups.decision import decision
from jobset_gate.groups.model import Key
from jobset_gate.groups.opening import promised
from jobset_gate.groups.record import How
from jobset_gate.groups.standing import Standing
from jobset_gate.kube.errors import KubeError, NotLeader
from jobset_gate.settings import Groups, Native

WRITES: Final = 16
"""Decisions that are being written at once: each of them soon has the pods of a whole group to open."""

AGAIN: Final = 1.0
"""Seconds after which the API is asked again what stands, when nobody knows whether a decision was written."""

_log = structlog.get_logger(__name__)


class Decisions:
    """By the first group of each; `look` asks for another look at a group."""

    def __init__(
        self,
        index: View,
        records: Records,
        settings: Groups,
        check: Check,
        lobby: Lobby,
        *,
        now: Callable[[], float],
        told: Callable[[Key], None],
        opened: Callable[[How, float], None],
        look: Callable[[Key], None],
    ) -> None:
        self._index, self._records, self._lobby = index, records, lobby
        self._native, self._check = settings.native, check
        self._now, self._told, self._opened, self._look = now, told, opened, look
        self._deciding: dict[Key, Open] = {}
        self._setbacks = Setbacks()
        self._at_once = asyncio.Semaphore(WRITES)
        self.changes = 0
        """How often what is being decided was found different."""

    @property
    def promised(self) -> Sequence[Opened]:
        """What was chosen and is being written counts as open."""
        return [promised(it, self._now()) for it in self._deciding.values()]

    def under_way(self, lead: Key) -> bool:
        """Whether one on this group is being written."""
        return lead in self._deciding

    def held_up(self, lead: Key) -> bool:
        """Whether one on this group could not be written, and is not to be tried again yet."""
        return self._setbacks.holds(lead)

    def why(self, lead: Key) -> Standing | None:
        """What is said of that."""
        return self._setbacks.told(lead)

    def take(self, verdict: Open) -> None:
        """This was chosen, and is going to be written."""
        self._deciding[verdict.candidate.key] = verdict
        self.changes += 1

    async def write(self, verdict: Open) -> None:
        """Writes a decision. Whatever comes of it, the group is looked at again."""
        lead = verdict.candidate.key
        try:
            async with self._at_once:
                await self._put_down(verdict)
        except LookAgain as lost:
            _log.debug("decision not taken", group=lead.path, why=str(lost))
            self._set_back(lead, lost, excused=EXCUSED)
        except NotLeader:
            raise
        except InDoubt as doubt:
            await self._clear_up(doubt)
        except KubeError as error:
            _log.error("decision not written", group=lead.path, error=str(error))
            self._set_back(lead, error)
        except Exception as error:  # noqa: BLE001 - a fault of ours that shows on one group must not stop the others
            _log.error("decision not written", group=lead.path, error=repr(error), exc_info=error)
            self._set_back(lead, error)
        else:
            self._setbacks.forget(lead)
        finally:
            del self._deciding[lead]
            self.changes += 1
            for demand in verdict.candidate.demands:
                self._look(demand.key)

    def _set_back(self, lead: Key, why: Exception, *, excused: int = 0) -> None:
        pause = self._setbacks.note(lead, str(why), excused=excused)
        if pause > 0:
            asyncio.get_running_loop().call_later(pause, self._look, lead)

    async def _clear_up(self, doubt: InDoubt) -> None:
        """Perhaps it was written: its room stays promised until the API has said."""
        while True:
            _log.error("decision in doubt", group=doubt.key.path, error=str(doubt))
            await asyncio.sleep(AGAIN)
            try:
                await self._records.look(doubt)
            except NotLeader:
                raise
            except KubeError as error:
                _log.debug("record not read", group=doubt.key.path, error=str(error))
            else:
                return

    async def _put_down(self, verdict: Open) -> None:
        now, keys = self._now(), [it.key for it in verdict.candidate.demands]
        still = self._lobby.candidate(keys[0], now)
        if still is None or [it.key for it in still.demands] != keys:
            raise LookAgain(f"group {keys[0].path} has changed")
        seen = [it for key in keys if (it := self._index.observe(key)) is not None]
        record = decision(seen, self._how(verdict), now)
        await self._records.write(seen[0], record)
        _log.info("group opened", group=keys[0].path, generation=record.generation, how=record.how.value)
        self._opened(record.how, verdict.candidate.since)
        for key in keys:
            self._lobby.say(key, None)
            self._told(key)

    def _how(self, verdict: Open) -> How:
        if self._native is Native.ON:
            return How.NATIVE
        if self._check is Check.OFF:
            return How.OFF
        return How.FIT if verdict.proven else How.PROBE
