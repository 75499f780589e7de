"""Gangs that came in while the webhook was off, so that nothing holds their pods (GateMissing)."""

import time
from typing import Final

from jobset_gate.cli.doctor.cluster_reader import ClusterReader
from jobset_gate.cli.doctor.findings import Finding, error, ok
from jobset_gate.explain.gang import GangState, explain_gang

MOST: Final = 5
_REMEDY: Final = "delete and create them again now that the webhook is there: a gate cannot be added to a JobSet"


async def check(patient: ClusterReader) -> list[Finding]:
    """Those that are neither finished nor bypassed."""
    now = time.time()
    found = [it for it in await patient.gangs() if it.seen is not None]
    bare = [
        f"{it.namespace}/{it.name}"
        for it in found
        if it.seen is not None and explain_gang(it.seen, now, pods_forbidden=it.blind).state is GangState.GATE_MISSING
    ]
    if bare:
        what = f"{len(bare)} of {len(found)} gangs have no barrier"
        return [error(what, f"their pods start at once: {some(bare)}", _REMEDY)]
    return [ok("every gang has its barrier")] if found else []


def some(these: list[str]) -> str:
    """The first of them, and how many more there are."""
    return ", ".join(these[:MOST]) + (f" and {len(these) - MOST} more" if len(these) > MOST else "")
