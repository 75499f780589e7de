"""Owners that were suspended for a roll-back of which no record tells any more go on (G4)."""

import asyncio
from functools import cache
from typing import Final

import structlog

from controllers.podgroups.cache import PodGroupCache
from controllers.podgroups.evictor import Evictor
from jobset_gate.kube.errors import KubeError, NotLeader
from jobset_gate.podgroups.record import AdmissionState

SWEEP_RETRY_SECONDS: Final = 5.0
"""Seconds after which it is tried anew."""

SWEEP_SECONDS: Final = 300.0
"""Seconds between two looks for those who are suspended, and whose record has gone unseen."""

_log = structlog.get_logger(__name__)


class ResumeSweeper:
    """Looks for them when this process begins to lead, and now and then."""

    def __init__(self, index: PodGroupCache, rollbacks: Evictor, namespace: str | None) -> None:
        """`namespace`: the only one whose groups the index knows; None: all."""
        self._index, self._rollbacks, self._namespace = index, rollbacks, namespace

    async def run(self) -> None:
        """Whoever is suspended for a roll-back of which no record knows, or none any more, goes on."""
        while True:
            try:
                await self._resume_all()
            except NotLeader:
                raise
            except KubeError as error:
                _log.warning("not resumed", error=str(error))
                await asyncio.sleep(SWEEP_RETRY_SECONDS)
            else:
                await asyncio.sleep(SWEEP_SECONDS)

    async def _resume_all(self) -> None:
        rolling = cache(self._rolling)  # looked for when the list of the suspended is there, and once
        await self._rollbacks.resume_owners_where(lambda *mark: mark not in rolling(), self._namespace)

    def _rolling(self) -> set[tuple[str, int]]:
        """Labels and generations of the groups that are being taken back."""
        seen = (it for key in list(self._index.keys()) if (it := self._index.snapshot(key)) is not None)
        return {
            (it.label, it.record.generation)
            for it in seen
            if it.record and it.record.stage is AdmissionState.ROLLING_BACK
        }
