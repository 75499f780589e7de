"""Which fields the status of each kind of PodGroup has in this cluster: other versions of a CRD have others (G5)."""

import math
from collections.abc import Callable
from typing import Final

import structlog

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError, InvalidResponse, Unreachable
from jobset_gate.kube.resources import CRDS, POD_GROUPS
from jobset_gate.podgroups import podgroup_status
from jobset_gate.runtime.clock import monotonic

REFRESH_SECONDS: Final = 300.0
"""Seconds for which a CRD's schema is not asked for again."""

_log = structlog.get_logger(__name__)


class StatusFields:
    """The fields by API group. Before anybody has asked, those of the design's own type and conditions."""

    def __init__(self, client: Client, *, patience: Callable[[], float] = monotonic) -> None:
        self._client, self._patience = client, patience
        self._fields: dict[str, frozenset[str]] = {}
        self._asked: dict[str, float] = {}

    def fields_of(self, api: str) -> frozenset[str]:
        """What may be written."""
        return self._fields.get(api, frozenset({*podgroup_status.STATUS_FIELDS[api], podgroup_status.CONDITIONS}))

    async def refresh_fields(self, api: str) -> None:
        """Reads the CRD, unless that was done a moment ago. Where it may not be read the design's own type holds."""
        if self._asked.get(api, -math.inf) + REFRESH_SECONDS > self._patience():
            return
        self._asked[api] = self._patience()
        name = f"{POD_GROUPS[api].plural}.{api}"
        try:
            crd = await self._client.get(CRDS, name)
        except (ApiError, InvalidResponse, Unreachable) as refused:
            _log.warning("schema of the status not known", crd=name, error=str(refused))
            self._fields[api] = frozenset(podgroup_status.STATUS_FIELDS[api])
            return
        self._fields[api] = frozenset(podgroup_status.crd_status_fields(crd))
