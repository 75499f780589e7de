"""A real API server: an object made to cost time is refused with the bound, and others are admitted meanwhile."""

import asyncio
import json
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Invalid
from jobset_gate.kube.resources import JOBSETS
from tests.fakes.admission_server import registered
from tests.fakes.jobsets import Json, barrier, created, jobset, replicated

pytestmark = pytest.mark.real

MANY = 3000


def chains() -> Json:
    """Targets that all begin the same long chain of dependencies."""
    chain = [{"name": f"n{index}", "dependsOn": [{"name": f"n{index + 1}"}]} for index in range(MANY)]
    targets = [{"name": f"t{index}", "dependsOn": [{"name": "n0"}]} for index in range(MANY)]
    return jobset(*chain, *targets, config={"targetReplicatedJobs": [it["name"] for it in targets]})


def keys() -> Json:
    """80,000 keys, the last one twice: 0.85 MiB of annotation, which the API server's own limit does not stop here."""
    message = ",".join(f'"k{index}":0' for index in range(80_000))
    return jobset(config=False, notes={names.CONFIG: f'{{{message},"z":0,"z":0}}'})


@pytest.mark.parametrize(
    ("hostile", "bound"),
    [
        (chains, "too many: a gated JobSet has at most 500 replicatedJobs"),
        (keys, "too long: must be at most 32768 bytes"),
    ],
)
async def test_a_hostile_jobset_is_refused_with_the_bound_while_others_are_admitted(
    hostile: Any, bound: str, client: Client, namespace: str
) -> None:
    bad = hostile()
    bad["metadata"]["namespace"] = namespace

    async def refused() -> None:
        with pytest.raises(Invalid, match=bound):
            await client.create(JOBSETS, bad, namespace, dry_run=True)

    async def admitted(number: int) -> None:
        ordinary = created(jobset(replicated(), name=f"ordinary-{number}", config=False))
        ordinary["spec"]["groupSchedulingConfig"] = {"timeoutAfterSeconds": 300}
        ordinary["metadata"]["namespace"] = namespace
        assert barrier(await client.create(JOBSETS, ordinary, namespace, dry_run=True))

    async with registered(client, namespace):
        await asyncio.gather(refused(), refused(), *(admitted(number) for number in range(5)))
    assert len(json.dumps(bad)) > 300_000
