"""A user who makes one gang after another while something is done to jobset-gate, and counts what goes wrong."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from e2e import gangs
from e2e.scenario import Scenario
from e2e.timeouts import TIMEOUT
from jobset_gate import names
from jobset_gate.kube.errors import KubeError
from jobset_gate.kube.resources import JOBSETS

Json = dict[str, Any]
USERS: Final = 4
PAUSE: Final = 0.05
"""Seconds between two gangs of one user."""
SHOWN: Final = 3


@dataclass(slots=True)
class AdmissionCounts:
    """What has become of them so far."""

    held: int = 0
    """Accepted, and with a barrier in every template."""
    free: int = 0
    """Accepted without a barrier."""
    refused: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        why = f": {self.refused[:SHOWN]}" if self.refused else ""
        return f"{self.held} gangs got their barrier, {self.free} did not, {len(self.refused)} were refused{why}"

    def add(self, made: Json) -> None:
        if has_barrier(made):
            self.held += 1
            return
        self.free += 1

    async def reaches(self, held: int) -> None:
        """Until so many were held."""
        async with asyncio.timeout(TIMEOUT):
            while self.held < held:  # noqa: ASYNC110 - it is counted in this very loop
                await asyncio.sleep(PAUSE)

    def check(self) -> None:
        """None was lost."""
        assert not self.refused, str(self)
        assert not self.free, str(self)
        assert self.held, "no gang was made at all"


def has_barrier(jobset: Mapping[str, Any]) -> bool:
    """In the templates of all replicatedJobs."""
    return all(
        any(one["name"] == names.BARRIER_CONTAINER for one in pod.get("initContainers") or ())
        for pod in (job["template"]["spec"]["template"]["spec"] for job in jobset["spec"]["replicatedJobs"])
    )


async def admit_once(scenario: Scenario, name: str = "tried") -> Json:
    """One gang as it would be stored: a dry run goes the same way through admission. Raises KubeError."""
    gang = gangs.gang(gangs.workers(scenario.image, jobs=1, pods=1))
    gang["metadata"] = {**gang["metadata"], "name": name, "namespace": scenario.namespace}
    return await scenario.client.without_retries().create(JOBSETS, gang, dry_run=True)


@asynccontextmanager
async def admission_load(scenario: Scenario, lanes: int = USERS) -> AsyncIterator[AdmissionCounts]:
    """Meanwhile so many users make gangs, none of them trying anything twice."""
    tally, numbers = AdmissionCounts(), count()

    async def user() -> None:
        while True:
            try:
                tally.add(await admit_once(scenario, f"one-of-many-{next(numbers)}"))
            except KubeError as refusal:
                tally.refused.append(str(refusal))
            await asyncio.sleep(PAUSE)

    users = [asyncio.create_task(user()) for _ in range(lanes)]
    try:
        yield tally
    finally:
        for one in users:
            one.cancel()
        for one in users:
            with suppress(asyncio.CancelledError):
                await one
